"""Serving on stdio: starting, ending, pressure, hostility.

What is said in which order is the transcripts' subject; here it is processes,
descriptors, signals, time and memory.
"""

import json
import os
import pty
import random
import re
import signal
import subprocess
import time

import pytest

from rsmcp import (BUILD, FIXTURE, MODERN_META, PATIENCE_S, SERVER, SLOW, call,
                   cancel, gone, needs_fixture, needs_proc, request, until)

RUNNING = 64            # calls at once
QUEUED = 1024           # and those that wait
MIB = 1024 * 1024
LINE_MAX = 10 * MIB

SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"]
ENDINGS = ["EOF", *SIGNALS]


def end(server, how):
    if how == "EOF":
        server.close_input()
    else:
        server.signal(signal.Signals[how])


# The end.

@pytest.mark.parametrize("how", ENDINGS)
def test_idle_server_ends(start, how):
    server = start()
    server.ping()
    end(server, how)
    server.ends()
    assert server.rest() == []


@pytest.mark.parametrize("how", SIGNALS)
def test_impatient_client(start, how):
    """A second signal on the heels of the first changes nothing."""
    server = start()
    server.ping()
    server.signal(signal.Signals[how])
    server.signal(signal.Signals[how])
    server.ends()


@needs_proc
@pytest.mark.parametrize("how", ENDINGS)
def test_server_ends_during_a_call(start, slow_ssh, how):
    """The call is given up, and the program it waits for is ended too."""
    server = start(env=slow_ssh.env)
    server.send(call(1, "get_server_info"))
    ssh = slow_ssh.started()
    end(server, how)
    server.ends()
    assert server.rest() == []
    until("ssh is gone", lambda: gone(ssh))


@needs_fixture
@pytest.mark.parametrize("how", ["EOF", "SIGTERM", "SIGINT"])
def test_fixture_ends_during_calls(start, how):
    """With every thread busy and the queue full."""
    server = start(program=FIXTURE)
    server.send(*[call(i, "test_slow", seconds=600)
                  for i in range(RUNNING + QUEUED)])
    server.send(request("fence", "ping"))
    server.reply("fence")
    end(server, how)
    server.ends()
    assert server.rest() == []


def test_call_nearly_done_at_eof_is_answered(start):
    """EOF lets calls finish that need only a moment."""
    server = start(env={"PATH": "/nonexistent"})
    server.send(*[call(i, "get_server_info") for i in range(20)])
    server.close_input()
    server.ends()
    assert sorted(m["id"] for m in server.rest()) == list(range(20))


# Descriptors.

@needs_proc
def test_stdout_is_kept_for_frames(start):
    """Descriptor 1 is stderr; the client's pipe is somewhere else."""
    server = start()
    server.ping()
    fds = {int(fd): os.readlink("/proc/%d/fd/%s" % (server.pid, fd))
           for fd in os.listdir("/proc/%d/fd" % server.pid)}
    pipe = "pipe:[%d]" % os.fstat(server.process.stdout.fileno()).st_ino
    errors = "pipe:[%d]" % os.fstat(server.process.stderr.fileno()).st_ino
    assert fds[1] == fds[2] == errors
    assert [fd for fd, target in fds.items() if target == pipe] > [2]


def shell(tmp_path, redirections, **options):
    """Run the server with the descriptors of a shell command."""
    return subprocess.run(
        ["sh", "-c", 'exec "$0" %s' % redirections, os.path.abspath(SERVER)],
        cwd=tmp_path, timeout=PATIENCE_S, capture_output=True, **options)


@pytest.mark.parametrize("missing", [
    "<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_missing_descriptors(tmp_path, missing):
    """Served to nobody, or with nothing to read: an orderly end."""
    ping = json.dumps(request(1, "ping")) + "\n"
    ended = shell(tmp_path, missing, input=ping.encode())
    assert ended.returncode == 0
    answered = "<" not in missing and " >" not in " " + missing
    assert ended.stdout == (b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
                            if answered else b"")


def test_missing_stdout_ends_in_time(start):
    server = start(stdout=None, preexec_fn=lambda: os.close(1))
    server.send(request(1, "ping"))
    server.close_input()
    server.ends()


def test_files_in_place_of_pipes(tmp_path):
    """Requests from a file, replies into a file."""
    messages = [request(i, "tools/list", {"_meta": MODERN_META})
                for i in range(100)]
    (tmp_path / "in").write_text("\n".join(map(json.dumps, messages)))
    ended = shell(tmp_path, "<in >out")
    assert ended.returncode == 0
    lines = (tmp_path / "out").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == list(range(100))


def test_full_disk_ends_it(tmp_path):
    """Replies that cannot be written: an end like any other."""
    (tmp_path / "in").write_text(json.dumps(request(1, "ping")) + "\n")
    ended = shell(tmp_path, "<in >/dev/full")
    assert ended.returncode == 0


def test_client_that_closes_its_reading_end(start):
    server = start(read=False)
    server.process.stdout.close()
    server.send(request(1, "ping"))
    server.ends()


@needs_proc
def test_client_that_closes_its_reading_end_during_a_call(start, slow_ssh):
    server = start(read=False, env=slow_ssh.env)
    server.send(call(1, "get_server_info"))
    ssh = slow_ssh.started()
    server.process.stdout.close()
    server.send(request(2, "ping"))
    server.ends()
    until("ssh is gone", lambda: gone(ssh))


def test_terminal(start):
    """A person who starts it by hand is told what it is; it still serves."""
    master, slave = pty.openpty()
    try:
        server = start(stdin=slave, record=False)
        os.close(slave)
        server.stderr_has("MCP server(.|\n)*setup")
        os.write(master, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert server.reply(1)["result"] == {}
        os.write(master, b"\x04")
        server.ends()
    finally:
        os.close(master)


def test_terminal_that_goes_away(start):
    master, slave = pty.openpty()
    server = start(stdin=slave)
    os.close(slave)
    server.stderr_has("setup")
    os.close(master)
    server.ends()


def test_no_hint_without_a_terminal(start):
    server = start()
    server.ping()
    server.close_input()
    server.ends()
    assert server.stderr() == ""


# A client that does not read.

def requests(count):
    return b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % i
                    for i in range(count))


def handshake(server):
    server.send(request("initialize", "initialize",
                        {"protocolVersion": "2025-11-25"}))


@needs_proc
@pytest.mark.parametrize("how", ["EOF", "SIGTERM"])
def test_client_that_does_not_read(start, how):
    """The server stops taking requests instead of hoarding replies."""
    server = start(read=False)
    handshake(server)
    data = requests(200000)
    sent = server.send_some(data, 1)
    assert sent < len(data)
    server.memory_is_bounded()
    end(server, how)
    server.ends()


@needs_proc
@pytest.mark.parametrize("how", ["EOF", "SIGTERM"])
def test_client_that_does_not_read_results_of_calls(start, how):
    """Nor do the calls' threads hoard, and all of them let go."""
    server = start(read=False, env={"PATH": "/nonexistent"})
    line = json.dumps(call(0, "get_server_info")).encode() + b"\n"
    data = b"".join(line.replace(b'"id": 0', b'"id": %d' % i)
                    for i in range(50000))
    assert server.send_some(data, 1) < len(data)
    server.memory_is_bounded()
    end(server, how)
    server.ends()


def test_client_that_does_not_read_and_closes(start):
    server = start(read=False)
    handshake(server)
    data = requests(200000)
    assert server.send_some(data, 1) < len(data)
    server.process.stdout.close()
    server.ends()


@needs_proc
def test_client_that_reads_late(start):
    """Nothing is lost: every request is answered, in order."""
    count = 60000 if BUILD == 1 else 20000
    server = start(read=False, record=False)
    handshake(server)
    data = requests(count)
    sent = server.send_some(data, 1)
    assert sent < len(data)
    server.read_stdout()
    assert b'"initialize"' in server.line()
    server.send(data[sent:])
    for i in range(count):
        line = server.line()
        assert int(re.search(rb'"id":(\d+)', line)[1]) == i
    server.memory_is_bounded()
    server.close_input()
    server.ends()


def test_pipes_that_do_not_block(start):
    """Somebody may have set O_NONBLOCK on what they gave us."""
    count = 20000 if BUILD == 1 else 5000
    stdin, to_server = os.pipe()
    from_server, stdout = os.pipe()
    os.set_blocking(stdin, False)
    os.set_blocking(stdout, False)
    server = start(stdin=stdin, stdout=stdout, record=False)
    os.close(stdin)
    os.close(stdout)
    server.process.stdin = open(to_server, "wb", 0)
    server.process.stdout = open(from_server, "rb", 0)
    os.set_blocking(to_server, False)
    handshake(server)
    # More than a pipe holds, before the first reply is read.
    data = requests(count)
    sent = server.send_some(data, 1)
    server.read_stdout()
    server.send(data[sent:])
    assert server.reply(count - 1)
    server.close_input()
    server.ends()


# Hostile input.

def padded(text, size):
    return (text * (size // len(text) + 1))[:size]


BOMBS = {
    "arrays": padded(b"[", LINE_MAX),
    "objects": padded(b'{"a":', LINE_MAX),
    "empty arrays": b"[" + padded(b"[],", LINE_MAX - 1),
    "numbers": b"[" + padded(b"1,", LINE_MAX - 1),
    "keys": b"{" + padded(b'"a":1,', LINE_MAX - 1),
    "one string": b'"' + padded(b"x", LINE_MAX - 2) + b'"',
    "escapes": b'"' + padded(b"\\u00e9", LINE_MAX - 2) + b'"',
    "quotes": padded(b'"', LINE_MAX),
    "NUL bytes": padded(b"\0", LINE_MAX),
    "blanks": padded(b" ", LINE_MAX),
    "no end": padded(b"x", 4 * LINE_MAX),
    "a long id": b'{"jsonrpc":"2.0","method":"ping","id":"'
                 + padded(b"x", 9 * MIB) + b'"}',
    "a long method": b'{"jsonrpc":"2.0","id":1,"method":"'
                     + padded(b"x", 9 * MIB) + b'"}',
    "a long argument": json.dumps(
        call(1, "get_server_info", x="x" * 9 * MIB)).encode(),
}


@needs_proc
@pytest.mark.parametrize("name", BOMBS)
def test_bomb(start, name):
    """The largest lines there are cost little and end nothing."""
    server = start(record=False)
    for _ in range(2):
        server.send(BOMBS[name] + b"\n")
    server.ping()
    server.memory_is_bounded()
    server.close_input()
    server.ends()


WORDS = ["jsonrpc", "2.0", "id", "method", "params", "_meta", "name", "ping",
         "arguments", "tools/call", "tools/list", "initialize", "cursor",
         "get_server_info", "protocolVersion", "2025-11-25", "2026-07-28",
         "notifications/cancelled", "requestId", "progressToken", "result",
         "error", *MODERN_META, "", "\0", "\ud800", "\U0001f600"]


def random_value(rng, depth=0):
    kind = rng.randrange(9 if depth < 4 else 7)
    if kind < 3:
        return rng.choice(WORDS)
    if kind < 7:
        return rng.choice([None, True, 0, -1, 2 ** 53 + 1, 2 ** 64, 1.5,
                           1e308, rng.randrange(100)])
    values = [random_value(rng, depth + 1) for _ in range(rng.randrange(5))]
    if kind == 7:
        return values
    return {rng.choice(WORDS): value for value in values}


def random_message(rng):
    """A message with the right fields and anything in them."""
    message = rng.choice([
        request(rng.randrange(100), "ping"),
        request(rng.randrange(100), "initialize",
                {"protocolVersion": "2025-06-18"}),
        request(rng.randrange(100), "tools/list", {"_meta": MODERN_META}),
        call(rng.randrange(100), "get_server_info", token=1),
        cancel(rng.randrange(100))])
    for _ in range(rng.randrange(3)):
        message[rng.choice(WORDS)] = random_value(rng)
    return message


def random_line(rng):
    kind = rng.randrange(4)
    if kind == 0:
        line = rng.randbytes(rng.randrange(300))
    elif kind == 1:
        line = json.dumps(random_value(rng)).encode()
    else:
        line = json.dumps(random_message(rng)).encode()
    if kind == 3:
        line = bytearray(line)
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(line))
            line[at:at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
            line = line or bytearray(b" ")
    return bytes(line).replace(b"\n", b" ") + b"\n"


@pytest.mark.parametrize("seed", range(4))
def test_garbage(start, seed):
    """500 lines of rubbish, different ones for each seed."""
    rng = random.Random(seed)
    server = start(record=False, env={"PATH": "/nonexistent"})
    for _ in range(500):
        server.send(random_line(rng))
    # It may be that a line has opened a legacy session, or that none has.
    server.ping("after all that")
    server.close_input()
    server.ends()


# Calls, many at once.

def test_same_id_while_the_first_is_running(start, slow_ssh):
    """Refused without the id, which belongs to the first one's reply."""
    server = start(env=slow_ssh.env)
    server.send(call(1, "get_server_info"))
    slow_ssh.started()
    server.send(request(1, "ping"))
    refused = server.message()
    assert "id" not in refused and refused["error"]["code"] == -32600
    server.ping(2)
    server.close_input()
    server.ends()
    assert server.rest() == []


@needs_proc
def test_cancelled_call_ends_and_is_silent(start, slow_ssh):
    server = start(env=slow_ssh.env)
    server.send(call(1, "get_server_info"))
    ssh = slow_ssh.started()
    server.send(cancel("1"), cancel(2))     # others' ids
    server.ping("fence")
    assert not gone(ssh)
    server.send(cancel(1))
    until("ssh is gone", lambda: gone(ssh))
    server.ping()
    server.close_input()
    server.ends()
    assert server.rest() == []


@needs_fixture
def test_calls_side_by_side(start):
    server = start(program=FIXTURE)
    begun = time.monotonic()
    server.send(*[call(i, "test_slow", seconds=1) for i in range(RUNNING)])
    replies = [server.message() for _ in range(RUNNING)]
    took = time.monotonic() - begun
    assert sorted(r["id"] for r in replies) == list(range(RUNNING))
    assert 1 <= took < 2.5 * SLOW


@needs_proc
@needs_fixture
def test_more_calls_than_there_is_room_for(start):
    """So many run, so many wait, the rest is told; cancelling makes room."""
    room = RUNNING + QUEUED
    last = room - 100           # of those that would take long
    server = start(program=FIXTURE)
    server.send(*[call(i, "test_slow", seconds=600 if i < last else 0)
                  for i in range(room + 12)])
    for i in range(room, room + 12):
        refused = server.message()
        assert refused["id"] == i
        assert refused["error"]["code"] == -32603
        assert "too many calls" in refused["error"]["message"]
    server.ping()
    # The main thread, the writer, the calls, and what a sanitizer may add.
    until("all threads run",
          lambda: server.proc_status("Threads") >= RUNNING + 2)
    assert server.proc_status("Threads") <= RUNNING + 4

    # All that wait, last to first, then those that run.
    server.send(*[cancel(i) for i in reversed(range(last))])
    answered = [server.message() for _ in range(room - last)]
    assert sorted(m["id"] for m in answered) == list(range(last, room))
    assert all(m["result"]["content"] for m in answered)

    # There is room again.
    server.send(call("one more", "test_slow", seconds=0))
    assert server.reply("one more")["result"]["content"]
    server.close_input()
    server.ends()
    assert server.rest() == []


@needs_fixture
def test_cancelled_calls_are_silent(start):
    """Running and queued, also when their time would be over."""
    server = start(program=FIXTURE)
    server.send(*[call(i, "test_slow", seconds=1) for i in range(RUNNING)])
    server.send(call("queued", "test_slow", seconds=0), cancel("queued"))
    server.send(*[cancel(i) for i in range(1, RUNNING)])
    server.send(call("fence", "test_slow", seconds=1.5))
    server.reply("fence")
    assert [m["id"] for m in server.skipped] == [0]


@needs_fixture
@pytest.mark.parametrize("token", [0, "a token", 2 ** 53 + 1])
def test_progress_with_a_token(start, token):
    server = start(program=FIXTURE)
    server.send(call(1, "test_tool_with_progress", token=token))
    assert server.reply(1)["result"]["content"]
    told = [m["params"] for m in server.skipped]
    assert all(m["method"] == "notifications/progress"
               for m in server.skipped)
    assert len(told) >= 2
    assert all(p["progressToken"] == token for p in told)
    values = [p["progress"] for p in told]
    assert values == sorted(set(values))


@needs_fixture
def test_no_progress_without_a_token(start):
    server = start(program=FIXTURE)
    server.send(call(1, "test_tool_with_progress"))
    server.reply(1)
    assert server.skipped == []


@needs_fixture
def test_no_progress_after_cancelling(start):
    server = start(program=FIXTURE)
    server.send(call(1, "test_tool_with_progress", token=1))
    assert server.message()["params"]["progressToken"] == 1
    server.send(cancel(1))
    server.ping()
    server.skipped.clear()      # what crossed with the cancellation
    server.send(call(2, "test_slow", seconds=0.5))
    server.reply(2)
    assert server.skipped == []


@needs_fixture
def test_result_too_large_for_a_line(start):
    server = start(program=FIXTURE)
    server.send(call(1, "test_flood", bytes=LINE_MAX))
    error = server.reply(1)["error"]
    assert error["code"] == -32603 and "larger than" in error["message"]
    server.send(call(2, "test_flood", bytes=LINE_MAX - 10000))
    assert len(server.line()) <= LINE_MAX
