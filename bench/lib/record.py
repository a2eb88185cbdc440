"""What a benchmark finds out: figures in rows, and targets.

end() writes it to build/bench/NAME.json, from which bench/report.py makes the
comparison.  A figure is one of

    {"median", "low", "high", "runs"}   low and high are the quartiles
    {"bound"}                           it was stopped there: at best this
    {"cannot"}                          why there is none

and may have a "note".  Less is better, unless the row says "more".
"""

import json
import os
import platform
import statistics
import sys
import time

from lib import peers

PLACE = peers.TREE / "build" / "bench"
MISSED = 3              # the exit status; other failures have another one


class Row:
    def __init__(self, section, title, unit, more):
        self.content = {"section": section, "title": title, "unit": unit,
                        "more": more, "figures": {}}

    def add(self, name, values, note=""):
        """Its median."""
        low, median, high = quartiles(values)
        self.put(name, {"median": median, "low": low, "high": high,
                        "runs": len(values)}, note)
        return median

    def bound(self, name, value, note=""):
        self.put(name, {"bound": value}, note)

    def cannot(self, name, why):
        self.put(name, {"cannot": why}, "")

    def put(self, name, figure, note):
        if note:
            figure["note"] = note
        self.content["figures"][name] = figure


class Record:
    """Prints targets as they are reached or missed."""

    def __init__(self, name, realtime=False):
        self.path = PLACE / f"{name}.json"
        self.path.unlink(missing_ok=True)
        arguments = sys.argv[1:]
        if "--binary" in arguments:
            at = arguments.index("--binary")
            del arguments[at:at + 2]
        self.rows, self.targets, self.right = [], [], True
        self.head = {
            "name": name, "options": arguments,
            "day": time.strftime("%Y-%m-%d", time.gmtime()),
            "machine": f"{platform.system()} {platform.machine()}",
            "processors": os.cpu_count(),
            "load": round(at_work(), 1),
            "versions": peers.versions()}
        report_load(self.head, realtime)

    def row(self, section, title, unit, more=False):
        row = Row(section, title, unit, more)
        self.rows.append(row)
        return row

    def table(self, section, title, unit, took):
        """A row of what each took: {name: values}."""
        row = self.row(section, title, unit)
        for name, values in took.items():
            if values:
                row.add(name, values)
        return row

    def target(self, text, reached):
        print(f"target: {text}: {'reached' if reached else 'MISSED'}")
        self.targets.append({"text": text, "reached": bool(reached)})

    def must(self, text, good):
        """What is wrong, not slow, if it does not hold."""
        print(f"{text}: {'yes' if good else 'NO'}")
        self.right = self.right and good

    def end(self, skipped):
        """Writes it all; the exit status of the benchmark.  Skipped are those
        that are not to be had, or broke: {name: why}."""
        for name, why in skipped.items():
            print(f"skipped: {name}: {why}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(
            self.head | {"rows": [row.content for row in self.rows],
                         "targets": self.targets, "skipped": skipped},
            indent=1) + "\n")
        if not self.right:
            return 1
        good = all(target["reached"] for target in self.targets)
        return 0 if good else MISSED


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    return statistics.quantiles(values, n=4, method="inclusive")


def at_work(seconds=2):
    """How many processors have other work just now.  The load average would
    count the benchmark before this one."""
    def spent():
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(word) for word in file.readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]       # all, idle

    try:
        before = spent()
        time.sleep(seconds)
        all_of_it, idle = (b - a for a, b in zip(before, spent()))
        return (1 - idle / all_of_it) * os.cpu_count()
    except (OSError, ValueError, ZeroDivisionError):
        return os.getloadavg()[0]


def report_load(head, realtime):
    note = ""
    if head["load"] > head["processors"] / 2:
        note = "; this machine is busy, which distorts the figures"
    if realtime:
        note = "; measured before other work"
    print(f"{head['load']} of {head['processors']} processors have other "
          f"work{note}")
