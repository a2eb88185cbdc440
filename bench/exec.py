#!/usr/bin/env python3
"""The cost of a command on a far machine, side by side with others.

A private sshd on loopback; on it `echo hi` through our server, the ssh client
with a master connection, two MCP servers from npm and the one from PyPI whose
tools ours has.  First each from nothing: start, login, command.  Then all are
logged in before anything is measured.  They take turns of five calls, with a
pause before each, so that a busy machine is busy for all of them and nobody pays
for what another one does afterwards; that the caches of the machine are full of
another's work when a turn begins concerns one call of the five, and not the
median.  The figures that count are the ratios of one run.
Three cases:

    loopback   an account without rc files
    far away   the same, 25 ms each way (bench/lib/relay.py)
    slow rc    an account whose .bashrc takes 100 ms

Then for our server alone: commands one after the other, memory, and eight that
sleep for a second at once.
"""

import contextlib
import statistics
import sys
import time

from lib import far, peers
from lib.record import Record
from lib.relay import Relay
from lib.stage import Stage, options_for, progress, ready

DELAY_MS = 25
RC = "sleep 0.1\n"
PAUSE_S = 0.01
CALLS = 5               # in a turn
SECTION = "A command"

# What the figures have to reach.
MASTER_RATIO = 5
PEER_RATIO = 50
ROUND_TRIPS = 1.05
RATE = 300
MEMORY_KB = 10 * 1024
SLEEPS, SLEEPS_S = 8, 1.3


class Case:
    """A place to run commands, and what it took everyone there."""

    def __init__(self, title, port, user, rounds, relay=None):
        self.title, self.port, self.user = title, port, user
        self.rounds, self.relay = rounds, relay
        self.first = {}         # by name, milliseconds
        self.took = {}
        self.trips = []         # round trips of the network

    def median(self, name):
        return statistics.median(self.took[name])

    def round_trip(self):
        return statistics.median(self.trips)


class Bench(Stage):
    def measure_first(self, case):
        kinds = [kind for kind in peers.EVERYONE
                 if kind.name not in self.skipped]
        case.first = {kind.name: [] for kind in kinds}
        for kind in self.turns(kinds, self.options.first_rounds):
            place = self.place(case.port, case.user)
            took = self.attempt(kind, lambda: kind.first(place))
            if took is not None:
                case.first[kind.name].append(took * 1000)

    def measure(self, case):
        with contextlib.ExitStack() as stack:
            everyone = self.start_all(stack, case.port, case.user)
            case.took = {one.name: [] for one in everyone}
            for one in self.turns(everyone, case.rounds):
                self.take_turn(one, case.took[one.name])
                if case.relay and one is everyone[0]:
                    case.trips.append(case.relay.round_trip() * 1000)

    def take_turn(self, one, values):
        for _ in range(CALLS):
            time.sleep(PAUSE_S)
            took = self.attempt(type(one), one.echo)
            if took is None:
                return
            values.append(took * 1000)

    def alone(self, case):
        """Rate, memory, and the time of sleeps side by side."""
        count = self.options.calls
        with contextlib.ExitStack() as stack:
            ours = self.start(stack, peers.Ours, case.port, case.user)
            began = time.perf_counter()
            for _ in range(count):
                self.attempt(peers.Ours, ours.echo)
            rate = count / (time.perf_counter() - began)
            memory = ours.status_kb("VmRSS")
            slept = self.attempt(peers.Ours, lambda: ours.at_once(
                SLEEPS, "sleep 1; "))
            return rate, memory, slept


def show(title, cases, took):
    print(f"{title}: median ms, and times ours")
    print(f"{'':22}" + "".join(f"{case.title:>20}" for case in cases))
    for name in took(cases[0]):
        row = f"{name:22}"
        for case in cases:
            if not took(case).get(name):
                row += f"{'-':>20}"
                continue
            median = statistics.median(took(case)[name])
            times = median / statistics.median(took(case)[peers.Ours.name])
            note = "" if name == peers.Ours.name else f"{times:.1f}x"
            row += f"{median:12.2f}{note:>8}"
        print(row)


def report_cases(cases, record):
    show("the first `echo hi`, with start and login", cases,
         lambda case: case.first)
    show("`echo hi`, logged in before", cases, lambda case: case.took)
    for case in cases:
        record.table(SECTION, f"first `echo hi`, {case.title}", "ms",
                     case.first)
    for case in cases:
        record.table(SECTION, f"`echo hi`, {case.title}", "ms", case.took)
    loopback = cases[0]
    ours = loopback.median(peers.Ours.name)
    master = loopback.median(peers.ControlMaster.name)
    others = [name for name in loopback.took
              if name not in (peers.Ours.name, peers.ControlMaster.name)]
    record.target(f"at most 1/{MASTER_RATIO} of ssh with a master on "
                  f"loopback (1/{master / ours:.1f})",
                  master / ours >= MASTER_RATIO)
    if others:
        least = min(loopback.median(name) for name in others) / ours
        record.target(f"at most 1/{PEER_RATIO} of every other server on "
                      f"loopback (1/{least:.0f})", least >= PEER_RATIO)
        # After the others had the machine, no target but worth knowing.
        first = {name: statistics.median(took[::CALLS])
                 for name, took in loopback.took.items() if took}
        least = min(first[name] for name in others) / first[peers.Ours.name]
        print(f"figure: the first call of a turn: "
              f"{first[peers.Ours.name]:.2f} ms, 1/{least:.0f}")
    for case in cases:
        if case.relay:
            trips = case.median(peers.Ours.name) / case.round_trip()
            record.target(
                f"at most {ROUND_TRIPS} round trips of "
                f"{case.round_trip():.2f} ms ({trips:.3f})",
                trips <= ROUND_TRIPS)


def report_alone(count, rate, memory, slept, record):
    record.target(f"{RATE} commands a second, one after the other "
                  f"({rate:.0f})", rate >= RATE)
    record.target(f"at most {MEMORY_KB // 1024} MB of memory after {count} "
                  f"calls ({memory / 1024:.1f})", memory <= MEMORY_KB)
    record.target(f"{SLEEPS} times `sleep 1` at once in {SLEEPS_S} s "
                  f"({slept:.2f})", slept <= SLEEPS_S)


def make_cases(bench, options):
    """The cases that can be had here."""
    plain = bench.plain_account()
    port = bench.sshd.port
    relay = Relay(DELAY_MS, port)
    bench.stack.callback(relay.close)
    cases = [Case("loopback", port, plain, options.rounds),
             Case(f"{2 * DELAY_MS} ms away", relay.port, plain,
                  options.slow_rounds, relay)]
    if far.ROOT:
        cases.append(Case("rc file of 100 ms", port, bench.account(rc=RC),
                          options.slow_rounds))
    else:
        print("skipped: the account with a slow rc file, as only root can "
              "make one")
    return cases


def main():
    parser = options_for(__doc__)
    parser.add_argument("--rounds", type=int, default=20,
                        help="turns of each on loopback")
    parser.add_argument("--slow-rounds", type=int, default=8,
                        help="turns of each in the other cases")
    parser.add_argument("--first-rounds", type=int, default=7,
                        help="turns of each from nothing")
    parser.add_argument("--calls", type=int, default=1000,
                        help="commands for the rate and the memory")
    options = parser.parse_args()
    if not ready(options):
        return 0
    record = Record("exec", options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        cases = make_cases(bench, options)
        for case in cases:
            progress(f"{case.title}: the first command of each")
            bench.measure_first(case)
            progress(f"{case.title}: later commands")
            bench.measure(case)
        report_cases(cases, record)
        progress("our server alone")
        report_alone(options.calls, *bench.alone(cases[0]), record)
    return record.end(bench.skipped)


if __name__ == "__main__":
    sys.exit(main())
