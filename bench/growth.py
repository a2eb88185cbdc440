#!/usr/bin/env python3
"""What larger trees of files cost our server: time for a file, and memory.

A private sshd on loopback.  Each tree is sent to where there is nothing, then
again with nothing changed.  The time for a file must not grow with the tree,
and our memory hardly.  Each copy is compared with its tree.  What others take
for such trees is measured by bench/sync.py.
"""

import contextlib
import statistics
import sys

from lib import movers, trees
from lib.record import Record
from lib.stage import Stage, options_for, progress, ready

SECTION = "Trees of three sizes"
CASES = ("first time", "nothing changed")
PATIENCE_S = 600

# What the figures have to reach.
MEMORY_KB = 30 * 1024
GROWTH = 1.3            # a file of the largest tree, in those of the middle one


class Bench(Stage):
    def __init__(self, stack, options):
        super().__init__(stack, options)
        self.user = self.plain_account()
        self.near, self.far = trees.area(stack, self.user, options.disk)

    def grow(self, count):
        """Seconds for the first time and for nothing changed, and memory."""
        root, target = self.near / f"grow{count}", self.far / f"grow{count}"
        trees.make(root, count)
        took, memory = ([], []), []
        for _ in range(self.options.rounds):
            with contextlib.ExitStack() as stack:
                ours = self.start(stack, movers.Ours, self.sshd.port,
                                  self.user)
                ours.patience_s = PATIENCE_S
                trees.remove(target)
                for values in took:
                    values.append(ours.up(root, target))
                memory.append(ours.status_kb("VmHWM") / 1024)
        if wrong := trees.difference(root, target, True):
            raise SystemExit(f"our copy of {count} files differs: {wrong}")
        trees.remove(target)
        trees.remove(root)
        return took, memory


def report_tree(count, took, memory, record):
    """Seconds a file, in both cases, and our memory at its peak."""
    peak = record.row(SECTION, f"{count} files, memory at its peak",
                      "MB").add(movers.Ours.name, memory)
    first, again = map(statistics.median, took)
    print(f"{count:8}  first {first:7.3f} s {first / count * 1e6:6.0f} us   "
          f"same {again:7.3f} s {again / count * 1e6:6.0f} us   "
          f"{peak:6.1f} MB")
    return first / count, again / count, peak


def report(bench, record):
    print("files: seconds, microseconds a file; peak memory")
    sizes = bench.options.sizes
    costs = []
    for count in sizes:
        progress(f"{count} files")
        costs.append(report_tree(count, *bench.grow(count), record))
    for index, case in enumerate(CASES):
        ratio = costs[-1][index] / costs[-2][index]
        record.target(
            f"growth is linear ({case}: a file among {sizes[-1]} takes "
            f"{ratio:.2f}x of one among {sizes[-2]})", ratio <= GROWTH)
    peak = costs[-1][2]
    record.target(f"at most {MEMORY_KB // 1024} MB for {sizes[-1]} files "
                  f"({peak:.1f})", peak * 1024 <= MEMORY_KB)


def main():
    parser = options_for(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", metavar="FILES",
                        default=[1000, 10_000, 100_000],
                        help="of the trees, two at least")
    parser.add_argument("--rounds", type=int, default=3,
                        help="times that each is sent")
    trees.disk_option(parser)
    options = parser.parse_args()
    if not ready(options):
        return 0
    record = Record("growth", options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        report(bench, record)
    return record.end(bench.skipped)


if __name__ == "__main__":
    sys.exit(main())
