"""Packages as a test sees them: found, installed, started.

    RSMCP_PACKAGES  where "./dev package" put them
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

TREE = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGES = pathlib.Path(os.environ.get("RSMCP_PACKAGES")
                        or TREE / "build/package")
NAME = "remote-sandbox-mcp"
VERSION = re.search(r"^project\(.* VERSION (\S+)",
                    (TREE / "CMakeLists.txt").read_text(), re.M)[1]

sys.path.insert(0, str(TREE / "tests/e2e"))
import rsmcp  # noqa: E402


def find(pattern):
    """The one package of that name; none, if its tools are not here."""
    found = list(PACKAGES.glob(pattern))
    if not found:
        pytest.skip("no package %s: its tools cannot be had here" % pattern)
    assert len(found) == 1, found
    return found[0]


def needs(program):
    """The path of a program; without it the test is skipped."""
    path = shutil.which(program)
    if path is None:
        pytest.skip("there is no %s here" % program)
    return path


def run(*argv, **options):
    """What a command prints; it must succeed."""
    done = subprocess.run([str(arg) for arg in argv], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)
    assert done.returncode == 0, "%s: status %d\n%s\n%s" % (
        " ".join(map(str, argv)), done.returncode, done.stdout, done.stderr)
    return done.stdout


def serves(home, *argv, env=None):
    """Started so, it is our server: it answers, and ends with its client."""
    server = rsmcp.Server(home, *map(str, argv[1:]), program=str(argv[0]),
                          env=env)
    try:
        # An installer may have to work before the first answer.
        server.send(rsmcp.request(1, "initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}))
        line = server.line(timeout=6 * rsmcp.PATIENCE_S)
        assert line, server.stderr()
        about = json.loads(line)["result"]["serverInfo"]
        assert (about["name"], about["version"]) == ("remote-sandbox", VERSION)
        tools = server.ask(2, "tools/list")["result"]["tools"]
        assert "exec_bash" in [tool["name"] for tool in tools]
        server.close_input()
        server.ends(within=rsmcp.PATIENCE_S)
    finally:
        server.kill()
