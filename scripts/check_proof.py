#!/usr/bin/env python3
"""Check that the tests which the documents name are there.

    check_proof.py [ROOT]

A test is named as `test_x.py::test_y` or `test_x.c::y`, a whole file as
`fuzz_x.c`; its file is below tests/. A table whose last column is "test" names
one in every row. Prints one line for each finding and exits 1.
"""

import os
import re
import sys

from sources import read, report, tree_files

NAMED = re.compile(r"`((?:test|fuzz)_\w+\.(?:py|c))(?:::(\w+))?`")
ROW = re.compile(r"\|.*\|\s*")
DIVIDER = re.compile(r"\|[\s:|-]+\|\s*")


def tests_of(root):
    """File name: its text, of all tests."""
    return {os.path.basename(name): read(root, name)
            for name in tree_files(root) if name.startswith("tests/")
            and name.endswith((".py", ".c"))}


def defined(name, text):
    return re.search(r"^(?:def )?%s\(" % re.escape(name), text, re.M)


def findings(text, tests):
    """(line, what is wrong) of one document."""
    asked = False           # is this a row of a table that names tests?
    for number, line in enumerate(text.split("\n"), 1):
        named = NAMED.findall(line)
        for file, name in named:
            if file not in tests:
                yield number, "there is no test file %s" % file
            elif name and not defined(name, tests[file]):
                yield number, "%s has no test %s" % (file, name)
        if not ROW.fullmatch(line):
            asked = False
        elif line.strip(" |").endswith("| test"):
            asked = True
        elif asked and not named and not DIVIDER.fullmatch(line):
            yield number, "this row names no test"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    tests = tests_of(root)
    found = 0
    for name in tree_files(root):
        if name.startswith("docs/") and name.endswith(".md"):
            for line, message in findings(read(root, name), tests):
                report(name, line, message)
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
