#!/usr/bin/env python3
"""The cost of starting a background job and of looking at one, next to others.

A private sshd on loopback, near and 25 ms away each way (bench/lib/relay.py).
The server in Python whose tools ours has knows jobs; with the others it is done
by hand, by commands (HAND, POLL_HAND below): `nohup`, with the output in a file
and the exit status in another, and a look at both.  All are logged in before
anything is measured and take turns, with a pause after each.  A start is that of
`true` under a new name; a poll that of a job which runs and whose log has a
hundred lines.
"""

import contextlib
import itertools
import json
import statistics
import sys
import time

from lib import peers
from lib.record import Record
from lib.relay import Relay
from lib.stage import Stage, options_for, progress, ready

SECTION = "Jobs"
DELAY_MS = 25
PAUSE_S = 0.1       # a start has something to do after its reply

# What the figures have to reach, in round trips.
START = 1.2
POLL = 1.2

KINDS = peers.EVERYONE
KNOW = (peers.Ours.name, peers.Original.name)       # what a job is
NAMES = itertools.count(1)
FOLLOWED = "followed"


# As a person would do it, who wants to know the end as well.
HAND = ("mkdir -p jobs && cd jobs && {{ nohup setsid sh -c '{command}; "
        "echo $? >{name}.end' >{name}.log 2>&1 </dev/null & }} && "
        "echo begun-$((40+2))")
POLL_HAND = ("cd jobs; if [ -e {name}.end ]; then cat {name}.end; "
             "else echo runs-$((40+2)); fi; tail -n 50 {name}.log")


class Player:
    """A server with tools for jobs, and a job that runs."""

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


class Hand:
    """One that can run commands, and a job that runs."""

    def __init__(self, one):
        self.one = one
        self.start(FOLLOWED, "seq 100; exec sleep 600")

    def ask(self, command, wanted):
        text, took = self.one.run(command)
        if wanted not in text:
            raise peers.Broken(f"a strange reply: {text[:300]}")
        return took

    def start(self, name, command):
        return None, self.ask(HAND.format(name=name, command=command),
                              "begun-42")

    def poll(self):
        return self.ask(POLL_HAND.format(name=FOLLOWED), "runs-42")

    def close(self):
        with contextlib.suppress(peers.Broken):
            self.one.run("pkill -u $(id -u) -x -f 'sleep 600'; true")


def player(one):
    return (Player if one.name in KNOW else Hand)(one)


class Bench(Stage):
    def players(self, stack, port, user):
        """Each has an account of its own, so names do not meet."""
        found = {}
        for kind in KINDS:
            if kind.name in self.skipped:
                continue
            server = self.start(stack, kind, port, user[kind])
            one = server and self.attempt(kind, lambda: player(server))
            if one:
                found[kind] = one
                stack.callback(one.close)
        return found

    def measure(self, port, user, relay=None):
        """{name: (starts, polls)} in ms, and the round trip."""
        trips = []
        with contextlib.ExitStack() as stack:
            players = self.players(stack, port, user)
            took = {kind.name: ([], []) for kind in players}
            for kind in self.turns(list(players), self.options.rounds):
                done = self.attempt(kind, lambda: once(players[kind]))
                for values, seconds in zip(took[kind.name], done or ()):
                    values.append(seconds * 1000)
                if relay:
                    trips.append(relay.round_trip() * 1000)
        return took, statistics.median(trips) if trips else None


def once(player):
    """Seconds of a start and of a poll."""
    time.sleep(PAUSE_S)
    _, start = player.start(f"job{next(NAMES)}", "true")
    time.sleep(PAUSE_S)
    return start, player.poll()


def report(title, took, trip, record):
    """Medians of ours."""
    print(f"{title:24}{'start':>12}{'poll':>12}   median ms"
          + (", and round trips" if trip else ""))
    rows = [record.row(SECTION, f"{what}, {title}", "ms")
            for what in ("start of a job", "poll of a job")]
    for name, both in took.items():
        note = "" if name in KNOW else "by hand, with `nohup`"
        medians = [row.add(name, values, note)
                   for row, values in zip(rows, both) if values]
        line = "".join(f"{ms:12.1f}" for ms in medians)
        if trip:
            line += "".join(f"{ms / trip:8.2f}" for ms in medians)
        print(f"{name:24}{line}")
    return map(statistics.median, took[peers.Ours.name])


def main():
    parser = options_for(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if not ready(options, "tmux", root=True):
        return 0
    record = Record("jobs", options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        user = {kind: bench.account() for kind in KINDS}
        relay = Relay(DELAY_MS, bench.sshd.port)
        stack.callback(relay.close)
        progress("loopback")
        took, _ = bench.measure(bench.sshd.port, user)
        report("loopback", took, None, record)
        progress(f"{2 * DELAY_MS} ms away")
        took, trip = bench.measure(relay.port, user, relay)
        start, poll = (ms / trip for ms in report(
            f"{2 * DELAY_MS} ms away", took, trip, record))
    record.target(f"a start takes at most {START} round trips of "
                  f"{trip:.2f} ms ({start:.2f})", start <= START)
    record.target(f"a poll takes at most {POLL} ({poll:.2f})", poll <= POLL)
    return record.end(bench.skipped)


if __name__ == "__main__":
    sys.exit(main())
