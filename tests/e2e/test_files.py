"""Looking at the files of a sandbox, against real ssh servers."""

import base64
import contextlib
import json
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile
import threading
import time

import pytest

import rsmcp
import sshd as ssh_servers

pytestmark = [
    pytest.mark.skipif(not ssh_servers.SSHD, reason="there is no sshd"),
    rsmcp.needs_proc,
]
needs_root = pytest.mark.skipif(
    not ssh_servers.ROOT, reason="only root can make users")
needs_busybox = pytest.mark.skipif(
    not shutil.which("busybox"), reason="there is no busybox")

ANSWER = 40000      # characters, unless more is asked for
ODD_NAMES = ["a b", "it's", "new\nline", "-n", "--help", "tab\t", "$HOME", "*",
             "`id`", "\\", '"', "grün ☃", "~", "~x", "#", "a;b", "\x01\x1b[31m",
             "!", "x: Permission denied", " lead", "trail ", "%s%n", "[", "]",
             "\r", "=", "(", "&", "\u2028"]


@pytest.fixture
def tree():
    """A directory on the host that everybody can read."""
    path = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="f"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def busybox_programs():
    """A directory with nothing but what busybox has."""
    place = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="b"))
    place.chmod(0o755)
    subprocess.run([shutil.which("busybox"), "--install", "-s", place],
                   check=True)
    yield place
    shutil.rmtree(place)


HOSTS = ["gnu", pytest.param("busybox", marks=[needs_root, needs_busybox]),
         pytest.param("user", marks=needs_root)]


@pytest.fixture(params=HOSTS)
def host(request, new_agent):
    """gnu: bash and all programs, as who runs the tests; busybox: a user
    whose host has nothing else; user: an ordinary one."""
    if request.param == "gnu":
        return new_agent(request.getfixturevalue("sshd").entry())
    account = request.getfixturevalue("account")
    if request.param == "user":
        return new_agent(request.getfixturevalue("sshd").entry(
            user=account.name))
    programs = request.getfixturevalue("busybox_programs")
    server = request.getfixturevalue("new_sshd")("SetEnv PATH=%s" % programs)
    return new_agent(server.entry(user=account.name))


def read(agent, path, **arguments):
    result = agent.run(None, tool="read_remote_file", remote_path=str(path),
                       **arguments)
    assert not result.failed, result
    return result


def content(result):
    """The bytes that it is about; what it says of them is true."""
    data = result["content"].encode() if result["encoding"] == "utf-8" \
        else base64.b64decode(result["content"], validate=True)
    assert result["size"] == len(data)
    return data


def refusal(agent, path, tool="read_remote_file", **arguments):
    """The error; it names the path and where."""
    result = agent.run(None, tool=tool, remote_path=str(path), **arguments)
    assert result.failed, result
    assert str(path) in result["error"] and "box" in result["error"]
    return result["error"]


# --- Reading ----------------------------------------------------------------

def test_a_text(host, tree):
    (tree / "t").write_text("one\ntwo\n")
    result = read(host, tree / "t")
    result.pop("host_key_added", None)
    assert result == {"size": 8, "file_size": 8, "truncated": False,
                      "encoding": "utf-8", "content": "one\ntwo\n",
                      "sandbox": "box"}
    named = read(host, tree / "t", sandbox_name="box")
    assert "sandbox" not in named


def test_an_empty_file(host, tree):
    (tree / "e").touch()
    for arguments in ({}, {"offset": 9}, {"tail_lines": 3},
                      {"start_line": 2}, {"line_count": 2}):
        result = read(host, tree / "e", **arguments)
        assert (result["content"], result["size"], result["truncated"]) == \
            ("", 0, False)
        assert result["encoding"] == "utf-8"


def test_a_new_host_key_is_told_once(home, sshd, new_agent, tree):
    (tree / "t").write_text("x")
    agent = new_agent(sshd.entry())
    assert "host_key_added" in read(agent, tree / "t")
    assert "host_key_added" not in read(agent, tree / "t")


def test_parts(host, tree):
    data = b"".join(b"%07d\n" % n for n in range(10000))
    (tree / "p").write_bytes(data)
    for offset, most in ((0, 8), (1, 8), (4095, 2), (4096, 4096), (8000, 1),
                         (79990, 50), (79999, 1), (80000, 5), (99999, 5)):
        result = read(host, tree / "p", offset=offset, max_bytes=most)
        assert content(result) == data[offset:offset + most], offset
        assert result["truncated"] == (offset + most < len(data))
        assert result.get("next_offset") == \
            (offset + most if result["truncated"] else None)
        assert result["file_size"] == len(data)


def test_whoever_follows_next_offset_gets_the_whole(host, tree):
    """In pieces, of text and of what is none, with no character cut."""
    text = "".join("%d grün ☃ 𝄞\n" % n for n in range(6000))
    noise = bytes(range(256)) * 400
    for name, data in (("text", text.encode()), ("noise", noise)):
        (tree / name).write_bytes(data)
        for most in (None, 30001):
            got, offset, pieces = b"", 0, 0
            while offset is not None:
                result = read(host, tree / name, offset=offset,
                              **({"max_bytes": most} if most else {}))
                assert result["encoding"] == \
                    ("utf-8" if name == "text" else "base64")
                assert "\ufffd" not in result["content"]
                got += content(result)
                offset = result.get("next_offset")
                pieces += 1
            assert got == data
            assert pieces > 2


def test_the_answer_is_no_longer_than_it_says(host, tree):
    for name, data in (("lines", b"\n" * 100000), ("esc", b"\x1b" * 100000),
                       ("nul", bytes(100000)), ("plain", b"x" * 100000),
                       ("snow", "☃".encode() * 100000)):
        (tree / name).write_bytes(data)
        for arguments in ({}, {"tail_lines": 10 ** 6}, {"start_line": 1}):
            request = host.begin(None, tool="read_remote_file",
                                 remote_path=str(tree / name), **arguments)
            result = host.end(request)
            reply = host.results[request][1]["result"]
            assert len(reply["content"][0]["text"]) <= ANSWER
            assert result["truncated"] and result["size"] > 5000
            assert content(result) in data
        # More only if it is asked for.
        result = read(host, tree / name, max_bytes=200000)
        assert result["size"] == min(len(data), 200000 // 3 * 3
                                     if name == "snow" else len(data))


def test_as_much_as_a_message_can_hold(agent, tree):
    for name, data in (("lines", b"\n" * 4000000), ("nul", bytes(4000000)),
                       ("quotes", b'"' * 4000000), ("plain", b"x" * 4000000)):
        (tree / name).write_bytes(data)
        result = read(agent, tree / name, max_bytes=3000000)
        assert result["truncated"] and content(result) in data
        assert 10 ** 6 < result["size"] == result["next_offset"]


def test_a_character_is_never_cut(host, tree):
    (tree / "u").write_text("☃" * 3000)
    for offset in (0, 3, 4, 5, 4095, 4096, 4097, 8998):
        for most in (1, 2, 3, 4, 5, 100):
            result = read(host, tree / "u", offset=offset, max_bytes=most)
            assert result["encoding"] == "utf-8"
            assert set(result["content"]) == {"☃"}
            # It begins with the one that the offset is in.
            assert result.get("offset", offset) == offset // 3 * 3
            assert result["size"] == max(most // 3, 1) * 3 or \
                not result["truncated"]


def test_binary(host, tree):
    cases = {"nul": b"a\0b", "latin": "grün\n".encode("latin-1"),
             "cut": "☃".encode()[:2], "all": bytes(range(256)) * 40,
             "utf16": "hi\n".encode("utf-16")}
    for name, data in cases.items():
        (tree / name).write_bytes(data)
        result = read(host, tree / name)
        assert result["encoding"] == "base64"
        assert content(result) == data and not result["truncated"]


def test_lines(host, tree):
    lines = ["line %d\n" % n for n in range(1, 5001)]
    (tree / "l").write_text("".join(lines))

    def check(first, count, **arguments):
        result = read(host, tree / "l", **arguments)
        wanted = lines[first - 1:first - 1 + count]
        assert result["content"] == "".join(wanted)
        assert result["start_line"] == first
        assert result["line_count"] == len(wanted)
        assert result["offset"] == len("".join(lines[:first - 1]))
        return result

    assert not check(1, 3, line_count=3)["truncated"]
    assert not check(700, 2, start_line=700, line_count=2)["truncated"]
    result = check(4990, 11, start_line=4990)
    assert result["total_lines"] == 5000 and not result["truncated"]
    assert check(5000, 1, start_line=5000, line_count=5)["total_lines"] == 5000
    assert "total_lines" not in check(5001, 0, start_line=5001)
    # What does not fit is left out by lines.
    result = read(host, tree / "l", start_line=100, max_bytes=25)
    assert result["content"] == "line 100\nline 101\n"
    assert result["truncated"]
    assert read(host, tree / "l", offset=result["next_offset"],
                max_bytes=9)["content"] == "line 102\n"


def test_last_lines(host, tree):
    lines = ["line %d\n" % n for n in range(1, 50001)]
    (tree / "l").write_text("".join(lines) + "the end")
    size = (tree / "l").stat().st_size
    for count in (1, 2, 100):
        result = read(host, tree / "l", tail_lines=count)
        assert result["content"] == \
            "".join(lines[len(lines) - count + 1:]) + "the end"
        assert result["line_count"] == count and not result["truncated"]
        assert result["next_offset"] == size == result["file_size"]
        assert result["offset"] == size - result["size"]
        assert "start_line" not in result
    result = read(host, tree / "l", tail_lines=20000)
    assert result["truncated"] and result["content"].startswith("line ")
    assert result["content"].endswith("\nline 50000\nthe end")
    (tree / "s").write_text("a\nb\nc\n")
    result = read(host, tree / "s", tail_lines=2)
    assert result["content"] == "b\nc\n"
    assert (result["start_line"], result["total_lines"]) == (2, 3)
    assert read(host, tree / "s", tail_lines=9)["content"] == "a\nb\nc\n"


def test_a_line_longer_than_the_answer(host, tree):
    (tree / "l").write_text("first\n" + "x" * 200000 + "\nlast\n")
    result = read(host, tree / "l", start_line=2, line_count=1)
    assert result["truncated"] and set(result["content"]) == {"x"}
    result = read(host, tree / "l", offset=result["next_offset"])
    assert set(result["content"]) == {"x"}
    assert read(host, tree / "l", tail_lines=1)["content"] == "last\n"
    result = read(host, tree / "l", tail_lines=2)
    assert result["content"] == "last\n" and result["truncated"]
    result = read(host, tree / "l", start_line=2, line_count=1,
                  max_bytes=300000)
    assert result["size"] == 200001 and not result["truncated"]


def test_one_of_three_ways(host, tree):
    (tree / "t").write_text("x\n")
    for arguments in ({"offset": 1, "tail_lines": 1},
                      {"offset": 1, "start_line": 1},
                      {"offset": 1, "line_count": 1},
                      {"tail_lines": 1, "line_count": 1},
                      {"tail_lines": 1, "start_line": 1, "line_count": 1}):
        result = host.run(None, tool="read_remote_file",
                          remote_path=str(tree / "t"), **arguments)
        assert result.failed
        assert "only one of" in result["error"]
    # 0 is what some clients send for "not given".
    assert read(host, tree / "t", offset=0, tail_lines=0, start_line=0,
                line_count=0)["content"] == "x\n"


@pytest.mark.parametrize("arguments", [
    {"remote_path": ""}, {"remote_path": "  \n"}, {},
    {"remote_path": "x", "max_bytes": 0},
    {"remote_path": "x", "max_bytes": 10 ** 9},
    {"remote_path": "x", "offset": -1},
    {"remote_path": "x", "tail_lines": -1},
    {"remote_path": "x", "start_line": -1},
    {"remote_path": "x", "offset": 2 ** 60},
    {"remote_path": "a\0b"}])
def test_wrong_arguments(agent, arguments):
    result = agent.run(None, tool="read_remote_file", **arguments)
    assert result.failed
    assert any(name in result["error"] for name in
               list(arguments) + ["remote_path"])


def test_any_name(host, tree):
    for name in ODD_NAMES:
        (tree / name).write_text(name)
        assert read(host, tree / name)["content"] == name
    refusal(host, tree / ("n" * 256))


@needs_root
def test_relative_and_home(new_agent, sshd, account):
    agent = new_agent(sshd.entry(user=account.name))
    (account.home / "sub").mkdir()
    (account.home / "sub" / "f").write_text("hi")
    for path in ("sub/f", "./sub/f", "~/sub/f", "sub/../sub/f", "~//sub/f",
                 "~/./sub/f"):
        assert read(agent, path)["content"] == "hi"
    (account.home / "-n").write_text("dash")
    assert read(agent, "-n")["content"] == "dash"
    (account.home / "~x").write_text("tilde")
    assert read(agent, "~x")["content"] == "tilde"
    assert "directory" in refusal(agent, "~")
    assert "No such file" in refusal(agent, "~root/x")


def test_relative_to_the_workdir(new_agent, sshd, tree):
    (tree / "f").write_text("there")
    agent = new_agent(sshd.entry(workdir=str(tree)))
    assert read(agent, "f")["content"] == "there"
    assert agent.good("cat f") == "there"
    assert "in the workdir" in refusal(agent, "g")
    agent = new_agent(sshd.entry(workdir="/nowhere"))
    assert read(agent, tree / "f")["content"] == "there"
    assert "/nowhere" in refusal(agent, "f")


def test_what_is_no_file(host, tree):
    os.mkfifo(tree / "fifo")
    (tree / "loop").symlink_to("loop")
    (tree / "dangling").symlink_to("nothing")
    (tree / "good").symlink_to("t")
    (tree / "t").write_text("x")
    assert "list_remote_files" in refusal(host, tree)
    assert "fifo" in refusal(host, tree / "fifo")
    assert "device" in refusal(host, "/dev/zero")
    assert "No such file" in refusal(host, tree / "none")
    assert "No such file" in refusal(host, tree / "dangling")
    assert "symbolic links" in refusal(host, tree / "loop")
    assert "Not a directory" in refusal(host, tree / "t" / "x")
    assert read(host, tree / "good")["content"] == "x"


@needs_root
def test_what_may_not_be_read(new_agent, sshd, account, tree):
    agent = new_agent(sshd.entry(user=account.name))
    for name, text in (("secret", "x"), ("empty", "")):
        (tree / name).write_text(text)
        (tree / name).chmod(0o600)
        for arguments in ({}, {"offset": 9}, {"tail_lines": 1},
                          {"start_line": 3}):
            assert "Permission denied" in \
                refusal(agent, tree / name, **arguments)
    (tree / "closed").mkdir(mode=0o700)
    assert "Permission denied" in refusal(agent, tree / "closed" / "x")


def test_files_that_are_made_while_they_are_read(host):
    result = read(host, "/proc/uptime")
    assert result["content"].count(" ") == 1 and result["size"] > 3
    assert not result["truncated"]
    assert result["file_size"] == result["size"]
    for path in ("/proc/self/status", "/proc/cpuinfo", "/proc/mounts"):
        lines = pathlib.Path(path).read_text().count("\n")
        result = read(host, path, max_bytes=1000000)
        assert abs(result["content"].count("\n") - lines) < 10
        result = read(host, path, start_line=2, line_count=1)
        assert result["content"].count("\n") == 1
        assert read(host, path, tail_lines=1)["line_count"] == 1
    result = read(host, "/proc/self/status", max_bytes=10)
    assert result["truncated"] and result["file_size"] is None
    result = read(host, "/proc/self/status", offset=6, max_bytes=100)
    assert result["content"][0] not in "Name:"


@pytest.mark.long
@needs_root
def test_a_file_that_waits_for_news(agent):
    """It is given up, and nothing of it runs on."""
    assert "no end of it" in refusal(agent, "/proc/kmsg", tail_lines=1,
                                     timeout=400 * rsmcp.SLOW)


def test_a_huge_file_costs_what_is_asked_for(host, tree):
    with open(tree / "big", "wb") as file:
        file.truncate(1 << 40)
        file.seek(5 << 30)
        file.write(b"here\n")
        file.seek((1 << 40) - 11)
        file.write(b"\n" b"the last\n\n")
    begun = time.monotonic()
    result = read(host, tree / "big", offset=5 << 30, max_bytes=5)
    assert result["content"] == "here\n" and result["truncated"]
    assert result["file_size"] == 1 << 40
    assert result["next_offset"] == (5 << 30) + 5
    result = read(host, tree / "big", tail_lines=2)
    assert result["content"] == "the last\n\n"
    assert content(read(host, tree / "big")) == bytes(29250)
    assert read(host, tree / "big", offset=1 << 41)["content"] == ""
    assert time.monotonic() - begun < 10 * rsmcp.SLOW


def test_a_file_that_grows(host, tree):
    """What is read is what was there, in order and without a gap."""
    path, stop = tree / "log", threading.Event()
    path.touch()

    def write():
        with open(path, "w") as file:
            for n in range(10 ** 7):
                print("line %d" % n, file=file, flush=True)
                if stop.is_set():
                    return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        offset, seen = 0, ""
        for _ in range(10):
            result = read(host, path, offset=offset, max_bytes=5000)
            assert result["file_size"] >= offset + result["size"]
            seen += result["content"]
            offset += result["size"]
            tail = read(host, path, tail_lines=3)
            assert tail["line_count"] <= 3
            assert tail["file_size"] >= tail["next_offset"]
    finally:
        stop.set()
        writer.join()
    assert path.read_text().startswith(seen) and seen


def test_one_round_trip(agent, tree, sshd):
    """No channel is opened for a read, and no login made."""
    (tree / "t").write_text("x")
    read(agent, tree / "t")
    logins = sshd.logins_ever()
    sessions = sshd.count("Starting session")
    for _ in range(20):
        read(agent, tree / "t")
    assert sshd.logins_ever() == logins
    assert sshd.count("Starting session") <= sessions + 2


def test_many_at_once(agent, tree):
    for n in range(20):
        (tree / str(n)).write_text(str(n) * 1000)
    begun = [agent.begin(None, tool="read_remote_file",
                         remote_path=str(tree / str(n))) for n in range(20)]
    for n, request in enumerate(begun):
        assert agent.end(request)["content"] == str(n) * 1000


def test_by_hand(home, sshd, tree):
    (tree / "t").write_text("by hand\n")
    result = home.call("read_remote_file", [sshd.entry()],
                       remote_path=str(tree / "t"))
    assert result["content"] == "by hand\n"
    assert json.loads(result.stdout) == result


# --- Listing ----------------------------------------------------------------

def listing(agent, path, **arguments):
    result = agent.run(None, tool="list_remote_files", remote_path=str(path),
                       **arguments)
    assert not result.failed, result
    return result


def names(result, top):
    return [entry["path"][len(str(top)) + 1:] for entry in result["entries"]]


def test_a_directory(host, tree):
    (tree / "b").write_text("12345")
    (tree / "b").chmod(0o640)
    os.utime(tree / "b", (1700000000, 1700000000))
    (tree / "a").mkdir(mode=0o750)
    (tree / "a" / "below").touch()
    (tree / "c").symlink_to("b")
    os.mkfifo(tree / "d", 0o600)
    result = listing(host, tree)
    result.pop("host_key_added", None)
    a, b, c, d = result.pop("entries")
    assert result == {"truncated": False, "sandbox": "box"}
    assert b == {"path": str(tree / "b"), "is_dir": False, "size": 5,
                 "mtime": 1700000000, "mode": "0640", "type": "file"}
    assert (a["path"], a["is_dir"], a["mode"], a["type"]) == \
        (str(tree / "a"), True, "0750", "dir")
    assert (c["path"], c["is_dir"], c["type"], c["target"]) == \
        (str(tree / "c"), False, "link", "b")
    assert (d["path"], d["is_dir"], d["type"]) == \
        (str(tree / "d"), False, "other")
    assert "sandbox" not in listing(host, tree, sandbox_name="box")


def test_an_empty_directory(host, tree):
    for recursive in (False, True):
        result = listing(host, tree, recursive=recursive)
        assert result["entries"] == [] and not result["truncated"]


def test_a_tree(host, tree):
    """A directory before what is in it, names in order, no link followed."""
    deep = tree
    for n in range(60):
        deep = deep / ("d%d" % n)
        deep.mkdir()
    (deep / "end").touch()
    for name in ("d0-", "d0.x", "e/1", "e/10", "e/2"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).touch()
    (tree / "loop").symlink_to(".")
    (tree / "e" / "up").symlink_to("..")
    got = names(listing(host, tree, recursive=True), tree)
    chain = ["/".join("d%d" % k for k in range(n + 1)) for n in range(60)]
    assert got == chain + [chain[-1] + "/end", "d0-", "d0.x", "e", "e/1",
                           "e/10", "e/2", "e/up", "loop"]
    assert names(listing(host, tree), tree) == \
        ["d0", "d0-", "d0.x", "e", "loop"]


def test_truncated_only_if_something_was_left_out(host, tree):
    for n in range(10):
        (tree / str(n)).touch()
    for most, truncated in ((9, True), (10, False), (11, False), (1, True)):
        result = listing(host, tree, max_entries=most)
        assert names(result, tree) == [str(n) for n in range(min(most, 10))]
        assert result["truncated"] == truncated


def test_many_entries(host, tree):
    """The first ones, in order, of however many."""
    for n in range(21000):
        os.close(os.open(tree / ("%05d" % n), os.O_CREAT | os.O_WRONLY))
    begun = time.monotonic()
    result = listing(host, tree)
    assert time.monotonic() - begun < 10 * rsmcp.SLOW
    assert names(result, tree) == ["%05d" % n for n in range(200)]
    assert result["truncated"]
    # As many as a message can hold, if it is asked for.
    result = listing(host, tree, max_entries=20000)
    assert 10000 < len(result["entries"]) <= 20000 and result["truncated"]


def test_the_list_is_no_longer_than_it_says(host, tree):
    long = tree / ("☃" * 80) / ('"' * 200)
    long.mkdir(parents=True)
    for n in range(200):
        (long / ("%03d" % n)).symlink_to("x" * 100)
    request = host.begin(None, tool="list_remote_files",
                         remote_path=str(long))
    result = host.end(request)
    text = host.results[request][1]["result"]["content"][0]["text"]
    assert 30000 < len(text) <= ANSWER
    assert result["truncated"] and len(result["entries"]) > 30
    result = listing(host, long, max_entries=201)
    assert len(result["entries"]) == 200 and not result["truncated"]


def test_any_name_is_listed_and_can_be_read(host, tree):
    for name in ODD_NAMES:
        (tree / name).write_text(name)
    result = listing(host, tree)
    got = names(result, tree)
    missing = set(ODD_NAMES) - set(got)
    assert not set(got) - set(ODD_NAMES)
    if missing:     # not every host can tell these
        assert missing == {"new\nline"}
        assert result["problem_count"] == 1
        assert result["problems"][0]["path"] == str(tree / "new\nline")
    for entry in result["entries"]:
        assert read(host, entry["path"])["content"] == \
            os.path.basename(entry["path"])


def test_names_that_are_not_utf8(host, tree):
    raw = b"gr\xfcn \\ it's \xe2\x98\x83\xff"
    with open(os.fsencode(tree) + b"/" + raw, "w") as file:
        file.write("found")
    os.symlink(b"\xfe", os.fsencode(tree) + b"/link")
    (tree / "plain\\x").touch()
    first, second, third = listing(host, tree)["entries"]
    assert first["escaped"] and second["escaped"]
    assert first["path"] == str(tree) + r"/gr\xfcn \\ it\'s ☃\xff"
    assert second["target"] == r"\xfe"
    assert third["path"] == str(tree / "plain\\x")
    assert "escaped" not in third
    result = host.run("cat $'%s'" % first["path"])
    if "shell" not in result:       # in bash, as it says
        assert result["stdout"] == "found"


@needs_root
def test_paths_are_joined_as_they_were_given(new_agent, sshd, account):
    agent = new_agent(sshd.entry(user=account.name))
    top = account.home / "list"
    (top / "sub").mkdir(parents=True)
    (top / "sub" / "f").touch()
    for given, path in (("list/sub", "list/sub/f"), ("list/sub/",
                        "list/sub/f"), ("./list//sub", "list/sub/f"),
                        ("~/list/sub", str(top / "sub" / "f")),
                        ("list/sub/../sub", "list/sub/../sub/f"),
                        (str(top / "sub"), str(top / "sub" / "f"))):
        [entry] = listing(agent, given)["entries"]
        assert entry["path"] == path, given
        read(agent, entry["path"])
    here = agent.run(None, tool="list_remote_files")
    assert "./list" in [entry["path"] for entry in here["entries"]]
    assert listing(agent, "")["entries"] == here["entries"]
    home = [entry["path"] for entry in listing(agent, "~")["entries"]]
    assert str(top) in home
    assert "/etc" in [entry["path"] for entry in
                      listing(agent, "/")["entries"]]


def test_a_list_of_the_workdir(new_agent, sshd, tree):
    (tree / "f").touch()
    agent = new_agent(sshd.entry(workdir=str(tree)))
    assert [e["path"] for e in listing(agent, ".")["entries"]] == ["./f"]


def test_a_file_gives_its_own_entry(host, tree):
    (tree / "f").write_text("123")
    (tree / "f").chmod(0o644)
    (tree / "l").symlink_to("f")
    for name in ("f", "l"):
        result = listing(host, tree / name)
        assert result["is_file"] and not result["truncated"]
        [entry] = result["entries"]
        assert (entry["path"], entry["size"], entry["type"],
                entry["mode"]) == (str(tree / name), 3, "file", "0644")


def test_what_cannot_be_listed(host, tree):
    os.mkfifo(tree / "fifo")
    (tree / "loop").symlink_to("loop")
    (tree / "dangling").symlink_to("nothing")
    tool = "list_remote_files"
    assert "there is no" in refusal(host, tree / "none", tool)
    assert "no directory" in refusal(host, tree / "fifo", tool)
    assert "leads nowhere" in refusal(host, tree / "loop", tool)
    assert "leads nowhere" in refusal(host, tree / "dangling", tool)
    (tree / "dir").mkdir()
    (tree / "link").symlink_to("dir")
    assert listing(host, tree / "link")["entries"] == []


@needs_root
def test_directories_that_may_not_be_read(new_agent, sshd, account, tree):
    agent = new_agent(sshd.entry(user=account.name))
    (tree / "closed").mkdir(mode=0o700)
    (tree / "closed" / "x").touch()
    (tree / "open").touch()
    assert "problems" not in listing(agent, tree)
    result = agent.run(None, tool="list_remote_files",
                       remote_path=str(tree / "closed"))
    assert result.failed and "permission denied" in result["error"]
    result = listing(agent, tree, recursive=True)
    assert names(result, tree) == ["closed", "open"]
    assert result["problem_count"] == 1
    assert result["problems"][0]["path"] == str(tree / "closed")


@pytest.mark.parametrize("arguments", [
    {"max_entries": 0}, {"max_entries": -1}, {"max_entries": "many"},
    {"recursive": "perhaps"}, {"remote_path": 7}])
def test_wrong_arguments_of_a_list(agent, arguments):
    result = agent.run(None, tool="list_remote_files", **arguments)
    assert result.failed and list(arguments)[0] in result["error"]


# --- For a person -----------------------------------------------------------

TRICKS = "\x1b]0;pwn\x07hello \x1b[31mred\x1b[0m \u009b5n\x7f\x08\u2603"


def on_a_terminal(home, sshd, *args):
    """What a call shows at a terminal."""
    ours, its = pty.openpty()
    with subprocess.Popen(
            [os.path.abspath(rsmcp.SERVER), "call", *args], cwd=home.home,
            env=rsmcp.environment(home.home, **home.env([sshd.entry()])),
            stdin=subprocess.DEVNULL, stdout=its, stderr=its) as process:
        os.close(its)
        shown = b""
        # The end of it is an error on Linux, and no more bytes elsewhere.
        with contextlib.suppress(OSError):
            while data := os.read(ours, 65536):
                shown += data
        os.close(ours)
    assert process.returncode == 0, shown
    return shown.decode().replace("\r\n", "\n")


def is_tame(shown):
    for c in shown:
        assert c in "\n\t" or c >= " " and not "\x7f" <= c <= "\x9f", shown


@pytest.mark.parametrize("tool, name", [
    ("read_remote_file", "content"), ("list_remote_files", "name")])
def test_a_terminal_gets_no_orders(home, sshd, tree, tool, name):
    (tree / TRICKS).write_text(TRICKS)
    path = str(tree / TRICKS if name == "content" else tree)
    args = ["--args", json.dumps({"remote_path": path})]
    shown = on_a_terminal(home, sshd, tool, *args)
    is_tame(shown)
    assert "hello red 5n\u2603\n" in shown
    # JSON says what is there, in its own words.
    shown = on_a_terminal(home, sshd, tool, "--json", *args)
    is_tame(shown)
    assert "\\u001B]0;pwn\\u0007hello " in shown
    # What goes elsewhere is as it was.
    done = home.command("call", tool, *args, entries=[sshd.entry()])
    assert done.returncode == 0 and TRICKS + "\n" in done.stdout
