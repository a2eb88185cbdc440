#!/usr/bin/env python3
"""Files to a far machine and back, side by side with others.

A private sshd on loopback, the same 25 ms away each way, and over a line that
carries 10 MB/s (bench/lib/relay.py).  Our server, rsync, scp and tar through ssh
(these with a login each time and over an open master), MCP servers from npm and
the one from PyPI whose tools ours has.  Servers are logged in before anything is
measured.  All take turns; the figures that count are the ratios of one run.
Cases:

    first    a tree of small files to where there is nothing
    same     again, with nothing changed
    few      again, with ten files changed
    fetch    the tree to here, where there is nothing
    up       one big file there
    down     one big file here

The first three on loopback with trees of three sizes.  Who does not compare what
is there takes no part in "same" and "few".  Who has used up its share of time
has no more turns, and nobody has when the case has used up its own; who is not
done in time is stopped and shown as "> N s".  Who would take minutes gets less
to move, "(N)", and is compared by the file or by the byte.  Each copy is
compared with what it is a copy of once.
"""

import contextlib
import os
import shutil
import statistics
import sys
import time

from lib import far, movers, peers, trees
from lib.record import Record
from lib.relay import Relay
from lib.stage import Stage, options_for, progress, ready

DELAY_MS = 25
NARROW_MS, NARROW_MB_S = 5, 10
PAUSE_S = 0.05
CHANGED = 10
FAR_PART = 8            # far away the others get so much less of the big file
MIB = 1 << 20

# What the figures have to reach.
TAR_RATIO = 1.3
ORIGINAL_RATIO = 10
SCP_RATIO = 5
SAME_RATIO = 0.3

CASES = ("first", "same", "few", "fetch", "up", "down")
TITLES = {
    "first": "{files} small files to where there is nothing",
    "same": "{files} small files again, with nothing changed",
    "few": "{files} small files again, with {changed} changed",
    "fetch": "{files} small files to here",
    "up": "one file of {big} MiB there",
    "down": "one file of {big} MiB here",
}
BIG = ("up", "down")
AGAIN = ("same", "few")
TREES = ("first", *AGAIN)
NARROW = ("first", "few", "up", "down")
NETWORKS = ("loopback", "far", "narrow")
MANY = 10_000           # with more files, one turn each
MANY_PATIENCE = 2.5
LEAST_FILES = 1000      # nobody is spared these


class Network:
    """A way to the far machine, and what it took everyone over it."""

    def __init__(self, title, port, rounds, files, big, **more):
        self.title, self.port, self.rounds = title, port, rounds
        self.files = files      # small ones
        self.big = big          # MiB
        self.cases = more.get("cases", CASES)
        self.part = more.get("part", 1)     # of the big file, for the others
        self.relay = more.get("relay")
        self.targets = more.get("targets")      # which of them are meant
        self.patience = more.get("patience", 1)
        self.figures = {}       # by case, then by name

    def whole(self, case):
        return self.big if case in BIG else self.files

    def section(self, case):
        """Trees on loopback are of three sizes, a section of their own."""
        if not self.relay and case in TREES:
            return "Trees of three sizes"
        return f"Files, {self.title}"

    def words(self, case):
        return TITLES[case].format(files=self.files, changed=CHANGED,
                                   big=self.big)


class Figure:
    """What one contestant took for one case."""

    def __init__(self, amount, in_bytes):
        self.amount = amount    # bytes, or files
        self.in_bytes = in_bytes
        self.took = []          # seconds
        self.limit = None       # seconds after which it was stopped

    def seconds(self):
        return statistics.median(self.took) if self.took else self.limit

    def cost(self):
        """What to compare: seconds for a byte or for a file."""
        return self.seconds() / self.amount

    def text(self):
        if not self.took:
            return f"> {self.limit:.0f} s"
        if self.in_bytes:
            return f"{self.amount / self.seconds() / 1e6:.0f} MB/s"
        return f"{self.seconds():.3f} s"

    def put(self, row, name, whole):
        """Into a row, as if all of it had been moved."""
        scale = 1 if self.in_bytes else whole / self.amount
        note = ""
        if self.part(whole):
            note = (f"with {self.amount // MIB} MiB" if self.in_bytes else
                    f"with {self.amount} files, times {scale:.0f}")
        values = [self.amount / each / 1e6 if self.in_bytes else each * scale
                  for each in self.took or [self.limit]]
        if self.took:
            row.add(name, values, note)
        else:
            row.bound(name, values[0], note)

    def part(self, whole):
        """The note for who moved less than all of it."""
        mine = self.amount // MIB if self.in_bytes else self.amount
        return "" if mine == whole else f" ({mine})"


class Bench(Stage):
    def __init__(self, stack, options):
        super().__init__(stack, options)
        self.user = self.plain_account()
        self.near, self.far = trees.area(stack, self.user, options.disk)
        self.paths = {}         # of the small files, by their number
        self.running = {}       # contestants, by port and name
        self.targets = 0
        self.end = time.monotonic() + options.minutes * 60

    def tree(self, count):
        root = self.near / f"tree{count}"
        if count not in self.paths:
            self.paths[count] = trees.make(root, count)
        return root

    def big(self, mib):
        path = self.near / f"big{mib}"
        if not path.exists():
            trees.make_file(path, mib * MIB)
        return path

    def source(self, network, case, kind):
        """What is moved, on the side where it comes from, and how much."""
        if case in BIG:
            part = kind.part
            if kind is not movers.Ours:
                part = max(part, network.part)
            mib = max(1, network.big // part)
            path, amount = self.big(mib), mib * MIB
        else:
            amount = max(min(network.files, LEAST_FILES),
                         network.files // kind.tree_part)
            path = self.tree(amount)
        if case in ("fetch", "down"):
            there = self.far / path.name
            if not there.exists():
                trees.copy(path, there, self.user)
            path = there
        return path, amount

    def contestant(self, network, kind):
        """One that is logged in, or None; it stays for the next case."""
        if kind.name in self.skipped:
            return None
        key = network.port, kind.name
        if key not in self.running:
            one = self.start(self.stack, kind, network.port, self.user,
                             self.near)
            if one is None:
                return None
            self.running[key] = one
        self.running[key].patience_s = (self.options.limit * kind.patience
                                        * network.patience)
        return self.running[key]

    def contest(self, network, case, end):
        """Everyone has a turn in each round, and further ones until the end;
        who begins changes."""
        everyone = []
        for kind in movers.EVERYONE:
            if (case in AGAIN and not kind.compares
                    or case not in BIG and not kind.trees):
                continue
            if one := self.contestant(network, kind):
                everyone.append(Turn(self, network, case, one, kind))
        for number in range(network.rounds):
            if case == "few":
                for paths in self.paths.values():
                    trees.change(paths, CHANGED)
            first = number % len(everyone)
            for turn in everyone[first:] + everyone[:first]:
                if number == 0 or time.monotonic() < end:
                    turn.take()
        for turn in everyone:
            turn.end()
        network.figures[case] = {
            turn.one.name: turn.figure for turn in everyone
            if turn.figure.took or turn.figure.limit}

    def carried(self, network, case):
        """Seconds for the big file through ssh, and nothing else."""
        one = self.contestant(network, movers.Carrier)
        source, _ = self.source(network, case, movers.Carrier)
        move = one.up if case == "up" else one.down
        return statistics.median(move(source, source) for _ in range(3))

    def share(self, left):
        """When this contest has to end: what is left, for all that are."""
        now = time.monotonic()
        return now + max(0, self.end - now) / left


class Turn:
    """One contestant in one case."""

    def __init__(self, bench, network, case, one, kind):
        self.bench, self.network, self.case = bench, network, case
        self.one = one
        self.source, amount = bench.source(network, case, kind)
        self.figure = Figure(amount, case in BIG)
        self.over = self.checked = False
        self.place = self.target = None
        self.fresh = case not in AGAIN
        if not self.fresh:
            self.new_target()
            trees.copy(self.source, self.target, bench.user)

    def new_target(self):
        """A path of which only the directory is there."""
        self.end()
        self.bench.targets += 1
        here = self.case in ("fetch", "down")
        side = self.bench.near if here else self.bench.far
        self.place = side / f"copy{self.bench.targets}"
        self.place.mkdir()
        if far.ROOT and not here:
            shutil.chown(self.place, self.bench.user)
        self.target = self.place / self.source.name

    def take(self):
        if self.over:
            return
        if self.fresh:
            self.new_target()
        time.sleep(PAUSE_S)
        down = self.case in ("fetch", "down")
        try:
            took = (self.one.down if down else self.one.up)(
                self.source, self.target)
        except peers.Slow:
            if not self.figure.took:
                self.figure.limit = self.one.patience_s
            self.give_up()
        except peers.Broken as reason:
            self.fail(f"{self.case}: {reason}")
        else:
            self.figure.took.append(took)
            self.over = sum(self.figure.took) > self.bench.options.share
            self.check()

    def check(self):
        if self.checked:
            return
        self.checked = True
        wrong = trees.difference(self.source, self.target,
                                 isinstance(self.one, movers.Ours))
        if wrong:
            self.figure.took.clear()
            self.fail(f"{self.case}: its copy differs: {wrong}")

    def fail(self, why):
        if isinstance(self.one, movers.Ours):
            raise SystemExit(f"our server: {why}")
        self.bench.skipped[self.one.name] = why
        self.give_up()

    def give_up(self):
        """It may be busy with it still, so it is not used again."""
        self.over = True
        self.bench.running.pop((self.network.port, self.one.name)).close()

    def end(self):
        if self.place:
            trees.remove(self.place)


def report_case(case, network):
    print()
    print(f"{network.words(case)}, {network.title}: median, and times ours")
    figures, whole = network.figures[case], network.whole(case)
    ours = figures[movers.Ours.name]
    for name, figure in figures.items():
        more = "" if figure.took else "> "
        times = f"{more}{figure.cost() / ours.cost():.2f}x"
        note = "" if figure is ours else times
        print(f"{name:22}{figure.text():>12}{note:>12}{figure.part(whole)}")
    if any(figure.part(whole) for figure in figures.values()):
        print("(N): with", "a file of N MiB" if case in BIG else "N files")


def record_case(case, network, record):
    """The same for the record, and why some are not there."""
    row = record.row(network.section(case), network.words(case),
                     "MB/s" if case in BIG else "s", case in BIG)
    for kind in movers.EVERYONE:
        if kind.name in network.figures[case]:
            network.figures[case][kind.name].put(row, kind.name,
                                                 network.whole(case))
        elif case not in BIG and not kind.trees:
            row.cannot(kind.name, "moves single files only")
        elif case in AGAIN and not kind.compares:
            row.cannot(kind.name, "does not compare, sends all again")


class Judge:
    """The targets of one case over one network."""

    def __init__(self, case, network, record):
        self.case, self.record = case, record
        self.where = f"{network.words(case)}, {network.title}"
        self.figures = network.figures[case]
        self.ours = self.figures[movers.Ours.name].cost()

    def best(self, which):
        """The best of those for which it holds, and its name; one that was
        stopped only if all were."""
        found = [(not self.figures[kind.name].took,
                  self.figures[kind.name].cost(), kind.name)
                 for kind in movers.EVERYONE
                 if kind is not movers.Ours and which(kind)
                 and kind.name in self.figures]
        return min(found, default=(None, None, None))[1:]

    def judge(self, text, ratio, name, reached):
        """A target; who was stopped too soon proves nothing."""
        if not reached and not self.figures[name].took:
            print(f"no figure: {self.where}: {text}: {name} was stopped")
            return
        self.record.target(f"{self.where}: {text} ({ratio})", reached)

    def at_most(self, share, which, text):
        best, name = self.best(which)
        if best is None:
            print(f"no figure: {self.where}: {text}")
            return
        ratio = self.ours / best
        self.judge(text, f"{ratio:.2f}x of {name}", name, ratio <= share)

    def faster(self, times, which, text):
        best, name = self.best(which)
        if best is None:
            print(f"no figure: {self.where}: {text}")
            return
        ratio = best / self.ours
        more = "" if self.figures[name].took else "more than "
        self.judge(text, f"{more}{ratio:.1f}x", name, ratio >= times)

    def loopback(self):
        self.at_most(1, lambda kind: kind.whole, "at least as fast as the "
                     "best of those that replace whole files")
        if self.case not in AGAIN:
            self.at_most(TAR_RATIO, lambda kind: issubclass(kind, movers.Tar),
                         f"within {TAR_RATIO}x of tar -x")
        self.faster(ORIGINAL_RATIO, lambda kind: kind is movers.Original,
                    f"{ORIGINAL_RATIO}x as fast as the original")

    def far_away(self):
        if self.case in BIG:
            self.faster(SCP_RATIO, lambda kind: issubclass(kind, movers.Scp),
                        f"{SCP_RATIO}x the throughput of scp")

    def everywhere(self):
        if self.case == "same":
            self.at_most(SAME_RATIO, lambda kind: kind is movers.Rsync,
                         f"at most {SAME_RATIO}x of rsync's time")
            self.figure(movers.RsyncOpened)
        if self.case == "few":
            self.at_most(1, lambda kind: issubclass(kind, movers.Rsync),
                         "at least as fast as rsync")

    def figure(self, kind):
        """No target, but worth knowing."""
        if kind.name in self.figures:
            ratio = self.ours / self.figures[kind.name].cost()
            print(f"figure: {self.where}: {ratio:.2f}x of {kind.name}")


def judge(case, network, record):
    one = Judge(case, network, record)
    if network.targets == "loopback":
        one.loopback()
    elif network.targets == "far":
        one.far_away()
    if network.targets:
        one.everywhere()


def report_carrier(bench, network, case):
    """How much there was to win."""
    amount = network.big * MIB
    took = bench.carried(network, case)
    text = (f"figure: {case}, {network.title}: one connection of ssh carries "
            f"{amount / took / 1e6:.0f} MB/s")
    if original := network.figures[case].get(movers.Original.name):
        text += f", {original.cost() / took * amount:.1f}x the original"
    print(text)


def make_relay(bench, *arguments):
    relay = Relay(arguments[0], bench.sshd.port, *arguments[1:])
    bench.stack.callback(relay.close)
    return relay


def make_networks(bench, options):
    networks, port = [], bench.sshd.port
    if "loopback" in options.network:
        for files in sorted({*options.sizes, options.files}):
            main = files == options.files
            few = files <= MANY
            networks.append(Network(
                "loopback", port, options.rounds if few else 1, files,
                options.big, cases=CASES if main else TREES,
                targets="loopback" if main else None,
                patience=1 if few else MANY_PATIENCE))
    if "far" in options.network:
        relay = make_relay(bench, DELAY_MS)
        networks.append(Network(
            f"{2 * DELAY_MS} ms away", relay.port, options.far_rounds,
            options.files, options.big, part=FAR_PART, relay=relay,
            targets="far"))
    if "narrow" in options.network:
        relay = make_relay(bench, NARROW_MS, NARROW_MB_S)
        networks.append(Network(
            f"{NARROW_MB_S} MB/s", relay.port, options.far_rounds,
            options.files, options.narrow_big, cases=NARROW, relay=relay))
    return networks


def read_options():
    parser = options_for(__doc__)
    parser.add_argument("--case", action="append", choices=CASES,
                        help="only this one (can be repeated)")
    parser.add_argument("--network", action="append", choices=NETWORKS,
                        help="only this one")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="only contestants with this in their name, "
                        "and ours")
    parser.add_argument("--files", type=int, default=10_000,
                        help="small files")
    parser.add_argument("--sizes", type=int, nargs="*", metavar="FILES",
                        default=[1000, 100_000],
                        help="of further trees, on loopback")
    parser.add_argument("--big", type=int, default=1024,
                        help="MiB of the big file")
    parser.add_argument("--narrow-big", type=int, default=32,
                        help=f"MiB of that at {NARROW_MB_S} MB/s")
    parser.add_argument("--rounds", type=int, default=5,
                        help="turns of each on loopback; one with more than "
                        f"{MANY} files")
    parser.add_argument("--far-rounds", type=int, default=3,
                        help="turns of each elsewhere")
    parser.add_argument("--share", type=float, default=6,
                        help="seconds after which one has no more turns")
    parser.add_argument("--limit", type=float, default=10,
                        help="seconds after which one is stopped; "
                        f"{MANY_PATIENCE} times as many with more than {MANY} "
                        "files")
    parser.add_argument("--minutes", type=float, default=13,
                        help="what all of it may take, about")
    parser.add_argument("--nice", type=int, default=0,
                        help="run all of it at this niceness")
    trees.disk_option(parser)
    options = parser.parse_args()
    options.case = options.case or CASES
    options.network = options.network or NETWORKS
    return options


def leave_out(bench, only):
    for kind in movers.EVERYONE if only else ():
        if kind is not movers.Ours and not any(part in kind.name
                                               for part in only):
            bench.skipped[kind.name] = "not asked for"


def main():
    options = read_options()
    if not ready(options):
        return 0
    os.nice(options.nice)       # the children inherit it
    record = Record("sync", options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        leave_out(bench, options.only)
        contests = [(case, network) for network in make_networks(bench, options)
                    for case in CASES
                    if case in options.case and case in network.cases]
        for number, (case, network) in enumerate(contests):
            left = len(contests) - number
            progress(f"{network.words(case)}, {network.title} "
                     f"({number + 1} of {len(contests)})")
            bench.contest(network, case, bench.share(left))
            report_case(case, network)
            record_case(case, network, record)
            judge(case, network, record)
            if case in BIG and network.targets == "loopback":
                report_carrier(bench, network, case)
        print()
        print(f"{movers.SshMcp.name} moves single files only: no trees")
    return record.end(bench.skipped)


if __name__ == "__main__":
    sys.exit(main())
