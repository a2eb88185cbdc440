#!/usr/bin/env python3
"""Check that the C code leaves certain functions and stdout alone.

    check_calls.py [ROOT]

Looks at code only, never at comments or literals. Prints one line for each
use with what to take instead, and exits 1.
"""

import re
import sys

from sources import c_files, code_only, read, report

BUF = "has no limit: use struct buf or snprintf"
NUMBER = "cannot fail: use the str_to_* functions, which take a range"
SHELL = "runs a shell: use base/proc.h"
NAMES = "invites a race: use fs_replace or mkstemp"
MEMORY = "may return NULL: use base/mem.h"

# Nowhere in src/ or tests/.
BANNED = {
    "strcpy": BUF, "strcat": BUF, "stpcpy": BUF, "gets": BUF,
    "sprintf": BUF, "vsprintf": BUF,
    "strncpy": "may leave out the NUL: use struct buf or snprintf",
    "atoi": NUMBER, "atol": NUMBER, "atoll": NUMBER, "atof": NUMBER,
    "strtok": "keeps hidden state: use strtok_r or strcspn",
    "system": SHELL, "popen": SHELL,
    "alloca": "has no limit: use base/mem.h",
    "tmpnam": NAMES, "tempnam": NAMES, "mktemp": NAMES,
}

# Only in src/base/mem.c; tests may.
ALLOCATORS = {
    name: MEMORY for name in (
        "malloc", "calloc", "realloc", "reallocarray", "strdup", "strndup",
        "asprintf", "vasprintf")
}

# While serving, stdout carries protocol frames and nothing else. So only the
# frame writer and the commands for people may know it.
STDOUT_OK = re.compile(r"src/(mcp/frame[^/]*\.c|cli/.*)")
STDOUT = re.compile(
    r"\b(?:(?:v?printf|puts|putchar(?:_unlocked)?)\s*(?=\()"
    r"|(?:write|writev|dprintf|vdprintf|send)\s*\(\s*1\s*(?=,)"
    r"|stdout\b|STDOUT_FILENO\b)")

ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")


def calls(names):
    """Calls of these functions, but not of members with such a name."""
    return re.compile(r"(?<![\w.])(?<!->)(%s)\s*\(" % "|".join(names))


BANNED_CALL = calls(BANNED)
ALLOCATOR_CALL = calls(ALLOCATORS)


def findings(name, code):
    """(offset, message) for each finding in one file."""
    for match in BANNED_CALL.finditer(code):
        called = match.group(1)
        yield match.start(), "%s() %s" % (called, BANNED[called])
    if not name.startswith("src/"):
        return
    if name != "src/base/mem.c":
        for match in ALLOCATOR_CALL.finditer(code):
            called = match.group(1)
            yield match.start(), "%s() %s" % (called, ALLOCATORS[called])
    if not STDOUT_OK.fullmatch(name):
        for match in STDOUT.finditer(code):
            yield match.start(), (
                "%s: stdout belongs to src/mcp/frame*.c and src/cli"
                % " ".join(match.group().split()))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    found = 0
    for name in c_files(root, "src", "tests"):
        code = code_only(read(root, name))
        code = ATTRIBUTE.sub(
            lambda match: "\n" * match.group().count("\n"), code)
        for offset, message in sorted(findings(name, code)):
            report(name, code.count("\n", 0, offset) + 1, message)
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
