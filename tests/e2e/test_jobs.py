"""Background jobs against real ssh servers and tmux.

What shells make of the texts on the host is in test_job_texts.py.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import string
import subprocess
import time

import pytest

import agent as agents
import rsmcp
import sshd as ssh_servers
from test_exec import write_rc

pytestmark = [
    pytest.mark.skipif(not ssh_servers.SSHD, reason="there is no sshd"),
    rsmcp.needs_proc,
]
needs_root = pytest.mark.skipif(
    not ssh_servers.ROOT, reason="only root can make users")
needs_tmux = pytest.mark.skipif(
    not shutil.which("tmux"), reason="there is no tmux")

STATE = ".local/state/remote-sandbox-mcp/jobs"


class Jobs:
    """The tools for jobs, of a server that stays."""

    def __init__(self, home, entries, host):
        self.home, self.entries, self.host = home, entries, host
        self.server = home.server(entries)

    def ask(self, tool, **arguments):
        return self.home.ask(self.server, tool, **arguments)

    def good(self, tool, **arguments):
        result = self.ask(tool, **arguments)
        assert not result.failed, result
        return result

    def start(self, command, name="", **more):
        more.setdefault("watch", False)
        return self.good("exec_bash_background", command=command,
                         session_name=name, **more)

    def refused(self, **arguments):
        """The sentence of a start that is refused."""
        result = self.ask("exec_bash_background", **arguments)
        assert result.failed, result
        return result["error"]

    def check(self, name, **more):
        return self.good("check_background_task", tmux_session=name, **more)

    def over(self, name):
        """Wait for its end."""
        while True:
            result = self.check(name, wait_s=10)
            if result["running"] is False:
                return result
            assert result["running"] is True, result

    def runs(self, name):
        return rsmcp.until("it runs", lambda: (
            lambda r: r if r["state"] == "running" and "pid" in r else None)(
                self.check(name)))

    def stop(self, name, **more):
        return self.good("stop_background_task", tmux_session=name, **more)

    def tasks(self, **more):
        result = self.good("list_background_tasks", **more)
        return {task["tmux_session"]: task for task in result["tasks"]}

    def run_dir(self, name, number=1):
        return self.host / STATE / name / ("r%d" % number)


@pytest.fixture
def jobs(home, sshd):
    return Jobs(home, [sshd.entry()], sshd.home)


@pytest.fixture
def user_jobs(home, new_sshd, account):
    """Those of an ordinary user."""
    server = new_sshd("SetEnv TMUX_TMPDIR=%s" % account.home)
    yield Jobs(home, [server.entry(user=account.name)], account.home)
    server.stop()
    uid = account.home.stat().st_uid
    for pid in ssh_servers.pids():
        try:
            if os.stat("/proc/%d" % pid).st_uid == uid:
                ssh_servers.kill(pid, signal.SIGKILL)
        except FileNotFoundError:
            pass
    for path in account.home.iterdir():
        shutil.rmtree(path, ignore_errors=True)


def tmux(sshd, *words):
    [socket] = sshd.open_dir.glob("tmux-*/default")
    return subprocess.run(["tmux", "-S", socket, *words], text=True,
                          capture_output=True).stdout


# --- How a job ends ---------------------------------------------------------

def test_every_end_is_known(jobs):
    wrong = []
    cases = [
        ("echo hi", "exited", 0, None),
        ("exit 3", "exited", 3, None),
        ("exec bash -c 'exit 4'", "exited", 4, None),
        ("set -e; false; echo no", "exited", 1, None),
        ("set -u; echo $nothing", "exited", 1, None),
        ("[ -z \"$nothing\" ] && exit 6", "exited", 6, None),
        ("if", "exited", 2, None),
        ("exit 124", "exited", 124, None),
        ("exit 137", "exited", 137, None),
        ("kill -9 $$", "killed", 137, 9),
        ("kill $$; sleep 5", "killed", 143, 15),
        ("cat || exit 9; exit 5", "exited", 5, None),
    ]
    for number, (command, *_) in enumerate(cases):
        jobs.start(command, "j%d" % number)
    for number, (command, state, code, signum) in enumerate(cases):
        result = jobs.over("j%d" % number)
        got = (result["state"], result["exit_code"], result.get("signal"))
        if got != (state, code, signum) or "reason" in result or \
                "\nEXIT_CODE=%d\n" % code not in result["log_tail"]:
            wrong.append((command, result))
    assert not wrong


def test_fields(jobs, sshd):
    started = jobs.start("echo hi; sleep 1", "train")
    started.pop("host_key_added", None)
    log = str(sshd.home / ".codex_logs/train.log")
    if "attach_command" in started:
        assert started.pop("attach_command") == \
            "ssh -t -p %d -i %s %s@127.0.0.1 \"tmux attach -t '=train'\"" % (
                sshd.port, sshd.entry()["key_file"], sshd.user)
    assert started == {"status": "started", "tmux_session": "train",
                       "log_file": log, "sandbox": "box", "run": 1}
    result = jobs.runs("train")
    assert result["running"] is True and "exit_code" not in result
    assert result["log_file"] == log and result["pid"] > 1
    result = jobs.over("train")
    assert result["log_size"] == result["next_offset"] == \
        len(result["log_tail"])
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ",
                        result["started_at"])
    assert 1 <= result["duration_s"] <= 5 * rsmcp.SLOW
    assert result["ended_at"] > result["started_at"]
    lines = result["log_tail"].split("\n")
    assert lines[0] == "== session: train"
    assert lines[1] == "== started_at: " + result["started_at"]
    assert lines[2:] == ["== command: echo hi; sleep 1", "hi", "EXIT_CODE=0",
                         ""]


def test_the_usual_way(home, sshd, new_sshd, tmp_path):
    """Choose a machine, start a training there, look at it now and then:
    section 8 of the Python server's README."""
    place = agents.programs_with_python(tmp_path / "bin")
    gpu1 = new_sshd(env={"PATH": place})
    jobs = Jobs(home, [sshd.entry("gpu0"), gpu1.entry("gpu1")], None)
    listed = jobs.good("list_sandboxes", check_resources=True)
    assert all("idle_score" in each["resources"]
               for each in listed["sandboxes"])
    jobs.good("select_sandbox", sandbox_name="gpu1")
    assert jobs.good("get_active_sandbox")["connection_alive"] is True
    jobs.good("exec_bash", command="mkdir -p ~/projects/mymodel; "
              "echo 'print(\"epoch 1\")' >~/projects/mymodel/train.py")
    started = jobs.good("exec_bash_background",
                        command="python train.py --epochs 100",
                        cwd="~/projects/mymodel", session_name="train-001")
    assert started["sandbox"] == "gpu1"
    assert started["tmux_session"] == "train-001"
    assert started["log_file"].endswith(
        "/projects/mymodel/.codex_logs/train-001.log")
    result = jobs.good("check_background_task", watch_id=started["watch_id"],
                       wait_s=10)
    assert result["tmux_session"] == "train-001"
    result = jobs.over("train-001")
    assert result["exit_code"] == 0 and "epoch 1\n" in result["log_tail"]
    assert jobs.ask("check_background_task", tmux_session="train-001",
                    sandbox_name="gpu0").failed


def test_killed_runner(jobs, tag):
    jobs.start("sleep %s & trap '' TERM; setsid sleep %s & wait" % (tag, tag),
               "j")
    tag.runs(2)
    runner = int((jobs.run_dir("j") / "pid").read_text().split()[0])
    os.kill(runner, signal.SIGKILL)
    result = rsmcp.until("it is lost", lambda: (
        lambda r: r if r["state"] == "lost" else None)(jobs.check("j")))
    assert result["running"] is False and "exit_code" not in result
    assert result["reason"] == "its runner was killed"
    assert result["orphans"] >= 3
    error = jobs.refused(command="true", session_name="j")
    assert "of its processes still run" in error
    result = jobs.stop("j", grace_s=0.2)
    assert result["was_running"] and result["kill_verified"], result
    assert not tag.pids()
    result = jobs.check("j")
    assert result["state"] == "killed" and result["stopped"] is True
    jobs.start("true", "j")


def test_a_job_of_another_machine_is_unknown(jobs):
    """Which has the same home: see test_job_texts.py."""
    jobs.start("sleep 77", "j")
    pid = jobs.run_dir("j") / "pid"
    jobs.runs("j")
    words = pid.read_text().split()
    pid.write_text("%s %s 00000000-0000-0000-0000-000000000000\n"
                   % tuple(words[:2]))
    (jobs.run_dir("j") / "node").write_text("login-2\n")
    result = jobs.check("j")
    assert (result["state"], result["running"]) == ("unknown", None)
    assert "(login-2)" in result["problem"]
    assert jobs.tasks(running_only=True)["j"]["state"] == "unknown"
    assert "a job named 'j'" in jobs.refused(command="true", session_name="j",
                                             watch=False)
    result = jobs.ask("stop_background_task", tmux_session="j")
    assert result.failed and "(login-2)" in result["error"]
    pid.write_text(" ".join(words) + "\n")
    assert jobs.stop("j")["was_running"] is True


@needs_root
def test_oom_killer(jobs):
    """A command that the kernel kills, by a limit of its own."""
    group = pathlib.Path("/sys/fs/cgroup/memory/rsmcp-test-%d" % os.getpid())
    limit = "memory.limit_in_bytes"
    if not group.parent.is_dir():
        group = pathlib.Path("/sys/fs/cgroup/rsmcp-test-%d" % os.getpid())
        limit = "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text("20000000")
    except OSError:
        pytest.skip("no control group for memory can be made here")
    try:
        jobs.start("echo $$ >%s/cgroup.procs\n"
                   "exec python3 -c 'x = b\"x\" * 10 ** 9'" % group, "j")
        result = jobs.over("j")
        assert (result["state"], result["signal"]) == ("killed", 9), result
    finally:
        rsmcp.until("the group is empty", lambda: not (
            group / "cgroup.procs").read_text())
        group.rmdir()


# --- Stopping ---------------------------------------------------------------

def test_stop_ends_the_whole_tree(jobs, tag):
    jobs.start("trap '' TERM; sleep %s & (trap '' TERM; setsid sleep %s) & "
               "while :; do sleep 0.1; done" % (tag, tag), "j")
    tag.runs(2)
    begun = time.monotonic()
    result = jobs.stop("j", grace_s=0.5)
    assert time.monotonic() - begun < 10 * rsmcp.SLOW
    assert result["was_running"] and result["kill_verified"], result
    assert result["state"] == "killed"
    assert not tag.pids()
    result = jobs.check("j")
    assert (result["state"], result["signal"], result["stopped"]) == \
        ("killed", 9, True)
    again = jobs.stop("j")
    assert again["was_running"] is False and again["state"] == "killed"


def test_stop_lets_a_job_finish_in_its_way(jobs):
    jobs.start("trap 'echo saved; exit 0' TERM; echo up; "
               "while :; do sleep 0.05; done", "j")
    jobs.check("j", since_offset=0, grep="^up", wait_s=20)
    result = jobs.stop("j")
    assert result["state"] == "exited"
    result = jobs.check("j")
    assert result["exit_code"] == 0 and result["stopped"] is True
    assert "saved\nEXIT_CODE=0\n" in result["log_tail"]


def test_stop_right_after_the_start(jobs):
    for number in range(5):
        jobs.start("sleep 77", "j%d" % number)
        result = jobs.stop("j%d" % number)
        assert result["was_running"] and result["state"] == "killed", result


@pytest.mark.parametrize("end, state, code", [
    ("echo left; exit 3", "exited", 3), ("kill -9 $$", "killed", 137)])
def test_stop_ends_what_an_ended_job_left_running(jobs, tag, end, state, code):
    jobs.start("sleep %s & setsid sleep %s & %s" % (tag, tag, end), "j")
    result = jobs.over("j")
    assert (result["state"], result["exit_code"], result["running"],
            result["orphans"]) == (state, code, False, 2), result
    assert jobs.tasks()["j"]["orphans"] == 2
    tag.runs(2)
    result = jobs.stop("j", grace_s=0.2)
    assert result["was_running"] is True and result["state"] == state
    assert result["kill_verified"] is True and not tag.pids(), result
    # Nobody stopped the job itself.
    result = jobs.check("j")
    assert (result["state"], result["exit_code"]) == (state, code)
    assert "stopped" not in result and "orphans" not in result
    result = jobs.stop("j")
    assert (result["was_running"], result["state"]) == (False, state)
    assert "orphans" not in jobs.tasks()["j"]


def test_stop_ends_no_stranger_with_the_number_of_a_runner_that_is_gone(
        jobs, tag, new_tag):
    """Numbers are given away again, those of sessions too."""
    other = new_tag()
    jobs.start("setsid sleep %s & exit 0" % tag, "j")
    jobs.over("j")
    tag.runs()
    leader = subprocess.Popen(["sh", "-c", "sleep %s &" % other],
                              start_new_session=True)
    leader.wait()
    other.runs()
    pid = jobs.run_dir("j") / "pid"
    words = pid.read_text().split()
    pid.write_text("%d %s %s\n" % (leader.pid, *words[1:]))
    result = jobs.stop("j", grace_s=0.2)
    assert result["kill_verified"] is True and not tag.pids(), result
    assert other.pids()


def test_stop_that_was_cut_off_can_be_repeated(jobs, tag):
    """The first ended the job and not all of its processes."""
    jobs.start("setsid sleep %s & exit 0" % tag, "j")
    assert jobs.over("j")["exit_code"] == 0
    tag.runs()
    (jobs.run_dir("j") / "stop").touch()
    result = jobs.stop("j")
    assert result["kill_verified"] is True and not tag.pids(), result
    assert jobs.over("j")["exit_code"] == 0


def test_files_of_a_job_stay_while_processes_of_it_run(jobs, tag):
    jobs.start("sleep %s & exit 0" % tag, "j")
    jobs.over("j")
    subprocess.run(["touch", "-d", "5 days ago", jobs.run_dir("j")],
                   check=True)
    assert jobs.good("list_background_tasks", cleanup_days=3)["removed"] == 0
    assert jobs.run_dir("j").exists()
    jobs.stop("j", grace_s=0.2)
    subprocess.run(["touch", "-d", "5 days ago", jobs.run_dir("j")],
                   check=True)
    assert jobs.good("list_background_tasks", cleanup_days=3)["removed"] == 1


def test_stop_and_check_of_nobody(jobs):
    for tool in ("stop_background_task", "check_background_task"):
        result = jobs.ask(tool, tmux_session="nobody")
        assert result.failed and "no job named 'nobody'" in result["error"]
        assert "list_background_tasks" in result["error"]


@needs_root
def test_jobs_of_others_with_the_same_name_stay(home, new_sshd, account, tag,
                                                new_tag):
    """root sees all processes, and ends its own job's."""
    other = new_tag()
    server = new_sshd()
    names = Jobs(home, [server.entry("mine"),
                        server.entry("theirs", user=account.name)],
                 server.home)
    names.start("sleep %s" % tag, "j", sandbox_name="mine")
    names.start("sleep %s" % other, "j", sandbox_name="theirs")
    tag.runs()
    other.runs()
    names.stop("j", sandbox_name="mine")
    assert not tag.pids() and other.pids()
    names.stop("j", sandbox_name="theirs")
    assert not other.pids()


# --- Names, keys, arguments -------------------------------------------------

def test_name_is_taken_while_it_runs(jobs):
    jobs.start("sleep 77", "j")
    error = jobs.refused(command="true", session_name="j")
    assert "'j' is running on box (run 1" in error
    assert "stop_background_task" in error
    jobs.stop("j")
    assert jobs.start("true", "j")["run"] == 2


def test_names_are_safe_and_exact(jobs):
    assert jobs.start("sleep 77", "v1.2:x y")["tmux_session"] == "v1_2_x_y"
    assert jobs.runs("v1.2:x y")["tmux_session"] == "v1_2_x_y"
    assert (jobs.host / ".codex_logs/v1_2_x_y.log").exists()
    jobs.start("sleep 77", "long-1")
    for tool in ("check_background_task", "stop_background_task"):
        result = jobs.ask(tool, tmux_session="long")
        assert result.failed and "'long'" in result["error"], result
    jobs.start("exit 3", "long")
    assert jobs.over("long")["exit_code"] == 3
    assert jobs.stop("long")["was_running"] is False
    assert jobs.runs("long-1")["state"] == "running"
    made = {jobs.start("true")["tmux_session"] for _ in range(3)}
    assert len(made) == 3
    assert all(re.fullmatch(r"bg-\d+-[0-9a-f]{4}", name) for name in made)
    jobs.start("echo hi", "--help")
    assert "hi" in jobs.over("--help")["log_tail"]


def test_re_used_name_shows_no_old_end(jobs):
    jobs.start("echo old; exit 5", "j")
    jobs.over("j")
    jobs.start("echo new; sleep 77", "j")
    result = rsmcp.until("it speaks", lambda: (
        lambda r: r if "new" in r["log_tail"] else None)(jobs.check("j")))
    assert "exit_code" not in result and result["running"] is True
    assert "old" not in result["log_tail"]
    assert "EXIT_CODE" not in result["log_tail"]
    # The log itself has both.
    assert "old\nEXIT_CODE=5\n== session: j\n" in \
        (jobs.host / ".codex_logs/j.log").read_text()


def test_idempotency_key(jobs):
    first = jobs.start("echo x >>~/count; sleep 1", "a", idempotency_key="k 1")
    again = jobs.start("echo x >>~/count", "b", idempotency_key="k 1")
    assert again["status"] == "already_started"
    assert (again["tmux_session"], again["run"], again["log_file"]) == \
        ("a", 1, first["log_file"])
    jobs.over("a")
    again = jobs.start("echo x >>~/count", "", idempotency_key="k 1")
    assert again["status"] == "already_started"
    assert "attach_command" not in again    # there is nothing to see
    assert jobs.start("true", "b", idempotency_key="k 2")["run"] == 1
    assert (jobs.host / "count").read_text() == "x\n"


def test_many_servers_start_one_job(home, sshd):
    entries = [sshd.entry()]
    servers = [home.server(entries) for _ in range(8)]
    for server in servers:
        server.send(rsmcp.call("warm", "exec_bash", command="true"))
    for server in servers:
        server.reply("warm")
    for server in servers:
        server.send(rsmcp.call("go", "exec_bash_background", watch=False,
                               command="echo x >>~/count; sleep 1",
                               session_name="j", idempotency_key="k"))
    results = [server.reply("go")["result"]["structuredContent"]
               for server in servers]
    assert sorted(result["status"] for result in results) == \
        ["already_started"] * 7 + ["started"]
    rsmcp.until("it ran", (sshd.home / "count").exists)
    assert (sshd.home / "count").read_text() == "x\n"


def test_commands_of_any_content_and_length(jobs):
    weird = "it's \"$HOME\" `date` \\ % \x01\x7f \u2603 \U0001d11e"
    command = "cat >~/out <<'__RSMCP_BG__'\n%s\n__RSMCP_BG__\n" % weird
    jobs.start(command, "a")
    assert jobs.over("a")["exit_code"] == 0
    assert (jobs.host / "out").read_text() == weird + "\n"
    for size in (30_000, 100_000, 2_000_000):
        for filler in ("x", "'"):
            jobs.start(": <<'E'\n%s\nE\necho done %d" % (
                "\n".join([filler * 1000] * (size // 1000)), size), "b")
            result = jobs.over("b")
            assert result["exit_code"] == 0 and \
                "done %d\n" % size in result["log_tail"], result
    assert not list((jobs.host / STATE).glob(".start-*"))
    assert "NUL" in jobs.refused(command="echo a\0b")
    error = jobs.refused(command="echo a\0b")
    assert "NUL" in error or "zero" in error or "\\u0000" in error, error
    assert "must not be empty" in jobs.refused(command="  ")


def test_no_signal_is_ignored_for_us(jobs):
    """What the lease must not die of is nothing for a job to ignore."""
    jobs.start("while read -r name value; do [ $name != SigIgn: ] || "
               "echo ignored 0x$value; done </proc/$$/status", name="s")
    [ignored] = re.findall("ignored (0x[0-9a-f]+)", jobs.over("s")["log_tail"])
    assert int(ignored, 16) & (1 << signal.SIGHUP - 1 | 1 << signal.SIGPIPE - 1
                               ) == 0



def test_working_directory_log_and_environment(jobs):
    (jobs.host / "a b; exit").mkdir()
    started = jobs.start("pwd; echo \"$A|$PYTHONUNBUFFERED\"; "
                         "[ -t 1 ] || echo no terminal", "j",
                         cwd="a b; exit", env={"A": "it's $x"})
    assert started["log_file"] == \
        str(jobs.host / "a b; exit/.codex_logs/j.log")
    lines = jobs.over("j")["log_tail"].split("\n")[3:]
    assert lines == [str(jobs.host / "a b; exit"), "it's $x|1",
                     "no terminal", "EXIT_CODE=0", ""]
    # A log that repeats a relative cwd is meant once.
    started = jobs.start("true", "k", cwd="a b; exit",
                         log_file="a b; exit/logs/x")
    assert started["log_file"] == str(jobs.host / "a b; exit/logs/x")
    started = jobs.start("true", "l", cwd="/", log_file="~/l.log",
                         env={"PYTHONUNBUFFERED": "0"})
    assert started["log_file"] == str(jobs.host / "l.log")
    error = jobs.refused(command="true", cwd="missing")
    assert "(cwd) does not exist" in error and "nothing was started" in error
    assert not (jobs.host / "missing").exists()
    assert "no name for a variable" in jobs.refused(command="true",
                                                    env={"a b": "x"})
    for arg, path in (("log_file", "a\nb"), ("cwd", "/tmp\nx 1 ok"),
                      ("cwd", "a\x7f")):
        for watch in (False, True):
            error = jobs.refused(command="true", watch=watch, **{arg: path})
            assert arg + " must not hold a newline" in error
        result = jobs.ask("watch_background_task", tmux_session="j",
                          ensure_watchdog=False,
                          **{"log_file": "l", arg: path})
        assert result.failed and arg + " must not" in result["error"]
    result = jobs.ask("exec_bash", command="true", on_timeout="background",
                      cwd="/tmp\nx 1 ok")
    assert result.failed and "cwd must not hold a newline" in result["error"]
    result = jobs.ask("watch_background_task", tmux_session="j", log_file="l",
                      ensure_watchdog=False,
                      resume_plan_json={"cwd": "/tmp\n"})
    assert result.failed and "resume_plan_json must not" in result["error"]
    assert "resume_command" in jobs.refused(command="true", auto_resume=True)
    error = jobs.refused(command="true", log_file="/proc/x/y")
    assert "/proc/x/y" in error and "nothing was started" in error


def test_a_relative_directory_is_below_the_workdir(home, sshd):
    jobs = Jobs(home, [sshd.entry(workdir="~/w")], sshd.home)
    place = jobs.host / "w/below"
    place.mkdir(parents=True)
    for name, cwd in (("j", "below"), ("k", str(place)), ("l", "~/w/below")):
        started = jobs.start("pwd", name, cwd=cwd)
        assert started["log_file"] == "%s/.codex_logs/%s.log" % (place, name)
        assert str(place) in jobs.over(name)["log_tail"].split("\n")
    started = jobs.start("true", "m", cwd="below", log_file="below/logs/x")
    assert started["log_file"] == str(place / "logs/x")
    result = jobs.ask("watch_background_task", tmux_session="j", cwd="below",
                      log_file="l", ensure_watchdog=False)
    watch = jobs.ask("get_background_watch",
                     watch_id=result["watch_id"])["watch"]
    assert (watch["cwd"], watch["log_file"]) == ("~/w/below", "~/w/below/l")
    result = jobs.ask("exec_bash", command="pwd", cwd="below",
                      on_timeout="background")
    assert result["stdout"] == "%s\n" % place


def test_a_long_command_on_a_slow_way_is_not_late(home, new_sshd, tmp_path):
    """What is sent ahead takes longer than a start may."""
    path = agents.programs(tmp_path / "bin", "cat")
    (path / "cat").write_text(
        "#!/bin/sh\n[ $# -gt 0 ] || sleep 9\nexec %s \"$@\"\n"
        % shutil.which("cat"))
    (path / "cat").chmod(0o755)
    server = new_sshd(env={"PATH": path})
    jobs = Jobs(home, [server.entry()], server.home)
    jobs.good("exec_bash", command="true")      # tells the time
    jobs.start("exit 3\n: " + "x" * 60000, "j")
    assert jobs.over("j")["exit_code"] == 3


@needs_root
def test_a_slow_login_makes_no_start_late(home, user_jobs, account):
    user_jobs.good("exec_bash", command="true")     # tells the time
    write_rc(account, ".bashrc", "sleep 9\n")
    home.end_masters()
    user_jobs.start("exit 3", "j")
    write_rc(account, ".bashrc", "")
    assert user_jobs.over("j")["exit_code"] == 3


@pytest.mark.parametrize("hidden", [(), ("setsid",), ("bash", "rbash")])
def test_variables_of_the_login_are_not_ours(home, new_sshd, tmp_path, hidden):
    """The far side's texts have variables of one letter, and so may a login;
    one of ours holds what a command must not know."""
    names = string.ascii_letters
    server = new_sshd(env={
        "PATH": agents.programs(tmp_path / "bin", *hidden),
        **{name: "$x;*" + name for name in names}})
    jobs = Jobs(home, [server.entry()], server.home)
    expected = "".join("%s=$x;*%s\n" % (name, name)
                       for name in sorted(names))
    command = "env | grep -E '^([^_]|RSMCP_.*)=' | LC_ALL=C sort"
    for text in (command, ": $(:); " + command):     # tame, and not
        result = jobs.good("exec_bash", command=text)
        said, mark = result["stdout"].split("RSMCP_CALL=")
        assert said + mark.partition("\n")[2] == expected
    jobs.start(command, "j", env={"D": "mine"})
    jobs.over("j")
    log = jobs.check("j", last_n_lines=99)["log_tail"].split("\n", 3)[3]
    said, mark = log.split("RSMCP_CALL=")
    assert said + mark.partition("\n")[2] == \
        re.sub("(?m)^D=.*", "D=mine", expected) + "EXIT_CODE=0\n"


def test_metadata_is_kept_with_the_run(jobs):
    jobs.start("true", "j", metadata_json='{"a": 1}')
    assert '"a":1' in (jobs.run_dir("j") / "meta").read_text()


# --- Polling ----------------------------------------------------------------

def test_offsets_are_exact(jobs):
    jobs.start("printf 'a\\nb\\npart'; sleep 1; printf 'ial\\nen''d'; sleep 77",
               "j", log_file="~/log")
    log = jobs.host / "log"
    seen, offset = "", 0
    while "end" not in seen:
        result = jobs.check("j", since_offset=offset, wait_s=20)
        assert "log_replaced" not in result and "truncated" not in result
        seen += result["log_tail"]
        offset = result["next_offset"]
        assert log.read_bytes()[:offset].decode() == seen
    assert seen.split("\n")[3:] == ["a", "b", "partial", "end"]
    result = jobs.check("j", since_offset=offset)
    assert (result["log_tail"], result["next_offset"]) == ("", offset)
    result = jobs.check("j", since_offset=offset + 1)
    assert result["log_replaced"] is True and result["log_tail"] == seen
    assert result["next_offset"] == offset
    # Any place will do.
    result = jobs.check("j", since_offset=offset - 4)
    assert result["log_tail"] == "\nend"


def test_no_character_is_cut(jobs):
    text = "x" + "\u2603\U0001d11e\xe4" * 20000
    log = jobs.host / "log"
    jobs.start("printf '\\342\\230'; sleep 1; printf '\\203\\n'; cat ~/in; "
               "sleep 77", "j", log_file="~/log")
    (jobs.host / "in").write_text(text)
    seen, offset = "", 0
    while len(seen) < len(text):
        result = jobs.check("j", since_offset=offset, wait_s=20)
        assert "\ufffd" not in result["log_tail"]
        assert len(result["log_tail"].encode()) <= 40000
        seen += result["log_tail"]
        offset = result["next_offset"]
    assert seen.endswith("\u2603\n" + text)
    assert log.read_text() == seen
    tail = jobs.check("j", last_n_lines=5)
    assert "\ufffd" not in tail["log_tail"]
    assert text.endswith(tail["log_tail"]) and len(tail["log_tail"]) > 10000
    assert tail["log_cut"] is True


def test_progress_bars_show_their_last_state(jobs):
    jobs.start("printf 'start\\r\\n'; for i in 1 2 3; do "
               "printf '\\r%d%%|###' $i; done; printf '\\nnext\\r10%%\\r2''0%%'; "
               "sleep 77", "j")
    result = rsmcp.until("it speaks", lambda: (
        lambda r: r if "20%" in r["log_tail"] else None)(jobs.check("j")))
    assert result["log_tail"].split("\n")[3:] == ["start", "3%|###", "20%"]


def test_wide_lines_lose_nothing(jobs):
    jobs.start("for i in $(seq 60); do printf '%0600d\\n' $i; done; exit 7",
               "j")
    result = jobs.over("j")
    assert result["exit_code"] == 7
    lines = result["log_tail"].split("\n")
    assert lines[-2:] == ["EXIT_CODE=7", ""]
    assert lines[:-2] == ["%0600d" % i for i in range(12, 61)]
    jobs.start("printf '%0100000d\\n' 5; exit 8", "k")
    result = jobs.over("k")
    assert result["exit_code"] == 8 and result["log_cut"] is True
    assert result["log_tail"].endswith("05\nEXIT_CODE=8\n")
    assert len(result["log_tail"]) <= 40000


def test_last_lines(jobs):
    jobs.start("seq 1000", "j")
    jobs.over("j")
    result = jobs.check("j", last_n_lines=3)
    assert result["log_tail"] == "999\n1000\nEXIT_CODE=0\n"
    assert len(jobs.check("j")["log_tail"].split("\n")) == 51
    assert len(jobs.check("j", last_n_lines=10000)["log_tail"].split("\n")
               ) == 1005


def test_expressions(jobs):
    jobs.start("echo 'epoch 1 loss=0.5'; echo 'noise 7'; "
               "echo 'epoch 2 loss=0.25'; printf 'epoch 3'; sleep 1; "
               "echo ' loss=0.1'; echo '[x] a.b'; sleep 77", "j")
    first = jobs.check("j", since_offset=0, wait_s=20,
                       grep=r"^epoch\s\d+ loss=[\d.]+$")
    assert first["log_tail"].startswith("epoch 1 loss=0.5\n")
    seen, offset = first["log_tail"], first["next_offset"]
    while "epoch 3" not in seen:
        result = jobs.check("j", since_offset=offset, wait_s=20,
                            grep=r"^epoch\s\d+ loss=[\d.]+$")
        seen += result["log_tail"]
        offset = result["next_offset"]
    assert seen == "epoch 1 loss=0.5\nepoch 2 loss=0.25\nepoch 3 loss=0.1\n"
    rsmcp.until("it said all", lambda: "a.b" in jobs.check("j")["log_tail"])
    for expression, expected in [
            (r"^noise|^.x\]", "noise 7\n[x] a.b\n"), (r"[[:digit:]]{2}", None),
            (r"a\.b$", "[x] a.b\n"), (r"^\[x\]\s\w\.\w$", "[x] a.b\n"),
            (r"^.x[]]", "[x] a.b\n"), (r"^.x. a[^]\d]b$", "[x] a.b\n"),
            ("-e", ""), ("''", ""), ("nothing like this", "")]:
        result = jobs.check("j", grep=expression)
        if expected is not None:
            assert result["log_tail"] == expected, expression
    for bad in ("a\nb", "(?i)noise", "a(?!b)", "x" * 4001):
        result = jobs.ask("check_background_task", tmux_session="j", grep=bad)
        assert result.failed and result["error"].startswith("grep: "), bad


def only_busybox(place):
    place.mkdir()
    subprocess.run([shutil.which("busybox"), "--install", "-s", place],
                   check=True)
    return place


@pytest.fixture(params=["gnu", "busybox"])
def grep_jobs(request, home, new_sshd, tmp_path):
    env = {}
    if request.param == "busybox":
        env["PATH"] = only_busybox(tmp_path / "bin")
    server = new_sshd(env=env)
    made = Jobs(home, [server.entry()], server.home)
    made.kind = request.param
    return made


def test_what_is_an_expression_says_grep_on_the_host(grep_jobs):
    jobs = grep_jobs
    (jobs.host / "text").write_text("loss={7}\naab {\nsay x say\n")
    jobs.start("cat ~/text", "j")
    jobs.over("j")
    for expression, expected in [
            ("s={", "loss={7}\n"), ("{$", "aab {\n"), ("a{2}b", "aab {\n"),
            ("a{,2}b {", "aab {\n"), ("^a.*?b+? ", "aab {\n"),
            ("^z??loss", "loss={7}\n"), (r"(say)\s.*\1", "say x say\n")]:
        result = jobs.check("j", grep=expression, since_offset=0)
        assert result["log_tail"] == expected, expression
    for bad in ("(", "[", "[a", "a{2,1}", "*(", "[[:x:]]", "\\", "a{99999}",
                "[z-a]", r"(a)\2"):
        for more in ({}, {"since_offset": 0}, {"wait_s": 1}):
            result = jobs.ask("check_background_task", tmux_session="j",
                              grep=bad, **more)
            assert result.failed, (bad, more, result)
            assert result["error"].startswith(
                "grep: grep on %s does not take '%s': " % (
                    jobs.entries[0]["name"], bad)), (bad, result)
    assert jobs.check("j", grep="^loss")["log_tail"] == "loss={7}\n"


def test_an_expression_that_takes_hours(grep_jobs, tag):
    """Its time, or its memory: not here, and not there."""
    jobs = grep_jobs
    jobs.start("echo aab; exit 0", "j")
    jobs.over("j")
    expression = "((a{99}){99}){99}" if jobs.kind == "gnu" else "a" + "+" * 40
    jobs.server.send(rsmcp.call("slow", "check_background_task",
                                tmux_session="j", grep=expression))
    reply = json.loads(jobs.server.line(timeout=100 * rsmcp.SLOW))
    assert reply["result"]["isError"], reply
    assert "grep: grep on " in reply["result"]["content"][0]["text"]
    tag.text = expression
    rsmcp.until("it is gone", lambda: not tag.pids())
    assert jobs.check("j", grep="^a{2}")["log_tail"] == "aab\n"


def test_a_search_that_takes_hours_ends_with_its_call(jobs, tag):
    tag.text = agents.SLOW_SEARCH % tag
    jobs.start(agents.SLOW_TEXT, "j")
    jobs.over("j")
    jobs.server.send(rsmcp.call("slow", "check_background_task",
                                tmux_session="j", grep=tag.text))
    tag.runs()
    jobs.server.send(rsmcp.cancel("slow"))
    rsmcp.until("grep is gone", lambda: not tag.pids())
    assert jobs.check("j")["state"] == "exited"


def test_wait_returns_at_once_for_what_it_waits_for(jobs):
    jobs.start("sleep 1; echo one; sleep 1; echo two; exit 4", "j")
    offset = jobs.check("j")["next_offset"]
    result = jobs.check("j", since_offset=offset, wait_s=50)
    assert result["log_tail"] == "one\n" and result.seconds < 15 * rsmcp.SLOW
    result = jobs.check("j", grep="nothing", wait_s=50,
                        since_offset=result["next_offset"])
    assert result["state"] == "exited" and result.seconds < 15 * rsmcp.SLOW
    result = jobs.check("j", wait_s=50)
    assert result.seconds < 15 * rsmcp.SLOW
    result = jobs.ask("check_background_task", tmux_session="j", wait_s=51)
    assert result.failed


def test_gigabyte_log_costs_what_is_new(jobs):
    jobs.start("printf 'old\\n'; while [ ! -e ~/go ]; do sleep 0.1; done; "
               "echo new; sleep 77", "j", log_file="~/log")
    rsmcp.until("it speaks", lambda: "\nold\n" in jobs.check("j")["log_tail"])
    os.truncate(jobs.host / "log", 1 << 30)     # a hole
    (jobs.host / "go").touch()
    begun = time.monotonic()
    result = jobs.check("j", since_offset=1 << 30, wait_s=20)
    assert result["log_tail"] == "new\n"
    assert result["next_offset"] == (1 << 30) + 4 == result["log_size"]
    result = jobs.check("j", since_offset=(1 << 30) + 4)
    assert result["log_tail"] == ""
    result = jobs.check("j", last_n_lines=2)
    assert result["log_tail"].endswith("new\n")
    result = jobs.check("j", since_offset=(1 << 30) - 10, grep="new")
    assert "new" in result["log_tail"]
    assert time.monotonic() - begun < 10 * rsmcp.SLOW


def test_removed_log(jobs):
    jobs.start("sleep 1; echo more; exit 6", "j", log_file="~/logs/x")
    offset = jobs.runs("j")["next_offset"]
    shutil.rmtree(jobs.host / "logs")
    result = jobs.check("j", since_offset=offset)
    assert result["running"] and result["log_size"] is None
    result = jobs.over("j")
    assert result["exit_code"] == 6
    assert result["log_tail"] == "[log file not found]"


# --- When things break ------------------------------------------------------

def test_job_outlives_the_server_and_the_link(jobs, home, sshd, tag):
    jobs.start("sleep %s; exit 3" % tag, "j")
    tag.runs()
    jobs.server.signal(signal.SIGKILL)
    jobs.server.process.wait()
    sshd.cut()
    home.end_masters()
    [pid] = tag.pids()
    assert not rsmcp.gone(pid)
    jobs.server = home.server(jobs.entries)
    assert jobs.check("j")["state"] == "running"
    os.kill(pid, signal.SIGTERM)
    assert jobs.over("j")["exit_code"] == 3


def test_killed_server_between_launch_and_reply(jobs, home, sshd):
    """The key finds what was started."""
    jobs.check_alive = jobs.good("exec_bash", command="true")
    jobs.server.send(rsmcp.call(
        "go", "exec_bash_background", watch=False, session_name="j",
        command="echo x >>~/count; sleep 1", idempotency_key="k"))
    rsmcp.until("it was launched", (jobs.host / STATE / "j/r1").is_dir)
    jobs.server.signal(signal.SIGKILL)
    jobs.server.process.wait()
    jobs.server = home.server(jobs.entries)
    again = jobs.start("echo x >>~/count; sleep 1", "j", idempotency_key="k")
    assert again["tmux_session"] == "j" and again["run"] == 1
    assert jobs.over("j")["exit_code"] == 0
    assert (jobs.host / "count").read_text() == "x\n"


@pytest.mark.parametrize("begun", [True, False])
def test_lost_reply_is_found_again(jobs, sshd, begun):
    """The connection breaks after the start was sent."""
    jobs.good("exec_bash", command="true")
    sshd.freeze()
    jobs.server.send(rsmcp.call(
        "go", "exec_bash_background", watch=False, session_name="j",
        command="echo x >>~/count; exit 5"))
    time.sleep(0.5)
    if begun:
        sshd.thaw()
        rsmcp.until("it was launched",
                    (jobs.host / STATE / "j/r1/exit").exists)
        # Too late for this one, if the reply was quick.
    pids = sshd.servers()
    for pid in pids:
        ssh_servers.kill(pid, signal.SIGKILL)
    reply = jobs.server.reply("go")["result"]
    if begun:
        assert not reply.get("isError"), reply
        assert jobs.over("j")["exit_code"] == 5
        assert (jobs.host / "count").read_text() == "x\n"
    else:
        text = reply["content"][0]["text"]
        ran = (jobs.host / "count").exists()
        assert ran or "nothing was started" in text, reply
        if ran:
            assert reply["structuredContent"]["launch_recovered"] is True


def end_in_a_start(jobs, sshd, home, victims, then="sleep 0.2"):
    """The script of a start kills these and goes on; a server that is warm."""
    jobs.server.signal(signal.SIGKILL)
    jobs.server.process.wait()
    home.end_masters()
    place = jobs.host / "bin"
    place.mkdir()
    # It is the last program of a start with a key.
    (place / "ln").write_text(
        "#!/bin/sh\n%s \"$@\" || exit\nkill -9 $(cat ~/victims)\n%s\n"
        % (shutil.which("ln"), then))
    (place / "ln").chmod(0o755)
    sshd.env["PATH"] = "%s:%s" % (place, os.environ["PATH"])
    sshd.restart()
    jobs.server = home.server(jobs.entries)
    jobs.good("exec_bash", command="true")
    (jobs.host / "victims").write_text(" ".join(map(str, victims())))


def test_reply_that_is_lost_for_sure(jobs, sshd, home):
    """The script answers only after its connection is gone."""
    end_in_a_start(jobs, sshd, home, sshd.servers)
    result = jobs.start("echo x >>~/count; exit 5", "j", idempotency_key="k")
    assert result["launch_recovered"] is True, result
    assert (result["status"], result["run"]) == ("started", 1)
    assert jobs.over("j")["exit_code"] == 5
    assert (jobs.host / "count").read_text() == "x\n"


@pytest.mark.parametrize("off", [
    True, pytest.param(False, marks=pytest.mark.long)])
def test_a_start_that_came_to_nothing_is_not_taken_for_one(
        jobs, sshd, home, off):
    """The reply is lost, and the starter killed before it had a runner."""
    mark = ": >~/%s/j/r1/off\n" % STATE if off else ""
    end_in_a_start(jobs, sshd, home, sshd.servers, mark + "kill -9 $PPID")
    error = jobs.refused(command="echo x >>~/count", session_name="j",
                         watch=False, idempotency_key="k")
    assert ("nothing was started" if off else "may have been started") in error
    assert not (jobs.host / "count").exists()


@pytest.mark.parametrize("stored", [
    pytest.param(True, marks=pytest.mark.long), False])
def test_what_may_have_been_started_says_whether_it_is_watched(
        jobs, sshd, home, stored):
    """The reply is lost, and the host is not reached any more."""
    home.more["REMOTE_SANDBOX_SERVICE"] = "detached"
    if not stored:
        (home.state / "watchdog.sqlite3").mkdir(parents=True)
    end_in_a_start(jobs, sshd, home,
                   lambda: [sshd.process.pid, *sshd.servers()])
    jobs.server.send(rsmcp.call("go", "exec_bash_background", command="true",
                                session_name="j", idempotency_key="k"))
    reply = json.loads(jobs.server.line(timeout=100 * rsmcp.SLOW))["result"]
    result = json.loads(reply["content"][0]["text"])
    assert reply["isError"] and "may have been started" in result["error"]
    if stored:
        assert result["watch_id"] == 1, result
        assert jobs.good("get_watchdog_status")["service"]["running"] is True
    else:
        assert "watch_id" not in result
        assert "Nothing watches it" in result["watch_note"]


def test_unreachable_host_is_unknown(jobs, sshd, home):
    jobs.start("sleep 77", "j")
    jobs.runs("j")      # else its runner may be a child of who started it
    sshd.stop()
    home.ask_masters_to_end()
    result = jobs.check("j")
    assert (result["state"], result["running"]) == ("unknown", None)
    assert result["connection_error"] is True and result["problem"]
    assert "exit_code" not in result
    listed = jobs.good("list_background_tasks")
    assert listed["tasks"] == []
    [unreachable] = listed["unreachable"]
    assert unreachable["sandbox"] == "box" and unreachable["problem"]
    sshd.restart()
    rsmcp.until("it is back", lambda: jobs.check("j")["state"] == "running")


@needs_tmux
@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "ksh"])
def test_attach_command_in_any_shell(jobs, tmp_path, shell):
    """zsh looks for a program where a word begins with "="; here and there."""
    if not shutil.which(shell):
        pytest.skip("there is no " + shell)
    command = jobs.start("true", "j")["attach_command"]
    for name, text in (("ssh", 'shift $(($#-1)); exec %s -c "$1"' % shell),
                       ("tmux", 'printf "%s\\n" "$@"')):
        (tmp_path / name).write_text("#!/bin/sh\n%s\n" % text)
        (tmp_path / name).chmod(0o755)
    done = subprocess.run([shell, "-c", command], capture_output=True, env={
        **os.environ, "PATH": "%s:%s" % (tmp_path, os.environ["PATH"])})
    assert (done.stdout, done.stderr) == (b"attach\n-t\n=j\n", b"")


@needs_tmux
def test_killed_tmux_server_kills_no_job(jobs, sshd):
    started = jobs.start("echo shown; sleep 77", "j")
    assert started["attach_command"].endswith("\"tmux attach -t '=j'\"")
    rsmcp.until("there is a session", lambda: list(
        sshd.open_dir.glob("tmux-*/default")) and "j" in tmux(
            sshd, "list-sessions", "-F", "#{session_name}").split())
    rsmcp.until("it shows the log", lambda: "shown" in tmux(
        sshd, "capture-pane", "-p", "-t", "=j:"))
    tmux(sshd, "kill-server")
    assert jobs.check("j")["state"] == "running"
    jobs.stop("j")


@needs_tmux
def test_job_of_the_seed(jobs, sshd, tag):
    log = jobs.host / "proj/.codex_logs/old.log"
    jobs.good("exec_bash", command="""
mkdir -p ~/proj/.codex_logs; cd ~/proj
cat >job.sh <<'E'
{ printf '== session: old\\n== started_at: x\\n== command: c\\n'
echo working; sleep 1
printf 'EXIT_CODE=%%s\\n' 3; } 2>&1 | tee -a .codex_logs/old.log
E
tmux new-session -d -s old bash job.sh
tmux new-session -d -s old2 'sleep %s'
""" % tag)
    result = jobs.check("old", log_file="~/proj/.codex_logs/old.log")
    assert result["state"] == "running" and result["running"] is True
    assert result["log_file"] == str(log)
    rsmcp.until("it has ended", lambda: jobs.check(
        "old", log_file="~/proj/.codex_logs/old.log")["state"] != "running")
    result = jobs.check("old", log_file="~/proj/.codex_logs/old.log")
    assert (result["state"], result["exit_code"]) == ("exited", 3)
    assert result["log_tail"].endswith("working\nEXIT_CODE=3\n")
    result = jobs.stop("old2")
    assert result["was_running"] is True and result["kill_verified"] is True
    assert not tag.pids()


def test_log_file_is_for_jobs_of_another_server(jobs):
    jobs.start("echo hi", "j")
    log = jobs.over("j")["log_file"]
    assert jobs.check("j", log_file="/nowhere/x.log")["log_file"] == log
    result = jobs.ask("check_background_task", log_file=log)
    assert result.failed and "'tmux_session' must name" in result["error"]


@needs_tmux
def test_stop_ends_no_session_of_another_name(jobs, sshd):
    """The text that ends processes has variables of its own."""
    jobs.good("exec_bash", command="""
tmux new-session -d -s 2000 sleep 77
tmux new-session -d -s 50 sleep 77
tmux new-session -d -s old sleep 77
tmux set-option -w -t old: remain-on-exit on
""")
    assert jobs.stop("old")["was_running"] is True
    sessions = tmux(sshd, "list-sessions", "-F", "#{session_name}").split()
    assert sorted(sessions) == ["2000", "50"]


# --- Many -------------------------------------------------------------------

def test_fifty_jobs_at_once(home, sshd):
    agent = agents.Agent(home, sshd.entry())
    calls = [agent.begin("echo n%d; sleep 1; exit %d" % (n, n),
                         tool="exec_bash_background", watch=False,
                         session_name="j%d" % n) for n in range(50)]
    assert all(not agent.end(call).failed for call in calls)
    calls = {n: agent.begin(None, tool="check_background_task",
                            tmux_session="j%d" % n, wait_s=30,
                            grep="^EXIT_CODE")
             for n in range(50)}
    for n, call in calls.items():
        result = agent.end(call)
        assert result["exit_code"] == n, result
        assert result["log_tail"] == "EXIT_CODE=%d\n" % n
    listed = agent.run(None, tool="list_background_tasks")
    assert len(listed["tasks"]) == 50
    agent.leave()


def test_list_sees_the_jobs_of_everybody(jobs, home, sshd):
    jobs.start("sleep 77", "a")
    jobs.start("exit 3", "b")
    jobs.over("b")
    other = ssh_servers.Home()
    try:
        result = other.call("list_background_tasks", [sshd.entry("x")])
        tasks = {task["tmux_session"]: task for task in result["tasks"]}
        assert (tasks["a"]["state"], tasks["a"]["sandbox"]) == ("running", "x")
        assert (tasks["b"]["state"], tasks["b"]["exit_code"]) == ("exited", 3)
        assert tasks["a"]["log_size"] > 0 and "log_size" not in tasks["b"]
        assert [task["tmux_session"] for task in result["tasks"]] == ["a", "b"]
        result = other.call("list_background_tasks", [sshd.entry("x")],
                            running_only=True)
        assert [task["tmux_session"] for task in result["tasks"]] == ["a"]
        assert other.call("check_background_task", [sshd.entry("x")],
                          tmux_session="b")["exit_code"] == 3
    finally:
        other.end()


def test_cleanup_takes_what_is_old_and_ended(jobs):
    for name in ("old", "new"):
        jobs.start("true", name, idempotency_key=name)
        jobs.over(name)
    jobs.start("sleep 77", "running")
    for name in ("old", "running"):
        subprocess.run(["touch", "-d", "5 days ago", jobs.run_dir(name)],
                       check=True)
    result = jobs.good("list_background_tasks", cleanup_days=3)
    assert result["removed"] == 1
    assert set(jobs.tasks()) == {"new", "running"}
    assert not (jobs.host / STATE / "old").exists()
    assert (jobs.host / ".codex_logs/old.log").exists()
    # Its key is free again, that of the other is not.
    assert jobs.start("true", "old", idempotency_key="old")["run"] == 1
    assert jobs.start("true", "new", idempotency_key="new")["status"] == \
        "already_started"


def test_dead_host_does_not_hold_up_the_list(home, sshd, new_sshd):
    dead = new_sshd()
    entry = dead.entry("dead", connect_timeout_s=5)
    dead.stop()
    jobs = Jobs(home, [entry, sshd.entry()], sshd.home)
    jobs.start("true", "j", sandbox_name="box")
    result = jobs.good("list_background_tasks")
    assert [task["tmux_session"] for task in result["tasks"]] == ["j"]
    assert [each["sandbox"] for each in result["unreachable"]] == ["dead"]


# --- exec_bash that goes on -------------------------------------------------

def test_exec_that_ends_in_time(jobs):
    result = jobs.good("exec_bash", command="echo out; echo err >&2; exit 3",
                       on_timeout="background")
    assert (result["exit_code"], result["stdout"], result["stderr"]) == \
        (3, "out\nerr\n", "")
    assert result["state"] == "exited" and "command_state" not in result
    result = jobs.good("exec_bash", command="kill -9 $$",
                       on_timeout="background")
    assert (result["exit_code"], result["signal"]) == (137, 9)
    result = jobs.good("exec_bash", command="seq 100000", max_output_chars=99,
                       on_timeout="background")
    assert result["stdout"].startswith("1\n2\n")
    assert result["stdout"].endswith("\n100000\n")
    assert result["truncated"]["stdout"] > 500000
    result = jobs.ask("exec_bash", command="true", cwd="missing",
                      on_timeout="background")
    assert result.failed and "nothing was started" in result["error"]


def test_exec_that_ends_in_time_and_leaves_children(jobs, tag):
    result = jobs.good("exec_bash", command="sleep %s & echo left" % tag,
                       on_timeout="background")
    assert (result["exit_code"], result["stdout"]) == (0, "left\n")
    assert result["background_pids"] == tag.pids()
    name = result["tmux_session"]
    assert jobs.check(name)["orphans"] == 1
    assert jobs.stop(name)["kill_verified"] is True and not tag.pids()


def test_exec_that_goes_on(jobs, tag):
    result = jobs.good("exec_bash", command="echo begun; sleep %s" % tag,
                       timeout_s=1, on_timeout="background")
    assert result["exit_code"] is None and result["state"] == "running"
    assert result["command_state"] == "in_background"
    assert result["stdout"] == "begun\n" and "timed_out" not in result
    name = result["tmux_session"]
    assert result["log_file"].endswith("/.codex_logs/%s.log" % name)
    assert jobs.check(name)["state"] == "running" and tag.pids()
    os.kill(tag.pids()[0], signal.SIGTERM)
    assert jobs.over(name)["exit_code"] == 143


def test_exec_that_goes_on_survives_our_end(jobs, home, tag):
    jobs.server.send(rsmcp.call("x", "exec_bash", command="sleep %s" % tag,
                                on_timeout="background"))
    tag.runs()
    jobs.server.signal(signal.SIGKILL)
    jobs.server.process.wait()
    time.sleep(1)
    assert tag.pids()
    jobs.server = home.server(jobs.entries)
    [task] = jobs.tasks().values()
    assert task["state"] == "running"
    assert jobs.stop(task["tmux_session"])["kill_verified"] is True


# --- Hosts without this and that --------------------------------------------

@pytest.mark.parametrize("hidden", [
    ("tmux",), ("bash", "rbash", "tmux"), ("setsid",),
    ("setsid", "perl", "python", "bash", "rbash", "tmux"), "busybox",
    "busybox without strings"])
def test_host_without(home, new_sshd, tmp_path, hidden, tag):
    place = tmp_path / "bin"
    if str(hidden).startswith("busybox"):
        only_busybox(place)
        if hidden != "busybox":
            (place / "strings").unlink()
    else:
        agents.programs(place, *hidden)
    server = new_sshd(env={"PATH": place})
    jobs = Jobs(home, [server.entry()], server.home)
    started = jobs.start("echo hi; exit 3", "a")
    assert ("attach_command" in started) == (hidden == ("setsid",))
    result = jobs.over("a")
    assert (result["state"], result["exit_code"]) == ("exited", 3)
    jobs.start("kill -9 $$", "b")
    assert jobs.over("b")["signal"] == 9
    jobs.start("sleep %s & sleep %s" % (tag, tag), "c")
    tag.runs(2)
    assert jobs.tasks()["c"]["state"] == "running"
    home.end_masters()
    jobs.server.signal(signal.SIGKILL)
    jobs.server.process.wait()
    jobs.server = home.server(jobs.entries)
    assert jobs.check("c")["state"] == "running" and len(tag.pids()) == 2
    result = jobs.stop("c", grace_s=1)
    assert result["was_running"] and result["kill_verified"], result
    assert not tag.pids()
    result = jobs.check("a", since_offset=0, grep="^h")
    assert result["log_tail"] == "hi\n"


@needs_root
def test_ordinary_user(user_jobs, tag):
    jobs = user_jobs
    jobs.start("id -u; sleep %s" % tag, "j", env={"SECRET": "s"})
    tag.runs()
    state = jobs.host / STATE
    assert state.stat().st_mode & 0o777 == 0o700
    assert jobs.stop("j")["kill_verified"] is True
    assert not tag.pids()
