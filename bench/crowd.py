#!/usr/bin/env python3
"""Several commands at once on one sandbox, side by side with others.

A private sshd as it comes, which allows ten sessions on a connection.  So many
calls are sent without waiting for a reply; measured is the time until the last
one is there.  Every reply is checked; who leaves out one, or gives the wrong
one, has no figure but the reason.  `ssh` with a master is started as many
times, and logs in by itself where the master has no session left.
"""

import contextlib
import statistics
import sys
import time

from lib import peers
from lib.record import Record
from lib.stage import Stage, options_for, progress, ready

SECTION = "Many calls at once"
COUNTS = (1, 8, 64)
PAUSE_S = 0.2           # those who log in have something to do afterwards


class Bench(Stage):
    def measure(self, count, user):
        """Milliseconds of those who can, and why the others cannot."""
        cannot = {}
        with contextlib.ExitStack() as stack:
            everyone = self.start_all(stack, self.sshd.port, user)
            took = {one.name: [] for one in everyone}
            for one in self.turns(everyone, self.options.rounds):
                if one.name in cannot:
                    continue
                time.sleep(PAUSE_S)
                try:
                    took[one.name].append(one.at_once(count) * 1000)
                except peers.Broken as reason:
                    if isinstance(one, peers.Ours):
                        raise SystemExit(f"our server: {reason}")
                    cannot[one.name] = str(reason)
        return ({name: values for name, values in took.items()
                 if name not in cannot}, cannot)


def report(count, took, cannot, record):
    calls = "one call" if count == 1 else f"{count} calls"
    row = record.table(SECTION, f"{calls} of `echo` until the last reply",
                       "ms", took)
    print(f"{calls} at once: median ms until the last reply, and times ours")
    ours = statistics.median(took[peers.Ours.name])
    for name, values in took.items():
        median = statistics.median(values)
        note = "" if name == peers.Ours.name else f"{median / ours:.1f}x"
        print(f"{name:22}{median:12.1f}{note:>9}")
    for name, why in cannot.items():
        row.cannot(name, why)
        print(f"{name:22} cannot: {why}")
    others = [statistics.median(values) for name, values in took.items()
              if name != peers.Ours.name]
    if others:
        ratio = min(others) / ours
        record.target(f"{calls}: faster than all others ({ratio:.1f}x)",
                      ratio >= 1)


def main():
    parser = options_for(__doc__)
    parser.add_argument("--rounds", type=int, default=7,
                        help="turns of each")
    options = parser.parse_args()
    if not ready(options):
        return 0
    record = Record("crowd", options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        user = bench.plain_account()
        for count in COUNTS:
            progress(f"{count} at once")
            report(count, *bench.measure(count, user), record)
    return record.end(bench.skipped)


if __name__ == "__main__":
    sys.exit(main())
