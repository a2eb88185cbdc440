"""exec_bash against real ssh servers: what comes back is what happened."""

import hashlib
import os
import pathlib
import re
import signal
import shutil
import stat
import subprocess
import tempfile
import time

import pytest

import agent as agents
import rsmcp
import sshd as ssh_servers

pytestmark = [
    pytest.mark.skipif(not ssh_servers.SSHD, reason="there is no sshd"),
    rsmcp.needs_proc,
]
needs_root = pytest.mark.skipif(
    not ssh_servers.ROOT, reason="only root can make users")

GRACE_S, END_S = agents.GRACE_S, agents.END_S * rsmcp.SLOW
FFFD = "\ufffd"


@pytest.fixture
def open_dir():
    """A directory that every user can read."""
    path = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="o"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def programs_without():
    """Makes directories with all programs of the system but some."""
    place = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="p"))
    place.chmod(0o755)

    def make(*names):
        path = place / "+".join(names)
        if not path.exists():
            agents.programs(path, *names)
        return path

    yield make
    shutil.rmtree(place)


@pytest.fixture
def hiding(programs_without, new_sshd, account):
    """Makes entries of hosts without these programs."""
    def make(*names):
        server = new_sshd("SetEnv PATH=%s" % programs_without(*names))
        return server.entry(user=account.name)
    return make


TIERS = ["bash", pytest.param("once", marks=needs_root),
         pytest.param("sh", marks=needs_root)]


@pytest.fixture
def tier_agent(request, new_agent):
    """Indirect parameter: how much the far side can do.

    bash    everything
    once    no perl, no python: a shell runs one command
    plain   no setsid: a POSIX shell prepares what bash runs
    sh      no bash either
    """
    if request.param == "bash":
        return new_agent(request.getfixturevalue("sshd").entry())
    hiding = request.getfixturevalue("hiding")
    if request.param == "plain":
        return new_agent(hiding("setsid"))
    names = ("perl", "python") + (("bash", "rbash")
                                  if request.param == "sh" else ())
    return new_agent(hiding(*names))


PLAIN_TIER = pytest.param("plain", marks=needs_root)
all_tiers = pytest.mark.parametrize("tier_agent", TIERS, indirect=True)


def quoted(text):
    return "'" + str(text).replace("'", "'\\''") + "'"


def check(agent, cases):
    """Each case: command, exit code, stdout, stderr or a pattern of it."""
    wrong = []
    for command, code, out, err in cases:
        result = agent.run(command)
        got_err = result.get("stderr", "")
        fits = err.search(got_err) if hasattr(err, "search") \
            else got_err == err
        if result.failed or not fits or \
                (result["exit_code"], result["stdout"]) != (code, out):
            wrong.append("%r: %r" % (command[:200], result))
    assert not wrong, "\n".join(wrong)


# --- What it says -----------------------------------------------------------

@pytest.mark.parametrize("tier_agent", TIERS + [PLAIN_TIER], indirect=True)
def test_status_and_both_streams(tier_agent):
    anything = re.compile("")
    check(tier_agent, [
        ("true", 0, "", ""),
        ("false", 1, "", ""),
        ("echo hi", 0, "hi\n", ""),
        ("echo hi >&2", 0, "", "hi\n"),
        ("echo out; echo err >&2; exit 3", 3, "out\n", "err\n"),
        ("printf abc", 0, "abc", ""),
        ("printf abc; printf def >&2", 0, "abc", "def"),
        ("printf '\\n'", 0, "\n", ""),
        ("printf '\\n\\nx\\n\\n'", 0, "\n\nx\n\n", ""),
        ("exit 0", 0, "", ""),
        ("exit 255", 255, "", ""),
        ("exit 124", 124, "", ""),
        ("timeout 0.1 sleep 5", 124, "", ""),
        ("exit 137", 137, "", ""),
        ("exec sh -c 'exit 7'", 7, "", ""),
        ("set -e; false; echo no", 1, "", ""),
        ("set -e\necho a\n(exit 9)\necho b", 9, "a\n", ""),
        ("(exit 5)", 5, "", ""),
        ("no_such_program_here", 127, "", re.compile("not found")),
        ("/etc/passwd", 126, "", re.compile("(?i)permission denied")),
        ("echo begun; if", 2, "", re.compile("(?i)syntax error|unexpected")),
        ("echo 'not closed", 2, "", re.compile(".")),
        ("cat <<'E'\n$x `y` \\ 'q' \"d\"\nE", 0,
         "$x `y` \\ 'q' \"d\"\n", ""),
        ("cat <<E\n$((1+2))\nE\necho next", 0, "3\nnext\n", ""),
        ("cat <<E\nno end\n", 0, "no end\n", anything),
        ("echo \"a  b\" 'c  d' e\\ \\ f", 0, "a  b c  d e  f\n", ""),
        ("# nothing but this", 0, "", ""),
        ("echo one; # two\necho three", 0, "one\nthree\n", ""),
        ("echo a\\\nb", 0, "ab\n", ""),
        ("x=1\nf() {\n\techo \"f $1\"\n}\nf 2\necho $x", 0, "f 2\n1\n", ""),
        ("trap 'echo bye' EXIT; echo hi; exit 4", 4, "hi\nbye\n", ""),
        ("exec >&-; exit 6", 6, "", ""),
        ("exec >/dev/null 2>&1; echo no; exit 8", 8, "", ""),
        ("echo grün ☃ 𝄞", 0, "grün ☃ 𝄞\n", ""),
        ("seq 3 | tac", 0, "3\n2\n1\n", ""),
        # stdin is empty.
        ("echo a; cat; echo b", 0, "a\nb\n", ""),
        ("read x; echo $?", 0, "1\n", ""),
        ("wc -c", 0, "0\n", ""),
        ("[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo none", 0, "none\n", ""),
        ("readlink /proc/self/fd/0", 0, "/dev/null\n", ""),
        ("sh -c 'cat; echo $?'", 0, "0\n", ""),
        ("while read -r x; do echo \"$x\"; done; echo end", 0, "end\n", ""),
    ])
    assert tier_agent.run("cat").seconds < 5 * rsmcp.SLOW


def test_bash_is_bash(agent):
    check(agent, [
        ("[[ abc == a* ]] && echo ${BASH_VERSION:+bash}", 0, "bash\n", ""),
        ("a=(1 2 3); echo ${#a[@]}; exit ${a[2]}", 3, "3\n", ""),
        ("cat < <(echo sub)", 0, "sub\n", ""),
        ("set -o pipefail; false | true", 1, "", ""),
        ("set -eu\necho a\necho $nothing\necho b", 1, "a\n",
         re.compile("nothing")),
        ("echo out | tee /dev/stderr", 0, "out\n", "out\n"),
        ("echo $- | grep -c i", 1, "0\n", ""),
    ])


def test_no_status_is_invented(agent):
    """128+n with "signal" if it was a signal, without if not."""
    for number in (9, 15, 11, 1, 6):
        result = agent.run("echo hi; kill -%d $$; sleep 5" % number)
        assert (result["exit_code"], result.get("signal")) == \
            (128 + number, number), result
        assert result["stdout"] == "hi\n"
    for status in (129, 130, 137, 139, 141, 143):
        result = agent.run("exit %d" % status)
        assert result["exit_code"] == status
        assert "signal" not in result, result
    # What bash does not tell apart is not told apart.
    for number in (2, 13):
        result = agent.run("kill -%d $$; sleep 5" % number)
        assert result["exit_code"] == 128 + number
        assert result.get("signal") in (None, number)
    for result in [agent.run("exit 1"), agent.run("true")]:
        assert "signal" not in result and "timed_out" not in result
        assert "command_state" not in result
        assert "connection_error" not in result


def test_fields_of_a_plain_result(agent):
    agent.good("true")      # the first may tell about the host key
    result = agent.run("echo hi")
    assert set(result) == {"exit_code", "stdout", "stderr", "sandbox",
                           "duration_ms"}, result
    assert result["sandbox"] == "box"
    assert 0 <= result["duration_ms"] < 2000 * rsmcp.SLOW


def test_killed_wrapper(agent, tag):
    """A command may kill what waits for it; then nobody knows its status."""
    result = agent.run("echo hi; kill -9 $PPID; exit 0", timeout_s=10)
    assert not result.failed, result
    assert result["exit_code"] is None, result
    assert result["stdout"] == "hi\n"
    assert result["command_state"] == "may_be_running"
    result = agent.run("kill -9 $PPID; exec sleep %s" % tag, timeout_s=1)
    assert result["exit_code"] is None or result["timed_out"], result
    tag.ends(within=END_S)
    assert agent.good("echo on") == "on\n"


@all_tiers
def test_every_byte_of_a_command_arrives(tier_agent):
    text = "".join(map(chr, range(1, 0x180))) + "☃𝄞\U0010ffff\n\n"
    result = tier_agent.run("printf %%s %s | sha256sum" % quoted(text))
    assert result["stdout"].split()[0] == \
        hashlib.sha256(text.encode()).hexdigest(), result
    # The end of it counts too.
    assert tier_agent.good("cat <<'E'\nx\nE\n") == "x\n"
    assert tier_agent.good("echo a\\\\") == "a\\\n"
    # A megabyte.
    text = "".join("%07d " % n for n in range(131072))
    result = tier_agent.run("printf %%s '%s' | sha256sum; echo done" % text)
    assert result["stdout"].split() == [
        hashlib.sha256(text.encode()).hexdigest(), "-", "done"], \
        (result["exit_code"], result["stderr"][:300])
    # Behind it the link is as it was.
    assert tier_agent.good("echo hi") == "hi\n"


def test_a_nul_in_the_command_is_refused(agent):
    result = agent.run("echo a\0b")
    assert result.failed
    assert "NUL" in result["error"]


def test_what_looks_like_our_trailer_is_output(agent):
    nonce = "0123456789abcdef" * 2
    text = "%s 0 - \n%s 0 sig 12\nNONCE 1 cwd\n" % (nonce, nonce)
    result = agent.run("printf %%s %s | tee /dev/stderr; "
                       "echo \"$RSMCP_CALL 1 2 3\"; exit 5" % quoted(text))
    assert result["exit_code"] == 5
    assert result["stdout"].startswith(text)
    assert re.fullmatch(r"\S+ 1 2 3\n", result["stdout"][len(text):])
    assert result["stderr"] == text
    assert agent.good("echo hi") == "hi\n"


def test_streams_in_any_order_and_size(agent):
    """The pipes of both may be full, and one may end long before."""
    result = agent.run("head -c 300000 /dev/zero | tr '\\0' a >&2; "
                       "head -c 300000 /dev/zero | tr '\\0' b; exec 2>&-; "
                       "sleep 0.1; echo end", max_output_chars=1000000)
    assert result["stdout"] == "b" * 300000 + "end\n"
    assert result["stderr"] == "a" * 300000
    # A character may come in pieces.
    assert agent.good("printf '\\342'; sleep 0.1; printf '\\230'; sleep 0.1; "
                      "printf '\\203\\n'") == "☃\n"


# --- Output as text ---------------------------------------------------------

def test_output_is_cleaned_and_valid(agent):
    cases = [
        (r"\033[1;31mred\033[0m", "red"),
        (r"\033]0;title\007x\033]8;;http://a\033\\y", "xy"),
        (r"\033P1$r0m\033\\z\033(B\033=", "z"),
        (r"\033[?25lhidden\033[?25h\033[2K\033[1A", "hidden"),
        (r"a\r\nb\r\n", "a\nb\n"),
        (r"10%%\r20%%\r30%%\n", "10%\n20%\n30%\n"),
        (r"bell\007 back\010space\000nul\177", "bell backspacenul"),
        (r"tab\there", "tab\there"),
        (r"a\377b", "a" + FFFD + "b"),
        (r"a\303", "a" + FFFD),
        (r"\355\240\200", None),            # a surrogate
        (r"\302\2331mx", None),             # CSI as one character
        (r"\302\007\2331mx", None),         # and one that hides
        (r"\302\033[m\2331mx", None),
        (r"\033\033[31mx", None),
        (r"x\033", "x"),
        (r"x\033[", "x"),
        (r"x\033[31", "x"),
    ]
    wrong = []
    for text, expected in cases:
        out = agent.good("printf '%s'" % text)
        if expected is not None and out != expected or \
                re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", out):
            wrong.append((text, out))
    assert not wrong
    # All bytes there are; none of them may end the stream or break it.
    out = agent.good("awk 'BEGIN { for (i = 0; i < 256; i++) "
                     "printf \"\\\\%03o\", i }' | { read -r x; "
                     "printf \"$x\"; }; printf end")
    assert out.endswith("end") and FFFD in out
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", out)


def outputs(home):
    path = home.state / "outputs"
    return list(path.iterdir()) if path.exists() else []


def test_long_output_keeps_head_and_tail(agent, home):
    """... says how much is missing, and where all of it is."""
    for size in (20001, 30000, 200000, 10000000):
        long_output(agent, home, size)
    assert not agent.run("seq 1000").keys() & {"truncated", "output_file"}


def long_output(agent, home, size):
    command = ("seq 1 2000000 | head -c %d; "
               "seq 2000000 4000000 | head -c %d >&2" % (size, size))
    out = "".join("%d\n" % n for n in range(1, size // 4 + 2000))[:size]
    err = "".join("%d\n" % n for n in range(2000000, 2000001 + size // 8))[
        :size]
    result = agent.run(command)
    assert result["exit_code"] == 0
    assert result["truncated"] == {"stdout": size - 20000,
                                   "stderr": size - 20000}
    for got, whole, file in [(result["stdout"], out, "output_file"),
                             (result["stderr"], err, "stderr_file")]:
        match = re.fullmatch(r"(.*)\n\.\.\.<truncated>([^\n]*)\n(.*)", got,
                             re.S)
        head, line, tail = match.groups()
        assert str(size - 20000) in line
        assert len(head) + len(tail) == 20000
        assert min(len(head), len(tail)) >= 5000
        assert whole.startswith(head) and whole.endswith(tail)
        path = pathlib.Path(result[file])
        assert path.read_text() == whole
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert home.state in path.parents


def test_the_limit_counts_characters(agent):
    assert agent.good("printf '☃%.0s' $(seq 100)",
                      max_output_chars=100) == "☃" * 100
    result = agent.run("printf '☃%.0s' $(seq 101)", max_output_chars=100)
    assert result["truncated"] == {"stdout": 1}
    assert result["stdout"].count("☃") == 100
    assert FFFD not in result["stdout"]
    assert pathlib.Path(result["output_file"]).read_text() == "☃" * 101
    result = agent.run("printf 'abc'", max_output_chars=1)
    assert result["truncated"] == {"stdout": 2}
    # Colours are not counted, and the file has them.
    command = "for i in $(seq 1000); do printf '\\033[31mx\\033[0m'; done"
    result = agent.run(command, max_output_chars=1000)
    assert result["stdout"] == "x" * 1000 and "truncated" not in result
    result = agent.run(command, max_output_chars=999)
    assert result["truncated"] == {"stdout": 1}
    assert pathlib.Path(result["output_file"]).read_bytes() == \
        b"\033[31mx\033[0m" * 1000


def test_the_file_has_the_bytes_as_they_came(agent):
    data = bytes(range(256)) * 1000
    command = ("for i in $(seq 1000); do printf '%s'; done"
               % "".join("\\%03o" % byte for byte in range(256)))
    result = agent.run(command, max_output_chars=100)
    assert pathlib.Path(result["output_file"]).read_bytes() == data


@pytest.mark.parametrize("data", [b"a\xff\xfeb", b"one\0two\0", b"\xc3",
                                  b"one\r\ntwo\r\n", b"N\bNA\bA",
                                  b"x\033]no end\ny"])
def test_output_that_is_no_text_is_not_lost(agent, data):
    """It is shown as text, and told where its bytes are."""
    octal = "".join("\\%03o" % byte for byte in data)
    result = agent.run("printf '%s'; printf 'e%s' >&2" % (octal, octal))
    assert "truncated" not in result
    assert pathlib.Path(result["output_file"]).read_bytes() == data
    assert pathlib.Path(result["stderr_file"]).read_bytes() == b"e" + data
    result = agent.run("printf '\\033[31mred \\342\\230\\203\\n'")
    assert not {"output_file", "stderr_file"} & set(result), result


def test_what_no_file_could_take_is_told(agent, home):
    """Its place is taken: nothing can be written there."""
    place = home.state / "outputs"
    assert not place.exists()
    place.write_text("")
    result = agent.run("printf 'a\\r\\n'; seq 1000 >&2", max_output_chars=100)
    assert result["stdout"] == "a\n" and "output_file" not in result
    assert result["truncated"].pop("stderr") > 3000
    assert result["truncated"] == {"output_file": 3, "stderr_file": 3893}


def test_old_files_of_output_go(agent, home, new_agent, sshd):
    agent.run("seq 100000", max_output_chars=10)
    old, = outputs(home)
    week = 7 * 86400
    os.utime(old, (time.time() - week - 3600,) * 2)
    agent.run("seq 100000", max_output_chars=10)
    young, = [path for path in outputs(home) if path != old]
    os.utime(young, (time.time() - week + 3600,) * 2)
    agent.leave()
    # The first of a process that needs a file looks after the others.
    new_agent(sshd.entry()).good("seq 100000", max_output_chars=10)
    assert not old.exists() and young.exists()


def test_files_of_output_have_a_limit(agent, home, tmp_path):
    """The oldest go, but not one that a call still writes."""
    go = tmp_path / "go"
    agent.run("seq 100000", max_output_chars=10)
    place, = {path.parent for path in outputs(home)}
    call = agent.begin("seq 100000; until [ -e %s ]; do sleep 0.1; done; "
                       "echo end" % go, max_output_chars=10)
    rsmcp.until("it writes", lambda: len(outputs(home)) == 2)
    for number, path in enumerate(sorted(
            outputs(home), key=lambda path: path.stat().st_mtime_ns)):
        os.utime(path, (number + time.time() - 86400,) * 2)
    oldest, written = sorted(outputs(home),
                             key=lambda path: path.stat().st_mtime)
    for number in range(1005):
        path = place / ("%016x.stdout" % number)
        path.touch()
        os.utime(path, (number + time.time() - 40000,) * 2)
    time.sleep(1.1)     # it is not looked at more often
    agent.run("seq 100000", max_output_chars=10)
    assert not oldest.exists() and written.exists()
    assert len(outputs(home)) == 1001
    assert (place / ("%016x.stdout" % 1004)).exists()
    go.touch()
    result = agent.end(call)
    assert pathlib.Path(result["output_file"]).read_text().endswith("end\n")
    # Nor may they take more than so much.
    for path in place.glob("0*"):
        path.unlink()
    before = set(outputs(home))
    big = place / "0.stdout"
    with open(big, "wb") as file:
        file.truncate((4 << 30) + 1)
    os.utime(big, (time.time() - 40000,) * 2)
    time.sleep(1.1)
    agent.run("seq 100000", max_output_chars=10)
    assert not big.exists() and before < set(outputs(home))


def test_output_without_end(agent):
    """`yes`: bounded memory, all the time there for others."""
    agent.good("true")
    slow = agent.begin("yes", timeout_s=1)
    took = [agent.run("echo hi").seconds for _ in range(20)]
    result = agent.end(slow)
    assert result["timed_out"] and result["kill_verified"] is True
    assert result.seconds < 1 + GRACE_S + END_S
    assert result["stdout"].startswith("y\ny\n")
    assert result["stdout"].endswith("y\n")
    assert "...<truncated>" in result["stdout"]
    assert sorted(took)[10] < 0.2 * rsmcp.SLOW
    agent.server.memory_is_bounded()


def test_200_megabytes(agent):
    size = 200_000_000
    result = agent.run("head -c %d /dev/zero | tr '\\0' z; echo end" % size)
    assert result["exit_code"] == 0
    assert result["stdout"].startswith("zzz")
    assert result["stdout"].endswith("zzend\n")
    # The file has no more than so much, and that is said.
    assert result["truncated"] == {"stdout": size + 4 - 20000,
                                   "output_file": size + 4 - (64 << 20)}
    agent.server.memory_is_bounded()
    file = pathlib.Path(result["output_file"])
    assert file.stat().st_size == 64 << 20


# --- Where it runs ----------------------------------------------------------

@all_tiers
def test_cwd(tier_agent):
    agent = tier_agent
    login = agent.good("pwd").rstrip("\n")
    home = agent.good("echo $HOME").rstrip("\n")
    base = agent.good("mktemp -d /tmp/rsmcp.XXXXXX").rstrip("\n")
    names = ["blank  s", "quo'te\"s", "$dollar`tick\\", "*", "#x", "~",
             "grün☃", "-", "-L", " lead", "trail ", "a;b&c|d", "\x01\x7f"]
    if "shell" not in agent.run("true"):
        names += ["new\nline", "end\n", "\n"]
    try:
        wrong = []
        for name in names:
            path = base + "/" + name
            agent.good("mkdir -- " + quoted(path))
            if agent.good("printf %s \"$PWD\"; cd .. && exit 0",
                          cwd=path) != re.sub("[\x01\x7f]", "", path):
                wrong.append(name)
        assert not wrong
        # The whole of it runs there, and only if it can.
        out = agent.good("pwd; cd /; pwd; cd - >/dev/null\npwd; (cd /; pwd)",
                         cwd=base)
        assert out == "%s\n/\n%s\n/\n" % (base, base)
        agent.good("echo >%s/file" % base)
        for cwd in (base + "/missing", base + "/file", "~nobody_here/x",
                    base + "/-/missing", base + "/new\nline\nx"):
            result = agent.run("echo no >%s/ran; echo also" % base, cwd=cwd)
            assert result.failed, (cwd, result)
            assert "cwd" in result["error"]
            assert cwd in result["error"] or "\n" in cwd
        assert agent.run("test -e %s/ran" % base)["exit_code"] == 1
        # The login directory, and HOME.
        assert agent.good("pwd", cwd="") == login + "\n"
        assert agent.good("pwd", cwd="~") == home + "\n"
        sub = "rsmcp test " + base[-6:]
        agent.good("mkdir -p %s/-" % quoted(sub), cwd="~")
        assert agent.good("pwd", cwd="~/" + sub) == "%s/%s\n" % (home, sub)
        if login == home:
            assert agent.good("pwd", cwd=sub) == "%s/%s\n" % (login, sub)
            assert agent.good("pwd", cwd=sub + "/-") == \
                "%s/%s/-\n" % (login, sub)
    finally:
        agent.run("rm -rf " + base)


def test_cwd_named_like_the_last_one(agent):
    """`cd -` would go elsewhere, and print where."""
    result = agent.run("pwd", cwd="-")
    assert result.failed and "cwd" in result["error"], result


@needs_root
def test_cwd_that_may_not_be_entered(new_agent, sshd, account, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    agent = new_agent(sshd.entry(user=account.name))
    result = agent.run("echo no", cwd=str(closed))
    assert result.failed and "cwd" in result["error"]


def test_workdir_of_the_sandbox(new_agent, sshd, tmp_path):
    work = tmp_path / "the work"
    other = tmp_path / "other"
    work.mkdir()
    other.mkdir()
    (work / "below").mkdir()
    agent = new_agent(sshd.entry(workdir=str(work)),
                      sshd.entry("home", workdir="~"),
                      sshd.entry("gone", workdir=str(tmp_path / "gone")))
    assert agent.good("pwd") == "%s\n" % work
    assert agent.good("pwd", cwd="") == "%s\n" % work
    assert agent.good("pwd", cwd=str(other)) == "%s\n" % other
    assert agent.good("pwd", cwd="~") == agent.good(
        "pwd", sandbox_name="home")
    assert agent.good("pwd", cwd="below") == "%s/below\n" % work
    result = agent.run("echo no", cwd="missing")
    assert "'%s/missing' (cwd) does not exist" % work in result["error"]
    result = agent.run("echo no", sandbox_name="gone")
    assert result.failed and str(tmp_path / "gone") in result["error"]


# --- What a command finds ---------------------------------------------------

def ssh(sshd, command, user=None):
    """What the plain client says to it."""
    return subprocess.run(
        ["ssh", "-F", "none", "-i", sshd.key, "-p", str(sshd.port),
         "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null",
         "-oLogLevel=ERROR", "-l", user or sshd.user, "127.0.0.1", command],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=30).stdout


def test_the_environment_is_that_of_ssh(agent, sshd):
    """RSMCP_CALL, and nothing else of ours."""
    def variables(text):
        pairs = dict(item.partition("=")[::2]
                     for item in text.split("\0") if item)
        for name in ("SSH_CLIENT", "SSH_CONNECTION", "_", "SHLVL"):
            pairs.pop(name, None)
        return pairs

    plain = variables(ssh(sshd, "env -0"))
    # NULs do not come through: a character of which environments are free.
    ours = variables(agent.good("env -0 | tr '\\0' '\\n'").replace("\n", "\0"))
    mark = ours.pop("RSMCP_CALL")
    assert re.fullmatch(r"[0-9A-Za-z.]+", mark)
    assert ours == plain
    assert agent.good("echo $RSMCP_CALL") != mark + "\n"
    assert agent.good("umask; ulimit -n").split() == \
        ssh(sshd, "umask; ulimit -n").split()


def test_nothing_secret_is_to_be_seen(agent):
    """Who knew the nonce could forge the end of a command."""
    out = agent.good(
        "env; set; ps -ww -o args -A; "
        "for p in $$ $PPID; do tr '\\0' '\\n' </proc/$p/environ; "
        "tr '\\0' '\\n' </proc/$p/cmdline; done; declare -p",
        max_output_chars=1000000)
    # The token of the channel stands there and is of no use any more; the
    # nonces are longer than anything else in hexadecimal.
    seen = set(re.findall(r"\b[0-9a-f]{32}\b", out))
    calls = []
    for word in seen:
        result = agent.run("printf '%s 9 - \\n' | tee /dev/stderr; exit 5"
                           % word)
        calls.append((result["exit_code"], word in result["stdout"]))
    assert all(call == (5, True) for call in calls)
    # Nothing is open but the three streams (and that of the listing).
    assert agent.good("ls /proc/self/fd | tr '\\n' ' '") == "0 1 2 3 "
    assert agent.good("echo $SIGNALS; grep -E 'Sig(Ign|Blk)' "
                      "/proc/self/status | tr -d '[:space:]'"
                      ).strip() in (
        "SigBlk:0000000000000000SigIgn:0000000000000000",
        "SigBlk:0000000000000000SigIgn:0000000000001000")


def test_nothing_carries_over(agent):
    home = agent.good("pwd")
    before = agent.good("set | cut -d= -f1 | grep -c .; alias; trap; shopt")
    for _ in range(3):
        agent.run("cd /tmp; x=1; export LEFT=2; f() { echo f; }; "
                  "alias ll=ls; set -u; shopt -s extglob; umask 077; "
                  "trap 'echo trapped' EXIT; exec 3>/dev/null; ulimit -n 99; "
                  "readonly PATH=/nowhere; unset HOME")
        out = agent.good("pwd; echo ${x-none} ${LEFT-none}; "
                         "type f >/dev/null 2>&1 || echo no f; "
                         "[ -e /proc/self/fd/9 ] || echo ok")
        assert out == home + "none none\nno f\nok\n"
    assert agent.good("set | cut -d= -f1 | grep -c .; alias; trap; shopt") \
        == before


# --- What it leaves behind --------------------------------------------------

def test_background_children_stay(agent, tag, new_tag):
    """They are named, hold nothing up, and outlive our server."""
    later = new_tag()
    result = agent.run("sleep %s & nohup sleep %s >/dev/null 2>&1 & "
                       "setsid -f sleep %s; echo begun" % (tag, tag, tag))
    assert result["stdout"] == "begun\n" and result.seconds < 2
    tag.runs(3)
    assert set(result["background_pids"]) == set(tag.pids())
    assert "timed_out" not in result
    # One that has children of its own later on.
    result = agent.run("(sleep 0.3; sleep %s; true) >/dev/null 2>&1 &"
                       % later)
    assert len(result["background_pids"]) == 1
    later.runs()
    # It is in nobody's way.
    assert agent.good("echo on") == "on\n"
    assert "background_pids" not in agent.run("true & wait")
    agent.leave()
    for _ in range(100):
        assert len(tag.pids()) == 3 and len(later.pids()) == 1
        time.sleep(0.01)


@pytest.mark.parametrize("command", [
    "setsid -f sleep %s", "sh -c 'sleep %s & echo x'",
    "echo x && sh -c 'sleep %s >/dev/null 2>&1 &'"])
def test_children_of_a_tame_command_are_named(agent, tag, command):
    """Its shell reports the end itself, but not if a process stays."""
    result = agent.run(command % tag)
    tag.runs()
    assert result["background_pids"] == tag.pids(), result
    assert agent.good("echo on") == "on\n"


def test_tame_commands_end_as_they_end(agent):
    for command, code, out, err in [
            ("sh -c 'exit 7'", 7, "", ""),
            ("sh -c 'kill -9 $$'", 137, "", None),
            ("false || echo no >&2", 0, "", "no\n"),
            ("echo a; sh -c 'echo b >&2; exit 128'", 128, "a\n", "b\n"),
            ("seq 100000 | tail -n 1", 0, "100000\n", ""),
            ("no-such-program", 127, "", None),
            ("ls | ", 2, "", None),
            ("2>&1 trap 'echo bye' EXIT", 0, "bye\n", ""),
            ("echo a; 2>&1 exec true", 0, "a\n", ""),
            ("cd / && pwd", 0, "/\n", "")] * 3:
        result = agent.run(command)
        assert result["exit_code"] == code, (command, result)
        assert result["stdout"] == out, (command, result)
        assert err is None or result["stderr"] == err, (command, result)


@needs_root
def test_no_shell_is_tame_that_the_environment_changed(new_account, new_agent,
                                                       sshd):
    account = new_account()
    write_rc(account, ".bashrc", "export BASH_ENV=~/.env\n")
    write_rc(account, ".env", "ls() { trap 'echo bye' EXIT; }\n")
    agent = new_agent(sshd.entry(user=account.name))
    for _ in range(3):
        assert agent.good("ls") == "bye\n"


@needs_root
@pytest.mark.parametrize("tier_agent", TIERS[1:], indirect=True)
def test_background_children_stay_that_cannot_be_named(tier_agent, tag):
    result = tier_agent.run("sleep %s >/dev/null 2>&1 & echo begun" % tag)
    assert result["stdout"] == "begun\n"
    tag.runs()
    tier_agent.leave()
    for _ in range(100):
        assert len(tag.pids()) == 1
        time.sleep(0.01)


def test_many_background_children(agent, tag):
    result = agent.run("for i in $(seq 400); do sleep %s & done; exit 3" % tag)
    assert not result.failed and result["exit_code"] == 3, result
    assert len(result["background_pids"]) >= 64
    tag.runs(400)       # the last ones may not be `sleep` yet
    assert set(result["background_pids"]) <= set(tag.pids())
    assert len(tag.pids()) == 400


def test_late_output_of_a_filter(agent):
    """bash does not wait for `> >(...)`; what comes at once is kept."""
    outs = [agent.good("exec > >(cat -n); echo hi") for _ in range(5)]
    print(outs)
    assert all(out in ("", "     1\thi\n") for out in outs)


# --- Time is up -------------------------------------------------------------

# What has to be gone; T is the tag.  Bounded, should we fail.
PLAIN = {
    "plain": "sleep T",
    "exec": "exec sleep T",
    "pipeline": "sleep T | sleep T | cat",
    "script": "sleep T; echo no; sleep T",
    "background": "sleep T & sleep T & wait",
    "setsid": "setsid sleep T",
    "setsid -f": "setsid -f sleep T; sleep T",
    "double fork": "(setsid sh -c 'sleep T & sleep T' &); sleep T",
    "nohup": "nohup sleep T >/dev/null 2>&1 & nohup sleep T",
    "stopped": "sleep T & kill -STOP $!; kill -STOP $$; sleep T",
    "cleared environment": "env -i setsid sleep T",
    "holds no output": "exec >/dev/null 2>&1; setsid -f sleep T; sleep T",
}
# These take all of the grace.
STUBBORN = {
    "ignores TERM": "trap '' TERM INT HUP; sleep T; sleep T; sleep T",
    "ignores TERM in a child": "sh -c 'trap \"\" TERM; sleep T; sleep T'",
    "a trap that goes on": "trap 'sleep T & ' TERM; sleep T; sleep T; wait",
}
# Without a subreaper nobody sees these.
ORPHANS = {
    "orphan of a cleared environment":
        "(env -i setsid sleep T &); (env -i setsid sh -c 'sleep T & "
        "sleep T' &); sleep T",
    # A process that is another one every few milliseconds.
    "fork storm":
        "h='[ $1 -gt 0 ] || exit; n=$(($1-1)); "
        "env -i PATH=\"$PATH\" setsid sh -c \"$2\" T $n \"$2\" & "
        "exit'; (sh -c \"$h\" T 3000 \"$h\" &); sleep T",
    "many": "for i in $(seq 150); do (env -i setsid sleep T &); done; "
            "sleep T",
}


def kill_all(agent, cases, new_tag, verified=True, **arguments):
    """Let all of them run into their deadline, side by side."""
    limit = 1 + GRACE_S + END_S + agents.BUSY_S
    calls, wrong = {}, []
    agent.good("true", **arguments)
    for name, command in cases.items():
        tag = new_tag()
        command = "echo begun; " + re.sub(r"\bT\b", str(tag), command)
        calls[name] = tag, agent.begin(command, timeout_s=1, **arguments)
    beside = agent.run("echo hi", **arguments)
    for name, (tag, call) in calls.items():
        result = agent.end(call)
        left = tag.pids() or tag.pids() or tag.pids()
        print("%-35s %.2f s  %s" % (name, result.seconds,
                                    result.get("exit_code")))
        if result.failed or not result.get("timed_out") or left or \
                result.get("kill_verified") != verified or \
                result["stdout"] != "begun\n" or \
                "[TIMEOUT]" not in result["stderr"] or \
                result.get("command_state") != "killed" or \
                "survivors" in result or \
                result["duration_ms"] > limit * 1000:
            wrong.append("%s: %.2f s, left %s: %r" % (
                name, result.seconds, left, result))
    assert not wrong, "\n".join(wrong)
    # It waits for none of them.
    assert beside["stdout"] == "hi\n" and beside.seconds < limit
    for n in range(12):
        assert agent.good("echo on %d" % n, **arguments) == "on %d\n" % n


WHO = ["me", pytest.param("account", marks=needs_root)]


def user_of(request, who):
    return None if who == "me" else request.getfixturevalue("account").name


@pytest.mark.parametrize("who", WHO)
def test_timeout_ends_everything(request, new_agent, sshd, new_tag, who):
    entry = sshd.entry(**({} if who == "me" else
                          {"user": user_of(request, who)}))
    agent = new_agent(entry)
    kill_all(agent, PLAIN, new_tag)
    kill_all(agent, {**STUBBORN, **ORPHANS}, new_tag)


def test_fork_storms(agent, new_tag):
    """No list of processes is whole while they come and go; all the same
    nobody may say that they are gone if they are not."""
    for _ in range(2):
        kill_all(agent, {"storm %d" % n: ORPHANS["fork storm"]
                         for n in range(3)}, new_tag)


@needs_root
@pytest.mark.parametrize("tier_agent", TIERS[1:], indirect=True)
def test_timeout_without_perl_and_python(tier_agent, new_tag):
    """Orphans that hide would not be seen: that is said."""
    kill_all(tier_agent, PLAIN, new_tag, verified="by_marker")
    kill_all(tier_agent, STUBBORN, new_tag, verified="by_marker")


def test_timeout_of_a_plain_command_is_quick(agent, tag):
    """The grace is for those that need it."""
    agent.good("true")
    calls = [agent.begin(command % tag, timeout_s=1)
             for command in ("sleep %s", "echo a; sleep %s | cat")]
    for call in calls:
        result = agent.end(call)
        assert result["timed_out"] and result["kill_verified"] is True
        assert (result["exit_code"], result["signal"]) == (143, 15)
        print("%.2f s" % result.seconds)
        assert result.seconds < 1 + 1 * rsmcp.SLOW
        assert 1000 <= result["duration_ms"] < result.seconds * 1000 + 1
    assert not tag.pids()


def test_a_short_timeout_after_a_pause(agent):
    """Shells that were ready long ago are as good as new ones."""
    for pause in (0, 2.5):
        agent.good("true")
        time.sleep(pause)
        calls = [agent.begin("echo hi", timeout_s=1) for _ in range(6)]
        for call in calls:
            result = agent.end(call)
            assert result.get("stdout") == "hi\n", (pause, result)


def test_timeout_keeps_what_was_printed(agent):
    result = agent.run("echo out; echo err >&2; printf 'half a line'; "
                       "trap 'echo cleaned up; exit 9' TERM; "
                       "sleep 30 & wait", timeout_s=1)
    assert result["timed_out"]
    assert result["stdout"] == "out\nhalf a linecleaned up\n"
    assert result["stderr"].startswith("err\n[TIMEOUT]")
    assert result["exit_code"] in (9, None)


def test_an_exit_just_in_time(agent):
    """Whoever wins, the result is of one piece."""
    calls = [agent.begin("sleep %s; echo done; exit 3" % pause, timeout_s=1)
             for pause in ("0.95", "0.98", "0.99", "1", "1.01")]
    for call in calls:
        result = agent.end(call)
        if "timed_out" in result:
            assert "[TIMEOUT]" in result["stderr"]
            assert result["kill_verified"] is True
        else:
            assert (result["exit_code"], result["stdout"]) == (3, "done\n")


def test_the_time_of_others_goes_on(agent, new_tag):
    """Calls on the same link do not notice that one is ended."""
    agent.good("true")
    tag = new_tag()
    beside = agent.begin("for i in $(seq 20); do echo $i; sleep 0.1; done")
    agent.run("sleep %s; sleep %s" % (tag, tag), timeout_s=1)
    result = agent.end(beside)
    assert result["exit_code"] == 0
    assert result["stdout"] == "".join("%d\n" % n for n in range(1, 21))


@needs_root
def test_who_cannot_be_ended_is_named(new_agent, sshd, account, tag,
                                      tmp_path):
    """A child that became root, as with sudo."""
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler")
    source = tmp_path / "other.c"
    source.write_text(
        "#include <unistd.h>\n"
        "int main(int c, char **v) { return setgid(0) || setuid(0) || "
        "execvp(v[1], v + 1) || c; }\n")
    program = account.home / "other"
    ssh_servers.run(compiler, "-o", program, source)
    program.chmod(0o4755)
    agent = new_agent(sshd.entry(user=account.name))
    result = agent.run("echo hi; ./other sleep %s" % tag, timeout_s=1)
    assert result["timed_out"] and result["stdout"] == "hi\n"
    assert result["kill_verified"] is False
    assert result["command_state"] == "may_be_running"
    pid, = tag.pids()
    assert any(text.startswith("%d:" % pid) and "sleep" in text
               for text in result["survivors"]), result
    assert result.seconds < 1 + GRACE_S + END_S
    assert agent.good("echo on") == "on\n"


# --- Cancelled --------------------------------------------------------------

@pytest.mark.parametrize("who", WHO)
def test_cancel_ends_everything(request, new_agent, sshd, new_tag, who):
    agent = new_agent(sshd.entry(**({} if who == "me" else
                                    {"user": user_of(request, who)})))
    agent.good("true")
    tag, stubborn = new_tag(), new_tag()
    call = agent.begin("setsid -f sleep %s; sleep %s | cat" % (tag, tag))
    hard = agent.begin("trap '' TERM; (env -i setsid sleep %s &); "
                       "sleep %s; sleep %s" % ((stubborn,) * 3))
    beside = agent.begin("sleep 1; echo beside")
    tag.runs(2)
    stubborn.runs(2)
    agent.cancel(call)
    agent.cancel(hard)
    print("gone after %.2f s" % tag.ends(within=END_S))
    stubborn.ends(within=GRACE_S + END_S)
    assert agent.end(beside)["stdout"] == "beside\n"
    assert agent.good("echo on") == "on\n"
    assert not agent.over(call) and not agent.over(hard)


def test_cancel_before_it_ran(new_agent, sshd, tmp_path):
    """While it waits for a shell, or for the login."""
    agent = new_agent(sshd.entry())
    ran = tmp_path / "ran"
    agent.cancel(agent.begin("echo >%s" % ran))
    assert agent.good("echo on") == "on\n"
    print("it ran" if ran.exists() else "it did not run")
    calls = [agent.begin("sleep 20") for _ in range(6)]
    for call in calls:
        agent.cancel(call)
    assert agent.good("echo on") == "on\n"


def test_the_client_leaves(agent, tag):
    """stdin ends: so does the server, and what ran in the foreground."""
    agent.begin("trap '' TERM; sleep %s; sleep %s" % (tag, tag))
    tag.runs()
    agent.server.close_input()
    agent.server.ends()
    tag.ends(within=1 + END_S)


# --- Progress ---------------------------------------------------------------

def test_progress_brings_the_last_line(agent):
    agent.good("true")
    result = agent.run("for i in $(seq 25); do printf '\\033[32mline %d"
                       "\\033[0m\\n' $i; echo err >&2; sleep 0.1; done",
                       token="t")
    assert result["exit_code"] == 0
    seen = agent.progress["t"]
    texts = [params["message"] for _, params in seen]
    print(texts)
    assert 3 <= len(seen) <= 7
    assert all(re.fullmatch(r"line \d+", text) for text in texts)
    numbers = [int(text.split()[1]) for text in texts]
    assert numbers == sorted(numbers) and numbers[-1] >= 15
    done = [params["progress"] for _, params in seen]
    assert done == sorted(set(done))
    gaps = [b[0] - a[0] for a, b in zip(seen, seen[1:])]
    assert all(gap > 0.3 for gap in gaps)


def test_progress_of_a_silent_command(agent):
    agent.good("true")
    agent.run("sleep 1.3", token=7)
    assert 2 <= len(agent.progress[7]) <= 4
    agent.run("sleep 0.7")
    assert set(agent.progress) == {7}


# --- Other people's hosts ---------------------------------------------------

def shell_path(name, directory):
    """The program as a login shell; a test without it is skipped."""
    program = shutil.which("busybox" if name == "ash" else name)
    if not program:
        pytest.skip("there is no %s" % name)
    if name != "ash":
        return program
    link = directory / "ash"
    link.symlink_to(program)
    return str(link)


RC_FILES = {
    "bash": ".bashrc", "zsh": ".zshenv", "tcsh": ".tcshrc",
    "fish": ".config/fish/config.fish",
}


def write_rc(account, name, text):
    path = account.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    for each in (path, *path.parents):
        if account.home in (each, *each.parents):
            shutil.chown(each, account.name)


@needs_root
@pytest.mark.parametrize("name", ["bash", "dash", "zsh", "fish", "tcsh",
                                  "mksh", "ash"])
def test_login_shells(new_account, new_agent, sshd, open_dir, new_tag, name):
    account = new_account(shell=shell_path(name, open_dir))
    if name in RC_FILES:
        noise = "echo noise from rc\nsh -c 'echo more noise >&2'\n"
        write_rc(account, RC_FILES[name], noise + (
            "setenv FROM_RC yes\n" if name == "tcsh" else
            "set -x FROM_RC yes\n" if name == "fish" else
            "export FROM_RC=yes\n"))
    # Session scripts of sshd print too.
    write_rc(account, ".ssh/rc", "echo noise of .ssh/rc\n"
             "echo noise of .ssh/rc >&2\n")
    agent = new_agent(sshd.entry(user=account.name))
    result = agent.run("echo \"hi! $((1+1)) 'q'\"; echo err >&2; exit 3",
                       cwd="~")
    assert (result.get("exit_code"), result.get("stdout"),
            result.get("stderr")) == (3, "hi! 2 'q'\n", "err\n"), result
    assert "shell" not in result
    assert agent.good("pwd; echo ${BASH_VERSION:+bash}") == \
        "%s\nbash\n" % account.home
    if name in RC_FILES:
        assert agent.good("echo $FROM_RC") == "yes\n"
    assert agent.run("kill -9 $$")["signal"] == 9
    kill_all(agent, {name: {**PLAIN, **ORPHANS}[name] for name in (
        "plain", "setsid -f", "orphan of a cleared environment")}, new_tag)


@needs_root
def test_noisy_rc_files(new_account, new_agent, sshd):
    """A megabyte on each stream, and another for each shell of its own."""
    account = new_account()
    noise = ("head -c 500000 /dev/urandom | base64; "
             "head -c 500000 /dev/urandom | base64 >&2\n")
    write_rc(account, ".bashrc", noise + "export BASH_ENV=~/.env\n"
             "cd() { builtin cd \"$@\" && echo cd; }; export -f cd\n"
             "export CDPATH=/:/usr PS4=x IFS=x\n")
    write_rc(account, ".env", "echo env; echo env >&2\n")
    agent = new_agent(sshd.entry(user=account.name))
    for _ in range(4):
        result = agent.run("echo hi; echo err >&2; pwd", cwd="~")
        assert not result.failed, result
        assert result["stdout"] == "hi\n%s\n" % account.home, result
        assert result["stderr"] == "err\n"
    result = agent.run("pwd", cwd="bin")    # CDPATH is for people
    assert result.failed and "cwd" in result["error"], result


@needs_root
def test_slow_rc_files(new_account, new_agent, sshd):
    """Are read before a call wants its shell."""
    account = new_account()
    write_rc(account, ".bashrc", "sleep 0.5\n")
    agent = new_agent(sshd.entry(user=account.name))
    first = agent.run("echo hi")
    assert first["stdout"] == "hi\n"
    took = sorted(agent.run("echo hi").seconds for _ in range(10))
    print("first %.2f s, then %.1f ms" % (first.seconds, took[5] * 1000))
    assert took[5] < 0.1 * rsmcp.SLOW
    assert first.seconds < 6 * rsmcp.SLOW


@needs_root
@pytest.mark.parametrize("rc", ["exit 0", "echo Account expired; exit 1"])
def test_rc_files_that_let_nobody_in(new_account, new_agent, sshd, rc):
    """One clear error, soon, and no command that ran."""
    account = new_account()
    write_rc(account, ".bashrc", rc + "\n")
    agent = new_agent(sshd.entry(user=account.name))
    result = agent.run("echo hi")
    assert result.failed and result.seconds < 8 * rsmcp.SLOW, result
    print(result["error"])
    assert "shell" in result["error"]
    if "expired" in rc:
        assert "Account expired" in result["error"]


@needs_root
@pytest.mark.long
def test_rc_files_that_start_another_shell(new_account, new_agent, sshd):
    account = new_account(shell="/bin/bash")
    write_rc(account, ".bashrc", "exec sh\n")
    agent = new_agent(sshd.entry(user=account.name))
    result = agent.run("echo hi; exit 3", timeout=120 * rsmcp.SLOW)
    print("%.2f s: %s" % (result.seconds, result))
    assert result.seconds < 45 * rsmcp.SLOW
    assert result.failed or \
        (result["exit_code"], result["stdout"]) == (3, "hi\n"), result


@needs_root
def test_no_shell_at_all(new_account, new_agent, sshd):
    account = new_account(shell=shutil.which("false"))
    agent = new_agent(sshd.entry(user=account.name))
    result = agent.run("echo hi")
    assert result.failed and result.seconds < 8 * rsmcp.SLOW
    print(result["error"])
    assert "shell" in result["error"]


def test_messages_of_the_server(new_agent, new_sshd, tmp_path):
    """A banner before the login, a message of the day behind it."""
    banner = tmp_path / "banner"
    banner.write_text("All you do\nis watched.\n")
    server = new_sshd("Banner %s" % banner, "PrintMotd yes",
                      "PrintLastLog yes")
    agent = new_agent(server.entry())
    result = agent.run("echo hi; echo err >&2")
    assert (result["stdout"], result["stderr"]) == ("hi\n", "err\n")


@needs_root
def test_no_signal_is_ignored_where_python_stands_in(hiding, new_agent, tag):
    """Those that it ignores itself would be for whatever it starts."""
    agent = new_agent(hiding("perl"))
    ignored = agent.good("grep SigIgn /proc/self/status").split()[1]
    assert int(ignored, 16) == 0
    assert agent.good("yes | head -n 1; echo ${PIPESTATUS[0]}") == "y\n141\n"
    # The one that would end it cannot; so it ends of what nobody reads.
    agent.begin("bash -c 'kill -STOP $1; while :; do echo x; done' %s "
                "`pgrep -o -U $UID -f 'trap \"\" HUP PIPE'`" % tag,
                timeout_s=1)
    tag.runs()
    tag.ends(within=rsmcp.PATIENCE_S)


@needs_root
def test_a_small_python_will_do(programs_without, new_agent, new_sshd,
                                account):
    """One without ctypes makes no subreaper, but a shell comes up."""
    path = programs_without("perl", "python", "ctypes")
    real = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    (path / "python3").write_text(
        "#!/bin/sh\nshift\nexec %s -c 'import sys; "
        "sys.modules[\"ctypes\"] = None; code = sys.argv.pop(1); "
        "exec(code)' \"$@\"\n" % real)
    (path / "python3").chmod(0o755)
    server = new_sshd("SetEnv PATH=%s" % path)
    agent = new_agent(server.entry(user=account.name))
    assert agent.good("echo hi; grep SigIgn /proc/self/status") == \
        "hi\nSigIgn:\t0000000000000000\n"


@needs_root
def test_a_host_without_bash(hiding, new_agent):
    agent = new_agent(hiding("bash", "rbash"))
    for _ in range(3):
        result = agent.run("echo hi; echo err >&2; exit 3")
        assert (result["exit_code"], result["stdout"], result["stderr"],
                result["shell"]) == (3, "hi\n", "err\n", "sh")
    assert agent.good("echo ${BASH_VERSION-none}") == "none\n"


def test_remote_command_in_the_config(home, new_agent, sshd):
    """It is meant for a person's terminal."""
    (home.home / ".ssh" / "config").write_text(
        "Host box\n\tHostName 127.0.0.1\n\tPort %d\n\tUser %s\n"
        "\tIdentityFile %s\n\tRemoteCommand echo mine; exec sleep 60\n"
        "\tRequestTTY force\n\tLocalCommand echo local\n"
        "\tPermitLocalCommand yes\n\tSessionType none\n"
        "\tLogLevel QUIET\n\tStdinNull yes\n\tForkAfterAuthentication no\n"
        "\tControlMaster auto\n\tControlPath ~/.ssh/c-%%C\n"
        "\tControlPersist no\n\tEscapeChar ~\n"
        % (sshd.port, sshd.user, sshd.key))
    agent = new_agent({"host": "box"})
    result = agent.run("echo hi; exit 3")
    assert (result.get("exit_code"), result.get("stdout")) == (3, "hi\n"), \
        result
    assert not list((home.home / ".ssh").glob("c-*"))


# --- By hand ------------------------------------------------------------------

def by_hand(home, sshd, command, ignored=()):
    """Call the tool from a shell, so to say; its process."""
    def ignore():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
    return subprocess.Popen(
        [os.path.abspath(rsmcp.SERVER), "call", "exec_bash",
         "command=" + command], cwd=home.home, stdout=subprocess.PIPE,
        text=True, preexec_fn=ignore, env=rsmcp.environment(
            home.home, **home.env([sshd.entry()])))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_call_by_hand_that_is_ended_is_no_success(home, sshd, tag, number):
    """`call exec_bash ... && deploy`"""
    with by_hand(home, sshd, "sleep %s" % tag) as process:
        tag.runs()
        process.send_signal(number)
        process.communicate(timeout=rsmcp.PATIENCE_S)
        assert process.returncode == 1
    tag.ends(within=rsmcp.PATIENCE_S)


def test_a_call_by_hand_that_times_out_is_no_success(home, sshd):
    done = home.command("call", "exec_bash", "command=echo some; sleep 100",
                        "timeout_s=1", entries=[sshd.entry()])
    assert done.returncode == 1 and "some" in done.stdout, done
    done = home.command("call", "exec_bash", "command=exit 3",
                        entries=[sshd.entry()])
    assert done.returncode == 0, done
    done = home.command("call", "wait_for_events", "timeout_s=0",
                        entries=[sshd.entry()])
    assert done.returncode == 0, done       # that is no command


def test_signals_that_were_ignored_stay_so(home, sshd, tag):
    """nohup.  And who ignores the end of children does not mean ours."""
    with by_hand(home, sshd, "sleep %s; echo on" % tag,
                 [signal.SIGHUP, signal.SIGINT, signal.SIGCHLD]) as process:
        tag.runs()
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None
        tag.kill()
        out, _ = process.communicate(timeout=rsmcp.PATIENCE_S)
        assert process.returncode == 0 and "on" in out
