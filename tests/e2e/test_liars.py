"""Hosts whose lists of files, archives and SFTP servers are made to hurt.

No call is cancelled: each comes back by its own limits.  Nothing is written
but below the target, no file there is one that the host does not have, and the
server stays small.
"""

import os
import pathlib
import shutil
import sys
import time

import pytest

import lies
import rsmcp
from rsmcp import SLOW
from test_hostile import ANSWER_S, SILENCE, clean, unharmed
from trees import describe, write

HERE = pathlib.Path(__file__).parent
long = pytest.mark.long

EVERYTHING = {"REMOTE_SANDBOX_INLINE_SYNC_MAX_FILES": "1000000000",
              "REMOTE_SANDBOX_INLINE_SYNC_MAX_BYTES": str(1 << 62), **SILENCE}


class Liar:
    """A host with a file "b" and "sub/c", and a program that may lie."""

    def __init__(self, agent, place):
        self.agent, self.place = agent, place
        self.here, self.there = place / "here", place / "there"
        self.lie = place / "lie"
        self.lie.write_text("none\n")
        write(self.there / "b", "b" * 5000)
        write(self.there / "sub/c", "c")
        write(self.here / "mine", "mine")
        # What is known of the host's programs, from when it was honest.
        assert not self.list().failed
        self.outside = self.look()

    def look(self):
        return {name: what for name, what in describe(self.place).items()
                if name.split(b"/")[0] not in (b"here", b"lie", b"sshd0")
                and what[0] != "dir"}

    def list(self):
        return self.agent.run(None, tool="list_remote_files", timeout=ANSWER_S,
                              remote_path=str(self.there), recursive=True)

    def down(self, **more):
        return self.agent.run(None, tool="sync_remote_to_local",
                              timeout=ANSWER_S, local_path=str(self.here),
                              remote_path=str(self.there), **more)

    def check(self, result):
        """Nothing is where it should not be, nor what it should not be."""
        assert self.look() == self.outside
        assert not os.path.exists("/escaped")
        assert not os.path.exists("/tmp/escaped")
        assert not os.path.exists("/tmp/escaped-from-an-archive")
        true = describe(self.there)
        for name, what in describe(self.here).items():
            if name != b"mine" and what[0] == "file":
                assert true.get(name, ())[3:] == what[3:], name
        assert (self.here / "mine").read_text() == "mine"
        assert clean(str(result.get("error", ""))), result
        for problem in result.get("problems", []):
            assert clean(problem["problem"]), result


@pytest.fixture
def liar(new_sshd, new_agent, tmp_path):
    place = tmp_path / "bin"
    place.mkdir()
    for name, kind, word in (("find", "list", "-printf"),
                             ("tar", "tar", "-cf")):
        (place / name).write_text(
            '#!/bin/sh\nread -r who what <%s\n'
            'case "$who $*" in "%s "*%s*) exec %s %s %s "$what";; esac\n'
            'exec %s "$@"\n' % (
                tmp_path / "lie", name, word, sys.executable, HERE / "lies.py",
                kind, shutil.which(name)))
        (place / name).chmod(0o755)
    sshd = new_sshd(env={"PATH": "%s:/usr/bin:/bin" % place})
    return Liar(new_agent(sshd.entry(), env=EVERYTHING), tmp_path)


# --- Lists of files -------------------------------------------------------------

# Reading three million names takes its time, and its memory.
LARGE = ["endless unreadable", "endless entries", "endless long names"]
# Names are kept up to this, by a sync.
NAMES_KB = 512 * 1024
BELIEVED = ["huge", "huge together", "too many times", "names"]


@pytest.mark.parametrize("lie", [
    pytest.param(lie, marks=long) if lie in LARGE else lie
    for lie in lies.LISTS])
def test_lists_that_lie(liar, lie):
    liar.lie.write_text("find %s\n" % lie)
    begun = time.monotonic()
    listed = liar.list()
    print("%.1f s: %s" % (time.monotonic() - begun, str(listed)[:200]))
    liar.check(listed)
    if lie not in BELIEVED + LARGE and "through" not in lie:
        assert listed.failed, listed
    for entry in listed.get("entries", []):
        path = os.path.normpath(entry["path"])
        assert path.startswith(str(liar.there) + "/"), entry
    unharmed(liar.agent)
    if lie == "endless entries":
        return              # they are kept: half a gigabyte
    result = liar.down()
    print("%.1f s: %s" % (time.monotonic() - begun, str(result)[:200]))
    liar.check(result)
    assert result.failed or result["problem_count"] > 0, result
    unharmed(liar.agent, rsmcp.MEMORY_KB
             + (NAMES_KB if lie == "endless long names" else 0))
    liar.lie.write_text("none\n")
    assert not liar.down().failed
    assert (liar.here / "sub/c").read_text() == "c"


def test_a_list_that_makes_no_sense_is_not_read_on(liar):
    """It has no end, and a list may take a minute."""
    for lie in ("endless lines", "endless nonsense", "endless zeros"):
        liar.lie.write_text("find %s\n" % lie)
        result = liar.list()
        assert result.failed and "makes no sense" in result["error"], result


# --- Archives -------------------------------------------------------------------

@pytest.mark.parametrize("lie", list(lies.TARS))
def test_archives_that_lie(liar, lie):
    liar.lie.write_text("tar %s\n" % lie)
    begun = time.monotonic()
    result = liar.down()
    print("%.1f s: %s" % (time.monotonic() - begun, str(result)[:300]))
    liar.check(result)
    assert result.failed or result["problem_count"] > 0, result
    unharmed(liar.agent)
    assert not [path for path in liar.here.rglob(".rsmcp-*")]
    liar.lie.write_text("none\n")
    assert not liar.down().failed
    assert describe(liar.here / "sub") == describe(liar.there / "sub")
    assert (liar.here / "b").read_text() == "b" * 5000


# --- Single files ---------------------------------------------------------------

def test_a_file_has_the_name_that_was_asked_for(new_sshd, new_agent, tmp_path):
    """The host says that it is another one: that is its own business there."""
    there, here = tmp_path / "there", tmp_path / "here"
    for name in ("report", ".bashrc"):
        write(there / name, "evil", mtime=15 * 10 ** 17)
    write(here / ".bashrc", "mine")
    lie = write(tmp_path / "lie", """printf() {
[ "$2" != RSMCP1 ] || set -- "$1" "$2" f %s rw "$6" "$7"
builtin printf "$@"; }
""" % (there / ".bashrc"))
    agent = new_agent(new_sshd(env={"BASH_ENV": str(lie)}).entry())
    result = agent.run(None, tool="sync_remote_to_local",
                       local_path=str(here), remote_path=str(there / "report"))
    assert not result.failed, result
    assert (here / ".bashrc").read_text() == "mine"
    assert sorted(os.listdir(here)) == [".bashrc", "report"], result
    result = agent.run(None, tool="sync_remote_to_local",
                       local_path=str(here), remote_path=str(there / ".."))
    assert result.failed and "name the file itself" in result["error"], result
    assert sorted(os.listdir(here)) == [".bashrc", "report"], result


# --- SFTP -----------------------------------------------------------------------

STAGES = ["INIT", "REALPATH", "STAT", "OPENDIR", "READDIR", "OPEN", "READ",
          "FSTAT", "CLOSE"]
SFTP = (["hang " + stage for stage in STAGES]
        + ["hang and complain READ", "tricks", "nonsense behind",
           "endless names", "attrs for all"])


@pytest.mark.parametrize("flaw", [
    flaw if flaw in ("hang READDIR", "tricks", "nonsense behind",
                     "attrs for all")
    else pytest.param(flaw, marks=long) for flaw in SFTP])
def test_sftp_servers_that_lie(new_agent, new_sshd, tmp_path, flaw):
    there, here = tmp_path / "there", tmp_path / "here"
    write(there / "f", b"content" * 20000, mtime=15 * 10 ** 17)
    write(there / "sub/g", "g")
    server = new_sshd("ForceCommand %s %s %s '%s'" % (
        sys.executable, HERE / "odd_sftp.py", there, flaw))
    agent = new_agent(server.entry(), env=EVERYTHING)
    true = describe(there)
    for tool, arguments in (
            ("list_remote_files", {"recursive": True}),
            ("read_remote_file", {"remote_path": str(there / "f")}),
            ("sync_remote_to_local", {"local_path": str(here)}),
            ("sync_local_to_remote", {"local_path": str(HERE.parent / "data"),
                                      "remote_path": str(tmp_path / "up")})):
        if flaw == "endless names" and tool.startswith("sync"):
            continue        # millions of them are taken before it is too much
        begun = time.monotonic()
        arguments.setdefault("remote_path", str(there))
        result = agent.run(None, tool=tool, timeout=ANSWER_S, **arguments)
        print("%.1f s: %s: %s" % (time.monotonic() - begun, tool,
                                  str(result)[:200]))
        assert clean(str(result.get("error", ""))), result
        for problem in result.get("problems", []):
            assert clean(problem["problem"]), result
        if tool == "sync_local_to_remote":      # it is for reading only
            assert result.failed or result["problem_count"] > 0, result
        unharmed(agent)
    for name, what in describe(here).items() if here.exists() else ():
        if what[0] == "file":
            assert true.get(name, ())[3:] == what[3:], name
    assert not [path for path in here.rglob(".rsmcp-*")]
    assert describe(there) == true and not (tmp_path / "up").exists()
    # A leak would be told at its end.
    agent.server.close_input()
    agent.server.ends(10 * SLOW)
