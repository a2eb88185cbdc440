"""The works find a lie if they are told one."""

import pathlib
import random
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
import run  # noqa: E402
import sshd as ssh_servers  # noqa: E402
import works  # noqa: E402


class Liar:
    """A world that says what it is told to."""

    db_was_broken = False

    def __init__(self, path):
        self.far = self.small = path
        self.says = {}

    def begin(self, tool, command=None, **arguments):
        return tool

    def end(self, tool):
        return self.says[tool]

    def call(self, tool, command=None, **arguments):
        return self.says[tool]

    settled = call

    def say(self, tool, failed=False, **fields):
        self.says[tool] = ssh_servers.Result(fields)
        self.says[tool].failed = failed


@pytest.fixture
def liar(tmp_path):
    return Liar(tmp_path)


def begun(kind, liar):
    work = kind(liar, random.Random(1), "name")
    work.begin()
    return work


def ran(work, times):
    work.runs.write_text("name\n" * times)


@pytest.mark.parametrize("times, lie, fields", [
    (1, False, {"exit_code": 0}), (0, True, {"exit_code": 0}),
    (2, True, {"exit_code": 0}), (1, True, {"exit_code": 1}),
    (1, True, {"exit_code": 0, "stdout": "half"}),
    (0, False, {"failed": True}), (1, True, {"failed": True}),
    (1, False, {"exit_code": None, "command_state": "may_be_running"}),
    (2, True, {"exit_code": None, "command_state": "may_be_running"}),
    (1, True, {"exit_code": None}),
])
def test_exec(liar, times, lie, fields):
    work = begun(works.Exec, liar)
    ran(work, times)
    liar.say("exec_bash", **{"stdout": "x" * work.size + "done\n", **fields})
    work.settle()
    assert bool(work.wrong) == lie, work.wrong


def test_what_ran_late_is_found(liar):
    work = begun(works.Exec, liar)
    ran(work, 0)
    liar.say("exec_bash", failed=True)
    work.settle()
    scenario = run.Scenario("1", 1)
    scenario.works = [work]
    run.final_look([scenario], liar)
    assert scenario.wrong == []
    ran(work, 1)
    run.final_look([scenario], liar)
    assert scenario.wrong


def test_verified_kill(liar, monkeypatch):
    work = begun(works.Kill, liar)
    alive = [[4711], []]
    monkeypatch.setattr(work.tag, "pids", lambda: alive.pop(0))
    liar.say("exec_bash", exit_code=None, timed_out=True, kill_verified=True)
    work.settle()
    assert work.wrong


@pytest.mark.parametrize("lie", [
    None, {"exit_code": 4}, {"state": "lost"}, "unfinished", "twice",
    "never"])
def test_job(liar, lie):
    work = begun(works.Job, liar)
    work.again = False
    ran(work, {"twice": 2, "never": 0}.get(lie, 1)
        if not isinstance(lie, dict) else 1)
    if lie != "unfinished":
        work.ends.write_text("x\n")
    work.code = 3
    liar.say("exec_bash_background", status="started")
    liar.say("check_background_task", **{
        "state": "exited", "exit_code": 3,
        **(lie if isinstance(lie, dict) else {})})
    work.settle()
    assert bool(work.wrong) == (lie is not None), work.wrong


def test_job_that_was_not_started(liar):
    work = begun(works.Job, liar)
    work.again = False
    ran(work, 1)
    liar.say("exec_bash_background", failed=True, error="nothing was started")
    work.settle()
    assert work.wrong and work.finally_ran() == (0, 0)


def copy(work):
    for name, what in work.before.items():
        if what[0] == "file" and not work.excluded(name):
            works.write(work.target / name.decode(), what[3], what[1],
                        what[2])
    (work.target / "extra").unlink()


@pytest.mark.parametrize("lie", [
    None,
    lambda target: works.write(target / "d0/f0", "half"),
    lambda target: (target / "d1/f1").unlink(),
    lambda target: works.write(target / "keep/a", "theirs"),
    lambda target: (target / "d0/x.tmp").unlink(),
    lambda target: works.write(target / "../source/d0/f0", "changed"),
])
def test_sync(liar, lie):
    work = begun(works.Sync, liar)
    copy(work)
    if lie:
        lie(work.target)
    liar.say("sync_local_to_remote", mode="inline")
    work.settle()
    assert bool(work.wrong) == bool(lie), work.wrong


@pytest.mark.parametrize("told", [["completed"], [], ["lost"],
                                  ["completed", "completed"]])
def test_watch(liar, monkeypatch, told):
    def wait(what, condition):
        assert condition(), what

    monkeypatch.setattr(works, "wait", wait)
    liar.begin_daemon = lambda: None
    work = begun(works.Watch, liar)
    work.code = 0
    liar.say("exec_bash_background", watch_id=1)
    liar.say("list_background_watch_events",
             events=[{"event_type": each} for each in told])
    work.settle()
    assert bool(work.wrong) == (told != ["completed"]), work.wrong
