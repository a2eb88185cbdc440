"""Links to sandboxes against real ssh servers: many calls, dead links,
several of our processes.

"sshd" here is on this machine, so links are cut and frozen by signals to its
processes.
"""

import collections
import concurrent.futures
import os
import pathlib
import random
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import threading
import time

import pytest

import agent as agents
import rsmcp
import sshd as ssh_servers

pytestmark = [
    pytest.mark.skipif(not ssh_servers.SSHD, reason="there is no sshd"),
    rsmcp.needs_proc,
]
needs_root = pytest.mark.skipif(
    not ssh_servers.ROOT, reason="only root can make users")
long = pytest.mark.long

SLOW = rsmcp.SLOW
END_S = agents.END_S * SLOW
WHO = ["me", pytest.param("account", marks=needs_root)]


def entry_for(request, sshd, who):
    if who == "me":
        return sshd.entry()
    return sshd.entry(user=request.getfixturevalue("account").name)


def lines(path):
    return path.read_text().split("\n")[:-1] if path.exists() else []


# --- Side by side -----------------------------------------------------------

def test_eight_wait_for_each_other(agent, tmp_path):
    """How long eight that sleep take is measured by `./dev bench exec`."""
    place = tmp_path / "all"
    place.mkdir()
    calls = [agent.begin(
        ": >%s/%d; until [ `ls %s | wc -l` = 8 ]; do sleep 0.05; done; "
        "echo %d" % (place, n, place, n)) for n in range(8)]
    assert [agent.end(call)["stdout"] for call in calls] == [
        "%d\n" % n for n in range(8)]


def test_64_calls_at_once(agent, sshd, home):
    """All are served, on at most four connections."""
    calls = [agent.begin("sleep 0.2; echo %d; exit %d" % (n, n))
             for n in range(64)]
    for n, call in enumerate(calls):
        result = agent.end(call)
        assert not result.failed, result
        assert (result["exit_code"], result["stdout"]) == (n, "%d\n" % n)
    last = max(agent.end(call).seconds for call in calls)
    print("%d connections, %.2f s" % (sshd.connections_ever(), last))
    assert sshd.connections_ever() <= 4
    assert len(home.masters()) <= 4
    assert last < 10 * SLOW


def two_masters(agent, home):
    """Calls that need a second connection, under way."""
    calls = [agent.begin("echo begun; sleep 4; echo %d" % n, token="t%d" % n)
             for n in range(6)]
    rsmcp.until("there are two masters", lambda: len(home.masters()) == 2)
    for n in range(6):
        rsmcp.until("all run", lambda: agent.progress.get("t%d" % n))
    return calls


@pytest.mark.parametrize("how", ["killed", "without its socket"])
@pytest.mark.parametrize("which", [0, 1])
def test_one_of_two_masters_is_lost(new_agent, new_sshd, home, how, which):
    """New calls find their way; those on the other one go on."""
    agent = new_agent(new_sshd("MaxSessions 5").entry())
    calls = two_masters(agent, home)
    socket_path, = home.run.rglob("*.%d" % which)
    if how == "killed":
        master, = [pid for pid in home.masters()
                   if str(socket_path).encode() in ssh_servers.words_of(pid)]
        os.kill(master, signal.SIGKILL)
        rsmcp.until("it is gone", lambda: rsmcp.gone(master))
    else:
        socket_path.unlink()
    more = [agent.begin("echo %d" % n) for n in range(4)]
    for n, call in enumerate(more):
        assert agent.end(call)["stdout"] == "%d\n" % n
    result = agent.run("sleep 60", timeout_s=1)
    assert result["kill_verified"] in (True, "by_marker"), result
    ended = [agent.end(call) for call in calls]
    whole = [result["stdout"] == "begun\n%d\n" % n
             for n, result in enumerate(ended)]
    if how == "without its socket":
        assert all(whole), ended
    elif which == 1:
        # The lease is on the first one, which lives.
        assert any(whole), ended
    for n, result in enumerate(ended):
        assert whole[n] or result["command_state"] == "may_be_running", result


TWO_MACHINES = """#!/bin/sh
port=${SSH_CONNECTION#* }
port=${port%%%% *}
echo $port >%(first)s.$$
ln %(first)s.$$ %(first)s 2>/dev/null
read -r first <%(first)s
[ $first = $port ] && exec sh -c "$SSH_ORIGINAL_COMMAND"
exec unshare --uts sh -c 'hostname elsewhere; exec sh -c "$1"' sh \\
    "$SSH_ORIGINAL_COMMAND"
"""


@needs_root
def test_a_further_login_leads_to_another_machine(new_agent, new_sshd, tag,
                                                  tmp_path):
    """Behind one name there may be several.  The lease is on one of them, and
    could end nothing on another."""
    script = tmp_path / "machines"
    script.write_text(TWO_MACHINES % {"first": tmp_path / "first"})
    script.chmod(0o755)
    server = new_sshd("MaxSessions 2", "ForceCommand %s" % script)
    agent = new_agent(server.entry())
    here = agent.good("uname -n")
    assert here != "elsewhere\n"
    long = agent.begin("sleep %s" % tag, timeout_s=4)
    tag.runs()
    others = [agent.begin("uname -n") for _ in range(5)]
    rsmcp.until("there is another login", lambda: server.logins_ever() > 1)
    assert agent.end(long)["kill_verified"] is True
    tag.ends(within=END_S)
    for call in others:
        assert agent.end(call)["stdout"] == here


@needs_root
def test_a_name_that_changes_is_no_other_machine(new_agent, new_sshd,
                                                 tmp_path):
    """What is on the lease's own connection is where it is."""
    script = tmp_path / "names"
    script.write_text('#!/bin/sh\nexport SSH_ORIGINAL_COMMAND\n'
                      "exec unshare --uts sh -c 'hostname h$$; "
                      'exec sh -c "$SSH_ORIGINAL_COMMAND"\'\n')
    script.chmod(0o755)
    server = new_sshd("ForceCommand %s" % script)
    agent = new_agent(server.entry())
    names = {agent.end(call)["stdout"]
             for call in [agent.begin("sleep 1; uname -n") for _ in range(4)]}
    assert len(names) == 4, names
    assert server.logins_ever() == 1


def test_more_calls_than_descriptors_are_allowed_at_first(new_agent, sshd):
    """The soft limit of 1024 (256 on macOS) is there to be raised."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    agent = new_agent(sshd.entry(), preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (40, hard)))
    calls = [agent.begin("sleep 0.2; echo %d" % n) for n in range(24)]
    assert [agent.end(call)["stdout"] for call in calls] == [
        "%d\n" % n for n in range(24)]


@pytest.mark.parametrize("sessions", [1, 2])
def test_few_sessions(new_agent, new_sshd, new_tag, sessions):
    """More calls than MaxSessions wait; a kill finds its way."""
    server = new_sshd("MaxSessions %d" % sessions)
    agent = new_agent(server.entry())
    for n in range(5):
        assert agent.good("echo %d" % n) == "%d\n" % n
    calls = [agent.begin("sleep 0.1; echo %d" % n) for n in range(16)]
    for n, call in enumerate(calls):
        result = agent.end(call)
        assert result.get("stdout") == "%d\n" % n, result
    print("16 calls: %.2f s" % max(agent.end(call).seconds for call in calls))
    # All shells are busy, and all of them have to be ended.
    tags = [new_tag() for _ in range(5)]
    calls = [agent.begin("sleep %s" % tag, timeout_s=1) for tag in tags]
    for tag, call in zip(tags, calls):
        result = agent.end(call)
        assert result.get("timed_out"), result
        assert result["kill_verified"] is True
        assert not tag.pids()
    assert agent.good("echo on") == "on\n"
    assert server.connections_ever() <= 4


@pytest.mark.parametrize("sessions", [2, 5])
def test_few_sessions_and_no_further_login(new_agent, new_sshd, sessions):
    """What a further connection would serve waits, if there can be none."""
    server = new_sshd("MaxSessions %d" % sessions)
    agent = new_agent(server.entry())
    agent.good("true")
    server.stop_listening()
    calls = [agent.begin("sleep 0.1; echo %d" % n) for n in range(12)]
    for n, call in enumerate(calls):
        result = agent.end(call)
        assert result.get("stdout") == "%d\n" % n, result


def test_who_waits_for_a_shell_outlives_those_that_are_lost(new_agent,
                                                            new_sshd):
    """Each of them casts doubt on a link that stands."""
    server = new_sshd("MaxSessions 2")
    agent = new_agent(server.entry())
    agent.good("true")
    server.stop_listening()
    calls = [(n, agent.begin("kill -KILL $PPID"), agent.begin("echo %d" % n))
             for n in range(6)]
    for n, lost, call in calls:
        is_lost(agent.end(lost))
        assert agent.end(call).get("stdout") == "%d\n" % n, agent.end(call)


def test_a_further_login_that_hangs_delays_nobody(new_agent, new_sshd):
    """Who needs it is served by a shell that comes back while it is tried."""
    server = new_sshd("MaxSessions 3")
    agent = new_agent(server.entry(connect_timeout_s=600))
    agent.good("true")
    server.stop_listening()
    with socket.create_server(("127.0.0.1", server.port)) as silent:
        calls = [agent.begin("sleep 0.5; echo %d" % n) for n in range(3)]
        rsmcp.until("somebody tries to log in",
                    lambda: select.select([silent], [], [], 0)[0])
        for n, call in enumerate(calls):
            assert agent.end(call).get("stdout") == "%d\n" % n
        assert agent.good("echo hi") == "hi\n"
    assert server.logins_ever() == 1


@long
def test_a_further_login_that_hangs_ends_nothing(new_agent, new_sshd):
    """The host hears from us all the while, so the lease stands."""
    server = new_sshd("MaxSessions 3")
    agent = new_agent(server.entry(connect_timeout_s=90))
    agent.good("true")
    server.stop_listening()
    with socket.create_server(("127.0.0.1", server.port)):
        calls = [agent.begin("sleep 75; echo %d" % n, timeout_s=200)
                 for n in range(3)]
        rsmcp.until("two of them are served",
                    lambda: sum(map(agent.over, calls)) == 2, 90 * SLOW)
        for call in filter(agent.over, calls):
            assert agent.end(call).get("exit_code") == 0, agent.end(call)


@pytest.mark.parametrize("sessions", [1, 2, 10])
def test_two_servers_with_few_sessions(new_agent, new_sshd, sessions):
    """Neither keeps for itself what the other needs."""
    server = new_sshd("MaxSessions %d" % sessions)
    one, two = new_agent(server.entry()), new_agent(server.entry())
    assert one.good("echo 1") == "1\n"
    assert two.good("echo 2") == "2\n"
    calls = [(agent, agent.begin("sleep 0.1; echo %d" % n), n)
             for n in range(4) for agent in (one, two)]
    for agent, call, n in calls:
        assert agent.end(call).get("stdout") == "%d\n" % n
    print("%d connections" % server.connections_ever())
    assert server.connections_ever() <= 4


@pytest.mark.parametrize("logins", [4, 1])
def test_the_last_of_several_servers_gets_its_share(new_agent, new_sshd,
                                                    logins):
    """Few sessions for three servers: who has some to spare gives them, and
    nobody keeps one that is of no use alone."""
    server = new_sshd("MaxSessions %d" % (1 if logins == 4 else 2))
    servers = [new_agent(server.entry()) for _ in range(3)]
    servers[0].good("true")
    if logins == 1:
        server.stop_listening()
    for n in (1, 2, 0):
        assert servers[n].good("echo %d" % n) == "%d\n" % n


def test_a_lease_that_was_given_back_ends_nothing_new(new_agent, new_sshd):
    """Who waited for room had a lease at first, without a shell; it goes on
    looking for some time."""
    server = new_sshd("MaxSessions 2")
    one, two = (new_agent(server.entry()) for _ in range(2))
    one.good("true")
    server.stop_listening()
    result = two.run("sleep 13; echo end", timeout_s=60)
    assert result.get("stdout") == "end\n", result


def carry(source, target):
    with source, target:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)


@long
def test_no_room_and_no_further_login(new_agent, new_sshd):
    """The sentence tells both."""
    server = new_sshd("MaxSessions 1")
    listener = socket.create_server(("127.0.0.1", 0))
    agent = new_agent(server.entry(port=listener.getsockname()[1]))
    call = agent.begin("true")
    near = listener.accept()[0]
    listener.close()    # nobody else gets in
    far = socket.create_connection(("127.0.0.1", server.port))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        pool.submit(carry, near.dup(), far.dup())
        pool.submit(carry, far.dup(), near.dup())
        result = agent.end(call, 120)
        near.close()
        far.shutdown(socket.SHUT_RDWR)
    far.close()
    assert result.failed and "no further session" in result["error"], result
    assert "nor another login" in result["error"], result


def test_a_master_in_the_place_of_another_is_left_alone(new_agent, sshd,
                                                        home):
    """One server has logged in again; the other finds out later that the link
    they had is gone, and takes the new one."""
    one, two = new_agent(sshd.entry()), new_agent(sshd.entry())
    for agent in (one, two):
        agent.good("true")
    assert sshd.logins_ever() == 1
    [master] = home.masters()
    os.kill(master, signal.SIGKILL)
    rsmcp.until("it is gone", lambda: rsmcp.gone(master))
    for agent in (two, one, two):
        assert agent.good("echo on") == "on\n"
    assert sshd.logins_ever() == 2


def test_logins_are_let_go(new_agent, sshd, home):
    """What comes next logs in anew; what runs goes on."""
    entry = sshd.entry()
    agent = new_agent(entry)

    def disconnect(*args):
        done = home.command("disconnect", *args, entries=[entry])
        return done.returncode, done.stdout + done.stderr

    assert disconnect() == (0, "box: no login was kept\n")
    call = agent.begin("echo begun; sleep 2; echo end", token="t1")
    rsmcp.until("it runs", lambda: agent.progress.get("t1"))
    assert disconnect("box") == (
        0, "box: 1 login let go; the next use logs in anew\n")
    assert disconnect() == (0, "box: no login was kept\n")
    assert home.call("exec_bash", [entry], command="echo hi")["stdout"] == \
        "hi\n"
    assert sshd.logins_ever() == 2
    assert agent.end(call)["stdout"] == "begun\nend\n"
    assert agent.good("echo on") == "on\n"
    status, said = disconnect("nosuch")
    assert status == 1 and "unknown sandbox 'nosuch'" in said


def test_a_server_that_is_busy_lets_another_in(new_agent, new_sshd):
    """It has all sessions, and always more calls than it can serve."""
    server = new_sshd("MaxSessions 1")
    one, two = new_agent(server.entry()), new_agent(server.entry())

    def begin():
        return one.begin("sleep 0.2; echo hi")

    def good(call):
        assert one.end(call).get("stdout") == "hi\n", one.end(call)

    calls = [begin() for _ in range(12)]
    rsmcp.until("it has all there are",
                lambda: server.connections_ever() == 4)
    rsmcp.until("they are served", lambda: any(map(one.over, calls)))
    other = two.begin("echo 2")
    while not two.over(other):
        for n, call in enumerate(calls):
            if one.over(call):
                good(call)
                calls[n] = begin()
        time.sleep(0.01)
    assert two.end(other).get("stdout") == "2\n", two.end(other)
    for call in calls:
        good(call)


def test_several_sandboxes_on_one_master(new_agent, sshd, tmp_path):
    """Entries that differ in nothing of the login share it."""
    agent = new_agent(*[sshd.entry("box%d" % n, workdir=str(tmp_path))
                        for n in range(6)])
    calls = [agent.begin("sleep 0.1; echo %d" % n, sandbox_name="box%d" % n)
             for n in range(6)]
    for n, call in enumerate(calls):
        result = agent.end(call)
        assert result.get("stdout") == "%d\n" % n, result
        assert result["sandbox"] == "box%d" % n
    assert sshd.connections_ever() <= 4


def test_nothing_is_mixed_up(agent):
    """Many calls on shells that are used again and again."""
    def text(n):
        return "".join("%d.%d\n" % (n, i) for i in range(n % 50))

    done = 0
    for start in range(0, 240, 24):
        calls = [(n, agent.begin(
            "for i in $(seq 0 %d); do echo %d.$i; echo %d.$i >&2; done; "
            "exit %d" % (n % 50 - 1, n, n, n % 256)))
            for n in range(start, start + 24)]
        for n, call in calls:
            result = agent.end(call)
            assert (result["exit_code"], result["stdout"],
                    result["stderr"]) == (n % 256, text(n), text(n))
            done += 1
    assert done == 240


# --- Masters ----------------------------------------------------------------

def test_a_master_outlives_us(home, sshd):
    """The next start finds it: one login."""
    for n in range(4):
        result = home.call("exec_bash", [sshd.entry()], command="echo %d" % n)
        assert result["stdout"] == "%d\n" % n
        print("%.0f ms" % (result.seconds * 1000))
    assert sshd.logins_ever() == 1
    assert len(home.masters()) == 1
    agent = agents.Agent(home, sshd.entry())
    assert agent.good("echo hi") == "hi\n"
    agent.leave()
    assert len(home.masters()) == 1
    assert sshd.logins_ever() == 1


def test_a_master_is_in_a_session_of_its_own(home, agent):
    """Clients kill the process group of their servers."""
    agent.good("true")
    master, = home.masters()
    assert os.getsid(master) != os.getsid(agent.server.pid)
    assert os.getpgid(master) != os.getpgid(agent.server.pid)
    # It holds nothing of the server's: its end is seen at once.
    streams = {os.readlink("/proc/%d/fd/%d" % (agent.server.pid, fd))
               for fd in (0, 1, 2)}
    theirs = {os.readlink(path) for path in
              pathlib.Path("/proc/%d/fd" % master).iterdir()}
    assert not {name for name in streams if "pipe" in name} & theirs


def test_masters_go_when_nobody_needs_them(home, sshd):
    entry = sshd.entry(control_persist_s=1)
    for _ in range(2):
        result = home.call("exec_bash", [entry], command="true")
        assert result.get("exit_code") == 0, result
        rsmcp.until("the master is gone", lambda: not home.masters())
        assert not home.sockets()


def packet(*numbers):
    """As the protocol of control sockets has them."""
    return struct.pack(">%dI" % (len(numbers) + 1), 4 * len(numbers), *numbers)


def is_there_for_one_question(path):
    """A master that says that it is alive, and then is gone."""
    hello, alive, is_alive = 1, 0x10000004, 0x80000005
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with listener.accept()[0] as conn:
            conn.sendall(packet(hello, 4))
            asked = conn.recv(4096)
            while len(asked) < 24:
                asked += conn.recv(4096)
            kind, number = struct.unpack(">II", asked[-8:])
            assert kind == alive
            path.unlink()
            listener.close()
            conn.sendall(packet(is_alive, number, os.getpid()))
            conn.recv(1)


@long
def test_a_master_that_does_not_answer_when_it_is_found(home, sshd):
    """The laptop was closed meanwhile, say: a new one, and no sentence about
    the old one."""
    entry = sshd.entry()
    agent = agents.Agent(home, entry)
    agent.good("true")
    agent.leave()
    for pid, _ in ssh_servers.descendants(sshd.process.pid):
        os.kill(pid, signal.SIGSTOP)
    assert agents.Agent(home, entry).good("echo hi") == "hi\n"
    assert sshd.logins_ever() == 2


def test_a_master_that_ends_when_it_is_found(home, sshd):
    """The others that waited for it are gone, and so is it: a new one."""
    entry = sshd.entry(control_persist_s=1)
    agent = agents.Agent(home, entry)
    agent.good("true")
    path, = home.sockets()
    agent.leave()
    rsmcp.until("the master is gone", lambda: not home.masters())
    with concurrent.futures.ThreadPoolExecutor() as pool:
        master = pool.submit(is_there_for_one_question, path)
        rsmcp.until("it listens", path.exists)
        assert agents.Agent(home, entry).good("echo hi") == "hi\n"
        master.result(0)
    assert sshd.connections_ever() == 2


def test_two_servers_share_a_master(home, new_agent, sshd, tag):
    """Started at once; the end of one is nothing to the other."""
    one, two = new_agent(sshd.entry()), new_agent(sshd.entry())
    calls = [(agent, agent.begin("echo hi")) for agent in (one, two)]
    for agent, call in calls:
        assert agent.end(call).get("stdout") == "hi\n"
    assert sshd.logins_ever() == 1
    assert len(home.masters()) == 1
    slow = two.begin("sleep 1; echo still")
    mine = one.begin("sleep %s" % tag)
    tag.runs()
    one.server.signal(signal.SIGKILL)
    print("gone after %.2f s" % tag.ends(within=1 + END_S))
    assert two.end(slow)["stdout"] == "still\n"
    assert not one.over(mine)
    assert two.good("echo on") == "on\n"
    assert sshd.logins_ever() == 1


def test_servers_that_start_at_once_log_in_once(new_agent, sshd, home):
    crowd = [new_agent(sshd.entry()) for _ in range(4)]
    calls = [(agent, agent.begin("echo hi")) for agent in crowd]
    for agent, call in calls:
        assert agent.end(call).get("stdout") == "hi\n"
    # A further connection is for want of sessions, not of patience.
    assert sshd.logins_ever() <= 2
    assert len(home.masters()) == sshd.logins_ever()


def test_the_place_of_the_sockets(home, agent):
    agent.good("true")
    path, = home.sockets()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for each in path.parent.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) & 0o077 == 0, each


class Listener:
    """Something on a socket that is no master."""

    def __init__(self, path, answer):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(16)
        self.open = []
        if answer is not None:
            threading.Thread(target=self.serve, args=(answer,),
                             daemon=True).start()

    def serve(self, answer):
        try:
            while True:
                self.open.append(self.socket.accept()[0])
                if answer:
                    self.open[-1].sendall(answer)
                else:
                    self.open[-1].close()
        except OSError:
            pass

    def close(self):
        self.socket.close()


def occupied(path, what):
    """Put something where the socket was."""
    path.unlink(missing_ok=True)
    if what == "file":
        path.write_text("not a socket\n")
    elif what == "directory":
        path.mkdir()
    elif what == "link":
        path.symlink_to("/nowhere")
    elif what == "stale":
        listener = Listener(path, None)
        listener.close()
    else:
        return Listener(path, {
            "silent": None, "closes": b"", "garbage": b"\0\0\0\1garbage" * 99,
            "huge": b"\xff" * 64}[what])
    return None


@pytest.mark.parametrize("what", ["stale", "file", "link", "directory",
                                  "silent", "closes", "garbage", "huge"])
def test_something_else_at_the_place_of_the_socket(home, sshd, what):
    """It is replaced, or named in a clear error; in bounded time."""
    first = home.call("exec_bash", [sshd.entry()], command="true")
    assert first["exit_code"] == 0
    path, = home.sockets()
    master, = home.masters()
    os.kill(master, signal.SIGKILL)
    rsmcp.until("the master is gone", lambda: rsmcp.gone(master))
    listener = occupied(path, what)
    result = home.call("exec_bash", [sshd.entry()], command="echo hi")
    print("%.2f s: %s" % (result.seconds, result))
    assert result.seconds < 8 * SLOW
    if what == "directory":
        assert result.failed and str(path) in result["error"]
        path.rmdir()
    elif not result.failed:
        assert result["stdout"] == "hi\n"
    else:
        # What answers and is not ours may be named.
        assert listener and str(path) in result["error"]
    if listener:
        listener.close()


@pytest.mark.parametrize("what", ["mode", "file", "link"] + [
    pytest.param("owner", marks=needs_root)])
def test_a_bad_place_for_sockets(home, sshd, tmp_path, what):
    """Others could take our place there: nothing is done, and said why."""
    place = home.run / "rsmcp"
    if what == "mode":
        place.mkdir()
        place.chmod(0o755)
    elif what == "owner":
        place.mkdir(mode=0o700)
        os.chown(place, 65534, 65534)
    elif what == "file":
        place.write_text("")
    else:
        (tmp_path / "other").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "other")
    result = home.call("exec_bash", [sshd.entry()], command="true")
    assert result.failed
    assert str(place) in result["error"]
    assert sshd.connections_ever() == 0
    if what == "mode":
        assert "chmod" in result["error"]
        place.chmod(0o700)
        result = home.call("exec_bash", [sshd.entry()], command="echo hi")
        assert result["stdout"] == "hi\n"


# --- A link that dies under a command ---------------------------------------

def is_lost(result):
    """What has to be said if the link died while the command ran."""
    assert not result.failed, result
    assert result["connection_error"] is True
    assert result["command_state"] == "may_be_running"
    assert result["exit_code"] is None
    assert "[CONNECTION ERROR]" in result["stderr"]
    assert "timed_out" not in result


@pytest.mark.parametrize("who", WHO)
def test_killed_sshd_under_a_command(request, new_agent, sshd, new_tag, who):
    agent = new_agent(entry_for(request, sshd, who))
    tag, hard = new_tag(), new_tag()
    call = agent.begin("echo begun; echo err >&2; setsid -f sleep %s; "
                       "sleep %s" % (tag, tag))
    other = agent.begin("trap '' TERM HUP; echo begun; sleep %s; sleep %s"
                        % (hard, hard))
    tag.runs(2)
    hard.runs()
    begun = time.monotonic()
    sshd.cut()
    for result in (agent.end(call), agent.end(other)):
        is_lost(result)
        assert result["stdout"] == "begun\n"
    print("said after %.2f s" % (time.monotonic() - begun))
    assert time.monotonic() - begun < 2 * SLOW
    print("gone after %.2f s" % tag.ends(within=1 + END_S))
    hard.ends(within=1 + END_S)
    begun = time.monotonic()
    assert agent.good("echo on") == "on\n"
    print("back after %.2f s" % (time.monotonic() - begun))
    assert time.monotonic() - begun < 3 * SLOW


def test_a_command_that_is_lost_casts_doubt_on_the_link(agent, sshd):
    """The next one asks the far side first: it may be the first of many."""
    agent.good("true")
    os.kill(lease_of(sshd), signal.SIGSTOP)     # it answers nobody
    is_lost(agent.run("kill -KILL $PPID"))
    assert agent.good("echo on") == "on\n"
    assert sshd.logins_ever() == 2


@needs_root
def test_a_shell_that_comes_up_after_its_link_was_replaced(
        new_agent, sshd, account, new_tag):
    """Nothing runs there: its lease is gone, and nobody would end it."""
    slow, tag = account.home / "slow", new_tag()
    (account.home / ".bashrc").write_text(
        "[ ! -e %s ] || sleep 5\n" % slow)
    agent = new_agent(sshd.entry(user=account.name))
    agent.good("true")
    time.sleep(1)               # three shells are ready, and taken
    slow.touch()
    calls = [agent.begin("echo begun; sleep 1; kill -KILL $PPID",
                         token="t%d" % n) for n in range(3)]
    for n in range(3):
        rsmcp.until("all run", lambda: agent.progress.get("t%d" % n))
    late = agent.begin("sleep %s" % tag, timeout_s=1)
    time.sleep(0.5)             # its shell is on its way
    slow.unlink()
    os.kill(lease_of(sshd), signal.SIGKILL)
    for call in calls:
        is_lost(agent.end(call))
    assert agent.good("echo hi") == "hi\n"      # on a new link
    result = agent.end(late)
    assert result.get("kill_verified") in (True, "by_marker"), result
    assert not tag.pids()
    assert sshd.logins_ever() == 2


def test_a_poll_under_which_the_link_dies_is_repeated(agent, sshd):
    """Once, and on a new link: all shells of the old one are dying."""
    started = agent.run("sleep 600", tool="exec_bash_background",
                        session_name="j", watch=False)
    assert not started.failed, started
    for _ in range(5):
        agent.good("true")
        sshd.freeze()
        poll = agent.begin(None, tool="check_background_task",
                           tmux_session="j")
        sshd.cut()
        result = agent.end(poll)
        assert result.get("state") == "running", result


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_master_under_a_command(home, agent, tag, number):
    call = agent.begin("echo begun; sleep %s" % tag)
    tag.runs()
    for pid in home.masters():
        os.kill(pid, number)
    is_lost(agent.end(call, timeout=5 * SLOW))
    tag.ends(within=1 + END_S)
    assert agent.good("echo on") == "on\n"


def test_killed_sshd_under_a_silent_command(agent, sshd, tag, tmp_path):
    """It is not taken for one that ended, nor for one that never ran."""
    runs = tmp_path / "runs"
    call = agent.begin("echo x >>%s; exec sleep %s" % (runs, tag))
    tag.runs()
    sshd.cut()
    result = agent.end(call)
    is_lost(result)
    assert result["stdout"] == ""
    tag.ends(within=1 + END_S)
    assert agent.good("echo on") == "on\n"
    assert lines(runs) == ["x"]


def test_cut_in_the_middle_of_output(agent, sshd, tag):
    """What came is kept, also of a flood."""
    flood = agent.begin("echo first; sleep %s & yes" % tag)
    slow = agent.begin("while :; do echo line; sleep 0.05; done", token="t")
    tag.runs()
    rsmcp.until("some of it has come", lambda: agent.progress.get("t"))
    sshd.cut()
    result = agent.end(flood, timeout=5 * SLOW)
    is_lost(result)
    assert result["stdout"].startswith("first\ny\ny\n")
    assert "...<truncated>" in result["stdout"]
    result = agent.end(slow, timeout=5 * SLOW)
    is_lost(result)
    assert set(result["stdout"].split("\n")) == {"line", ""}
    tag.ends(within=1 + END_S)


@pytest.mark.parametrize("who", WHO)
def test_killed_server_ends_its_commands(request, new_agent, sshd, new_tag,
                                         who):
    """Nobody is there any more who could end them at their time."""
    agent = new_agent(entry_for(request, sshd, who))
    tag, kept = new_tag(), new_tag()
    agent.good("setsid -f sleep %s" % kept)
    agent.begin("setsid -f sleep %s; env -i setsid sleep %s & "
                "trap '' TERM HUP; sleep %s; sleep %s" % ((tag,) * 4))
    tag.runs(3)
    agent.server.signal(signal.SIGKILL)
    print("gone after %.2f s" % tag.ends(within=1 + END_S))
    # What a command that ended left behind is not ours to end.
    assert len(kept.pids()) == 1


def test_killed_server_ends_orphans_too(agent, tag):
    """Those that nothing but the waiter knows."""
    agent.begin("(env -i setsid sleep %s &); (env -i setsid sh -c 'trap \"\" "
                "TERM; sleep %s; :' &); sleep %s" % (tag, tag, tag))
    tag.runs(3)
    agent.server.signal(signal.SIGKILL)
    print("gone after %.2f s" % tag.ends(within=1 + END_S))


def parent_of(pid):
    stat = pathlib.Path("/proc/%d/stat" % pid).read_text()
    return stat.rsplit(")", 1)[1].split()[1]


def lease_of(sshd):
    """The process that is the lease, the first of those that look like it:
    what it forks does for a moment."""
    return [pid for pid, _ in ssh_servers.descendants(sshd.process.pid)
            if b'echo "$T $I"; P=$M' in ssh_servers.words_of(pid)][0]


def test_a_lease_that_is_killed_is_missed(agent, sshd, tag):
    """As by a host that has no memory left.  What runs is ended by another."""
    call = agent.begin("sleep %s" % tag, timeout_s=3)
    tag.runs()
    for _ in range(2):
        lease = lease_of(sshd)
        os.kill(lease, signal.SIGKILL)
        rsmcp.until("it is gone", lambda: rsmcp.gone(lease))
        result = agent.run("sleep %s" % tag, timeout_s=1)
        assert result["kill_verified"] is True, result
    assert agent.end(call)["kill_verified"] is True, agent.end(call)
    assert not tag.pids()


def test_the_lease_outlives_an_answer_that_nobody_hears(home, agent, sshd,
                                                        tag):
    """We asked it something, and were gone before it answered."""
    agent.begin("sleep %s" % tag)
    tag.runs()
    lease = lease_of(sshd)
    os.kill(lease, signal.SIGSTOP)
    masters, parent = home.masters(), parent_of(lease)
    agent.run(None, tool="get_active_sandbox")      # asks; nobody answers
    for pid in masters:
        os.kill(pid, signal.SIGKILL)
    rsmcp.until("nobody listens to it", lambda: parent_of(lease) != parent)
    os.kill(lease, signal.SIGCONT)
    tag.ends(within=1 + END_S)


# --- A link that was idle ---------------------------------------------------

def let_die(home, kill):
    """Ends a link; done when nobody holds it to be alive."""
    before = home.masters()
    kill()
    rsmcp.until("the masters noticed",
                lambda: all(rsmcp.gone(pid) for pid in before))


@pytest.mark.parametrize("how", ["cut", "master", "restart"])
def test_an_idle_link_that_died_is_replaced(home, agent, sshd, tmp_path, how):
    """Nobody notices; the command runs once."""
    file = tmp_path / "runs"
    for n in range(4):
        result = agent.run("echo %d >>%s; echo hi" % (n, file))
        assert result.get("stdout") == "hi\n", result
        assert "connection_error" not in result
        assert result.seconds < 4 * SLOW
        let_die(home, {
            "cut": sshd.cut, "restart": sshd.restart,
            "master": lambda: [os.kill(pid, signal.SIGKILL)
                               for pid in home.masters()]}[how])
    assert lines(file) == ["0", "1", "2", "3"]


def test_a_job_is_started_on_a_link_that_has_just_died(home, agent, sshd,
                                                       tmp_path):
    """Nothing of the start was sent, so it is sent once more."""
    file = tmp_path / "runs"
    for n in range(4):
        agent.good("true")      # so that nobody doubts the link
        let_die(home, sshd.cut)
        result = agent.run("echo %d >>%s" % (n, file), watch=False,
                           tool="exec_bash_background", session_name="j%d" % n)
        assert not result.failed, result
    rsmcp.until("they have run", lambda: file.exists()
                and sorted(lines(file)) == ["0", "1", "2", "3"])


def test_dead_links_do_not_pile_up(home, agent, sshd):
    for n in range(4):
        assert agent.good("echo %d" % n) == "%d\n" % n
        let_die(home, sshd.cut)
    assert agent.good("echo on") == "on\n"
    rsmcp.until("the dead masters are gone", lambda: len(home.masters()) <= 1)
    assert len(home.sockets()) == 1
    files = len(os.listdir("/proc/%d/fd" % agent.server.pid))
    for n in range(4):
        let_die(home, sshd.cut)
        assert agent.good("echo %d" % n) == "%d\n" % n
    assert len(os.listdir("/proc/%d/fd" % agent.server.pid)) <= files + 12
    assert agent.server.proc_status("Threads") < 12


def test_several_calls_find_the_link_dead(home, agent, sshd, tmp_path):
    file = tmp_path / "runs"
    agent.good("true")
    for _ in range(3):
        let_die(home, sshd.cut)
        calls = [agent.begin("echo %d >>%s; echo hi" % (n, file))
                 for n in range(8)]
        for call in calls:
            result = agent.end(call)
            assert result.get("stdout") == "hi\n", result
    assert sorted(lines(file)) == sorted([str(n) for n in range(8)] * 3)


def test_a_server_that_disconnects_idle_clients(new_agent, new_sshd):
    options = ("ChannelTimeout session:*=3", "UnusedConnectionTimeout 3",
               "ClientAliveInterval 1", "ClientAliveCountMax 1")
    try:
        server = new_sshd(*options)
    except AssertionError as error:
        if "Bad configuration option" not in str(error):
            raise
        pytest.skip("this sshd has no ChannelTimeout")
    agent = new_agent(server.entry())
    for n in range(2):
        if n:
            time.sleep(3.6)     # the very thing: nobody uses it
        result = agent.run("echo %d" % n)
        assert result.get("stdout") == "%d\n" % n, result
        assert "connection_error" not in result


# --- A host that is not there -----------------------------------------------

def test_a_dead_host_delays_nobody(new_agent, sshd):
    """Refused, and silent: an error in time, and no wait for others."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)        # and never says a word
        agent = new_agent(
            sshd.entry("good"),
            sshd.entry("refused", port=ssh_servers.free_port()),
            sshd.entry("silent", port=silent.getsockname()[1],
                       connect_timeout_s=2))
        agent.good("true", sandbox_name="good")
        dead = agent.begin("echo no", sandbox_name="silent")
        more = agent.begin("echo no", sandbox_name="silent")
        took = [agent.run("echo hi", sandbox_name="good").seconds
                for _ in range(50)]
        assert not agent.over(dead)
        assert max(took) < 0.5 * SLOW
        result = agent.run("echo no", sandbox_name="refused")
        assert result.failed and "refused" in result["error"]
        assert result.seconds < 2 * SLOW
        assert "stdout" not in result
        for call in (dead, more):
            result = agent.end(call)
            assert result.failed and "silent" in result["error"]
            print("%.2f s: %s" % (result.seconds, result["error"]))
            assert result.seconds < 6 * SLOW


def test_a_host_that_comes_back(home, agent, sshd):
    assert agent.good("echo hi") == "hi\n"
    let_die(home, sshd.stop)
    result = agent.run("echo no")
    assert result.failed and result.seconds < 5 * SLOW, result
    print(result["error"])
    for _ in range(3):
        result = agent.run("echo no")
        assert result.failed and result.seconds < 5 * SLOW
    attempts = sshd.connections_ever()
    sshd.restart()
    begun = time.monotonic()
    rsmcp.until("it is back", lambda: not agent.run("true").failed, 10 * SLOW)
    print("back after %.2f s" % (time.monotonic() - begun))
    assert sshd.connections_ever() <= attempts + 2


def test_a_server_that_takes_no_more_logins(new_agent, new_sshd):
    """MaxStartups: an error in bounded time, and nothing is hammered."""
    server = new_sshd("MaxStartups 1:100:1", "LoginGraceTime 30")
    agent = new_agent(server.entry())
    with socket.create_connection(("127.0.0.1", server.port)) as squatter:
        assert squatter.recv(4) == b"SSH-"
        calls = [agent.begin("echo no") for _ in range(8)]
        for call in calls:
            result = agent.end(call)
            assert result.failed and result.seconds < 10 * SLOW, result
        print(result["error"])
        assert server.count("MaxStartups") <= 4
    rsmcp.until("logins work again", lambda: not agent.run("true").failed,
                10 * SLOW)


# --- A link that is frozen --------------------------------------------------

def test_a_short_freeze_harms_nothing(agent, sshd):
    agent.good("true")
    call = agent.begin("for i in 1 2 3 4 5; do echo $i; sleep 0.2; done")
    sshd.freeze()
    waiting = agent.begin("echo hi")
    time.sleep(1)
    assert not agent.over(call)
    sshd.thaw()
    assert agent.end(call)["stdout"] == "1\n2\n3\n4\n5\n"
    assert agent.end(waiting)["stdout"] == "hi\n"


@pytest.mark.parametrize("shells", [
    "waiting", pytest.param("on their way", marks=long)])
def test_a_frozen_link_is_answered_in_time(agent, sshd, tmp_path, shells):
    """And what was written to it does not run after the thaw."""
    file = tmp_path / "ran"
    agent.good("true")
    if shells == "waiting":
        time.sleep(1)
    sshd.freeze()
    result = agent.run("echo x >>%s" % file, timeout_s=1, timeout=30 * SLOW)
    print("%.2f s: %s" % (result.seconds, result))
    assert result.seconds < 1 + agents.GRACE_S + END_S + (
        0 if shells == "waiting" else 6 * SLOW)
    if result.failed:
        ran = []
    elif result["exit_code"] is None:
        assert result.get("timed_out") or result.get("connection_error")
        assert result["command_state"] == "may_be_running"
        ran = []
    else:
        ran = ["x"]     # nothing had been written: another link was taken
    # A new link is found at once.
    begun = time.monotonic()
    assert agent.good("echo on") == "on\n"
    print("on after %.2f s" % (time.monotonic() - begun))
    assert time.monotonic() - begun < 6 * SLOW
    sshd.thaw()
    for _ in range(100):
        assert lines(file) == ran
        time.sleep(0.01)


def test_the_server_ends_in_time_on_a_frozen_link(agent, sshd):
    agent.good("true")
    sshd.freeze()
    agent.begin("echo hi")
    agent.begin("sleep 60", timeout_s=60)
    agent.server.close_input()
    agent.server.ends(within=1.5 * SLOW)


@long
def test_a_link_frozen_under_commands(agent, sshd, tag, tmp_path):
    """Noticed by keepalives; a command written to it never runs, and one
    that had no shell yet runs on another link, once."""
    file = tmp_path / "ran"
    call = agent.begin("echo begun; sleep %s" % tag, timeout_s=200)
    tag.runs()
    sshd.freeze()
    late = agent.begin("echo x >>%s" % file, timeout_s=200)
    for each in (call, late):
        result = agent.end(each, timeout=30 * SLOW)
        print("%.2f s: %s" % (result.seconds, result))
        assert result.seconds < 25 * SLOW
        if each == call:
            is_lost(result)
            assert result["stdout"] == "begun\n"
    assert agent.good("echo on") == "on\n"
    sshd.thaw()
    tag.ends(within=1 + END_S)
    ran = ["x"] if result.get("exit_code") == 0 else []
    for _ in range(200):
        assert lines(file) == ran
        time.sleep(0.01)


@long
def test_an_idle_link_that_froze_is_replaced(agent, sshd, tmp_path):
    """A probe of two seconds, then another link; it runs once."""
    file = tmp_path / "ran"
    agent.good("true")
    sshd.freeze()
    time.sleep(11)      # the last answer is too old to be trusted
    result = agent.run("echo x >>%s; echo hi" % file)
    print("%.2f s" % result.seconds)
    assert result["stdout"] == "hi\n"
    assert result.seconds < 5 * SLOW
    sshd.thaw()
    assert agent.good("echo on") == "on\n"
    time.sleep(1)
    assert lines(file) == ["x"]


@long
def test_the_lease_ends_what_a_frozen_link_left(agent, sshd, tag):
    """The host hears nothing for a minute."""
    agent.begin("sleep %s" % tag, timeout_s=300)
    tag.runs()
    sshd.freeze()
    print("gone after %.1f s" % tag.ends(within=80))


@long
def test_a_frozen_host_delays_nobody(new_agent, sshd, new_sshd):
    other = new_sshd()
    agent = new_agent(sshd.entry("good"), other.entry("frozen"))
    agent.good("true", sandbox_name="good")
    agent.good("true", sandbox_name="frozen")
    time.sleep(11)
    other.freeze()
    os.kill(other.process.pid, signal.SIGSTOP)
    try:
        calls = [agent.begin("true", sandbox_name="frozen", timeout_s=3)
                 for _ in range(6)]
        end = time.monotonic() + 5
        while time.monotonic() < end:
            assert agent.run("echo hi", sandbox_name="good").seconds < \
                0.5 * SLOW
        for call in calls:
            assert agent.end(call, timeout=60).seconds < 45 * SLOW
    finally:
        os.kill(other.process.pid, signal.SIGCONT)


# --- A host that we bring along ---------------------------------------------

@pytest.mark.parametrize("who, end", [
    ("me", "input"), ("me", "TERM"), ("me", "KILL"), ("me", "group"),
    pytest.param("account", "input", marks=needs_root)])
def test_serve_local(request, home, tag, who, end):
    """Needs no configuration and no root, and leaves nothing behind."""
    options = {}
    if who == "account":
        account = request.getfixturevalue("account")
        program = shutil.copy(rsmcp.SERVER, account.home / "program")
        for path in [home.path, *home.path.rglob("*")]:
            shutil.chown(path, account.name)
        options = {"program": program, "user": account.name,
                   "group": account.name, "extra_groups": []}
    server = home.server(args=["serve", "--local"], **options)
    result = home.ask(server, "exec_bash", command="id -u; echo $HOME; pwd")
    uid, place, where = result["stdout"].split()
    assert where == place
    assert "error" not in home.ask(server, "exec_bash_background",
                                   command="sleep %s" % tag, watch=False)
    tag.runs()
    assert int(uid) == os.stat("/proc/%d" % server.pid).st_uid
    assert result["sandbox"] == "local" and os.path.isdir(place)
    if end == "input":
        server.close_input()
    elif end == "group":    # as some clients do
        assert os.getpgid(server.pid) == server.pid
        os.killpg(server.pid, signal.SIGKILL)
    else:
        server.signal(getattr(signal, "SIG" + end))
    rsmcp.until("it is gone, with all it started", lambda: not [
        pid for pid in home.processes() if not rsmcp.gone(pid)])
    tag.ends(within=END_S)
    rsmcp.until("its place is gone", lambda: not os.path.exists(place))
    assert not home.sockets()


@pytest.mark.parametrize("end", ["input", "TERM", "KILL"])
@pytest.mark.parametrize("busy", [False, True])
def test_serve_local_takes_its_watches_with_it(home, tag, end, busy):
    """Nobody can look at its jobs again."""
    server = home.server(args=["serve", "--local"])
    job = home.ask(server, "exec_bash_background", command="sleep 60",
                   ensure_watchdog=False)
    assert job["watch_id"] == 1, job
    if busy:
        server.send(rsmcp.call("busy", "exec_bash",
                               command="trap '' TERM; sleep %s; :" % tag))
        tag.runs()
    if end == "input":
        server.close_input()
    else:
        server.signal(getattr(signal, "SIG" + end))
    server.process.wait(rsmcp.END_S)
    server = home.server()
    rsmcp.until("it is not watched any more", lambda: [
        w["status"] for w in home.ask(server, "list_background_watches")
        ["watches"]] == ["cancelled"])
    [watch] = home.ask(server, "list_background_watches")["watches"]
    assert watch["last_state"] == "interrupted"
    assert watch["last_summary"] == "Its sandbox is gone, and the job with it."
    rsmcp.until("its login is not kept", lambda: list(
        (home.state / "kept").iterdir()) == [])


def test_serve_local_ends_what_has_another_home(home, tag):
    server = home.server(args=["serve", "--local"])
    stubborn = "trap \"\" TERM; while :; do sleep 1; done"
    commands = ("env -i /bin/sleep %s", "HOME=/tmp exec sleep %s",
                "env -i sh -c 'sleep %s &'", "env -i setsid -f sleep %s",
                "env -i sh -c '" + stubborn + "' sh %s",
                "env -i setsid -f sh -c '" + stubborn + "' sh %s")
    for command in commands:
        home.ask(server, "exec_bash_background", command=command % tag,
                 watch=False)
    tag.runs(len(commands))
    server.close_input()
    tag.ends(within=END_S)


def test_serve_local_leaves_the_tmux_of_the_user_alone(home, tag):
    server = home.server(args=["serve", "--local"])
    home.ask(server, "exec_bash_background", command="sleep %s" % tag,
             watch=False)
    place = home.ask(server, "exec_bash", command="pwd")["stdout"].strip()
    rsmcp.until("the viewer has a tmux of its own", lambda: os.path.exists(
        "%s/tmux-%d/default" % (place, os.geteuid())))
    mine = "mine-%d" % server.pid
    subprocess.run(["tmux", "new-session", "-d", "-s", mine, "sleep 60"],
                   check=True)
    server.close_input()
    rsmcp.until("its place is gone", lambda: not os.path.exists(place))
    subprocess.run(["tmux", "kill-session", "-t", "=" + mine], check=True)


# --- Never twice ------------------------------------------------------------

def chaos(agent, sshd, file, seconds, rate):
    """Calls, and cuts at random of what is no login any more."""
    dice = random.Random(7)
    stop = threading.Event()

    def has_shell(pid):
        return not all(name.startswith("sshd")
                       for _, name in ssh_servers.descendants(pid))

    def cut():
        while not stop.wait(dice.uniform(0, 2 / rate)):
            old = list(filter(has_shell, sshd.servers()))
            for pid in dice.sample(old, min(len(old), 2)):
                ssh_servers.kill(pid, signal.SIGKILL)

    cutter = threading.Thread(target=cut)
    cutter.start()
    calls = []
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            name = "%d.%d" % (rate, len(calls))
            calls.append((name, agent.begin(
                "echo %s >>%s; sleep 0.%d; echo done" % (
                    name, file, dice.randrange(4)), timeout_s=20)))
            while sum(not agent.over(call) for _, call in calls) > 5:
                time.sleep(0.01)
            time.sleep(0.02)
    finally:
        stop.set()
        cutter.join()
    return calls


def tell_the_truth(agent, calls, file):
    for _, call in calls:
        agent.end(call)
    ran = lines(file)
    counts = {"finished": 0, "may_be_running": 0, "not sent": 0}
    errors = collections.Counter()
    wrong = []
    for name, call in calls:
        result = agent.end(call)
        times = ran.count(name)
        if result.failed:
            counts["not sent"] += 1
            errors[result["error"]] += 1
            good = times == 0
        elif result["exit_code"] is not None:
            counts["finished"] += 1
            good = times == 1 and result["stdout"] == "done\n" and \
                result["exit_code"] == 0
        else:
            counts["may_be_running"] += 1
            good = times <= 1 and \
                result["command_state"] == "may_be_running"
        if not good:
            wrong.append("%s ran %d times: %r" % (name, times, result))
    print(counts)
    for error, times in errors.most_common(10):
        print(times, error)
    assert not wrong, "\n".join(wrong)
    return counts


def test_never_twice_and_never_a_lie(agent, sshd, tmp_path):
    """Under a link that is cut again and again."""
    file = tmp_path / "runs"
    calls = chaos(agent, sshd, file, seconds=5, rate=2)
    counts = tell_the_truth(agent, calls, file)
    assert counts["finished"] >= len(calls) / 4
    assert counts["may_be_running"] > 0
    rsmcp.until("it works again", lambda: not agent.run("true").failed)


@long
def test_never_twice_for_a_minute(agent, sshd, tmp_path):
    file = tmp_path / "runs"
    for rate in (1, 4, 16):
        calls = chaos(agent, sshd, file, seconds=20, rate=rate)
        tell_the_truth(agent, calls, file)
        rsmcp.until("it works again", lambda: not agent.run("true").failed)
