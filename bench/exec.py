#!/usr/bin/env python3
"""The cost of a command on a far machine, side by side with others.

A private sshd on loopback; on it `echo hi` through our server, the ssh client
with a master connection, two MCP servers from npm and the one from PyPI whose
tools ours has.  All are logged in before anything is measured.  They take
turns, with a pause after each, so that a busy machine is busy for all of them
and nobody pays for what another one does afterwards; the figures that count
are the ratios of one run.  Three cases:

    loopback   an account without rc files
    far away   the same, 25 ms each way (bench/lib/relay.py)
    slow rc    an account whose .bashrc takes 100 ms

Then for our server alone: commands one after the other, the speed of much
output against `ssh host cat`, and memory.
"""

import argparse
import contextlib
import gc
import os
import pathlib
import shutil
import signal
import statistics
import sys
import time

from lib import far, peers
from lib.relay import Relay
from lib.stage import Stage, Verdict, report_load

DELAY_MS = 25
RC = "sleep 0.1\n"
PAUSE_S = 0.01
FLOOD = 200_000_000

# What the figures have to reach.
MASTER_RATIO = 5
PEER_RATIO = 50
ROUND_TRIPS = 1.05
RATE = 300
FLOOD_SHARE = 0.8
MEMORY_KB = 10 * 1024


class Case:
    """A place to run commands, and what it took everyone there."""

    def __init__(self, title, port, user, rounds, relay=None):
        self.title, self.port, self.user = title, port, user
        self.rounds, self.relay = rounds, relay
        self.took = {}          # by name, milliseconds
        self.trips = []         # round trips of the network

    def median(self, name):
        return statistics.median(self.took[name])

    def round_trip(self):
        return statistics.median(self.trips)


class Bench(Stage):
    def measure(self, case):
        """Everyone has a turn in each round; who begins changes."""
        with contextlib.ExitStack() as stack:
            all_of_them = [self.start(stack, kind, case.port, case.user)
                           for kind in peers.EVERYONE
                           if kind.name not in self.skipped]
            everyone = [one for one in all_of_them if one is not None]
            case.took = {one.name: [] for one in everyone}
            for turn in range(case.rounds):
                first = turn % len(everyone)
                for one in everyone[first:] + everyone[:first]:
                    time.sleep(PAUSE_S)
                    case.took[one.name].append(self.one_echo(one) * 1000)
                if case.relay:
                    case.trips.append(case.relay.round_trip() * 1000)

    @staticmethod
    def one_echo(one):
        try:
            return one.echo()
        except peers.Broken as reason:
            raise SystemExit(f"{one.name} stopped working: {reason}")

    def alone(self, case):
        """Rate, speed of output, memory."""
        count = self.options.calls
        with contextlib.ExitStack() as stack:
            ours = self.start(stack, peers.Ours, case.port, case.user)
            master = self.start(stack, peers.ControlMaster, case.port,
                                case.user)
            began = time.perf_counter()
            for _ in range(count):
                self.one_echo(ours)
            rate = count / (time.perf_counter() - began)
            memory = ours.status_kb("VmRSS")
            flood = self.flood(ours, master)
            peak = ours.status_kb("VmHWM")
        return rate, memory, peak, flood

    def flood(self, ours, master):
        """Megabytes a second of ours and of ssh's."""
        path = self.dir / "flood"
        line = b"x" * 79 + b"\n"
        path.write_bytes(line * (FLOOD // len(line)))
        path.chmod(0o644)
        speeds = {"ours": [], "ssh": []}
        for _ in range(self.options.floods):
            text, took = ours.run(f"cat {path}", timeout_s=60)
            if '"truncated"' not in text:
                raise SystemExit(f"our server says: {text[:300]}")
            speeds["ours"].append(FLOOD / took / 1e6)
            speeds["ssh"].append(FLOOD / master.pour(f"cat {path}") / 1e6)
        path.unlink()
        return {who: statistics.median(each) for who, each in speeds.items()}


def report_cases(cases, verdict):
    print("`echo hi`, logged in before: median ms, and times ours")
    print(f"{'':22}" + "".join(f"{case.title:>20}" for case in cases))
    for name in cases[0].took:
        row = f"{name:22}"
        for case in cases:
            if name not in case.took:
                row += f"{'-':>20}"
                continue
            took = case.median(name)
            times = took / case.median(peers.Ours.name)
            note = "" if name == peers.Ours.name else f"{times:.1f}x"
            row += f"{took:12.2f}{note:>8}"
        print(row)
    loopback = cases[0]
    ours = loopback.median(peers.Ours.name)
    master = loopback.median(peers.ControlMaster.name)
    others = [name for name in loopback.took
              if name not in (peers.Ours.name, peers.ControlMaster.name)]
    verdict.target(f"at most 1/{MASTER_RATIO} of ssh with a master on "
                   f"loopback (1/{master / ours:.1f})",
                   master / ours >= MASTER_RATIO)
    if others:
        least = min(loopback.median(name) for name in others) / ours
        verdict.target(f"at most 1/{PEER_RATIO} of every other server on "
                       f"loopback (1/{least:.0f})", least >= PEER_RATIO)
    for case in cases:
        if case.relay:
            trips = case.median(peers.Ours.name) / case.round_trip()
            verdict.target(
                f"at most {ROUND_TRIPS} round trips of "
                f"{case.round_trip():.2f} ms ({trips:.3f})",
                trips <= ROUND_TRIPS)


def report_alone(count, rate, memory, peak, flood, verdict):
    verdict.target(f"{RATE} commands a second, one after the other "
                   f"({rate:.0f})", rate >= RATE)
    share = flood["ours"] / flood["ssh"]
    verdict.target(
        f"output of {FLOOD // 10**6} MB at {FLOOD_SHARE * 100:.0f} % of the "
        f"speed of ssh's at least ({flood['ours']:.0f} of "
        f"{flood['ssh']:.0f} MB/s: {share * 100:.0f} %)",
        share >= FLOOD_SHARE)
    verdict.target(
        f"at most {MEMORY_KB // 1024} MB of memory after {count} calls "
        f"({memory / 1024:.1f}; at its peak with that output "
        f"{peak / 1024:.1f})", memory <= MEMORY_KB)


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=60,
                        help="turns of each on loopback")
    parser.add_argument("--slow-rounds", type=int, default=20,
                        help="turns of each in the other cases")
    parser.add_argument("--calls", type=int, default=1000,
                        help="commands for the rate and the memory")
    parser.add_argument("--floods", type=int, default=5,
                        help="runs with much output")
    parser.add_argument("--realtime", action="store_true",
                        help="run all of it before other work (root only)")
    options = parser.parse_args()
    peers.Ours.binary = options.binary.resolve()
    if far.SSHD is None or shutil.which("ssh") is None:
        print("skipped: there is no sshd or no ssh")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.realtime:        # the children inherit it
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    gc.disable()
    verdict = Verdict()
    report_load(options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        cases = make_cases(bench, options)
        for case in cases:
            bench.measure(case)
        for name, why in bench.skipped.items():
            print(f"skipped: {name}: {why}")
        report_cases(cases, verdict)
        report_alone(options.calls, *bench.alone(cases[0]), verdict)
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
