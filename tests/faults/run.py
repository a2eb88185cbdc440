#!/usr/bin/env python3
"""Everything breaks, and every reply has to be true.

    run.py [--server PROGRAM] [--seconds N] [--worlds N] [SCENARIOS [SEED]]

A scenario takes some works (works.py), breaks something while they are done
(road.py, world.py), makes all well again, and checks what was said.  SEED is a
number; SEED:N begins with scenario N of it, which is how one is done again:
the works, the faults and their places are the same, the times of a busy
machine are not.  Exits 1 if anything that was said was not true.
"""

import argparse
import collections
import multiprocessing
import os
import pathlib
import random
import signal
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

A_WORLD = 40        # scenarios in one world, then a new one is made


class Scenario:
    def __init__(self, seed, number):
        self.label = "%s:%d" % (seed, number)
        self.number = number
        self.dice = random.Random(self.label)
        self.wrong = []
        self.done = []          # what was broken

    def play(self, world):
        import works
        dice = self.dice
        first = dice.choice(works.KINDS)
        kinds = [first] + [dice.choice(works.KINDS)
                           for _ in range(dice.choice([0, 0, 1, 3]))]
        # No two at once on a machine: they would share what is broken.
        self.works = [kind(world, random.Random(dice.random()),
                           "s%dw%d" % (self.number, n))
                      for n, kind in enumerate(kinds)]
        self.plan(world, dice)
        for work in self.works:
            work.begin()
        self.break_it(world)
        for work in self.works:
            work.poll()
        self.struck = len(world.road.struck) + len(self.breaks)
        world.heal()
        for work in self.works:
            try:
                work.settle()
            except Exception as e:
                work.false("%s  at last: %r", "".join(
                    traceback.format_exception(e, limit=-4)), work.last)
            self.wrong += work.wrong

    def plan(self, world, dice):
        import road
        self.breaks = []
        for _ in range(dice.choice([1, 1, 2])):
            seconds = dice.choice([0.1, 0.4, 1, 2.5])
            if dice.random() < 0.6:
                fault = road.Fault(
                    dice.choice(road.Road.KINDS), dice.random() < 0.5,
                    int(10 ** dice.uniform(0, 6)), seconds,
                    dice.choice([5000, 50000, 500000]))
                world.road.arm(fault)
                self.done.append(str(fault))
            else:
                name = dice.choice(world.breakers())
                self.breaks.append((name, dice.uniform(0, 0.5), seconds))
                self.done.append("%s for %.1f s" % (name, seconds))

    def break_it(self, world):
        for name, when, seconds in self.breaks:
            time.sleep(when)
            getattr(world, name)(seconds)
        if not self.breaks:
            time.sleep(self.dice.uniform(0, 1))

    def __str__(self):
        return "%s [%s] under %s" % (
            self.label, ", ".join(type(work).__name__ for work in self.works),
            "; ".join(self.done))


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
                answers.put((str(each), each.wrong, each.struck, [
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
        answers.put(("the harness", [traceback.format_exc()], 0, []))
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
    done = bad = over = faults = 0
    outcomes = collections.Counter()
    while over < count:
        answer = answers.get()
        if answer is None:
            over += 1
            continue
        done += 1
        what, wrong, struck, ended = answer
        faults += struck
        outcomes.update(ended)
        if wrong:
            bad += 1
            print("WRONG", what, *wrong, sep="\n  ", flush=True)
        if done % 100 == 0:
            print("%d scenarios, %d wrong" % (done, bad), flush=True)
    for (kind, outcome), times in sorted(outcomes.items()):
        print("%7d %-9s %s" % (times, kind, outcome))
    print("%d scenarios of seed %s, %d faults, %d wrong" % (
        done, seed, faults, bad))
    return 1 if bad or not done else 0


if __name__ == "__main__":
    sys.exit(main())
