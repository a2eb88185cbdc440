"""The repository as a plugin of Claude Code: what its files say, what its
monitor prints, and what a real Claude Code makes of it."""

import json
import os
import pathlib
import re
import select
import subprocess

import rsmcp

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read(name):
    return json.loads((ROOT / name).read_text())


def test_the_manifest_has_the_version_of_the_program():
    done = subprocess.run([rsmcp.SERVER, "version"], text=True,
                          capture_output=True, check=True)
    plugin = read(".claude-plugin/plugin.json")
    assert plugin["version"] in re.split(r"\s+", done.stdout)
    [listed] = read(".claude-plugin/marketplace.json")["plugins"]
    assert listed["name"] == plugin["name"]
    assert listed["description"] == plugin["description"]


def has_open(pid, name):
    links = pathlib.Path("/proc/%d/fd" % pid).iterdir()
    try:
        return any(name in os.readlink(link) for link in links)
    except FileNotFoundError:   # closed meanwhile
        return False


@rsmcp.needs_proc
def test_the_monitor_prints_a_line_when_a_watched_job_ends(home, sshd,
                                                           named_path):
    [monitor] = read("monitors/monitors.json")
    server = home.server([sshd.entry("box")])
    env = rsmcp.environment(home.home, **home.env(PATH=named_path))

    def start(command, **options):
        return subprocess.Popen(["sh", "-c", "exec " + command], env=env,
                                cwd=home.home, stdin=subprocess.DEVNULL,
                                **options)

    def job(name, command):
        result = home.ask(server, "exec_bash_background", session_name=name,
                          command=command, interval_s=1, notify_local=False)
        assert result.get("watch_id"), result
        return result

    old = job("old", "true")
    job("new", "until [ -e go ]; do sleep 0.1; done; exit 7")
    daemon = start("remote-sandbox-mcp daemon --loop-sleep 1")
    try:
        rsmcp.until("the old job's end is known", lambda: home.command(
            "events", "--json").stdout)
        follower = start(monitor["command"], stdout=subprocess.PIPE,
                         text=True)
        try:
            rsmcp.until("it has opened the database",
                        lambda: has_open(follower.pid, "watchdog.sqlite3"))
            (sshd.home / "go").touch()
            assert select.select([follower.stdout], [], [],
                                 rsmcp.PATIENCE_S)[0], "it says nothing"
            line = follower.stdout.readline()
        finally:
            follower.terminate()
            follower.communicate()
    finally:
        daemon.terminate()
        daemon.wait()
    assert "watch %d " % old["watch_id"] not in line, "that is old news"
    assert re.search(r"\bfailed\b", line) and "7" in line, line


def test_claude_code_finds_nothing_wrong_with_it(claude, plugin):
    said = claude.run("plugin", "validate", "--strict", str(ROOT))
    assert "Validation passed" in said
    (plugin / ".claude-plugin/plugin.json").write_text(
        '{"name": "Not A Name"}')
    claude.run("plugin", "validate", str(plugin), status=1)


def test_claude_code_installs_it_and_reaches_the_server(claude, plugin):
    claude.run("plugin", "marketplace", "add", str(plugin))
    claude.run("plugin", "install", "remote-sandbox@remote-sandbox")
    details = claude.run("plugin", "details", "remote-sandbox")
    assert re.search(r"Skills \(1\)\s+remote-sandbox-script-exec", details)
    assert re.search(r"MCP servers \(1\)\s+remote-sandbox", details)
    assert re.search(r"plugin:remote-sandbox:remote-sandbox: .*Connected",
                     claude.run("mcp", "list"))
