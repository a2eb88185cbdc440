#!/usr/bin/env python3
"""Check that README.md and its translation say the same.

    check_readme.py [ROOT]

Both have the same sections in the same order; in each the same code blocks
(comments aside), the same words in backquotes, as many rows of tables, the same
figures, and the same links to files, which exist. Prints one line for each finding and exits 1.
"""

import os
import re
import sys

from sources import report

ORIGINAL, TRANSLATION = "README.md", "README.zh-CN.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
FIGURE = re.compile(r"(?<![\w.])\d+(?:[.]\d+)*")


class Section:
    """What is under a heading."""

    def __init__(self, line, heading, text):
        self.line = line
        self.heading = heading.strip()
        self.level = len(heading) - len(heading.lstrip("#"))
        self.blocks = [(kind, self.without_comments(body))
                       for kind, body in FENCE.findall(text)]
        prose = FENCE.sub("", text)
        self.words = set(re.findall(r"`([^`]+)`", prose))
        self.rows = len(re.findall(r"^\|", prose, re.M))
        self.figures = sorted(FIGURE.findall(prose))
        links = re.findall(r"\]\(([^)#]+)\)", prose)
        self.links = {link for link in links if "://" not in link
                      and link not in (ORIGINAL, TRANSLATION)}

    @staticmethod
    def without_comments(body):
        return [re.sub(r"\s+# .*", "", line) for line in body.splitlines()]


def sections(text):
    """The sections of a file; a line in a code block is no heading."""
    hidden = FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    starts = [m.start() for m in re.finditer(r"^#+ ", hidden, re.M)]
    for begin, end in zip(starts, starts[1:] + [len(text)]):
        heading, _, rest = text[begin:end].partition("\n")
        yield Section(text.count("\n", 0, begin) + 1, heading, rest)


def difference(ours, theirs):
    """What the translation of a section lacks or has too much, in words."""
    if ours.level != theirs.level:
        yield "is a section of another level than '%s'" % ours.heading
    if ours.blocks != theirs.blocks:
        yield "has other code blocks than '%s'" % ours.heading
    for name in ("words", "links"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        for word in sorted(mine - other):
            yield "lacks %s of '%s'" % (word, ours.heading)
        for word in sorted(other - mine):
            yield "has %s, which '%s' has not" % (word, ours.heading)
    if ours.rows != theirs.rows:
        yield "has other rows of tables than '%s'" % ours.heading
    if ours.figures != theirs.figures:
        yield "has other figures than '%s'" % ours.heading


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    texts = {}
    for name in (ORIGINAL, TRANSLATION):
        with open(os.path.join(root, name), encoding="utf-8") as file:
            texts[name] = list(sections(file.read()))
    findings = []
    ours, theirs = texts.values()
    for mine, other in zip(ours, theirs):
        findings += [(TRANSLATION, other.line, what)
                     for what in difference(mine, other)]
    if len(ours) != len(theirs):
        findings.append((TRANSLATION, 1, "has %d sections, %s has %d"
                         % (len(theirs), ORIGINAL, len(ours))))
    for section in ours:
        findings += [(ORIGINAL, section.line, "there is no " + link)
                     for link in sorted(section.links)
                     if not os.path.exists(os.path.join(root, link))]
    for finding in findings:
        report(*finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
