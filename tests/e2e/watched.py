"""The watchdog as a test sees it.

    Watchdog    the daemon of a home, in the foreground
    Watched     a server, jobs on its sandboxes, and that daemon
"""

import os
import pathlib
import signal
import subprocess
import time

import rsmcp
import sshd as ssh_servers

BOX = "box"


class Watchdog:
    """`remote-sandbox-mcp daemon` of a home, in the foreground."""

    def __init__(self, home):
        self.home = home
        self.process = None

    def start(self):
        env = rsmcp.environment(self.home.home, **self.home.env(
            REMOTE_SANDBOX_LOG_LEVEL="info"))
        self.process = subprocess.Popen(
            [os.path.abspath(rsmcp.SERVER), "daemon", "--loop-sleep", "1"],
            cwd=self.home.home, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(self.home.path / "daemon.log", "a"))
        return self

    def log(self):
        path = self.home.path / "daemon.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Watched:
    """A home with a server, jobs and a watchdog."""

    def __init__(self, home, *sshds, env=None):
        self.home = home
        self.entries = [server.entry(BOX if i == 0 else "%s%d" % (BOX, i))
                        for i, server in enumerate(sshds)]
        self.server = home.server(self.entries, env=env)
        self.daemon = Watchdog(home)

    def call(self, tool, **arguments):
        return self.home.ask(self.server, tool, **arguments)

    def good(self, tool, **arguments):
        result = self.call(tool, **arguments)
        assert not result.failed, result
        return result

    def job(self, command, **arguments):
        """Start a job; its watch_id."""
        options = {"interval_s": 1, "resume_delay_s": 0,
                   "notify_local": False, **arguments}
        return self.good("exec_bash_background", command=command,
                         **options)["watch_id"]

    def watch(self, watch_id):
        return self.good("get_background_watch", watch_id=watch_id)["watch"]

    def events(self, watch_id=0):
        """Their types, the oldest first."""
        found = self.good("list_background_watch_events", watch_id=watch_id,
                          limit=1000)["events"]
        return [event["event_type"] for event in reversed(found)]

    def until_event(self, watch_id, event_type, count=1):
        rsmcp.until("%s, so far: %s" % (event_type, self.events(watch_id)),
                    lambda: self.events(watch_id).count(event_type) >= count,
                    timeout=3 * rsmcp.PATIENCE_S)

    def until_state(self, watch_id, state):
        rsmcp.until("the watch is %s" % state, lambda: self.watch(
            watch_id)["last_state"] == state, timeout=3 * rsmcp.PATIENCE_S)


def file_of(sshd, name):
    return pathlib.Path(sshd.home) / name


def words_of(pid):
    """How it was started, and with which environment."""
    try:
        return b"".join(pathlib.Path("/proc/%d/%s" % (pid, name)).read_bytes()
                        for name in ("cmdline", "environ"))
    except OSError:
        return b""


def lose(sshd, name):
    """Kill the processes of a job, its runner first; not those of a run that
    the watchdog starts meanwhile."""
    jobs = file_of(sshd, ".local/state/remote-sandbox-mcp/jobs")
    runs = [path.parent for path in jobs.glob(name + "/r*/id")]
    runners = [b"%s/run\0" % os.fsencode(run) for run in runs]
    marks = [b"RSMCP_CALL=job.%s." % word.encode() for run in runs
             for word in (run / "id").read_text().split()[:1]]

    def kill_some(some):
        """How many there were."""
        found = [pid for pid in ssh_servers.pids()
                 for words in [words_of(pid)]
                 if any(mark in words for mark in some)]
        for pid in found:
            ssh_servers.kill(pid, signal.SIGKILL)
        return len(found)

    def none_shows():
        """One that becomes another program is not to be seen meanwhile, which
        takes its time on a busy machine."""
        for _ in range(5):
            if kill_some(runners) + kill_some(marks):
                return False
            time.sleep(0.05)
        return True

    rsmcp.until("the job is dead", none_shows, timeout=3 * rsmcp.PATIENCE_S)
