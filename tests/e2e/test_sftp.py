"""Servers that allow SFTP and nothing else."""

import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import pytest

import rsmcp
import sshd as ssh_servers
from rsmcp import SLOW
from sshd import ROOT
from test_sync import BOTH, LARGE, NS, Syncer, part_name, small_tree
from trees import NAMES, Maker, describe, write

needs_root = pytest.mark.skipif(not ROOT, reason="needs root")

SFTP_SERVER = "/usr/lib/openssh/sftp-server"

ONLY = "allows file transfer (SFTP) only: commands cannot be run there"


class Jail(Syncer):
    """Both ends on this machine; the far one may have another root."""

    def __init__(self, agent, place, server, root=None):
        super().__init__(agent, place)
        self.server = server
        self.root = root
        if root is not None:
            self.there = root / "data" / "there"
            (root / "data").mkdir()

    def far(self, path):
        """As the far side calls it."""
        path = str(path)
        return path[len(str(self.root)):] if self.root else path

    def call(self, tool, **arguments):
        arguments.setdefault("remote_path", self.far(self.there))
        return super().call(tool, **arguments)

    def read(self, path, **arguments):
        return self.agent.run(None, tool="read_remote_file",
                              remote_path=self.far(path), **arguments)

    def list(self, path, **arguments):
        result = self.agent.run(None, tool="list_remote_files",
                                remote_path=self.far(path), **arguments)
        relative(result, self.far(path))
        return result


def relative(result, top):
    """Paths as if they were seen from the top."""
    for entry in result.get("entries", []) + result.get("problems", []):
        assert entry["path"].startswith(str(top) + "/"), entry
        entry["path"] = entry["path"][len(str(top)) + 1:]


def forced(new_agent, new_sshd, tmp_path):
    server = new_sshd("ForceCommand internal-sftp")
    return Jail(new_agent(server.entry(), env=LARGE), tmp_path, server)


@pytest.fixture
def box(new_agent, new_sshd, tmp_path):
    """One with ForceCommand internal-sftp."""
    return forced(new_agent, new_sshd, tmp_path)


@pytest.fixture(params=["forced", "chroot"])
def any_box(request, new_agent, new_sshd, tmp_path):
    """With and without a root of its own."""
    if request.param == "forced":
        yield forced(new_agent, new_sshd, tmp_path)
        return
    account = request.getfixturevalue("account")
    # Every directory above it has to be root's, and nobody else's to write.
    root = pathlib.Path("/run/rsmcp-jail-%d" % os.getpid())
    root.mkdir(mode=0o755)
    try:
        server = new_sshd("ForceCommand internal-sftp",
                          "ChrootDirectory %s" % root)
        jail = Jail(new_agent(server.entry(user=account.name), env=LARGE),
                    tmp_path, server, root)
        shutil.chown(root / "data", account.name)
        yield jail
    finally:
        shutil.rmtree(root)


def seconds(tree):
    """SFTP knows no finer times."""
    return {name: entry[:2] + (entry[2] // NS,) + entry[3:]
            if entry[0] in ("file", "dir") else entry
            for name, entry in describe(tree).items()}


def same(a, b):
    a, b = seconds(a), seconds(b)
    for name in sorted(a.keys() | b.keys()):
        assert a.get(name) == b.get(name), (name, a.get(name), b.get(name))


def own(box, tree):
    """The far side's account is to own what a test put there."""
    if box.root is not None:
        owner = (box.root / "data").stat().st_uid
        for place, dirs, files in os.walk(os.fsencode(tree)):
            for name in [b"."] + dirs + files:
                os.lchown(os.path.join(place, name), owner, -1)


# --- What such a host is ------------------------------------------------------

def test_commands_are_refused_at_once(box):
    """The sentence comes in no time, and there is one login for all of it."""
    box.agent.run(None, tool="list_sandboxes")
    for _ in range(3):
        result = box.agent.run("echo hi")
        assert result.failed and result["error"].startswith("box " + ONLY)
        assert "sync tools work" in result["error"]
        assert result.seconds < 3 * SLOW
    assert box.server.logins_ever() == 1


def test_the_list_of_sandboxes_says_it(box):
    result = box.agent.run(None, tool="list_sandboxes", check_resources=True)
    [entry] = result["sandboxes"]
    assert entry["connection_alive"] is True, entry
    assert ONLY in entry["limitation"], entry
    assert "connection_error" not in entry and "resources" not in entry


def test_an_account_without_a_shell(new_agent, new_sshd, new_account):
    """What its shell said is told, too."""
    shell = "/usr/sbin/nologin"
    if not os.path.exists(shell):
        pytest.skip("no nologin")
    user = new_account(shell=shell)
    agent = new_agent(new_sshd().entry(user=user.name))
    result = agent.run("echo hi")
    assert result.failed and ONLY in result["error"], result
    assert "not available" in result["error"], result
    (user.home / "f").write_text("hello\n")
    result = agent.run(None, tool="read_remote_file", remote_path="~/f")
    assert result["content"] == "hello\n", result


def test_no_sftp_either(new_agent, new_sshd):
    """A host that allows nothing is not taken for one with SFTP."""
    agent = new_agent(new_sshd("ForceCommand /bin/false").entry())
    result = agent.run("echo hi")
    assert result.failed and ONLY not in result["error"], result
    assert "login shell ended" in result["error"], result


def test_the_shell_comes_back(home, new_sshd):
    """Another process finds out that it may run commands now."""
    server = new_sshd("ForceCommand internal-sftp")
    assert ONLY in home.call("exec_bash", [server.entry()],
                             command="echo hi")["error"]
    server.restart("PrintLastLog no")
    result = home.call("exec_bash", [server.entry()], command="echo hi")
    assert result["stdout"] == "hi\n", result


@pytest.mark.long
def test_a_shell_is_looked_for_again(new_agent, new_sshd, tmp_path):
    """After a minute, in the same process and without a login."""
    flag = tmp_path / "flag"
    script = write(tmp_path / "gate", """#!/bin/sh
if [ -e %s ]; then eval "$SSH_ORIGINAL_COMMAND"
else exec %s %s %s none; fi
""" % (flag, sys.executable, pathlib.Path(__file__).parent / "odd_sftp.py",
       tmp_path), mode=0o755)
    server = new_sshd("ForceCommand %s" % script)
    agent = new_agent(server.entry())
    assert ONLY in agent.run("echo hi")["error"]
    flag.touch()
    assert ONLY in agent.run("echo hi")["error"]
    time.sleep(61)
    assert agent.good("echo hi") == "hi\n"
    assert server.logins_ever() == 1


def test_one_session_a_connection(new_agent, new_sshd, tmp_path):
    server = new_sshd("ForceCommand internal-sftp", "MaxSessions 1")
    box = Jail(new_agent(server.entry(), env=LARGE), tmp_path, server)
    small_tree(box.here)
    box.good("up")
    same(box.here, box.there)


def test_more_calls_than_sessions(new_agent, new_sshd, tmp_path):
    server = new_sshd("ForceCommand internal-sftp", "MaxSessions 1")
    box = Jail(new_agent(server.entry()), tmp_path, server)
    for n in range(400):        # so that they take a while
        write(box.there / ("%d" % n) / "f", "1")
    calls = [box.agent.begin(None, tool="list_remote_files", recursive=True,
                             remote_path=str(box.there), max_entries=1000)
             for _ in range(16)]
    for call in calls:
        result = box.agent.end(call)
        assert len(result.get("entries", ())) == 800, result


def test_a_link_that_died_is_replaced(box, home):
    """Nobody notices."""
    write(box.there / "f", "1")
    small_tree(box.here)
    for use in (lambda: box.read(box.there / "f"),
                lambda: box.list(box.there), lambda: box.up(),
                lambda: box.down()):
        assert box.read(box.there / "f")["content"] == "1"
        masters = home.masters()
        box.server.cut()
        rsmcp.until("the masters noticed", lambda: all(
            rsmcp.gone(pid) for pid in masters))
        assert not use().failed
    same(box.here, box.there)


# --- Browse and read ----------------------------------------------------------

def test_listing(any_box):
    small_tree(any_box.there)
    own(any_box, any_box.there)
    result = any_box.list(any_box.there, recursive=True)
    found = {entry["path"]: entry for entry in result["entries"]}
    assert found["link"]["type"] == "link"
    assert found["link"]["target"] == "a.txt"
    assert found["a.txt"]["size"] == 6
    assert found["a.txt"]["mtime"] == 1600000000
    assert found["run.sh"]["mode"].endswith("755")
    assert found["sub/deep/er/x"]["size"] == 6000
    assert found["hollow"]["is_dir"] is True
    assert len(found) == 14 - 1, sorted(found)
    flat = any_box.list(any_box.there)
    assert [e["path"] for e in flat["entries"]] == sorted(
        name for name in found if "/" not in name)
    missing = any_box.list(any_box.there / "nowhere")
    assert missing.failed, missing


def test_listing_what_may_not_be_read(new_agent, new_sshd, new_account,
                                      tmp_path):
    account = new_account()
    agent = new_agent(new_sshd("ForceCommand internal-sftp").entry(
        user=account.name))
    write(account.home / "open/f", "1")
    (account.home / "shut").mkdir(mode=0o700)
    result = agent.run(None, tool="list_remote_files", remote_path="~",
                       recursive=True)
    relative(result, account.home)
    assert [e["path"] for e in result["entries"]] == [
        "open", "open/f", "shut"], result
    assert result["problems"][0]["path"] == "shut", result
    result = agent.run(None, tool="list_remote_files",
                       remote_path=str(account.home / "shut"))
    assert result.failed and "ermission denied" in result["error"], result


def test_reading(any_box):
    lines = "".join("line %d grün\n" % n for n in range(120000))
    path = write(any_box.there / "log", lines)
    own(any_box, any_box.there)
    result = any_box.read(path)
    assert lines.startswith(result["content"]) and result["truncated"]
    assert result["file_size"] == path.stat().st_size
    whole = any_box.read(path, max_bytes=3000000)
    assert not whole.failed, whole
    assert whole["content"] == lines and not whole["truncated"]
    tail = any_box.read(path, tail_lines=2)
    assert tail["content"] == "line 119998 grün\nline 119999 grün\n"
    some = any_box.read(path, start_line=100001, line_count=2)
    assert some["content"] == "line 100000 grün\nline 100001 grün\n"
    assert some["start_line"] == 100001
    part = any_box.read(path, offset=10, max_bytes=5)
    assert part["content"] == lines.encode()[9:14].decode(), part
    assert any_box.read(path, offset=10 ** 9)["content"] == ""
    for odd in (any_box.there, any_box.there / "nowhere"):
        assert any_box.read(odd).failed
    write(any_box.there / "bytes", b"\0\xff")
    own(any_box, any_box.there)
    assert any_box.read(any_box.there / "bytes")["encoding"] == "base64"


# --- Sync ---------------------------------------------------------------------

@BOTH
def test_a_tree(any_box, direction):
    """All of it arrives; again, nothing is to be done; then a change."""
    source, target = any_box.way(direction)
    source.mkdir(exist_ok=True)
    small_tree(source)
    own(any_box, any_box.there)
    first = any_box.good(direction)
    name = "uploaded_files" if direction == "up" else "downloaded_files"
    assert first[name] == 9 and "problems" not in first, first
    assert first["outside_links"] == ["outside"], first
    same(source, target)
    again = any_box.good(direction)
    assert again[name] == 0 and again["skipped_files"] == 9, again
    write(source / "a.txt", "other\n")
    write(source / "sub/new", "n")
    (source / "run.sh").unlink()
    (source / "link").unlink()
    (source / "link").symlink_to("empty")
    write(target / "extra/dir/file", "x")
    own(any_box, any_box.there)
    third = any_box.good(direction, delete_extras=True)
    assert third[name] == 3, third
    assert third["deleted_files"] == 2 and third["deleted_dirs"] == 2, third
    same(source, target)
    assert not [p for p in target.rglob(".rsmcp-*")]
    assert any_box.server.logins_ever() == 1


def test_without_extensions(new_agent, new_sshd, tmp_path):
    """A server that knows the bare protocol replaces files, too."""
    server = new_sshd("ForceCommand internal-sftp -P posix-rename,statvfs,"
                      "lsetstat")
    box = Jail(new_agent(server.entry(), env=LARGE), tmp_path, server)
    small_tree(box.here)
    box.good("up")
    write(box.here / "a.txt", "other\n")
    result = box.good("up")
    assert result["uploaded_files"] == 1 and "problems" not in result, result
    same(box.here, box.there)
    assert not parts(box.there)


@pytest.mark.skipif(not os.path.exists(SFTP_SERVER), reason="not there")
def test_another_word_for_what_is_there(new_agent, new_sshd, tmp_path):
    """Some servers say so by a code of a later version."""
    words = tmp_path / "words"
    words.write_text("exec %s %s %s -P posix-rename,statvfs,lsetstat\n" % (
        sys.executable, pathlib.Path(__file__).parent / "exists_sftp.py",
        SFTP_SERVER))
    server = new_sshd("ForceCommand sh %s" % words)
    box = Jail(new_agent(server.entry(), env=LARGE), tmp_path, server)
    write(box.here / "f", "old")
    box.good("up")
    write(box.here / "f", "newer")
    result = box.good("up")
    assert result["uploaded_files"] == 1 and "problems" not in result, result
    same(box.here, box.there)


def test_a_server_for_reading_alone(new_agent, new_sshd, tmp_path):
    server = new_sshd("ForceCommand internal-sftp -R")
    box = Jail(new_agent(server.entry()), tmp_path, server)
    write(box.here / "f", "newer")
    write(box.there / "f", "old")
    result = box.good("up")
    assert result["problems"] == [
        {"path": "f", "problem": "Permission denied"}], result
    assert (box.there / "f").read_text() == "old"
    box.good("down")
    assert (box.here / "f").read_text() == "old"


@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_random_trees(box, direction, seed):
    """Any name, any change."""
    source, target = box.way(direction)
    maker = Maker(100 + seed)
    maker.grow(source, 120)
    for number, name in enumerate(NAMES):
        write(os.path.join(os.fsencode(source), b"all", name).decode(
            errors="surrogateescape"), b"%d" % number)
    result = box.good(direction)
    assert "problems" not in result, result
    same(source, target)
    for _ in range(3):
        maker.change(source, 25)
        # Content that changed within a second is told apart by size alone.
        result = box.good(direction, delete_extras=True, checksum=True,
                          confirm_delete=True)
        assert "problems" not in result, result
        same(source, target)


@BOTH
def test_directories_that_are_closed(any_box, direction):
    """Modes that keep their owner out are no obstacle."""
    source, target = any_box.way(direction)
    write(source / "shut/in/f", "1")
    own(any_box, any_box.there)
    any_box.good(direction)
    for path in (source / "shut/in", source / "shut"):
        path.chmod(0o555)
    any_box.good(direction)
    same(source, target)
    (source / "shut/in").chmod(0o755)
    write(source / "shut/in/g", "2")
    (source / "shut/in").chmod(0o555)
    own(any_box, any_box.there)
    any_box.good(direction)
    same(source, target)
    for tree in (source, target):
        subprocess.run(["chmod", "-R", "u+w", tree], check=True)


@BOTH
def test_types_change_places(box, direction):
    source, target = box.way(direction)
    write(source / "a", "file")
    write(source / "b/c/d", "deep")
    (source / "l").symlink_to("a")
    box.good(direction)
    shutil.rmtree(source / "b")
    write(source / "b", "now a file")
    (source / "a").unlink()
    write(source / "a/x", "now a directory")
    (source / "l").unlink()
    write(source / "l", "now a file")
    box.good(direction, delete_extras=True, confirm_delete=True)
    same(source, target)


@BOTH
def test_excluded_paths_are_left_alone(box, direction):
    source, target = box.way(direction)
    write(source / "keep", "1")
    write(source / ".gitignore", "*.log\n")
    write(source / "x.log", "no")
    write(source / ".git/config", "no")
    write(target / "mine.log", "stays")
    write(target / "old.tmp", "stays")
    result = box.good(direction, use_gitignore=True, delete_extras=True,
                      excludes=["*.tmp"], confirm_delete=True)
    assert sorted(p.name for p in target.iterdir()) == [
        ".gitignore", "keep", "mine.log", "old.tmp"], result


@BOTH
def test_deletion_of_much_needs_a_word(box, direction):
    source, target = box.way(direction)
    source.mkdir(exist_ok=True)
    for n in range(3):
        write(target / ("f%d" % n), "1")
    result = getattr(box, direction)(delete_extras=True)
    assert result.failed and "confirm_delete" in result["error"], result
    assert len(list(target.iterdir())) == 3
    box.good(direction, delete_extras=True, confirm_delete=True)
    assert not list(target.iterdir())


@BOTH
def test_checksum(box, direction):
    """Same size and time, other bytes."""
    source, target = box.way(direction)
    write(source / "f", b"a" * 3000000, mtime=10 ** 18)
    write(source / "same", b"b" * 100, mtime=10 ** 18)
    write(target / "f", b"a" * 2999999 + b"b", mtime=10 ** 18)
    write(target / "same", b"b" * 100, mtime=11 * 10 ** 17)
    name = "uploaded_files" if direction == "up" else "downloaded_files"
    assert box.good(direction, dry_run=True)[name] == 1
    assert box.good(direction, checksum=True)[name] == 1
    same(source, target)


@BOTH
def test_single_files(any_box, direction):
    source, target = any_box.way(direction)
    path = write(source / "f", "one\n", mode=0o640, mtime=15 * 10 ** 17)
    target.mkdir(exist_ok=True)
    own(any_box, any_box.there)
    local, remote = ("local_path", "remote_path") if direction == "up" \
        else ("remote_path", "local_path")

    def name(which, place):
        return {which: any_box.far(place) if which == "remote_path"
                else str(place)}

    for to, expected in (("new", "new"), ("", "f"), ("deep/er/", None)):
        place = "%s/%s" % (target, to)
        arguments = {**name(local, path), **name(remote, place)}
        result = any_box.good(direction, **arguments)
        assert result["synced_type"] == "file", result
        found = target / (expected or "deep/er/f")
        assert found.read_text() == "one\n"
        assert stat.S_IMODE(found.stat().st_mode) == 0o640
        assert found.stat().st_mtime == 15 * 10 ** 8
    assert any_box.good(direction, **name(local, path), **name(
        remote, target))["skipped_files"] == 1


def test_targets_that_cannot_be(box, tmp_path):
    write(box.here / "f", "1")
    file = write(tmp_path / "file", "2")
    for place in (file, file / "below"):
        result = box.up(remote_path=str(place))
        assert result.failed, result
    assert file.read_text() == "2"
    result = box.down(remote_path=str(tmp_path / "nowhere"))
    assert result.failed and "does not exist" in result["error"]


def test_a_place_that_may_not_be_written(new_agent, new_sshd, account,
                                         tmp_path):
    server = new_sshd("ForceCommand internal-sftp")
    box = Jail(new_agent(server.entry(user=account.name)), tmp_path, server)
    write(box.here / "f", "1")
    result = box.up(remote_path="/etc/rsmcp-no")
    assert result.failed and "ermission denied" in result["error"], result
    place = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    place.chmod(0o755)
    result = box.up(remote_path=str(place))
    assert not result.failed and result["problems"] == [
        {"path": "f", "problem": "Permission denied"}], result
    place.rmdir()


@BOTH
def test_a_big_file(box, direction):
    source, target = box.way(direction)
    write(source / "big", os.urandom(1 << 20) * 48 + b"end",
          mode=0o640, mtime=16 * 10 ** 17)
    write(source / "small", "s")
    result = box.good(direction)
    assert result["bytes"] == (48 << 20) + 4, result
    same(source, target)
    assert not [path for path in target.rglob(".rsmcp-*")]


def begin(box, direction):
    return box.agent.begin(
        None, tool="sync_local_to_remote" if direction == "up"
        else "sync_remote_to_local", local_path=str(box.here),
        remote_path=str(box.there))


def parts(target):
    return [path for path in target.rglob(".rsmcp-*")
            if not path.name.endswith(".done")]


@BOTH
def test_what_holds_excluded_things_is_in_no_plan(box, direction):
    source, target = box.way(direction)
    write(source / "new", "1")
    for name in ("a/build/x", "b/c/node_modules/m/x", "e/f"):
        write(target / name, "old")
    plan = box.good(direction, dry_run=True, excludes=["build/"],
                    delete_extras=True)
    assert {step["path"] for step in plan["plan"]
            if step["action"] == "delete"} == {"e", "e/f"}, plan


@BOTH
def test_a_big_file_goes_on_where_it_was(box, direction):
    """After a cut, what is there already is not sent again."""
    source, target = box.way(direction)
    target.mkdir(exist_ok=True)
    content = os.urandom(1 << 20)
    write(source / "big", content * 160, mtime=16 * 10 ** 17)
    box.agent.run(None, tool="list_sandboxes")
    call = begin(box, direction)

    def half():
        assert not box.agent.over(call), box.agent.end(call)
        return [path for path in parts(target)
                if path.stat().st_blocks * 512 > 40 << 20]

    rsmcp.until("some of it is there", half)
    box.server.cut()
    result = box.agent.end(call)
    assert result.failed, result
    assert "same sync again goes on where it stopped" in str(result), result
    assert not (target / "big").exists()
    [part] = parts(target)
    before = part.stat().st_ino
    rsmcp.until("the login is tried again", lambda: not getattr(
        box, direction)().failed)
    same(source, target)
    assert (target / "big").stat().st_ino == before
    assert not [path for path in target.rglob(".rsmcp-*")]


@BOTH
def test_a_cut_leaves_whole_files(box, direction):
    """The link dies again and again; old or new, never half; at last all."""
    source, target = box.way(direction)
    target.mkdir(exist_ok=True)
    old = {}
    for n in range(40):
        write(source / ("d%d/f" % n), os.urandom(400000), mtime=n * NS)
        # One that is new there may be as old to the second, which is enough.
        os.utime(source / ("d%d" % n), ns=(n * NS, n * NS))
        if n % 2:
            old[n] = write(target / ("d%d/f" % n), b"old%d" % n).read_bytes()
    box.agent.run(None, tool="list_sandboxes")
    cuts = 0
    for delay in (0.03, 0.06, 0.1, 0.15):
        call = begin(box, direction)
        time.sleep(delay * rsmcp.BUILD)
        cuts += not box.agent.over(call)
        box.server.cut()
        box.agent.end(call)
        for n in range(40):
            path = target / ("d%d/f" % n)
            if path.exists():
                content = path.read_bytes()
                assert content == old.get(n) or content == \
                    (source / ("d%d/f" % n)).read_bytes(), path
    assert cuts > 0
    rsmcp.until("the login is tried again", lambda: not getattr(
        box, direction)().failed)
    # What was left there is swept when nobody can be writing it any more.
    for path in parts(target):
        os.utime(path, (10 ** 9, 10 ** 9))
    write(source / "one-more", "1")
    box.good(direction)
    same(source, target)
    assert not parts(target)


def test_what_another_run_writes_stays(box):
    write(box.here / "f", "1")
    fresh = write(box.there / ".rsmcp-u00000000", "now")
    stale = write(box.there / "d/.rsmcp-u00000001", "then", mtime=10 ** 18)
    part = write(box.there / ".rsmcp-r0000000000000000", "part",
                 mtime=time.time_ns() - 3600 * NS)
    own_file = write(box.there / ".rsmcp-notes", "not ours", mtime=10 ** 18)
    box.good("up", delete_extras=True, confirm_delete=True)
    assert fresh.exists() and part.exists() and own_file.exists()
    assert not stale.exists()


def test_parts_of_other_versions_go(box):
    """Unless somebody may be writing them still."""
    write(box.here / "big", os.urandom(17 << 20), mtime=NS)
    one = box.there / part_name(b"big", box.here / "big")
    one = write(one.with_name(one.name.replace("-p", "-r")), "part",
                mtime=time.time_ns() - 3600 * NS)
    os.utime(box.here / "big", (2, 2))
    two = box.there / part_name(b"big", box.here / "big")
    two = write(two.with_name(two.name.replace("-p", "-r")), "part")
    os.utime(box.here / "big", (3, 3))
    box.good("up")
    assert not one.exists() and two.exists()
    two.unlink()
    same(box.here, box.there)


def upload_under_way(box):
    for n in range(60):
        write(box.here / ("f%d" % n), os.urandom(1 << 20))
    box.agent.run(None, tool="list_sandboxes")
    call = begin(box, "up")
    rsmcp.until("it has begun", lambda: box.there.exists() and
                list(box.there.iterdir()))
    return call


def test_a_cancelled_upload_leaves_nothing(box):
    call = upload_under_way(box)
    box.agent.cancel(call)
    rsmcp.until("nothing of it is left", lambda: not parts(box.there))


def test_a_cancelled_upload_that_is_slow_leaves_nothing(box):
    """The server still makes files for which it was asked before."""
    call = upload_under_way(box)
    slow = [pid for pid in box.server.servers()
            if not list(ssh_servers.descendants(pid))]
    for pid in slow:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(0.5)     # meanwhile it is asked for more
    box.agent.cancel(call)
    time.sleep(1)
    for pid in slow:
        os.kill(pid, signal.SIGCONT)
    rsmcp.until("it is at its end",
                lambda: all(rsmcp.gone(pid) for pid in slow))
    rsmcp.until("nothing of it is left", lambda: not parts(box.there))


@needs_root
@BOTH
def test_a_full_disk(box, tmp_path, direction):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", small],
                   check=True)
    try:
        source = tmp_path / "source"
        # Each takes a whole page, so they look smaller than they are.
        for n in range(1500):
            write(source / ("f%d" % n), os.urandom(100))
        target = small / "t"
        write(target / "f0", "old")
        paths = {"local_path": str(source), "remote_path": str(target)} \
            if direction == "up" else {
                "local_path": str(target), "remote_path": str(source)}
        result = getattr(box, direction)(**paths)
        assert result.failed and "disk" in result["error"] and \
            "is full" in result["error"], result
        for path in target.iterdir():
            assert path.read_bytes() in (
                b"old", (source / path.name).read_bytes())
        assert not parts(target)
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@BOTH
def test_special_files_are_left_out(box, direction):
    source, target = box.way(direction)
    write(source / "f", "1")
    os.mkfifo(source / "pipe")
    result = box.good(direction)
    assert [p["path"] for p in result["problems"]] == ["pipe"], result
    assert [p.name for p in target.iterdir()] == ["f"]


def test_progress(box):
    for n in range(20):
        write(box.here / ("f%d" % n), os.urandom(200000))
    call = box.agent.begin(
        None, tool="sync_local_to_remote", token="p",
        local_path=str(box.here), remote_path=str(box.there))
    assert not box.agent.end(call).failed
    assert box.agent.progress.get("p"), "no word of it"


# --- Hosts that do not mean well ----------------------------------------------

@pytest.fixture
def odd_box(new_agent, new_sshd, tmp_path):
    """A server with a flaw: see odd_sftp.py."""
    def make(flaw):
        there = tmp_path / "there"
        write(there / "f", b"content" * 20000, mtime=15 * 10 ** 17)
        write(there / "sub/g", "g")
        (there / "l").symlink_to("f")
        server = new_sshd("ForceCommand %s %s %s '%s'" % (
            sys.executable, pathlib.Path(__file__).parent / "odd_sftp.py",
            there, flaw))
        return Jail(new_agent(server.entry(), env=LARGE), tmp_path, server)

    return make


@pytest.mark.parametrize("flaw", ["none", "short", "no attributes", "twice"])
def test_odd_but_good(odd_box, flaw):
    """Without extensions, with short reads, without attributes."""
    box = odd_box(flaw)
    result = box.good("down")
    assert "problems" not in result, result
    same(box.there, box.here)
    assert box.read(box.there / "f")["file_size"] == 140000


def test_links_that_are_listed_as_directories(odd_box, tmp_path):
    """They are not entered: the way back would be open to deletion."""
    box = odd_box("follows")
    write(tmp_path / "outside/precious", "1")
    (box.there / "way").symlink_to(tmp_path / "outside")
    (box.there / "sub/loop").symlink_to("..")
    box.good("down")
    assert (box.here / "way").is_symlink()
    assert (box.here / "sub/loop").is_symlink()
    listed = box.list(box.there, recursive=True)
    assert "way/precious" not in [e["path"] for e in listed["entries"]]


@pytest.mark.parametrize("flaw", ["up", "slash", "absolute", "nul", "empty",
                                  "count lies", "wrong id", "noise"])
def test_nonsense_ends_it(odd_box, tmp_path, flaw):
    """An error, and nothing is written anywhere."""
    box = odd_box(flaw)
    before = sorted(os.listdir(tmp_path))
    result = box.down(delete_extras=True, confirm_delete=True)
    assert result.failed, result
    assert not os.listdir(box.here)
    assert sorted(os.listdir(tmp_path)) == before
    assert not os.path.exists("/escaped")


@pytest.mark.parametrize("flaw, lost", [
    ("much", ["f", "sub/g"]), ("nothing", ["f", "sub/g"]),
    ("size lies", ["f", "sub/g"]), ("no target", ["l"])])
def test_one_bad_file_is_a_problem(odd_box, flaw, lost):
    box = odd_box(flaw)
    write(box.here / "f", "old")
    result = box.good("down")
    assert sorted(p["path"] for p in result["problems"]) == lost, result
    if "f" in lost:
        assert (box.here / "f").read_text() == "old"
    assert not parts(box.here)


def test_a_home_that_is_a_file(odd_box):
    """It has no name but the one that the host chose."""
    box = odd_box("home is a file")
    write(box.here / "f", "mine")
    result = box.down(remote_path="~")
    assert result.failed and "name the file itself" in result["error"], result
    assert (box.here / "f").read_text() == "mine"


def test_a_home_whose_path_is_too_long(odd_box):
    """It would be in every request."""
    box = odd_box("long home")
    for path in ("~", "x"):
        result = box.down(remote_path=path)
        assert result.failed and "too long" in result["error"], result
        assert box.list(path, recursive=True).failed
    box.agent.server.memory_is_bounded()


def test_a_handle_that_is_too_long(odd_box):
    box = odd_box("long handle")
    assert box.down().failed
    assert box.read(box.there / "f").failed
