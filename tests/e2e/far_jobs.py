"""The far side of jobs without a network: its texts, run by a shell of choice.

    Host    a home directory, a shell, and the programs it has
"""

import itertools
import os
import pathlib
import secrets
import shlex
import subprocess

import rsmcp

FAR = pathlib.Path(__file__).resolve().parents[2] / "src" / "job" / "far"
KILL_ME = "kill -%s $$; sleep 5"


def text(*names):
    return "".join((FAR / (name + ".sh")).read_text() for name in names)


STARTER = "job_start() {\n%s}\njob_start\n"    # as src/job/start.c has it


def assignments(values):
    return "".join("%s=%s\n" % (name, shlex.quote(str(value)))
                   for name, value in values.items())


class Look(dict):
    """What look.sh said; "bytes" is the log."""

    def __getattr__(self, name):
        return self[name]

    def int(self, name):
        return int(self[name])


class Host:
    """A machine as far as jobs can tell.

    "shell" is the argv of what runs the texts, "path" a directory in which
    "sh" is the same.
    """

    def __init__(self, home, shell, path, wrap=()):
        self.home, self.shell, self.path = pathlib.Path(home), shell, path
        self.wrap = list(wrap)
        self.home.mkdir(exist_ok=True)
        self.count = itertools.count(1)
        self.env = {"HOME": str(self.home), "PATH": str(path),
                    "TMUX_TMPDIR": str(self.home), "LC_ALL": "C.UTF-8",
                    "TERM": "xterm"}

    def begin(self, names, **values):
        script = assignments(values) + text("ident", "common")
        for name in names:
            script += STARTER % text(name) if name == "start" else text(name)
        process = subprocess.Popen(
            [*self.wrap, *self.shell], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env,
            cwd="/")
        process.script = script
        return process

    def end(self, process):
        out, err = process.communicate(process.script.encode(),
                                       timeout=3 * rsmcp.PATIENCE_S)
        assert err == b"", err
        return out

    def run(self, *names, **values):
        return self.end(self.begin(names, **values))

    @property
    def jobs(self):
        return self.home / ".local/state/remote-sandbox-mcp/jobs"

    def begin_start(self, name="j", command="true", **more):
        values = dict(N=name, C="", L=".codex_logs/%s.log" % name, K="",
                      I=secrets.token_hex(16), X=command, H="a title",
                      M="{}", R=text("ident", "run"), V="", T=0, P="")
        return self.begin(["start"], **{**values, **more})

    def start(self, name="j", command="true", **more):
        """The words of the answer."""
        answer = self.end(self.begin_start(name, command, **more)).decode()
        assert answer.endswith("\n") and answer.count("\n") == 1, answer
        return answer[:-1].split(" ")

    def look(self, name="j", **more):
        values = dict(N=name, I="", L="", A=50, O=-1, Z=40000, G="",
                      S=1 << 26, Q="0123456789ab", W=0, E="")
        said = self.run("look", **{**values, **more})
        head, _, log = said.partition(b"\n\n")
        result = Look(line.split(" ", 1)
                      for line in head.decode().split("\n"))
        result["bytes"] = log[int(result.get("at", 0)) -
                              int(result.get("from", 0)):]
        return result

    def run_dir(self, name="j", number=1):
        return self.jobs / name / ("r%d" % number)

    def over(self, name="j"):
        """Wait for its end."""
        def ended():
            look = self.look(name)
            return look if look.state not in ("running", "starting") else None
        return rsmcp.until("the job has ended", ended)

    def log(self, name="j"):
        return (self.home / ".codex_logs" / (name + ".log")).read_text()

    def close(self):
        """Nothing of it runs on."""
        if (pathlib.Path(self.path) / "tmux").exists():
            subprocess.run(["tmux", "kill-server"], capture_output=True,
                           env=self.env)
        mark = b"HOME=%s\0" % os.fsencode(self.home)
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                words = pathlib.Path("/proc", name, "environ").read_bytes()
                if mark in words + b"\0":
                    os.kill(int(name), 9)
            except (OSError, ProcessLookupError):
                pass
