"""What benchmarks on a far machine share: the place, and how they end."""

import argparse
import gc
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

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

    def place(self, port, user, near=None):
        """A new one, for a contestant."""
        self.places += 1
        return peers.Place(self.dir / f"n{self.places}", port, user,
                           self.sshd.key, near)

    def attempt(self, kind, action):
        """What the action returns; None if it fails, and from then on the
        contestant is skipped."""
        try:
            return action()
        except peers.Broken as reason:
            if issubclass(kind, peers.Ours):
                raise SystemExit(f"our server does not work: {reason}")
            self.skipped[kind.name] = str(reason)
            return None

    def start(self, stack, kind, port, user, near=None):
        """A contestant that is logged in, or None."""
        def begin():
            one = kind(self.place(port, user, near))
            stack.callback(one.close)
            one.warm()
            return one
        return self.attempt(kind, begin)

    def start_all(self, stack, port, user, kinds=peers.EVERYONE):
        found = [self.start(stack, kind, port, user) for kind in kinds
                 if kind.name not in self.skipped]
        return [one for one in found if one is not None]

    def turns(self, everyone, rounds):
        """Everyone once in each round; who begins changes.  Who was skipped
        meanwhile has no more turns."""
        for number in range(rounds):
            first = number % len(everyone)
            for one in everyone[first:] + everyone[:first]:
                if one.name not in self.skipped:
                    yield one


def progress(text):
    """What is being done, for whoever waits for it."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def options_for(text):
    """A parser with the options that all benchmarks on a far machine have."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--realtime", action="store_true",
                        help="run all of it before other work (root only)")
    return parser


def ready(options, *programs, root=False):
    """Is there all that is needed?  Says what not; if so, all is prepared."""
    peers.Ours.binary = options.binary.resolve()
    missing = [name for name in ("ssh", *programs) if not shutil.which(name)]
    missing += [] if far.SSHD else ["sshd"]
    missing += [] if far.ROOT or not root else ["root, who can make accounts"]
    if missing:
        print("skipped: this needs " + ", ".join(missing))
        return False
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.realtime:        # the children inherit it
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    gc.disable()
    return True
