#!/usr/bin/env python3
"""Check that no layer of src/ includes a layer above it.

    check_layers.py [ROOT]

An include may point down or sideways, never up. Prints one line for each
include that does not, and exits 1.
"""

import os
import re
import sys

from sources import c_files, read, report, without_comments

# Lowest first; folders in one row may include each other.
LAYERS = [
    ["base"],
    ["config", "store"],
    ["ssh"],
    ["sync", "job"],
    ["watch"],
    ["tools"],
    ["mcp"],
    ["cli"],    # beside mcp, but "serve" starts it, so one way only
    [""],       # src/main.c, if there is one
]
RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}

# Libraries that have one home.
HOMES = {
    "sqlite3.h": "store",
    "archive.h": "sync",
    "archive_entry.h": "sync",
    "zlib.h": "sync",
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.M)


def problem(root, name, target):
    """Why the file may not include the target, or None."""
    folder = os.path.dirname(name)[len("src/"):]
    if folder not in RANK:
        return "src/%s is no layer of scripts/check_layers.py" % folder
    if HOMES.get(target, folder) != folder:
        return "<%s> is used only in src/%s" % (target, HOMES[target])
    if target.startswith(".") or ("/" not in target and os.path.exists(
            os.path.join(root, os.path.dirname(name), target))):
        return 'include "%s" by its path from src/' % target
    other = os.path.dirname(target)
    if not os.path.exists(os.path.join(root, "src", target)):
        return None     # the system's, a library's, or generated
    if other not in RANK:
        return "src/%s is no layer of scripts/check_layers.py" % other
    if RANK[other] > RANK[folder]:
        return "src/%s may not include %s, which is above it" % (folder, target)
    return None


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    found = 0
    for name in c_files(root, "src"):
        text = without_comments(read(root, name))
        for match in INCLUDE.finditer(text):
            message = problem(root, name, match.group(1))
            if message:
                line = text.count("\n", 0, match.start()) + 1
                report(name, line, message)
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
