"""The server as a test sees it: started, spoken to, watched and ended.

What the tests run against comes from the environment:

    RSMCP_SERVER    the program under test
    RSMCP_FIXTURE   the same engine with tools made for tests, if it was built
    RSMCP_SLOW      how many times slower and larger this build may be
    RSMCP_WIRE_DIR  where conversations are recorded for ../wire/check.py
"""

import json
import os
import pathlib
import queue
import re
import select
import signal
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent
                       / "wire"))
import tap  # noqa: E402

SERVER = os.environ.get("RSMCP_SERVER", "")
FIXTURE = os.environ.get("RSMCP_FIXTURE", "")
BUILD = float(os.environ.get("RSMCP_SLOW") or 1)
# Times in tests tell what hangs from what does not, on a machine that has
# other work; how fast things are is measured by the benchmarks.
SLOW = max(BUILD, 4)

PATIENCE_S = 20 * SLOW          # for what must come, however busy the machine
END_S = 5 * SLOW                # for an exit
MEMORY_KB = 64 * 1024 * BUILD   # for a server under attack

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
MODERN_META = {VERSION: "2026-07-28", CAPABILITIES: {}}

needs_fixture = pytest.mark.skipif(
    not FIXTURE, reason="RSMCP_FIXTURE is not set: fixture-server not built")
needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/fd"), reason="there is no /proc here")


def environment(home, **more):
    """Ours, but with nothing of the user's own files in it, without the key
    agent of who runs the tests, and without a watchdog that nobody would end.
    None takes a variable out."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("XDG_", "REMOTE_", "SSH_"))}
    env |= {"HOME": str(home), "SSH_AUTH_SOCK": "",
            "REMOTE_SANDBOX_SERVICE": "none", **more}
    return {name: value for name, value in env.items() if value is not None}


def request(request_id, method, params=None):
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return message


def call(request_id, tool, token=None, **arguments):
    """A modern tools/call: it needs no handshake."""
    meta = dict(MODERN_META)
    if token is not None:
        meta["progressToken"] = token
    return request(request_id, "tools/call",
                   {"name": tool, "arguments": arguments, "_meta": meta})


def cancel(request_id):
    return {"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": request_id}}


def until(what, condition, timeout=PATIENCE_S):
    """Ask again and again; the first answer that is true."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "waited in vain until " + what
        time.sleep(0.005)


def gone(pid):
    """Has the process ended?  (Nobody may have asked for its status.)"""
    try:
        stat = pathlib.Path("/proc/%d/stat" % pid).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


class Server:
    """A server, with what it says collected by threads.

    With read=False nobody reads its stdout until read_stdout() is called.
    "popen" are further arguments of Popen, to give it other descriptors.
    """

    def __init__(self, home, *args, program=None, env=None, read=True,
                 record=True, **popen):
        program = program or SERVER
        assert program, "RSMCP_SERVER must name the server"
        self.record = None
        if record and read and os.environ.get("RSMCP_WIRE_DIR"):
            self.record = tap.Record(os.environ["RSMCP_WIRE_DIR"], program)
            self.said = tap.Lines(self.record, ">")
            self.heard = tap.Lines(self.record, "<")
        streams = {name: popen.pop(name, subprocess.PIPE)
                   for name in ("stdin", "stdout", "stderr")}
        self.process = subprocess.Popen(
            [os.path.abspath(program), *args], cwd=home, bufsize=0,
            env=environment(home, **(env or {})), start_new_session=True,
            **streams, **popen)
        self.pid = self.process.pid
        if self.process.stdin:
            os.set_blocking(self.process.stdin.fileno(), False)
        self.queue = queue.Queue()      # messages, then None at the end
        self.skipped = []               # passed over by reply()
        self.readers = []
        self.stderr_bytes = bytearray()
        if self.process.stderr:
            self.thread(self.collect_stderr)
        if self.process.stdout and read:
            self.read_stdout()

    def thread(self, function):
        thread = threading.Thread(target=function, daemon=True)
        thread.start()
        self.readers.append(thread)

    # What it says.

    def read_stdout(self):
        self.thread(self.collect_stdout)

    def collect_stdout(self):
        with open(self.process.stdout.fileno(), "rb", closefd=False) as out:
            for line in out:
                if self.record:
                    self.heard.feed(line)
                self.queue.put(line)
        self.queue.put(None)

    def collect_stderr(self):
        while data := self.process.stderr.read(1 << 16):
            self.stderr_bytes += data

    def stderr(self):
        return bytes(self.stderr_bytes).decode("utf-8", "replace")

    def stderr_has(self, pattern):
        until("stderr has " + pattern,
              lambda: re.search(pattern, self.stderr()))

    def line(self, timeout=None):
        """The next line as bytes; None at the end of the output."""
        try:
            line = self.queue.get(timeout=timeout or PATIENCE_S)
        except queue.Empty:
            raise AssertionError("the server says nothing; stderr:\n"
                                 + self.stderr()) from None
        if line is None:
            self.queue.put(None)
        return line

    def message(self):
        """The next message; None at the end of the output."""
        line = self.line()
        if line is None:
            return None
        assert line.endswith(b"\n"), line[-200:]
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def reply(self, request_id):
        """The reply to this request; what comes before it is skipped."""
        while True:
            message = self.message()
            assert message, "the output ended before the reply to %r; " \
                "stderr:\n%s" % (request_id, self.stderr())
            if message.get("id") == request_id and "method" not in message:
                return message
            self.skipped.append(message)

    def rest(self):
        """All that was not looked at, once the server has ended."""
        messages = self.skipped
        while message := self.message():
            messages.append(message)
        return messages

    # What is said to it.

    def send(self, *messages):
        """Messages, or bytes as they are; what is not taken is an error."""
        data = b"".join(m if isinstance(m, bytes)
                        else json.dumps(m).encode() + b"\n"
                        for m in messages)
        sent = self.send_some(data, PATIENCE_S)
        assert sent == len(data), "the server does not read its input"

    def send_some(self, data, stall):
        """Write until all is taken, or nothing is for so long; how much."""
        if self.record:
            self.said.feed(data)
        fd = self.process.stdin.fileno()
        done = 0
        view = memoryview(data)
        while done < len(data):
            if not select.select([], [fd], [], stall)[1]:
                break
            try:
                done += os.write(fd, view[done:done + (1 << 20)])
            except BrokenPipeError:
                raise AssertionError("the server does not read any more; "
                                     "stderr:\n" + self.stderr()) from None
        return done

    def ask(self, *args):
        """Send a request and wait for its reply."""
        message = request(*args)
        self.send(message)
        return self.reply(message["id"])

    def ping(self, request_id="ping"):
        assert self.ask(request_id, "ping")["result"] == {}

    def initialize(self, version="2025-11-25"):
        reply = self.ask("initialize", "initialize", {
            "protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}})
        assert reply["result"]["protocolVersion"] == version

    # Its process.

    def proc_status(self, field):
        """A number of /proc/PID/status."""
        text = pathlib.Path("/proc/%d/status" % self.pid).read_text()
        return int(re.search(r"^%s:\s+(\d+)" % field, text, re.M)[1])

    def memory_is_bounded(self, most_kb=MEMORY_KB):
        peak = self.proc_status("VmHWM")
        print("at most %d MB" % (peak / 1024))
        assert peak < most_kb

    def signal(self, number):
        self.process.send_signal(number)

    def close_input(self):
        self.process.stdin.close()

    def ends(self, within=END_S, status=0):
        """It ends by itself, in time, in good order."""
        begun = time.monotonic()
        try:
            got = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                "still running after %g s; stderr:\n%s"
                % (within, self.stderr())) from None
        print("ended in %d ms" % ((time.monotonic() - begun) * 1000))
        assert got == status, "status %d; stderr:\n%s" % (got, self.stderr())

    def kill(self):
        """Whatever happened, leave nothing behind."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for thread in self.readers:
            thread.join(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout,
                       self.process.stderr):
            if stream:
                stream.close()
        if self.record:
            self.said.end()
            os.close(self.record.fd)
            self.record = None
