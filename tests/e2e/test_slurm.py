"""Jobs on a cluster: a real Slurm on loopback, its login node an sshd."""

import os
import re
import sys
import time

import pytest

import agent as agents
import rsmcp
import slurm
import sshd as ssh_servers
import test_watch as watches

pytestmark = [
    pytest.mark.skipif(not ssh_servers.SSHD, reason="there is no sshd"),
    pytest.mark.skipif(bool(slurm.MISSING), reason="Slurm is not installed: "
                       "no " + ", ".join(slurm.MISSING)),
    rsmcp.needs_proc,
]


class Jobs:
    """The tools, of a server whose sandbox is the cluster's login node."""

    def __init__(self, home, cluster, host, **entry):
        self.home, self.cluster, self.host = home, cluster, host
        self.entries = [host.entry(**{"scheduler": "slurm", **entry})]
        self.server = home.server(self.entries)

    def ask(self, tool, **arguments):
        return self.home.ask(self.server, tool, **arguments)

    def good(self, tool, **arguments):
        result = self.ask(tool, **arguments)
        assert not result.failed, result
        return result

    def start(self, command, name="j", **more):
        more.setdefault("watch", False)
        return self.good("exec_bash_background", command=command,
                         session_name=name, **more)

    def refused(self, **arguments):
        result = self.ask("exec_bash_background", **arguments)
        assert result.failed, result
        return result["error"]

    def check(self, name="j", **more):
        return self.good("check_background_task", tmux_session=name, **more)

    def when(self, condition, name="j", **more):
        """Ask until it is so."""
        return rsmcp.until("%s is so" % name, lambda: (
            lambda r: r if condition(r) else None)(self.check(name, **more)),
            3 * rsmcp.PATIENCE_S)

    def over(self, name="j", **more):
        return self.when(lambda r: r["running"] is False, name, wait_s=5,
                         **more)

    def runs(self, name="j"):
        return self.when(lambda r: r.get("slurm_state") == "RUNNING"
                         and "go" in r["log_tail"].split(), name)

    def stop(self, name="j", **more):
        return self.good("stop_background_task", tmux_session=name, **more)

    def tasks(self, **more):
        result = self.good("list_background_tasks", **more)
        return {task["tmux_session"]: task for task in result["tasks"]}


@pytest.fixture
def jobs(home, cluster, new_sshd):
    return Jobs(home, cluster, new_sshd(env=cluster.env))


# What every job does.

def test_a_job_runs_on_a_node(jobs):
    started = jobs.start("echo on $SLURMD_NODENAME; exit 3")
    assert started["status"] == "started"
    assert started["slurm_job_id"].isdigit()
    result = jobs.over()
    assert (result["state"], result["exit_code"]) == ("exited", 3)
    assert result["slurm_state"] == "FAILED"
    assert result["slurm_job_id"] == started["slurm_job_id"]
    assert re.search(r"^on n[12]$", result["log_tail"], re.M)
    assert result["log_tail"].endswith("EXIT_CODE=3\n")


@pytest.mark.parametrize("command, state, code, theirs", [
    ("true", "exited", 0, "COMPLETED"),
    ("kill -9 $$", "killed", 137, "FAILED"),
    ("exit 143", "exited", 143, "FAILED"),
])
def test_ends(jobs, command, state, code, theirs):
    jobs.start(command)
    result = jobs.over()
    assert (result["state"], result["exit_code"], result["slurm_state"]) == \
        (state, code, theirs), result


def test_it_waits_behind_a_full_cluster(jobs):
    jobs.start("echo go; sleep 600", "big", slurm={
        "nodes": 2, "extra": ["--exclusive"]})
    jobs.runs("big")
    jobs.start("echo go; sleep 600", "small", slurm={"time": "30"})
    result = jobs.when(lambda r: r.get("reason"), "small")
    assert (result["state"], result["running"]) == ("pending", True)
    assert result["slurm_state"] == "PENDING"
    assert result["reason"] in ("Resources", "Priority"), result
    # When it began, as far as that can be said: it was submitted then.
    assert result["started_at"] <= time.strftime("%FT%TZ", time.gmtime())
    assert jobs.check("big")["nodes"] == "n[1-2]"
    assert jobs.stop("small")["state"] == "killed"
    result = jobs.check("small")
    assert (result["state"], result["slurm_state"], result["stopped"]) == \
        ("killed", "CANCELLED", True)
    assert "exit_code" not in result and "signal" not in result


def test_the_log_is_followed(jobs):
    jobs.start("echo go; while [ ! -e next ]; do sleep 0.1; done; echo new; "
               "while [ ! -e end ]; do sleep 0.1; done; echo last")
    at = jobs.runs()["next_offset"]
    (jobs.host.home / "next").touch()
    result = jobs.check(since_offset=at, wait_s=20)
    assert result["log_tail"] == "new\n"
    (jobs.host.home / "end").touch()
    result = jobs.over(since_offset=result["next_offset"], grep="^last")
    assert result["log_tail"] == "last\n"


def test_stop_ends_it(jobs, tag):
    # Slurm tells one process after the other: the child may end first.
    jobs.start("trap 'echo saved; exit 7' TERM; echo go; sleep %s & wait; "
               "sleep 3" % tag)
    jobs.runs()
    result = jobs.stop(grace_s=20)
    assert result["was_running"] and result["kill_verified"], result
    assert not tag.pids()
    result = jobs.check()
    assert (result["exit_code"], result["slurm_state"]) == (7, "CANCELLED")
    assert result["stopped"] is True and "saved" in result["log_tail"]
    assert jobs.stop()["was_running"] is False


def test_stop_kills_what_does_not_listen(jobs, tag):
    jobs.start("trap '' TERM; echo go; exec -a %s sleep 600" % tag)
    jobs.runs()
    assert jobs.stop(grace_s=0)["kill_verified"] is True
    assert jobs.check()["state"] == "killed"


def test_a_name_is_taken_while_it_runs(jobs):
    first = jobs.start("echo go; sleep 600", idempotency_key="k")
    assert "is running" in jobs.refused(command="true", session_name="j")
    again = jobs.start("true", "other", idempotency_key="k")
    assert again["status"] == "already_started"
    assert again["tmux_session"] == "j" and again["run"] == first["run"]
    assert again["slurm_job_id"] == first["slurm_job_id"]
    jobs.stop()
    assert jobs.start("true")["run"] == 2


# Takes the place of sbatch: tells whom it serves, waits until the connection is
# gone, and then answers or takes with it all that waits for it.
SBATCH = """#!/bin/sh
out=$(SBATCH "$@") || exit
echo "$out" >>~/submitted
until [ -e ~/cut ]; do sleep 0.05; done
p=$PPID
while [ -e ~/never ] && ! grep -q sshd /proc/$p/comm && [ $p -gt 1 ]; do
	read -r _ _ _ next _ </proc/$p/stat
	kill -9 $p
	p=$next
done
echo "$out"
"""


@pytest.mark.parametrize("answers", [True, False])
def test_a_reply_that_is_lost_behind_sbatch(home, cluster, new_sshd, tmp_path,
                                            answers):
    """The job is found by its record, or by the comment that it bears."""
    (tmp_path / "sbatch").write_text(
        SBATCH.replace("SBATCH", slurm.PROGRAMS["sbatch"]))
    (tmp_path / "sbatch").chmod(0o755)
    host = new_sshd(env={**cluster.env, "PATH": "%s:%s" % (
        tmp_path, os.environ["PATH"])})
    if not answers:
        (host.home / "never").touch()
    jobs = Jobs(home, cluster, host)
    jobs.good("exec_bash", command="true")
    submitted = host.home / "submitted"
    wish = {"command": "echo x >>~/count; exit 5", "session_name": "j",
            "idempotency_key": "k", "watch": False}
    jobs.server.send(rsmcp.call("go", "exec_bash_background", **wish))
    rsmcp.until("Slurm has it", submitted.exists)
    host.cut()
    (host.home / "cut").touch()
    reply = jobs.server.reply("go")["result"]
    result = reply["structuredContent"]
    assert not reply.get("isError"), result
    assert result["launch_recovered"] is True
    assert result["status"] == "started" and result["run"] == 1
    again = jobs.good("exec_bash_background", **wish)
    assert again["status"] == "already_started"
    assert [again["slurm_job_id"]] == [result["slurm_job_id"]] \
        == submitted.read_text().split()
    assert jobs.over()["exit_code"] == 5
    assert (host.home / "count").read_text() == "x\n"


@pytest.mark.parametrize("words", [
    "echo Welcome; echo 12 nodes; SBATCH \"$@\"; echo Enjoy",
    "SBATCH \"$@\" | sed 's/$/;there/'",
    "SBATCH --quiet \"$@\" >/dev/null",
])
def test_an_sbatch_that_says_other_things(home, cluster, new_sshd, tmp_path,
                                          words):
    """The number is the line that is one, or the queue has it."""
    (tmp_path / "sbatch").write_text(
        "#!/bin/sh\n" + words.replace("SBATCH", slurm.PROGRAMS["sbatch"]))
    (tmp_path / "sbatch").chmod(0o755)
    jobs = Jobs(home, cluster, new_sshd(env={**cluster.env, "PATH": "%s:%s" % (
        tmp_path, os.environ["PATH"])}))
    job = jobs.start("exit 3")["slurm_job_id"]
    assert jobs.cluster.run("squeue", "-h", "-t", "all", "-j", job, "-o",
                            "%j").stdout == "j\n"
    assert jobs.over()["exit_code"] == 3


def test_environment_directory_and_signals(jobs):
    """What was asked for is there, and Slurm's warning reaches the command."""
    (jobs.host.home / "a dir%").mkdir()
    jobs.start("trap 'echo warned; exit 0' USR1; pwd; echo $A; echo go; "
               "while :; do sleep 0.1; done", cwd="a dir%",
               env={"A": "b c"}, slurm={"cpus": 2, "mem": "100M"})
    result = jobs.runs()
    assert "/a dir%\nb c\ngo\n" in result["log_tail"]
    jobs.cluster.run("scancel", "-b", "-s", "USR1", result["slurm_job_id"])
    result = jobs.over()
    assert result["exit_code"] == 0 and "warned" in result["log_tail"]


def test_a_login_node_without_bash(home, cluster, new_sshd, tmp_path):
    agents.programs(tmp_path / "bin", "bash", "rbash", "timeout")
    host = new_sshd(env={**cluster.env, "PATH": tmp_path / "bin"})
    jobs = Jobs(home, cluster, host)
    jobs.start("echo go; sleep 600", slurm={"array": "0-1"})
    jobs.when(lambda r: r.get("array", {}).get("running") == 2)
    assert jobs.tasks()["j"]["array"]["running"] == 2
    assert jobs.stop("j[0]")["kill_verified"] is True
    assert jobs.stop()["kill_verified"] is True
    result = jobs.check()
    assert result["state"] == "killed" and result["array"]["cancelled"] == 2
    jobs.start("exit 3", "k")
    assert jobs.over("k")["exit_code"] == 3


@pytest.mark.parametrize("wish, words", [
    ({"partition": "a b"}, "slurm.partition"),
    ({"time": "1;reboot"}, "slurm.time"),
    ({"mem": "$(id)"}, "slurm.mem"),
    ({"extra": ["-o", "x"]}, "slurm.extra"),
    ({"extra": ["--output=/etc/x"]}, "--output"),
    ({"extra": ["--wra=x"]}, "--wrap"),
    ({"extra": ["--quiet"]}, "--quiet"),
    ({"array": "a"}, "slurm.array"),
    ({"partition": "nowhere"}, "invalid partition"),
    ({"constraint": "nosuch"}, "sbatch says"),
])
def test_wishes_that_cannot_be(jobs, wish, words):
    assert words in jobs.refused(command="true", slurm=wish)
    assert jobs.tasks() == {}


def test_quotes_stay_quotes(jobs):
    jobs.start("echo \"it's\"", slurm={
        "extra": ["--mail-user=a'b; touch pwned $(touch pwned)"]})
    result = jobs.over()
    assert "\nit's\n" in result["log_tail"]
    assert not (jobs.host.home / "pwned").exists()


# Ends that are not the job's own.

def test_time_limit(jobs):
    """It is no failure, whatever the command makes of the signal."""
    jobs.start("trap 'exit 0' TERM; echo go; while :; do sleep 0.1; done",
               slurm={"time": "1"})
    job = jobs.runs()["slurm_job_id"]
    jobs.cluster.run("scontrol", "update", "JobId=" + job, "EndTime=now+1")
    result = jobs.over()
    assert (result["state"], result["slurm_state"]) == ("lost", "TIMEOUT")
    assert result["reason"] == "its time limit was reached"
    assert "exit_code" not in result
    assert "DUE TO TIME LIMIT" in result["log_tail"]


def test_node_fails(jobs):
    jobs.start("echo go; sleep 600", slurm={
        "requeue": "no", "extra": ["--nodelist=n2"]})
    jobs.runs()
    jobs.cluster.kill_node("n2")
    jobs.cluster.run("scontrol", "update", "NodeName=n2", "State=DOWN",
                     "Reason=test")
    try:
        result = jobs.over()
        assert (result["state"], result["slurm_state"]) == \
            ("lost", "NODE_FAIL")
        assert result["reason"] == "its node failed"
    finally:
        jobs.cluster.start_node("n2")
        jobs.cluster.run("scontrol", "update", "NodeName=n2", "State=RESUME")


def test_preempted(jobs):
    jobs.start("echo go; sleep 600", "low", slurm={
        "partition": "cancel", "nodes": 2, "extra": ["--exclusive"]})
    jobs.runs("low")
    jobs.start("true", "high", slurm={"partition": "urgent"})
    result = jobs.over("low")
    assert (result["state"], result["slurm_state"]) == ("lost", "PREEMPTED")
    assert jobs.over("high")["exit_code"] == 0


def test_requeued(jobs):
    """Slurm runs it again: it is alive all the while, and ends once."""
    jobs.start("echo go; n=${SLURM_RESTART_COUNT:-0}; echo round $n; "
               "[ $n = 1 ] || sleep 600; exit 5", slurm={"requeue": "yes"})
    job = jobs.runs()["slurm_job_id"]
    jobs.cluster.run("scontrol", "requeue", job)
    result = jobs.when(lambda r: r["state"] != "running")
    assert (result["state"], result["running"]) == ("pending", True)
    # A job that was requeued is held back for minutes.
    jobs.cluster.run("scontrol", "update", "JobId=" + job, "StartTime=now")
    result = jobs.over()
    assert (result["state"], result["exit_code"]) == ("exited", 5)
    assert "== requeued: 1\ngo\nround 1\n" in result["log_tail"]


def cgroups():
    """Can Slurm have groups with a limit of memory here?"""
    return ssh_servers.ROOT and os.access(
        slurm.CGROUPS / "memory.limit_in_bytes", os.W_OK)


@pytest.mark.parametrize("memory, theirs, code, words", [
    pytest.param("cgroup", "OUT_OF_MEMORY", 137, "oom-kill event",
                 marks=pytest.mark.skipif(not cgroups(), reason="needs root "
                                          "and cgroups of version 1")),
    # Slurm kills our runner as well, and its queue tells no code.
    ("gather", "FAILED", None, "exceeded memory limit")])
def test_too_much_memory(home, new_cluster, new_sshd, memory, theirs, code,
                         words):
    cluster = new_cluster(memory=memory)
    jobs = Jobs(home, cluster, new_sshd(env=cluster.env))
    jobs.start("exec %s -c 'import time; x = b\"x\" * (300 << 20);"
               " time.sleep(600)'" % sys.executable, slurm={"mem": "60M"})
    result = jobs.over()
    assert (result["state"], result["slurm_state"]) == ("killed", theirs), result
    assert result.get("exit_code") == code
    assert words in result["log_tail"]
    jobs.start("echo all is well", "small", slurm={"mem": "60M"})
    assert jobs.over("small")["exit_code"] == 0


# Slurm forgets.

@pytest.fixture(scope="module")
def forgetful(new_cluster):
    return new_cluster(min_job_age=2)


def until_forgotten(cluster):
    rsmcp.until("Slurm has forgotten them", lambda: not cluster.run(
        "squeue", "-h", "-t", "all").stdout.strip(), 3 * rsmcp.PATIENCE_S)


# Ends a job without a word: the runner goes as well.
SILENT = "kill -9 $PPID $(cut -d' ' -f4 /proc/$PPID/stat); sleep 1"


def test_slurm_forgets(home, forgetful, new_sshd):
    """There is no accounting here, so the runner's record is what is left."""
    jobs = Jobs(home, forgetful, new_sshd(env=forgetful.env))
    jobs.start("exit 4", "bad")
    jobs.start(SILENT, "gone")
    jobs.start("[ $SLURM_ARRAY_TASK_ID != 1 ] || { %s; }" % SILENT, "some",
               slurm={"array": "0-2"})
    until_forgotten(forgetful)
    result = jobs.over("bad")
    assert (result["state"], result["exit_code"]) == ("exited", 4)
    assert "slurm_state" not in result
    for name in "gone", "some", "some[1]":
        result = jobs.over(name)
        assert result["state"] == "lost", result
        assert result["reason"] == "Slurm does not know it any more"
    array = jobs.check("some")["array"]
    assert (array["completed"], array["lost"], array["bad"]) == (2, 1, "1")
    assert jobs.check("some[2]")["exit_code"] == 0


# Takes the place of sacct: if the real one has nothing to say against how it is
# called but that there is no accounting, prints what was recorded elsewhere.
SACCT = """#!/bin/sh
SACCT "$@" 2>&1 | grep -q 'accounting storage is disabled' || exit 1
for word; do
	[ "$last" != -j ] || grep "^$word[_|]" ~/recorded
	last=$word
done
"""

ACCOUNTS = [
    # It made the best of the signal, but it did not come to its end.
    ("exit 0", "TIMEOUT|0:0", "lost", None),
    (SILENT, "OUT_OF_MEMORY|0:125", "killed", 137),
    (SILENT, "FAILED|9:0", "exited", 9),
    (SILENT, "NODE_FAIL|1:0", "lost", None),
    (SILENT, "CANCELLED by 1000|0:15", "killed", None),
    (SILENT, "PREEMPTED|0:0", "lost", None),
]


def test_the_accounting_remembers(home, forgetful, new_sshd, tmp_path):
    (tmp_path / "sacct").write_text(
        SACCT.replace("SACCT", slurm.PROGRAMS["sacct"]))
    (tmp_path / "sacct").chmod(0o755)
    host = new_sshd(env={**forgetful.env, "PATH": "%s:%s" % (
        tmp_path, os.environ["PATH"])})
    jobs = Jobs(home, forgetful, host)
    rows = []
    for n, (command, row, _, _) in enumerate(ACCOUNTS):
        job = jobs.start(command, "j%d" % n)["slurm_job_id"]
        rows.append("%s|%s|1794838979|n1\n" % (job, row))
    array = jobs.start("n=$SLURM_ARRAY_TASK_ID; " + "".join(
        "[ $n != %d ] || { %s; }; " % (n, a[0])
        for n, a in enumerate(ACCOUNTS)),
        "array", slurm={"array": "0-%d" % len(ACCOUNTS)})["slurm_job_id"]
    rows += ["%s_%d|%s|1794838979|n1\n" % (array, n, a[1])
             for n, a in enumerate(ACCOUNTS)]
    # It has not heard of the end of this one.
    late = jobs.start("exit 3", "late")["slurm_job_id"]
    rows.append("%s|RUNNING|0:0|1794838979|n1\n" % late)
    # Of this one a task was seen in the queue.
    half = jobs.start(
        "[ $SLURM_ARRAY_TASK_ID = 0 ] || { until [ -e go ]; do sleep 0.1; "
        "done; %s; }" % SILENT, "half", slurm={"array": "0-1"})["slurm_job_id"]
    rows.append("%s_1|OUT_OF_MEMORY|0:125|1794838979|n1\n" % half)
    (host.home / "recorded").write_text("".join(rows))
    jobs.over("half[0]")
    (host.home / "go").touch()
    until_forgotten(forgetful)
    for n, (_, row, state, code) in enumerate(ACCOUNTS):
        for name in "j%d" % n, "array[%d]" % n:
            result = jobs.over(name)
            assert (result["state"], result.get("exit_code")) == \
                (state, code), (name, result)
            assert result["slurm_state"] == re.match("[A-Z_]+", row)[0]
    assert jobs.over("array")["array"] == {
        "pending": 0, "running": 0, "completed": 1, "failed": 2,
        "cancelled": 1, "lost": 3, "bad": "0,1,2,3,4,5"}
    assert jobs.over("late")["exit_code"] == 3
    result = jobs.over("half")
    assert result["exit_code"] == 137, result
    assert result["array"]["bad"] == "1"


def test_controller_down(jobs):
    """Nothing is concluded from silence."""
    jobs.start("echo go; sleep 600")
    jobs.start("true", "short")
    job = jobs.runs()["slurm_job_id"]
    jobs.over("short")
    jobs.cluster.save(job)
    jobs.cluster.kill("slurmctld")
    try:
        result = jobs.when(lambda r: r["state"] == "unknown")
        assert result["running"] is None
        assert "Slurm could not be asked" in result["problem"]
        assert "go" in result["log_tail"].split()
        # What is known for good stays known.
        assert jobs.check("short")["state"] == "exited"
        assert jobs.tasks()["j"]["state"] == "unknown"
        assert "nothing was started" in jobs.refused(command="true")
        stop = jobs.ask("stop_background_task", tmux_session="j")
        assert stop.failed and "controller" in stop["error"], stop
    finally:
        jobs.cluster.start_controller()
    assert jobs.when(lambda r: r["state"] != "unknown")["state"] == "running"
    assert jobs.stop()["kill_verified"] is True


# Many.

def test_array(jobs):
    started = jobs.start(
        "echo task $SLURM_ARRAY_TASK_ID; "
        "while [ ! -e go$SLURM_ARRAY_TASK_ID ]; do sleep 0.1; done; "
        "exit $((SLURM_ARRAY_TASK_ID / 2))", slurm={"array": "0-4%3"})
    result = jobs.when(lambda r: r.get("array", {}).get("running") == 3)
    assert result["state"] == "running" and result["array"]["pending"] == 2
    assert jobs.check("j[4]")["state"] == "pending"
    (jobs.host.home / "go0").touch()
    result = jobs.over("j[0]")
    assert (result["state"], result["exit_code"]) == ("exited", 0)
    assert result["slurm_job_id"] == started["slurm_job_id"] + "_0"
    assert "task 0" in result["log_tail"]
    assert jobs.check()["running"] is True
    assert jobs.stop("j[1]")["kill_verified"] is True
    for n in (2, 3, 4):
        (jobs.host.home / ("go%d" % n)).touch()
    result = jobs.over()
    assert (result["state"], result["exit_code"]) == ("exited", 2), result
    assert result["array"] == {
        "pending": 0, "running": 0, "completed": 1, "failed": 3,
        "cancelled": 1, "lost": 0, "bad": "1,2,3,4"}
    assert jobs.check("j[4]")["exit_code"] == 2
    assert jobs.check("j[1]")["slurm_state"] == "CANCELLED"


def test_a_task_that_there_is_not(jobs):
    jobs.start("echo go; sleep 600", slurm={"array": "0-08:2,11%9"})
    jobs.start("echo go; sleep 600", "one", slurm={"extra": ["--hold"]})
    for name in "j[1]", "j[9]", "one[0]":
        for tool in "check_background_task", "stop_background_task":
            result = jobs.ask(tool, tmux_session=name)
            assert result.failed and name in result["error"], result
    for name in "j", "j[8]", "j[11]", "one":
        assert jobs.check(name)["running"] is True


def copy_queue(jobs, ahead):
    """An empty copy of the queue, from a node whose clock is ahead."""
    place = jobs.host.home / ".local/state/remote-sandbox-mcp/jobs"
    place.mkdir(parents=True, exist_ok=True)
    (place / ".queue").write_text("%d ok\n" % (time.time() + ahead))
    return place


def test_a_copy_that_is_older_than_the_job_says_nothing(jobs):
    copy_queue(jobs, 4)
    jobs.start("echo go; sleep 600")
    assert jobs.check()["state"] == "pending"
    jobs.runs()


def test_an_array_is_not_over_with_its_first_task(jobs):
    place = copy_queue(jobs, 4)
    jobs.start("[ $SLURM_ARRAY_TASK_ID = 0 ] || sleep 600",
               slurm={"array": "0-2"})
    rsmcp.until("a task has ended", (place / "j/r1/t0/exit").exists)
    result = jobs.check()
    assert result["running"] is True and "exit_code" not in result, result
    assert result["array"]["completed"] == 1
    assert result["array"]["pending"] + result["array"]["running"] == 2


def test_list_has_all_jobs_of_the_user(jobs):
    jobs.start("echo go; sleep 600", "ours")
    jobs.cluster.run("sbatch", "-o", "/dev/null", "-J", "by hand", "--wrap",
                     "sleep 600")
    tasks = rsmcp.until("both run", lambda: (
        lambda t: t if all(x.get("slurm_state") == "RUNNING"
                           for x in t.values()) and len(t) == 2 else None)(
            jobs.tasks(running_only=True)))
    assert tasks.keys() == {"ours", "by hand"}
    assert "run" not in tasks["by hand"] and tasks["ours"]["run"] == 1
    result = jobs.ask("stop_background_task", tmux_session="by hand")
    assert result.failed and "not started here" in result["error"], result


def all_at_once(jobs, *calls):
    """The results of many calls, in any order."""
    jobs.server.send(*calls)
    replies = [jobs.server.message() for _ in calls]
    assert not any(r["result"].get("isError") for r in replies), replies
    return [r["result"]["structuredContent"] for r in replies]


def few_questions(jobs, what, work):
    """No more than one every three seconds reaches the controller."""
    before, begun = jobs.cluster.questions(), time.monotonic()
    result = work()
    seconds = time.monotonic() - begun
    asked = [b - a for a, b in zip(before, jobs.cluster.questions())]
    print("%s in %.1f s: asked %d times for jobs, %d times for nodes" % (
        what, seconds, *asked))
    # What is told about nodes takes two questions.
    assert asked[0] <= seconds / 3 + 2 and asked[1] <= 2 * (seconds / 3 + 2)
    return result


def test_200_jobs_are_few_questions(jobs):
    """All who ask are answered from one copy of the queue."""
    names = ["j%d" % n for n in range(200)]
    all_at_once(jobs, *[rsmcp.call(
        name, "exec_bash_background", command="true", session_name=name,
        watch=False, slurm={"extra": ["--hold"]}) for name in names])
    results = few_questions(jobs, "200 jobs polled", lambda: all_at_once(
        jobs, *[rsmcp.call(name, "check_background_task", tmux_session=name,
                           last_n_lines=1) for name in names]))
    assert {r["state"] for r in results} == {"pending"}
    assert {r["reason"] for r in results} == {"JobHeldUser"}
    listed = few_questions(jobs, "200 jobs listed", lambda: jobs.good(
        "list_background_tasks"))
    assert listed["left_out"] == 100
    few_questions(jobs, "50 looks at the cluster", lambda: all_at_once(
        jobs, *[rsmcp.call(str(n), "list_sandboxes", check_resources=True)
                for n in range(50)]))


# The cluster itself.

def test_what_the_cluster_has(jobs):
    jobs.start("echo go; sleep 600", slurm={"cpus": 3, "gpus": "a100:1"})
    jobs.runs()
    [box] = jobs.good("list_sandboxes", check_resources=True)["sandboxes"]
    has = box["resources"]
    assert has["scheduler"] == "slurm"
    main = [p for p in has["partitions"] if p["default"]]
    assert [p["name"] for p in main] == ["main"]
    assert main[0]["nodes"] == {"idle": 1, "mixed": 1, "allocated": 0,
                                "other": 0}
    assert (main[0]["cpus_free"], main[0]["cpus_total"]) == (3, 6)
    assert has["gpus"] == [{"type": "a100", "total": 2, "free": 1}]
    assert has["jobs"] == {"running": 1, "pending": 0}
    assert has["idle_score"] == 0.5


def test_a_cluster_that_nobody_named(jobs, home):
    [box] = home.call("list_sandboxes",
                      [jobs.host.entry()], check_resources=True)["sandboxes"]
    assert '"scheduler": "slurm"' in box["resources"]["scheduler_found"]
    result = home.call("exec_bash_background", [jobs.host.entry()],
                       command="true", slurm={"nodes": 1}, watch=False)
    assert result.failed and "is for clusters" in result["error"]


def test_exec_on_a_node(jobs, tag):
    result = jobs.good("exec_bash", command="echo $SLURMD_NODENAME it\\'s; "
                       "echo e >&2; exit 4", on="compute",
                       slurm={"extra": ["--nodelist=n2"]})
    assert (result["stdout"], result["exit_code"]) == ("n2 it's\n", 4)
    assert "e\n" in result["stderr"]
    result = jobs.good("exec_bash", command="echo ${SLURM_JOB_ID-none}")
    assert result["stdout"] == "none\n"
    result = jobs.good("exec_bash", command="sleep %s" % tag, on="compute",
                       timeout_s=3)
    assert result["timed_out"] is True
    rsmcp.until("the allocation is gone", lambda: not jobs.cluster.run(
        "squeue", "-h").stdout.strip())
    assert not tag.pids()
    result = jobs.good("exec_bash", command="echo $SLURM_JOB_ID; exit 6",
                       on="compute", on_timeout="background", timeout_s=60)
    assert result["stdout"].strip().isdigit() and result["exit_code"] == 6
    result = jobs.ask("exec_bash", command="true", slurm={"nodes": 1})
    assert result.failed and '"compute"' in result["error"]


def test_a_command_on_a_node_ends_with_the_server(jobs, tag):
    jobs.server.send(rsmcp.call("c", "exec_bash", on="compute",
                                command="sleep %s" % tag, timeout_s=600))
    rsmcp.until("it runs", tag.pids)
    jobs.server.kill()
    rsmcp.until("the allocation is gone", lambda: not jobs.cluster.run(
        "squeue", "-h").stdout.strip())
    assert not tag.pids()


def test_an_entry_without_the_scheduler_knows_nothing_of_its_jobs(jobs, tag):
    """And says what to do, instead of anything about them."""
    jobs.start("echo go; sleep %s" % tag)
    jobs.runs()
    other = jobs.home.server([jobs.host.entry()])
    result = jobs.home.ask(other, "check_background_task", tmux_session="j")
    assert result["state"] == "unknown" and '"slurm"' in result["problem"]
    result = jobs.home.ask(other, "stop_background_task", tmux_session="j")
    assert result.failed and '"slurm"' in result["error"], result
    assert tag.pids()
    assert jobs.stop()["state"] != "running"


# The watchdog.

class Login:
    """The cluster's login node as the tests of watches take it."""

    def __init__(self, host):
        self.host = host

    def entry(self, name):
        return self.host.entry(name, scheduler="slurm")


@pytest.fixture
def watched(home, cluster, new_sshd):
    host = new_sshd(env=cluster.env)
    made = watches.Watched(home, Login(host))
    made.cluster, made.host = cluster, host
    made.daemon.start()
    yield made
    made.daemon.kill()


def job_of(watched, name="train"):
    """Its number, once it has begun."""
    log = watched.host.home / ".codex_logs" / (name + ".log")
    rsmcp.until("it began", lambda: "\ngo\n" in log.read_text())
    return watched.good("check_background_task",
                        tmux_session=name)["slurm_job_id"]


def test_a_time_limit_is_resumed_from_the_checkpoint(watched):
    watch_id = watched.job(
        "echo go; while :; do echo $((n += 1)) >ck.new; mv ck.new ck; "
        "sleep 0.2; done",
        session_name="train", cwd="~", slurm={"time": "1", "cpus": 2},
        auto_resume=True, checkpoint_path="ck",
        resume_command="echo from $(cat ck) with $SLURM_CPUS_PER_TASK")
    job = job_of(watched)
    watched.until_state(watch_id, "running")
    watched.cluster.run("scontrol", "update", "JobId=" + job, "EndTime=now+1")
    watched.until_event(watch_id, "completed")
    assert watched.events(watch_id) == [
        "interrupted", "resume_started", "completed"]
    log = (watched.host.home / ".codex_logs/train.log").read_text()
    last = (watched.host.home / "ck").read_text().strip()
    assert int(last) > 1 and "\nfrom %s with 2\n" % last in log
    runs = watched.host.home / ".local/state/remote-sandbox-mcp/jobs/train"
    # It could not have begun before the first one was gone.
    assert "--dependency=singleton" in (runs / "r2/opts").read_text()
    assert "--no-requeue" in (runs / "r1/opts").read_text()
    [event] = [e for e in watched.good(
        "list_background_watch_events", watch_id=watch_id)["events"]
        if e["event_type"] == "interrupted"]
    assert "its time limit was reached" in event["summary"]


def test_what_is_resumed_by_another_name_asks_for_the_same(watched):
    watch_id = watched.job(
        "echo go; sleep 600", session_name="train", cwd="~", env={"A": "b c"},
        slurm={"partition": "cancel", "nodes": 2, "extra": ["--exclusive"]},
        auto_resume=True, checkpoint_path="ck",
        resume_command="echo $A in $SLURM_JOB_PARTITION",
        resume_plan_json={"tmux_session": "again"})
    job = job_of(watched)
    watched.until_state(watch_id, "running")
    watched.cluster.run("sbatch", "-p", "urgent", "-o", "/dev/null", "--wrap",
                        "true")
    watched.until_event(watch_id, "completed")
    assert watched.events(watch_id) == [
        "interrupted", "resume_started", "completed"]
    log = (watched.host.home / ".codex_logs/train.log").read_text()
    assert "DUE TO PREEMPTION" in log and "\nb c in cancel\n" in log
    runs = watched.host.home / ".local/state/remote-sandbox-mcp/jobs"
    assert "--dependency=afterany:%s,singleton" % job in \
        (runs / "again/r1/opts").read_text()


def test_what_waits_in_the_queue_is_told(watched):
    watch_id = watched.job("true", session_name="train",
                           slurm={"extra": ["--hold"]})
    rsmcp.until("it waits", lambda: watched.watch(watch_id)["last_summary"]
                == "The job waits in Slurm's queue: JobHeldUser.")
    assert watched.watch(watch_id)["last_state"] == "running"


def test_what_was_cancelled_is_not_resumed(watched):
    watch_id = watched.job(
        "echo go; sleep 600", session_name="train", auto_resume=True,
        resume_command="echo again", checkpoint_path="ck")
    job = job_of(watched)
    watched.until_state(watch_id, "running")
    watched.cluster.run("scancel", job)
    watched.until_state(watch_id, "failed")
    assert watched.events(watch_id) == ["failed"]
    summary = watched.watch(watch_id)["last_summary"]
    assert "CANCELLED" in summary and "stopped on request" in summary


def test_a_silent_controller_is_an_outage(watched):
    watch_id = watched.job("echo go; sleep 600", session_name="train",
                           alert_after_failures=1, auto_resume=True,
                           resume_command="echo again", checkpoint_path="ck")
    job = job_of(watched)
    watched.until_state(watch_id, "running")
    watched.cluster.save(job)
    watched.cluster.kill("slurmctld")
    try:
        watched.until_event(watch_id, "ssh_unreachable")
        assert "Slurm could not be asked" in \
            watched.watch(watch_id)["last_error"]
    finally:
        watched.cluster.start_controller()
    watched.until_event(watch_id, "running_restored")
    assert "resume_started" not in watched.events(watch_id)
