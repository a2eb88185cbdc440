#!/usr/bin/env python3
"""Run a static analyser over src/, on the files that changed since it last
had nothing to say about them.

    check_static.py cppcheck|clang-tidy|analyzer DATABASE

The analyzer is the part of clang-tidy that walks the paths of a function, and
takes nine tenths of its time; "clang-tidy" is the rest of it. DATABASE is the compile database of a build. A file counts as unchanged when
it, every header of ours that it reaches, its compile command, the analyser's
version and its settings are what they were at the last clean check; a file
named after a hash of all that stands in build/lint then.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys

INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
# clang-tidy counts what it does not show, too.
NOISE = re.compile(r"^\d+ warnings? generated\.\n", re.M)
CACHE = "build/lint"

CPPCHECK = [
    "cppcheck", "--quiet", "--std=c11", "--inline-suppr",
    "--enable=warning,performance,portability",
    "--error-exitcode=1", "--template=gcc",
    # Headers of the system and of libraries are not ours to check.
    "--suppress=missingIncludeSystem", "--suppress=unmatchedSuppression",
]


# Added to the checks of .clang-tidy.
TIDY_CHECKS = {
    "clang-tidy": "-clang-analyzer-*",
    "analyzer": "-bugprone-*,-cert-*",
}


def command_line(analyser, database, path):
    if analyser == "cppcheck":
        return CPPCHECK + ["--project=" + database, "--file-filter=" + path]
    return ["clang-tidy", "--quiet", "-p", os.path.dirname(database),
            "--checks=" + TIDY_CHECKS[analyser],
            # The database may come from gcc, whose options clang half knows.
            "--extra-arg=-Wno-unknown-warning-option",
            "--extra-arg=-Wno-ignored-optimization-argument", path]


def settings(analyser):
    """What besides the code decides about the findings."""
    tidy = analyser in TIDY_CHECKS
    version = subprocess.run(["clang-tidy" if tidy else analyser, "--version"],
                             check=True, stdout=subprocess.PIPE).stdout
    with open(__file__, "rb") as own:
        parts = [version, own.read()]
    if tidy:
        with open(".clang-tidy", "rb") as config:
            parts.append(config.read())
    return b"\0".join(parts)


def reached(path, seen):
    """Add the file and every header of ours that it includes to seen."""
    if path in seen or not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        seen[path] = file.read()
    for match in INCLUDE.finditer(seen[path]):
        reached(os.path.join("src", os.fsdecode(match.group(1))), seen)


def stamp(analyser, common, entry, path):
    contents = {}
    reached(path, contents)
    digest = hashlib.sha256(common)
    digest.update(json.dumps(entry, sort_keys=True).encode())
    for name in sorted(contents):
        digest.update(name.encode() + b"\0" + contents[name] + b"\0")
    return os.path.join(CACHE, "%s-%s" % (analyser, digest.hexdigest()))


def units(database):
    """{path: entry} of what the build compiles below src/."""
    found = {}
    with open(database, encoding="utf-8") as file:
        for entry in json.load(file):
            path = os.path.relpath(
                os.path.join(entry["directory"], entry["file"]))
            if path.startswith("src" + os.sep) and os.path.exists(path):
                found.setdefault(path, entry)
    return found


def check(command):
    return subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("cppcheck", *TIDY_CHECKS):
        sys.exit("usage: check_static.py cppcheck|clang-tidy|analyzer DATABASE")
    analyser, database = sys.argv[1:]
    common = settings(analyser)
    files = units(database)
    if not files:
        sys.exit("%s names no file below src/" % database)
    os.makedirs(CACHE, exist_ok=True)
    due = {}
    for path, entry in files.items():
        clean = stamp(analyser, common, entry, path)
        if not os.path.exists(clean):
            due[path] = clean

    failed = 0
    workers = os.cpu_count() or 1
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        commands = [command_line(analyser, database, path) for path in due]
        for path, result in zip(due, pool.map(check, commands)):
            if result.returncode == 0:
                with open(due[path], "w", encoding="utf-8"):
                    pass
            else:
                failed += 1
                sys.stdout.write(NOISE.sub(
                    "", result.stdout.decode("utf-8", "replace")))
    print("%d of %d files looked at, %d with findings"
          % (len(due), len(files), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
