"""A real Claude Code, as far as it goes without an account.

RSMCP_CLAUDE names the program; else it is the one of tests/agents, which
"./dev test --long" installs.
"""

import os
import pathlib
import shutil
import subprocess

import rsmcp

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGENT = ROOT / "tests/agents/node_modules/@anthropic-ai" / \
    "claude-code-linux-x64/claude"
CLAUDE = os.environ.get("RSMCP_CLAUDE") or str(AGENT)
MISSING = None if shutil.which(CLAUDE) else \
    "there is no Claude Code: npm ci in tests/agents, or set RSMCP_CLAUDE"


def copy_plugin(there):
    """The plugin alone: builds and the like of the tree are large."""
    there.mkdir()
    for part in (".claude-plugin", ".mcp.json", "monitors", "skills"):
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, there / part)
        else:
            shutil.copy(ROOT / part, there)
    return there


class Claude:
    """One with a home of its own."""

    def __init__(self, home, path):
        self.cwd = home.home
        self.env = rsmcp.environment(home.home, **home.env(
            PATH=path, DISABLE_AUTOUPDATER="1",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1"))

    def run(self, *args, status=0):
        done = subprocess.run(
            [CLAUDE, *args], env=self.env, cwd=self.cwd, text=True,
            stdin=subprocess.DEVNULL, capture_output=True,
            timeout=3 * rsmcp.PATIENCE_S)
        assert done.returncode == status, done
        return done.stdout
