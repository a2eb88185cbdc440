#!/usr/bin/env python3
"""Check that no file of the tree tells on the machine it was made on.

    check_text.py [ROOT]

Lock files record what to install, not where it was downloaded from; nothing
names a package registry or a path of one developer's machine. Prints one line
for each finding and exits 1.
"""

import os
import re
import sys

from sources import tree_files, report

LOCK_FILE = re.compile(r"(package-lock|npm-shrinkwrap)\.json|.*\.lock")

EVERYWHERE = [
    (re.compile(rb"https?://[^ ]*registry"), "address of a package registry"),
    (re.compile(rb"(?<![\w.~])/(?:root|work)/"), "path of one machine"),
]
IN_LOCK_FILES = [
    (re.compile(rb'"resolved"|^\s*resolved\s', re.M),
     "download address in a lock file (npm: omit-lockfile-registry-resolved)"),
]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    found = 0
    for name in tree_files(root):
        with open(os.path.join(root, name), "rb") as file:
            content = file.read()
        rules = list(EVERYWHERE)
        if LOCK_FILE.fullmatch(os.path.basename(name)):
            rules += IN_LOCK_FILES
        for pattern, message in rules:
            for match in pattern.finditer(content):
                line = content.count(b"\n", 0, match.start()) + 1
                report(name, line, message)
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
