"""Hosts that lie: login shells, rc files, programs, and servers that are none.

Nothing of it crashes the server, holds it up, fills its memory, or writes
anywhere but where a tool was told to.  No call is cancelled: each comes back by
its own limits, and what is said to be done is done.  (Archives, listings and
SFTP servers made to hurt: test_liars.py.)
"""

import os
import shutil
import time

import pytest

import road as roads
import rsmcp
import sshd as ssh_servers
from rsmcp import SLOW
from test_exec import write_rc
from test_login import listener
from trees import describe, write

needs_root = pytest.mark.skipif(not ssh_servers.ROOT, reason="needs root")

ANSWER_S = 90 * SLOW    # an error comes within that

# A sync gives a host up that says nothing for so long.
SILENCE = {"REMOTE_SANDBOX_SYNC_SILENCE_S": str(int(5 * SLOW))}


def some(names, *quick):
    """Parameters of which only the named ones are quick."""
    return [name if name in quick
            else pytest.param(name, marks=pytest.mark.long) for name in names]


TRICKS = r"printf '\033]0;gotcha\007\033[2J\033[31m\000\377\r\b\n'"
LIES = {
    "endless": "exec yes",
    "silent": "exec sleep 600",
    "tricks": TRICKS,
    "empty": ":",
    # All that it was told, nonces and names included.
    "echo": 'printf "%s\\n" "$@"; env; exec cat',
    "up": "printf '../../../up\\0/tmp/up\\0d 755 1 1 ../up\\0\\n'",
}
PROGRAMS = ["find", "tar", "tmux", "nvidia-smi", "perl", "stat", "tail",
            "head", "mkdir", "setsid"]


def clean(text):
    return not any(c < " " and c not in "\n\t" or c == "\x7f" for c in text)


def unharmed(agent, most_kb=rsmcp.MEMORY_KB):
    """It lives, answers at once, and has not grown."""
    agent.server.memory_is_bounded(most_kb)
    begun = time.monotonic()
    assert not agent.run(None, tool="get_active_sandbox",
                         timeout=ANSWER_S).failed
    return time.monotonic() - begun


# --- Programs -----------------------------------------------------------------

class Host:
    """One whose programs lie, one at a time."""

    def __init__(self, new_sshd, new_agent, path):
        self.path = path
        self.here, self.there = path / "here", path / "there"
        write(self.here / "tree/a", "a" * 5000)
        write(self.there / "b", "b" * 5000)
        write(self.there / "sub/c", "c")
        place = path / "bin"
        place.mkdir()
        self.lie = path / "lie"
        self.lie.write_text("none\n")
        for name in PROGRAMS:
            (place / name).write_text(
                '#!/bin/sh\nread -r who <%s\n'
                # A log of that host must not fill this disk.
                '[ "$who" != %s ] || { ulimit -f 20000; . %s; }\n'
                '[ "$who" = %s ] || exec %s "$@"\n' % (
                    self.lie, name, path / "how", name,
                    shutil.which(name) or "false"))
            (place / name).chmod(0o755)
        sshd = new_sshd(env={"PATH": "%s:/usr/bin:/bin" % place})
        self.agent = new_agent(sshd.entry(), env=SILENCE)
        self.ran = path / "ran"
        assert not self.agent.run(
            "exit 3", tool="exec_bash_background", session_name="before",
            watch=False).failed
        rsmcp.until("the first job is over", lambda: self.look("before").get(
            "exit_code") == 3)

    def look(self, job):
        return self.agent.run(None, tool="check_background_task",
                              tmux_session=job, timeout=ANSWER_S)

    def calls(self):
        """Everything that asks programs of the host."""
        up, down = self.there / "up", self.here / "down"
        return [
            {"command": "echo hi", "timeout_s": 10},
            {"command": None, "tool": "list_sandboxes",
             "check_resources": True},
            {"command": None, "tool": "list_remote_files",
             "remote_path": str(self.there), "recursive": True},
            {"command": None, "tool": "read_remote_file",
             "remote_path": str(self.there / "b"), "tail_lines": 2},
            {"command": None, "tool": "sync_local_to_remote",
             "local_path": str(self.here / "tree"), "remote_path": str(up)},
            {"command": None, "tool": "sync_remote_to_local",
             "local_path": str(down), "remote_path": str(self.there)},
            {"command": "echo ran >>%s" % self.ran,
             "tool": "exec_bash_background",
             "session_name": "now", "watch": False},
            {"command": None, "tool": "check_background_task",
             "tmux_session": "before"}]

    def suffer(self, name, lie):
        """All calls under a lie, and their answers, in order."""
        (self.path / "how").write_text(LIES[lie] + "\nexit 0\n")
        self.lie.write_text(name + "\n")
        calls = [self.agent.begin(**call) for call in self.calls()]
        answers = [self.agent.end(call, ANSWER_S) for call in calls]
        print(lie, ["%.1f s" % answer.seconds for answer in answers])
        self.lie.write_text("none\n")
        return answers

    def check(self, name, answers):
        """What they say is so, as far as only this program lies."""
        ran, _, listed, read, up, _, started, looked = answers
        if "stdout" in ran and ran["exit_code"] is not None:
            assert ran["stdout"] == "hi\n", ran
        true = describe(self.there)
        for entry in listed.get("entries", []):
            assert os.path.relpath(entry["path"], self.there).encode() in \
                true, entry
        if not read.failed and name not in ("head", "tail", "stat"):
            assert read["content"] == "b" * 5000, read
        if not up.failed and "problems" not in up:
            assert (self.there / "up/a").read_text() == "a" * 5000, up
        for each, what in describe(self.here / "down").items():
            if what[0] == "file" and not each.startswith(b"up"):
                assert true[each][3] == what[3], each
        # Those two start it: that it did not run shows in the next look.
        if not started.failed and name not in ("tmux", "setsid"):
            rsmcp.until("the job runs", self.ran.exists)
        assert self.look("now").get("exit_code") is None or self.ran.exists()
        if self.ran.exists():
            assert self.ran.read_text() in ("", "ran\n")
        assert looked.get("exit_code") in (None, 3), looked
        for answer in answers:
            assert clean(str(answer.get("error", ""))), answer
            for problem in answer.get("problems", []):
                assert clean(problem["problem"]), answer


@pytest.mark.parametrize("lie", some(LIES, "tricks", "empty", "up"))
@pytest.mark.parametrize("name", some(PROGRAMS, "find", "tar", "tmux",
                                      "nvidia-smi"))
def test_programs_that_lie(new_sshd, new_agent, tmp_path, name, lie):
    host = Host(new_sshd, new_agent, tmp_path)
    outside = {each: what for each, what in describe(tmp_path).items()
               if each.split(b"/")[0] not in (b"sshd0", b"lie", b"how")}
    host.check(name, host.suffer(name, lie))
    unharmed(host.agent)
    begun = time.monotonic()
    rsmcp.until("it works again after " + lie, lambda: host.agent.run(
        "echo on", timeout=ANSWER_S).get("stdout") == "on\n",
        2 * ANSWER_S)   # two shells that wait may have to be given up
    print("%s: on after %.1f s" % (lie, time.monotonic() - begun))
    now = describe(tmp_path)
    for each, what in outside.items():
        if what[0] == "file":
            assert now.get(each) == what, each
    assert not list(tmp_path.glob("up")) and not list(tmp_path.glob("*/up*/up"))
    assert {path.name for path in host.here.iterdir()} <= {
        "tree", "down"}


# --- Words about jobs -----------------------------------------------------------

def test_a_log_that_goes_on_by_a_byte(new_sshd, new_agent, tmp_path):
    """A megabyte comes with each, of a log that is said to be endless."""
    (tmp_path / "env").write_text(
        "printf() {\n"
        "  case ${1-}.${19-} in\n"
        "  'run %s'*.0)\n"
        "    echo look >>LOOKS\n"
        "    builtin printf 'run 1\\nstate exited\\nwhat 0\\nsize 1%015d\\n"
        "from %d\\nat %d\\noffset %d\\nmark M\\n\\n' 0 "
        '"${16}" "${16}" $((${16}+1))\n'
        "    head -c 1000000 /dev/zero | tr '\\0' x\n"
        "    exit 0;;\n"
        "  'run %s'*) set -- \"$1\" \"${@:2:12}\" 1000000000000000 "
        '"${@:15}";;\n'
        "  esac\n"
        '  builtin printf "$@"\n'
        "}\n".replace("LOOKS", str(tmp_path / "looks")))
    sshd = new_sshd(env={"BASH_ENV": tmp_path / "env"})
    agent = new_agent(sshd.entry(), env=SILENCE)
    result = agent.run("echo hi", on_timeout="background", timeout=ANSWER_S)
    assert not result.failed and "xxx" in result["stdout"], result
    assert 2 <= len((tmp_path / "looks").read_text().split()) < 20
    unharmed(agent)


# --- Login shells and rc files ------------------------------------------------

SHELLS = {
    "endless": "exec yes",
    "silent": "exec sleep 600",
    "echo": 'printf "%s\\n" "$@"; exec cat',
    "tricks": TRICKS + '; exec /bin/bash "$@"',
    "noise without end": '(yes >&2 &); exec /bin/bash "$@"',
    "gone": "head -c 20; exit 0",
    "echo and shell": 'printf "%s\\n" "$@"; tee /dev/stderr | '
                      'exec /bin/bash "$@"',
    "claims to be ready": 'while read -r word rest; do '
                          'echo "$word 4 1 1 1"; echo "$word 0 0" >&2; done',
}


def bounded(agent, good):
    """Commands on a bad host: soon an answer, and no lie that we can know."""
    begun = time.monotonic()
    calls = [agent.begin("echo hi", sandbox_name="bad", timeout_s=10),
             agent.begin(None, tool="list_sandboxes", check_resources=True),
             agent.begin(None, tool="list_remote_files", sandbox_name="bad"),
             agent.begin("true", tool="exec_bash_background", watch=False,
                         sandbox_name="bad")]
    for _ in range(3):
        result = agent.run("echo fine", sandbox_name="good")
        assert result["stdout"] == "fine\n"
    results = [agent.end(call, ANSWER_S) for call in calls]
    print("%.1f s: %s" % (time.monotonic() - begun, results[0]))
    for result in results:
        assert clean(str(result.get("error", ""))), result
    unharmed(agent)
    assert agent.good("echo on", sandbox_name="good") == "on\n"
    return results[0]


@needs_root
@pytest.mark.parametrize("name", some(SHELLS, "endless", "echo", "tricks",
                                      "gone", "echo and shell"))
def test_login_shells_that_lie(new_account, new_agent, sshd, name):
    account = new_account()
    shell = account.home / "shell"
    write_rc(account, "shell", "#!/bin/sh\n%s\n" % SHELLS[name])
    shell.chmod(0o755)
    ssh_servers.run("usermod", "-s", shell, account.name)
    agent = new_agent(sshd.entry("good"),
                      sshd.entry("bad", user=account.name))
    first = bounded(agent, sshd)
    if name == "tricks":
        assert first["stdout"] == "hi\n", first
    elif "shell" not in name:
        assert first.failed or first.get("stdout", "") in ("", "hi\n"), first


RC = {
    "endless": "yes",
    "endless and both": "yes & yes >&2",
    "silent": "sleep 600",
    "noise from behind": "(while sleep 0.05; do echo noise; done) &",
    "everything is other": "alias echo=false exec=false; unset PATH; "
                           "exec() { :; }; read() { return 1; }; "
                           "export -f exec read",
    "closed": "exec <&- >&-",
}


@needs_root
@pytest.mark.parametrize("name", some(RC, "endless", "noise from behind",
                                      "everything is other", "closed"))
def test_rc_files_that_lie(new_account, new_agent, sshd, name):
    account = new_account()
    write_rc(account, ".bashrc", RC[name] + "\n")
    agent = new_agent(sshd.entry("good"),
                      sshd.entry("bad", user=account.name))
    bounded(agent, sshd)


# --- Servers ------------------------------------------------------------------

def test_a_server_that_refuses_sessions(new_agent, new_sshd, sshd):
    bad = new_sshd("MaxSessions 0")
    agent = new_agent(sshd.entry("good"), bad.entry("bad"))
    assert bounded(agent, sshd).failed
    assert bad.logins_ever() < 20


class Dropping(roads.Road):
    """Ends each connection at the same byte."""

    kind = "cut"

    def __init__(self, port, after):
        self.after = after
        super().__init__(port)

    def take_in(self, now):
        self.heal()
        self.arm(roads.Fault(self.kind, False, self.after, 600, 0))
        super().take_in(now)


@pytest.mark.parametrize("after", [1, 30, 200, 1100, 1700, 2500])
def test_a_server_that_drops_in_the_handshake(new_agent, sshd, after):
    """At whatever byte; nothing ran, and it is not asked without end."""
    road = Dropping(sshd.port, after)
    agent = new_agent(sshd.entry("good"), sshd.entry("bad", port=road.port))
    try:
        result = agent.run("echo hi", sandbox_name="bad", timeout=ANSWER_S)
        assert result.failed, result
        assert clean(result["error"])
        assert sshd.connections_ever() < 10
        assert agent.good("echo on", sandbox_name="good") == "on\n"
    finally:
        road.close()


class Hanging(Dropping):
    """Lets no byte behind that one through, and stays."""

    kind = "freeze"


@pytest.mark.parametrize("after", [1, 30, 1100, 1700, 2500])
def test_a_server_that_hangs_in_the_handshake(new_agent, sshd, after):
    road = Hanging(sshd.port, after)
    agent = new_agent(sshd.entry("good"), sshd.entry(
        "bad", port=road.port, connect_timeout_s=3))
    try:
        calls = [agent.begin("echo hi", sandbox_name="bad"),
                 agent.begin(None, tool="list_remote_files",
                             sandbox_name="bad")]
        assert agent.good("echo on", sandbox_name="good") == "on\n"
        for call in calls:
            result = agent.end(call, ANSWER_S)
            assert result.failed and clean(result["error"]), result
        unharmed(agent)
    finally:
        road.close()


def garbage(connection):
    with connection:
        try:
            while True:
                connection.sendall(b"\x1b]0;x\x07\xff\0" * 4096 + b"\r\n")
        except OSError:
            pass


def lines(connection):
    with connection:
        try:
            while True:
                connection.sendall(b"please wait\r\n" * 1000)
        except OSError:
            pass


def greets(connection):
    """And then talks nonsense."""
    with connection:
        try:
            connection.sendall(b"SSH-2.0-x\r\n" + bytes(range(256)) * 1000)
        except OSError:
            pass


@pytest.mark.parametrize("server", [garbage, lines, greets])
def test_what_is_no_sshd(new_agent, sshd, server):
    with listener(server) as (port, _):
        agent = new_agent(sshd.entry("good"), sshd.entry(
            "bad", port=port, connect_timeout_s=3))
        assert bounded(agent, sshd).failed
