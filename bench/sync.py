#!/usr/bin/env python3
"""Files to a far machine and back, side by side with others.

A private sshd on loopback, and the same 25 ms away each way
(bench/lib/relay.py).  Our server, rsync, scp and tar through ssh (these with a
login each time and over an open master), MCP servers from npm and the one from
PyPI whose tools ours has.  Servers are logged in before anything is measured.
All take turns; the figures that count are the ratios of one run.  Cases:

    first    a tree of small files to where there is nothing
    same     again, with nothing changed
    few      again, with ten files changed
    fetch    the tree to here, where there is nothing
    up       one big file there
    down     one big file here

Who does not compare what is there takes no part in "same" and "few".  Who has
used up its share of time has no more turns, and nobody has when the case has
used up its own; who is not done in time is stopped and shown as "> N s".  Who
would take minutes gets less to move, "(N)", and is compared by the file or by
the byte.  Each copy is compared with what it is a copy of once.
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
from lib.stage import Stage, options_for, ready

DELAY_MS = 25
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
    "same": "again, with nothing changed",
    "few": "again, with {changed} files changed",
    "fetch": "{files} small files to here",
    "up": "one file of {big} MiB there",
    "down": "one file of {big} MiB here",
}
BIG = ("up", "down")
AGAIN = ("same", "few")


class Network:
    """A way to the far machine, and what it took everyone over it."""

    def __init__(self, title, port, rounds, relay=None):
        self.title, self.port, self.rounds = title, port, rounds
        self.relay = relay
        self.figures = {}       # by case, then by name
        self.running = {}       # contestants, by name


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
            if network.relay and kind is not movers.Ours:
                part = max(part, FAR_PART)
            mib = max(1, self.options.big // part)
            path, amount = self.big(mib), mib * MIB
        else:
            amount = max(1, self.options.files // kind.tree_part)
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
        if kind.name not in network.running:
            one = self.start(self.stack, kind, network.port, self.user,
                             self.near)
            if one is None:
                return None
            one.patience_s = self.options.limit * kind.patience
            network.running[kind.name] = one
        return network.running[kind.name]

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

    def share(self, cases, case, networks, network):
        """When this contest has to end: what is left, for all that are."""
        now = time.monotonic()
        left = cases[cases.index(case):]
        contests = len(left) * len(networks) - networks.index(network)
        return now + max(0, self.end - now) / contests


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
        self.network.running.pop(self.one.name).close()

    def end(self):
        if self.place:
            trees.remove(self.place)


def report_case(case, networks, options):
    print()
    print(TITLES[case].format(files=options.files, changed=CHANGED,
                              big=options.big)
          + ": median, and times ours")
    print(f"{'':22}" + "".join(f"{n.title:>28}" for n in networks))
    ours = movers.Ours.name
    for kind in movers.EVERYONE:
        found = [n.figures[case].get(kind.name) for n in networks]
        if not any(found):
            continue
        row = f"{kind.name:22}"
        for network, figure in zip(networks, found):
            if figure is None:
                row += f"{'-':>28}"
                continue
            times = figure.cost() / network.figures[case][ours].cost()
            more = "" if figure.took else "> "
            note = "" if kind.name == ours else f"{more}{times:.2f}x"
            note += figure.part(options.big if case in BIG
                                else options.files)
            row += f"{figure.text():>12}{note:>16}"
        print(row)
    print("(N): with", "a file of N MiB" if case in BIG else "N files")


def record_case(case, networks, options, record):
    """The same for the record, and why some are not there."""
    title = TITLES[case].format(files=options.files, changed=CHANGED,
                                big=options.big)
    whole = options.big if case in BIG else options.files
    for network in networks:
        row = record.row(f"Files, {network.title}", title,
                         "MB/s" if case in BIG else "s", case in BIG)
        for kind in movers.EVERYONE:
            if kind.name in network.figures[case]:
                network.figures[case][kind.name].put(row, kind.name, whole)
            elif case not in BIG and not kind.trees:
                row.cannot(kind.name, "moves single files only")
            elif case in AGAIN and not kind.compares:
                row.cannot(kind.name, "does not compare, sends all again")


class Judge:
    """The targets of one case over one network."""

    def __init__(self, case, network, record):
        self.case, self.record = case, record
        self.where = f"{case}, {network.title}"
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


def judge(case, networks, record):
    for network in networks:
        one = Judge(case, network, record)
        if network.relay:
            one.far_away()
        else:
            one.loopback()
        one.everywhere()


def report_carrier(bench, network, case):
    """How much there was to win."""
    amount = bench.options.big * MIB
    took = bench.carried(network, case)
    text = (f"figure: {case}, {network.title}: one connection of ssh carries "
            f"{amount / took / 1e6:.0f} MB/s")
    if original := network.figures[case].get(movers.Original.name):
        text += f", {original.cost() / took * amount:.1f}x the original"
    print(text)


def make_networks(bench, options):
    networks = []
    if "loopback" in options.network:
        networks.append(Network("loopback", bench.sshd.port, options.rounds))
    if "far" in options.network:
        relay = Relay(DELAY_MS, bench.sshd.port)
        bench.stack.callback(relay.close)
        networks.append(Network(f"{2 * DELAY_MS} ms away", relay.port,
                                options.far_rounds, relay))
    return networks


def read_options():
    parser = options_for(__doc__)
    parser.add_argument("--case", action="append", choices=CASES,
                        help="only this one (can be repeated)")
    parser.add_argument("--network", action="append",
                        choices=("loopback", "far"), help="only this one")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="only contestants with this in their name, "
                        "and ours")
    parser.add_argument("--files", type=int, default=10_000,
                        help="small files")
    parser.add_argument("--big", type=int, default=1024,
                        help="MiB of the big file")
    parser.add_argument("--rounds", type=int, default=5,
                        help="turns of each on loopback")
    parser.add_argument("--far-rounds", type=int, default=3,
                        help="turns of each far away")
    parser.add_argument("--share", type=float, default=6,
                        help="seconds after which one has no more turns")
    parser.add_argument("--limit", type=float, default=10,
                        help="seconds after which one is stopped")
    parser.add_argument("--minutes", type=float, default=8,
                        help="what all of it may take, about")
    parser.add_argument("--nice", type=int, default=0,
                        help="run all of it at this niceness")
    trees.disk_option(parser)
    options = parser.parse_args()
    options.case = options.case or CASES
    options.network = options.network or ("loopback", "far")
    return options


def main():
    options = read_options()
    if not ready(options):
        return 0
    os.nice(options.nice)       # the children inherit it
    record = Record("sync", options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        for kind in movers.EVERYONE if options.only else ():
            if kind is not movers.Ours and not any(
                    part in kind.name for part in options.only):
                bench.skipped[kind.name] = "not asked for"
        networks = make_networks(bench, options)
        cases = [case for case in CASES if case in options.case]
        for case in cases:
            for network in networks:
                bench.contest(network, case,
                              bench.share(cases, case, networks, network))
            report_case(case, networks, options)
            record_case(case, networks, options, record)
            judge(case, networks, record)
            if case in BIG and not networks[0].relay:
                report_carrier(bench, networks[0], case)
        print()
        print(f"{movers.SshMcp.name} moves single files only: no trees")
    return record.end(bench.skipped)


if __name__ == "__main__":
    sys.exit(main())
