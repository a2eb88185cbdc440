"""The container file, its steps tried without a container engine.

Its lines are carried out in Debian systems made by debootstrap: those that our
file has, and no others.
"""

import json
import re
import shlex


import pack

SUITES = {"debian:13-slim": "trixie"}


class Stage:
    """One FROM and what follows it."""

    def __init__(self, image, root):
        self.root = root(SUITES[image], "stage%d" % id(self))
        self.root.update()
        self.folder = "/"
        self.user = "root"
        self.label = {}
        self.entry = None

    def inside(self, *argv):
        return ["setpriv", "--reuid", self.user, "--regid", self.user,
                "--init-groups", "--reset-env", "env", "-C", self.folder,
                *argv]

    def do(self, word, rest, stages):
        if word == "RUN":
            self.root.run(*self.inside("sh", "-c", rest))
        elif word == "WORKDIR":
            self.folder = rest
        elif word == "USER":
            self.user = rest
        elif word == "ENTRYPOINT":
            self.entry = json.loads(rest)
        elif word == "LABEL":
            name, value = shlex.split(rest)[0].split("=", 1)
            self.label[name] = value
        elif word == "ADD":
            name, place = rest.split()
            self.root.write("tmp/" + name, (pack.PACKAGES / name).read_bytes())
            self.root.run("tar", "-xzf", "/tmp/" + name, "-C", place)
        elif word == "COPY":
            option, source, place = rest.split()
            other = stages[option.removeprefix("--from=")]
            pack.run("sh", "-c", 'cp -a "$1/." "$2"', "sh",
                     other.root.upper / source[1:],
                     self.root.upper / place[1:])
        else:
            raise AssertionError("the test does not know " + word)


def steps(text):
    """Pairs of instruction and arguments; this file continues no line."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            assert not line.endswith("\\"), line
            yield line.split(None, 1)


def carry_out(text, root):
    stages, stage = {}, None
    for word, rest in steps(text):
        if word == "FROM":
            image, name = re.fullmatch(r"(\S+)(?: AS (\S+))?", rest).groups()
            stage = Stage(image, root)
            stages[name] = stage
        else:
            stage.do(word, rest, stages)
    return stage


def test_its_steps_make_a_server(root, tmp_path):
    last = carry_out(pack.find("Containerfile").read_text(), root)
    name = json.loads(pack.find("server.json").read_text())["name"]
    assert last.label["io.modelcontextprotocol.server.name"] == name
    assert last.user == "agent"
    last.root.serves(tmp_path, *last.inside(*last.entry))
    told = last.root.run(*last.inside("ssh", "-V"))
    assert told == ""
