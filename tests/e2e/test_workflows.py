"""The watchdog's work as the README of the Python server shows it (its
sections 7 and 9; the one of section 8 is in test_jobs.py), and what that
server was seen to fail at.

Nobody waits five minutes here: hurry() moves what is to come to now.
"""

import contextlib
import json
import sqlite3

import pytest

import agent as agents
import rsmcp
from watched import Watched, file_of, lose

ADVANCED = {"REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS": "1",
            "REMOTE_SANDBOX_SERVICE": "detached"}


def hurry(home, watch_id):
    """As if the next look, and a resume that waits, were due."""
    with contextlib.closing(sqlite3.connect(
            home.state / "watchdog.sqlite3", timeout=20)) as db, db:
        db.execute("UPDATE watches SET next_check_ts = 1,"
                   " resume_due_ts = min(resume_due_ts, 1) WHERE id = ?",
                   (watch_id,))


class Workflow(Watched):
    """With a host that has a `python`, and the watchdog that comes up by
    itself."""

    def __init__(self, home, sshd):
        super().__init__(home, sshd, env=ADVANCED)
        self.sshd = sshd

    def write(self, path, text):
        path = file_of(self.sshd, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def until_event(self, watch_id, event_type, count=1):
        def there():
            hurry(self.home, watch_id)
            return self.events(watch_id).count(event_type) >= count
        rsmcp.until(event_type, there, timeout=3 * rsmcp.PATIENCE_S)

    def until_known(self, watch_id):
        """The watchdog has seen the checkpoint."""
        def there():
            hurry(self.home, watch_id)
            return self.watch(watch_id)["last_checkpoint_digest"]
        rsmcp.until("the checkpoint is known", there)


@pytest.fixture
def workflow(home, new_sshd, tmp_path):
    place = agents.programs_with_python(tmp_path / "bin")
    return Workflow(home, new_sshd(env={"PATH": place}))


TRAIN = """
import json, sys, time
path = sys.argv[sys.argv.index("--checkpoint") + 1] \\
    if "--checkpoint" in sys.argv else "run_state.json"
if "--resume" in sys.argv:
    print("resumed at epoch", json.load(open(path))["epoch"])
    sys.exit()
json.dump({"epoch": 3}, open(path, "w"))
print("epoch 3 of", sys.argv[1:])
time.sleep(1000)
"""


def test_section_9_a_training_that_is_resumed(workflow):
    workflow.write("projects/mymodel/train.py", TRAIN)
    workflow.write("projects/mymodel/scripts/resume_train.sh",
                   "python train.py --resume\n")
    started = workflow.good(
        "exec_bash_background",
        command="python train.py --epochs 100",
        cwd="~/projects/mymodel",
        run_id="train-001",
        watch_name="train-001",
        auto_resume=True,
        checkpoint_path="~/projects/mymodel/run_state.json",
        checkpoint_format="json",
        resume_command="bash scripts/resume_train.sh",
        resume_plan_json='{"resume_command":"bash scripts/resume_train.sh",'
        '"checkpoint_path":"~/projects/mymodel/run_state.json",'
        '"checkpoint_format":"json"}')
    watch_id = started["watch_id"]
    assert started["status"] == "started" and started["sandbox"] == "box"
    assert started["log_file"] == str(file_of(
        workflow.sshd, "projects/mymodel/.codex_logs/%s.log"
        % started["tmux_session"]))

    result = rsmcp.until("it prints", lambda: (
        lambda r: r if "epoch 3" in r["log_tail"] else None)(
            workflow.good("check_background_task", watch_id=watch_id)))
    assert result["running"] is True and result["watch_id"] == watch_id
    assert "epoch 3 of ['--epochs', '100']\n" in result["log_tail"]

    status = workflow.good("get_watchdog_status")
    assert status["heartbeat_stale"] is False
    assert status["service"]["kind"] == "detached"
    assert status["watch_counts"]["active"] == 1

    workflow.until_known(watch_id)
    progress = workflow.good("get_background_watch_progress",
                             watch_id=watch_id)
    assert progress["live"]["task"]["running"] is True
    assert progress["live"]["checkpoint"]["parsed"] == {"epoch": 3}
    assert progress["stored"]["checkpoint"]["parsed"] == {"epoch": 3}
    assert progress["watch"]["run_id"] == "train-001"
    assert progress["watch"]["name"] == "train-001"

    lose(workflow.sshd, started["tmux_session"])
    workflow.until_event(watch_id, "completed")
    events = workflow.good("list_background_watch_events",
                           watch_id=watch_id)["events"]
    assert [event["event_type"] for event in events] == [
        "completed", "resume_started", "interrupted"]
    result = workflow.good("check_background_task", watch_id=watch_id)
    assert result["running"] is False and result["exit_code"] == 0
    assert "resumed at epoch 3\n" in result["log_tail"]
    tools = [tool["name"] for tool in workflow.server.ask(
        "t", "tools/list", {"_meta": rsmcp.MODERN_META})["result"]["tools"]]
    assert {"get_watchdog_status", "get_background_watch_progress",
            "list_background_watch_events"} <= set(tools)


def test_section_7_paths_are_below_the_working_directory(workflow):
    """The example call: a relative checkpoint, a cwd with "~"."""
    workflow.write("sandboxes/project/train.py", TRAIN)
    workflow.write("sandboxes/project/runs/exp-01/note", "")
    started = workflow.good("exec_bash_background", **json.loads("""{
        "command": "python train.py --workdir runs/exp-01 --checkpoint runs/exp-01/progress.json",
        "cwd": "~/sandboxes/project",
        "checkpoint_path": "runs/exp-01/progress.json",
        "checkpoint_format": "json",
        "resume_command": "python train.py --workdir runs/exp-01 --checkpoint runs/exp-01/progress.json --resume",
        "auto_resume": true
    }"""))
    watch_id = started["watch_id"]
    workflow.until_known(watch_id)
    read = workflow.good("read_background_watch_checkpoint",
                         watch_id=watch_id)
    assert read["checkpoint"]["parsed"] == {"epoch": 3}
    lose(workflow.sshd, started["tmux_session"])
    workflow.until_event(watch_id, "completed")
    assert workflow.events(watch_id) == [
        "interrupted", "resume_started", "completed"]
    assert "resumed at epoch 3\n" in workflow.good(
        "read_background_watch_log", watch_id=watch_id)["log"]["log_tail"]


def test_a_plan_alone_resumes(workflow):
    """With paths that begin with "~", and nothing as a parameter."""
    workflow.write("sandboxes/project/train.py", TRAIN)
    started = workflow.good(
        "exec_bash_background", command="python train.py",
        cwd="~/sandboxes/project", auto_resume=True,
        resume_plan_json=json.dumps({
            "resume_command": "python train.py --resume",
            "checkpoint_path": "~/sandboxes/project/run_state.json",
            "checkpoint_format": "json", "cwd": "~/sandboxes/project"}))
    watch_id = started["watch_id"]
    workflow.until_known(watch_id)
    assert json.loads(workflow.watch(watch_id)["last_checkpoint_text"]) == {
        "epoch": 3}
    lose(workflow.sshd, started["tmux_session"])
    workflow.until_event(watch_id, "completed")
    assert workflow.events(watch_id) == [
        "interrupted", "resume_started", "completed"]


# --- What the Python server was seen to fail at -------------------------------

ENDS = [
    ("exit 3", "failed", 3),
    ("set -u; echo $nothing", "failed", 1),
    ("set -e; false; echo no", "failed", 1),
    ("if", "failed", 2),
    ("exec bash -c 'exit 4'", "failed", 4),
    ("exit 124", "failed", 124),
    ("cat; echo $?", "completed", 0),
    # The exit code is not looked for in the log.
    ("for i in $(seq 90); do printf '%0600d\\n' $i; done", "completed", 0),
    ("echo EXIT_CODE=7", "completed", 0),
    ("printf 'a\\377\\200b\\n'", "completed", 0),
]


def test_every_end_is_told_and_nothing_is_run_again(watched, sshd):
    watched.daemon.start()
    watches = [watched.job(
        command, session_name="j%d" % number, auto_resume=True,
        resume_command="touch again", checkpoint_command="true")
        for number, (command, *_) in enumerate(ENDS)]
    wrong = []
    for watch_id, (command, event, code) in zip(watches, ENDS):
        watched.until_event(watch_id, event)
        watch = watched.watch(watch_id)
        if watched.events(watch_id) != [event] or \
                watch["last_exit_code"] != code:
            wrong.append((command, watched.events(watch_id), watch))
    assert not wrong
    assert not file_of(sshd, "again").exists()
    [event] = watched.good("list_background_watch_events",
                           watch_id=watches[-1])["events"]
    checked = watched.good("check_background_task", watch_id=watches[-1])
    assert "\na\ufffd\ufffdb\n" in event["payload"]["log_tail"]
    assert "\na\ufffd\ufffdb\n" in checked["log_tail"]


@pytest.mark.parametrize("name", ["v1.2:a", "run"])
def test_names_are_safe_and_exact(watched, name):
    """Others whose names begin with it, or become it in tmux, run on."""
    watched.daemon.start()
    for other in ("run-2", "v1_2_a-2"):
        watched.job("sleep 1000", session_name=other)
    watch_id = watched.job("sleep 1", session_name=name)
    watched.until_event(watch_id, "completed")
    assert watched.events() == ["completed"]


@pytest.mark.parametrize("cwd", ["with space", "a;touch broken", "~/til de",
                                 "quo'te\"s"])
def test_working_directories_of_any_name(watched, sshd, cwd):
    watched.daemon.start()
    file_of(sshd, cwd.replace("~/", "")).mkdir()
    watch_id = watched.job("echo 7 >ck; pwd; sleep 1000", session_name="t",
                           cwd=cwd, checkpoint_path="ck", auto_resume=True,
                           resume_command="echo from $(cat ck)")
    rsmcp.until("the checkpoint is known", lambda: watched.watch(watch_id)[
        "last_checkpoint_text"] == "7\n")
    lose(sshd, "t")
    watched.until_event(watch_id, "completed")
    assert "from 7\n" in watched.watch(watch_id)["last_log_tail"]
    assert not file_of(sshd, "broken").exists()


def test_a_connection_that_is_cut_under_the_daemon(watched, sshd):
    """Neither the daemon nor the job ends, and nothing is resumed."""
    watched.daemon.start()
    watch_id = watched.job("while [ ! -e stop ]; do sleep 0.1; done",
                           session_name="t", auto_resume=True,
                           resume_command="touch again",
                           checkpoint_command="true")
    for _ in range(3):
        before = watched.watch(watch_id)["last_checked_ts"]
        sshd.cut()
        rsmcp.until("it is looked at again", lambda: (
            lambda w: w["last_checked_ts"] > before
            and w["last_state"] == "running")(watched.watch(watch_id)))
    file_of(sshd, "stop").touch()
    watched.until_event(watch_id, "completed")
    assert watched.events(watch_id) == ["completed"]
    assert not file_of(sshd, "again").exists()
    assert watched.daemon.process.poll() is None
