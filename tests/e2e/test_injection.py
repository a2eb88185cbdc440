"""No argument of a tool runs as a command, or becomes a path, unless that is
what it is for.

The cases come from tools/list, so a new tool or argument is covered by itself:
every value at any depth, whatever its type, every name in an object that takes
any, and the same as JSON in a string.  Tools that take a sandbox are called for
an ordinary one and for a cluster, with a Slurm
that writes down what it is told (fake_slurm.py).  Each case has a program of its own, a canary, that is on the
PATH of both sides and writes down that it was run.  The watchdog then looks at
all watches that were made, for what is stored is used later.
"""

import contextlib
import itertools
import json
import os
import pathlib
import sqlite3

import pytest

import agent as agents
import fake_slurm
import rsmcp
from watched import Watchdog, lose

# Whose text is a command on the sandbox.
COMMANDS = {
    ".command": "what the tool is for",
    ".resume_command": "run when the job is lost",
    ".checkpoint_command": "prints the checkpoint",
}
# Whose text is a path of the sandbox: any place is right.
FAR_PATHS = {".remote_path", ".cwd", ".log_file", ".checkpoint_path",
             ".file_path"}
# What the watchdog takes from an object that may hold anything.
KNOWN_NAMES = ("note", "run_id", "checkpoint_path", "cwd", "log_file",
               "checkpoint_format", "tmux_session")
CLUSTER = "hpc"

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
        self.slurm = fake_slurm.FakeSlurm(tmp_path / "slurm")
        self.sshd = new_sshd(env={"PATH": path})
        cluster = new_sshd(env={"PATH": "%s:%s" % (self.slurm.bin, path)})
        home.more.update(PATH=path, REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS="1",
                         REMOTE_SANDBOX_TOOLSET="all",
                         REMOTE_SANDBOX_LOCAL_ROOTS=str(self.local),
                         REMOTE_SANDBOX_ALLOW_PRIVATE_WEBHOOKS="1")
        # Relative paths are to stay out of the login directory.
        self.agent = agents.Agent(
            home, self.sshd.entry(workdir=str(self.far)),
            cluster.entry(CLUSTER, workdir=str(self.far), scheduler="slurm"))
        for name in ("box", CLUSTER):
            assert not self.agent.run(
                "true", tool="exec_bash_background", session_name="first",
                sandbox_name=name, interval_s=1).failed
        self.usual = {
            "command": "true", "tmux_session": "first",
            "log_file": str(self.far / "log"), "sandbox_name": "box",
            "local_path": str(self.local / "tree"),
            "remote_path": str(self.far / "copy"), "interval_s": 1,
            "file_path": str(self.far / "file"), "bash_id": "remote-1",
            "resume_command": "true", "watch_id": 1, "task_id": 1,
            "timeout_s": 1, "notify_local": False}
        # How a payload is put where only some texts are taken.
        self.placed = {name: "%s/{p}" % self.far for name in FAR_PATHS}
        self.placed.update({
            ".local_path": "%s/{p}" % self.local,
            ".exclude_file": "%s/{p}" % self.local,
            ".webhook_url": "http://127.0.0.1:1/{p}",
            ".slurm.extra[]": "--mail-user={p}"})

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

    def ordinary(self, tool, sandbox):
        properties = tool["inputSchema"]["properties"]
        needed = {name: "x" for name in tool["inputSchema"].get("required", ())
                  if properties[name]["type"] == "string"}
        usual = {**self.usual, "sandbox_name": sandbox, "on": "compute"
                 if sandbox == CLUSTER else "login"}
        return {**needed, **{name: value for name, value in usual.items()
                             if name in properties}}

    def arguments(self, tool, payloads):
        """All arguments of a tool with each payload at each place."""
        properties = tool["inputSchema"]["properties"]
        sandboxes = ["box", CLUSTER] if "sandbox_name" in properties \
            else ["box"]
        for sandbox in sandboxes:
            for name, schema in properties.items():
                for where, make in places("." + name, schema):
                    for payload in payloads:
                        yield from self.cases(tool, sandbox, where, make,
                                              payload)

    def cases(self, tool, sandbox, where, make, payload):
        if where in COMMANDS:
            return
        # A name with NUL in it is no JSON for us.
        if not (where.endswith("{}") and "\0" in payload):
            yield self.one(tool, sandbox, where, payload, make)
        if where in self.placed and "\0" not in payload:
            yield self.one(tool, sandbox, where, payload,
                           lambda text: make(self.put(where, text)))

    def one(self, tool, sandbox, where, payload, make):
        canary = self.canary((tool["name"], where, payload))
        name = where.split(".")[1].partition("[")[0].partition("{")[0]
        return {**self.ordinary(tool, sandbox), name: make(
            payload.format(c=canary))}

    def put(self, where, text):
        """The payload as the name of something that exists."""
        whole = self.placed[where].format(p=text)
        if whole.startswith("/") and "../" not in text:
            os.makedirs(whole, exist_ok=True)
        return whole

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
        """The watchdog has seen every watch to its end.  There are thousands,
        which takes as long as it takes while they become fewer."""
        daemon = Watchdog(self.home).start()
        try:
            active = self.active()
            while active:
                active = rsmcp.until(
                    "fewer than %d are active: %s" % (len(active), active[:3]),
                    lambda: self.fewer_than(len(active)),
                    3 * rsmcp.PATIENCE_S)[0]
        finally:
            daemon.kill()

    def fewer_than(self, count):
        """Those that are active, in a list of their own; or None."""
        active = self.active()
        return [active] if len(active) < count else None

    def active(self):
        self.agent.run(None, tool="wait_for_events", timeout_s=1)
        with contextlib.closing(sqlite3.connect(
                self.home.state / "watchdog.sqlite3", timeout=20)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(
                "SELECT * FROM watches WHERE status = 'active'")]

    def strays(self):
        """What was made by way of "../", where only a name was asked for."""
        found = []
        for top in (self.tmp, self.home.path):
            for path in top.rglob("zz*zz*"):
                canary = "zz%szz" % path.name.split("zz")[1]
                tool, name, payload = self.known[canary]
                if "../" in payload and not is_far_path(name) \
                        and self.local not in path.parents \
                        and self.bin != path.parent:
                    found.append((tool, name, payload, path))
        return found


def is_far_path(where):
    """Is it one, or an object that may have one?"""
    return where in FAR_PATHS or where.endswith("{*}")


def places(where, schema):
    """Every way to put a text into a value: (where, how).  A text takes the
    place of any value, whatever that should be."""
    kind = schema["type"]
    yield where, lambda text: text
    inside = list(within(where, kind, schema))
    yield from inside
    for each, make in inside:
        yield each + " as text", lambda text, make=make: json.dumps(make(text))


def within(where, kind, schema):
    if kind == "array":
        for each, make in places(where + "[]", schema["items"]):
            yield each, lambda text, make=make: [make(text)]
    elif kind == "object":
        for name, inner in schema.get("properties", {}).items():
            for each, make in places("%s.%s" % (where, name), inner):
                yield each, lambda text, name=name, make=make: {
                    name: make(text)}
        values = schema.get("additionalProperties")
        if values:
            for each, make in places(where + ".*", values):
                yield each, lambda text, make=make: {"name": make(text)}
        if "properties" not in schema:
            yield where + "{}", lambda text: {text: "x"}
        if "properties" not in schema and not values:
            yield where + "{*}", lambda text: dict.fromkeys(KNOWN_NAMES, text)
            yield where + "{*}", lambda text: {"a": {"b": [text, {"c": text}]}}
    else:
        assert kind in ("string", "integer", "number", "boolean"), schema


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
    # Texts have come as far as this, and were texts there.
    words = ["--mail-user=" + payload.format(c=name)
             for name, (_, _, payload) in place.known.items()]
    for program in ("sbatch", "srun"):
        assert any(word in words for call in place.slurm.calls(program)
                   for word in call), program


def test_no_argument_runs(place):
    nothing_ran(place, QUICK, 1000)


@pytest.mark.long
def test_no_argument_runs_in_any_form(place):
    nothing_ran(place, ALL, 9000)


def test_canaries_are_heard(place):
    """A test that nothing ran is worth something only if this works."""
    canary = place.canary("far")
    place.agent.good(canary)
    assert place.singing() == ["far"]
    for quote in ("%s", "'%s'", '"%s"'):
        text = quote % BREAKER.format(c=place.canary(quote))
        place.agent.run("echo " + text)
        assert place.singing()[-1] == quote, text
    # On a node, too.
    place.agent.run(place.canary("node"), sandbox_name=CLUSTER, on="compute")
    assert place.singing()[-1] == "node"
    place.agent.run(place.canary("job"), tool="exec_bash_background",
                    sandbox_name=CLUSTER, session_name="second")
    rsmcp.until("the job has run", lambda: place.singing()[-1] == "job")


def test_every_tool_and_value_is_tried(place):
    """Those of the whole table, and what is inside of others."""
    listed = {tool["name"]: tool for tool in place.tools()}
    table = place.home.command("tools").stdout.split("\n")
    assert listed.keys() == {line.split()[0] for line in table if line}
    wheres = {where for tool in listed.values()
              for name, schema in tool["inputSchema"]["properties"].items()
              for where, _ in places("." + name, schema)}
    assert COMMANDS.keys() | FAR_PATHS | place.placed.keys() <= wheres
    assert {".slurm.partition", ".slurm.extra[]", ".slurm.nodes", ".env{}",
            ".excludes[]", ".metadata_json{*}", ".timeout_s",
            ".slurm.extra[] as text"} <= wheres


def test_places_are_found_at_any_depth():
    schema = {"type": "object", "properties": {"list": {
        "type": "array", "items": {"type": "object", "properties": {
            "deep": {"type": "string"}}}}}}
    found = {where: make("T") for where, make in places("", schema)}
    assert found[".list[].deep"] == {"list": [{"deep": "T"}]}
    assert found[".list[].deep as text"] in (
        '{"list": [{"deep": "T"}]}', {"list": ['{"deep": "T"}']},
        {"list": '[{"deep": "T"}]'})
    assert found[".list[]"] == {"list": ["T"]} and found[""] == "T"
    with pytest.raises(AssertionError):
        list(places("", {"type": "new"}))


def test_a_plan_of_resuming_is_no_command(place):
    """What the watchdog takes from it when a job is lost."""
    resumed = place.far / "resumed"
    for number, payload in enumerate(ALL):
        if "\0" in payload:
            continue
        text = payload.format(c=place.canary(payload))
        cwd = place.put(".cwd", text) if "../" not in text else str(place.far)

        def start(cwd):
            return place.agent.run(
                "exec sleep 600", tool="exec_bash_background",
                session_name="lost%d" % number, interval_s=1,
                resume_delay_s=0, auto_resume=True, notify_local=False,
                checkpoint_command="true",
                resume_command="echo %d >>%s" % (number, resumed),
                resume_plan_json={**dict.fromkeys(KNOWN_NAMES, text),
                                  "cwd": cwd})
        if any(c < " " or c == "\x7f" for c in cwd):
            assert "control character" in start(cwd)["error"]
            cwd = str(place.far)
        assert not start(cwd).failed
    lose(place.sshd, "lost*")
    place.watch_all()
    assert place.singing() == []
    assert sorted(map(int, resumed.read_text().split())) == [
        number for number, payload in enumerate(ALL) if "\0" not in payload]


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
