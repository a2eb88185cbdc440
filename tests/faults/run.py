#!/usr/bin/env python3
"""Everything breaks, and every reply has to be true.

    run.py [--server PROGRAM] [--seconds N] [--worlds N] [SCENARIOS [SEED]]

A scenario takes some works (works.py), breaks something while they are done
(road.py, world.py), makes all well again, and checks what was said.  If nothing
was under way when it broke, it is done again with an earlier break.  SEED is a
number; SEED:N begins with scenario N of it, which is how one is done again:
the works, the faults, their places and all noise are the same, the times of a
busy machine are not.  Exits 1 if anything that was said was not true, or if too
many of the faults hit nothing.
"""

import argparse
import collections
import multiprocessing
import os
import pathlib
import random
import signal
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

A_WORLD = 40        # scenarios in one world, then a new one is made
LONGEST_S = 20      # what is not over by then waits for what broke
TRIES = 4           # for a scenario whose faults hit nothing
# Below these shares, of so many at least, a run proves little and fails.
ENOUGH = 50
HIT, HIT_OF_A_KIND = 0.9, 0.4


class Break:
    """Something that is to break, and when: at a byte of the road, or after
    some time.  It has hit if it took place while work was under way."""

    def __init__(self, dice, works, known):
        import road
        self.dice = random.Random(dice.random())
        self.seconds = dice.choice([0.1, 0.4, 1, 2.5])
        self.outward = dice.random() < 0.5
        self.rate = dice.choice([5000, 50000, 500000])
        # Early ones are as frequent as late ones.
        moves = sum(work.moves(self.outward) for work in works)
        self.after = int(dice.choice([
            moves ** dice.random(), moves * dice.random()]))
        self.when = dice.random() * max(work.lasts() for work in works)
        self.kind = dice.choice(road.Road.KINDS)
        self.by_road = dice.random() < 0.6
        self.by_byte = self.by_road or dice.random() < 0.5
        if not self.by_road:
            self.kind = dice.choice([name for work in works
                                     for name in work.breakers
                                     if name in known])
        self.hit = False

    def sooner(self, times):
        """It came too late so many times."""
        self.after //= 8 ** times
        self.when /= 4 ** times

    def arm(self, world):
        """At its byte the road breaks, or all stands still until something
        else did."""
        import road
        self.fault = None
        if self.by_byte:
            self.fault = road.Fault(
                self.kind if self.by_road else "freeze", self.outward,
                self.after, self.seconds if self.by_road else 600, self.rate)
            world.road.arm(self.fault)

    def reached(self, world):
        return [busy for fault, busy in world.road.struck
                if fault is self.fault]

    def strike(self, world, busy):
        """Wait for its turn, as long as anything is under way; how it is
        mended."""
        begun = time.monotonic()
        while busy() and not self.reached(world) and (
                self.by_byte or time.monotonic() < begun + self.when):
            time.sleep(0.003)
        if self.by_road:
            self.hit = any(self.reached(world))
            return None
        mend = None
        while busy() and not (mend := world.strike(self.kind, self.dice)):
            time.sleep(0.003)
        self.hit = mend is not None
        if self.by_byte:
            world.road.disarm(self.fault)
        return mend

    def __str__(self):
        where = "after %d bytes %s" % (
            self.after, "there" if self.outward else "back") \
            if self.by_byte else "after %.2f s" % self.when
        return "%s %s for %.1f s%s" % (self.kind, where, self.seconds,
                                       "" if self.hit else " (hit nothing)")


class Scenario:
    def __init__(self, seed, number):
        self.label = "%s:%d" % (seed, number)
        self.number = number
        self.wrong = []
        self.with_link = True
        self.works = []         # those of all tries
        self.breaks = []        # those of the last one

    def play(self, world):
        """Again with sooner faults, if none hit."""
        for times in range(TRIES):
            try:
                self.attempt(world, times)
            except AssertionError as e:
                self.wrong.append("before it began: %s" % e)
            if self.wrong or any(each.hit for each in self.breaks):
                break

    def attempt(self, world, times):
        import works
        dice = random.Random(self.label)
        self.with_link = dice.random() < 0.75
        world.ready(self.with_link)
        kinds = [dice.choice(works.KINDS)
                 for _ in range(dice.choice([1, 1, 2, 4]))]
        now = [kind(world, random.Random(dice.random()), "s%dw%d%s" % (
            self.number, n, "-%d" % times if times else ""))
            for n, kind in enumerate(kinds)]
        self.works += now
        for work in now:
            work.prepare()
        self.breaks = [Break(dice, now, world.breakers())
                       for _ in range(dice.choice([1, 1, 2]))]
        for each in self.breaks:
            each.sooner(times)
        self.do(world, now)
        world.heal()
        for work in now:
            try:
                work.settle()
            except Exception as e:
                work.false("%s  at last: %r", "".join(
                    traceback.format_exception(e, limit=-4)), work.last)
            self.wrong += work.wrong

    def do(self, world, works):
        """All at once: the works, and what breaks."""
        def busy():
            return time.monotonic() < end and any(
                work.polling or work.busy() for work in works)

        end = time.monotonic() + LONGEST_S
        world.happened = set()
        for each in self.breaks:
            each.arm(world)
        for work in works:
            work.polling = True
            work.begin()
        world.road.witness = busy
        others = [threading.Thread(target=work.poll_all) for work in works] + [
            threading.Thread(target=self.break_it, args=(world, each, busy))
            for each in self.breaks]
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()
        world.road.witness = bool

    def break_it(self, world, each, busy):
        mend = each.strike(world, busy)
        if each.hit:
            world.happened.add(each.kind)
        if mend is not None:
            time.sleep(each.seconds)
            with world.lock:
                mend()

    def __str__(self):
        return "%s [%s]%s under %s" % (
            self.label, ", ".join(type(work).__name__ for work in self.works),
            "" if self.with_link else " without a link",
            "; ".join(map(str, self.breaks)))


def final_look(scenarios, world):
    """Did anything run late, after it had been judged?"""
    lines = collections.Counter(
        (world.far / "runs").read_text().split("\n")
        if (world.far / "runs").exists() else [])
    for scenario in scenarios:
        for work in scenario.works:
            bounds = work.finally_ran()
            if bounds and not bounds[0] <= lines[work.name] <= bounds[1]:
                scenario.wrong.append("%s ran %d times in the end" % (
                    work.name, lines[work.name]))


def leave(*_):
    """Clean up, whoever else asks for it meanwhile."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def worker(numbers, seed, end, answers):
    """Scenarios in worlds of our own; one answer each."""
    import world as worlds
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    world, batch = None, []

    def judge():
        if world is not None:
            final_look(batch, world)
            world.close()
            for each in batch:
                answers.put((str(each), each.wrong, [
                    (one.kind, one.hit) for one in each.breaks], [
                    (type(work).__name__, work.outcome)
                    for work in each.works]))
            batch.clear()

    try:
        for number in numbers:
            if time.monotonic() > end:
                break
            if world is None or len(batch) == A_WORLD:
                judge()
                world = worlds.World()
            scenario = Scenario(seed, number)
            batch.append(scenario)
            scenario.play(world)
            if scenario.wrong or world.db_was_broken:
                judge()
                world = None
        judge()
        world = None
    except Exception:
        answers.put(("the harness", [traceback.format_exc()], [], []))
    finally:
        if world is not None:
            world.close()
        answers.put(None)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2].strip())
    parser.add_argument("scenarios", nargs="?", type=int, default=100000)
    parser.add_argument("seed", nargs="?", default="1")
    parser.add_argument("--server", default=os.environ.get("RSMCP_SERVER"))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--worlds", type=int, default=2)
    options = parser.parse_args()
    if not options.server:
        parser.error("--server is missing")
    os.environ["RSMCP_SERVER"] = os.path.abspath(options.server)
    return options


def main():
    options = parse()
    seed, _, first = options.seed.partition(":")
    first = int(first or 0)
    end = time.monotonic() + options.seconds
    answers = multiprocessing.Queue()
    count = min(options.worlds, options.scenarios)
    left = [multiprocessing.Process(target=worker, args=(
        range(first + n, first + options.scenarios, count), seed, end,
        answers)) for n in range(count)]
    for process in left:
        process.start()
    signal.signal(signal.SIGTERM, leave)
    try:
        return gather(answers, count, options.seed)
    finally:
        for process in left:
            process.terminate()
            process.join()


def gather(answers, count, seed):
    """Print what was wrong, and at the end how it went."""
    done = bad = over = hit = 0
    faults = collections.Counter()          # by kind
    hits = collections.Counter()
    outcomes = collections.Counter()
    while over < count:
        answer = answers.get()
        if answer is None:
            over += 1
            continue
        done += 1
        what, wrong, breaks, ended = answer
        faults.update(kind for kind, _ in breaks)
        hits.update(kind for kind, one_hit in breaks if one_hit)
        hit += any(one_hit for _, one_hit in breaks)
        outcomes.update(ended)
        if wrong:
            bad += 1
            print("WRONG", what, *wrong, sep="\n  ", flush=True)
        if done % 100 == 0:
            print("%d scenarios, %d wrong" % (done, bad), flush=True)
    for (kind, outcome), times in sorted(outcomes.items()):
        print("%7d %-9s %s" % (times, kind, outcome))
    for kind, times in sorted(faults.items()):
        print("%7d of %3d %s hit" % (hits[kind], times, kind))
    print("%d scenarios of seed %s, %d of them hit, by %d of %d faults; "
          "%d wrong" % (done, seed, hit, hits.total(), faults.total(), bad))
    idle = misses(done, hit, faults, hits)
    for each in idle:
        print("too little was hit: " + each)
    return 1 if bad or idle or not done else 0


def misses(done, hit, faults, hits):
    """Where faults hit too little for the run to mean much."""
    found = ["%d of %d scenarios" % (hit, done)] \
        if done >= ENOUGH and hit < HIT * done else []
    return found + ["%s, %d of %d" % (kind, hits[kind], times)
                    for kind, times in sorted(faults.items())
                    if times >= ENOUGH and hits[kind] < HIT_OF_A_KIND * times]


if __name__ == "__main__":
    sys.exit(main())
