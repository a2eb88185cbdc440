"""The far side of a benchmark: an ssh server and accounts, all throw-away.

Everything is below a short directory in /tmp and gone after close().
"""

import getpass
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import time

ROOT = os.geteuid() == 0
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "")
                    + ":/usr/sbin:/usr/local/sbin")
PATIENCE_S = 20


def run(*argv):
    """A program that has to work."""
    done = subprocess.run([str(arg) for arg in argv], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{argv[0]} failed: {done.stderr.strip()}")


def until(what, condition, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"waited in vain until {what}")
        time.sleep(0.01)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def descendants(pid):
    """The processes that come from this one."""
    children = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parent = int(text.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(int(path.parent.name))
    found, left = [], [pid]
    while left:
        mine = children.get(left.pop(), [])
        found += mine
        left += mine
    return found


class Sshd:
    """A server of our own; its key opens every account."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        # Accounts read the list of keys as themselves.
        self.dir.chmod(0o755)
        for name in ("host", "key"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench",
                "-f", self.dir / name)
        self.key = self.dir / "key"
        authorized = self.dir / "authorized_keys"
        shutil.copy(self.dir / "key.pub", authorized)
        authorized.chmod(0o644)
        if ROOT:
            os.makedirs("/run/sshd", exist_ok=True)
        self.port = free_port()
        config = self.dir / "sshd_config"
        config.write_text("\n".join([
            "ListenAddress 127.0.0.1", f"Port {self.port}",
            f"HostKey {self.dir / 'host'}", "PidFile none", "UsePAM no",
            "StrictModes no", f"AuthorizedKeysFile {authorized}",
            "Subsystem sftp internal-sftp"]) + "\n")
        self.process = subprocess.Popen(
            [SSHD, "-D", "-f", config, "-E", self.dir / "log"],
            stdin=subprocess.DEVNULL, start_new_session=True)
        until("sshd listens", self.listening)

    def listening(self):
        if self.process.poll() is not None:
            raise SystemExit("sshd ended: "
                             + (self.dir / "log").read_text())
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def close(self):
        """It and its connections; once more does no harm."""
        if self.process.poll() is not None:
            return
        family = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Account:
    """A user with an empty home, or with this .bashrc.  Needs root."""

    def __init__(self, directory, rc=None):
        self.name = "rsbench" + secrets.token_hex(4)
        self.home = pathlib.Path(directory) / self.name
        self.home.mkdir()
        if rc is not None:
            (self.home / ".bashrc").write_text(rc)
        # Others may hold the lock of the list of users.
        until("useradd works", lambda: self.tool(
            "useradd", "-M", "-p", "*", "-s", shutil.which("bash"),
            "-d", str(self.home), self.name))
        shutil.chown(self.home, self.name)

    @staticmethod
    def tool(*argv):
        env = os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        return subprocess.run(argv, capture_output=True,
                              env=env).returncode == 0

    def close(self):
        until("userdel works", lambda: self.tool("userdel", "-f", self.name))


def me():
    return getpass.getuser()
