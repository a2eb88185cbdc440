"""What benchmarks on a far machine share: the place, and how they end."""

import os
import pathlib
import shutil
import signal
import sys
import tempfile

from lib import far, peers


class Stage:
    """What is there while we measure; "stack" takes it all down again."""

    def __init__(self, stack, options):
        self.stack, self.options = stack, options
        # Short: sockets are made below it.
        self.dir = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="rb"))
        stack.callback(shutil.rmtree, self.dir, ignore_errors=True)
        self.dir.chmod(0o755)
        (self.dir / "far").mkdir()
        self.sshd = far.Sshd(self.dir / "far")
        stack.callback(self.sshd.close)
        self.skipped = {}       # name: why
        self.places = 0

    def account(self, **options):
        account = far.Account(self.dir, **options)
        self.stack.callback(account.close)
        # Before the account goes, its processes have to.
        self.stack.callback(self.sshd.close)
        return account.name

    def plain_account(self):
        """One without rc files, if it can be had."""
        if far.ROOT:
            return self.account()
        print("skipped: the account without rc files, as only root can make "
              f"one; {far.me()}'s own is used")
        return far.me()

    def start(self, stack, kind, port, user, near=None):
        """A contestant that is logged in, or None."""
        self.places += 1
        place = peers.Place(self.dir / f"n{self.places}", port, user,
                            self.sshd.key, near)
        try:
            one = kind(place)
            stack.callback(one.close)
            one.warm()
            return one
        except peers.Broken as reason:
            if issubclass(kind, peers.Ours):
                raise SystemExit(f"our server does not work: {reason}")
            self.skipped[kind.name] = str(reason)
            return None


class Verdict:
    """Prints targets; "good" as long as all were reached."""

    def __init__(self):
        self.good = True

    def target(self, text, reached):
        print(f"target: {text}: {'reached' if reached else 'MISSED'}")
        self.good = self.good and reached


def jobs_can_run(options):
    """Is there all that jobs on accounts of their own need?  Says what not."""
    peers.Ours.binary = options.binary.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if far.SSHD and far.ROOT and shutil.which("tmux"):
        return True
    print("skipped: this needs sshd, tmux and root, who can make accounts")
    return False


def report_load(realtime=False):
    load, count = os.getloadavg()[0], os.cpu_count()
    note = ""
    if load > count / 2:
        note = "; this machine is busy, which distorts the figures"
    if realtime:
        note = "; measured before other work"
    print(f"load average {load:.1f} on {count} processors{note}")
