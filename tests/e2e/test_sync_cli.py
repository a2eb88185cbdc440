"""`remote-sandbox-mcp sync`: by hand, with a bar or with lines."""

import os
import pathlib
import pty
import re
import subprocess
import threading

import pytest

import rsmcp
import sshd as ssh_servers
from road import Fault, Road

pytestmark = pytest.mark.skipif(
    not ssh_servers.SSHD, reason="there is no sshd")


@pytest.fixture
def sync(home, sshd):
    def run(*args):
        return home.command("sync", *[str(arg) for arg in args],
                            entries=[sshd.entry()])
    return run


@pytest.fixture
def here(tmp_path):
    path = tmp_path / "here"
    (path / "sub").mkdir(parents=True)
    (path / "a").write_text("a" * 1000)
    (path / "sub" / "b").write_text("b")
    return path


def contents(path):
    return {str(p.relative_to(path)): p.read_text()
            for p in pathlib.Path(path).rglob("*") if p.is_file()}


def test_there_and_back(sync, here, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    done = sync(here, "box:%s" % there)
    assert done.returncode == 0, done
    assert contents(there) == contents(here)
    assert re.search(r"^2 files \(1\.0 kB\) and 1 directory sent, "
                     r"0 unchanged, 0 deleted, in 0:0\d$", done.stdout, re.M)
    assert "\x1b" not in done.stdout + done.stderr
    done = sync("box:%s" % there, back)
    assert done.returncode == 0 and "2 files" in done.stdout, done
    assert contents(back) == contents(here)
    done = sync(here, "box:%s" % there)
    assert "0 files" in done.stdout and "2 unchanged" in done.stdout
    (here / "sub" / "b").write_text("other")
    done = sync(here, "box:%s" % there)
    assert re.search(r"^1 file \(5 B\) and ", done.stdout, re.M), done


def test_delete_and_dry_run(sync, here, tmp_path):
    there = tmp_path / "there"
    sync(here, "box:%s" % there)
    (here / "a").unlink()
    done = sync("--delete", "--dry-run", here, "box:%s" % there)
    assert done.returncode == 0 and "would be" in done.stdout
    assert (there / "a").exists()
    assert sync(here, "box:%s" % there).returncode == 0
    assert (there / "a").exists()
    done = sync("--delete", here, "box:%s" % there)
    assert "1 deleted" in done.stdout, done
    assert not (there / "a").exists()
    # Everything: only if that is meant.
    (here / "sub" / "b").unlink()
    (here / "sub").rmdir()
    done = sync("--delete", here, "box:%s" % there)
    assert done.returncode == 1 and (there / "sub" / "b").exists(), done
    done = sync("--delete", "--yes", here, "box:%s" % there)
    assert done.returncode == 0 and not (there / "sub").exists(), done


def test_excludes(sync, here, tmp_path):
    there = tmp_path / "there"
    patterns = tmp_path / "patterns"
    patterns.write_text("# mine\nb\n")
    (here / "c").write_text("c")
    (here / "d").write_text("d")
    (here / ".gitignore").write_text("d\n")
    done = sync("--exclude", "a", "--exclude-from", patterns, "--gitignore",
                "--checksum", here, "box:%s" % there)
    assert done.returncode == 0, done
    assert set(contents(there)) == {".gitignore", "c"}


@pytest.mark.parametrize("args", [
    (), ("a",), ("a", "b"), ("box:a", "box:b"), ("a", "box:b", "c"),
    ("./a:b", "/c:d"), ("--no", "a", "box:b"), (":a", "b")])
def test_wrong_usage(sync, args):
    done = sync(*args)
    assert done.returncode == 2 and "usage:" in done.stderr
    assert not done.stdout


def test_what_fails_is_said(sync, here, tmp_path):
    done = sync(tmp_path / "none", "box:/tmp/x")
    assert done.returncode == 1 and "none" in done.stderr and not done.stdout
    done = sync(here, "nobody:/tmp/x")
    assert done.returncode == 1 and "nobody" in done.stderr


def test_errors_are_in_the_words_of_the_command_line(sync, here, tmp_path):
    """And paths are what they are, whatever they are called."""
    there = tmp_path / "delete_extras"
    (there / "a").mkdir(parents=True)
    (there / "a" / "local_path").write_text("x")
    done = sync("--delete", here, "box:%s" % there)
    assert done.returncode == 1
    assert "--delete would delete 1 files" in done.stderr
    assert "Look at it with --dry-run, and pass --yes if" in done.stderr
    none = tmp_path / "dry_run: true"
    done = sync(none, "box:/tmp/x")
    assert done.stderr.startswith("remote-sandbox-mcp: '%s': " % none), done
    done = sync("box:%s" % none, here)
    assert "mcp: '%s' does not exist on box\n" % none in done.stderr, done
    done = sync("--delete", here / "a", "box:%s" % there)
    assert "--delete needs a directory as the local path" in done.stderr
    done = sync(here, "box:%s" % there)
    assert "replaced only with --delete\n" in done.stderr, done
    assert "extras" not in done.stderr.replace(str(there), "")


def test_special_files_are_left_out_and_no_failure(sync, here, tmp_path):
    os.mkfifo(here / "fifo")
    there = "box:%s" % (tmp_path / "there")
    done = sync(here, there)
    assert done.returncode == 0, done
    assert done.stderr.endswith(
        "1 left out:\n  fifo: a device, socket or pipe; left out\n"), done
    (tmp_path / "there" / "a").unlink()
    (tmp_path / "there" / "a" / "b").mkdir(parents=True)
    done = sync(here, there)
    assert done.returncode == 1, done
    assert "2 could not be synced:\n" in done.stderr, done


def test_what_a_call_says_meanwhile_is_true(home, sshd, here, tmp_path):
    """How many files and bytes, each line once; and nothing is complete that
    was not done."""
    (here / "c").write_bytes(os.urandom(2_500_000))
    paths = {"local_path": str(here), "remote_path": str(tmp_path / "there")}

    def said(env=None, **more):
        result = home.call("sync_local_to_remote", [sshd.entry()], env=env,
                           **paths, **more)
        assert not result.failed, result
        lines = result.stderr.splitlines()
        assert len(lines) == len(set(lines)), lines
        return lines

    lines = said(dry_run=True) + said(
        {"REMOTE_SANDBOX_INLINE_SYNC_MAX_FILES": "2"})
    assert not [line for line in lines if "complete" in line
                or " of " in line], lines
    paths["remote_path"] += "2"
    lines = said()
    assert lines[-1] == "complete, 3 of 3 files, 2.5 of 2.5 MB", lines
    for line in lines:
        assert re.fullmatch(
            r"\d+: scanning|\w+(, \d of 3 files, \d\.\d of 2\.5 MB)?(: .+)?",
            line), line


def test_a_sync_that_was_cut_says_how_to_go_on(home, sshd, here, tmp_path):
    """And that is so."""
    way = Road(sshd.port)
    with open(here / "big", "wb") as file:
        file.write(os.urandom(64 << 20))
    args = ("sync", str(here), "box:%s" % (tmp_path / "there"))
    entries = [sshd.entry(port=way.port)]
    way.arm(Fault("cut", True, 40 << 20, 0, 0))
    done = home.command(*args, entries=entries)
    assert done.returncode == 1 and way.struck, done
    assert "; the same sync again goes on where it stopped\n" in done.stderr
    way.heal()
    before = next((tmp_path / "there").glob(".rsmcp-p" + "?" * 24)).stat()
    done = home.command(*args, entries=entries)
    assert done.returncode == 0, done
    after = (tmp_path / "there" / "big").stat()
    assert after.st_ino == before.st_ino
    way.close()


def test_a_bar_on_a_terminal(home, sshd, tmp_path, here):
    """Drawn on one line, and gone at the end."""
    with open(here / "big\x1b[31m", "wb") as file:
        file.write(os.urandom(30 << 20))
    master, slave = pty.openpty()
    said = bytearray()

    def collect():
        try:
            while data := os.read(master, 4096):
                said.extend(data)
        except OSError:
            pass

    reader = threading.Thread(target=collect)
    reader.start()
    done = subprocess.run(
        [os.path.abspath(rsmcp.SERVER), "sync", here,
         "box:%s" % (tmp_path / "there")], stderr=slave,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=home.home,
        env=rsmcp.environment(home.home, **home.env([sshd.entry()])),
        timeout=3 * rsmcp.PATIENCE_S)
    os.close(slave)
    reader.join()
    os.close(master)
    assert done.returncode == 0, said
    assert re.search(rb"\[#*\.*\] +\d+%  \d+/3 files  ", said), said
    assert b"\n" not in said and b"\x1b[31m" not in said
    assert said.endswith(b"\r\x1b[K")
