"""doctor: every line of it seen ok, and seen to tell what is wrong."""

import json
import os
import pathlib
import shutil
import socket
import sqlite3
import subprocess
import threading

import pytest

import rsmcp
import sshd as ssh_servers

CHECKS = ["address", "dns", "tcp", "key exchange", "host key", "methods",
          "login", "shell", "noise", "sessions", "bash", "tar", "find",
          "tmux", "timeout", "rsync", "nvidia-smi", "slurm", "workdir",
          "disk", "clock"]
HERE = ["ssh", "agent", "config", "secrets", "store", "watchdog"]


class Report:
    """What it said."""

    def __init__(self, done):
        self.report = json.loads(done.stdout)
        failed = self.report["state"] == "failed"
        assert done.returncode == (1 if failed else 0), done
        self.lines = self.report["here"] + [
            line for box in self.report["sandboxes"]
            for line in box["checks"]]

    def line(self, check, state):
        """The one line about it, which is in this state."""
        found = [line for line in self.lines if line["check"] == check]
        assert [line["state"] for line in found] == [state], \
            (check, found, self.lines)
        assert ("todo" in found[0]) == (state != "ok"), found
        return found[0]

    def failed(self, check, words, todo):
        """It failed, and nothing that depends on it was looked at."""
        line = self.line(check, "failed")
        assert words in line["found"] and todo in line["todo"], line
        if check in CHECKS:
            assert self.lines[-1] == line or CHECKS.index(check) > 9
        return line

    def warns(self, check, words, todo):
        line = self.line(check, "warning")
        assert words in line["found"] and todo in line["todo"], line
        return line


@pytest.fixture
def doctor(home):
    def run(*entries, args=(), **options):
        done = home.command("doctor", "--json", *args,
                            entries=list(entries), **options)
        assert done.returncode in (0, 1) and done.stdout, done
        return Report(done)

    return run


def shell(command, home):
    """What a line tells to do, done."""
    ssh_servers.run("sh", "-c", command, env=rsmcp.environment(
        home.home, **home.env()))


def own(command, home):
    """The same with a command of this program."""
    program, _, rest = command.partition(" ")
    assert program == "remote-sandbox-mcp"
    shell("%s %s" % (os.path.abspath(rsmcp.SERVER), rest), home)


# --- all is well -----------------------------------------------------------

def test_all_is_well(home, sshd, doctor):
    report = doctor(sshd.entry(workdir="~"))
    assert report.report["state"] in ("ok", "warning")
    assert [line["check"] for line in report.lines] == HERE + CHECKS
    for check in HERE + CHECKS:
        if check not in ("tmux", "disk"):   # this machine may be without
            report.line(check, "ok")
    found = {line["check"]: line["found"] for line in report.lines}
    assert "127.0.0.1 port %d" % sshd.port in found["address"]
    assert found["dns"] == "127.0.0.1"
    assert "OpenSSH" in found["key exchange"]
    assert found["host key"] == "ssh-ed25519 %s, new" \
        % ssh_servers.fingerprint(sshd.host_keys["ed25519"])
    assert "publickey" in found["methods"]
    assert "bash" in found["bash"]
    # Once more: the key is known now, and the login is still there.
    assert doctor(sshd.entry()).line("host key", "ok")["found"].endswith(
        ", known")
    assert sshd.logins_ever() == 1


def test_for_people(home, sshd):
    done = home.command("doctor", "box", entries=[sshd.entry()])
    assert done.returncode == 0, done
    assert "this machine\n  ok       ssh " in done.stdout
    assert "\nsandbox box\n  ok       address " in done.stdout
    assert done.stderr == ""


def test_several_side_by_side(home, sshd):
    port = ssh_servers.free_port()
    done = home.command("doctor", entries=[
        sshd.entry(), sshd.entry("gone", port=port)])
    assert done.returncode == 1, done
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["box", "gone"] in rows
    assert ["tcp", "ok", "failed"] in rows
    assert ["login", "ok", "-"] in rows
    # Below: what is wrong, and nothing else.
    below = done.stdout[done.stdout.index("sandbox gone"):]
    assert "failed   tcp " in below and "-> check \"port\"" in below
    assert "address" not in below and "sandbox box" not in below
    one = home.command("doctor", "box", entries=[
        sshd.entry(), sshd.entry("gone", port=port)])
    assert one.returncode == 0 and "gone" not in one.stdout


def test_no_such_sandbox(home, sshd):
    done = home.command("doctor", "bx", entries=[sshd.entry()])
    assert done.returncode == 1 and done.stdout == ""
    assert "unknown sandbox 'bx'; available: box" in done.stderr
    assert home.command("doctor", "a", "b").returncode == 2


# --- the way there ---------------------------------------------------------

def test_no_such_name(sshd, doctor):
    doctor(sshd.entry(host="no-such-host.invalid")).failed(
        "dns", "no-such-host.invalid", "correct \"host\"")


def test_ssh_does_not_understand_its_configuration(home, sshd, doctor):
    (home.home / ".ssh/config").write_text("Nonsense yes\n")
    doctor(sshd.entry()).failed("address", "ssh", "ssh -G")


def test_nothing_listens(sshd, doctor):
    doctor(sshd.entry(port=ssh_servers.free_port())).failed(
        "tcp", "Connection refused", "check \"port\"")


def test_nobody_answers(sshd, doctor):
    """A queue that is full lets connections wait for ever."""
    waiting = []
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(server.getsockname())
        doctor(sshd.entry(port=server.getsockname()[1],
                          connect_timeout_s=1)).failed(
            "tcp", "nobody answers", "firewall")
        for one in waiting:
            one.close()


def test_not_an_ssh_server(sshd, doctor):
    with socket.create_server(("127.0.0.1", 0)) as server:
        def answer():
            while True:
                try:
                    one = server.accept()[0]
                except OSError:
                    return
                one.close()

        threading.Thread(target=answer, daemon=True).start()
        doctor(sshd.entry(port=server.getsockname()[1])).failed(
            "key exchange", "closed the connection", "SSH server's")
        server.shutdown(socket.SHUT_RDWR)


def test_no_algorithm_in_common(new_sshd, doctor):
    server = new_sshd("KexAlgorithms diffie-hellman-group14-sha256")
    options = ["KexAlgorithms=curve25519-sha256"]
    doctor(server.entry(ssh_options=options)).failed(
        "key exchange", "share no algorithm", "KexAlgorithms=+NAME")


def test_jump_host(home, sshd, new_sshd, doctor):
    jump = new_sshd()
    (home.home / ".ssh/config").write_text(
        "Host jump\n HostName 127.0.0.1\n Port %d\n User %s\n"
        " IdentityFile %s\n" % (jump.port, jump.user, jump.key))
    report = doctor(sshd.entry(ssh_options=["ProxyJump=jump"]))
    assert "jump host" in report.line("dns", "ok")["found"]
    assert "jump host" in report.line("tcp", "ok")["found"]
    # The keys of both are new, and the one that counts is the target's.
    assert ssh_servers.fingerprint(sshd.host_keys["ed25519"]) \
        in report.line("host key", "ok")["found"]
    report.line("clock", "ok")


# --- who is there ----------------------------------------------------------

def test_changed_host_key(home, sshd, doctor):
    doctor(sshd.entry()).line("host key", "ok")
    home.end_masters()
    sshd.restart(new_keys=True)
    line = doctor(sshd.entry()).failed("host key", "has CHANGED",
                                       "ssh-keygen -R")
    assert ssh_servers.fingerprint(sshd.host_keys["ed25519"]) in line["todo"]
    shell(line["todo"].partition("if so: ")[2], home)
    doctor(sshd.entry()).line("host key", "ok")


def test_unknown_host_key_and_strict(sshd, doctor):
    strict = sshd.entry(host_key_policy="strict")
    line = doctor(strict).failed("host key", "is not known",
                                 "set \"host_key\"")
    pin = line["todo"].rpartition(" to ")[2].strip('"')
    assert pin == ssh_servers.fingerprint(sshd.host_keys["ed25519"])
    assert doctor({**strict, "host_key": pin}).line(
        "host key", "ok")["found"].endswith(", pinned")


@pytest.mark.parametrize("form", ["key", "fingerprint"])
def test_wrong_pin(sshd, tmp_path, doctor, form):
    other = ssh_servers.keygen(tmp_path / "other")
    pin = ssh_servers.public(other) if form == "key" \
        else ssh_servers.fingerprint(other)
    line = doctor(sshd.entry(host_key=pin)).failed(
        "host key", "(host_key)", "set \"host_key\"")
    assert ssh_servers.fingerprint(sshd.host_keys["ed25519"]) in line["todo"]


def test_key_that_the_host_does_not_know(home, sshd, tmp_path, doctor):
    key = ssh_servers.keygen(tmp_path / "mine")
    entry = sshd.entry(key_file=str(key))
    line = doctor(entry).failed("login", "refused the login",
                                "ssh-copy-id -i %s -p" % key)
    assert line["todo"].endswith(
        "-p %d %s@127.0.0.1" % (sshd.port, sshd.user))
    # What was told is done; nothing waits for a failure to be forgotten.
    sshd.authorize(ssh_servers.public(key))
    assert "kept" not in doctor(entry).line("login", "ok")["found"]
    # That login stays, and what it shows may be old.
    assert "one that is kept" in doctor(entry).line("login", "ok")["found"]


def test_key_file_that_is_not_there(home, sshd, doctor, tmp_path):
    key = tmp_path / "my key"
    line = doctor(sshd.entry(key_file=str(key))).failed(
        "login", "does not exist", "correct \"key_file\" of the entry")
    assert "ssh-copy-id" not in line["todo"]
    shell(line["todo"].partition(" there: ")[2] + " -N ''", home)
    sshd.authorize(ssh_servers.public(key))
    doctor(sshd.entry(key_file=str(key))).line("login", "ok")


def test_key_file_that_others_can_read(home, sshd, doctor):
    sshd.key.chmod(0o644)
    line = doctor(sshd.entry()).failed("login", "others can read it",
                                       "chmod 600 ")
    shell(line["todo"], home)
    doctor(sshd.entry()).line("login", "ok")


def test_key_file_that_is_the_public_half(sshd, doctor):
    doctor(sshd.entry(key_file="%s.pub" % sshd.key)).failed(
        "login", "is the public half of a key", "do what it says")


def test_key_with_a_passphrase(sshd, doctor, tmp_path):
    key = ssh_servers.keygen(tmp_path / "shut", passphrase="sesame")
    entry = sshd.entry(key_file=str(key))
    sshd.authorize(ssh_servers.public(key))
    line = doctor(entry).failed("login", "has a passphrase",
                                "add \"key_passphrase_command\"")
    assert line["todo"].endswith("ssh-add %s" % key)
    doctor({**entry, "key_passphrase": "wrong"}).failed(
        "login", "is wrong", "ssh-keygen -y -f %s)" % key)
    doctor({**entry, "key_passphrase": "sesame"}).line("login", "ok")


@pytest.mark.parametrize("command, words", [
    ("exit 1", "box ended with status 1 and said nothing"),
    ("echo not unlocked >&2; exit 3",
     "box ended with status 3: not unlocked"),
    ("true", "box printed nothing"),
])
def test_password_command_that_fails(sshd, doctor, command, words):
    for field in "password_command", "key_passphrase_command":
        line = doctor(sshd.entry(**{field: ["sh", "-c", command]})).failed(
            "login", words, "run that command")
        assert line["found"] == "%s of %s" % (field, words)


def test_login_that_fails_for_another_reason(new_sshd, tmp_path, doctor):
    """To copy the key would be no help."""
    server = new_sshd("MaxAuthTries 1")
    key = ssh_servers.keygen(tmp_path / "mine")
    line = doctor(server.entry(key_file=str(key))).failed(
        "login", "too many keys were offered", "do what it says")
    assert "ssh -v -i %s -p %d " % (key, server.port) in line["todo"]


def test_no_key_at_all(sshd, doctor):
    doctor(sshd.entry(key_file=None)).failed(
        "login", "refused the login", "ssh -p %d " % sshd.port)


def test_methods_that_do_not_fit(home, new_sshd, doctor):
    keys = new_sshd("PasswordAuthentication no",
                    "KbdInteractiveAuthentication no")
    report = doctor(keys.entry(key_file=None, password="x"))
    report.warns("methods", "passwords are not taken", "key_file")
    report.failed("login", "refused the login", "password")
    words = new_sshd("PubkeyAuthentication no")
    report = doctor(words.entry(key_file=None))
    report.warns("methods", "keys are not taken", "password_command")


# --- what is there ---------------------------------------------------------

def test_few_sessions(home, new_sshd, doctor):
    report = doctor(new_sshd("MaxSessions 2").entry())
    report.warns("sessions", "2 at once", "MaxSessions")
    report.line("clock", "ok")
    home.end_masters()
    doctor(new_sshd("MaxSessions 0").entry()).failed(
        "sessions", "allows no session", "MaxSessions")


def test_slow_and_noisy_shell(sshd, doctor):
    (sshd.home / ".bashrc").write_text(
        "sleep 1.2\necho 'Welcome \x1b[31mto the machine'\n")
    report = doctor(sshd.entry())
    report.warns("shell", "ready after ", "return early")
    report.warns("noise", "Welcome to the machine", "interactive")
    report.line("clock", "ok")


def test_no_shell(home, new_sshd, doctor):
    doctor(new_sshd("ForceCommand internal-sftp").entry()).warns(
        "shell", "file transfer (SFTP) only", "ForceCommand")
    home.end_masters()
    nothing = new_sshd("ForceCommand echo go away; exit 1")
    doctor(nothing.entry()).failed("shell", "it said: go away",
                                   " true")


@pytest.fixture
def poor(new_sshd, tmp_path):
    """A host with no more than these programs, and with own ones."""
    def make(*programs, **own):
        place = tmp_path / "bin"
        place.mkdir()
        for name in ("sh", "date", "df", "head", "tail", "cut",
                     *programs):
            if name not in own:
                (place / name).symlink_to(shutil.which(name))
        for name, text in own.items():
            path = place / name.replace("_", "-")
            path.write_text("#!/bin/sh\n" + text + "\n")
            path.chmod(0o755)
        return new_sshd(env={"PATH": place})

    return make


def test_missing_tools(poor, doctor):
    report = doctor(poor().entry())
    report.warns("bash", "run in sh", "apt install bash")
    report.failed("tar", "cannot be synced", "apt install tar")
    report.failed("find", "cannot be listed", "findutils")
    report.warns("tmux", "nobody can attach", "apt install tmux")
    for check in "timeout", "rsync", "nvidia-smi", "slurm":
        assert "not there" in report.line(check, "ok")["found"]
    report.line("clock", "ok")


def test_broken_gpu_clock_and_disk(poor, doctor):
    report = doctor(poor(
        "tar", "find", nvidia_smi="echo driver mismatch; exit 9",
        sbatch="echo slurm 23.02",
        date="echo $(($(/bin/date +%s) - 3600))",
        df="echo x; echo /dev/x 1000000 900000 100000 90% /").entry())
    report.warns("nvidia-smi", "it fails: driver mismatch", "nvidia-smi")
    report.warns("clock", "3600 s behind", "timedatectl")
    report.warns("disk", "97 MB left", "du -xh")
    assert report.line("slurm", "ok")["found"] == "slurm 23.02"


def test_good_gpu_and_no_disk(poor, doctor):
    report = doctor(poor(
        "tar", "find", nvidia_smi="echo 'GPU 0: Fast One'",
        date="echo never", df="echo x; echo /dev/x 100 100 0 100% /").entry())
    assert report.line("nvidia-smi", "ok")["found"] == "GPU 0: Fast One"
    report.warns("clock", "does not tell", "date")
    report.failed("disk", "0 MB left", "make room")


def test_disk_that_is_not_told(poor, doctor):
    doctor(poor("tar", "find", df="exit 1").entry()).warns(
        "disk", "does not tell", "df")


def test_workdir_that_is_missing(home, sshd, doctor):
    entry = sshd.entry(workdir="~/no such/dir")
    config = home.home / "my config.json"
    config.write_text(json.dumps([entry]))
    args = ["--config", str(config)]
    line = doctor(args=args).failed("workdir", "does not exist", "mkdir -p")
    own(line["todo"], home)
    doctor(args=args).line("workdir", "ok")
    # As a person would write it, if there is nothing to quote.
    assert doctor(sshd.entry(workdir="~/w")).failed(
        "workdir", "does not exist", "mkdir")["todo"] == (
            "remote-sandbox-mcp call exec_bash sandbox_name=box cwd='~' "
            "command='mkdir -p ~/w'")


def test_workdir_of_somebody_else(sshd, account, doctor):
    doctor(sshd.entry(user=account.name, workdir="/usr")).warns(
        "workdir", "cannot be written", "workdir")


# --- this machine ----------------------------------------------------------

def test_no_ssh(home, sshd, doctor, tmp_path):
    report = doctor(sshd.entry(), env={"PATH": str(tmp_path)})
    line = report.failed("ssh", "ssh", "openssh-client")
    # Both name the version that is needed.
    assert "8.4 or newer" in line["found"] and "8.4 or newer" in line["todo"]


def test_agent(home, doctor):
    def found(state, **env):
        return doctor(env=env).line("agent", state)["found"]

    assert "none" in found("ok")
    gone = str(home.run / "gone")
    line = doctor(env={"SSH_AUTH_SOCK": gone}).line("agent", "warning")
    assert gone in line["found"] and "ssh-agent" in line["todo"]
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(home.run / "mine"))
        assert "passes SSH_AUTH_SOCK on" in found(
            "ok", SSH_AUTH_SOCK=str(home.run / "mine"))
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(home.run / "ssh-agent.socket"))
        assert "found without SSH_AUTH_SOCK" in found("ok",
                                                      SSH_AUTH_SOCK=None)
        assert "found without" in found("ok", SSH_AUTH_SOCK=gone)


def test_configuration(home, sshd, doctor):
    doctor().failed("config", "there is no sandbox", "setup --host")
    line = doctor(args=["--config", "my list.json"]).failed(
        "config", "No such file or directory", "setup --host NAME")
    assert line["todo"].endswith(" --host NAME --config 'my list.json'")
    (home.home / "my list.json").write_text("[]")
    line = doctor(args=["--config", "my list.json"]).failed(
        "config", "there is no sandbox", "--config 'my list.json'")
    broken = doctor(sshd.entry(), {"name": "x"})
    broken.failed("config", "field 'host' is missing", "remote-sandbox-mcp"
                  ".conf")
    odd = doctor(sshd.entry(colour="red"))
    states = [line["state"] for line in odd.lines
              if line["check"] == "config"]
    assert states == ["warning", "ok"]


def test_key_that_others_can_read(home, sshd, doctor):
    sshd.key.chmod(0o644)
    line = doctor(sshd.entry()).failed("secrets", "others can read",
                                       "chmod 600 ")
    shell(line["todo"], home)
    doctor(sshd.entry()).line("secrets", "ok")


def test_files_that_others_can_read_or_change(home, sshd, doctor):
    config = home.home / ".config/remote-sandbox-mcp/config.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps([{"host": "h", "password": "hush"}]))
    config.chmod(0o644)
    kept = home.state / "kept"
    kept.mkdir(mode=0o700)
    (kept / "0123456789abcdef.json").write_text("{}")
    (kept / "0123456789abcdef.json").chmod(0o644)
    report = doctor(sshd.entry())
    found = [line for line in report.lines if line["check"] == "secrets"]
    assert [line["state"] for line in found] == ["failed", "failed"]
    assert "hush" not in json.dumps(report.report)
    for line in found:
        shell(line["todo"], home)
    config.write_text("[]")
    doctor(sshd.entry()).line("secrets", "ok")
    config.chmod(0o622)
    doctor(sshd.entry()).failed("secrets", "others can change",
                                "chmod 600 %s" % config)


def test_runtime_directory_of_somebody_else(home, sshd, doctor):
    (home.run / "rsmcp").mkdir(mode=0o755)
    report = doctor(sshd.entry())
    report.failed("secrets", "can be entered by others", "do what it says")


def test_store(home, sshd, doctor):
    database = home.state / "watchdog.sqlite3"
    database.write_bytes(b"this is no database" * 1000)
    doctor(sshd.entry()).warns("store", "broken", "set aside")
    doctor(sshd.entry()).line("store", "ok")
    db = sqlite3.connect(database)
    db.execute("PRAGMA user_version = 9999")
    db.close()
    doctor(sshd.entry()).failed("store", "newer", "do what it says")


def test_watchdog(home, sshd, doctor):
    entry = sshd.entry()
    home.call("exec_bash_background", [entry], command="sleep 600",
              session_name="t", notify_local=False)
    doctor(entry).failed("watchdog", "1 job is", "watchdog install")
    daemon = subprocess.Popen(
        [os.path.abspath(rsmcp.SERVER), "daemon", "--loop-sleep", "1"],
        cwd=home.home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=rsmcp.environment(home.home, **home.env()))
    try:
        rsmcp.until("the watchdog runs", lambda: home.command(
            "watchdog", "status").returncode == 0)
        assert "looks after 1 job" in doctor(entry).line(
            "watchdog", "ok")["found"]
        db = sqlite3.connect(home.state / "watchdog.sqlite3", timeout=20)
        os.kill(daemon.pid, 19)     # SIGSTOP: it lives, and does nothing
        db.execute("UPDATE daemon_meta SET updated_ts = updated_ts - 9999, "
                   "value = json_set(value, '$.ts', 1)")
        db.commit()
        db.close()
        doctor(entry).failed("watchdog", "no sign of life",
                             "watchdog install")
    finally:
        daemon.kill()
        daemon.wait()
