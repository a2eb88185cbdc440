"""The Debian package."""

import re
import subprocess

import pytest

import pack


@pytest.fixture(scope="module")
def deb():
    return pack.find("remote-sandbox-mcp_*.deb")


def test_lintian_finds_no_error(deb):
    pack.needs("lintian")
    found = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error", str(deb)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(found.stdout)
    assert found.returncode == 0, found.stdout


def test_the_usual_things_are_in_it(deb):
    names = set(re.findall(r"\./(\S+[^/\s])$",
                           pack.run("dpkg-deb", "-c", deb), re.M))
    assert {"usr/bin/remote-sandbox-mcp",
            "usr/share/man/man1/remote-sandbox-mcp.1.gz",
            "usr/share/man/man5/remote-sandbox-mcp.conf.5.gz",
            "usr/share/man/man7/remote-sandbox-mcp-tools.7.gz",
            "usr/share/doc/remote-sandbox-mcp/copyright",
            "usr/share/doc/remote-sandbox-mcp/changelog.gz",
            "usr/share/doc/remote-sandbox-mcp/changelog.Debian.gz"} <= names
    assert all(name.startswith("usr/") for name in names)


# With what it depends on and no more.
@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_it_installs_runs_and_goes(deb, root, tmp_path, suite):
    system = root(suite)
    depends = pack.run("dpkg-deb", "-f", deb, "Depends")
    needed = re.findall(r"(?:^|, )([a-z0-9.+-]+)", depends)
    assert "openssh-client" in needed and "libc6" in needed
    system.install(*needed)
    before = system.files()

    system.write("tmp/it.deb", deb.read_bytes())
    system.run("dpkg", "-i", "/tmp/it.deb")
    assert "not found" not in system.run("ldd", "/usr/bin/remote-sandbox-mcp")
    system.serves(tmp_path, "remote-sandbox-mcp")
    system.run("dpkg", "--verify", "remote-sandbox-mcp")
    assert "/usr/bin/remote-sandbox-mcp" in system.files()

    system.run("dpkg", "--purge", "remote-sandbox-mcp")
    # What the server wrote is the user's.
    left = {name for name in system.files() - before
            if not name.startswith(system.environment["HOME"])}
    assert left == set()
