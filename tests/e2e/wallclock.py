"""A wall clock that can be set, for the processes that are given it.

    clock = WallClock(path)
    home.more.update(clock.env())       # the user's side, or
    Sshd(directory, env=clock.env())    # that of the host
    clock.ahead(7200)

WallClock(path, "RSMCP_SLEEP_CLOCK") is the clock of a machine that was asleep.

See wallclock.c.  Without that library (not on Linux) LIBRARY is None.
"""

import os
import pathlib

import rsmcp

LIBRARY = pathlib.Path(os.path.abspath(rsmcp.SERVER)).parent \
    / "tests" / "libwallclock.so" if rsmcp.SERVER else None
if LIBRARY is not None and not LIBRARY.exists():
    LIBRARY = None


class WallClock:
    def __init__(self, path, variable="RSMCP_WALL_CLOCK"):
        self.path = pathlib.Path(path)
        self.variable = variable
        self.path.write_bytes(bytes(8))

    def env(self):
        # A sanitizer of the program wants to come first, but can do without.
        return {"LD_PRELOAD": str(LIBRARY), "ASAN_OPTIONS": ":".join([
                    *filter(None, [os.environ.get("ASAN_OPTIONS")]),
                    "verify_asan_link_order=0"]),
                self.variable: str(self.path)}

    def ahead(self, seconds):
        """From now on it is so many seconds ahead of the real one."""
        with open(self.path, "r+b", buffering=0) as file:
            file.write(seconds.to_bytes(8, "little", signed=True))
