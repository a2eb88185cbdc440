"""What the README says to type works, from nothing to a command on a machine
and a client that has the server."""

import json
import os
import pathlib
import re
import subprocess

import pytest

import npm_clients
import rsmcp
from claude import CLAUDE

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def blocks(heading):
    """The shell blocks of a section."""
    section = re.search(r"^#+ %s\n(.*?)(?=^#+ |\Z)" % re.escape(heading),
                        README, re.M | re.S)[1]
    found = re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
    assert found, heading
    return found


def shell(text, env, cwd):
    """Type this; what was said."""
    done = subprocess.run(["sh", "-ec", text], env=env, cwd=cwd, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=3 * rsmcp.PATIENCE_S)
    assert done.returncode == 0, done
    return done.stdout


def know_gpu1(home, sshd):
    """The machine of the README, in the user's ssh config."""
    (home.home / ".ssh/config").write_text(
        "Host gpu1\n HostName 127.0.0.1\n Port %d\n User %s\n"
        " IdentityFile %s\n" % (sshd.port, sshd.user, sshd.key))


def test_the_quick_start_ends_with_a_command_on_the_machine(
        home, sshd, named_path):
    know_gpu1(home, sshd)
    env = rsmcp.environment(home.home, **home.env(PATH=named_path))
    assert os.uname().sysname in shell(blocks("Quick start")[1], env,
                                       home.home)
    for line in blocks("By hand")[0].splitlines()[:3]:
        shell(line, env, home.home)


def test_claude_code_can_be_set_up_as_the_readme_says(home, sshd, claude,
                                                      plugin):
    know_gpu1(home, sshd)
    env = {**claude.env, "PATH": "%s:%s" % (pathlib.Path(CLAUDE).parent,
                                            claude.env["PATH"])}
    shell(blocks("Quick start")[1], env, home.home)
    everywhere, project = blocks("Claude Code")
    assert "Connected" in shell(everywhere, env, home.home)
    shell(project, env, home.home)
    skill, install = blocks("Skill and plugin")
    shell(skill, env, plugin)
    assert (home.home / ".claude/skills/remote-sandbox-script-exec/SKILL.md"
            ).is_file()
    shell(install, env, plugin)


@pytest.mark.parametrize("program, title, connects", [
    ("codex", "Codex", False), ("gemini", "Gemini CLI", True)])
def test_other_clients_can_be_set_up_as_the_readme_says(
        home, sshd, named_path, program, title, connects):
    npm_clients.needs(program)
    npm_clients.trust(home.home)
    know_gpu1(home, sshd)
    env = rsmcp.environment(home.home, **home.env(
        PATH=npm_clients.path(named_path)))
    shell(blocks("Quick start")[1], env, home.home)
    shell(blocks(title)[0], env, home.home)
    listed = shell("%s mcp list 2>&1" % program, env, home.home)
    assert "remote-sandbox-mcp" in listed
    assert not connects or "Connected" in listed


def test_every_variable_is_in_the_readme_and_in_the_manual():
    """Those that the program reads, and no others."""
    named = re.compile(r"\b(?:REMOTE_SANDBOX|SSH)_[A-Z_]*[A-Z]\b")
    read = set()
    for path in (ROOT / "src").rglob("*.[ch]"):
        read |= set(re.findall(r'"(%s)"' % named.pattern, path.read_text()))
    # ssh's own.
    read = {n for n in read if not n.startswith("SSH_A")}
    assert "REMOTE_SANDBOX_INLINE_SYNC_MAX_FILES" in read
    table = re.search(r"^### Environment\n(.*?)^#", README, re.M | re.S)[1]
    manual = (ROOT / "man/remote-sandbox-mcp.1").read_text()
    assert read == set(named.findall(table))
    assert read <= set(named.findall(manual))


def test_the_readme_names_every_tool():
    listed = subprocess.run([rsmcp.SERVER, "tools", "--json"], text=True,
                            capture_output=True, check=True,
                            env={**os.environ,
                                 "REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS": "1"})
    names = {tool["name"] for tool in json.loads(listed.stdout)}
    assert len(names) > 20
    assert names - set(re.findall(r"`(\w+)`", README)) == set()
