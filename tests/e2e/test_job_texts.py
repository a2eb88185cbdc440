"""What jobs are made of on a host (src/job/far), run by the shells there are.

No network: that is in test_jobs.py.
"""

import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import pytest

import agent as agents
import far_jobs
import rsmcp
import sshd as ssh_servers

pytestmark = rsmcp.needs_proc
needs_root = pytest.mark.skipif(
    not ssh_servers.ROOT, reason="only root can mount")
needs_tmux = pytest.mark.skipif(
    not shutil.which("tmux"), reason="there is no tmux")

SHELLS = ["bash", "dash", "busybox", "bare"]


@pytest.fixture(scope="session")
def paths():
    """PATH for each shell; "bare" has busybox and nothing else."""
    place = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="p"))
    place.chmod(0o755)
    busybox = shutil.which("busybox")
    made = {}

    def get(name):
        if name not in made:
            path = made[name] = place / name
            if name == "bare":
                path.mkdir()
                subprocess.run([busybox, "--install", "-s", path], check=True)
                return path
            agents.programs(path, "sh")
            for program in pathlib.Path("/usr/bin").glob("sh*"):
                if program.name != "sh":
                    (path / program.name).symlink_to(program)
            target = path / name if name != "busybox" else busybox
            (path / "sh").symlink_to(target)
        return made[name]

    yield get
    shutil.rmtree(place)


@pytest.fixture
def new_host(paths):
    made = []

    def make(shell="bash", home=None, wrap=(), path=None):
        if home is None:
            home = pathlib.Path(tempfile.mkdtemp(
                dir="/tmp", prefix="it's a \"h\" ")) / "$HOME *"
        path = path or paths(shell)
        made.append(far_jobs.Host(home, [str(path / "sh")], path, wrap))
        return made[-1]

    yield make
    for host in made:
        host.close()
        shutil.rmtree(host.home.parent, ignore_errors=True)


@pytest.fixture(params=SHELLS)
def host(request, new_host):
    return new_host(request.param)


@pytest.fixture
def bash_host(new_host):
    return new_host()


@pytest.fixture
def small_disk():
    """A disk of a megabyte."""
    path = tempfile.mkdtemp(dir="/tmp", prefix="d")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", path],
                   check=True)
    yield pathlib.Path(path)
    subprocess.run(["umount", "-l", path], check=True)
    os.rmdir(path)


def fill(path):
    with open(path / "filler", "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass


def has(host, program):
    return (pathlib.Path(host.path) / program).exists()


# --- How a job ends ---------------------------------------------------------

def test_every_end_is_known(host):
    wrong = []
    for command, state, what in [
            ("echo hi", "exited", 0),
            ("exit 3", "exited", 3),
            ("exec sh -c 'exit 4'", "exited", 4),
            ("set -e; false; echo no", "exited", 1),
            ("set -u; echo $nothing; echo no", "exited", None),
            ("echo begun; if", "exited", 2),
            ("no_such_program", "exited", 127),
            ("exit 137", "exited", 137),
            ("kill -9 $$", "killed", 9),
            ("kill -TERM $$; sleep 5", "killed", 15),
            ("trap 'exit 5' TERM; kill $$; sleep 5", "exited", 5),
            ("kill -TERM 0; sleep 5", "killed", 15),
            ("cat; echo $?", "exited", 0),
            ("printf EXIT_CODE=9", "exited", 0)]:
        answer = host.start("j", command)
        look = host.over()
        good = look.state == state and \
            (what is None and look.what != "0" or look.what == str(what))
        code = int(look.what) + (128 if look.state == "killed" else 0)
        line = b"\nEXIT_CODE=%d\n" % code
        if answer[0] != "ok" or not good or not look.bytes.endswith(line):
            wrong.append((command, answer, look))
    assert not wrong


def test_log_has_the_header_and_the_last_line(host):
    answer = host.start("j", "echo out; echo err >&2; printf abc")
    host.over()
    lines = host.log().split("\n")
    assert lines[0] == "== session: j"
    assert lines[1].startswith("== started_at: 20") and lines[1][-1] == "Z"
    assert lines[2:] == ["== command: a title", "out", "err", "abc",
                         "EXIT_CODE=0", ""]
    assert " ".join(answer[4:]) == str(host.home / ".codex_logs/j.log")


def test_killed_runner_is_lost_and_its_orphans_are_counted(host):
    host.start("j", "sleep 77 & sleep 77 & echo >~/up; wait")
    rsmcp.until("it runs", (host.home / "up").exists)
    runner = int((host.run_dir() / "pid").read_text().split()[0])
    os.kill(runner, signal.SIGKILL)
    look = rsmcp.until("it is lost", lambda: (
        lambda l: l if l.state == "lost" else None)(host.look()))
    assert (look.what, look.orphans) == ("runner", "3")
    # Its name is not free while they run.
    answer = host.start("j", "true")
    assert (answer[0], answer[1], answer[3]) == ("exists", "1", "3")
    for pid in ssh_servers.pids():
        try:
            if b"job." in pathlib.Path(
                    "/proc/%d/environ" % pid).read_bytes() and \
                    str(host.home).encode() in pathlib.Path(
                        "/proc/%d/environ" % pid).read_bytes():
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    rsmcp.until("they are gone", lambda: host.look().orphans == "0")
    assert host.start("j", "true")[:2] == ["ok", "2"]
    assert host.over().what == "0"


@pytest.mark.parametrize("end, state, what", [
    ("exit 3", "exited", "3"), ("kill -9 $$", "killed", "9")])
def test_what_an_ended_job_left_running_is_counted(host, end, state, what):
    host.start("j", "sleep 77 & sleep 77 & " + end)
    look = host.over()
    assert (look.state, look.what, look.orphans) == (state, what, "2")
    for pid in look.left.split():
        assert b"sleep\x0077" in ssh_servers.words_of(int(pid))
    host.start("none", "true")
    assert host.over("none").orphans == "0"
    rows = host.run("list", A=0).decode().split("\n\n")
    told = {row.split("\n")[0]: row for row in rows}
    assert "\norphans 2\n" in told["name j"]
    assert "\norphans 0\n" in told["name none"]
    # They do not hold the name, and are no orphans of the next run.
    assert host.start("j", "true")[:2] == ["ok", "2"]
    assert host.over().orphans == "0"


@pytest.mark.parametrize("where", ["login", "env"])
def test_shells_that_complain_do_not_change_the_end(host, where):
    """A bash complains about a locale that the host does not have, and that
    is not what it says about a signal."""
    locale = "xx_YY.UTF-8"
    for number, (command, state, what) in enumerate([
            ("exit 255", "exited", "255"), ("exit 130", "exited", "130"),
            ("kill -9 $$", "killed", "9"),
            ("kill -TERM $$; sleep 5", "killed", "15")]):
        name = "j%d" % number
        if where == "env":
            host.start(name, command, V="export LC_ALL=" + locale)
        else:
            host.env["LC_ALL"] = locale
            process = host.begin_start(name, command)
            host.env["LC_ALL"] = "C.UTF-8"
            out, _ = process.communicate(process.script.encode())
            assert out.startswith(b"ok "), out
        look = host.over(name)
        assert (look.state, look.what) == (state, what), command


def test_two_killed_commands_do_not_mix(host):
    """The message of the shell about one is not taken for the other's."""
    host.start("a", "kill -9 $$")
    host.start("b", "exit 137")
    assert host.over("a").state == "killed"
    assert host.over("b").state == "exited"


@needs_root
@pytest.mark.parametrize("shell", SHELLS)
def test_another_boot_is_a_loss(new_host, shell, tmp_path):
    host = new_host(shell)
    host.start("j", "sleep 77")
    rsmcp.until("it runs", lambda: host.look().state == "running")
    boot = tmp_path / "boot"
    boot.write_text("00000000-0000-0000-0000-000000000000\n")
    host.wrap = ["unshare", "-m", "sh", "-c", "mount --bind %s "
                 "/proc/sys/kernel/random/boot_id && exec \"$@\"" % boot, "x"]
    look = host.look()
    assert (look.state, look.what) == ("lost", "reboot")
    assert host.start("j", "true")[:2] == ["ok", "2"]
    assert host.over().state == "exited"
    host.wrap = []
    look = host.look()
    assert look.state == "exited"       # what is written down stays


@needs_root
@pytest.mark.parametrize("shell", SHELLS)
def test_another_machine_with_the_same_home(new_host, shell, tmp_path):
    """Login nodes behind one name: no reboot is concluded from another boot."""
    host = new_host(shell)
    host.start("j", "sleep 77")
    rsmcp.until("it runs", lambda: host.look().state == "running")
    name = (host.run_dir() / "node").read_text().strip()
    assert name == os.uname().nodename
    boot = tmp_path / "boot"
    boot.write_text("00000000-0000-0000-0000-000000000000\n")
    host.wrap = ["unshare", "-m", "-u", "sh", "-c",
                 "hostname another && mount --bind %s "
                 "/proc/sys/kernel/random/boot_id && exec \"$@\"" % boot, "x"]
    look = host.look()
    assert (look.state, look.what) == ("running", "elsewhere " + name)
    assert host.start("j", "true")[:2] == ["exists", "1"]
    said = host.run("stop", N="j", G=100, T="echo ended", E="")
    assert said.decode() == "was 0\nstate elsewhere %s\nleft \n" % name
    os.utime(host.run_dir(), (0, 0))
    said = host.run("list", A=1).decode()
    assert "\nstate running\nwhat elsewhere %s\n" % name in said
    assert said.endswith("gone 0\n\n")
    # One that has not begun may begin there.
    (host.run_dir() / "pid").unlink()
    assert host.look().what == "elsewhere " + name
    # Records of before are as they were, and an end is an end.
    (host.run_dir() / "node").unlink()
    look = host.look()
    assert (look.state, look.what) == ("lost", "reboot")
    (host.run_dir() / "exit").write_text("exited 5 9\n")
    (host.run_dir() / "node").write_text(name + "\n")
    assert host.look().state == "exited"


@needs_root
@pytest.mark.parametrize("shell", SHELLS)
def test_full_disk_loses_no_end(new_host, small_disk, shell):
    for number, (command, state, what) in enumerate([
            ("sleep 0.5; echo much; exit 7", "exited", "7"),
            ("sleep 0.5; kill -9 $$", "killed", "9")]):
        home = small_disk / ("h%d" % number)
        host = new_host(shell, home=home)
        host.start("j", command)
        fill(small_disk)
        look = host.over()
        assert (look.state, look.what) == (state, what), look
        # A start says so and leaves nothing behind.
        answer = host.start("k", "true")
        assert answer[0] == "bad" and "full" in " ".join(answer), answer
        assert not list(host.jobs.glob("k/r*"))
        (small_disk / "filler").unlink()
        assert host.start("k", "true")[0] == "ok"
        host.over("k")


def test_removed_log_directory(host):
    host.start("j", "sleep 0.5; echo more; exit 6")
    rsmcp.until("it runs", lambda: host.look().state == "running")
    shutil.rmtree(host.home / ".codex_logs")
    look = host.over()
    assert (look.state, look.what, look["size"]) == ("exited", "6", "-1")
    assert host.start("j", "echo again")[0] == "ok"
    assert host.over().what == "0"
    assert "again" in host.log()


def test_removed_cwd(host):
    (host.home / "c").mkdir()
    host.start("j", "sleep 0.5; exit 6", C="c", L="~/l")
    shutil.rmtree(host.home / "c")
    assert host.over().what == "6"


# --- Starting ---------------------------------------------------------------

def starts(host, count, **values):
    """So many at once; their answers."""
    running = [host.begin_start(**{key: value(i) if callable(value) else value
                                   for key, value in values.items()})
               for i in range(count)]
    for process in running:
        process.stdin.write(process.script.encode())
    for process in running:
        process.stdin.close()
    answers = [process.stdout.read().decode().split() for process in running]
    for process in running:
        assert process.stderr.read() == b""
        process.stdout.close()
        process.stderr.close()
        process.wait()
    return answers


def test_one_of_eight_starts_wins(host):
    answers = starts(host, 8, command="echo run >>~/count; sleep 1")
    words = sorted(answer[0] for answer in answers)
    assert words == ["exists"] * 7 + ["ok"], answers
    host.over()
    assert (host.home / "count").read_text() == "run\n"


def test_one_of_eight_starts_with_a_key_wins(host):
    answers = starts(host, 8, K="key", command="echo run >>~/count; sleep 1")
    words = sorted(answer[0] for answer in answers)
    assert words == ["again"] * 7 + ["ok"], answers
    host.over()
    assert host.start("j", "echo run >>~/count", K="key")[0] == "again"
    assert (host.home / "count").read_text() == "run\n"


def test_one_of_eight_starts_with_names_of_their_own_wins(host):
    answers = starts(host, 8, K="key", name=lambda i: "n%d" % i,
                     command="echo run >>~/count; sleep 1")
    words = sorted(answer[0] for answer in answers)
    assert words == ["again"] * 7 + ["ok"], answers
    [winner] = host.jobs.glob("n*/r1")
    assert {answer[6] for answer in answers if answer[0] == "again"} == \
        {winner.parent.name}
    host.over(winner.parent.name)
    assert (host.home / "count").read_text() == "run\n"


def test_start_after_a_certain_run(host):
    """Which a resume asks for: nobody else may have started one since."""
    assert host.start("j", "true", I="one")[0] == "ok"
    host.over()
    assert host.start("j", "true", I="two")[0] == "ok"
    host.over()
    answer = host.start("j", "true", P="one", K="key")
    assert answer[:2] + answer[5:7] == ["exists", "2", "two", "j"]
    assert host.start("j", "true", P="two", I="three", K="key")[0] == "ok"
    # What was started under the key is found first.
    answer = host.start("j", "true", P="two", K="key")
    assert answer[:2] + answer[5:7] == ["again", "3", "three", "j"]


def test_look_at_a_certain_run(host):
    for word, code in (("one", 3), ("two", 4)):
        host.start("j", "echo %s; exit %d" % (word, code), I=word)
        host.over()
    for word, run, code in (("one", "1", "3"), ("two", "2", "4")):
        look = host.look(I=word)
        assert (look["run"], look["newest"], look["what"]) == (run, "2", code)
        # The log goes on with the next run.
        log = look["bytes"][:look.int("offset") - look.int("at")]
        assert log.decode().splitlines()[3:] == [word, "EXIT_CODE=" + code]
    look = host.look(I="three", L=".codex_logs/j.log")
    assert (look["run"], look["newest"], look.state) == ("0", "2", "none")


def test_short_jobs_in_a_row_lose_no_start(host):
    """A name is free as soon as its job has ended."""
    for number in range(1, 6):
        rsmcp.until("the name is free",
                    lambda: host.start("j", "true")[0] == "ok")
        assert host.run_dir(number=number).is_dir()
        host.over()


def uptime():
    return int(float(pathlib.Path("/proc/uptime").read_text().split()[0]))


def unfinished(host, name, age, key=None, wait=False):
    """What a starter leaves that dies on the way."""
    run = host.jobs / name / "r1"
    run.mkdir(parents=True)
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (run / "started").write_text("%d %s\n" % (time.time() - age, boot))
    (run / "id").write_text("%s %s 1\n" % (secrets.token_hex(16), name))
    (run / "log").write_text("%s\n" % (host.home / "log"))
    if wait:
        (run / "wait").touch()
    if key:
        (host.jobs / ".keys").mkdir()
        (host.jobs / ".keys" / (key + ".0")).symlink_to("../%s/r1" % name)
    return run


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_is_set_while_a_job_is_started(host, hours):
    """How long that takes is told by a clock that nobody sets."""
    run = unfinished(host, "j", hours * 3600)
    words = (run / "started").read_text().strip()
    (run / "started").write_text("%s %d\n" % (words, uptime() - 5))
    assert host.look().state == "starting"
    (run / "started").write_text("%s %d\n" % (words, uptime() - 100))
    look = host.look()
    assert (look.state, look.what) == ("lost", "start")


def test_a_clock_that_is_set_before_a_start_has_noted_it(host):
    """Then the directory of the run looks old, and is new."""
    run = unfinished(host, "j", 5)
    words = (run / "started").read_text().strip()
    (run / "started").unlink()
    old = time.time() - 7200
    os.utime(run, (old, old))
    look = host.look()
    assert (look.state, look.what) == ("lost", "start")

    def note():
        os.utime(run, (old, old))
        time.sleep(0.3)
        (run / "new").write_text("%s %d\n" % (words, uptime()))
        (run / "new").rename(run / "started")
    starter = threading.Thread(target=note)
    starter.start()
    assert host.look().state == "starting"
    starter.join()


def test_a_start_notes_the_clock_that_nobody_sets(host):
    host.start("j", "true")
    host.over()
    words = (host.run_dir() / "started").read_text().split()
    assert 0 <= uptime() - int(words[2]) < 100


@pytest.mark.parametrize("wait", [False, True])
def test_starter_that_died_gives_name_and_key_back(host, wait):
    run = unfinished(host, "j", 5, "key", wait)
    assert host.look().state == "starting"
    assert host.start("j", "true", K="key")[0] == "again"
    assert host.start("j", "true")[0] == "exists"
    boot = (run / "started").read_text().split()[1]
    (run / "started").write_text("%d %s\n" % (time.time() - 100, boot))
    look = host.look()
    assert (look.state, look.what) == ("lost", "start")
    assert host.start("j", "exit 3", K="key")[:2] == ["ok", "2"]
    assert host.over().what == "3"
    assert host.start("j", "true", K="key")[:2] == ["again", "2"]
    # What was given up does not come to life.
    assert not (run / "wait").exists() and (run / "off").exists()


def test_what_was_given_up_does_not_begin_later(host):
    """The runner of a start that took too long finds that it is off."""
    host.start("j", "true")
    host.over()
    done = host.run_dir()
    for name in ("exit", "pid", "child"):
        (done / name).unlink()
    for name in ("exit.new", "pid.new", "child"):
        (done / name).write_text(" " * 127 + "\n")
    (done / "cmd").write_text("echo ran >~/ran")
    (done / "off").touch()
    subprocess.run([*host.shell, done / "run"], env=host.env,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert not (host.home / "ran").exists()
    assert host.look().state == "lost"


def test_a_job_that_is_started_while_it_is_looked_for(new_host, tmp_path):
    """Its log is there by then, and is not taken for one of a lost job."""
    path = agents.programs(tmp_path / "bin", "tmux")
    (path / "tmux").write_text(
        "#!/bin/sh\nmkdir -p ~/.codex_logs "
        "~/.local/state/remote-sandbox-mcp/jobs/j/r1\n"
        "echo '== session: j' >~/.codex_logs/j.log\nexit 1\n")
    (path / "tmux").chmod(0o755)
    look = new_host(path=path).look()
    assert (look.state, look.run) == ("starting", "1")


def test_a_runner_that_gives_up_was_not_killed(host):
    """It takes its pid away and goes, perhaps in the middle of a look."""
    host.start("j", "true")
    host.over()
    run = host.run_dir()
    (run / "exit").unlink()
    (run / "off").touch()
    script = far_jobs.assignments({"D": run}) \
        + far_jobs.text("ident", "common") \
        + 'tick() { rm "$D/pid"; return 1; }\nst "$D"; echo $s $w\n'
    done = subprocess.run(host.shell, input=script, env=host.env, text=True,
                          capture_output=True)
    assert (done.stdout, done.stderr) == ("lost start\n", "")


def test_what_was_not_started_is_no_lost_job(host):
    """Not even if the head of its log was written before it failed."""
    (host.jobs / ".keys").mkdir(parents=True)
    (host.jobs / ".keys/key.0").touch()     # no link can be made there
    assert host.start("j", "true", K="key")[0] == "bad"
    assert "== not started: cannot make" in host.log()
    assert host.look().state == "none"
    assert host.start("j", "exit 3")[0] == "ok"
    assert host.over().what == "3"


def test_key_of_a_job_that_was_cleaned_up_is_free(host):
    host.start("j", "true", K="key")
    host.over()
    shutil.rmtree(host.jobs / "j")
    assert host.start("j", "true", K="key")[:2] == ["ok", "1"]


def test_start_that_comes_too_late(host):
    assert host.start("j", "echo no >~/no", T=uptime() - 5) == ["stale"]
    assert not host.jobs.exists()
    assert host.start("j", "true", T=uptime() + 5)[0] == "ok"
    host.over()


def odd_mkdir(tmp_path, text):
    """All programs, and a mkdir that does something else first."""
    path = agents.programs(tmp_path / "bin", "mkdir")
    (path / "mkdir").write_text("#!/bin/sh\n%s\nexec %s \"$@\"\n"
                                % (text, shutil.which("mkdir")))
    (path / "mkdir").chmod(0o755)
    return path


def test_start_that_is_kept_waiting(new_host, tmp_path):
    """As by a disk that does not answer.  It came in time, but was given up."""
    path = odd_mkdir(tmp_path, 'case $* in */r1) sleep 5;; esac')
    host = new_host(path=path)
    said = host.start("j", "echo no >~/no", T=uptime() + 1)
    assert said[0] == "bad" and "too long" in " ".join(said), said
    assert not (host.jobs / "j" / "r1").exists()
    assert not (host.home / "no").exists()


def test_key_of_a_start_that_failed_is_free(new_host, tmp_path):
    """Also when another job has got its place."""
    path = odd_mkdir(tmp_path, 'case $* in */r1) [ -e ~/fine ] || '
                     '%s -p "$2/wait";; esac' % shutil.which("mkdir"))
    host = new_host(path=path)
    assert host.start("j", "true", K="one")[0] == "bad"
    (host.home / "fine").touch()
    assert host.start("j", "true", K="two")[0] == "ok"
    host.over()
    assert host.start("i", "true", K="one")[0] == "ok"
    host.over("i")


def test_working_directory(host):
    (host.home / "a b; echo").mkdir()
    for given, expected in [("", host.home), ("~", host.home),
                            ("a b; echo", host.home / "a b; echo"),
                            ("~/a b; echo", host.home / "a b; echo"),
                            ("/", "/")]:
        host.start("j", "pwd >~/where", C=given, L="~/log")
        host.over()
        assert (host.home / "where").read_text() == "%s\n" % expected
    answer = host.start("j", "true", C="missing")
    assert " ".join(answer) == "cwd %s/missing" % host.home
    assert not (host.home / "missing").exists()


def test_log_paths(host):
    for given, path in [("~/my 'log' \"here\"", "my 'log' \"here\""),
                        ("new/dir/x.log", "new/dir/x.log"),
                        (str(host.home / "$x `y`"), "$x `y`"),
                        ("-n", "-n")]:
        host.start("j", "echo hi", L=given)
        look = host.over()
        assert look.log == str(host.home / path)
        assert b"\nhi\n" in (host.home / path).read_bytes()
        assert b"\nhi\n" in look.bytes
    (host.home / "dir").mkdir()
    answer = " ".join(host.start("j", "true", L="dir"))
    assert answer == "bad the log %s/dir is not a file" % host.home
    answer = " ".join(host.start("j", "true", L="/proc/nothing/x"))
    assert answer == "bad cannot write to the log /proc/nothing/x"
    assert host.start("j", "true", L="/dev/null")[0] == "ok"
    assert host.over().what == "0"


def test_environment(host):
    host.start("j", "echo \"$A|$D|$PYTHONUNBUFFERED|$RSMCP_CALL\" >~/env",
               V="export A='it'\\''s \"$x\"'\nexport D=/nowhere\n")
    host.over()
    words = (host.home / "env").read_text().strip().split("|")
    assert words[:3] == ["it's \"$x\"", "/nowhere", "1"]
    mark = (host.run_dir() / "id").read_text().split()[0]
    assert words[3] == "job.%s." % mark
    # Nobody else may read what was passed.
    assert host.jobs.stat().st_mode & 0o777 == 0o700


def test_interrupt_is_not_ignored(host):
    """Unless nothing there can undo that the shell of a "&" ignores it."""
    host.start("j", "echo $$ >~/pid; kill -INT $$; echo still here")
    look = host.over()
    if has(host, "perl") or has(host, "bash"):
        assert look.what == "130" and b"\nstill" not in look.bytes
    else:
        assert look.what == "0" and b"\nstill here\n" in look.bytes
    # The one it is known by is the command.
    assert (host.home / "pid").read_text().strip() == look.pid


def test_commands_of_any_content(host):
    command = "cat <<'__RSMCP_BG__' >~/out\nit's \"$x\" `y` \\ \\\\ %s\n" \
        "\ttab\n# no comment\n__RSMCP_BG__\n" + "# " + "x" * 100000
    host.start("j", command)
    assert host.over().what == "0"
    assert (host.home / "out").read_text() == \
        "it's \"$x\" `y` \\ \\\\ %s\n\ttab\n# no comment\n"


def test_thousands_of_runs(host):
    host.start("j", "true")
    host.over()
    for number in range(2, 3001):
        os.symlink("r1", host.jobs / "j" / ("r%d" % number))
    (host.jobs / "j" / "newest").unlink()
    assert host.look().run == "3000"
    (host.jobs / "j" / "newest").write_text("2998\n")
    assert host.look().run == "3000"
    (host.jobs / "j" / "newest").write_text("")
    assert host.start("j", "true")[:2] == ["ok", "3001"]
    assert host.over().run == "3001"


def test_old_runs_go(bash_host):
    host = bash_host
    for number in range(53):
        host.start("j", "true")
        host.over()
    rsmcp.until("the first are gone", lambda: sorted(
        int(path.name[1:]) for path in host.jobs.glob("j/r*"))[0] > 2)
    assert len(list(host.jobs.glob("j/r*"))) >= 50


# --- Looking ----------------------------------------------------------------

def test_new_run_does_not_show_the_old_one(host):
    host.start("j", "echo first; exit 3")
    host.over()
    host.start("j", "echo second; sleep 77")
    look = rsmcp.until("it speaks", lambda: (
        lambda l: l if b"\nsecond\n" in l.bytes else None)(host.look()))
    assert look.state == "running" and look.what == "-"
    assert b"first" not in look.bytes and b"EXIT_CODE" not in look.bytes


def test_record_that_makes_no_sense(host):
    host.start("j", "true")
    host.over()
    (host.run_dir() / "exit").write_text(" " * 63 + "\n")
    look = host.look()
    assert (look.state, look.what) == ("lost", "record")


def test_nothing_and_nobody(host):
    look = host.look("nobody")
    assert (look.state, look.run, look["size"]) == ("none", "0", "-1")


@pytest.mark.parametrize("content", [
    b"", b"\n\n", b"no newline", b"a\0b\nc\0", b"\xe2\x98\x83\n\xff\xe2\x98",
    b"x" * 16383, b"x" * 16384, b"x" * 16385, b"y\n" * 30000])
def test_every_byte_comes_however_the_log_is_read(host, content):
    host.start("j", "true", L="~/log")
    host.over()
    log = host.home / "log"
    log.write_bytes(content)
    look = host.look(O=0, Z=100000)
    assert (look["size"], look.bytes[:look.int("offset")]) == \
        (str(len(content)), content)
    for offset in (1, 2, 5, 4096, 16384, len(content)):
        if 0 < offset <= len(content):
            look = host.look(O=offset, Z=100000)
            assert look.bytes == content[offset:]
            assert (look.offset, look.replaced) == (str(len(content)), "0")
    assert host.look(O=len(content) + 1).replaced == "1"
    look = host.look(O=0, Z=3)
    assert look.bytes[:3] == content[:3]
    assert look.offset == str(min(3, len(content)))
    # Another run in the same file begins in the middle of it.
    (host.run_dir() / "begin").write_text("%d\n" % (len(content) // 2))
    look = host.look(Z=100000)
    if len(content) < 16384:
        assert look.bytes[:look.int("offset") - look.int("at")] == \
            content[len(content) // 2:]


def test_small_log_needs_no_program(bash_host, tmp_path):
    """To start one takes longer than all the rest of a look."""
    host = bash_host
    host.start("j", "echo hi; sleep 77")
    rsmcp.until("it runs", lambda: b"\nhi\n" in host.look().bytes)
    (tmp_path / "nothing").mkdir()
    path = host.env["PATH"]
    host.env["PATH"] = str(tmp_path / "nothing")
    look = host.look()
    host.env["PATH"] = path
    assert look.state == "running"
    assert look.bytes.endswith(b"\nhi\n")
    assert look["size"] == look.offset == str(len(look.bytes))


def test_wait_for_output_and_for_the_end(host):
    host.start("j", "sleep 0.7; echo new; sleep 77")
    size = int(rsmcp.until("it runs", lambda: (
        lambda l: l if l.state == "running" else None)(host.look()))["size"])
    look = host.look(O=size, W=20)
    assert look.state == "running" and look.bytes.endswith(b"new\n")
    begun = time.monotonic()
    assert host.look(O=int(look.offset), W=1).bytes == b""
    assert time.monotonic() - begun > 0.5
    host.start("k", "echo hi; sleep 1; exit 4")
    look = host.look("k", W=30, E=1)
    assert (look.state, look.what) == ("exited", "4")
    assert look.bytes.endswith(b"hi\nEXIT_CODE=4\n")
    # One that is past the end has nothing to wait for.
    begun = time.monotonic()
    assert host.look(O=10 ** 9, W=20).replaced == "1"
    assert time.monotonic() - begun < 10


def test_grep_judges_an_expression(host):
    host.start("j", "echo aab")
    host.over()
    for bad in ("(", "[a", "a{2,1}", "*(", "\\", "a" + "+" * 40):
        look = host.look(G=bad)
        assert look.state == "none" and look.expression[:2] == "2 ", bad
        assert "grep: " in look.expression
    assert host.look(G="^a{2}").bytes == b"aab\n"


def test_expression_waits_for_whole_lines(host):
    host.start("j", "echo zero; printf 'epo'; sleep 0.7; echo 'ch 1'; "
               "echo other; sleep 77")
    look = host.look(O=0, G="^epoch", W=20)
    assert look.bytes.endswith(look.mark.encode() + b"\n")
    lines = look.bytes.split(b"\n")
    assert lines[0] == b"epoch 1", lines


# --- Jobs of the seed -------------------------------------------------------

@needs_tmux
def test_job_of_the_seed(bash_host):
    host = bash_host
    log = host.home / ".codex_logs" / "old.log"
    log.parent.mkdir()
    log.write_text("== session: old\n== started_at: x\n== command: x\n"
                   "EXIT_CODE=5\n")

    def tmux(*words):
        subprocess.run(["tmux", *words], env=host.env, check=True)

    look = host.look("old")
    assert (look.state, look.what, look.run) == ("exited", "5", "0")
    tmux("new-session", "-d", "-s", "old", "sleep 77")
    tmux("new-session", "-d", "-s", "older", "sleep 77")
    assert host.look("old").state == "running"
    tmux("kill-session", "-t", "=old")
    # The last word is about another run.
    with open(log, "a") as file:
        file.write("== session: old\n== started_at: y\nout\n")
    look = host.look("old")
    assert (look.state, look.what) == ("lost", "runner")
    with open(log, "a") as file:
        file.write("EXIT_CODE=0\n")
    look = host.look("old", L="~/.codex_logs/old.log")
    assert (look.state, look.what) == ("exited", "0")
    assert host.look("olde").state == "none"    # no prefix will do


@needs_tmux
def test_session_shows_the_log_and_goes_with_the_job(bash_host):
    host = bash_host

    def sessions():
        return subprocess.run(
            ["tmux", "list-sessions", "-F", "#{session_name}"], env=host.env,
            capture_output=True, text=True).stdout.split()

    def screen():
        return subprocess.run(["tmux", "capture-pane", "-p", "-t", "=j:"],
                              env=host.env, capture_output=True,
                              text=True).stdout

    host.start("j", "echo shown; while [ ! -e ~/end ]; do sleep 0.1; done")
    rsmcp.until("it is shown", lambda: "shown" in screen())
    assert host.look().tmux == "1"
    (host.home / "end").touch()
    host.over()
    rsmcp.until("it is gone", lambda: "j" not in sessions())
    # Whoever ends tmux ends no job, and a viewer goes with a killed runner.
    host.start("k", "sleep 77")
    rsmcp.until("there is a session", lambda: "k" in sessions())
    subprocess.run(["tmux", "kill-server"], env=host.env, check=True)
    time.sleep(0.3)
    assert host.look("k").state == "running"
    host.start("l", "sleep 77")
    rsmcp.until("there is a session", lambda: "l" in sessions())
    os.kill(int((host.jobs / "l/r1/pid").read_text().split()[0]),
            signal.SIGKILL)
    rsmcp.until("the viewer is gone", lambda: "l" not in sessions())


def limited(host, seconds, command):
    """With a stop that is as plain as can be."""
    return host.start("j", command, Q=far_jobs.assignments(
        dict(U=seconds, N="j")) + far_jobs.text("ident", "common", "limit")
        + 'kill -9 $(cat "$D/child")\n')


def test_a_run_that_had_its_time(host):
    limited(host, 1, "printf hi; exec sleep 77")
    look = host.over()
    assert (look.state, look.what) == ("killed", "9")
    assert host.log().endswith(
        "hi\n[TIMEOUT] ended after 1 s\nEXIT_CODE=137\n")


def test_a_run_that_ends_in_time(host):
    limited(host, 1, "echo hi")
    assert host.over().what == "0"
    # What would end it is gone, and the next run is not its business.
    host.start("j", "sleep 2; echo hi")
    assert host.over().what == "0"
    assert "TIMEOUT" not in host.log()


@pytest.mark.parametrize("ahead", [-3600, 3600])
def test_a_lock_that_was_left_goes(host, tmp_path, ahead):
    """Also one from a time to come: the clock was set back since."""
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    (tmp_path / "squeue").chmod(0o755)
    host.env["PATH"] = "%s:%s" % (tmp_path, host.path)
    host.jobs.mkdir(parents=True)
    (host.jobs / ".queue.asking").symlink_to("%d" % (time.time() + ahead))
    process = host.begin(["slurm"])
    process.script += 'q_load\necho "$q_how"\n'
    assert host.end(process) == b"ok\n"
    assert not os.path.lexists(host.jobs / ".queue.asking")


# --- Without this and that --------------------------------------------------

@pytest.mark.parametrize("hidden", [
    ("setsid",), ("setsid", "perl"), ("tmux", "bash", "rbash"),
    ("setsid", "perl", "python", "tmux", "bash", "rbash")])
def test_host_without(new_host, hidden):
    path = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="p")) / "bin"
    agents.programs(path, *hidden)
    host = new_host(path=path)
    assert host.start("j", "sleep 0.3; echo hi; exit 3")[0] == "ok"
    look = host.over()
    assert (look.state, look.what) == ("exited", "3")
    host.start("j", "sleep 77 & wait")
    look = rsmcp.until("it runs", lambda: (
        lambda l: l if l.state == "running" else None)(host.look()))
    assert look.state == "running"
    shutil.rmtree(path.parent)
