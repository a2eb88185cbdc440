"""The watchdog as a service, what it keeps to log in, and what it delivers:
with a real process, a real systemd user manager, a keyring and D-Bus where
they can be had, and a recorded launchctl.
"""

import contextlib
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import plistlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

import rsmcp
from rsmcp import PATIENCE_S, gone, until
from sshd import ROOT

DETACHED = {"REMOTE_SANDBOX_SERVICE": "detached"}
LABEL = "com.remote-sandbox-mcp.watchdog"
PASSWORD = "correct horse 4711"


def needs(program):
    return pytest.mark.skipif(not shutil.which(program),
                              reason="there is no " + program)


class Watchdog:
    """The command of that name, as one user runs it."""

    def __init__(self, home, **env):
        self.home, self.env = home, env

    def run(self, *args, entries=None):
        return self.home.command("watchdog", *args, entries=entries,
                                 env=self.env)

    def json(self, *args, entries=None):
        done = self.run(*args, "--json", entries=entries)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def status(self):
        done = self.run("status", "--json")
        return json.loads(done.stdout)

    def pid(self):
        return self.status()["service"].get("pid")

    def install(self, *args, **more):
        result = self.json("install", *args, **more)
        assert result["install"]["started"] is True, result
        return result

    def meta(self, **change):
        """Change its heartbeat behind its back."""
        with contextlib.closing(sqlite3.connect(
                self.home.state / "watchdog.sqlite3", timeout=20)) as db, db:
            [value] = db.execute("SELECT value FROM daemon_meta "
                                 "WHERE key = 'heartbeat'").fetchone()
            db.execute("UPDATE daemon_meta SET value = ? "
                       "WHERE key = 'heartbeat'",
                       (json.dumps({**json.loads(value), **change}),))


@pytest.fixture
def detached(home):
    return Watchdog(home, **DETACHED)


def daemons(home):
    """Processes of this home that are a watchdog."""
    found = []
    for pid in home.processes():
        try:
            words = pathlib.Path("/proc/%d/cmdline" % pid).read_bytes()
        except OSError:
            continue
        if b"\0daemon\0" in words and words.endswith(
                b"/watchdog.sqlite3\0"):
            found.append(pid)
    return found


# A process of its own.

def test_detached(home, detached):
    done = detached.run("status")
    assert done.returncode == 1
    assert "does not run" in done.stdout
    assert "no service manager" in done.stdout
    result = detached.install()
    pid = result["status"]["service"]["pid"]
    assert daemons(home) == [pid]
    # Nobody's child, in no session of ours, with files of its own.
    stat = pathlib.Path("/proc/%d/stat" % pid).read_text()
    parent, _, session = stat.rpartition(")")[2].split()[1:4]
    assert int(session) != os.getsid(0)
    assert int(parent) not in (os.getpid(), 0)
    assert os.readlink("/proc/%d/fd/0" % pid) == "/dev/null"
    assert os.readlink("/proc/%d/cwd" % pid) == str(home.state)
    for name in ("watchdog.stdout.log", "watchdog.stderr.log"):
        assert (home.state / name).stat().st_mode & 0o777 == 0o600
    done = detached.run("status")
    assert (done.returncode, "runs (detached" in done.stdout) == (0, True)
    assert "works on" in detached.run("logs").stdout
    assert detached.run("uninstall").returncode == 0
    until("it ended", lambda: gone(pid))
    assert detached.run("status").returncode == 1


def test_installing_again_replaces_it(home, detached):
    first = detached.install()["status"]["service"]["pid"]
    second = detached.install()["status"]["service"]["pid"]
    assert first != second
    until("the first ended", lambda: gone(first))
    assert daemons(home) == [second]


def test_only_one_however_many_ask(home, detached):
    threads = [threading.Thread(target=detached.run, args=("install",))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until("one is left", lambda: len(daemons(home)) == 1)
    assert daemons(home) == [detached.pid()]


def test_without_one_nothing_is_started(home):
    done = Watchdog(home, REMOTE_SANDBOX_SERVICE="none").run("install")
    assert done.returncode == 1
    assert "REMOTE_SANDBOX_SERVICE is 'none'" in done.stdout + done.stderr
    assert daemons(home) == []


# Watching a job starts it, and mends it.

def watch(home, entry, command="sleep 600", env=None, **arguments):
    result = home.call("exec_bash_background", [entry], command=command,
                       env={**DETACHED, **(env or {})}, **arguments)
    assert not result.failed, result
    assert result["watch_id"], result
    return result


def test_a_watch_starts_it_and_leaves_it_alone(home, sshd, detached):
    watch(home, sshd.entry())
    pid = detached.pid()
    assert daemons(home) == [pid]
    watch(home, sshd.entry())
    assert detached.pid() == pid


def test_who_removes_it_is_told_of_the_watches_that_are_left(
        home, sshd, detached):
    left = watch(home, sshd.entry())["watch_id"]
    watch(home, sshd.entry())
    said = detached.run("uninstall").stdout
    hint = said.splitlines()[-1]
    assert re.match("hint +nobody looks at 2 active watches any more", hint)
    for words in ("watchdog install", "watches", "call "
                  "cancel_background_watch watch_id=ID"):
        assert "'remote-sandbox-mcp %s'" % words in hint
    # Taken up again, and ended.
    detached.install()
    assert not home.call("cancel_background_watch", watch_id=left).failed
    assert "1 active watch any more" in detached.json("uninstall")["hint"]
    for row in home.call("list_background_watches")["watches"]:
        home.call("cancel_background_watch", watch_id=row["id"])
    assert "hint" not in detached.json("uninstall")


@pytest.mark.parametrize("change", [{"version": "0.0.1"},
                                    {"program": "/nowhere/at/all"}])
def test_an_older_one_is_replaced(home, sshd, detached, change):
    pid = detached.install()["status"]["service"]["pid"]
    detached.meta(**change)
    watch(home, sshd.entry())
    until("the old one ended", lambda: gone(pid))
    assert daemons(home) == [detached.pid()]


def test_a_newer_one_is_left_alone(home, sshd, detached):
    pid = detached.install()["status"]["service"]["pid"]
    detached.meta(version="999.0.0")
    watch(home, sshd.entry())
    assert detached.pid() == pid


def test_one_that_hangs_is_replaced(home, sshd, detached):
    pid = detached.install()["status"]["service"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    detached.meta(ts=int(time.time()) - 1000)
    assert detached.status()["heartbeat_stale"] is True
    watch(home, sshd.entry())
    until("the old one ended", lambda: gone(pid))
    assert daemons(home) == [detached.pid()]
    assert detached.status()["heartbeat_stale"] is False


@pytest.mark.long
def test_one_that_slept_is_not_replaced(home, sshd, detached):
    """A laptop wakes up: its heartbeat is old, but about to be renewed."""
    pid = detached.install()["status"]["service"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    detached.meta(ts=int(time.time()) - 1000)
    time.sleep(21)      # longer than between two beats
    threading.Timer(1, os.kill, (pid, signal.SIGCONT)).start()
    watch(home, sshd.entry())
    assert detached.pid() == pid


# systemd

FAKE = """#!/bin/sh
{ printf '%s' "${0##*/}"; printf '\\t%s' "$@"; echo; } >>"${0%/*}/calls"
"""


def fake(directory, name, text=FAKE):
    directory.mkdir(exist_ok=True)
    program = directory / name
    program.write_text(text)
    program.chmod(0o755)
    return {"PATH": "%s:%s" % (directory, os.environ["PATH"])}


def calls(directory):
    return [line.split("\t") for line in
            (directory / "calls").read_text().splitlines()]


@needs("systemd-analyze")
@pytest.mark.parametrize("odd", ["state", "st %h $HOME \"q\" äö"])
def test_systemd_accepts_the_unit(home, tmp_path, odd):
    state = home.path / odd
    state.mkdir(exist_ok=True)
    env = fake(tmp_path / "bin", "systemctl")
    watchdog = Watchdog(home, REMOTE_SANDBOX_SERVICE="systemd",
                        REMOTE_SANDBOX_MCP_HOME=str(state), **env)
    result = watchdog.json("install", "--no-start")
    unit = pathlib.Path(result["install"]["plist_path"])
    assert unit.parent == home.home / ".config/systemd/user"
    assert unit.stat().st_mode & 0o777 == 0o644
    changes = [call[3:] for call in calls(tmp_path / "bin")
               if call[2] == "--quiet"]
    assert changes == [["daemon-reload"], ["enable", unit.name]]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)], text=True,
        capture_output=True, timeout=3 * PATIENCE_S,
        env=rsmcp.environment(home.home, XDG_RUNTIME_DIR=str(home.run)))
    ours = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, ours) == (0, []), done.stderr


# As loginctl does it: of a user only if one is named, of itself otherwise.
LOGINCTL = """#!/bin/sh
[ "$1 $2 $3" = "show-user --value --property=Linger" ] || exit 1
[ $# = 3 ] || { [ "$4" = "$(id -u)" ] && echo ANSWER; }
"""


@pytest.mark.parametrize("lingers", ["no", "yes"])
def test_who_does_not_linger_is_told_how(home, tmp_path, lingers):
    fake(tmp_path / "bin", "loginctl", LOGINCTL.replace("ANSWER", lingers))
    env = fake(tmp_path / "bin", "systemctl")
    service = Watchdog(home, REMOTE_SANDBOX_SERVICE="systemd",
                       **env).status()["service"]
    assert ("loginctl enable-linger" in service.get("hint", "")) \
        == (lingers == "no"), service


@pytest.fixture
def user_manager(home):
    """A real one of our own, in a mount namespace that looks booted."""
    systemd = shutil.which("systemd") or "/lib/systemd/systemd"
    if not (ROOT and os.path.exists(systemd) and shutil.which("unshare")):
        pytest.skip("needs root, systemd and unshare")
    env = rsmcp.environment(home.home, XDG_RUNTIME_DIR=str(home.run),
                            RSMCP_TEST=str(home.path))
    process = subprocess.Popen(
        ["unshare", "-m", "sh", "-c",
         "mkdir -p /run/systemd && mount -t tmpfs tmpfs /run/systemd && "
         "mkdir -p /run/systemd/system && exec \"$0\" --user", systemd],
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)

    def answers():
        return process.poll() is not None or subprocess.run(
            ["systemctl", "--user", "show", "--property=Version"], env=env,
            capture_output=True, timeout=PATIENCE_S).returncode == 0

    until("systemd answers", answers)
    if process.poll() is not None:
        pytest.skip("systemd --user does not start here")
    yield env
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def test_real_systemd(home, user_manager):
    # As a client starts it: without a word about systemd.
    watchdog = Watchdog(home, REMOTE_SANDBOX_SERVICE="")
    result = watchdog.install()
    assert result["install"]["kind"] == "systemd"
    service = watchdog.status()["service"]
    assert service["active_state"] == "active"
    assert service["unit_file_state"] == "enabled"
    pid = service["pid"]
    os.kill(pid, signal.SIGKILL)
    until("it was started again",
          lambda: watchdog.pid() not in (None, pid))
    assert "works on" in watchdog.run("logs").stdout
    pid = watchdog.pid()
    assert watchdog.run("uninstall").returncode == 0
    until("it ended", lambda: gone(pid))
    status = watchdog.status()["service"]
    assert (status["running"], status["installed"]) == (False, False)


# launchd

LAUNCHCTL = FAKE + """
case $1 in
kickstart) exec PYTHON "${0%/*}/start.py" "$HOME"/Library/LaunchAgents/*.plist ;;
print) echo "state = running" ;;
esac
"""

START = """
import os, plistlib, subprocess, sys
p = plistlib.load(open(sys.argv[1], "rb"))
subprocess.Popen(p["ProgramArguments"], cwd=p["WorkingDirectory"],
                 env={**os.environ, **p["EnvironmentVariables"]},
                 stdin=subprocess.DEVNULL,
                 stdout=open(p["StandardOutPath"], "ab"),
                 stderr=open(p["StandardErrorPath"], "ab"),
                 start_new_session=True)
"""


def test_launchd(home, tmp_path):
    """Its exact calls; a launchctl of ours starts what the file says."""
    state = home.home / "Library/Application Support/remote-sandbox-mcp"
    state.mkdir(parents=True)
    bin_dir = tmp_path / "bin"
    env = fake(bin_dir, "launchctl",
               LAUNCHCTL.replace("PYTHON", sys.executable))
    (bin_dir / "start.py").write_text(START)
    watchdog = Watchdog(home, REMOTE_SANDBOX_SERVICE="launchd",
                        REMOTE_SANDBOX_MCP_HOME=str(state), **env)
    result = watchdog.install()
    plist = home.home / "Library/LaunchAgents" / (LABEL + ".plist")
    install = result["install"]
    assert install["plist_path"] == str(plist)
    assert install["label"] == LABEL
    assert plist.stat().st_mode & 0o777 == 0o644
    domain = "gui/%d" % os.getuid()
    assert calls(bin_dir)[:4] == [
        ["launchctl", "bootout", domain, str(plist)],
        ["launchctl", "bootstrap", domain, str(plist)],
        ["launchctl", "kickstart", "-k", domain + "/" + LABEL],
        ["launchctl", "print", domain + "/" + LABEL]]
    content = plistlib.loads(plist.read_bytes())
    program = os.path.realpath(rsmcp.SERVER)
    assert content == {
        "Label": LABEL,
        "ProgramArguments": [
            program, "daemon", "--config", str(state / "config.json"),
            "--db", str(state / "watchdog.sqlite3")],
        "RunAtLoad": True, "KeepAlive": True,
        "WorkingDirectory": str(state),
        "EnvironmentVariables": {"PATH": env["PATH"],
                                 "REMOTE_SANDBOX_LOG_LEVEL": "info"},
        "StandardOutPath": str(state / "watchdog.stdout.log"),
        "StandardErrorPath": str(state / "watchdog.stderr.log")}
    launchd = result["status"]["launchd"]
    assert launchd["loaded"] is True
    assert launchd["plist_path"] == str(plist)
    assert "state = running" in launchd["stdout"]
    assert (launchd["exit_code"], launchd["stderr"]) == (0, "")
    pid = result["status"]["service"]["pid"]
    assert watchdog.run("uninstall").returncode == 0
    assert not plist.exists()
    until("it ended", lambda: gone(pid))


def test_what_launchctl_refuses_is_told(home, tmp_path):
    env = fake(tmp_path / "bin", "launchctl", FAKE + """
[ "$1" != kickstart ] || { echo "Could not kickstart: 37" >&2; exit 37; }
""")
    watchdog = Watchdog(home, REMOTE_SANDBOX_SERVICE="launchd", **env)
    done = watchdog.run("install")
    assert done.returncode == 1
    assert "Could not kickstart: 37" in done.stdout + done.stderr


# The old names.

def test_old_names_and_what_is_kept(home, sshd):
    entry = sshd.entry()
    result = home.call("install_macos_watchdog", [entry], env=DETACHED)
    assert not result.failed, result
    assert result["install"]["started"] is True
    assert result["persisted_sandboxes"]["sandbox_count"] == 1
    assert len(list((home.state / "kept").iterdir())) == 1
    result = home.call("get_watchdog_status", env=DETACHED)
    assert list(result) == ["paths", "launchd", "service", "heartbeat",
                            "heartbeat_stale", "watch_counts"]
    assert result["launchd"]["loaded"] is False
    result = home.call("uninstall_macos_watchdog", env=DETACHED)
    assert result["removal"]["removed"] is True
    assert result["status"]["service"]["running"] is False


# Secrets.

BUS = """<busconfig>
  <type>session</type>
  <listen>unix:tmpdir=/tmp</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


@pytest.fixture
def bus(home):
    """A session bus of our own, which starts nothing by itself; its address."""
    if not shutil.which("dbus-daemon"):
        pytest.skip("there is no dbus-daemon")
    config = home.path / "bus.conf"
    config.write_text(BUS)
    process = subprocess.Popen(
        ["dbus-daemon", "--config-file=%s" % config, "--nofork",
         "--print-address=1"],
        env=rsmcp.environment(home.home, XDG_RUNTIME_DIR=str(home.run)),
        stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.terminate()
    process.wait()
    process.stdout.close()


@pytest.fixture
def keyring(home, bus):
    """An unlocked keyring on that bus; the environment to reach it."""
    if not (shutil.which("gnome-keyring-daemon")
            and shutil.which("secret-tool")):
        pytest.skip("there is no gnome-keyring-daemon or secret-tool")
    env = {"DBUS_SESSION_BUS_ADDRESS": bus}
    process = subprocess.Popen(
        ["gnome-keyring-daemon", "--foreground", "--unlock",
         "--components=secrets"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=rsmcp.environment(home.home, XDG_RUNTIME_DIR=str(home.run),
                              **env))
    process.stdin.write(b"master")
    process.stdin.close()
    until("the keyring answers", lambda: subprocess.run(
        ["secret-tool", "search", "a", "b"], capture_output=True,
        env=rsmcp.environment(home.home, **env),
        timeout=PATIENCE_S).returncode == 0 or process.poll() is not None)
    yield env
    process.kill()
    process.wait()


def files_with(directory, text):
    return [path for path in directory.rglob("*") if path.is_file()
            and (text.encode() in path.read_bytes()
                 or text.encode().hex().encode() in path.read_bytes())]


def test_a_password_goes_to_the_keyring(home, keyring):
    entry = {"name": "box", "host": "192.0.2.1", "password": PASSWORD}
    watchdog = Watchdog(home, **DETACHED, **keyring)
    result = watchdog.json("install", "--no-start", entries=[entry])
    assert "warnings" not in result["persisted_sandboxes"], result
    [record] = (home.state / "kept").iterdir()
    assert json.loads(record.read_text())["secrets"] == {
        "password": "keyring"}
    assert files_with(home.state, PASSWORD) == []
    lookup = ["secret-tool", "lookup", "service", "remote-sandbox-mcp",
              "key", record.name[:16], "field", "password"]
    env = rsmcp.environment(home.home, **keyring)
    found = subprocess.run(lookup, env=env, capture_output=True, text=True,
                           timeout=PATIENCE_S)
    assert bytes.fromhex(found.stdout).decode() == PASSWORD
    assert watchdog.run("uninstall", "--forget").returncode == 0
    assert list((home.state / "kept").iterdir()) == []
    found = subprocess.run(lookup, env=env, capture_output=True, text=True,
                           timeout=PATIENCE_S)
    assert found.stdout == ""


@pytest.mark.skipif(not ROOT, reason="only root can make users")
def test_the_watchdog_logs_in_by_the_keyring(home, sshd, keyring, new_account):
    user = new_account(password=PASSWORD)
    home.more.update(keyring)
    result = watch(home, sshd.entry(user=user.name, key_file=None,
                                    password=PASSWORD), "exit 3",
                   ensure_watchdog=False)
    assert "watch_note" not in result, result
    assert files_with(home.state, PASSWORD) == []
    sshd.cut()      # the login of that server is gone
    until("no master is left", lambda: home.masters() == [])
    Watchdog(home, **DETACHED).install()
    until("it was reached",
          lambda: list((home.state / "events").glob("*.json")))
    shown = home.command("watch", "show", "1", "--json").stdout
    assert json.loads(shown)["last_exit_code"] == 3


NO_KEYRING = {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}


def in_a_private_file(home, warning):
    """The password is in one file, which is the one that this names."""
    [record] = files_with(home.state, PASSWORD)
    assert str(record) in warning
    assert record.stat().st_mode & 0o777 == 0o600
    assert record.parent.stat().st_mode & 0o777 == 0o700
    return record


def test_without_a_keyring_a_warning_says_where_it_is(home):
    entry = {"name": "box", "host": "192.0.2.1", "password": PASSWORD}
    watchdog = Watchdog(home, **DETACHED, **NO_KEYRING)
    result = watchdog.json("install", "--no-start", entries=[entry])
    [warning] = result["persisted_sandboxes"]["warnings"]
    in_a_private_file(home, warning)
    assert "warning" in watchdog.run("status").stdout
    assert PASSWORD not in "".join(home.said)


@pytest.mark.skipif(not ROOT, reason="only root can make users")
def test_a_job_with_a_password_warns_as_the_doctor_does(home, sshd,
                                                        new_account):
    user = new_account(password=PASSWORD)
    entry = sshd.entry(user=user.name, key_file=None, password=PASSWORD)

    def secrets():
        done = home.command("doctor", "--json", entries=[entry])
        return [line for line in json.loads(done.stdout)["here"]
                if line["check"] == "secrets"]

    [line] = secrets()
    assert line["state"] == "ok", line
    result = home.call("exec_bash_background", [entry], command="true",
                       env=NO_KEYRING)
    assert not result.failed and result["watch_id"], result
    assert "password_command" in result["watch_note"]
    record = in_a_private_file(home, result["watch_note"])
    [line] = secrets()
    assert line["state"] == "warning", line
    assert "the password of box is in clear in kept/" + record.name \
        in line["found"]
    assert "password_command" in line["todo"]
    assert PASSWORD not in "".join(home.said)


def test_servers_with_different_lists_keep_both(home):
    watchdog = Watchdog(home, **DETACHED)
    for host in ("192.0.2.1", "192.0.2.2"):
        watchdog.json("install", "--no-start",
                      entries=[{"name": "box", "host": host}])
    hosts = [json.loads(record.read_text())["sandbox"]["host"]
             for record in (home.state / "kept").iterdir()]
    assert sorted(hosts) == ["192.0.2.1", "192.0.2.2"]


# Events, from the job to the receiver.

class Hook:
    """A webhook on the loopback address."""

    def __init__(self):
        got = self.got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((dict(self.headers), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                      Handler)
        self.url = "http://127.0.0.1:%d/hook" % self.server.server_port
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()


@pytest.fixture
def hook():
    made = Hook()
    yield made
    made.server.shutdown()
    made.server.server_close()


def write_config(home, **content):
    directory = home.home / ".config/remote-sandbox-mcp"
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(
        json.dumps({"sandboxes": [], **content}))
    (directory / "config.json").chmod(0o600)


def test_an_event_reaches_all(home, sshd, hook):
    write_config(home, allow_private_webhooks=True,
                 allow_event_command=True, webhook_secret="sign this")
    ran = home.path / "ran"
    watch(home, sshd.entry(), "echo $((40 + 2)); exit 3",
          webhook_url=hook.url, interval_s=5, notify_local=False,
          event_command='printf "%%s\\n" "$RSMCP_EVENT_TYPE" '
          '"$RSMCP_SUGGESTED_PROMPT" >%s.new && mv %s.new %s'
          % (ran, ran, ran))
    until("the command ran", ran.exists, 3 * PATIENCE_S)
    until("the webhook was called", lambda: hook.got, 3 * PATIENCE_S)
    headers, body = hook.got[0]
    event = json.loads(body)
    assert event["event_type"] == "failed"
    assert "42" in event["payload"]["log_tail"]
    assert event["payload"]["exit_code"] == 3
    assert headers["Idempotency-Key"] == "rsmcp-event-%d" % event["id"]
    assert headers["X-RSMCP-Signature"] == "sha256=" + hmac.new(
        b"sign this", body, hashlib.sha256).hexdigest()
    kind, _, prompt = ran.read_text().partition("\n")
    assert kind == "failed"
    assert "| 42" in prompt and "not instructions" in prompt
    file = home.state / "events" / ("event-%d.json" % event["id"])
    until("the file is there", file.exists)
    assert file.read_bytes() == body
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_what_is_not_allowed_is_refused(home, sshd, hook):
    result = home.call("exec_bash_background", [sshd.entry()],
                       command="true", webhook_url=hook.url, env=DETACHED)
    assert result.failed
    assert "allow_private_webhooks" in result["error"]
    ran = home.path / "ran"
    result = watch(home, sshd.entry(), "exit 3", interval_s=5,
                   event_command="touch %s" % ran)
    assert "REMOTE_SANDBOX_ALLOW_EVENT_COMMAND" in result["watch_note"]
    events = home.state / "events"
    until("the event is there",
          lambda: events.exists() and list(events.iterdir()),
          3 * PATIENCE_S)
    assert not ran.exists()


def test_a_configuration_that_is_being_saved_loses_no_event(home, sshd):
    """For that moment it allows nothing, and says nothing."""
    ran = home.path / "ran"
    config = home.home / ".config/remote-sandbox-mcp/config.json"
    config.parent.mkdir(parents=True)
    text = json.dumps({"allow_event_command": True})
    config.write_text(text)
    config.chmod(0o600)
    result = watch(home, sshd.entry(), "sleep 2; exit 3", interval_s=1,
                   event_command="touch %s" % ran)
    assert "not allowed" not in result.get("watch_note", ""), result
    config.write_text(text[:10])
    until("the event is there", lambda: list(
        (home.state / "events").glob("*.json")), 3 * PATIENCE_S)
    time.sleep(2)
    assert not ran.exists()
    config.write_text(text)
    until("it is tried again", ran.exists, 3 * PATIENCE_S)


def test_one_server_allows_nothing_for_another(home, sshd):
    ran = home.path / "ran"
    for number, env in enumerate((
            {"REMOTE_SANDBOX_ALLOW_EVENT_COMMAND": "1"}, {})):
        result = watch(home, sshd.entry(), "exit 3", env=env, interval_s=5,
                       event_command="touch %s%d" % (ran, number))
        assert ("watch_note" in result and "not allowed"
                in result["watch_note"]) == (env == {}), result
    until("both are told", lambda: len(list(
        (home.state / "events").glob("*.json"))) == 2, 3 * PATIENCE_S)
    until("the first ran", (home.path / "ran0").exists, 3 * PATIENCE_S)
    assert not (home.path / "ran1").exists()


@pytest.fixture
def desktop(home, bus):
    """A notification daemon on that bus; its environment, what it was told."""
    python = "/usr/bin/python3"
    if not shutil.which("notify-send") or subprocess.run(
            [python, "-c", "import dbusmock"],
            capture_output=True).returncode != 0:
        pytest.skip("there is no notify-send or no python3-dbusmock")
    env = {"DBUS_SESSION_BUS_ADDRESS": bus}
    daemon = subprocess.Popen(
        [python, "-u", "-m", "dbusmock", "--session", "--template",
         "notification_daemon"],
        env=rsmcp.environment(home.home, **env), stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)
    said = []
    threading.Thread(target=lambda: said.extend(daemon.stdout),
                     daemon=True).start()
    until("it is on the bus", lambda: subprocess.run(
        ["dbus-send", "--session", "--print-reply",
         "--dest=org.freedesktop.Notifications",
         "/org/freedesktop/Notifications",
         "org.freedesktop.Notifications.GetCapabilities"],
        env=rsmcp.environment(home.home, **env), capture_output=True,
        timeout=PATIENCE_S).returncode == 0)
    yield env, said
    daemon.terminate()
    daemon.wait()
    daemon.stdout.close()


def test_where_there_is_no_desktop_it_is_not_tried_again(home, sshd):
    watch(home, sshd.entry(), "exit 3", interval_s=5)
    log = until("it is given up", lambda: re.search(
        r"^(.*) remote-sandbox-mcp: warn: event 1 to desktop: there is no "
        r"desktop session \(given up\)$",
        home.command("watchdog", "logs").stdout, re.M))
    time.strptime(log[1], "%Y-%m-%d %H:%M:%S")


def test_a_notification_on_the_desktop(home, sshd, desktop):
    env, said = desktop
    watch(home, sshd.entry(), "exit 3", env=env, interval_s=5,
          watch_name="<b>bold</b> & \\n it")
    until("it was shown", lambda: " Notify " in "".join(said))
    text = "".join(said)
    assert "Remote Sandbox Watchdog" in text
    # As the desktop shows it: no markup, no line end of its own.
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; \\n it" in text
