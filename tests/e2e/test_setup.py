"""setup: a sandbox into the configuration, and the server into clients."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

import npm_clients
import rsmcp
import sshd as ssh_servers

SERVER = os.path.abspath(rsmcp.SERVER or "x")
NAME = "remote-sandbox"

# What each client has before, and where: as users write it.
BEFORE = {
    "claude-code": (".claude.json", '{"numStartups": 3, "oauth": '
                    '{"token": "hush"}, "mcpServers": {"x": '
                    '{"command": "y"}}}'),
    "codex": (".codex/config.toml",
              '# mine\nmodel = "m"  # the best\n\n[mcp_servers.x]\n'
              'command = "y"\nenv = { API_KEY = "hush" }\n'),
    "gemini": (".gemini/settings.json",
               '{\n  // mine\n  "theme": "dark",\n  "mcpServers": {\n'
               '    "x": { "command": "y" } // the other\n  }\n}\n'),
    "vscode": (".config/Code/User/mcp.json",
               '{\n\t"servers": {\n\t\t"x": {\n\t\t\t"type": "stdio",\n'
               '\t\t\t"command": "y" /* z */\n\t\t}, // the other\n\t},\n'
               '\t"inputs": [],\n}\n'),
    "cursor": (".cursor/mcp.json",
               '{\r\n    "mcpServers": {\r\n        "x": {\r\n'
               '            "command": "y"\r\n        }\r\n    }\r\n}\r\n'),
}
SECTION = {"vscode": "servers"}
CLIENTS = sorted(BEFORE)


@pytest.fixture
def setup(home):
    """Runs it; no client's program is in PATH."""
    place = home.path / "bin"
    place.mkdir()
    for name in ("ssh", "ssh-keygen", "sh"):
        (place / name).symlink_to(shutil.which(name))
    home.more["PATH"] = str(place)

    def run(*args, status=0):
        done = home.command("setup", *args)
        assert done.returncode == status, done
        return done

    return run


def write(home, client):
    """What the client has before; its path."""
    name, text = BEFORE[client]
    path = home.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def text_of(path):
    return path.read_bytes().decode()


def backups(path):
    return sorted(path.parent.glob(path.name + ".backup-*"))


def registered(client, path):
    """The entry of the server, as the client would read it."""
    text = text_of(path)
    if client == "codex":
        tomllib = pytest.importorskip("tomllib")
        return tomllib.loads(text).get("mcp_servers", {}).get(NAME)
    plain = "\n".join(line.partition("//")[0]
                      for line in text.replace("/* z */", "").split("\n"))
    plain = re.sub(r",(\s*[}\]])", r"\1", plain)
    return json.loads(plain).get(SECTION.get(client, "mcpServers"),
                             {}).get(NAME)


# --- clients ---------------------------------------------------------------

@pytest.mark.parametrize("client", CLIENTS)
def test_register_and_remove(home, setup, client):
    path = write(home, client)
    before = text_of(path)
    path.chmod(0o640)
    setup("--client", client)
    entry = registered(client, path)
    assert entry["command"] == SERVER and not entry.get("args")
    assert entry.get("type", "stdio") == "stdio"
    # Everything that was there is there, in its order.
    left = iter(text_of(path))
    assert all(c in left for c in before)
    [backup] = backups(path)
    assert text_of(backup) == before
    assert path.stat().st_mode & 0o777 == 0o640
    # Again: nothing to do.
    after = text_of(path)
    assert "is as it should be" in setup("--client", client).stdout
    assert text_of(path) == after and len(backups(path)) == 1
    setup("--remove", "--client", client)
    assert text_of(path) == before


@pytest.mark.parametrize("client", CLIENTS)
def test_dry_run_shows_a_diff_that_can_be_applied(home, setup, client):
    path = write(home, client)
    before = text_of(path)
    diff = setup("--client", client, "--dry-run").stdout
    assert text_of(path) == before and not backups(path)
    assert diff.startswith("--- %s\n+++ %s\n@@ " % (path, path))
    assert "hush" not in diff
    setup("--client", client)
    after = text_of(path)
    if "hush" in before or "\r" in before or not shutil.which("patch"):
        return
    path.write_bytes(before.encode())
    ssh_servers.run("patch", "--binary", path, input=home.said[0])
    assert text_of(path) == after


def test_a_file_that_is_not_there_yet(home, setup):
    for name in (".codex", ".cursor"):
        (home.home / name).mkdir()
    out = setup("--client", "all").stdout
    assert "Codex" in out and "Cursor" in out and "Gemini" not in out
    for client in ("codex", "cursor"):
        path = home.home / BEFORE[client][0]
        assert registered(client, path)["command"] == SERVER
        assert path.stat().st_mode & 0o777 == 0o600
        assert not backups(path)
    assert not (home.home / ".gemini").exists()


def test_no_client_at_all(home, setup):
    for option in ("--client", "all"), ("--remove",):
        assert "No client was found on this machine; --client registers " \
            "with one all the same: claude-code, codex, gemini, vscode, " \
            "cursor.\n" in setup(*option).stdout
    assert "No client" not in setup("--client", "none").stdout
    assert "No client" not in setup("--client", "cursor").stdout
    assert "No client" not in setup("--client", "all").stdout


def test_an_agent_that_a_client_would_keep_from_us_is_passed_on(home, setup):
    """By its name: its path is another one tomorrow."""
    home.more["SSH_AUTH_SOCK"] = "/tmp/ssh-x/agent.7"
    paths = {client: write(home, client) for client in CLIENTS}
    setup("--client", "codex", "--client", "gemini", "--client", "cursor")
    assert registered("codex", paths["codex"])["env_vars"] == [
        "SSH_AUTH_SOCK"]
    assert registered("gemini", paths["gemini"])["env"] == {
        "SSH_AUTH_SOCK": "$SSH_AUTH_SOCK"}
    assert "env" not in registered("cursor", paths["cursor"])
    # What the user made of it stays.
    text = text_of(paths["codex"]).replace('"SSH_AUTH_SOCK"', "")
    paths["codex"].write_text(text)
    setup("--client", "codex")
    assert text_of(paths["codex"]) == text


def test_an_entry_of_the_user_keeps_what_else_it_has(home, setup):
    path = write(home, "cursor")
    path.write_text(json.dumps({"mcpServers": {NAME: {
        "command": "/old", "args": ["serve", "--config", "/gone"],
        "env": {"REMOTE_HOST": "gpu"}}}}))
    setup("--client", "cursor")
    assert registered("cursor", path) == {
        "command": SERVER, "args": [], "env": {"REMOTE_HOST": "gpu"}}


def test_a_configuration_at_another_place_is_named(home, setup):
    path = write(home, "codex")
    setup("--client", "codex", "--config", "mine.json", "--server-name", "b",
          "--command", "/opt/x")
    assert text_of(path).endswith(
        '[mcp_servers.b]\ncommand = "/opt/x"\nargs = ["serve", "--config", '
        '"%s/mine.json"]\n' % home.home)
    home.more["XDG_CONFIG_HOME"] = str(home.home / "xdg")
    out = setup("--client", "codex", "--dry-run").stdout
    assert "xdg/remote-sandbox-mcp/config.json" in out


def test_a_link_stays_a_link(home, setup):
    path = write(home, "codex")
    real = home.home / "dotfiles.toml"
    path.rename(real)
    path.symlink_to(real)
    setup("--client", "codex")
    assert path.is_symlink() and registered("codex", real)


@pytest.mark.parametrize("client, text, words", [
    ("cursor", '{"mcpServers": ', "not valid JSON"),
    ("cursor", '{"mcpServers": [1]}', "is not an object"),
    ("codex", "[mcp_servers\n", "not valid TOML"),
    ("codex", "mcp_servers = { x = {} }\n", "edit it by hand"),
])
def test_what_is_not_understood_is_left_alone(home, setup, client, text,
                                              words):
    path = write(home, client)
    path.write_text(text)
    gemini = write(home, "gemini")
    done = setup("--client", client, "--client", "gemini", status=1)
    assert words in done.stderr and str(path) in done.stderr
    assert text_of(path) == text and not backups(path)
    # The others do not suffer.
    assert registered("gemini", gemini)
    assert "1 of 2 clients" in done.stderr


def test_claude_code_is_told_by_its_own_command(home, setup):
    """A stand-in that notes what it is asked for."""
    program = home.path / "bin/claude"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$*" >>"$HOME/asked"\n'
                       'exit ${CLAUDE_STATUS-0}\n')
    program.chmod(0o755)
    asked = home.home / "asked"
    path = write(home, "claude-code")
    before = text_of(path)
    line = "mcp add --scope user %s -- %s" % (NAME, SERVER)
    assert "would run: claude " + line in setup(
        "--client", "claude-code", "--dry-run").stdout
    assert not asked.exists()
    setup("--client", "claude-code")
    assert asked.read_text() == line + "\n"
    assert text_of(path) == before and not backups(path)
    # It knows the server: nothing to do, or to be renewed in its file.
    path.write_text(json.dumps({"mcpServers": {NAME: {
        "type": "stdio", "command": SERVER, "args": [], "env": {}}}}))
    assert "as it should be" in setup("--client", "claude-code").stdout
    setup("--remove", "--client", "claude-code")
    assert asked.read_text() == line + "\nmcp remove --scope user %s\n" % NAME
    home.more["CLAUDE_STATUS"] = "3"
    done = setup("--remove", "--client", "claude-code", status=1)
    assert "'claude mcp remove' ended with status 3" in done.stderr


# --- sandboxes -------------------------------------------------------------

def config_of(home):
    return home.home / ".config/remote-sandbox-mcp/config.json"


def test_add_a_sandbox_and_use_it(home, sshd, setup):
    host = "%s@127.0.0.1:%d" % (sshd.user, sshd.port)
    out = setup("--host", host, "--key-file", str(sshd.key), "--name", "box",
                "--workdir", "/tmp").stdout
    assert "box answers and runs commands." in out
    assert ssh_servers.fingerprint(sshd.host_keys["ed25519"]) in out
    path = config_of(home)
    assert json.loads(path.read_text()) == [
        {"name": "box", "host": "127.0.0.1", "user": sshd.user,
         "port": sshd.port, "key_file": str(sshd.key), "workdir": "/tmp"}]
    assert path.stat().st_mode & 0o777 == 0o600
    result = home.call("exec_bash", command="pwd", sandbox_name="box")
    assert result["stdout"] == "/tmp\n"
    # The same again changes nothing; another of this name is refused.
    again = setup("--host", host, "--key-file", str(sshd.key), "--name",
                  "box", "--workdir", "/tmp")
    assert "is as it should be" in again.stdout
    other = setup("--host", host, "--key-file", str(sshd.key), "--name",
                  "box", status=1)
    assert "has a sandbox 'box' already" in other.stderr
    setup("--host", "other", "--no-test")
    assert [entry["host"] for entry in json.loads(path.read_text())] == [
        "127.0.0.1", "other"]
    setup("--remove", "--sandbox", "box")
    assert json.loads(path.read_text()) == [{"host": "other"}]
    assert "has no sandbox 'box'" in setup(
        "--remove", "--sandbox", "box", status=1).stderr


def test_a_workdir_that_is_not_there(home, sshd, setup):
    """Every command would fail for want of it."""
    host = ["--host", "%s@127.0.0.1:%d" % (sshd.user, sshd.port),
            "--key-file", str(sshd.key), "--name", "box"]
    out = setup(*host, "--workdir", "~/my work/a").stdout
    assert "box answers and runs commands." in out
    assert "Its workdir ~/my work/a does not exist there" in out
    error = home.call("exec_bash", command="true")["error"]
    assert "mkdir -p, in exec_bash with cwd '~'" in error and '"workdir" of its' in error
    assert "or give another cwd" in home.call(
        "exec_bash", command="true", cwd="/gone")["error"]
    assert not (sshd.home / "my work").exists()
    [line] = [line for line in out.splitlines() if "mkdir -p" in line]
    ssh_servers.run("sh", "-c", line.replace(
        "remote-sandbox-mcp", SERVER, 1), env=rsmcp.environment(
            home.home, **home.env()))
    assert home.call("exec_bash", command="pwd")["stdout"].endswith(
        "/my work/a\n")
    again = setup(*host, "--workdir", "~/my work/a").stdout
    assert "Its workdir" not in again


def test_a_workdir_can_be_made(home, sshd, setup):
    def terminal(name, *args):
        return Terminal(home, "--client", "none", "--host",
                        "%s@127.0.0.1:%d" % (sshd.user, sshd.port),
                        "--key-file", str(sshd.key), "--name", name, *args)

    asked = terminal("box", "--workdir", "~/w")
    asked.answers("Make it? [Y/n] ", "")
    asked.answers("Make this change? [Y/n] ", "")
    assert "~/w was made." in asked.said and "mkdir" not in asked.said
    assert asked.ends() == 0, asked.said
    assert (sshd.home / "w").is_dir()
    asked = terminal("other", "--workdir", "/proc/x")
    asked.answers("Make it? [Y/n] ", "")
    asked.answers("Make this change? [Y/n] ", "")
    assert "/proc/x could not be made." in asked.said
    assert "mkdir -p /proc/x'" in asked.said
    assert asked.ends() == 0, asked.said


def test_a_key_file_is_found_from_everywhere(home, sshd, setup):
    shutil.copy(sshd.key, home.home / "id")
    host = "%s@127.0.0.1:%d" % (sshd.user, sshd.port)
    setup("--host", host, "--name", "here", "--key-file", "id")
    setup("--host", host, "--name", "home", "--key-file", "~/id")
    assert [entry["key_file"] for entry in json.loads(
        config_of(home).read_text())] == [str(home.home / "id"), "~/id"]


def test_what_was_corrected_is_tried_at_once(home, sshd, setup, new_account):
    """The same command finds another word."""
    account = new_account(password="open sesame")
    word = home.home / "word"
    args = ["--host", "127.0.0.1:%d" % sshd.port, "--user", account.name,
            "--password-command", "read l <word; echo \"$l\""]
    for _ in range(2):
        word.write_text("close\n")
        error = setup(*args, status=1).stderr
        assert "refused the login" in error
        assert "not tried again" not in error
    word.write_text("open sesame\n")
    setup(*args)


def test_a_file_that_cannot_be_changed_is_said_first(home, sshd, setup):
    path = config_of(home)
    path.parent.mkdir(parents=True)
    args = ["--host", "127.0.0.1:%d" % sshd.port, "--key-file",
            str(sshd.key), "--name", "box"]
    for text, words in (("[{", "not valid JSON"),
                        ('[{"host": "x", "name": "box"}]', "already")):
        path.write_text(text)
        done = setup(*args, status=1)
        assert words in done.stderr and str(path) in done.stderr
        assert "Logging in" not in done.stdout
    assert sshd.connections_ever() == 0
    # Nor is anything asked in vain.
    path.write_text("[{")
    terminal = Terminal(home)
    assert terminal.ends() == 1
    assert "not valid JSON" in terminal.said
    assert "Which machine" not in terminal.said


def test_a_place_where_nothing_can_be_made_is_said_first(home, account):
    program = shutil.copy(rsmcp.SERVER, account.home / "program")
    done = subprocess.run(
        [program, "setup", "--host", "127.0.0.1:1", "--config",
         "/etc/no/such/file"], cwd="/", env=rsmcp.environment(account.home),
        user=account.name, group=account.name, extra_groups=[],
        stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1, done
    assert "cannot write /etc/no/such/file" in done.stderr
    assert "Permission denied" in done.stderr
    assert "Logging in" not in done.stdout


def test_one_that_does_not_answer_is_not_added(home, setup):
    host = "127.0.0.1:%d" % ssh_servers.free_port()
    done = setup("--host", host, status=1)
    assert "Connection refused" in done.stderr
    assert "--no-test" in done.stderr
    assert not config_of(home).exists()
    setup("--host", host, "--no-test", "--dry-run")
    assert not config_of(home).exists()
    setup("--host", host, "--no-test")
    assert config_of(home).exists()


@pytest.mark.parametrize("before, after", [
    ('{"watchdog": 1, "sandboxes": [{"host": "a"}]}',
     '{"watchdog": 1, "sandboxes": [{"host": "a"}, {"host": "b"}]}'),
    ('{"watchdog": 1}', '{"watchdog": 1, "sandboxes": [{"host": "b"}]}'),
    ('[\n    {"host": "a"}\n]\n',
     '[\n    {"host": "a"},\n    {\n        "host": "b"\n    }\n]\n'),
    (" \n", ' \n[\n  {\n    "host": "b"\n  }\n]\n'),
])
def test_a_configuration_that_is_there_keeps_its_form(home, setup, before,
                                                      after):
    path = config_of(home)
    path.parent.mkdir(parents=True)
    path.write_text(before)
    setup("--host", "b", "--no-test")
    assert path.read_text() == after


@pytest.mark.parametrize("args, words", [
    (["--host", "a b"], "white space"),
    (["--host", "u@"], "[user@]host[:port]"),
    (["--host", "h:0"], "1 to 65535"),
    (["--host", "h", "--port", "x"], "1 to 65535"),
])
def test_a_host_that_is_none(home, setup, args, words):
    assert words in setup(*args, "--no-test", status=1).stderr
    assert not config_of(home).exists()


def test_addresses_of_ipv6(home, setup):
    setup("--host", "ann@[::1]:2222", "--name", "six", "--no-test")
    setup("--host", "fe80::1", "--no-test")
    assert json.loads(config_of(home).read_text()) == [
        {"name": "six", "host": "::1", "user": "ann", "port": 2222},
        {"host": "fe80::1"}]


@pytest.mark.parametrize("args, words", [
    ([], "nobody to ask"),
    (["--client", "emacs"], "no client 'emacs'; there are claude-code,"),
    (["--name", "x", "--client", "none"], "name its --host"),
    (["--remove", "--host", "h"], "--sandbox NAME"),
    (["--sandbox", "h"], "goes with --remove"),
    (["--client", "none", "--command", "x"], "whole path"),
    (["gpu1"], "options only"),
])
def test_wrong_usage(setup, args, words):
    assert words in setup(*args, status=2).stderr


def test_password_by_a_command(home, sshd, setup, new_account):
    account = new_account(password="open sesame")
    setup("--host", "127.0.0.1:%d" % sshd.port, "--user", account.name,
          "--name", "p", "--password-command", "echo open sesame")
    assert home.call("exec_bash", command="id -un")["stdout"] \
        == account.name + "\n"


# --- with somebody who answers ---------------------------------------------

class Terminal:
    """setup, in a terminal."""

    def __init__(self, home, *args):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home.home)
            os.execve(SERVER, [SERVER, "setup", *args],
                      rsmcp.environment(home.home, **home.env()))
        self.said = ""

    def answers(self, prompt, line, end="\n"):
        """Wait for the prompt at the end of what it said, and answer."""
        limit = time.monotonic() + 2 * rsmcp.PATIENCE_S
        while not self.said.endswith(prompt):
            assert time.monotonic() < limit, self.said
            if select.select([self.fd], [], [], 1)[0]:
                self.said += os.read(self.fd, 4096).decode()
        os.write(self.fd, (line + end).encode())
        self.said += "\0"

    def ends(self):
        """Its status."""
        try:
            while data := os.read(self.fd, 4096):
                self.said += data.decode()
        except OSError:
            pass    # so a terminal ends
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_it_asks(home, sshd, setup):
    (home.home / ".ssh/config").write_text(
        "Include extra\nHost *.example gw\n  User x\nHost box\n"
        "  HostName 127.0.0.1\n  Port %d\n  User %s\n  IdentityFile %s\n"
        % (sshd.port, sshd.user, sshd.key))
    (home.home / ".ssh/extra").write_text("host first # one\n")
    path = write(home, "codex")
    terminal = Terminal(home)
    terminal.answers("(empty: none): ", "2")
    for line in ("   1  gw\r", "   2  box\r", "   3  first\r"):
        assert line in terminal.said
    terminal.answers("name here [box]: ", "big")
    terminal.answers("Make this change? [Y/n] ", "")
    assert "big answers and runs commands." in terminal.said
    terminal.answers("Register with Codex? [Y/n] ", "")
    terminal.answers("Make this change? [Y/n] ", "n")
    assert "+[mcp_servers.%s]" % NAME in terminal.said
    assert terminal.ends() == 0, terminal.said
    assert "Codex: nothing was changed." in terminal.said
    assert json.loads(config_of(home).read_text()) == [
        {"host": "box", "name": "big"}]
    assert registered("codex", path) is None
    assert home.call("exec_bash", command="echo $((6 * 7))")["stdout"] \
        == "42\n"


def test_it_asks_again_if_a_machine_does_not_answer(home, setup):
    terminal = Terminal(home)
    terminal.answers("(empty: none): ",
                     "127.0.0.1:%d" % ssh_servers.free_port())
    terminal.answers("name here [127.0.0.1]: ", "")
    terminal.answers("Keep it nevertheless? [y/N] ", "")
    assert "Connection refused" in terminal.said
    assert terminal.ends() == 1, terminal.said
    assert not config_of(home).exists()


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_nobody_agrees_by_leaving(home, setup, key):
    """^C ends it, ^D is an answer to nothing."""
    path = write(home, "codex")
    terminal = Terminal(home, "--client", "codex")
    terminal.answers("Make this change? [Y/n] ", key, end="")
    assert terminal.ends() == (1 if key == "\x03" else 0), terminal.said
    assert text_of(path) == BEFORE["codex"][1]


def test_yes_asks_nothing(home, setup):
    path = write(home, "codex")
    terminal = Terminal(home, "--yes", "--client", "codex")
    assert terminal.ends() == 0, terminal.said
    assert registered("codex", path)


# --- the clients themselves, where they are installed ----------------------

@pytest.mark.long
@pytest.mark.parametrize("client, program, list_command", [
    ("claude-code", "claude", ["mcp", "get", NAME]),
    ("codex", "codex", ["mcp", "list"]),
    ("gemini", "gemini", ["mcp", "list"]),
])
def test_the_client_reads_it(home, client, program, list_command):
    npm_clients.needs(program)
    npm_clients.trust(home.home)
    # With an agent, which some are told to pass on.
    path = {"PATH": npm_clients.path(), "SSH_AUTH_SOCK": "/nowhere"}
    if client != "claude-code":
        write(home, client)

    def says(*command):
        done = subprocess.run(
            [shutil.which(program, path=path["PATH"]), *command],
            cwd=home.home, stdin=subprocess.DEVNULL, text=True,
            env=rsmcp.environment(home.home, **home.env(**path)),
            capture_output=True, timeout=5 * rsmcp.PATIENCE_S)
        return done.stdout + done.stderr

    done = home.command("setup", "--client", client, env=path,
                        timeout=5 * rsmcp.PATIENCE_S)
    assert done.returncode == 0, done
    said = says(*list_command)
    assert NAME in said and SERVER in said, said
    assert program == "codex" or "Connected" in said, said
    done = home.command("setup", "--remove", "--client", client, env=path)
    assert done.returncode == 0, done
    assert SERVER not in says("mcp", "list")
