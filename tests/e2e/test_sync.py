"""Sync, both ways, against real ssh servers."""

import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import threading
import time

import pytest

import rsmcp
from agent import programs
from road import Fault, Road
from rsmcp import SLOW
from sshd import ROOT
from test_transfer import SlowRoad
from trees import Maker, describe, same, write

needs_root = pytest.mark.skipif(not ROOT, reason="needs root")
long = pytest.mark.long

NS = 10 ** 9


class Syncer:
    """An agent with both ends in a directory of this machine."""

    def __init__(self, agent, place):
        self.agent = agent
        self.here = place / "here"
        self.there = place / "there"
        self.here.mkdir()

    def call(self, tool, **arguments):
        arguments.setdefault("local_path", str(self.here))
        arguments.setdefault("remote_path", str(self.there))
        return self.agent.run(None, tool=tool, **arguments)

    def up(self, **arguments):
        return self.call("sync_local_to_remote", **arguments)

    def down(self, **arguments):
        return self.call("sync_remote_to_local", **arguments)

    def good(self, direction, **arguments):
        result = getattr(self, direction)(**arguments)
        assert not result.failed, result
        assert result["mode"] in ("inline", "dry_run"), result
        return result

    def way(self, direction):
        """Source and target."""
        return (self.here, self.there) if direction == "up" else (
            self.there, self.here)


LARGE = {"REMOTE_SANDBOX_INLINE_SYNC_MAX_FILES": "1000000",
         "REMOTE_SANDBOX_INLINE_SYNC_MAX_BYTES": str(1 << 40)}


@pytest.fixture
def syncer(new_agent, sshd, tmp_path):
    return Syncer(new_agent(sshd.entry(), env=LARGE), tmp_path)


def busybox_only(directory):
    """A directory with busybox's programs and nothing else."""
    directory.mkdir()
    names = subprocess.run(["busybox", "--list"], capture_output=True,
                           text=True, check=True).stdout.split()
    for name in names:
        (directory / name).symlink_to(shutil.which("busybox"))
    return directory


def with_bsdtar(directory):
    """All programs of the system, with the tar of the BSDs and macOS."""
    if shutil.which("bsdtar") is None:
        pytest.skip("there is no bsdtar")
    programs(directory, "tar")
    (directory / "tar").symlink_to(shutil.which("bsdtar"))
    return directory


HOSTS = {
    "gnu": lambda place: None,
    "no perl": lambda place: programs(place / "bin", "perl"),
    "no perl, no python": lambda place: programs(
        place / "bin", "perl", "python", "pypy"),
    "no perl, no bash": lambda place: programs(
        place / "bin", "perl", "bash", "rbash"),
    "busybox": lambda place: busybox_only(place / "bin"),
    "bsdtar": lambda place: with_bsdtar(place / "bin"),
}


# How finely they can set times.
KEPT = {
    "gnu": {},
    "no perl": {},
    "no perl, no python": {},
    "no perl, no bash": {},
    "busybox": {"unit": NS, "dir_times": False},
    "bsdtar": {},
}


# One of each way to put files in place is tried every day.
DAILY = "gnu", "no perl, no bash", "busybox"
EACH_HOST = [pytest.param(name, marks=[] if name in DAILY
                          else [pytest.mark.long]) for name in HOSTS]


@pytest.fixture(params=EACH_HOST)
def any_host(request, new_agent, new_sshd, tmp_path):
    path = HOSTS[request.param](tmp_path)
    server = new_sshd(env={} if path is None else {"PATH": path})
    one = Syncer(new_agent(server.entry(), env=LARGE), tmp_path)
    one.kept = KEPT[request.param]
    return one


BOTH = pytest.mark.parametrize("direction", ["up", "down"])


def small_tree(root):
    write(root / "a.txt", "hello\n", mtime=1600000000 * NS + 123456789)
    write(root / "run.sh", "#!/bin/sh\n", mode=0o755)
    write(root / "empty")
    write(root / "secret", "s", mode=0o600)
    write(root / "sub/deep/er/x", b"\0\xff" * 3000)
    (root / "hollow").mkdir()
    (root / "link").symlink_to("a.txt")
    (root / "dirlink").symlink_to("sub/deep")
    (root / "dangling").symlink_to("nowhere")
    (root / "outside").symlink_to("/etc/hostname")
    (root / "hollow").chmod(0o750)
    for path in (root / "sub/deep/er", root / "sub/deep", root / "sub"):
        os.utime(path, ns=(1500000000 * NS + 7, 1500000000 * NS + 7))


@BOTH
def test_a_tree(any_host, direction):
    """All of it arrives, as it is; again, nothing is to be done."""
    source, target = any_host.way(direction)
    source.mkdir(exist_ok=True)
    small_tree(source)
    first = any_host.good(direction)
    name = "uploaded_files" if direction == "up" else "downloaded_files"
    assert first[name] == 9, first
    assert "problems" not in first, first
    assert first["outside_links"] == ["outside"], first
    same(source, target, **any_host.kept)
    again = any_host.good(direction)
    assert again[name] == 0 and again["skipped_files"] == 9, again
    # A change, a new file, one that goes.
    write(source / "a.txt", "other\n")
    write(source / "sub/new", "n")
    (source / "run.sh").unlink()
    (source / "link").unlink()
    (source / "link").symlink_to("empty")
    write(target / "goes/x", "old")
    write(target / "stays/x.pyc", "excluded")
    third = any_host.good(direction, delete_extras=True)
    assert third[name] == 3, third
    # What was deleted, not what was to be.
    assert (third["deleted_files"], third["deleted_dirs"]) == (2, 1), third
    shutil.rmtree(target / "stays")
    same(source, target, **any_host.kept)
    assert not [p for p in target.rglob(".rsmcp-*")]


@BOTH
def test_odd_names(syncer, direction):
    source, target = syncer.way(direction)
    maker = Maker(1)
    maker.grow(source, 150)
    result = syncer.good(direction)
    assert "problems" not in result, result
    same(source, target)


@pytest.mark.parametrize("any_host", ["busybox"], indirect=True)
def test_more_names_than_a_command_takes_words(any_host):
    for n in range(1500):
        write(any_host.there / ("d%d/it's number %060d" % (n % 7, n)),
              "%d" % n)
    result = any_host.good("down")
    assert "problems" not in result, result
    same(any_host.there, any_host.here, **any_host.kept)


@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_like_rsync(syncer, tmp_path, direction, seed):
    """What comes out is what `rsync -a --delete` makes of it."""
    if shutil.which("rsync") is None:
        pytest.skip("there is no rsync")
    source, target = syncer.way(direction)
    other = tmp_path / "other"
    maker = Maker(seed)
    maker.grow(source, 60)
    target.mkdir(exist_ok=True)
    maker.grow(target, 20)
    shutil.copytree(target, other, symlinks=True)
    subprocess.run(["rsync", "-a", "--delete", "%s/" % target,
                    "%s/" % other], check=True)
    for _ in range(4):
        result = syncer.good(direction, delete_extras=True,
                             confirm_delete=True)
        assert "problems" not in result, result
        subprocess.run(["rsync", "-a", "--delete", "%s/" % source,
                        "%s/" % other], check=True)
        same(source, target)
        # rsync forgets the time of a directory now and then.
        same(other, target, dir_times=False)
        maker.change(source, 12)


@BOTH
def test_excludes(syncer, direction):
    """What is excluded is neither moved nor deleted, at any depth."""
    source, target = syncer.way(direction)
    target.mkdir(exist_ok=True)
    for name in ("keep.py", "x.log", "data/big", "runs/exp1/a", "runs/b",
                 "sub/.git/HEAD", "sub/node_modules/m/x", "a/__pycache__/p",
                 "m.pyc", ".git/HEAD"):
        write(source / name, "new")
    for name in ("runs/exp1/old", "data/old", ".git/old", "gone",
                 "sub/node_modules/old", "y.log"):
        write(target / name, "old")
    syncer.good(direction, excludes=["*.log", "data/", "runs/exp1"],
                delete_extras=True, confirm_delete=True)
    names = {str(path.relative_to(target)) for path in target.rglob("*")
             if path.is_file()}
    assert names == {"keep.py", "runs/b", "runs/exp1/old", "data/old",
                     ".git/old", "sub/node_modules/old", "y.log"}


@BOTH
@pytest.mark.parametrize("pattern, stay", [
    ("build", {"build", "a/build", "b/build"}),
    ("build/", {"build", "a/build"}),
    ("/build", {"build"}),
    ("./build", {"build"}),
    ("**/build", {"build", "a/build", "b/build"}),
    ("a/build/", {"a/build"}),
])
def test_slashes_in_patterns(syncer, direction, pattern, stay):
    """As git and rsync understand them: at any depth, or at the top."""
    source, target = syncer.way(direction)
    write(source / "new", "1")
    write(source / "a/new", "1")
    for name in ("build/x", "a/build/x", "b/build"):
        write(target / name, "old")
    syncer.good(direction, excludes=[pattern], delete_extras=True,
                confirm_delete=True)
    assert {name for name in ("build", "a/build", "b/build")
            if (target / name).exists()} == stay


@BOTH
def test_what_holds_excluded_things_is_in_no_plan(any_host, direction):
    """It is not deleted, so it is not said to be, however it is listed."""
    source, target = any_host.way(direction)
    write(source / "new", "1")
    for name in ("a/build/x", "b/c/node_modules/m/x", "b/c/f", "d/x.pyc",
                 "e/f", "g/h/.git/HEAD", "gone"):
        write(target / name, "old")
    options = dict(excludes=["build/"], delete_extras=True)
    plan = any_host.good(direction, dry_run=True, **options)
    steps = {step["path"] for step in plan["plan"]
             if step["action"] == "delete"}
    assert steps == {"b/c/f", "e", "e/f", "gone"}, plan
    assert (plan["deleted_dirs"], plan["deleted_files"]) == (1, 3), plan
    done = any_host.good(direction, confirm_delete=True, **options)
    assert (done["deleted_dirs"], done["deleted_files"]) == (1, 3), done
    assert {str(path.relative_to(target)) for path in target.rglob("*")
            if path.is_file()} == {
                "new", "a/build/x", "b/c/node_modules/m/x", "d/x.pyc",
                "g/h/.git/HEAD"}
    plan = any_host.good(direction, dry_run=True, **options)
    assert plan["plan"] == [] and plan["deleted_dirs"] == 0, plan


@BOTH
def test_gitignore(syncer, direction):
    source, target = syncer.way(direction)
    target.mkdir(exist_ok=True)
    write(source / ".gitignore", "*.o\n/build/\n!keep.o\n")
    write(source / "sub/.gitignore", "tmp\n")
    for name in ("a.c", "a.o", "keep.o", "build/x", "sub/build/x", "sub/tmp",
                 "sub/b.o"):
        write(source / name, "1")
    write(target / "build/old", "stays")
    syncer.good(direction, use_gitignore=True, delete_extras=True,
                confirm_delete=True)
    names = {str(path.relative_to(target)) for path in target.rglob("*")
             if path.is_file()}
    assert names == {".gitignore", "sub/.gitignore", "a.c", "keep.o",
                     "sub/build/x", "build/old"}


def test_ignore_files_that_are_too_much(syncer):
    """The host has made them."""
    write(syncer.there / ".gitignore", "**/" * 340000)
    write(syncer.there / "a/b/f", "1")
    syncer.good("down", use_gitignore=True)
    assert (syncer.here / "a/b/f").exists()
    write(syncer.there / "a/.gitignore", "x\n" * 100001)
    result = syncer.down(use_gitignore=True)
    assert result.failed, result
    assert "without use_gitignore" in result["error"], result
    syncer.good("down")
    syncer.agent.server.memory_is_bounded()


@BOTH
def test_dry_run_changes_nothing(syncer, direction):
    source, target = syncer.way(direction)
    source.mkdir(exist_ok=True)
    small_tree(source)
    plan = syncer.good(direction, dry_run=True)
    assert plan["mode"] == "dry_run"
    assert {"action": "copy", "path": "a.txt", "size": 6} in plan["plan"]
    assert not target.exists() or not list(target.iterdir())


SLIPS = [("dryrun", True, "dry_run"), ("dry-run", True, "dry_run"),
         ("exclude", ["*"], "excludes")]


@pytest.mark.parametrize("name, value, meant", SLIPS)
@BOTH
def test_a_slip_in_an_argument_changes_nothing(syncer, direction, name, value,
                                               meant):
    source, target = syncer.way(direction)
    write(source / "new", b"new")
    write(target / "old", b"old")
    result = getattr(syncer, direction)(delete_extras=True, **{name: value})
    assert result.failed
    assert result["error"] == "unknown argument '%s'; did you mean '%s'? " \
        "Nothing was done" % (name, meant)
    assert list(describe(target)) == [b"old"]
    # What a client adds for itself is no reason.
    syncer.good(direction, delete_extras=True, confirm_delete=True, foo=[1])
    assert list(describe(target)) == [b"new"]


@pytest.mark.parametrize("name, value, meant", SLIPS)
def test_a_slip_on_the_command_line_changes_nothing(home, sshd, tmp_path, name,
                                                    value, meant):
    write(tmp_path / "here/new", b"new")
    write(tmp_path / "there/old", b"old")
    args = ["local_path=%s/here" % tmp_path, "remote_path=%s/there" % tmp_path,
            "delete_extras=true", "confirm_delete=true"]
    value = value[0] if isinstance(value, list) else str(value).lower()
    done = home.command("call", "sync_local_to_remote", *args,
                        "%s=%s" % (name, value), entries=[sshd.entry()])
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean '%s'?" % meant in done.stderr
    done = home.command("call", "sync_local_to_remote", *args, "foo=1",
                        entries=[sshd.entry()])
    assert (done.returncode, done.stdout) == (2, "")
    assert "no argument 'foo'; it takes local_path, remote_path" in done.stderr
    assert list(describe(tmp_path / "there")) == [b"old"]
    assert sshd.connections_ever() == 0


@BOTH
def test_dry_run_of_a_single_file(syncer, direction):
    source, target = syncer.way(direction)
    write(source / "a", "one")
    near, far = ("local_path", "remote_path") if direction == "up" else (
        "remote_path", "local_path")
    plan = syncer.good(direction, dry_run=True, **{
        near: str(source / "a"), far: str(target / "new/deep") + "/"})
    assert plan["plan"] == [{"action": "copy", "path": "a", "size": 3}], plan
    assert not (target / "new").exists()


@BOTH
def test_checksum(syncer, direction):
    """Same size and time, other content: only sums can tell."""
    source, target = syncer.way(direction)
    write(source / "a", "one", mtime=NS)
    write(source / "b\nb", "two", mtime=NS)
    write(source / "c", "same", mtime=NS)
    syncer.good(direction)
    write(source / "a", "eno", mtime=NS)
    write(source / "b\nb", "owt", mtime=NS)
    write(source / "c", "same", mtime=2 * NS)
    name = "uploaded_files" if direction == "up" else "downloaded_files"
    assert syncer.good(direction, dry_run=True)[name] == 1
    assert syncer.good(direction, checksum=True)[name] == 2
    same(source, target)


@BOTH
def test_checksum_of_a_single_file(syncer, direction):
    source, target = syncer.way(direction)
    near, far = ("local_path", "remote_path") if direction == "up" else (
        "remote_path", "local_path")
    name = "uploaded_files" if direction == "up" else "downloaded_files"
    for place in (str(target) + "/", str(target / "under another name")):
        for content, mtime, moved in (("one", NS, 1), ("eno", NS, 1),
                                      ("eno", 2 * NS, 0)):
            write(source / "a'b", content, mtime=mtime)
            result = syncer.good(direction, checksum=True, **{
                near: str(source / "a'b"), far: place})
            assert result[name] == moved, result
            for there in target.glob("*"):
                assert there.read_text() == content
                assert there.stat().st_mtime_ns == mtime
        there.unlink()


@needs_root
def test_what_was_not_put_in_place_is_not_counted(new_agent, sshd, account,
                                                  tmp_path):
    for name in ("good", "shut/bad", "shut/worse"):
        write(tmp_path / "t" / name, "new")
    agent = new_agent(sshd.entry(user=account.name), env=LARGE)
    home = pathlib.Path(agent.good("mkdir -p t/shut; cd t; pwd").strip())
    os.chown(home / "shut", 0, 0)       # not theirs any more
    result = agent.run(None, tool="sync_local_to_remote",
                       local_path=str(tmp_path / "t"), remote_path=str(home))
    assert not result.failed, result
    assert result["uploaded_files"] == 1, result
    assert {p["path"] for p in result["problems"]} >= {
        "shut/bad", "shut/worse"}, result
    assert (home / "good").read_text() == "new"


# --- Single files -----------------------------------------------------------

@BOTH
def test_single_files(syncer, direction):
    source, target = syncer.way(direction)
    source.mkdir(exist_ok=True)
    target.mkdir(exist_ok=True)
    file = write(source / "f -x'y", "one", mode=0o700, mtime=NS)
    near, far = ("local_path", "remote_path") if direction == "up" else (
        "remote_path", "local_path")

    def go(to, name):
        result = syncer.good(direction, **{near: str(file), far: to})
        assert result["synced_type"] == "file"
        done = pathlib.Path(name)
        assert done.read_text() == "one"
        assert done.stat().st_mode & 0o777 == 0o700
        assert done.stat().st_mtime_ns == NS
        return result

    go(str(target), target / file.name)                 # into a directory
    go(str(target / "new/"), target / "new")            # under another name
    go(str(target / "fresh") + "/", target / "fresh" / file.name)
    go(str(target / "p/q/r"), target / "p/q/r")         # parents are made
    write(target / "old", "old content")
    go(str(target / "old"), target / "old")             # over an old file
    (target / "to").symlink_to("old")
    write(target / "old", "stays")
    assert go(str(target), target / file.name)["skipped_files"] == 1
    empty = write(source / "empty")
    syncer.good(direction, **{near: str(empty), far: str(target / "e")})
    assert (target / "e").read_bytes() == b""


@BOTH
def test_what_a_link_leads_to(syncer, direction):
    """A link that is named itself is followed, and gives the name."""
    source, target = syncer.way(direction)
    write(source / "sub/real", "one", mtime=NS)
    (source / "link").symlink_to("sub/real")
    near, far = ("local_path", "remote_path") if direction == "up" else (
        "remote_path", "local_path")
    result = syncer.good(direction, **{near: str(source / "link"),
                                       far: str(target) + "/"})
    assert "problems" not in result, result
    assert (target / "link").read_text() == "one"
    assert not (target / "link").is_symlink()
    assert (target / "link").stat().st_mtime_ns == NS


@BOTH
def test_a_file_from_before_1970(syncer, direction):
    source, target = syncer.way(direction)
    write(source / "a", "one", mtime=-5 * NS + 123)
    near, far = ("local_path", "remote_path") if direction == "up" else (
        "remote_path", "local_path")
    syncer.good(direction, **{near: str(source / "a"), far: str(target / "a")})
    assert (target / "a").stat().st_mtime_ns == -5 * NS + 123


def test_impossible_paths(syncer, tmp_path):
    write(syncer.here / "f", "x")
    write(tmp_path / "afile", "x")
    for direction, words, arguments in (
            ("up", "local_path", {"local_path": str(tmp_path / "none")}),
            ("up", "is a file", {"remote_path": str(tmp_path / "afile")}),
            ("up", "is a file", {"remote_path": str(tmp_path / "afile/")}),
            ("up", "is a file", {"local_path": str(syncer.here / "f"),
                                 "remote_path": str(tmp_path / "afile") + "/"}),
            ("up", "afile", {"remote_path": str(tmp_path / "afile/x")}),
            ("down", "not a directory", {
                "remote_path": str(syncer.here),
                "local_path": str(tmp_path / "afile")}),
            ("up", "delete_extras", {"local_path": str(syncer.here / "f"),
                                     "delete_extras": True}),
            ("up", "neither", {"local_path": "/dev/null"}),
            ("down", "does not exist", {"remote_path": "/no/such"}),
            ("down", "neither", {"remote_path": "/dev/null"}),
            ("up", "exclude", {"exclude_file": str(tmp_path / "nofile")}),
            ("up", "empty", {"local_path": " "})):
        result = getattr(syncer, direction)(**arguments)
        assert result.failed and words in result["error"], (words, result)


def test_home_on_both_sides(home, new_agent, sshd, tmp_path):
    agent = new_agent(sshd.entry(), env=LARGE)
    write(home.home / "proj" / "x", "1")
    result = agent.run(None, tool="sync_local_to_remote",
                       local_path="~/proj", remote_path="~/there/proj")
    assert not result.failed, result
    where = pathlib.Path(agent.good("cd; pwd").strip())
    assert (where / "there/proj/x").read_text() == "1"
    result = agent.run(None, tool="sync_remote_to_local",
                       local_path="~/back", remote_path="~/there/proj/x")
    assert not result.failed, result
    assert (home.home / "back").read_text() == "1"
    shutil.rmtree(where / "there")


def test_a_single_file_is_told_by_its_name(syncer):
    """Here and there, whatever was given."""
    write(syncer.here / "a", "1")
    result = syncer.good("up", local_path=str(syncer.here / "a"),
                         remote_path=str(syncer.there / "b"))
    assert (result["local_path"], result["remote_path"]) == (
        str(syncer.here / "a"), str(syncer.there / "b")), result
    result = syncer.good("down", local_path=str(syncer.here),
                         remote_path=str(syncer.there / "b"))
    assert (result["local_path"], result["remote_path"]) == (
        str(syncer.here / "b"), str(syncer.there / "b")), result
    assert (syncer.here / "b").read_text() == "1"


def test_relative_to_the_workdir(new_agent, sshd, tmp_path):
    (tmp_path / "work").mkdir()
    agent = new_agent(sshd.entry(workdir=str(tmp_path / "work")), env=LARGE)
    write(tmp_path / "here/x", "1")
    result = agent.run(None, tool="sync_local_to_remote",
                       local_path=str(tmp_path / "here"), remote_path="p")
    assert result["remote_path"] == str(tmp_path / "work/p"), result
    assert (tmp_path / "work/p/x").read_text() == "1"
    result = agent.run(None, tool="sync_remote_to_local",
                       local_path=str(tmp_path / "back"), remote_path="p/x")
    assert not result.failed, result
    assert (tmp_path / "back").read_text() == "1"


# --- Guards -----------------------------------------------------------------

@BOTH
def test_deletion_of_much_needs_a_word(syncer, direction):
    source, target = syncer.way(direction)
    source.mkdir(exist_ok=True)
    write(source / "only", "x")
    for n in range(120):
        write(target / ("f%d" % n), "x")
    result = getattr(syncer, direction)(delete_extras=True)
    assert result.failed and "confirm_delete" in result["error"], result
    assert "120 files" in result["error"]
    assert len(list(target.iterdir())) == 120
    result = syncer.good(direction, delete_extras=True, confirm_delete=True)
    assert result["deleted_files"] == 120
    assert [path.name for path in target.iterdir()] == ["only"]


@BOTH
def test_directories_that_stay_do_not_hide_it(syncer, direction):
    """A tree of the same shape, and nothing in it: as much of a slip."""
    source, target = syncer.way(direction)
    (source / "src").mkdir(parents=True)
    for n in range(10):
        write(target / ("src/f%d" % n), "x")
    result = getattr(syncer, direction)(delete_extras=True)
    assert result.failed and "confirm_delete" in result["error"], result
    assert len(list((target / "src").iterdir())) == 10


def test_nothing_is_followed(syncer, tmp_path):
    """Links of the target lead nowhere: not for writing, not for deleting."""
    outside = tmp_path / "outside"
    write(outside / "precious", "p")
    syncer.there.mkdir()
    (syncer.there / "d").symlink_to(outside)
    (syncer.there / "gone").symlink_to(outside)
    write(syncer.here / "d/precious", "new")
    result = syncer.good("up", delete_extras=True, confirm_delete=True)
    assert (outside / "precious").read_text() == "p"
    assert not (syncer.there / "gone").is_symlink()
    same(syncer.here, syncer.there)
    assert "problems" not in result, result


def tar_that_says(place, words, when):
    """All programs of the system, and a tar that is not content."""
    programs(place, "tar")
    (place / "tar").write_text('#!/bin/sh\n%s "$@"; s=$?\n%s || '
                               "{ echo '%s' >&2; s=2; }\nexit $s\n"
                               % (shutil.which("tar"), when, words))
    (place / "tar").chmod(0o755)
    return place


READ_ERROR = ("tar: %s: Read error at byte 0, while reading 5 bytes: "
              "Input/output error")


def bad_reader(new_agent, new_sshd, place, words):
    """A host whose tar says that, until there is a file "fine"."""
    path = tar_that_says(place / "bin", words, "[ -e %s ]" % (place / "fine"))
    one = Syncer(new_agent(new_sshd(env={"PATH": path}).entry()), place)
    for name in ("a", "b: c", "d\u00e9"):
        write(one.there / name, "whole")
    return one


@pytest.mark.parametrize("name", ["a", "b: c", "d\u00e9"])
def test_a_file_that_the_host_could_not_read_whole(new_agent, new_sshd,
                                                   tmp_path, name):
    """tar fills it up with zeros, and nobody would look at it again."""
    one = bad_reader(new_agent, new_sshd, tmp_path,
                     READ_ERROR % ("./" + name))
    result = one.down()
    [problem] = result["problems"]
    assert problem["path"] == name and "could not read" in str(problem)
    assert result["downloaded_files"] == 2, result
    (tmp_path / "fine").touch()
    again = one.good("down")
    assert again["skipped_files"] == 2 and "problems" not in again, again
    same(one.there, one.here)


@pytest.mark.parametrize("words", [
    READ_ERROR % "something", READ_ERROR % "./a" + "\n" + READ_ERROR % "x",
    "much"])
def test_files_of_which_nobody_knows_whether_they_were_read(
        new_agent, new_sshd, tmp_path, words):
    """Any may be the one: none counts, and all of them are brought again."""
    if words == "much":
        words = "tar: ./x: Cannot open: Permission denied\n" * 30000
    one = bad_reader(new_agent, new_sshd, tmp_path, words)
    result = one.down()
    assert sorted(problem["path"] for problem in result["problems"]) == \
        ["a", "b: c", "d\u00e9"]
    assert result["downloaded_files"] == 0 and not result.failed, result
    (tmp_path / "fine").touch()
    again = one.good("down")
    assert again["downloaded_files"] == 3 and "problems" not in again, again
    same(one.there, one.here)


def test_a_file_that_the_host_cannot_open_at_all(new_agent, new_sshd,
                                                 tmp_path):
    """The others come all the same."""
    path = programs(tmp_path / "bin", "tar")
    (path / "tar").write_text(
        "#!/bin/sh\n%s --exclude=./a \"$@\"\n"
        "echo 'tar: ./a: Cannot open: Input/output error' >&2; exit 2\n"
        % shutil.which("tar"))
    (path / "tar").chmod(0o755)
    one = Syncer(new_agent(new_sshd(env={"PATH": path}).entry()), tmp_path)
    for name in ("a", "b"):
        write(one.there / name, "whole")
    result = one.down()
    assert not result.failed, result
    [problem] = result["problems"]
    assert problem["path"] == "a" and "Cannot open" in problem["problem"]
    assert result["downloaded_files"] == 1, result


def test_names_are_told_as_they_are(new_agent, new_sshd, tmp_path):
    """GNU tar would write them with backslashes."""
    path = programs(tmp_path / "bin", "tar")
    (path / "tar").write_text(
        "#!/bin/sh\n%s \"$@\"; case $* in *quoting-style=literal*) n=%s;; "
        "*) n='\\303\\251';; esac\n"
        "case $* in -x*) rm d/new/%s; n=\"d/new/$n: Cannot open: no\";; "
        "*) n=\"./$n: Read error: Input/output error\";; esac\n"
        "printf 'tar: %%s\\n' \"$n\" >&2; exit 2\n"
        % (shutil.which("tar"), "\u00e9", "\u00e9"))
    (path / "tar").chmod(0o755)
    one = Syncer(new_agent(new_sshd(env={"PATH": path}).entry()), tmp_path)
    write(one.there / "\u00e9", "whole")
    result = one.down()
    assert [problem["path"] for problem in result["problems"]] == ["\u00e9"]
    write(one.here / "new/a", "whole")
    write(one.here / "new/\u00e9", "whole")
    (one.here / "\u00e9").unlink()
    result = one.up()
    assert [problem["path"] for problem in result["problems"]] == \
        ["new/\u00e9"], result
    assert result["uploaded_files"] == 1, result


@pytest.mark.parametrize("words", [
    "tar: can'\"'\"'t create symlink '\"'\"'d/l'\"'\"' to "
    "'\"'\"'a'\"'\"': Operation not permitted",
    "tar: d/l: Can'\"'\"'t create '\"'\"'d/l'\"'\"': Illegal byte sequence"])
def test_a_link_that_other_kinds_of_tar_cannot_make(new_agent, new_sshd,
                                                    tmp_path, words):
    """As on a disk without links: it is told, and the rest is there."""
    place = tar_that_says(tmp_path / "bin", words, "! rm d/l")
    one = Syncer(new_agent(new_sshd(env={"PATH": place}).entry()), tmp_path)
    write(one.here / "a", "whole")
    (one.here / "l").symlink_to("a")
    result = one.up()
    assert not result.failed, result
    assert {problem["path"] for problem in result["problems"]} == {"l"}
    assert result["uploaded_files"] == 1, result
    assert (one.there / "a").read_text() == "whole"


@pytest.mark.parametrize("host", ["gnu", "no perl", "no perl, no python"])
def test_a_link_stays_if_nothing_can_take_its_place(new_agent, new_sshd,
                                                    tmp_path, host):
    place = HOSTS[host](tmp_path) or programs(tmp_path / "bin")
    (place / "tar").unlink()
    (place / "tar").write_text(
        "#!/bin/sh\n%s \"$@\"; s=$?\nrm d/l && echo 'tar: d/l: Cannot "
        "create symlink to `a'\\'': Operation not permitted' >&2 && s=2\n"
        "exit $s\n" % shutil.which("tar"))
    (place / "tar").chmod(0o755)
    one = Syncer(new_agent(new_sshd(env={"PATH": place}).entry()), tmp_path)
    one.there.mkdir()
    (one.there / "l").symlink_to("precious")
    (one.here / "l").symlink_to("a")
    result = one.up()
    assert not result.failed, result
    assert {problem["path"] for problem in result["problems"]} == {"l"}
    assert os.readlink(one.there / "l") == "precious"


@pytest.mark.parametrize("words", [
    "tar: d/a: Cannot write: Stale file handle",
    "tar: d/a: Cannot close: Connection timed out",
    "tar: write error: File too large", "tar: short write",
    "tar: d/a: Wrote only 1 of 2 bytes"])
def test_a_file_that_the_host_could_not_write_whole(new_agent, new_sshd,
                                                    tmp_path, words):
    """tar goes on with the next one, but this one is not put in place."""
    place = tar_that_says(tmp_path / "bin", words,
                          "[ ! -s d/a ] || ! : >d/a")
    one = Syncer(new_agent(new_sshd(env={"PATH": place}).entry()), tmp_path)
    write(one.here / "a", "whole")
    result = one.up()
    assert result.failed and words in result["error"], result
    assert not list(one.there.iterdir())


def test_a_path_that_the_host_cannot_make(syncer):
    """One of those that come with their directory; it is told, and is not
    counted."""
    write(syncer.here / "new/a", "one")
    fd = os.open(syncer.here / "new", os.O_RDONLY)
    for _ in range(17):
        os.mkdir("d" * 250, dir_fd=fd)
        deeper = os.open("d" * 250, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    os.close(os.open("deep", os.O_WRONLY | os.O_CREAT, dir_fd=fd))
    os.close(fd)
    result = syncer.up()
    assert not result.failed, result
    assert any(problem["path"].endswith("/deep")
               for problem in result["problems"]), result
    assert result["uploaded_files"] == 1, result
    assert (syncer.there / "new/a").read_text() == "one"


def test_rules_that_cannot_be_read_delete_nothing(syncer):
    """What they would exclude is not known."""
    write(syncer.here / "a", "one")
    write(syncer.here / ".gitignore", "build/\n" + "# much\n" * 200000)
    write(syncer.there / "build/precious", "two")
    result = syncer.good("up", use_gitignore=True, delete_extras=True,
                         confirm_delete=True)
    assert ".gitignore" in str(result["problems"])
    assert (syncer.there / "build/precious").read_text() == "two"


def test_a_directory_that_is_hidden_is_not_moved_into(any_host):
    """A file of its name cannot take its place."""
    write(any_host.here / "build", "a file")
    write(any_host.there / "build/precious", "two")
    result = any_host.up(excludes=["build/"])
    assert [path.name for path in (any_host.there / "build").iterdir()] == \
        ["precious"]
    assert result.failed or result["problems"][0]["path"] == "build", result


def test_a_link_is_replaced_and_not_moved_into(any_host, tmp_path):
    outside = tmp_path / "outside"
    write(outside / "current", "precious")
    any_host.there.mkdir()
    for name in ("current", "file"):
        (any_host.there / name).symlink_to(outside)
    any_host.here.mkdir(exist_ok=True)
    (any_host.here / "current").symlink_to("elsewhere")
    write(any_host.here / "file", "new")
    any_host.good("up")
    assert os.readlink(any_host.there / "current") == "elsewhere"
    assert (any_host.there / "file").read_text() == "new"
    assert [path.name for path in outside.iterdir()] == ["current"]
    assert (outside / "current").read_text() == "precious"


@needs_root
@BOTH
@pytest.mark.parametrize("link", [False, True])
def test_no_device_is_lost(syncer, direction, link):
    """Whoever says /dev/null does not want a file there."""
    syncer.there.mkdir()
    source, target = syncer.way(direction)
    node = target / "null"
    os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    if link:
        node = target / "link"
        node.symlink_to("null")
    write(source / "a", "one")
    near, far = ("local_path", "remote_path") if direction == "up" else (
        "remote_path", "local_path")
    result = getattr(syncer, direction)(**{near: str(source / "a"),
                                           far: str(node)})
    assert result.failed and "neither a file nor" in result["error"], result
    assert stat.S_ISCHR(os.stat(node).st_mode)
    assert node.is_symlink() == link


def test_special_files_are_left_out(syncer):
    write(syncer.here / "f", "x")
    os.mkfifo(syncer.here / "pipe")
    result = syncer.good("up")
    assert [p["path"] for p in result["problems"]] == ["pipe"], result
    os.mkfifo(syncer.there / "pipe2")
    result = syncer.good("down")
    assert {p["path"] for p in result["problems"]} >= {"pipe2"}, result


@needs_root
def test_unreadable_files(new_agent, sshd, account, tmp_path):
    """They are named, and do not stop the rest."""
    agent = new_agent(sshd.entry(user=account.name), env=LARGE)
    agent.good("mkdir -p t/c && cd t && echo x | tee a b c/d && chmod 0 b c")
    try:
        result = agent.run(None, tool="sync_remote_to_local",
                           remote_path="t", local_path=str(tmp_path / "l"))
    finally:
        agent.good("chmod 700 t/c; rm -rf t")
    assert not result.failed, result
    assert (tmp_path / "l/a").read_text() == "x\n"
    assert {p["path"] for p in result["problems"]} == {"b", "c"}, result


def test_a_file_that_changes_does_not_come_with_its_directory(any_host):
    """It is neither old nor new, and its directory is moved as a whole."""
    busy = write(any_host.here / "new/busy", os.urandom(15 << 20))
    write(any_host.here / "new/calm", "1")
    over = threading.Event()

    def scribble():
        while not over.wait(0.0005):
            with open(busy, "ab") as file:
                file.write(b"x")

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        def look():
            shutil.rmtree(any_host.there, ignore_errors=True)
            result = any_host.good("up")
            return "problems" in result and result
        result = rsmcp.until("it changed while it was read", look)
    finally:
        over.set()
        thread.join()
    assert [p["path"] for p in result["problems"]] == ["new/busy"], result
    assert "changed" in result["problems"][0]["problem"], result
    assert [p.name for p in (any_host.there / "new").iterdir()] == ["calm"]


def test_only_what_must_move_counts(new_agent, sshd, tmp_path):
    """A large tree with a small change needs no worker."""
    syncer = Syncer(new_agent(sshd.entry(), env={
        "REMOTE_SANDBOX_INLINE_SYNC_MAX_FILES": "10",
        "REMOTE_SANDBOX_INLINE_SYNC_MAX_BYTES": "1000"}), tmp_path)
    for n in range(30):
        write(syncer.here / ("f%d" % n), b"x" * 100)
    shutil.copytree(syncer.here, syncer.there)
    for n in range(10):
        write(syncer.here / ("f%d" % n), b"y" * 100)
    assert syncer.good("up")["uploaded_files"] == 10
    assert syncer.good("down")["skipped_files"] == 30
    write(syncer.here / "f0", b"z" * 1001)
    assert syncer.up()["mode"] == "background"


@needs_root
def test_a_place_that_may_not_be_written(new_agent, sshd, account, tmp_path):
    write(tmp_path / "x", "1")
    agent = new_agent(sshd.entry(user=account.name), env=LARGE)
    result = agent.run(None, tool="sync_local_to_remote",
                       local_path=str(tmp_path), remote_path="/etc/sub")
    assert result.failed and "/etc" in result["error"], result
    assert "ermission denied" in result["error"], result


def test_roots(new_agent, sshd, tmp_path):
    allowed = tmp_path / "allowed"
    write(allowed / "x", "1")
    (allowed / "out").symlink_to(tmp_path)
    agent = new_agent(sshd.entry(), env={
        **LARGE, "REMOTE_SANDBOX_LOCAL_ROOTS": str(allowed)})
    for path, ok in ((allowed, True), (allowed / "x", True),
                     (tmp_path, False), (allowed / "out", False),
                     ("/etc/hostname", False)):
        result = agent.run(None, tool="sync_local_to_remote",
                           local_path=str(path),
                           remote_path=str(tmp_path / "there") + "/")
        assert result.failed != ok, (path, result)
        if not ok:
            assert "REMOTE_SANDBOX_LOCAL_ROOTS" in result["error"]
    # Down, too: nothing is made or written elsewhere.
    write(tmp_path / "far/new", "theirs")
    write(tmp_path / "mine", "mine")
    for path in (tmp_path, allowed / "out", tmp_path / "mine",
                 allowed / "out/mine", tmp_path / "made"):
        result = agent.run(None, tool="sync_remote_to_local",
                           local_path=str(path),
                           remote_path=str(tmp_path / "far/new"))
        assert result.failed, (path, result)
        assert "REMOTE_SANDBOX_LOCAL_ROOTS" in result["error"]
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "made").exists() and not (tmp_path / "new").exists()
    assert not agent.run(None, tool="sync_remote_to_local",
                         local_path=str(allowed / "down"),
                         remote_path=str(tmp_path / "far/new")).failed
    assert (allowed / "down").read_text() == "theirs"


# --- Much, far, full, cut ---------------------------------------------------

@BOTH
def test_a_big_file(syncer, direction):
    source, target = syncer.way(direction)
    source.mkdir(exist_ok=True)
    size = 50 * (1 << 20) + 4321
    with open(source / "big", "wb") as file:
        for n in range(51):
            file.write(os.urandom(1 << 20)[:min(1 << 20, size - n * (1 << 20))])
    write(source / "sub/small", "s")
    syncer.good(direction)
    same(source, target)
    os.truncate(source / "big", 20 << 20)
    syncer.good(direction)
    same(source, target)
    assert not list(target.glob(".rsmcp-*"))


def test_names_that_a_host_cannot_be_told(new_agent, new_sshd, tmp_path):
    """Neither bash, nor a tar that reads a list."""
    path = busybox_only(tmp_path / "bin")
    (path / "perl").symlink_to(shutil.which("perl"))
    server = new_sshd(env={"PATH": path})
    one = Syncer(new_agent(server.entry(), env=LARGE), tmp_path)
    write(one.there / "a\nb", "a")
    write(one.there / "c", "c")
    result = one.good("down")
    assert (one.here / "c").read_text() == "c"
    assert "cannot be told" in json.dumps(result["problems"]), result


@BOTH
def test_the_holes_of_a_big_file(syncer, direction):
    """In the middle, and at its end, which is none of a block."""
    source, target = syncer.way(direction)
    source.mkdir(exist_ok=True)
    with open(source / "big", "wb") as file:
        file.seek(20 << 20)
        file.write(os.urandom(3 << 20))
        file.truncate((60 << 20) + 4321)
    syncer.good(direction)
    same(source, target)
    assert (target / "big").read_bytes() == (source / "big").read_bytes()
    assert (target / "big").stat().st_blocks * 512 < 8 << 20


@needs_root
@BOTH
def test_a_full_disk(syncer, tmp_path, direction):
    source, target = syncer.way(direction)
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", small],
                   check=True)
    try:
        write(small / "t/old", "old")
        for n in range(30):
            write(source / ("f%d" % n), os.urandom(300000))
        write(source / "old", "new")
        where = {"up": "remote_path", "down": "local_path"}[direction]
        result = getattr(syncer, direction)(**{where: str(small / "t")})
        assert result.failed, result
        assert "free" in result["error"] or "full" in result["error"], result
        assert (small / "t/old").read_text() == "old"
        for path in (small / "t").iterdir():
            assert path.name == "old" or path.stat().st_size == 300000
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@needs_root
@pytest.mark.parametrize("tar", ["tar", "busybox tar"])
@pytest.mark.parametrize("left", [0, 100])
def test_a_disk_that_is_full_all_at_once(new_agent, new_sshd, tmp_path, tar,
                                         left):
    """tar goes on then, with short files and a short list of what to do."""
    small, bin_dir = tmp_path / "small", tmp_path / "bin"
    small.mkdir()
    # After we looked, somebody else fills it.
    write(bin_dir / "tar", "#!/bin/sh\ncase $1 in -x*) dd if=/dev/zero "
          "bs=1k of=%s/filler count=$((1024-%d));; esac 2>/dev/null\n"
          "exec %s \"$@\"\n" % (
              small, left, shutil.which(tar.split()[0])
              + tar.removeprefix("busybox").removeprefix("tar")), 0o755)
    sshd = new_sshd(env={"PATH": "%s:%s" % (bin_dir, os.environ["PATH"])})
    syncer = Syncer(new_agent(sshd.entry(), env=LARGE), tmp_path)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small],
                   check=True)
    try:
        write(small / "t/f1", "old")
        write(small / "t/extra", "old")
        for n in range(10):
            write(syncer.here / ("f%d" % n), b"x" * 20000)
        before = describe(small / "t")
        way = {"remote_path": str(small / "t"), "delete_extras": True,
               "confirm_delete": True}
        result = syncer.up(**way)
        assert result.failed and "is full" in result["error"], result
        assert describe(small / "t") == before
        (bin_dir / "tar").unlink()
        (small / "filler").unlink()
        assert not syncer.up(**way).failed
        same(syncer.here, small / "t")
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def through_a_slow_line(new_agent, server, place, **kept):
    """6000 files, each with 1 kB of content and 1.5 kB of headers; how many
    bytes it took."""
    line = SlowRoad(server.port, 8 << 20)
    syncer = Syncer(new_agent(server.entry(port=line.port), env=LARGE), place)
    for n in range(6000):
        write(syncer.here / ("d%d/f%d" % (n % 60, n)), os.urandom(1024),
              mtime=1600000000 * NS + n * 1000 + 7)
    result = syncer.good("up")
    line.close()
    assert result["uploaded_files"] == 6000, result
    same(syncer.here, syncer.there, **kept)
    return line.carried


@pytest.mark.parametrize("host", ["gnu", "busybox"])
def test_a_slow_line(new_agent, new_sshd, tmp_path, host):
    """When it has shown that it is, all that follows is compressed."""
    path = HOSTS[host](tmp_path)
    server = new_sshd(env={} if path is None else {"PATH": path})
    carried = through_a_slow_line(new_agent, server, tmp_path, **KEPT[host])
    assert 6e6 < carried < 12e6, carried


def test_a_slow_line_without_gzip(new_agent, new_sshd, tmp_path):
    server = new_sshd(env={"PATH": programs(tmp_path / "bin", "gzip")})
    assert through_a_slow_line(new_agent, server, tmp_path) > 15e6


def test_a_slow_line_that_is_cut(new_agent, sshd, tmp_path):
    """What came before it was slow is there; of the rest nothing is half."""
    line = SlowRoad(sshd.port, 8 << 20)
    way = Road(line.port)
    syncer = Syncer(new_agent(sshd.entry(port=way.port), env=LARGE), tmp_path)
    for n in range(60):
        write(syncer.here / ("f%d" % n), os.urandom(400000))
    way.arm(Fault("cut", True, 16000000, 0, 0))
    assert syncer.up().failed and way.struck
    way.heal()
    there = list(syncer.there.glob("f*"))
    assert 0 < len(there) < 60
    for path in there:
        assert path.read_bytes() == (syncer.here / path.name).read_bytes()
    # What the host is still ending is swept by the next one.
    rsmcp.until("it is done, and nothing else is left", lambda: (
        not syncer.up().failed and not list(syncer.there.glob(".rsmcp-*"))))
    way.close()
    line.close()
    same(syncer.here, syncer.there)


@BOTH
def test_a_cut_leaves_whole_files(new_agent, sshd, tmp_path, direction):
    """The link dies again and again; old or new, never half; at last all."""
    way = Road(sshd.port)
    syncer = Syncer(new_agent(sshd.entry(port=way.port), env=LARGE), tmp_path)
    source, target = syncer.way(direction)
    target.mkdir(exist_ok=True)
    new, old = {}, {}
    for n in range(40):
        new[n] = os.urandom(400000)
        write(source / ("d%d/f" % n), new[n], mtime=n * NS)
        if n % 2:
            old[n] = write(target / ("d%d/f" % n), b"old%d" % n).read_bytes()
    for share in (0.01, 0.2, 0.5, 0.9, 0.99):
        there = [(target / ("d%d/f" % n)) for n in range(40)]
        left = sum(400000 for n, path in enumerate(there)
                   if not path.exists() or path.read_bytes() != new[n])
        way.arm(Fault("cut", direction == "up", int(left * share), 0, 0))
        rsmcp.until("it is cut", lambda: [getattr(syncer, direction)(),
                                          way.struck][1])
        way.heal()
        for n, path in enumerate(there):
            if path.exists():
                assert path.read_bytes() in (old.get(n), new[n]), path
    # What the host is still ending is swept by the next one.
    rsmcp.until("it is done, and nothing else is left", lambda: (
        not getattr(syncer, direction)().failed
        and not list(target.rglob(".rsmcp-*"))))
    way.close()
    same(source, target)


@BOTH
def test_a_big_file_goes_on_where_it_was(syncer, sshd, direction):
    source, target = syncer.way(direction)
    target.mkdir(exist_ok=True)
    write(source / "big", os.urandom(200 << 20))
    syncer.agent.good("true")
    call = syncer.agent.begin(
        None, tool="sync_local_to_remote" if direction == "up"
        else "sync_remote_to_local", local_path=str(syncer.here),
        remote_path=str(syncer.there), token="t")
    rsmcp.until("some pieces are there", lambda: any(
        path.read_text().count("\n") > 3
        for path in target.glob(".rsmcp-p*.done")))
    sshd.cut()
    result = syncer.agent.end(call)
    assert result.failed, result
    assert "same sync again goes on where it stopped" in str(result), result
    assert not (target / "big").exists()
    done = [path.read_text().count("\n") - 1
            for path in target.glob(".rsmcp-p*.done")]
    before = next(target.glob(".rsmcp-p" + "?" * 24)).stat().st_ino
    rsmcp.until("the login is tried again", lambda: not getattr(
        syncer, direction)().failed)
    assert (target / "big").stat().st_ino == before, "not the same part"
    same(source, target)
    assert done[0] > 2


@BOTH
def test_what_was_left_behind_goes_though_nothing_changed(any_host,
                                                          direction):
    source, target = any_host.way(direction)
    write(source / "a", "one")
    any_host.good(direction)
    if direction == "up":
        kernel = pathlib.Path("/proc/sys/kernel")
        host = "%s.%s.%s" % (
            os.uname().nodename,
            (kernel / "random/boot_id").read_text().split("-")[0],
            os.readlink("/proc/self/ns/pid")[5:-1])
        write(target / (".rsmcp-s0.4194305.%s/d/a" % host), "half")
        (target / (".rsmcp-s1.4194305.%s" % host)).mkdir()
        # Somebody else has that number by now.
        reused = target / (".rsmcp-s2.%d.%s" % (os.getpid(), host))
        reused.mkdir()
        os.utime(reused, (time.time() - 9 * 86400,) * 2)
    else:
        write(target / ".rsmcp-0123456789abcdef", "half")
    again = any_host.good(direction)
    assert again["skipped_files"] == 1, again
    assert [path.name for path in target.iterdir()] == ["a"]


@BOTH
def test_a_part_of_a_file_that_changed_goes(new_agent, sshd, tmp_path,
                                            direction):
    """It has some of both, and who finds it would go on with it."""
    line = SlowRoad(sshd.port, 16 << 20)
    syncer = Syncer(new_agent(sshd.entry(port=line.port), env=LARGE), tmp_path)
    source, target = syncer.way(direction)
    target.mkdir(exist_ok=True)
    big = write(source / "big", os.urandom(40 << 20))
    tool = "sync_local_to_remote" if direction == "up" \
        else "sync_remote_to_local"
    call = syncer.agent.begin(None, tool=tool, local_path=str(syncer.here),
                              remote_path=str(syncer.there), token="t")
    rsmcp.until("some of it is there", lambda: list(
        target.glob(".rsmcp-p*.done")))
    with open(big, "r+b") as file:
        file.write(b"new")
    result = syncer.agent.end(call)
    line.close()
    assert "changed" in str(result["problems"]), result
    assert list(target.iterdir()) == []


def test_a_part_stays_if_the_host_could_not_read_on(new_agent, new_sshd,
                                                     tmp_path):
    """The file is the same: what is there is not brought again."""
    path = programs(tmp_path / "bin", "dd")
    (path / "find").unlink()
    (path / "find").write_text('#!/bin/sh\nsleep 0.8\nexec %s "$@"\n'
                               % shutil.which("find"))
    (path / "find").chmod(0o755)    # which looks whether it has changed
    (path / "dd").write_text(
        "#!/bin/sh\ncase $* in *skip=0*) ;; *) [ -e %s ] || exit 1;; esac\n"
        "exec %s \"$@\"\n" % (tmp_path / "fine", shutil.which("dd")))
    (path / "dd").chmod(0o755)
    one = Syncer(new_agent(new_sshd(env={"PATH": path}).entry(), env=LARGE),
                 tmp_path)
    write(one.there / "big", os.urandom(40 << 20))
    result = one.down()
    assert "could not read" in str(result["problems"]), result
    [part] = [path for path in one.here.iterdir()
              if not path.name.endswith(".done")]
    before = part.stat().st_ino
    (tmp_path / "fine").touch()
    again = one.good("down")
    assert again["downloaded_files"] == 1, again
    assert (one.here / "big").stat().st_ino == before
    same(one.there, one.here)


@BOTH
def test_parts_of_other_versions_go(any_host, direction):
    """Also where a sync was cut again and again, and the file was changed."""
    source, target = any_host.way(direction)
    big = write(source / "big", os.urandom(17 << 20), mtime=NS)
    write(source / "other", os.urandom(17 << 20), mtime=2 * NS)
    target.mkdir(exist_ok=True)
    stay = [target / part_name(b"third", big)]
    go = [target / part_name(b"big", big)]
    os.utime(big, (5, 5))
    go.append(target / part_name(b"big", big))
    os.utime(big, (6, 6))
    for part in go + stay:
        write(part, b"part")
        write(target / (part.name + ".done"), piece_list([1 << 24]))
    any_host.good(direction)
    assert sorted(target.glob(".rsmcp-*")) == sorted(
        stay + [target / (part.name + ".done") for part in stay])
    assert (target / "big").read_bytes() == big.read_bytes()


def test_two_downloads_of_a_big_file(new_agent, sshd, tmp_path):
    """One brings it; the other does not write into what that put in place."""
    line = SlowRoad(sshd.port, 16 << 20)
    one, two = [new_agent(sshd.entry(port=port), env=LARGE)
                for port in (line.port, sshd.port)]
    big = write(tmp_path / "there/big", os.urandom(40 << 20))
    here = tmp_path / "here"

    def begin(agent):
        return agent.begin(None, tool="sync_remote_to_local", token="t",
                           local_path=str(here), remote_path=str(big.parent))

    first = begin(one)
    rsmcp.until("some of it is there", lambda: list(
        here.glob(".rsmcp-p*.done")))
    result = two.end(begin(two))
    assert "another sync" in result["problems"][0]["problem"], result
    result = one.end(first)
    line.close()
    assert result["downloaded_files"] == 1, result
    same(big.parent, here)


def part_name(path, like):
    """What the part of a big file is called."""
    def add(h, text):
        for byte in text:
            h = (h ^ byte) * 1099511628211 % (1 << 64)
        return h

    file = add(1469598103934665603, path)
    st = like.stat()
    return ".rsmcp-p%08x%016x" % (
        (file ^ file >> 32) % (1 << 32),
        add(file, b"%d.%d" % (st.st_size, st.st_mtime_ns)))


@needs_root
@BOTH
def test_a_part_needs_no_room_twice(syncer, tmp_path, direction):
    """Going on needs room for the rest alone."""
    source, _ = syncer.way(direction)
    big = write(source / "big", os.urandom(40 << 20))
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "none", small],
                   check=True)
    try:
        part = write(small / "t" / part_name(b"big", big),
                     big.read_bytes()[:32 << 20])
        write(small / "t" / (part.name + ".done"),
              piece_list([1 << 24, 1 << 24]))
        before = part.stat().st_ino
        where = {"up": "remote_path", "down": "local_path"}[direction]
        syncer.good(direction, **{where: str(small / "t")})
        assert (small / "t/big").stat().st_ino == before, "not the same part"
        same(source, small / "t", dir_times=False)
        # There is no room for another one.
        write(source / "more", os.urandom(17 << 20))
        result = getattr(syncer, direction)(**{where: str(small / "t")})
        assert result.failed and "free" in result["error"], result
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def piece_list(sizes):
    """What is in the list of a part with these pieces."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()
    return boot + "".join("%d %d\n" % (n << 24, size)
                          for n, size in enumerate(sizes))


@BOTH
def test_a_list_without_its_part_is_not_believed(syncer, direction):
    """As a run leaves it that is killed between two steps at its very end."""
    source, target = syncer.way(direction)
    big = write(source / "big", os.urandom(20 << 20))
    write(target / (part_name(b"big", big) + ".done"),
          piece_list([1 << 24, 4 << 20]))
    syncer.good(direction)
    same(source, target)
    assert (target / "big").read_bytes() == big.read_bytes()


def behind(directory, name, script, path=None):
    """A PATH in which this program is a script; it calls $REAL."""
    path = str(path or os.environ["PATH"])
    write(directory / name, "#!/bin/sh\nREAL=%s\n%s\n" % (
        shutil.which(name, path=path), script), 0o755)
    return "%s:%s" % (directory, path)


@pytest.mark.parametrize("host", EACH_HOST)
def test_another_run_was_done_with_the_part_first(new_agent, new_sshd,
                                                  tmp_path, host):
    """What it put in place is whole, and is not replaced by the rest."""
    path = behind(tmp_path / "wrap", "dd", """
$REAL "$@" || exit
for part in .rsmcp-p????????????????????????; do
    [ -s "$part" ] && [ ! -e ../was_here ] || continue
    cp -p ../here/big big && rm "$part" "$part.done" && : >../was_here
done""", HOSTS[host](tmp_path))
    syncer = Syncer(new_agent(new_sshd(env={"PATH": path}).entry(),
                              env=LARGE), tmp_path)
    write(syncer.here / "big", os.urandom(17 << 20))
    result = syncer.good("up")
    assert (tmp_path / "was_here").exists()
    assert (syncer.there / "big").read_bytes() == \
        (syncer.here / "big").read_bytes()
    assert "another sync" in result["problems"][0]["problem"], result
    assert result["uploaded_files"] == 0, result
    assert "problems" not in syncer.good("up")
    same(syncer.here, syncer.there, **KEPT[host] | {"dir_times": False})


@pytest.mark.parametrize("host", EACH_HOST)
def test_a_part_that_lacks_a_piece_is_not_put_in_place(new_agent, new_sshd,
                                                       tmp_path, host):
    """Another run has begun anew what this one takes for whole."""
    path = behind(tmp_path / "wrap", "tar", """
for list in ../.rsmcp-p*.done; do
    [ ! -f "$list" ] || { sed '$d' "$list" >list.new; cat list.new >"$list"; }
done
exec $REAL "$@" """, HOSTS[host](tmp_path))
    server = new_sshd(env={"PATH": path})
    syncer = Syncer(new_agent(server.entry(), env=LARGE), tmp_path)
    write(syncer.here / "big", os.urandom(17 << 20))
    write(syncer.there / "big", b"o" * (17 << 20), mtime=NS)
    before = describe(syncer.there)
    result = syncer.good("up")
    assert "another sync" in result["problems"][0]["problem"], result
    left = describe(syncer.there)
    assert {name: left[name] for name in before} == before
    (tmp_path / "wrap/tar").unlink()
    assert "problems" not in syncer.good("up")
    same(syncer.here, syncer.there, **KEPT[host] | {"dir_times": False})


@long
@BOTH
def test_a_hundred_thousand_files(syncer, direction):
    source, target = syncer.way(direction)
    for n in range(100_000):
        if n % 1000 == 0:
            (source / ("d%d/e" % (n // 1000))).mkdir(parents=True)
        (source / ("d%d/e/f%d" % (n // 1000, n))).write_bytes(b"%d" % n)
    name = "uploaded_files" if direction == "up" else "downloaded_files"
    arguments = {"tool": "sync_local_to_remote" if direction == "up"
                 else "sync_remote_to_local",
                 "local_path": str(syncer.here),
                 "remote_path": str(syncer.there)}
    first = syncer.agent.run(None, timeout=600, **arguments)
    assert not first.failed and first[name] == 100_000, first
    again = syncer.agent.run(None, timeout=600, **arguments)
    assert again[name] == 0 and again["skipped_files"] == 100_000, again
    same(source, target)
    status = pathlib.Path(
        "/proc/%d/status" % syncer.agent.server.pid).read_text()
    peak = int(status.split("VmHWM:")[1].split()[0])
    print("%d kB at most" % peak)
    assert peak < 30 * 1024 * SLOW


def test_progress(syncer):
    for n in range(30):
        write(syncer.here / ("f%d" % n), os.urandom(1000000))
    call = syncer.agent.begin(None, tool="sync_local_to_remote", token="p",
                              local_path=str(syncer.here),
                              remote_path=str(syncer.there))
    assert not syncer.agent.end(call).failed
    seen = [params["progress"] for _, params in syncer.agent.progress["p"]]
    assert seen == sorted(seen) and len(seen) >= 1
    for _, told in syncer.agent.progress["p"]:
        if "total" in told:
            assert told["total"] == 30 * 1000000 + 30, told
            assert re.match(r"\w+, \d+ of 30 files, [\d.]+ of 30\.0 MB",
                            told["message"]), told
