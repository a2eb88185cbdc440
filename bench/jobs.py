#!/usr/bin/env python3
"""The cost of starting a background job and of looking at one, next to the
server in Python whose tools ours has.

A private sshd on loopback, near and 25 ms away each way (bench/lib/relay.py).
Both are logged in before anything is measured and take turns, with a pause
after each.  A start is that of `true` under a new name; a poll that of a job
which runs and whose log has a hundred lines.
"""

import argparse
import contextlib
import gc
import itertools
import json
import os
import pathlib
import statistics
import sys
import time

from lib import peers
from lib.relay import Relay
from lib.stage import Stage, Verdict, jobs_can_run, report_load

DELAY_MS = 25
PAUSE_S = 0.1       # a start has something to do after its reply

# What the figures have to reach, in round trips.
START = 1.2
POLL = 1.2

NAMES = itertools.count(1)
FOLLOWED = "followed"


class Player:
    """A server with a job that runs."""

    def __init__(self, server):
        self.server = server
        self.log = self.start(FOLLOWED, "seq 100; exec sleep 600")[0]

    def start(self, name, command):
        text, took = self.server.call("exec_bash_background", {
            "command": command, "session_name": name, "watch": False})
        result = json.loads(text)
        if result.get("status") != "started":
            raise peers.Broken(text[:300])
        return result["log_file"], took

    def poll(self):
        text, took = self.server.call("check_background_task", {
            "tmux_session": FOLLOWED, "log_file": self.log})
        if json.loads(text).get("running") is not True:
            raise peers.Broken(text[:300])
        return took

    def close(self):
        self.server.run("tmux kill-session -t '=%s'; pkill -u $(id -u) "
                        "-x -f 'sleep 600'" % FOLLOWED)


class Bench(Stage):
    def players(self, stack, port, user):
        """Each has an account of its own, so names do not meet."""
        found = {}
        for kind in (peers.Ours, peers.Original):
            server = self.start(stack, kind, port, user[kind])
            if server is None:
                continue
            try:
                found[kind.name] = Player(server)
                stack.callback(found[kind.name].close)
            except peers.Broken as reason:
                if kind is peers.Ours:
                    raise SystemExit(f"our server does not work: {reason}")
                self.skipped[kind.name] = str(reason)
        return found

    def measure(self, port, user, rounds, relay=None):
        """{name: (start, poll)} in ms, and the round trip."""
        took, trips = {}, []
        with contextlib.ExitStack() as stack:
            players = self.players(stack, port, user)
            took = {name: ([], []) for name in players}
            for _ in range(rounds):
                for name, player in players.items():
                    time.sleep(PAUSE_S)
                    took[name][0].append(
                        player.start(f"job{next(NAMES)}", "true")[1] * 1000)
                    time.sleep(PAUSE_S)
                    took[name][1].append(player.poll() * 1000)
                if relay:
                    trips.append(relay.round_trip() * 1000)
        return ({name: tuple(map(statistics.median, both))
                 for name, both in took.items()},
                statistics.median(trips) if trips else None)


def report(title, took, trip):
    print(f"{title:24}{'start':>12}{'poll':>12}   median ms"
          + (", and round trips" if trip else ""))
    for name, both in took.items():
        row = "".join(f"{ms:12.1f}" for ms in both)
        if trip:
            row += "".join(f"{ms / trip:8.2f}" for ms in both)
        print(f"{name:24}{row}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--realtime", action="store_true",
                        help="run all of it before other work (root only)")
    options = parser.parse_args()
    if not jobs_can_run(options):
        return 0
    if options.realtime:        # the children inherit it
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    gc.disable()
    verdict = Verdict()
    report_load(options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        user = {kind: bench.account()
                for kind in (peers.Ours, peers.Original)}
        relay = Relay(DELAY_MS, bench.sshd.port)
        stack.callback(relay.close)
        took, _ = bench.measure(bench.sshd.port, user, options.rounds)
        report("loopback", took, None)
        took, trip = bench.measure(relay.port, user, options.rounds, relay)
        report(f"{2 * DELAY_MS} ms away", took, trip)
        for name, why in bench.skipped.items():
            print(f"skipped: {name}: {why}")
        start, poll = (ms / trip for ms in took[peers.Ours.name])
    verdict.target(f"a start takes at most {START} round trips of "
                   f"{trip:.2f} ms ({start:.2f})", start <= START)
    verdict.target(f"a poll takes at most {POLL} ({poll:.2f})", poll <= POLL)
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
