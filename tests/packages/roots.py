"""Whole small systems to install into: debootstrap makes them, once.

A test writes into a layer over the system, which goes with the test. Nothing
stays mounted: each command mounts for itself, in a name space of its own.
"""

import os
import subprocess

import pytest

import pack

ROOTS = pack.PACKAGES / "roots"

ENTER = """
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" "$4" &&
    mount -t proc proc "$4/proc" && mount -t tmpfs tmpfs "$4/run" &&
    { root=$4; shift 4; exec chroot "$root" "$@"; }
"""


def base(suite):
    """The untouched system."""
    if os.getuid() != 0:
        pytest.skip("only root can make a Debian system to try things in")
    done = ROOTS / suite
    if not done.exists():
        program = pack.needs("debootstrap")
        ROOTS.mkdir(parents=True, exist_ok=True)
        new = ROOTS / (suite + ".new")
        subprocess.run(["rm", "-rf", str(new)], check=True)
        made = subprocess.run(
            [program, "--variant=minbase", suite, str(new)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if made.returncode != 0:
            pytest.skip("debootstrap makes no %s here: %s"
                        % (suite, made.stdout[-200:].replace("\n", " ")))
        new.rename(done)
    return done


class Root:
    def __init__(self, suite, place):
        self.lower = base(suite)
        self.upper, self.work, self.merged = (
            place / part for part in ("upper", "work", "merged"))
        for folder in (self.upper, self.work, self.merged):
            folder.mkdir(parents=True)
        self.environment = {
            "HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}

    def command(self, *argv):
        """An argv that runs this one inside."""
        return ["/usr/bin/unshare", "--mount", "sh", "-c", ENTER, "sh",
                *map(str, (self.lower, self.upper, self.work, self.merged)),
                *map(str, argv)]

    def run(self, *argv):
        return pack.run(*self.command(*argv), env=self.environment)

    def update(self):
        """Without a mirror the test is skipped."""
        done = subprocess.run(
            self.command("apt-get", "-q", "-o", "APT::Update::Error-Mode=any",
                         "update"),
            env=self.environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            pytest.skip("no mirror of Debian answers: "
                        + done.stdout[-200:].replace("\n", " "))

    def install(self, *packages):
        """From the distribution. Services stay off: there is a policy."""
        self.write("usr/sbin/policy-rc.d", b"#!/bin/sh\nexit 101\n", 0o755)
        self.update()
        self.run("apt-get", "-qy", "install", "--no-install-recommends",
                 *packages)

    def write(self, name, data, mode=0o644):
        path = self.upper / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)

    def files(self):
        """All there is, but for what installing leaves by its nature."""
        found = self.run("find", "/", "-xdev", "(", "-path", "/var/lib/dpkg",
                         "-o", "-path", "/var/log", "-o", "-path", "/var/cache",
                         "-o", "-path", "/tmp", ")", "-prune", "-o", "-print")
        return set(found.splitlines())

    def serves(self, home, *argv):
        pack.serves(home, *self.command(*argv), env=self.environment)
