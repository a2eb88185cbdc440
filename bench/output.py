#!/usr/bin/env python3
"""A command with much output, side by side with others.

A private sshd on loopback, a file of 100 MB and `cat`.  Measured is the time
until the reply, and the memory the server took at its peak.  What each makes
of the output is told beside it: how much of it comes back, whether its end is
there, and whether the reply says that something is missing.  ssh with a master
writes all of it to a pipe.
"""

import contextlib
import json
import os
import statistics
import sys
import time

from lib import peers
from lib.record import Record
from lib.stage import Stage, options_for, progress, ready

SECTION = "100 MB of output"
SIZE = 100_000_000
PAUSE_S = 0.05
PATIENCE_S = 150
SPEED_SHARE = 0.8       # of what ssh has
MEMORY_MB = 20


def came(text):
    """What there is of the output in a reply."""
    words = [f"returns {len(text) / 1000:.0f} kB of it",
             "with its end" if "end-42" in text else "its end is lost"]
    if "trunc" not in text:
        words.append("nothing says so")
    return ", ".join(words)


class Bench(Stage):
    def command(self):
        path = self.dir / "flood"
        line = b"x" * 79 + b"\n"
        path.write_bytes(line * (SIZE // len(line)))
        path.chmod(0o644)
        return f"cat {path}; echo end-$((40+2))"

    @staticmethod
    def once(one, command):
        """Seconds, and what came."""
        if isinstance(one, peers.ControlMaster):
            return one.pour(command), "writes all of it to a pipe"
        one.patience_s = PATIENCE_S
        text, took = one.run(command)
        if isinstance(one, peers.Ours):
            kept = os.path.getsize(json.loads(text)["output_file"])
            if kept < SIZE / 2 or "end-42" not in text:
                raise peers.Broken(f"{kept} bytes kept: {text[-300:]}")
            return took, f"{came(text)}, {kept / 1e6:.0f} MB in a file"
        return took, came(text)

    def measure(self, user):
        """Of each: seconds, what came, megabytes."""
        with contextlib.ExitStack() as stack:
            everyone = self.start_all(stack, self.sshd.port, user)
            took = {one.name: [] for one in everyone}
            notes, command = {}, self.command()
            for one in self.turns(everyone, self.options.rounds):
                if sum(took[one.name]) > self.options.share:
                    continue
                progress(one.name)
                time.sleep(PAUSE_S)
                done = self.attempt(type(one),
                                    lambda: self.once(one, command))
                if done:
                    took[one.name].append(done[0])
                    notes[one.name] = done[1]
            memory = {one.name: [one.status_kb("VmHWM") / 1024]
                      for one in everyone if isinstance(one, peers.Server)
                      and one.name not in self.skipped}
        return took, notes, memory


def report(took, notes, memory, record):
    row = record.row(SECTION, "until the reply", "s")
    for name, values in took.items():
        if not values:
            continue
        median = row.add(name, values, notes[name])
        peak = f"{memory[name][0]:.0f} MB" if name in memory else "-"
        print(f"{name:22}{median:8.2f} s {SIZE / median / 1e6:8.1f} MB/s"
              f"{peak:>9}   {notes[name]}")
    record.table(SECTION, "memory of the server at its peak", "MB", memory)
    ours, ssh = (statistics.median(took[kind.name])
                 for kind in (peers.Ours, peers.ControlMaster))
    record.target(f"at {SPEED_SHARE * 100:.0f} % of the speed of ssh at "
                  f"least ({ssh / ours * 100:.0f} %)",
                  ssh / ours >= SPEED_SHARE)
    peak = memory[peers.Ours.name][0]
    record.target(f"at most {MEMORY_MB} MB of memory for it ({peak:.1f})",
                  peak <= MEMORY_MB)


def main():
    parser = options_for(__doc__)
    parser.add_argument("--rounds", type=int, default=5,
                        help="turns of each")
    parser.add_argument("--share", type=float, default=20,
                        help="seconds after which one has no more turns")
    options = parser.parse_args()
    if not ready(options):
        return 0
    record = Record("output", options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        report(*bench.measure(bench.plain_account()), record)
    return record.end(bench.skipped)


if __name__ == "__main__":
    sys.exit(main())
