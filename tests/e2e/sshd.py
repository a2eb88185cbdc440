"""Private ssh servers, and users that have nothing but what a test gives them.

    Sshd    a real sshd on a free port of loopback, with keys of its own
    Home    HOME, state and runtime directory for the program under test
    Account a throw-away system user (root only)

conftest.py has fixtures that make them and end them: new_sshd, sshd, home,
new_account.  A test is then as short as

    def test_hello(home, sshd):
        result = home.call("exec_bash", [sshd.entry()], command="echo hi")
        assert result["stdout"] == "hi\\n"
"""

import getpass
import json
import os
import pathlib
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import rsmcp

ROOT = os.geteuid() == 0
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") +
                    ":/usr/sbin:/usr/local/sbin")


def run(*argv, **options):
    """A program that has to work; what it printed."""
    options.setdefault("timeout", rsmcp.PATIENCE_S)
    options.setdefault("stdin", subprocess.DEVNULL)
    if "input" in options:
        del options["stdin"]
    done = subprocess.run([str(arg) for arg in argv], text=True,
                          capture_output=True, **options)
    assert done.returncode == 0, "%s: %s" % (argv[0], done.stderr)
    return done.stdout


def keygen(path, kind="ed25519", passphrase="", *options):
    """A new key pair; the path of the private one."""
    run("ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test",
        "-f", path, *options)
    return pathlib.Path(path)


def public(key):
    """The public key as a line: type and base64, no comment."""
    text = pathlib.Path("%s.pub" % key).read_text()
    return " ".join(text.split()[:2])


def fingerprint(key):
    """SHA256:..."""
    return run("ssh-keygen", "-lf", "%s.pub" % key).split()[1]


HELD_PORTS = []     # sockets that hold their names until we end


def free_port():
    """Below those that the system gives to who connects, and ours until we
    end: no other test takes it between two starts of a server."""
    while True:
        port = 20000 + secrets.randbelow(12000)
        name = socket.socket(socket.AF_UNIX)
        with socket.socket() as s:
            try:
                name.bind("\0rsmcp-test-port-%d" % port)
                s.bind(("127.0.0.1", port))
            except OSError:
                name.close()
                continue
        HELD_PORTS.append(name)
        return port


def pids():
    """All processes there are; some may have ended meanwhile."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def processes():
    """(pid, parent, name, state) of all there are."""
    for pid in pids():
        try:
            text = pathlib.Path("/proc/%d/stat" % pid).read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid, name, rest = re.fullmatch(
            r"(\d+) \((.*)\) (.*)", text, re.S | re.A).groups()
        fields = rest.split()
        yield int(pid), int(fields[1]), name, fields[0]


def descendants(pid):
    """(pid, name) of the living children of a process, and of theirs."""
    children = {}
    for child, parent, name, state in processes():
        if state not in "ZX":
            children.setdefault(parent, []).append((child, name))
    found, left = [], [pid]
    while left:
        mine = children.get(left.pop(), [])
        found += mine
        left += [child for child, _ in mine]
    return found


def words_of(pid, name="cmdline"):
    """Command line, or environ, of a process; nothing if it has just gone."""
    try:
        return pathlib.Path("/proc/%d/%s" % (pid, name)).read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Sshd:
    """A server for who runs the tests (and, as root, for Accounts).

    "options" are lines of sshd_config; they win over those made here.
    "host_keys" are the types it has keys of, "env" is for the sessions of who
    runs the tests.  It is up when this returns.
    """

    def __init__(self, directory, *options, host_keys=("ed25519",), env=()):
        self.dir = pathlib.Path(directory)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.options = options
        self.env = dict(env)
        self.host_keys = {kind: self.dir / ("host_" + kind)
                          for kind in host_keys}
        self.port = free_port()
        self.user = getpass.getuser()
        self.home = self.dir / "home"   # of that user, for the shell
        self.log_file = self.dir / "log"
        # sshd reads it as the user who logs in.
        self.open_dir = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="k"))
        self.open_dir.chmod(0o755)
        self.authorized = self.open_dir / "authorized_keys"
        self.authorized.touch(0o644)
        self.process = None
        self.make_host_keys()
        self.key = keygen(self.dir / "key")     # opens every account
        self.authorize(public(self.key))
        self.start()

    def make_host_keys(self):
        for kind, path in self.host_keys.items():
            path.unlink(missing_ok=True)
            keygen(path, kind, "", *(["-b", "2048"] if kind == "rsa" else []))

    def start(self):
        if ROOT:
            os.makedirs("/run/sshd", exist_ok=True)
        lines = list(self.options) + [
            "ListenAddress 127.0.0.1", "Port %d" % self.port,
            "PidFile none", "LogLevel VERBOSE", "StrictModes no",
            "UsePAM no", "PermitRootLogin yes", "PrintMotd no",
            "AuthorizedKeysFile %s" % self.authorized,
            "Subsystem sftp internal-sftp"]
        lines += ["HostKey %s" % key for key in self.host_keys.values()]
        # The rc files of who runs the tests are none of their business.
        self.home.mkdir(exist_ok=True)
        # So is their tmux; the path of its socket has to be short.
        env = {"HOME": self.home, "TMUX_TMPDIR": self.open_dir, **self.env}
        # In a Match block it replaces what was set before.
        for option in self.options:
            if option.startswith("SetEnv "):
                env.update(pair.split("=", 1) for pair in option.split()[1:])
        lines += ["Match User " + self.user, "SetEnv " + " ".join(
            "%s=%s" % pair for pair in env.items())]
        conf = self.dir / "sshd_config"
        conf.write_text("\n".join(lines) + "\n")
        self.process = subprocess.Popen(
            [SSHD, "-D", "-f", conf, "-E", self.log_file],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        rsmcp.until("sshd listens", self.listening)

    def listening(self):
        assert self.process.poll() is None, "sshd ended:\n" + self.log()
        return "Server listening on 127.0.0.1 port %d" % self.port \
            in self.log()[self.mark:]

    mark = 0        # where in the log this start began

    def stop(self):
        """The listener and all its connections are gone."""
        if self.process is None:
            return
        self.thaw()
        family = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        self.process = None
        for pid, _ in family:
            kill(pid, signal.SIGKILL)

    def end(self):
        self.stop()
        for socket_file in self.open_dir.glob("tmux-*/default"):
            subprocess.run(["tmux", "-S", socket_file, "kill-server"],
                           capture_output=True)
        self.end_jobs()
        shutil.rmtree(self.open_dir, ignore_errors=True)

    def end_jobs(self):
        """Jobs outlive everything but this."""
        mark = b"HOME=%s\0" % os.fsencode(self.home)
        for pid in pids():
            try:
                if mark in pathlib.Path("/proc/%d/environ" % pid
                                        ).read_bytes() + b"\0":
                    kill(pid, signal.SIGKILL)
            except (OSError, ValueError):
                pass

    def stop_listening(self):
        """As `systemctl stop`, but connections live on."""
        self.process.terminate()
        self.process.wait()
        self.process = None

    def restart(self, *options, new_keys=False):
        """On the same port, perhaps with other options or host keys."""
        self.stop()
        self.options = options or self.options
        if new_keys:
            self.make_host_keys()
        self.mark = len(self.log())
        self.start()

    def authorize(self, line):
        """A line for authorized_keys."""
        with open(self.authorized, "a") as file:
            file.write(line + "\n")

    def entry(self, name="box", **fields):
        """Its entry in the configuration; None leaves a field out."""
        whole = {"name": name, "host": "127.0.0.1", "port": self.port,
                 "user": self.user, "key_file": str(self.key), **fields}
        return {key: value for key, value in whole.items()
                if value is not None}

    # What happened.

    def log(self):
        return self.log_file.read_text(errors="replace") \
            if self.log_file.exists() else ""

    def count(self, pattern):
        """Lines of the log with this in them."""
        return len(re.findall("^.*(?:%s).*$" % pattern, self.log(), re.M))

    def log_has(self, pattern):
        rsmcp.until("the log of sshd has " + pattern,
                    lambda: re.search(pattern, self.log()))

    def connections_ever(self):
        """TCP connections that it took since it was made."""
        return self.count("Connection from 127.0.0.1 port")

    def logins_ever(self):
        return self.count(r"Accepted \S+ for ")

    # Its connections.

    def connections(self):
        """The processes of connections that are open now, one each."""
        return [pid for pid, parent, _, state in processes()
                if parent == self.process.pid and state not in "ZX"]

    def servers(self):
        """All sshd processes of connections (two each, but for root)."""
        if self.process is None:
            return []
        return [pid for pid, name in descendants(self.process.pid)
                if name.startswith("sshd")]

    def cut(self):
        """End every connection without a word."""
        pids = self.servers()
        for pid in pids:
            kill(pid, signal.SIGKILL)
        rsmcp.until("the connections are gone",
                    lambda: all(rsmcp.gone(pid) for pid in pids))

    frozen = ()

    def freeze(self, whole=False):
        """No connection moves any more; new ones are still taken, or with
        "whole" left without a word."""
        self.frozen = ([self.process.pid] if whole else []) + self.servers()
        for pid in self.frozen:
            kill(pid, signal.SIGSTOP)

    def thaw(self):
        for pid in self.frozen:
            kill(pid, signal.SIGCONT)
        self.frozen = ()


class Account:
    """A user of this system, gone again after remove().  Needs root."""

    def __init__(self, password=None, shell="/bin/bash"):
        self.name = "rsmcp" + secrets.token_hex(4)
        self.password = password
        self.home = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="u"))
        rsmcp.until("useradd works", lambda: self.tool(
            "useradd", "-M", "-p", "*", "-s", shell, "-d", str(self.home),
            "-c", "rsmcp test %d" % os.getpid(), self.name))
        shutil.chown(self.home, self.name)
        if password is not None:
            rsmcp.until("chpasswd works", lambda: self.tool(
                "chpasswd", "-c", "SHA512",
                input="%s:%s\n" % (self.name, password)))

    def tool(self, *argv, **options):
        """Several tests may want the lock of /etc/passwd."""
        done = subprocess.run(argv, text=True, capture_output=True, **options)
        return done.returncode == 0

    def remove(self):
        end_processes(self.name)
        rsmcp.until("userdel works", lambda: self.tool(
            "userdel", "-f", self.name))
        shutil.rmtree(self.home, ignore_errors=True)


def end_processes(user):
    """Of one that was made for a test; tmux servers are among them."""
    subprocess.run(["pkill", "-KILL", "-u", user], capture_output=True)


def sweep_accounts():
    """Remove those that a killed test run left behind."""
    for user in pwd.getpwall():
        made_by = re.fullmatch(r"rsmcp test (\d+)", user.pw_gecos)
        if made_by and rsmcp.gone(int(made_by[1])):
            end_processes(user.pw_name)
            subprocess.run(["userdel", "-f", user.pw_name],
                           capture_output=True)
            shutil.rmtree(user.pw_dir, ignore_errors=True)


class Result(dict):
    """What a tool said (the JSON object), and how."""

    failed = False      # the tool reports an error
    stdout = stderr = ""
    seconds = 0.0


class Home:
    """The program as a user has it that owns nothing else."""

    def __init__(self):
        # Short: sockets are made below it.
        self.path = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="r"))
        self.home = self.path / "home"
        self.state = self.path / "state"
        self.run = self.path / "run"
        self.servers = []
        for path in (self.home, self.state, self.run, self.home / ".ssh"):
            path.mkdir(mode=0o700)
        self.more = {}          # further environment, for every call
        self.said = []          # all that the program printed

    def env(self, entries=None, **more):
        env = {"REMOTE_SANDBOX_MCP_HOME": str(self.state),
               "XDG_RUNTIME_DIR": str(self.run), "RSMCP_TEST": str(self.path)}
        if entries is not None:
            env["REMOTE_SANDBOX_LIST"] = entries \
                if isinstance(entries, str) else json.dumps(entries)
        return {**env, **self.more, **more}

    def command(self, *args, entries=None, env=None, timeout=None,
                **options):
        """Run the program; a CompletedProcess with text."""
        done = subprocess.run(
            [os.path.abspath(rsmcp.SERVER), *args], cwd=self.home,
            env=rsmcp.environment(self.home, **self.env(entries,
                                                        **(env or {}))),
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="surrogateescape",
            timeout=timeout or 3 * rsmcp.PATIENCE_S, **options)
        self.said += [done.stdout, done.stderr]
        return done

    def call(self, tool, entries=None, env=None, args=(), timeout=None,
             **arguments):
        """One call from the command line, a process of its own.

        "args" are options of `call`, as --config.
        """
        begun = time.monotonic()
        done = self.command("call", tool, "--json", *args, "--args",
                            json.dumps(arguments), entries=entries, env=env,
                            timeout=timeout)
        assert done.returncode in (0, 1), done
        result = Result(json.loads(done.stdout))
        result.seconds = time.monotonic() - begun
        result.failed = done.returncode == 1
        result.stdout, result.stderr = done.stdout, done.stderr
        return result

    def server(self, entries=None, env=None, args=(), **options):
        """A stdio server: see rsmcp.Server."""
        server = rsmcp.Server(self.home, *args, env=self.env(
            entries, **(env or {})), **options)
        self.servers.append(server)
        return server

    def ask(self, server, tool, **arguments):
        """One call to a stdio server; a Result."""
        request = rsmcp.call(secrets.token_hex(4), tool, **arguments)
        begun = time.monotonic()
        server.send(request)
        reply = server.reply(request["id"])
        assert "result" in reply, reply
        self.said.append(json.dumps(reply))
        [content] = reply["result"]["content"]
        result = Result(json.loads(content["text"]))
        result.seconds = time.monotonic() - begun
        result.failed = bool(reply["result"].get("isError"))
        return result

    def sockets(self):
        """The control sockets of masters."""
        return [path for path in self.run.rglob("*")
                if path.is_socket()
                and not path.name.startswith(("ask-", "ssh-agent"))]

    def processes(self):
        """What runs with our environment, masters among it."""
        mark = b"RSMCP_TEST=%s\0" % os.fsencode(self.path)
        found = []
        for pid in pids():
            try:
                if mark in pathlib.Path(
                        "/proc/%d/environ" % pid).read_bytes() + b"\0":
                    found.append(pid)
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                pass
        return found

    def masters(self):
        """The processes of masters, those on their way included."""
        found = []
        for pid in self.processes():
            words = words_of(pid)
            if words.startswith(b"ssh\0") and b"\0-M\0" in words:
                found.append(pid)
        return found

    def ask_masters_to_end(self):
        for path in self.sockets():
            try:
                subprocess.run(["ssh", "-O", "exit", "-S", path, "x"],
                               stdin=subprocess.DEVNULL, capture_output=True,
                               timeout=2 * rsmcp.SLOW)
            except subprocess.TimeoutExpired:
                pass    # it is killed at the end

    def end_masters(self):
        """No connection is left."""
        self.ask_masters_to_end()
        rsmcp.until("masters are gone", lambda: not self.sockets())

    def end(self):
        """Servers, masters and files are gone."""
        for server in self.servers:
            server.kill()
        self.ask_masters_to_end()
        rsmcp.until("all processes of the test are gone", self.end_processes)
        shutil.rmtree(self.path, ignore_errors=True)

    def end_processes(self):
        """One that is killed may have started another just before."""
        left = [pid for pid in self.processes() if not rsmcp.gone(pid)]
        for pid in left:
            kill(pid, signal.SIGKILL)
        return not left
