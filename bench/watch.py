#!/usr/bin/env python3
"""What the watchdog costs while it looks after many jobs, next to that of the
server in Python whose tools ours has.

200 watches at the default interval on five accounts of a private sshd, one job
on each that runs and whose log has a hundred lines.  Both daemons run at the
same time.  The measurement begins when each has looked at all once; the looks
that follow are spread over the interval (ours does so itself, for the other one
it is done here), so that the window has its share of them.
"""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import time

from lib import far, peers
from lib.record import Record
from lib.stage import Stage, options_for, progress, ready

SECTION = "The watchdog"
WATCHES = 200
BOXES = 5
INTERVAL_S = 300
FIRST_S = 240       # for the first look at all of them

# What ours has to reach.
MEMORY_MB = 15
CPU_PERCENT = 1

TICKS = os.sysconf("SC_CLK_TCK")


class Many:
    """A server with a sandbox for each of these accounts."""

    users = ()

    def setup(self, place):
        command, env, *rest = super().setup(place)
        self.state = place.dir / self.state_dir
        self.env = env | {"REMOTE_SANDBOX_LIST": boxes(place, self.users),
                          "REMOTE_SANDBOX_SERVICE": "none",
                          "REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS": "1"}
        return command, self.env, *rest


class Ours(Many, peers.Ours):
    state_dir = "state"

    def spread(self):
        pass


class Original(Many, peers.Original):
    state_dir = ".local/state/remote-sandbox-mcp"

    def spread(self):
        with database(self) as db, db:
            db.execute("UPDATE watches SET next_check_ts = ? + id * ? / ?",
                       (int(time.time()), INTERVAL_S, WATCHES))


def boxes(place, users):
    return json.dumps([
        {"name": user, "host": "127.0.0.1", "port": place.port, "user": user,
         "key_file": place.key} for user in users])


def database(server):
    return contextlib.closing(sqlite3.connect(
        server.state / "watchdog.sqlite3", timeout=30))


class Daemon:
    """The watchdog of a server that made its watches and went."""

    def __init__(self, server, command):
        self.server = server
        self.home = server.place.dir
        self.process = subprocess.Popen(
            [command, "daemon"], cwd=self.home,
            env=server.place.environment(**server.env),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.pid = self.process.pid

    def looked(self, since):
        """At how many watches?"""
        with database(self.server) as db:
            return db.execute("SELECT count(*) FROM watches WHERE "
                              "last_checked_ts > ?", (since,)).fetchone()[0]

    def helpers(self):
        """Processes of its home that are not itself: ssh."""
        mark = b"HOME=%s\0" % os.fsencode(self.home)
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes() + b"\0":
                    found.append(int(path.parent.name))
        return [pid for pid in found if pid != self.pid]

    def seconds(self):
        """Of the processor: its own, and those of what it started."""
        own, children = cpu(self.pid)
        return own, children + sum(sum(cpu(pid)) for pid in self.helpers())

    def memory_mb(self):
        return (memory(self.pid, "VmRSS"), memory(self.pid, "VmHWM"),
                sum(memory(pid, "VmRSS") for pid in self.helpers()))

    def close(self):
        self.process.terminate()
        peers.end(self.process)
        for path in self.home.rglob("*"):
            if path.is_socket():
                peers.end_master(path)


def cpu(pid):
    """Seconds of a process, and of those children that it waited for."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    fields = [int(n) for n in text.rpartition(")")[2].split()[11:15]]
    return sum(fields[:2]) / TICKS, sum(fields[2:]) / TICKS


def memory(pid, field):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in pathlib.Path(f"/proc/{pid}/status").read_text(
                ).splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0


class Bench(Stage):
    def watched(self, kind, users, stack):
        """Its daemon, once all watches are made; None if it cannot be had."""
        kind.users = users
        with contextlib.ExitStack() as inner:
            server = self.start(inner, kind, self.sshd.port, users[0])
            if server is None:
                return None
            for number in range(WATCHES):
                text, _ = server.call("watch_background_task", {
                    "tmux_session": "job", "log_file": ".codex_logs/job.log",
                    "sandbox_name": users[number % BOXES],
                    "notify_local": False, "ensure_watchdog": False})
                if "watch_id" not in json.loads(text):
                    raise SystemExit(f"{kind.name}: {text[:300]}")
            if kind is Ours:
                self.start_jobs(server)
        daemon = Daemon(server, server.process.args[0])
        stack.callback(daemon.close)
        return daemon

    def start_jobs(self, server):
        for user in server.users:
            # Jobs outlive all but this; the accounts are ours alone.
            self.stack.callback(subprocess.run, ["pkill", "-KILL", "-u", user])
            server.call("exec_bash_background", {
                "command": "seq 100; exec sleep 900", "watch": False,
                "session_name": "job", "sandbox_name": user})


def measure(daemons, window):
    """{name: (own cpu %, helpers' %, looks)}."""
    for daemon in daemons.values():
        far.until(f"{daemon.server.name} has looked at all",
                  lambda d=daemon: d.looked(0) == WATCHES, FIRST_S)
        daemon.server.spread()
    began, since = time.monotonic(), int(time.time())
    before = {name: daemon.seconds() for name, daemon in daemons.items()}
    time.sleep(window)
    took = time.monotonic() - began
    after = {name: daemon.seconds() for name, daemon in daemons.items()}
    # A tick at least: what is less cannot be seen.
    return {name: tuple(100 * max(b - a, 1 / TICKS) / took for a, b in zip(
                before[name], after[name])) + (daemon.looked(since),)
            for name, daemon in daemons.items()}


def report(figures, memory, record):
    print(f"{WATCHES} watches on {BOXES} sandboxes, every {INTERVAL_S} s")
    print(f"{'':24}{'CPU %':>8}{'MB':>8}{'at most':>9}{'looks':>7}"
          f"{'its ssh: CPU %':>17}{'MB':>7}")
    what = f"{WATCHES} watches on {BOXES} sandboxes"
    rows = [record.row(SECTION, f"{what}: processor", "%"),
            record.row(SECTION, f"{what}: memory at its peak", "MB"),
            record.row(SECTION, f"{what}: processor, with its ssh", "%"),
            record.row(SECTION, f"{what}: memory, with its ssh", "MB")]
    for name, (own, helpers, looks) in figures.items():
        now, peak, others = memory[name]
        print(f"{name:24}{own:8.2f}{now:8.1f}{peak:9.1f}{looks:7}"
              f"{helpers:17.2f}{others:7.1f}")
        for row, value in zip(rows, (own, peak, own + helpers, now + others)):
            row.add(name, [value])


def main():
    parser = options_for(__doc__)
    parser.add_argument("--window", type=int, default=90, metavar="SECONDS",
                        help="how long to measure")
    options = parser.parse_args()
    if not ready(options, "tmux", root=True):
        return 0
    record = Record("watch", options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        users = [bench.account() for _ in range(BOXES)]
        daemons = {}
        for kind in (Ours, Original):
            progress(f"watches of {kind.name}")
            daemon = bench.watched(kind, users, stack)
            if daemon is not None:
                daemons[kind.name] = daemon
        progress("both look at all, then are measured")
        figures = measure(daemons, options.window)
        memory_mb = {name: daemon.memory_mb()
                     for name, daemon in daemons.items()}
        report(figures, memory_mb, record)
    own, peak = figures[Ours.name][0], memory_mb[Ours.name][1]
    record.target(f"the daemon takes at most {MEMORY_MB} MB ({peak:.1f})",
                  peak <= MEMORY_MB)
    record.target(f"and less than {CPU_PERCENT} % of a processor "
                  f"({own:.2f})", own < CPU_PERCENT)
    return record.end(bench.skipped)


if __name__ == "__main__":
    sys.exit(main())
