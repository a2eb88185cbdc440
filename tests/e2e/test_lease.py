"""The lease of a link (src/ssh/script.c), run by the shells there are.

Its text is taken from one that runs; then there is no network.
"""

import os
import pathlib
import secrets
import shutil
import signal
import subprocess

import pytest

import rsmcp
import sshd as ssh_servers

pytestmark = [
    pytest.mark.skipif(not ssh_servers.SSHD, reason="there is no sshd"),
    rsmcp.needs_proc,
]

SHELLS = {
    "bash": ["bash", "--norc"], "dash": ["dash"], "busybox": ["busybox", "sh"],
    "ksh": ["ksh"], "mksh": ["mksh"], "zsh": ["zsh", "--emulate", "sh"],
}


def words_of(pid, name):
    return ssh_servers.words_of(pid, name).decode().split("\0")


def of_one_that_runs(sshd):
    """Text and environment of a lease."""
    (pid, text), = [
        (pid, word) for pid, _ in ssh_servers.descendants(sshd.process.pid)
        for word in words_of(pid, "cmdline") if 'trap "" HUP PIPE' in word]
    return text, dict(word.split("=", 1)
                      for word in words_of(pid, "environ") if word)


class Lease:
    """One that this test speaks to; "mark" is that of its commands."""

    def __init__(self, argv, text, env):
        self.mark = secrets.token_hex(8) + ".1."
        self.process = subprocess.Popen(
            [*argv, "-c", text], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, bufsize=0, start_new_session=True,
            env={**env, "M": self.mark[:-2]})
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()
        assert self.line() == "%s %s-%s" % (env["T"], boot.strip(),
                                            os.uname().nodename)

    def line(self):
        return self.process.stdout.readline().decode().rstrip("\n")

    def say(self, text):
        self.process.stdin.write(text.encode())

    def command(self, tag):
        """A process of a command that it has to end."""
        return subprocess.Popen(["sleep", str(tag)], env={
            **os.environ, "RSMCP_CALL": self.mark})

    def cut(self):
        self.process.stdin.close()

    def end(self):
        """Its end, whatever the test left."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def new_lease(agent, sshd):
    """Makes them: new_lease("dash")."""
    made, text = [], []

    def make(shell, **env):
        if not shutil.which(SHELLS[shell][0]):
            pytest.skip("there is no " + shell)
        if not text:
            agent.good("true")
            text.extend(of_one_that_runs(sshd))
        made.append(Lease(SHELLS[shell], text[0], {**text[1], **env}))
        return made[-1]

    yield make
    for lease in made:
        lease.end()


@pytest.mark.parametrize("shell", SHELLS)
def test_it_reads_whole_texts(new_lease, shell):
    """Of so many bytes, whatever a character takes."""
    lease = new_lease(shell, LC_ALL="C.UTF-8")
    define = "f() { echo \"${A}$1\"; trap - 0; }\n"
    text = "f 'ä€😀'\n"
    lease.say("d 0 %d\n%sp 1\n" % (len(define), define))
    assert lease.line() == "p 1 ."
    lease.say("x 2 %d\n%s" % (len(text.encode()), text))
    assert lease.line() == "x 2 ä€😀"
    # What it was told between is no part of that, and all of it is read.
    many = "f " + "x" * 20000 + "\n"
    for n in range(3, 6):
        lease.say("x %d %d\n%s" % (n, len(many), many))
        assert lease.line() == "x %d " % n + "x" * 20000
    lease.say("p 7\n")
    assert lease.line() == "p 7 ."


CUT = ["", "p 1", "d 0 99\nif true; th", "d 0 99\nexit",
       "d 0 99\n: >FILE\n", "x 1 99\n: >FILE; sleep 1\n"]


def ends_all(told, new_tag, file, cut):
    """Leases that were told something end their commands, and run nothing."""
    tags = [(said, lease, new_tag()) for said, lease in told]
    commands = [lease.command(tag) for _, lease, tag in tags]
    for said, lease, tag in tags:
        tag.runs()
        lease.say(said.replace("FILE", str(file)))
        if cut:
            lease.cut()
    left = dict((said, tag) for said, _, tag in tags)

    def all_gone():
        for said, tag in list(left.items()):
            if not tag.pids():
                del left[said]
        return not left

    try:
        rsmcp.until("all of them are gone", all_gone)
    except AssertionError:
        pytest.fail("not ended after it heard %r" % list(left))
    for process in commands + [lease.process for _, lease in told]:
        process.wait(rsmcp.PATIENCE_S)
    assert not file.exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_text_that_is_cut_off(new_lease, new_tag, tmp_path, shell):
    """It ends the commands, whatever it had heard, and runs no half text."""
    ends_all([(said, new_lease(shell)) for said in CUT], new_tag,
             tmp_path / "ran", cut=True)


def test_silence_in_the_middle(new_lease, new_tag, tmp_path):
    """A link that is frozen is so at any byte."""
    ends_all([(said, new_lease("bash", S="3")) for said in CUT], new_tag,
             tmp_path / "ran", cut=False)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_process_that_shows_late(new_lease, tag, shell):
    """One that is just becoming another program has no environment to be
    known by, and on a busy host for seconds: here, until the lease is gone."""
    lease = new_lease(shell)
    hidden = subprocess.Popen(
        ["sh", "-c", "read x; RSMCP_CALL=$0 exec sleep $1", lease.mark,
         str(tag)], stdin=subprocess.PIPE)
    lease.cut()
    assert lease.process.wait(rsmcp.PATIENCE_S) == 0
    # Nobody who waits for its output waits for those that look on.
    assert lease.process.stdout.read() == b""
    hidden.stdin.close()
    assert hidden.wait(rsmcp.PATIENCE_S) in (-signal.SIGTERM, -signal.SIGKILL)
