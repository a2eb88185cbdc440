"""What the checks share: the files of a tree, and C without its prose."""

import os
import re
import shutil
import subprocess

SKIPPED = {".git", "build", "node_modules", "__pycache__", ".pytest_cache"}


def tree_files(root):
    """Paths relative to root: what git tracks or would track, sorted.

    A tree that is no git work tree of its own (an unpacked archive, the small
    trees of the tests) is walked instead, and so is any where git is missing.
    """
    if os.path.exists(os.path.join(root, ".git")) and shutil.which("git"):
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"],
            check=True, stdout=subprocess.PIPE).stdout
        names = {os.fsdecode(name) for name in listed.split(b"\0") if name}
    else:
        names = set()
        for folder, below, files in os.walk(root):
            below[:] = [name for name in below if name not in SKIPPED]
            names.update(os.path.relpath(os.path.join(folder, name), root)
                         for name in files)
    # A deleted file stays in git's index until the deletion is staged.
    return sorted(name for name in names
                  if os.path.isfile(os.path.join(root, name)))


def c_files(root, *folders):
    """The .c and .h files below the given folders of root."""
    return [name for name in tree_files(root)
            if name.endswith((".c", ".h"))
            and name.startswith(tuple(folder + "/" for folder in folders))]


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8",
              errors="surrogateescape") as file:
        return file.read()


# Comments, string literals and character constants, whichever comes first.
PROSE = re.compile(
    r'//(?:\\\n|[^\n])*'
    r'|/\*.*?(?:\*/|\Z)'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL)


def code_only(text):
    """The text with comments and literals blanked; lines keep their numbers."""
    def blank(match):
        found = match.group()
        lines = "\n" * found.count("\n")
        if found[0] in "\"'":
            return found[0] + lines + found[0]
        return " " + lines
    return PROSE.sub(blank, text)


def without_comments(text):
    """The text with comments blanked; literals stay."""
    def blank(match):
        found = match.group()
        if found[0] in "\"'":
            return found
        return " " + "\n" * found.count("\n")
    return PROSE.sub(blank, text)


def report(name, line, message):
    print("%s:%d: %s" % (name, line, message))
