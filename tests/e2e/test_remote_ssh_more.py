"""The tools of the server "remote-ssh": bounds, timeouts, losses.

Its documents are in test_remote_ssh.py.
"""

import concurrent.futures
import json
import re
import socket
import time

import pytest

import agent as agents
import rsmcp
import sshd as ssh_servers
from remote_ssh import TOOLS, Remote, alias, lines

pytestmark = [
    pytest.mark.skipif(not ssh_servers.SSHD, reason="there is no sshd"),
    rsmcp.needs_proc,
]


@pytest.fixture
def remote(home, sshd):
    return Remote(home, alias(home, sshd))


def test_a_timeout_ends_it_and_keeps_its_output(remote, tag):
    text = remote.bad("remote_bash", timeout=1000, command=(
        "echo before; echo why >&2; setsid sleep %s & sleep %s" % (tag, tag)))
    assert re.fullmatch(r"Error: Command timed out after 1000 ms and was ended"
                        r"[^\n]*\n\nbefore\n\[stderr\]\nwhy\n", text), text
    assert not tag.pids()


def test_long_output_is_bounded(remote):
    text = remote.bash("seq 1 2000000")
    assert len(text) < 41000
    assert text.startswith("1\n2\n") and "2000000\n" in text
    assert "characters left out here" in text
    path = re.search(r"\[all of stdout is in the local file (.*)\]", text)[1]
    with open(path) as file:
        assert sum(1 for _ in file) == 2000000


def test_what_the_file_lacks_is_told(remote, home):
    (home.state / "outputs").write_text("")   # no file can be made there
    assert remote.bash("printf 'a\\rb\\n'") == \
        "a\nb\n[stdout is not whole here, and no local file could be written]\n"


def test_more_than_a_file_may_have_is_told(remote):
    text = remote.bash("head -c 67108874 /dev/zero")
    assert re.search(r"\[stdout is in the local file \S+, without its last 10 "
                     r"bytes\]\n$", text), text[-200:]


def test_a_lost_connection_is_no_success(remote, sshd, tag):
    begun = remote.begin("remote_bash",
                         command="echo before; sleep %s" % tag)
    tag.runs()
    sshd.cut()
    text, failed = remote.end(begun)
    assert failed and text.startswith("Error: the connection to gpu-box was")
    assert remote.bash("echo again") == "again\n"


def test_numbers_are_never_given_twice(home, sshd):
    env = alias(home, sshd)
    servers = [Remote(home, env) for _ in range(3)]

    def begin(remote):
        return [remote.start("true") for _ in range(4)]

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        ids = sum(pool.map(begin, servers), [])
    assert sorted(ids, key=lambda i: int(i[7:])) == \
        ["remote-%d" % n for n in range(1, 13)]
    # A database that has to be begun anew goes on behind them.
    for server in servers:
        server.server.kill()
    for path in home.state.glob("watchdog.sqlite3*"):
        path.write_bytes(b"no database" * 100)
    assert Remote(home, env).start("true") == "remote-13"


def test_a_timeout_ends_a_job(remote, tag):
    text = remote.bash(
        "echo before; setsid sleep %s & trap '' TERM; sleep %s; sleep %s"
        % (tag, tag, tag), run_in_background=True, timeout=501)
    assert text == ("Command running in background with ID: remote-1\n"
                    "It is ended if it takes longer than 1 s.\n")
    text = remote.over("remote-1")
    assert re.fullmatch(
        r"Status: completed\nExit code: 1(37|43)\n\nbefore\n"
        r"\[TIMEOUT\] ended after 1 s\n", text), text
    assert not tag.pids()
    # One that ends by itself in time is not touched.
    assert remote.over(remote.start("echo done", timeout=60000)).endswith(
        "Exit code: 0\n\ndone\n")


def test_the_output_of_a_job_is_bounded(remote):
    job = remote.start("seq 1 100000; echo 'a 100000'")
    text = remote.over(job)
    assert len(text) < 41000 and text.endswith("\n100000\na 100000\n")
    left, path = re.search(r"^\[(\d+) earlier bytes are left out; the whole "
                           r"is in (\S+): ", text, re.M).groups()
    size = sum(len("%d\n" % n) for n in range(1, 100001))
    assert size * 0.9 < int(left) < size
    assert remote.read(path, limit=3).endswith("EXIT_CODE=0\n")
    text = remote.output(job, filter="7")
    assert "[earlier lines that match are left out]\n" in text
    assert len(text) < 41000 and text.endswith("\n99997\n")


def test_a_search_without_end(remote, tag):
    """It is no lost connection, and is ended."""
    tag.text = agents.SLOW_SEARCH % tag
    job = remote.start(agents.SLOW_TEXT)
    remote.over(job)
    begun = remote.begin("remote_bash_output", bash_id=job, filter=tag.text)
    reply = json.loads(remote.server.line(timeout=200 * rsmcp.SLOW))
    assert reply["id"] == begun and reply["result"]["isError"]
    assert reply["result"]["content"][0]["text"].startswith(
        "Error: filter: grep on gpu-box did not come to an end with"), reply
    rsmcp.until("grep is gone", lambda: not tag.pids())


def test_a_job_of_another_host(home, sshd, remote):
    """SSH_HOST may be another one tomorrow."""
    job = remote.start("true")
    remote.over(job)
    other = Remote(home, {"SSH_HOST": "elsewhere"})
    text = other.bad("remote_bash_output", bash_id=job)
    assert text.startswith("Error: Job %s not found: it runs on 'gpu-box'"
                           % job)
    both = Remote(home, {"SSH_HOST": "elsewhere", "REMOTE_SANDBOX_LIST":
                         json.dumps([sshd.entry("gpu-box")])})
    assert both.output(job) == "Status: completed\nExit code: 0\n\n"


def test_long_files_are_bounded(remote, sshd):
    path = sshd.home / "long"
    path.write_text("".join("%d\n" % n for n in range(1, 200001)))
    head, tail = remote.read(path), remote.read(path, limit=150000)
    assert len(head) < 41000 and len(tail) < 41000
    shown = head.count("\n") - 1
    assert head == lines(1, shown, "%d") + \
        "[there is more; go on with offset %d]\n" % (shown + 1)
    shown = tail.count("\n") - 1
    assert shown > 2000 and tail == \
        "[earlier lines do not fit; for them use offset and limit]\n" + \
        lines(200001 - shown, 200000, "%d")
    path.write_text("x" * 100000 + "\nlast\n")
    text = remote.read(path)
    assert len(text) < 41000 and text.endswith(
        "x\n[the rest of this line does not fit]\n"
        "[there is more; go on with offset 2]\n")
    assert remote.read(path, limit=1) == "     2\tlast\n"


def test_a_host_with_sftp_alone(home, new_sshd):
    server = new_sshd("ForceCommand internal-sftp")
    path = server.dir / "long"
    path.write_text("".join("line %d\n" % n for n in range(1, 30001)))
    remote = Remote(home, alias(home, server))
    assert remote.read(path, limit=2) == lines(29999, 30000)
    assert remote.read(path, offset=20000, limit=2) == lines(20000, 20001)
    assert "SFTP" in remote.bad("remote_bash", command="true")


def test_a_host_that_is_away(remote, sshd):
    """No word about the job."""
    job = remote.start("true")
    sshd.stop()
    assert "Error: cannot tell how %s is doing" % job in remote.bad(
        "remote_bash_output", bash_id=job)
    assert "gpu-box" in remote.bad("remote_bash", command="true")


def test_the_address_in_the_variables(home, sshd):
    for env in [
            {"SSH_HOST": "%s@127.0.0.1:%d" % (sshd.user, sshd.port)},
            {"SSH_HOST": "ssh://%s@127.0.0.1" % sshd.user,
             "SSH_PORT": str(sshd.port)},
            {"SSH_HOST": "%s@[127.0.0.1]:%d" % (sshd.user, sshd.port),
             "SSH_PORT": "1"}]:
        remote = Remote(home, {**env, "SSH_KEY_PATH": str(sshd.key)})
        assert remote.bash("echo hi") == "hi\n"
        remote.server.kill()
    # A key that is not there does no harm: ssh has others.
    env = alias(home, sshd)
    remote = Remote(home, {**env, "SSH_KEY_PATH": "~/.ssh/nowhere"})
    assert remote.bash("echo hi") == "hi\n"
    remote.server.stderr_has("SSH_KEY_PATH: cannot read '.*/nowhere'")
    # Nor does one that the host does not know.
    other = ssh_servers.keygen(home.home / ".ssh" / "other")
    home.end_masters()
    remote = Remote(home, {**env, "SSH_KEY_PATH": str(other)})
    assert remote.bash("echo hi") == "hi\n"


def test_start_does_not_wait_for_the_host(home):
    """One that takes connections and says nothing."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        begun = time.monotonic()
        remote = Remote(home, {"SSH_HOST": "u@127.0.0.1:%d"
                               % silent.getsockname()[1]})
        assert list(remote.tools()) == TOOLS
        assert time.monotonic() - begun < 2 * rsmcp.SLOW


def test_by_hand(home, sshd):
    env = alias(home, sshd)
    done = home.command("call", "remote_bash", "command=echo hi; exit 3",
                        env=env)
    assert (done.returncode, done.stdout) == (0, "hi\nExit code: 3\n")
    done = home.command("call", "remote_bash", "command=echo hi; sleep 60",
                        "timeout=500", env=env)
    assert (done.returncode, done.stdout) == (1, "hi\n\n")
    assert "error: Command timed out after 500 ms" in done.stderr
    done = home.command("call", "remote_bash", "command=echo hi; sleep 60",
                        "timeout=500", "--json", env=env)
    assert json.loads(done.stdout)["output"] == "hi\n"
