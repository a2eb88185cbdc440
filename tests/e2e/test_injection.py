"""No argument of a tool runs as a command, or becomes a path, unless that is
what it is for.

The cases come from tools/list, so a new tool or argument is covered by itself:
every string, every item of a list, every name and value of an object.  Each
case has a program of its own, a canary, that is on the PATH of both sides and
writes down that it was run.  The watchdog then looks at all watches that were
made, for what is stored is used later.
"""

import contextlib
import itertools
import json
import os
import pathlib
import sqlite3

import pytest

import agent as agents
import rsmcp
from watched import Watchdog

# Whose text is a command, or the environment of one, on the sandbox.
COMMANDS = {
    "command": "what the tool is for",
    "resume_command": "run when the job is lost",
    "checkpoint_command": "prints the checkpoint",
    "env": "variables such as BASH_ENV are read by the command's own shell; "
           "their names are tested",
}
# Whose text is a path of the sandbox: any place is right.
FAR_PATHS = {"remote_path", "cwd", "log_file", "checkpoint_path"}

# Breaks out of single quotes, of double quotes and of none.
BREAKER = "';{c};'\";{c};\"$({c})`{c}`"
QUICK = [BREAKER, "\n{c}\n\x1b]0;\x07\r{c}\r\x04", "../../{c}"]
ALL = QUICK + [
    "-oProxyCommand={c}", "x\0;{c}",
    "`{c}`", "; {c} #", "&& {c}", "|| {c}", "| {c}", "& {c} &",
    "\\'; {c}; \\'", "<({c})", "#({c})", "!{c}", "a/$({c})/b",
    "\nEOF\n{c}\n", "\r\n{c}\r\n", "\x03{c}\n", "\u2028{c}\x7f", "{c}\\",
    "--checkpoint-action=exec={c}", "-exec {c} ;", "-e{c}", "--rsh={c}",
    "-I{c}", "/../../{c}", "..\\{c}",
]
AT_ONCE = 32


class Place:
    """Both sides, with canaries, and the arguments that are as they should
    be."""

    def __init__(self, home, new_sshd, tmp_path):
        self.home, self.tmp = home, tmp_path
        self.bin = tmp_path / "bin"
        self.ran = tmp_path / "ran"
        self.local = tmp_path / "local"
        self.far = tmp_path / "far"
        self.names = itertools.count()
        self.known = {}         # canary: what it was in
        for path in (self.bin, self.local / "tree", self.far):
            path.mkdir(parents=True)
        (self.local / "tree" / "a").write_text("a")
        (self.local / "rules").write_text("*.tmp\n")
        (self.far / "file").write_text("a")
        self.ran.touch()
        program = self.bin / "canary"
        program.write_text('#!/bin/sh\necho "${0##*/}" >>"%s"\n' % self.ran)
        program.chmod(0o755)
        path = "%s:%s" % (self.bin, os.environ["PATH"])
        self.sshd = new_sshd(env={"PATH": path})
        home.more.update(PATH=path, REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS="1",
                         REMOTE_SANDBOX_LOCAL_ROOTS=str(self.local),
                         REMOTE_SANDBOX_ALLOW_PRIVATE_WEBHOOKS="1")
        # Relative paths are to stay out of the login directory.
        self.agent = agents.Agent(
            home, self.sshd.entry(workdir=str(self.far)))
        self.agent.run("true", tool="exec_bash_background",
                       session_name="first", interval_s=1)
        self.usual = {
            "command": "true", "tmux_session": "first",
            "log_file": str(self.far / "log"), "sandbox_name": "box",
            "local_path": str(self.local / "tree"),
            "remote_path": str(self.far / "copy"), "interval_s": 1,
            "resume_command": "true", "watch_id": 1, "task_id": 1,
            "timeout_s": 1, "notify_local": False}
        self.placed = {name: "%s/{p}" % self.far for name in FAR_PATHS}
        self.placed.update(local_path="%s/{p}" % self.local,
                           exclude_file="%s/{p}" % self.local,
                           webhook_url="http://127.0.0.1:1/{p}")

    def canary(self, what):
        name = "zz%dzz" % next(self.names)
        (self.bin / name).symlink_to("canary")
        self.known[name] = what
        return name

    def singing(self):
        """What ran."""
        return [self.known[name] for name in self.ran.read_text().split()]

    def tools(self):
        self.agent.server.send(rsmcp.request(
            "tools", "tools/list", {"_meta": rsmcp.MODERN_META}))
        with self.agent.changed:
            assert self.agent.changed.wait_for(
                lambda: "tools" in self.agent.results, rsmcp.PATIENCE_S)
        return self.agent.results["tools"][1]["result"]["tools"]

    def ordinary(self, tool):
        properties = tool["inputSchema"]["properties"]
        needed = {name: "x" for name in tool["inputSchema"].get("required", ())
                  if properties[name]["type"] == "string"}
        return {**needed, **{name: value for name, value in self.usual.items()
                             if name in properties}}

    def arguments(self, tool, payloads):
        """All arguments of a tool with each payload at each place."""
        for name, schema in tool["inputSchema"]["properties"].items():
            for payload in payloads:
                for make in shapes(name, schema, payload):
                    yield self.one(tool, name, payload, make)
                if name in self.placed and "\0" not in payload:
                    yield self.one(tool, name, payload, self.put(name))

    def one(self, tool, name, payload, make):
        canary = self.canary((tool["name"], name, payload))
        text = payload.format(c=canary)
        return {**self.ordinary(tool), name: make(text)}

    def put(self, name):
        """The payload as the name of something that exists."""
        def make(text):
            whole = self.placed[name].format(p=text)
            if whole.startswith("/") and "../" not in text:
                os.makedirs(whole, exist_ok=True)
            return whole
        return make

    def attack(self, payloads):
        """Make all calls; how many there were."""
        pending, total = [], 0
        for tool in self.tools():
            for arguments in self.arguments(tool, payloads):
                total += 1
                pending.append(self.agent.begin(
                    arguments.pop("command", None), tool["name"],
                    **arguments))
                if len(pending) == AT_ONCE:
                    self.answered(pending)
        self.answered(pending)
        return total

    def answered(self, pending):
        """Each has a reply; whether it worked is not the question here."""
        while pending:
            request = pending.pop(0)
            with self.agent.changed:
                assert self.agent.changed.wait_for(
                    lambda: request in self.agent.results,
                    3 * rsmcp.PATIENCE_S), self.agent.server.stderr()

    def watch_all(self):
        """The watchdog has seen every watch to its end."""
        daemon = Watchdog(self.home).start()
        try:
            rsmcp.until("no watch is active", self.all_watched,
                        12 * rsmcp.PATIENCE_S)
        finally:
            daemon.kill()

    def all_watched(self):
        self.agent.run(None, tool="wait_for_events", timeout_s=1)
        with contextlib.closing(sqlite3.connect(
                self.home.state / "watchdog.sqlite3", timeout=20)) as db:
            [count] = db.execute("SELECT count(*) FROM watches "
                                 "WHERE status = 'active'").fetchone()
        return count == 0

    def strays(self):
        """What was made by way of "../", where only a name was asked for."""
        found = []
        for top in (self.tmp, self.home.path):
            for path in top.rglob("zz*zz*"):
                canary = "zz%szz" % path.name.split("zz")[1]
                tool, name, payload = self.known[canary]
                if "../" in payload and name not in FAR_PATHS \
                        and self.local not in path.parents \
                        and self.bin != path.parent:
                    found.append((tool, name, payload, path))
        return found


def shapes(name, schema, payload):
    """How a text is put into an argument; none if it is no text."""
    kind = schema["type"]
    if kind == "string" and name not in COMMANDS:
        yield lambda text: text
    elif kind == "array" and schema["items"]["type"] == "string":
        yield lambda text: [text]
    elif kind == "object":
        if "\0" not in payload:     # in a name that is no JSON for us
            yield lambda text: {text: "x"}
        if name not in COMMANDS:
            yield lambda text: {"note": text, "run_id": text,
                                "checkpoint_path": text, "cwd": text}
            yield json.dumps


@pytest.fixture
def place(home, new_sshd, tmp_path):
    return Place(home, new_sshd, tmp_path)


def nothing_ran(place, payloads, at_least):
    total = place.attack(payloads)
    print("%d calls" % total)
    assert total >= at_least
    place.watch_all()
    assert place.singing() == []
    assert place.strays() == []
    assert place.agent.good("echo alive") == "alive\n"


def test_no_argument_runs(place):
    nothing_ran(place, QUICK, 300)


@pytest.mark.long
def test_no_argument_runs_in_any_form(place):
    nothing_ran(place, ALL, 3000)


def test_canaries_are_heard(place):
    """A test that nothing ran is worth something only if this works."""
    canary = place.canary("far")
    place.agent.good(canary)
    assert place.singing() == ["far"]
    names = {name for tool in place.tools()
             for name in tool["inputSchema"]["properties"]}
    assert COMMANDS.keys() <= names and FAR_PATHS <= names
    for quote in ("%s", "'%s'", '"%s"'):
        text = quote % BREAKER.format(c=place.canary(quote))
        place.agent.run("echo " + text)
        assert place.singing()[-1] == quote, text


def test_names_of_files_are_no_commands(place):
    """Neither in a tree that goes up, nor in one that comes down."""
    names = set()
    for payload in ALL:
        name = payload.format(c=place.canary(payload))
        if "/" not in name and "\0" not in name:
            names.add(name)
            (place.local / "tree" / name).write_text("x")
    far, back = place.far / "up", place.local / "back"
    run = place.agent.run
    for call in (
            {"tool": "sync_local_to_remote", "remote_path": str(far),
             "local_path": str(place.local / "tree")},
            {"tool": "list_remote_files", "remote_path": str(far)},
            {"tool": "sync_remote_to_local", "remote_path": str(far),
             "local_path": str(back)}):
        assert not run(None, **call).failed
    assert names < {path.name for path in far.iterdir()}
    assert names < {path.name for path in pathlib.Path(back).iterdir()}
    assert place.singing() == []
