#!/usr/bin/env python3
"""Make the wheel: a native program as a script, and a package that finds it.

    build.py METADATA LICENSE PROGRAM TAG OUT

TAG is the platform part, several joined by dots. The program goes where
installers put scripts, so that it is started without an interpreter. Files
have one fixed date: the same input makes the same wheel. Prints its path.
"""

import base64
import hashlib
import os
import re
import sys
import zipfile

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "remote_sandbox_mcp")
DATE = (1980, 1, 1, 0, 0, 0)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def digest(data):
    sha = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=%s" % sha.rstrip(b"=").decode()


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, DATE)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        self.record.append("%s,%s,%d\n" % (name, digest(data), len(data)))

    def close(self, folder):
        name = folder + "/RECORD"
        self.add(name, "".join(self.record + [name + ",,\n"]).encode())
        self.zip.close()


def main():
    metadata, license_file, program, tag, out = sys.argv[1:]
    about = read(metadata)
    version = re.search(rb"^Version: (.*)$", about, re.M)[1].decode()
    name = "remote_sandbox_mcp-" + version
    path = os.path.join(out, "%s-py3-none-%s.whl" % (name, tag))
    tags = "".join("Tag: py3-none-%s\n" % one for one in tag.split("."))

    wheel = Wheel(path)
    for file in sorted(os.listdir(PACKAGE)):
        if file.endswith(".py"):
            wheel.add("remote_sandbox_mcp/" + file,
                      read(os.path.join(PACKAGE, file)))
    wheel.add(name + ".data/scripts/remote-sandbox-mcp", read(program), 0o755)
    info = name + ".dist-info"
    wheel.add(info + "/METADATA", about)
    wheel.add(info + "/WHEEL", (
        "Wheel-Version: 1.0\nGenerator: remote-sandbox-mcp\n"
        "Root-Is-Purelib: false\n" + tags).encode())
    wheel.add(info + "/licenses/LICENSE", read(license_file))
    wheel.close(info)
    print(path)


if __name__ == "__main__":
    main()
