#!/usr/bin/env python3
"""Much at once, for long: one server with twenty sandboxes and five hundred
calls in flight; then clients that misbehave, and ten servers that share a
state directory.

Every reply is checked.  Memory and open files are looked at once a second: the
last third of the time may not need more than the one before.  A latency is
that of a client: most of the five hundred wait for their turn, as 64 run.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import queue
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

from lib import far, peers
from lib.record import Record

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}
SECTION = "Load"
WAIT_S = 120            # for one reply
MEMORY_KB = 64 * 1024
END_S = 2


class Server:
    """Ours, with replies handed to whoever asked."""

    def __init__(self, binary, place, entries, read=True):
        for name in ("home", "state", "run"):
            (place / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("REMOTE_", "XDG_", "SSH_"))}
        env.update(HOME=str(place / "home"), REMOTE_SANDBOX_SERVICE="none",
                   REMOTE_SANDBOX_MCP_HOME=str(place / "state"),
                   XDG_RUNTIME_DIR=str(place / "run"),
                   REMOTE_SANDBOX_LIST=json.dumps(entries))
        self.run_dir = place / "run"
        self.process = subprocess.Popen(
            [binary], env=env, cwd=place, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.replies = queue.Queue()
        self.lock = threading.Lock()
        if read:
            threading.Thread(target=self.collect, daemon=True).start()

    def collect(self):
        for line in self.process.stdout:
            self.replies.put((time.monotonic(), line))

    def send(self, number, tool, **arguments):
        line = json.dumps({
            "jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": META}})
        with self.lock:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    def reply(self):
        """When it came, its number, the result or None, why it failed."""
        when, line = self.replies.get(timeout=WAIT_S)
        message = json.loads(line)
        result = message.get("result")
        if result is None:
            return when, message.get("id"), None, message["error"]["message"]
        if result.get("isError"):
            return when, message["id"], None, result["content"][0]["text"]
        return when, message["id"], result["structuredContent"], ""

    def memory_kb(self, field="VmRSS"):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition(field + ":")[2].split()[0])

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def close(self):
        """How long it took to end."""
        began = time.monotonic()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(timeout=30)
        took = time.monotonic() - began
        for path in self.run_dir.rglob("*"):
            if path.is_socket():
                subprocess.run(["ssh", "-O", "exit", "-S", path, "x"],
                               capture_output=True)
        return took


class Mix:
    """What is asked, and what has to be answered."""

    def __init__(self, sandboxes, file):
        self.sandboxes, self.file = sandboxes, str(file)
        self.asked = {}

    def send(self, server, number):
        box = self.sandboxes[number % len(self.sandboxes)]
        self.asked[number] = time.monotonic()
        if number % 10 == 3:
            server.send(number, "read_remote_file", remote_path=self.file,
                        sandbox_name=box)
        elif number % 10 == 7:
            server.send(number, "list_remote_files", sandbox_name=box,
                        remote_path=str(pathlib.Path(self.file).parent))
        else:
            server.send(number, "exec_bash", command=f"echo {number}",
                        sandbox_name=box)

    def right(self, number, result):
        if result is None:
            return False
        if number % 10 == 3:
            return result["content"] == "content\n"
        if number % 10 == 7:
            return self.file in [e["path"] for e in result["entries"]]
        return (result["exit_code"], result["stdout"]) == (0, f"{number}\n")


class Samples:
    """Memory and open files, once a second."""

    def __init__(self, server):
        self.server, self.rows, self.done = server, [], threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.done.wait(1):
            with contextlib.suppress(OSError):
                self.rows.append((self.server.memory_kb(),
                                  self.server.open_files()))

    def thirds(self, column):
        """Medians of the second and the last third."""
        values = [row[column] for row in self.rows]
        third = max(len(values) // 3, 1)
        return (statistics.median(values[third:2 * third] or values),
                statistics.median(values[-third:]))


def crowd(server, mix, flying, seconds):
    """Keep so many calls in flight; latencies and what failed."""
    took, failed = [], collections.Counter()
    end = time.monotonic() + seconds
    number = 0
    for number in range(flying):
        mix.send(server, number)
    left = flying
    while left:
        when, answered, result, words = server.reply()
        left -= 1
        took.append(when - mix.asked.pop(answered))
        if not mix.right(answered, result):
            failed[words or "a wrong answer"] += 1
        if when < end:
            number += 1
            left += 1
            mix.send(server, number)
    return took, failed


def percentile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def long_run(stage, options, record):
    server = Server(options.binary, stage.dir / "one", stage.entries)
    stage.stack.callback(server.close)
    mix = Mix([entry["name"] for entry in stage.entries], stage.file)
    crowd(server, mix, options.calls, 1)        # all logins, all threads
    samples = Samples(server)
    began = time.monotonic()
    took, failed = crowd(server, mix, options.calls, options.minutes * 60)
    seconds = time.monotonic() - began
    samples.done.set()
    rss, files = samples.thirds(0), samples.thirds(1)
    print(f"{len(stage.entries)} sandboxes, {options.calls} calls in flight, "
          f"{seconds:.0f} s: {len(took)} calls, {len(took) / seconds:.0f} a "
          f"second, {sum(failed.values())} failed")
    for words, times in failed.most_common(5):
        print(f"  {times} x {words}")
    print(f"latency p50 {percentile(took, 0.5) * 1000:.0f} ms, "
          f"p99 {percentile(took, 0.99) * 1000:.0f} ms")
    print(f"memory {rss[0] / 1024:.1f} MB, then {rss[1] / 1024:.1f} MB; "
          f"open files {files[0]:.0f}, then {files[1]:.0f}")
    what = f"{len(stage.entries)} sandboxes, {options.calls} calls in flight"
    for title, unit, value in (
            ("calls a second", "/s", len(took) / seconds),
            ("latency of half of them, at most", "ms",
             percentile(took, 0.5) * 1000),
            ("latency of 99 %, at most", "ms", percentile(took, 0.99) * 1000),
            ("memory", "MB", rss[1] / 1024)):
        record.row(SECTION, f"{what}: {title}", unit, unit == "/s").add(
            peers.Ours.name, [value])
    record.must("no call fails", not failed)
    record.target("memory is flat", rss[1] <= rss[0] * 1.05 + 512)
    record.target("open files are flat", files[1] <= files[0] * 1.05 + 8)
    record.target(f"it ends within {END_S} s", server.close() <= END_S)


def flood(stage, options, record):
    """Calls as fast as they are taken: all are answered, many by a no."""
    server = Server(options.binary, stage.dir / "flood", stage.entries[:1])
    stage.stack.callback(server.close)
    total = 20000
    sender = threading.Thread(target=lambda: [
        server.send(n, "exec_bash", command="echo x") for n in range(total)])
    sender.start()
    good = refused = other = 0
    for _ in range(total):
        _, _, result, words = server.reply()
        good += result is not None and result["stdout"] == "x\n"
        refused += "too many calls" in words
        other += result is None and "too many calls" not in words
    sender.join()
    peak = server.memory_kb("VmHWM")
    print(f"a flood of {total} calls: {good} done, {refused} refused, "
          f"{other} failed, at most {peak / 1024:.0f} MB")
    record.must("every call of a flood has its answer",
                good + refused == total)
    record.target("a flood needs less than 64 MB", peak < MEMORY_KB)


def deaf(stage, options, record):
    """A client that never reads: it is held up, and nobody else is."""
    server = Server(options.binary, stage.dir / "deaf", stage.entries[:1],
                    read=False)
    os.set_blocking(server.process.stdin.fileno(), False)
    sent, quiet = 0, 0
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list",
                       "params": {"_meta": META}}).encode() + b"\n"
    while quiet < 200:
        try:
            sent += os.write(server.process.stdin.fileno(), line)
            quiet = 0
        except BlockingIOError:
            quiet += 1
            time.sleep(0.01)
    peak = server.memory_kb("VmHWM")
    took = server.close()
    print(f"a client that never reads: held up after {sent // len(line)} "
          f"requests, at most {peak / 1024:.0f} MB, ended in {took:.2f} s")
    record.target("one that never reads costs less than 64 MB",
                  peak < MEMORY_KB)
    record.target(f"and the end comes within {END_S} s", took <= END_S)


def family(stage, options, record):
    """Ten servers, one state directory, the same sandboxes."""
    servers = [Server(options.binary, stage.dir / "ten", stage.entries[:3])
               for _ in range(10)]
    failed = collections.Counter()

    def work(server, who):
        mix = Mix([entry["name"] for entry in stage.entries[:3]], stage.file)
        _, bad = crowd(server, mix, 8, 3)
        failed.update(bad)
        server.send(f"job{who}", "exec_bash_background", command="true",
                    session_name=f"load-{os.getpid()}-{who}",
                    ensure_watchdog=False)
        _, _, result, words = server.reply()
        if result is None or "watch_id" not in result:
            failed[words or "no watch"] += 1

    threads = [threading.Thread(target=work, args=(server, n))
               for n, server in enumerate(servers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    masters = sum(path.is_socket()
                  for path in (stage.dir / "ten" / "run").rglob("*"))
    print(f"10 servers on one state directory: {sum(failed.values())} calls "
          f"failed, {masters} connections for 3 sandboxes")
    for words, times in failed.most_common(5):
        print(f"  {times} x {words}")
    record.must("none of ten servers harms another", not failed)
    for server in servers:
        server.close()


class Stage:
    """So many sshd's, and a file to read."""

    def __init__(self, stack, options):
        self.stack = stack
        self.dir = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="rl"))
        stack.callback(shutil.rmtree, self.dir, ignore_errors=True)
        self.dir.chmod(0o755)
        (self.dir / "files").mkdir()
        self.file = self.dir / "files" / "file"
        self.file.write_text("content\n")
        user = far.me()
        if far.ROOT:
            account = far.Account(self.dir)
            stack.callback(account.close)
            user = account.name
        self.entries = []
        for n in range(options.sandboxes):
            place = self.dir / f"sshd{n}"
            place.mkdir()
            sshd = far.Sshd(place)
            stack.callback(sshd.close)
            self.entries.append({
                "name": f"box{n}", "host": "127.0.0.1", "port": sshd.port,
                "user": user, "key_file": str(sshd.key)})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--sandboxes", type=int, default=20)
    parser.add_argument("--calls", type=int, default=500)
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    if not far.SSHD:
        print("skipped: there is no sshd")
        return 0
    peers.Ours.binary = options.binary
    record = Record("load")
    with contextlib.ExitStack() as stack:
        stage = Stage(stack, options)
        long_run(stage, options, record)
        flood(stage, options, record)
        deaf(stage, options, record)
        family(stage, options, record)
    return record.end({})


if __name__ == "__main__":
    raise SystemExit(main())
