"""Those that bring files to a far machine and back:

    warm()              logged in, where it keeps a login
    up(near, far)       seconds to make far like near, both a tree or a file
    down(far, near)     the other way round
    close()             gone, with all they started

What each is like: "trees" (not just files), "compares" (what is there already
is not sent again), "whole" (a file is replaced as a whole), "part" and
"tree_part" (the big file and the tree are so many times smaller for it, as it
would take minutes), "patience" (so many times longer than others).  Who takes
longer than "patience_s" is stopped and raises peers.Slow.
"""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time

from lib import peers

LIMIT_S = 20
LARGEST = 4 << 30       # more than anything that is moved here
POLL_S = 0.05


class Ours(peers.Ours):
    trees = compares = whole = True
    part = tree_part = 1
    patience = 6                # all that is wanted is its figure

    def setup(self, place):
        command, env, tool, arguments = super().setup(place)
        # All of it inline, so that the reply is the end of it.
        env |= {"REMOTE_SANDBOX_INLINE_SYNC_MAX_FILES": "100000000",
                "REMOTE_SANDBOX_INLINE_SYNC_MAX_BYTES": str(1 << 50)}
        return command, env, tool, arguments

    def sync(self, tool, near, far):
        text, took = self.call(tool, {"local_path": str(near),
                                      "remote_path": str(far)})
        result = json.loads(text)
        if result["mode"] != "inline" or result.get("problem_count"):
            raise peers.Broken(text[:600])
        return took

    def up(self, near, far):
        return self.sync("sync_local_to_remote", near, far)

    def down(self, far, near):
        return self.sync("sync_remote_to_local", near, far)


class Program:
    """A program that uses ssh, with a login for each run."""

    opened = False              # over an open master instead
    trees = True
    compares = whole = False
    part = tree_part = patience = 1
    patience_s = LIMIT_S

    def __init__(self, place):
        if shutil.which(self.program) is None:
            raise peers.Broken("not installed (./dev setup)")
        self.env = place.environment()
        self.master = None
        self.config = place.dir / "config"
        lines = ["Host box", "HostName 127.0.0.1", f"Port {place.port}",
                 f"User {place.user}", f"IdentityFile {place.key}",
                 "IdentitiesOnly yes", "BatchMode yes", "LogLevel ERROR",
                 "StrictHostKeyChecking no",
                 f"UserKnownHostsFile {place.dir / 'known'}"]
        if self.opened:
            self.master = peers.ControlMaster(place)
            lines.append(f"ControlPath {self.master.socket}")
        self.config.write_text("\n".join(lines) + "\n")
        self.ssh = ["ssh", "-F", str(self.config)]

    def warm(self):
        self.run([*self.ssh, "box", "true"])

    def run(self, command):
        began = time.perf_counter()
        child = subprocess.Popen(
            command, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        try:
            _, said = child.communicate(timeout=self.patience_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            raise peers.Slow(f"not done in {self.patience_s} s")
        took = time.perf_counter() - began
        if child.returncode != 0:
            raise peers.Broken(f"{command[0]} exits with {child.returncode}: "
                               f"{said.strip()[:300]}")
        return took

    def close(self):
        if self.master:
            self.master.close()


class Rsync(Program):
    name = "rsync -a"
    program = "rsync"
    compares = whole = True

    def copy(self, slash, *paths):
        return self.run(["rsync", "-a", "-e", shlex.join(self.ssh),
                         *(f"{path}{slash}" for path in paths)])

    def up(self, near, far):
        return self.copy("/" if near.is_dir() else "", near, f"box:{far}")

    def down(self, far, near):
        return self.copy("/" if far.is_dir() else "", f"box:{far}", near)


class Scp(Program):
    """Its target must not be there: a tree would go below it."""

    name = "scp -r"
    program = "scp"

    def copy(self, *paths):
        return self.run(["scp", "-qr", "-F", *map(str, (self.config, *paths))])

    def up(self, near, far):
        return self.copy(near, f"box:{far}")

    def down(self, far, near):
        return self.copy(f"box:{far}", near)


class Tar(Program):
    name = "tar | ssh tar"
    program = "tar"

    @staticmethod
    def pack(path):
        if path.is_dir():
            return shlex.join(["tar", "-C", str(path), "-cf", "-", "."])
        return shlex.join(["tar", "-C", str(path.parent), "-cf", "-",
                           path.name])

    @staticmethod
    def unpack(path, tree):
        place = shlex.quote(str(path if tree else path.parent))
        return f"mkdir -p {place} && tar -C {place} -xf -"

    def pipe(self, left, right):
        return self.run(["bash", "-c", f"set -o pipefail; {left} | {right}"])

    def there(self, command):
        return shlex.join([*self.ssh, "box", command])

    def up(self, near, far):
        return self.pipe(self.pack(near),
                         self.there(self.unpack(far, near.is_dir())))

    def down(self, far, near):
        return self.pipe(self.there(self.pack(far)),
                         "{ " + self.unpack(near, far.is_dir()) + "; }")


class RsyncOpened(Rsync):
    name, opened = "rsync -a, master", True


class ScpOpened(Scp):
    name, opened = "scp -r, master", True


class TarOpened(Tar):
    name, opened = "tar | ssh tar, master", True


class Carrier(Program):
    """No contestant: bytes to nowhere and back, with the cipher that ours
    takes.  What one connection carries, whatever else is done with it."""

    name = "ssh alone"
    program = "ssh"

    def __init__(self, place):
        super().__init__(place)
        with open(self.config, "a") as file:
            file.write("Ciphers aes128-gcm@openssh.com\nControlMaster auto\n"
                       f"ControlPath {place.dir / 'socket'}\n"
                       "ControlPersist 60\n")

    def pour(self, command, rest):
        return self.run(["bash", "-c", shlex.join([*self.ssh, "box", command])
                         + rest])

    def up(self, near, far):
        return self.pour("cat >/dev/null", " <" + shlex.quote(str(near)))

    def down(self, far, near):
        return self.pour(shlex.join(["cat", str(far)]), "")

    def close(self):
        with contextlib.suppress(peers.Broken):     # it may be gone by itself
            self.run([*self.ssh, "-O", "exit", "box"])


class SshMcp(peers.SshMcp):
    """Single files only, and only inside a directory named in a file."""

    trees = compares = False
    whole = True
    part = 64
    patience = 1

    def setup(self, place):
        config = place.dir / "settings" / "config.toml"
        config.parent.mkdir(mode=0o700)
        config.write_text(f'''
[defaults]
transferRoot = "{place.near}"
transferMaxBytes = {LARGEST}
[[profiles]]
name = "box"
host = "127.0.0.1"
port = {place.port}
user = "{place.user}"
auth = "key"
keyRef = "{place.key}"
group = "dev"
role = "admin"
approvalPolicy = "auto"
''')
        config.chmod(0o600)
        return [peers.node(self.script), str(self.script),
                f"--config={config}"], {}, "run-command", {}

    def move(self, tool, near, far):
        return self.call(tool, {"localPath": str(near),
                                "remotePath": str(far)})[1]

    def up(self, near, far):
        return self.move("sftp-upload-file", near, far)

    def down(self, far, near):
        return self.move("sftp-download-file", near, far)


class SshManager(peers.SshManager):
    """Runs rsync, with a login each time."""

    trees = compares = whole = True
    part = 8
    tree_part = patience = 1

    def setup(self, place):
        command, env, tool, arguments = super().setup(place)
        # ssh would write to the known hosts of whoever runs this.
        programs = place.dir / "bin"
        programs.mkdir()
        ssh = programs / "ssh"
        known = place.dir / "known"
        ssh.write_text(f"#!/bin/sh\nexec {shutil.which('ssh')} -F none "
                       f'-o UserKnownHostsFile={known} "$@"\n')
        ssh.chmod(0o755)
        env["PATH"] = f"{programs}:{os.environ['PATH']}"
        return command, env, tool, arguments

    def sync(self, source, target):
        text, took = self.call("ssh_sync", {
            "server": "box", "source": source, "destination": target,
            "compress": False, "timeout": int(self.patience_s * 1000)})
        if "timeout" in text.lower():
            raise peers.Slow(text[:300])
        if "\u274c" in text:
            raise peers.Broken(text[:300])
        return took

    def up(self, near, far):
        slash = "/" if near.is_dir() else ""
        return self.sync(f"local:{near}{slash}", f"remote:{far}{slash}")

    def down(self, far, near):
        slash = "/" if far.is_dir() else ""
        return self.sync(f"remote:{far}{slash}", f"local:{near}{slash}")


class Original(peers.Original):
    """Hands all but a little to a worker, which has to be asked."""

    trees = compares = True
    whole = False
    part = 8
    tree_part = 10
    patience = 3                # it starts a worker, which takes its time

    def ask_for(self, tool, arguments):
        result = json.loads(self.call(tool, arguments)[0])
        if "error" in result and "task_id" not in result:
            raise peers.Broken(result["error"][:300])
        return result

    def up(self, near, far):
        began = time.perf_counter()
        result = self.ask_for("sync_local_to_remote", {
            "local_path": str(near), "remote_path": str(far)})
        if result["mode"] == "background":
            self.wait_for(result["task_id"], began + self.patience_s)
        return time.perf_counter() - began

    def wait_for(self, task, end):
        while True:
            state = self.ask_for("check_file_transfer_task",
                                 {"task_id": task, "last_n_lines": 1})
            if state["status"] == "completed":
                return
            if state["status"] not in ("queued", "running"):
                raise peers.Broken(str(state)[:300])
            if time.perf_counter() > end:
                self.ask_for("cancel_file_transfer_task",
                             {"task_id": task, "force_kill_after_s": 1})
                raise peers.Slow(f"not done in {self.patience_s} s")
            time.sleep(POLL_S)

    def down(self, far, near):
        began = time.perf_counter()
        self.ask_for("sync_remote_to_local", {
            "local_path": str(near), "remote_path": str(far)})
        return time.perf_counter() - began


EVERYONE = (Ours, Rsync, RsyncOpened, Scp, ScpOpened, Tar, TarOpened, SshMcp,
            SshManager, Original)
