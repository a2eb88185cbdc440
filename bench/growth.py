#!/usr/bin/env python3
"""Trees of three sizes to a far machine, by our server and by rsync.

A private sshd on loopback; rsync goes over an open master, which is the best
the others have to offer.  Each tree is sent to where there is nothing, then
again with nothing changed.  The time for a file must not grow with the tree,
and our memory hardly.  Each copy is compared with its tree.
"""

import contextlib
import statistics
import sys

from lib import movers, trees
from lib.record import Record
from lib.stage import Stage, options_for, ready

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
        """{name: (seconds for the first time, for nothing changed)}, and our
        memory."""
        root, target = self.near / f"grow{count}", self.far / f"grow{count}"
        trees.make(root, count)
        rounds = self.options.rounds if count <= 10_000 else 1
        kinds = [kind for kind in (movers.Ours, movers.RsyncOpened)
                 if kind.name not in self.skipped]
        took = {kind.name: ([], []) for kind in kinds}
        for kind in self.turns(kinds, rounds):
            with contextlib.ExitStack() as stack:
                one = self.start(stack, kind, self.sshd.port, self.user)
                if one is None:
                    del took[kind.name]
                    continue
                one.patience_s = PATIENCE_S
                trees.remove(target)
                for values in took[kind.name]:
                    values.append(one.up(root, target))
                if kind is movers.Ours:
                    memory = one.status_kb("VmHWM")
            if wrong := trees.difference(root, target, True):
                raise SystemExit(f"{kind.name}: its copy of {count} files "
                                 f"differs: {wrong}")
        trees.remove(target)
        trees.remove(root)
        return took, memory


def report_tree(count, took, memory, record):
    """Seconds a file of ours, in both cases."""
    for index, case in enumerate(CASES):
        record.table(SECTION, f"{count} files, {case}", "s", {
            name: both[index] for name, both in took.items()})
    record.row(SECTION, f"{count} files, memory at its peak", "MB").add(
        movers.Ours.name, [memory / 1024])
    for name, both in took.items():
        first, again = map(statistics.median, both)
        print(f"{count:8}  {name:20} first {first:7.3f} s "
              f"{first / count * 1e6:6.0f} us   same {again:7.3f} s "
              f"{again / count * 1e6:6.0f} us"
              + (f"   {memory / 1024:6.1f} MB"
                 if name == movers.Ours.name else ""))
    return [statistics.median(each) / count
            for each in took[movers.Ours.name]]


def report(bench, record):
    print("files: seconds, microseconds a file; peak memory of ours")
    sizes = bench.options.sizes
    costs = []
    for count in sizes:
        took, memory = bench.grow(count)
        costs.append(report_tree(count, took, memory, record))
    for index, case in enumerate(CASES):
        ratio = costs[-1][index] / costs[-2][index]
        record.target(
            f"growth is linear ({case}: a file among {sizes[-1]} takes "
            f"{ratio:.2f}x of one among {sizes[-2]})", ratio <= GROWTH)
    record.target(f"at most {MEMORY_KB // 1024} MB for {sizes[-1]} files "
                  f"({memory / 1024:.1f})", memory <= MEMORY_KB)


def main():
    parser = options_for(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", metavar="FILES",
                        default=[1000, 10_000, 100_000],
                        help="of the trees, two at least")
    parser.add_argument("--rounds", type=int, default=5,
                        help="turns of each; one for more than 10000 files")
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
