"""An agent that runs commands on sandboxes, many at once.

    Agent   a stdio server with calls of exec_bash under way
    Tag     finds the processes of a command, whatever became of them

The sandboxes of these tests are on this machine, so what happened "there" can
be seen in /proc.
"""

import itertools
import json
import os
import pathlib
import secrets
import signal
import sys
import threading
import time

import rsmcp
import sshd as ssh_servers

GRACE_S = 2     # between TERM and KILL
END_S = 2       # a reply comes so long after deadline and grace, at most
BUSY_S = 8      # or this much later, from a host that is busy with a dozen


class Agent:
    """A server with these sandboxes, and what it replied, by request."""

    def __init__(self, home, *entries, **options):
        self.server = home.server(list(entries), **options)
        self.ids = itertools.count(1)
        self.begun = {}
        self.results = {}
        self.then = {}          # request: what is done when its reply comes
        self.progress = {}      # token: [(time, params)]
        self.changed = threading.Condition()
        self.pump = threading.Thread(target=self.collect, daemon=True)
        self.pump.start()

    def collect(self):
        while line := self.server.queue.get():
            now = time.monotonic()
            try:
                message = json.loads(line)
            except ValueError:
                # One that is killed may be in the middle of a line.
                if self.server.process.wait(rsmcp.PATIENCE_S) == -signal.SIGKILL:
                    return
                raise
            if "method" not in message and message["id"] in self.then:
                self.then.pop(message["id"])()
            with self.changed:
                if message.get("method") == "notifications/progress":
                    params = message["params"]
                    self.progress.setdefault(
                        params["progressToken"], []).append((now, params))
                elif "method" not in message:
                    self.results[message["id"]] = (now, message)
                self.changed.notify_all()

    def begin(self, command, tool="exec_bash", token=None, then=None,
              **arguments):
        """Start a call; its id.  "then" is called the moment its reply comes,
        before anybody else hears of that."""
        request_id = next(self.ids)
        if then is not None:
            self.then[request_id] = then
        if command is not None:
            arguments["command"] = command
        self.begun[request_id] = time.monotonic()
        self.server.send(rsmcp.call(request_id, tool, token, **arguments))
        return request_id

    def over(self, request_id):
        with self.changed:
            return request_id in self.results

    def end(self, request_id, timeout=None):
        """The result of a call that was begun."""
        timeout = timeout or 3 * rsmcp.PATIENCE_S
        with self.changed:
            assert self.changed.wait_for(
                lambda: request_id in self.results, timeout), \
                "no reply after %g s; stderr:\n%s" % (
                    timeout, self.server.stderr())
            at, message = self.results[request_id]
        assert "result" in message, message
        text = message["result"]["content"][0]["text"]
        result = ssh_servers.Result(
            message["result"].get("structuredContent") or json.loads(text))
        result.seconds = at - self.begun[request_id]
        result.failed = bool(message["result"].get("isError"))
        return result

    def run(self, command, timeout=None, **arguments):
        return self.end(self.begin(command, **arguments), timeout)

    def good(self, command, **arguments):
        """What it printed; it has to work."""
        result = self.run(command, **arguments)
        assert not result.failed and result["exit_code"] == 0, result
        return result["stdout"]

    def cancel(self, request_id):
        self.server.send(rsmcp.cancel(request_id))

    def leave(self):
        """The client goes; the server ends in good order."""
        self.server.close_input()
        self.server.ends()


# What a grep looks for in this until it is ended, with a tag.
SLOW_TEXT = "printf '%0301db\\n' 0"
SLOW_SEARCH = r"^(0+)(0+)(0+)\1\2\3b|^%s$"


class Tag:
    """A number for `sleep` that nobody else has."""

    def __init__(self):
        self.text = "600.%d" % (10 ** 11 + secrets.randbelow(10 ** 11))

    def __str__(self):
        return self.text

    def pids(self):
        """Living processes with it on their command line."""
        found = []
        for pid in ssh_servers.pids():
            words = ssh_servers.words_of(pid).split(b"\0")
            if self.text.encode() in words and not rsmcp.gone(pid):
                found.append(pid)
        return found

    def runs(self, count=1):
        rsmcp.until("%d processes run" % count,
                    lambda: len(self.pids()) >= count)

    def ends(self, within):
        """They are gone by then; how long it took."""
        begun = time.monotonic()
        rsmcp.until("all processes of the command are gone",
                    lambda: not self.pids(), within)
        return time.monotonic() - begun

    def kill(self):
        """What is left; it may fork meanwhile, but all of it is bounded."""
        for _ in range(20):
            left = self.pids()
            for pid in left:
                ssh_servers.kill(pid, signal.SIGKILL)
            if not left:
                return


def programs(directory, *hidden):
    """A directory with all programs of the system but these."""
    directory.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for path in pathlib.Path(place).glob("*"):
            link = directory / path.name
            if not path.name.startswith(hidden) and not os.path.lexists(link):
                link.symlink_to(path)
    return directory


def programs_with_python(directory):
    """All of them, and a `python`, which Debian leaves out."""
    programs(directory)
    if not (directory / "python").exists():
        (directory / "python").symlink_to(sys.executable)
    return directory
