"""The command line: what a person or a script gets from each command."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from rsmcp import (END_S, PATIENCE_S, SERVER, environment, gone, needs_proc,
                   until)

NAME = "remote-sandbox-mcp"
COMMANDS = ["serve", "tools", "call", "version", "help"]
OK, FAILED, USAGE = 0, 1, 2


@pytest.fixture
def run(tmp_path):
    """Run a command; what it printed is text."""
    def run_it(*args, env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.run(
            [os.path.abspath(SERVER), *args], cwd=tmp_path, text=True,
            env=environment(tmp_path, **(env or {})), timeout=PATIENCE_S,
            errors="surrogateescape", **options)
    return run_it


def good(ended):
    assert (ended.returncode, ended.stderr) == (OK, "")
    return ended.stdout


def wrong_usage(ended, command=None):
    """Refused, with nothing on stdout and the usage on stderr."""
    assert (ended.returncode, ended.stdout) == (USAGE, "")
    line = "usage: %s %s" % (NAME, command) if command else "usage: " + NAME
    assert line in ended.stderr


# help and version

@pytest.mark.parametrize("word", ["help", "-h", "--help"])
def test_overview(run, word):
    text = good(run(word))
    assert text.startswith("usage: %s [COMMAND ...]\n" % NAME)
    for command in COMMANDS:
        assert re.search(r"^  %s +\S" % command, text, re.M)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(run, command):
    text = good(run("help", command))
    assert text.startswith("usage: %s %s" % (NAME, command))
    assert good(run(command, "-h")) == text
    assert good(run(command, "--help")) == text


@pytest.mark.parametrize("args", [
    ["tools", "get_server_info", "-h"],
    ["tools", "--json", "-h"],
    ["call", "get_server_info", "-h"],
    ["call", "get_server_info", "a=1", "--help"],
    ["call", "--json", "-h"],
    ["help", "call", "-h"],
])
def test_help_everywhere(run, args):
    assert good(run(*args)).startswith("usage: %s %s" % (NAME, args[0]))


def test_help_wrong_usage(run):
    wrong_usage(run("help", "tools", "call"), "help")
    unknown = run("help", "no-such-command")
    wrong_usage(unknown, "help")
    assert "no-such-command" in unknown.stderr


@pytest.mark.parametrize("word", ["version", "-V", "--version"])
def test_version(run, word):
    assert re.fullmatch(NAME + r" \d+\.\d+\.\d+\n", good(run(word)))


@pytest.mark.parametrize("args", [
    ["version", "x"], ["version", "--json"], ["serve", "x"],
    ["serve", "--no-such-option"], ["help", "--no-such-option"]])
def test_wrong_usage(run, args):
    wrong_usage(run(*args), args[0])


@pytest.mark.parametrize("word", ["no-such-command", "--json", "", "-",
                                  "get_server_info", "\udcff"])
def test_unknown_command(run, word):
    unknown = run(word)
    wrong_usage(unknown)
    assert "unknown command '%s'" % word in unknown.stderr


# serve

@pytest.mark.parametrize("args", [[], ["serve"]])
def test_serve(run, args):
    ended = run(*args, stdin=None,
                input='{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert good(ended) == '{"jsonrpc":"2.0","id":1,"result":{}}\n'


# tools

def test_tools(run):
    assert re.search(r"^get_server_info +\S", good(run("tools")), re.M)


def test_tools_name(run):
    text = good(run("tools", "get_server_info"))
    assert text.startswith("get_server_info: ")
    assert "\narguments:\n  none\n" in text
    assert re.search(r"^result:\n  version: ", text, re.M)


def listed(start, **env):
    """tools/list of a server."""
    server = start(env=env)
    server.initialize()
    return server.ask(1, "tools/list")["result"]["tools"]


def test_tools_json_is_what_clients_see(run, start):
    tools = json.loads(good(run("tools", "--json")))
    assert tools == listed(start, REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS="1",
                           REMOTE_SANDBOX_TOOLSET="all")
    # Without them, some tools and some of their arguments are missing.
    every = {tool["name"]: tool for tool in tools}
    for tool in listed(start):
        more = every[tool["name"]]["inputSchema"]["properties"]
        few = tool["inputSchema"]["properties"]
        assert few.items() <= more.items(), tool["name"]


def test_every_tool_is_what_clients_can_take(run):
    for tool in json.loads(good(run("tools", "--json"))):
        assert re.fullmatch("[a-z][a-z0-9_]{0,39}", tool["name"])
        assert tool["title"] and tool["description"]
        assert tool["annotations"].keys() == {
            "readOnlyHint", "destructiveHint", "idempotentHint",
            "openWorldHint"}
        for schema in filter(None, [tool["inputSchema"],
                                    tool.get("outputSchema")]):
            assert schema["type"] == "object"
            # Some clients drop a tool that has one of these at the root.
            assert not schema.keys() & {"oneOf", "anyOf", "allOf"}


def test_list_is_short(start):
    """It stands in the context of every conversation."""
    server = start()
    server.initialize()
    server.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
    assert len(server.line()) <= 24 * 1024


def test_tools_json_of_one(run):
    [tool] = [t for t in json.loads(good(run("tools", "--json")))
              if t["name"] == "get_server_info"]
    assert json.loads(good(run("tools", "--json", "get_server_info"))) == tool


def test_tools_name_before_the_option(run):
    assert run("tools", "get_server_info", "--json").stdout == \
        good(run("tools", "--json", "get_server_info"))


@pytest.mark.skipif(not shutil.which("mandoc"), reason="there is no mandoc")
def test_tools_mdoc(run):
    page = good(run("tools", "--mdoc"))
    lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning"], input=page,
                          text=True, capture_output=True, timeout=PATIENCE_S)
    assert (lint.returncode, lint.stdout + lint.stderr) == (0, "")
    shown = subprocess.run(["mandoc", "-Tascii"], input=page, text=True,
                           capture_output=True, timeout=PATIENCE_S).stdout
    shown = re.sub(".\b", "", shown)
    for tool in json.loads(good(run("tools", "--json"))):
        assert re.search(r"^ *%s$" % tool["name"], shown, re.M)


def test_tools_wrong_usage(run):
    wrong_usage(run("tools", "get_server_info", "another"), "tools")
    wrong_usage(run("tools", "--no-such-option"), "tools")
    wrong_usage(run("tools", "-x"), "tools")
    unknown = run("tools", "no_such_tool")
    assert (unknown.returncode, unknown.stdout) == (USAGE, "")
    assert "no_such_tool" in unknown.stderr


# call

def version_of(run):
    return good(run("version")).split()[1]


@pytest.mark.parametrize("args", [
    [],
    ["--args", "{}"],
    ["--args={}"],
])
def test_call(run, args):
    as_text = good(run("call", "get_server_info", *args))
    assert as_text.startswith("version: %s\n" % version_of(run))
    assert re.search(r"^ssh:\n  found: (true|false)$", as_text, re.M)
    as_json = json.loads(good(run("call", "get_server_info", *args, "--json")))
    assert as_json["version"] == version_of(run)


def test_call_options_first(run):
    ended = run("call", "--json", "--args", "{}", "get_server_info")
    assert json.loads(good(ended))["version"] == version_of(run)


@pytest.mark.parametrize("args, refusal", [
    (["status=a=b"], "no status 'a=b'"),
    (["status=a", "status=b"], 'not ["a","b"]'),
    (["status=a", "status=b", "status=c"], 'not ["a","b","c"]'),
    (["--args", '{"status":{"of":1}}'], 'not {"of":1}'),
    (["--args", '{"status":1}', "status=a"], "no status 'a'"),
    (["status=a", "--args", '{"status":1}'], "no status 'a'"),
    (["status=a", "--args", '{"status":1}', "status=b"], 'not ["a","b"]'),
])
def test_call_hands_arguments_over(run, args, refusal):
    """However they are given, they arrive, at a tool that refuses them."""
    ended = run("call", "list_background_watches", *args)
    assert (ended.returncode, ended.stdout) == (FAILED, "")
    assert refusal in ended.stderr


@pytest.mark.parametrize("tool, args, complaint", [
    ("exec_bash", ["cmd=ls"],
     "exec_bash has no argument 'cmd'; it takes command, cwd, "),
    ("exec_bash", ["command=ls", "timeout=3"],
     "exec_bash has no argument 'timeout'; did you mean 'timeout_s'?"),
    ("exec_bash", ["command=ls", "=="], "not of the form key=value"),
    ("exec_bash", ["--args", '{"command":"ls","foo":null}'],
     "exec_bash has no argument 'foo'; it takes command, cwd, "),
    ("get_server_info", ["foo=1", "bar=1"],
     "get_server_info has no argument 'foo'; it takes none"),
    ("exec_bash", ["watch=true"], "exec_bash has no argument 'watch'; "),
])
def test_call_with_an_argument_that_is_none(run, tool, args, complaint):
    ended = run("call", tool, *args)
    assert (ended.returncode, ended.stdout) == (USAGE, "")
    assert complaint in ended.stderr


def test_call_takes_what_the_tool_has_settled(run):
    """A call that an agent made can be repeated by hand."""
    ended = run("call", "exec_bash_background_watch", "command=ls",
                "watch=true")
    assert ended.returncode == FAILED
    assert "no sandboxes are configured" in ended.stdout + ended.stderr


def test_call_gives_what_an_agent_gets(run, start):
    """The same result, but for the process that gave it."""
    env = {"PATH": "/nonexistent"}
    server = start(env=env)
    server.initialize()
    agents = server.ask(1, "tools/call", {"name": "get_server_info"})
    agents = agents["result"]["structuredContent"]
    ours = json.loads(good(run("call", "get_server_info", "--json", env=env)))
    assert ours["ssh"]["found"] is False
    assert {**ours, "pid": 0} == {**agents, "pid": 0}


@pytest.mark.parametrize("args, complaint", [
    (["pair"], "'pair' is not of the form key=value"),
    (["=value"], "'=value' is not of the form key=value"),
    (["a=1", ""], "'' is not of the form key=value"),
    (["a=\udcff"], "not UTF-8"),
    (["\udcff=1"], "not UTF-8"),
    (["--args", "["], "--args: not valid JSON"),
    (["--args", ""], "--args: not valid JSON"),
    (["--args", '{"a":1,"a":2}'], "--args: not valid JSON"),
    (["--args", '{"a":"\udcff"}'], "--args: not valid JSON"),
    (["--args", "[]"], "--args: must be a JSON object"),
    (["--args", "{} {}"], "--args: not valid JSON"),
    (["--args"], "args"),
    (["--no-such-option"], "no-such-option"),
    (["-x"], "x"),
])
def test_call_wrong_usage(run, args, complaint):
    ended = run("call", "get_server_info", *args)
    assert complaint in ended.stderr
    wrong_usage(ended, "call")


def test_call_without_a_tool(run):
    wrong_usage(run("call"), "call")
    wrong_usage(run("call", "--json"), "call")


@pytest.mark.parametrize("name, hint", [
    ("get_server_inf", "did you mean 'get_server_info'?"),
    ("get_weather_report", "'%s tools' lists them" % NAME),
    ("", "'%s tools' lists them" % NAME),
])
def test_call_of_an_unknown_tool(run, name, hint):
    ended = run("call", name, "a=1")
    assert (ended.returncode, ended.stdout) == (USAGE, "")
    assert "no tool '%s'" % name in ended.stderr
    assert hint in ended.stderr


@needs_proc
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("as_json", [False, True])
def test_call_that_is_given_up(start, slow_ssh, how, as_json):
    """Ctrl-C: the tool fails and says why, and nothing is left behind."""
    options = ["--json"] if as_json else []
    program = start("call", "get_server_info", *options, env=slow_ssh.env,
                    record=False)
    ssh = slow_ssh.started()
    program.signal(signal.Signals[how])
    program.ends(END_S, FAILED)
    until("ssh is gone", lambda: gone(ssh))
    lines = []
    while line := program.line():
        lines.append(line)
    if as_json:
        assert "cancelled" in json.loads(b"".join(lines))["error"]
    else:
        assert lines == []
        program.stderr_has("^error: .*cancelled")


# Output that goes nowhere.

PRINTING = [["help"], ["version"], ["tools"], ["tools", "get_server_info"],
            ["tools", "--json"], ["tools", "--mdoc"],
            ["call", "get_server_info"],
            ["call", "get_server_info", "--json"], ["call", "-h"]]


def test_who_reads_no_more_has_enough(run):
    """As in "tools | head"."""
    reader, writer = os.pipe()
    os.close(reader)
    ended = run("tools", "--mdoc", stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (FAILED, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"),
                    reason="there is no /dev/full")
@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_full_disk(run, args):
    """A script must not take half an answer for a whole one."""
    with open("/dev/full", "w") as full:
        ended = run(*args, stdout=full)
    assert ended.returncode == FAILED
    assert "cannot write to standard output" in ended.stderr


@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_reader_that_is_gone(run, args):
    """No death by SIGPIPE; what could not be printed is a failure."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        ended = run(*args, stdout=pipe)
    assert ended.returncode == FAILED


@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_closed_stdout(run, args):
    """Whoever closes stdout does not want to see anything."""
    ended = run(*args, stdout=None, preexec_fn=lambda: os.close(1))
    assert (ended.returncode, ended.stderr) == (OK, "")
