"""The program that wheel, npm package and bundle carry."""

import hashlib
import re
import tarfile
import zipfile

import pytest

import pack


def from_wheel():
    with zipfile.ZipFile(pack.find("*.whl")) as wheel:
        return wheel.read("remote_sandbox_mcp-%s.data/scripts/%s"
                          % (pack.VERSION, pack.NAME))


def from_npm():
    with tarfile.open(pack.find("remote-sandbox-mcp-l*.tgz")) as package:
        return package.extractfile("package/bin/" + pack.NAME).read()


def from_bundle():
    with zipfile.ZipFile(pack.find("*.mcpb")) as bundle:
        return bundle.read("server/" + pack.NAME)


def test_all_packages_carry_the_same_program():
    digests = {hashlib.sha256(read()).hexdigest()
               for read in (from_wheel, from_npm, from_bundle)}
    assert len(digests) == 1


def test_it_needs_no_library_and_no_version_of_one(tmp_path):
    pack.needs("readelf")
    program = tmp_path / "program"
    program.write_bytes(from_wheel())
    dynamic = pack.run("readelf", "--dynamic", "--version-info", "--wide",
                       program)
    assert "NEEDED" not in dynamic
    assert "GLIBC_" not in dynamic
    segments = pack.run("readelf", "--program-headers", "--wide", program)
    assert "INTERP" not in segments
    assert "GNU_RELRO" in segments


def test_it_is_hardened(tmp_path):
    pack.needs("readelf")
    program = tmp_path / "program"
    program.write_bytes(from_wheel())
    header = pack.run("readelf", "--file-header", program)
    assert re.search(r"Type:\s+DYN", header), "it cannot be moved in memory"
    assert "NOW" in pack.run("readelf", "--dynamic", program)
    stack = re.search(r"GNU_STACK.*", pack.run(
        "readelf", "--program-headers", "--wide", program))[0]
    assert " RW " in stack


def test_it_does_not_tell_where_it_was_built():
    assert str(pack.TREE).encode() not in from_wheel()


PROBE = """
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include "base/names.h"

int
main(void)
{
	struct addrinfo *found;

	names_init();
	printf("%d\\n", getaddrinfo("here.local", NULL, NULL, &found));
	printf("%d\\n", getpwuid(54321) != NULL);
}
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    """Looks up names as the program does."""
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.c").write_text(PROBE)
    pack.run("gcc", "-static-pie", "-fPIE", "-I", pack.TREE / "src",
             "-o", folder / "probe", folder / "probe.c",
             pack.TREE / "src/base/names_static.c")
    return (folder / "probe").read_bytes()


# Old and new, each with a C library of its own. Modules for looking up names
# are what a program with glibc inside could trip over.
@pytest.mark.parametrize("suite", ["bullseye", "bookworm", "trixie"])
def test_it_runs_on_debian(root, tmp_path, probe, suite):
    system = root(suite)
    system.install("openssh-server", "openssh-client", "libnss-mdns",
                   "libnss-systemd")
    system.write("usr/bin/remote-sandbox-mcp", from_wheel(), 0o755)
    assert "mdns" in system.run("grep", "^hosts:", "/etc/nsswitch.conf")
    system.write("etc/hosts", b"192.0.2.1 here.local\n")
    system.write("usr/bin/probe", probe, 0o755)
    assert system.run("probe") == "0\n0\n"
    system.serves(tmp_path, "remote-sandbox-mcp")
    said = system.run("remote-sandbox-mcp", "demo")
    assert "exec_bash" in said, said
