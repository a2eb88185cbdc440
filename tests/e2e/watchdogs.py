"""The watchdog as a test has it: a process that can be killed."""

import os
import subprocess

import rsmcp


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
        return (self.home.path / "daemon.log").read_text(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
