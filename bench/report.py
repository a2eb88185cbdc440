#!/usr/bin/env python3
"""The comparison, from what the benchmarks left in build/bench.

    report.py [--from DIRECTORY] [--docs DIRECTORY]

Prints it as one table and writes docs/benchmarks.md, with a chart for each
section in docs/charts.
"""

import argparse
import json
import pathlib
import re
import sys

from lib import chart, compare, remedies

TREE = pathlib.Path(__file__).resolve().parent.parent
ORDER = ("start", "exec", "crowd", "output", "resources", "sync", "growth",
         "jobs", "watch", "load")

INTRO = """# Benchmarks

<!-- Written by ./dev bench from what it measured. Do not edit. -->

Our server next to others that bring commands and files to a machine over SSH,
measured by `./dev bench`. In each benchmark all take turns in one run, so that
a busy machine is busy for all; each figure is a median with the quartiles
below it, and what carries over to other machines is the ratios. In brackets:
how many times worse than ours. "Even" is a row where the quartiles of ours and
of another overlap, so that neither is ahead. What is measured how stands at the
top of each `bench/NAME.py`; "master" is an open connection of OpenSSH
(ControlMaster), "original" the server in Python whose tools ours has.
"""

REPRODUCE = """## How to reproduce

```sh
./dev bench                 # all of it, and this page; about 40 minutes
./dev bench exec            # one benchmark; --help lists its options
./dev bench report          # this page again, from build/bench/*.json
```

As root, in a container or a virtual machine without other work: the accounts
on the far side are made for it and removed again, sshd is private and listens
on loopback, a delay of the network and what it carries come from a relay
(`bench/lib/relay.py`).
The others are installed by it: from npm as `tests/clients/package-lock.json`
pins them, from PyPI by version; OpenSSH, rsync and tar are the system's.
A target that is missed makes the exit status 3; anything else that is not 0
means that a benchmark broke, or that one of our answers was wrong.
"""


def load(directory):
    """The records that are there, in order."""
    paths = [directory / f"{name}.json" for name in ORDER]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


# --- the terminal -------------------------------------------------------------

def print_row(row):
    ours = compare.amount(row.ours["median"], row.unit)
    print(f"  {row.title}")
    print(f"    {compare.OURS:24}{ours:>12}{'':>11}  {'':8}"
          f"{compare.spread(row.ours, row.unit)}".rstrip())
    for peer in row.peers:
        if peer.ratio is None:
            print(f"    {peer.name:24}{'cannot':>12}  {peer.figure['cannot']}")
            continue
        print(f"    {peer.name:24}{peer.text():>12}{peer.times_text():>11}  "
              f"{peer.verdict():8}{compare.spread(peer.figure, row.unit)}"
              .rstrip())


def print_all(found, records):
    for section, rows in found.items():
        print(section)
        for row in rows:
            print_row(row)
    print(f"{total(found)}; {len(missed_targets(records))} targets missed")


def total(found):
    rows = [row for each in found.values() for row in each if row.peers]
    verdicts = [row.verdict() for row in rows]
    text = (f"{len(rows)} rows with others: ahead of all in "
            f"{verdicts.count('ahead')}, even with the best in "
            f"{verdicts.count('even')}, behind one in "
            f"{verdicts.count('behind')}")
    if "unknown" in verdicts:
        text += (f", unknown in {verdicts.count('unknown')}, where one was "
                 "stopped too soon to tell")
    return text


# --- the page -----------------------------------------------------------------

def cell(text):
    return text.replace("|", "\\|")


def table(head, lines):
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(map(cell, row)) + " |"
                     for row in rows) + "\n"


def is_busy(record):
    return record["load"] > record["processors"] / 2


def missed_targets(records):
    return [(record["name"], target["text"]) for record in records
            for target in record["targets"] if not target["reached"]]


def conditions(records):
    """When, where, with what."""
    lines = []
    for record in records:
        command = " ".join(["./dev bench", record["name"],
                            *record["options"]])
        lines.append([f"`{command}`", record["day"], str(record["load"])])
    versions = {}
    for record in records:
        versions |= record["versions"]
    machines = sorted({f"{record['machine']}, {record['processors']} "
                       "processors" for record in records})
    text = "## Conditions\n\n" + "; ".join(machines) + ". " + ", ".join(
        f"{name} {version}" for name, version in versions.items()) + ".\n\n"
    if any(map(is_busy, records)):
        text += ("**The machine was busy with other work** while some of this "
                 "was measured, as the last column shows; the figures are "
                 "provisional.\n\n")
    return text + table(["measured by", "day", "processors with other work"], lines)


def short(found):
    """One line a row: ours and the best of the others."""
    lines = []
    for section, rows in found.items():
        for row in rows:
            best = row.best()
            lines.append([
                f"{section}: {row.title}",
                compare.amount(row.ours["median"], row.unit),
                f"{best.name}, {best.text()}" if best else "-",
                best.times_text() if best else "-", row.verdict()])
    return f"## In short\n\n{total(found)}.\n\n" + table(
        ["what", "ours", "best of the others", "times ours", ""], lines)


def behind(found, records):
    """What we are not proud of."""
    busy = {record["name"]: is_busy(record) for record in records}
    lines = []
    for rows in found.values():
        for row in rows:
            if not row.behind():
                continue
            those = ", ".join(f"{peer.name} {peer.text()}"
                              for peer in row.behind())
            lines.append(
                f"- **{row.section}: {row.title}**: ours "
                f"{compare.amount(row.ours['median'], row.unit)}, {those}. "
                + remedies.remedy(row.bench, row.title, busy[row.bench]))
    for bench, text in missed_targets(records):
        lines.append(f"- **Target of `./dev bench {bench}` missed**: {text}. "
                     + remedies.remedy(bench, text, busy[bench]))
    return "## Where we are behind\n\n" + (
        "\n".join(lines) or "Nowhere, and every target was reached.") + "\n"


def absent(found, records):
    """Who is not to be had, and who cannot."""
    lines = []
    for record in records:
        for name, why in record["skipped"].items():
            lines.append(f"- {name}, in `./dev bench {record['name']}`: "
                         f"{' '.join(why.split())}.")
    for section, rows in found.items():
        for row in rows:
            reasons = {}
            for peer in row.peers:
                if peer.ratio is None:
                    reasons.setdefault(peer.figure["cannot"], []).append(
                        peer.name)
            lines += [f"- {section}: {row.title}: {'; '.join(names)}: {why}."
                      for why, names in reasons.items()]
    return "## Who cannot, or is not to be had\n\n" + (
        "\n".join(lines) or "All can.") + "\n"


def figure_cell(row, figure, peer=None):
    """Median, quartiles, ratio."""
    if peer is None:
        text = compare.amount(figure["median"], row.unit)
    elif peer.ratio is None:
        return "cannot"
    else:
        text = f"{peer.text()} ({peer.times_text()})"
    quartiles = compare.spread(figure, row.unit)
    return text + (f"<br>{quartiles}" if quartiles else "")


def section_text(title, rows, picture):
    names = list(dict.fromkeys(peer.name for row in rows
                               for peer in row.peers))
    lines, remarks = [], []
    for row in rows:
        by_name = {peer.name: peer for peer in row.peers}
        lines.append([row.title, figure_cell(row, row.ours)] + [
            figure_cell(row, by_name[name].figure, by_name[name])
            if name in by_name else "-" for name in names] + [row.verdict()])
        notes = [f"{name} {figure['note']}" for name, figure in
                 [(compare.OURS, row.ours)] + [(peer.name, peer.figure)
                                               for peer in row.peers]
                 if "note" in figure]
        if notes:
            remarks.append(f"- {row.title}: {'; '.join(notes)}.")
    text = f"## {title}\n\n"
    if picture:
        text += f"![{title}](charts/{picture})\n\n"
    text += table(["what", "ours", *names, ""], lines)
    return text + ("\n" + "\n".join(remarks) + "\n" if remarks else "")


def slug(title):
    return re.sub("[^a-z0-9]+", "-", title.lower()).strip("-") + ".svg"


def write(found, records, docs):
    charts = docs / "charts"
    charts.mkdir(parents=True, exist_ok=True)
    for old in charts.glob("*.svg"):
        old.unlink()
    parts = [INTRO, short(found), behind(found, records)]
    for title, rows in found.items():
        picture = chart.svg(title, rows)
        if picture:
            (charts / slug(title)).write_text(picture)
        parts.append(section_text(title, rows, picture and slug(title)))
    parts += [absent(found, records), conditions(records), REPRODUCE]
    (docs / "benchmarks.md").write_text("\n".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", type=pathlib.Path,
                        default=TREE / "build" / "bench",
                        help="where the benchmarks left their figures")
    parser.add_argument("--docs", type=pathlib.Path, default=TREE / "docs",
                        help="where the page goes")
    options = parser.parse_args()
    records = load(options.source)
    if not records:
        raise SystemExit(f"no figures in {options.source}: run ./dev bench")
    found = compare.sections(records)
    print_all(found, records)
    write(found, records, options.docs)
    print(f"written: {options.docs / 'benchmarks.md'}")


if __name__ == "__main__":
    sys.exit(main())
