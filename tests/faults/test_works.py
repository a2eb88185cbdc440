"""The works find a lie if they are told one, and faults that hit nothing are
counted as such."""

import collections
import os
import pathlib
import queue
import random
import subprocess
import sys
import threading

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
import road as roads  # noqa: E402
import run  # noqa: E402
import sshd as ssh_servers  # noqa: E402
import works  # noqa: E402
import world as worlds  # noqa: E402


class Liar:
    """A world that says what it is told to.  A reply comes when it is asked
    for."""

    db_was_broken = False

    def __init__(self, path):
        self.far = self.small = pathlib.Path(path)
        self.says = {}
        self.heard = []             # (event, its file) as they are told
        self.files = {}             # events as they are kept in files
        self.happened = set()

    def begin(self, tool, command=None, then=None, **arguments):
        return tool, then

    def end(self, call):
        tool, then = call
        if then:
            then()
        return self.says[tool]

    def call(self, tool, command=None, **arguments):
        return self.says[tool]

    settled = call

    def say(self, tool, failed=False, **fields):
        self.says[tool] = ssh_servers.Result(fields)
        self.says[tool].failed = failed

    def begin_daemon(self):
        pass

    def receiver(self):
        return "true"

    def told(self, watch):
        return self.heard

    def event_file(self, number):
        return self.files.get(number)

    def time_passes(self, seconds):
        pass

    def breakers(self):
        return list(works.Work.COMMON)

    def heal(self):
        pass

    def ready(self, with_link):
        pass


@pytest.fixture
def liar(tmp_path, monkeypatch):
    """Nothing gets better by waiting for it."""
    def wait(what, condition):
        value = condition()
        assert value, what
        return value

    monkeypatch.setattr(works, "wait", wait)
    monkeypatch.setattr(works, "PATIENCE_S", 0)
    return Liar(tmp_path)


def begun(kind, liar):
    work = kind(liar, random.Random(1), "name")
    work.prepare()
    work.begin()
    return work


def ran(work, times):
    work.runs.write_text("name\n" * times)


UNKNOWN = {"exit_code": None, "command_state": "may_be_running"}


@pytest.mark.parametrize("times, ended, lie, fields", [
    (1, True, False, {"exit_code": 0}),
    (0, True, True, {"exit_code": 0}),
    (2, True, True, {"exit_code": 0}),
    (1, False, True, {"exit_code": 0}),
    (1, True, True, {"exit_code": 1}),
    (1, True, True, {"exit_code": 0, "stdout": "half"}),
    (0, False, False, {"failed": True}),
    (1, False, True, {"failed": True}),
    (1, False, False, UNKNOWN),
    (2, False, True, UNKNOWN),
    (1, False, True, {"exit_code": None}),
])
def test_exec(liar, times, ended, lie, fields):
    work = begun(works.Exec, liar)
    ran(work, times)
    if ended:
        work.end_mark.touch()
    liar.say("exec_bash", **{"stdout": "x" * work.size + "done\n", **fields})
    work.settle()
    assert bool(work.wrong) == lie, work.wrong


def test_a_command_that_ends_after_that_was_said(liar):
    """What counts is the moment of the reply."""
    work = begun(works.Exec, liar)
    ran(work, 1)
    liar.say("exec_bash", stdout="x" * work.size + "done\n", exit_code=0)
    liar.end(work.call)
    work.end_mark.touch()
    work.call = ("exec_bash", None)
    work.settle()
    assert work.wrong


def late(liar, work, at_first, at_last):
    """What the final look says of it."""
    ran(work, at_first)
    work.settle()
    scenario = run.Scenario("1", 1)
    scenario.works = [work]
    run.final_look([scenario], liar)
    assert scenario.wrong == [] and work.wrong == []
    ran(work, at_last)
    run.final_look([scenario], liar)
    return scenario.wrong


def test_what_ran_late_is_found(liar):
    work = begun(works.Exec, liar)
    liar.say("exec_bash", failed=True)
    assert late(liar, work, 0, 1)


def test_what_ran_again_is_found(liar):
    work = begun(works.Exec, liar)
    liar.say("exec_bash", **UNKNOWN)
    assert late(liar, work, 1, 2)


class Alive:
    """Who is alive, each time that it is asked; the last for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __call__(self):
        return self.answers.pop(0) if len(self.answers) > 1 \
            else self.answers[0]


TIMED_OUT = {"exit_code": None, "timed_out": True}


@pytest.mark.parametrize("alive, times, lie, fields", [
    ([[]], 1, False, {**TIMED_OUT, "kill_verified": True}),
    # At the moment of the reply, and not any more when it is judged.
    ([[4711], []], 1, True, {**TIMED_OUT, "kill_verified": True}),
    ([[4711], []], 1, False, {**TIMED_OUT, "kill_verified": False}),
    ([[4711]], 1, True, {**TIMED_OUT, "kill_verified": False}),
    ([[4711]], 1, True, UNKNOWN),
    ([[]], 2, True, UNKNOWN),
    ([[]], 1, True, {"exit_code": 0}),
])
def test_kill(liar, alive, times, lie, fields):
    work = begun(works.Kill, liar)
    work.alive = Alive(*alive)
    ran(work, times)
    liar.say("exec_bash", **fields)
    work.settle()
    assert bool(work.wrong) == lie, work.wrong


@pytest.mark.parametrize("said, alive, lie", [
    ("stop_background_task", [[]], False),
    ("stop_background_task", [[], [4711], []], True),       # while
    ("stop_background_task", [[], [], [4711], []], True),   # after
    ("stop_background_task", [[], [], [], [4711]], True),   # for ever
])
def test_stop(liar, said, alive, lie):
    work = begun(works.Stop, liar)
    liar.over = lambda call: True
    liar.say("exec_bash_background", status="started")
    liar.say("stop_background_task", kill_verified=True)
    # The reply of the start is looked at, too.
    work.call = ("exec_bash_background", work.look("start"))
    work.alive = Alive(*alive)
    work.poll()
    work.settle()
    assert bool(work.wrong) == lie, work.wrong


def test_processes_are_found_by_both_marks(liar, tmp_path):
    """By the word on the command line, and by the one in the environment."""
    work = begun(works.Kill, liar)
    assert work.alive() == []
    work.marked.write_text("call-4711\n")
    found = []
    for argv, env in ((["sleep", str(work.tag)], {}),
                      (["sleep", "600"], {"RSMCP_CALL": "call-4711"})):
        process = subprocess.Popen(argv, env={
            **os.environ, **env})
        try:
            worlds.wait("it is found", lambda: process.pid in work.alive())
            found.append(process.pid)
        finally:
            process.kill()
            process.wait()
    assert len(found) == 2 and work.alive() == []


@pytest.mark.parametrize("lie", [
    None, {"exit_code": 4}, {"state": "lost"}, {"state": "killed"},
    "unfinished", "twice", "never"])
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


def test_job_that_was_started_and_never_came_to_run(liar):
    work = begun(works.Job, liar)
    work.again = False
    ran(work, 1)
    work.ends.touch()
    liar.say("exec_bash_background", status="started")
    liar.say("check_background_task", state="lost",
             reason="it never came to run", exit_code=work.code)
    work.poll()
    work.settle()
    assert work.wrong


def copy(work):
    for name, what in work.before.items():
        if what[0] == "file" and not work.excluded(name):
            works.write(work.target / name.decode(), what[3], what[1],
                        what[2])
    (work.target / "extra").unlink(missing_ok=True)


LIES = {
    "half a file": lambda target: works.write(target / "d0/f0", "half"),
    "a file is missing": lambda target: (target / "d1/f1").unlink(),
    "excluded, and changed": lambda target: works.write(
        target / "keep/a", "theirs"),
    "excluded, and gone": lambda target: (target / "d0/x.tmp").unlink(),
    "excluded, and copied": lambda target: works.write(
        target / "d0/x.tmp", "not this"),
    "what was to go is there": lambda target: works.write(
        target / "extra", "old"),
    "the source changed": lambda target: works.write(
        target / "../source/d0/f0", "changed"),
}
SYNCS = [(works.Sync, "sync_local_to_remote"),
         (works.Down, "sync_remote_to_local")]


@pytest.mark.parametrize("kind, tool", SYNCS)
@pytest.mark.parametrize("lie", [None, *LIES])
def test_sync(liar, kind, tool, lie):
    work = begun(kind, liar)
    work.arguments["delete_extras"] = True
    copy(work)
    if lie:
        LIES[lie](work.target)
    liar.say(tool, mode="inline")
    work.settle()
    assert bool(work.wrong) == bool(lie), work.wrong


def test_sync_that_was_done_after_that_was_said(liar):
    work = begun(works.Sync, liar)
    liar.say("sync_local_to_remote", mode="inline")
    liar.end(work.call)
    copy(work)
    work.call = ("sync_local_to_remote", None)
    work.settle()
    assert work.wrong


def test_sync_that_failed_leaves_no_half_file(liar):
    work = begun(works.Sync, liar)
    works.write(work.target / "d0/f0", "half")
    liar.say("sync_local_to_remote", failed=True)
    with pytest.raises(AssertionError):     # it never comes to its end
        work.settle()
    assert "neither old nor new" in work.wrong[0]


@pytest.mark.parametrize("lie", [None, *LIES])
def test_transfer(liar, lie):
    work = begun(works.Transfer, liar)
    work.arguments["delete_extras"] = True
    copy(work)
    if lie:
        LIES[lie](work.target)
    liar.say("sync_local_to_remote_background", task_id=1)
    liar.say("check_file_transfer_task", status="completed")
    work.settle()
    assert bool(work.wrong) == bool(lie), work.wrong


@pytest.mark.parametrize("lives", [False, True])
def test_a_worker_that_lives_after_its_end(liar, lives):
    work = begun(works.Transfer, liar)
    work.cancelled, work.patience = True, 0
    pid = os.getpid() if lives else subprocess.Popen(["true"]).pid
    worlds.wait("it has ended", lambda: lives or works.rsmcp.gone(pid))
    liar.say("sync_local_to_remote_background", task_id=1, pid=pid)
    liar.say("cancel_file_transfer_task", status="cancelled", terminated=True)
    work.poll()
    assert bool(work.wrong) == lives


# Events.

def event(work, number=1, **fields):
    """One as it should be."""
    return {"id": number, "watch_id": 1, "event_type": work.kind,
            "summary": "The job 'name' on box has ended.", "created_ts": 1,
            "payload": {"watch": {"id": 1, "tmux_session": "name"},
                        "exit_code": work.code,
                        "log_tail": "%s\n" % work.word}, **fields}


def keep(liar, *events):
    liar.say("list_background_watch_events", events=list(events))
    liar.files = {each["id"]: each for each in events}
    liar.heard = [(each, each) for each in events]


def other(event, **fields):
    return {**event, "payload": {**event["payload"], **fields}}


def watched(liar):
    work = begun(works.Watch, liar)
    liar.say("exec_bash_background", watch_id=1)
    keep(liar, event(work, 2), event(work, 1, event_type="ssh_unreachable"))
    return work


def test_what_was_told_right(liar):
    work = watched(liar)
    work.settle()
    assert work.wrong == [] and work.outcome == "its end was told"


def nothing_was_told(work, liar):
    liar.heard = []


def stored_and_not_told(work, liar):
    del liar.heard[1]


def the_end_was_stored_and_not_told(work, liar):
    del liar.heard[0]


def told_and_not_stored(work, liar):
    liar.say("list_background_watch_events", events=[event(work, 2)])


def told_and_no_file(work, liar):
    liar.files = {}


def a_file_with_something_else(work, liar):
    liar.files[2] = event(work, 2, summary="The job 'name' is well.")


def another_file_for_the_receiver(work, liar):
    liar.heard[0] = (event(work, 2), event(work, 1))


def told_other_than_stored(work, liar):
    liar.heard[0] = 2 * (event(work, 2, created_ts=2),)


def told_twice(work, liar):
    liar.heard.append(liar.heard[0])


def told_twice_by_other_ids(work, liar):
    keep(liar, event(work, 1), event(work, 2))


def another_end(work, liar):
    keep(liar, event(work, 1, event_type="interrupted"), event(work, 2))


def another_exit_code(work, liar):
    keep(liar, other(event(work), exit_code=7))


def another_log(work, liar):
    keep(liar, other(event(work), log_tail="theirs\n"))


def another_job(work, liar):
    keep(liar, other(event(work), watch={"id": 1, "tmux_session": "x"}))


@pytest.mark.parametrize("lie", [
    nothing_was_told, stored_and_not_told, the_end_was_stored_and_not_told,
    told_and_not_stored, told_and_no_file, a_file_with_something_else,
    another_file_for_the_receiver, told_other_than_stored, told_twice,
    told_twice_by_other_ids, another_end, another_exit_code, another_log,
    another_job])
def test_what_was_told_wrong(liar, lie):
    work = watched(liar)
    lie(work, liar)
    work.settle()
    assert work.wrong


@pytest.mark.parametrize("happened, lie", [
    ("daemon_killed", False), ("state_full", False), ("clock_set", True),
    ("cut", True)])
def test_the_same_event_again(liar, happened, lie):
    """At least once, if the watchdog itself was hit; else once."""
    work = watched(liar)
    liar.happened = {happened}
    told_twice(work, liar)
    work.settle()
    assert bool(work.wrong) == lie, work.wrong


def test_a_database_that_was_broken_excuses_no_lie(liar):
    liar.db_was_broken = True
    work = watched(liar)
    nothing_was_told(work, liar)
    work.settle()
    assert not work.wrong
    told_twice_by_other_ids(work, liar)
    work.settle()
    assert work.wrong


def test_the_receiver_writes_down_what_it_is_told(tmp_path):
    world = worlds.World.__new__(worlds.World)
    world.heard, world.tellings = tmp_path / "heard", {}
    world.heard.mkdir()
    file = tmp_path / "event.json"
    file.write_text('{"watch_id": 7, "from": "file"}')
    for _ in range(2):
        subprocess.run(["sh", "-c", world.receiver()], check=True, env={
            **os.environ, "RSMCP_EVENT_FILE": str(file),
            "RSMCP_EVENT_JSON": '{"watch_id": 7, "a": "\\n%s"}'})
        (tmp_path / "x").touch()
    assert world.told(7) == 2 * [({"watch_id": 7, "a": "\n%s"},
                                  {"watch_id": 7, "from": "file"})]
    assert world.told(8) == []


# Faults that hit, and those that do not.

class Clock:
    """Time that passes when somebody sleeps."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Idle(works.Work):
    """One that takes its time, and does nothing."""

    def moves(self, outward):
        return 1000

    def lasts(self):
        return 0.1

    def begin(self):
        self.ends = self.world.clock.now + self.world.takes

    def settle(self):
        pass

    def busy(self):
        return self.world.clock.now < self.ends


class Still:
    """A world where nothing moves, and a fault finds something to break the
    third time that it looks."""

    def __init__(self, takes):
        self.far = self.small = pathlib.Path("/nonexistent")
        self.takes = takes
        self.clock = Clock()
        self.road = roads.Road(1)
        self.lock = threading.Lock()
        self.struck = []

    def breakers(self):
        return list(works.Work.COMMON)

    def strike(self, kind, dice):
        self.struck.append(kind)
        return worlds.nothing if self.struck.count(kind) > 2 else None

    def heal(self):
        self.road.heal()

    def ready(self, with_link):
        pass


def played(monkeypatch, takes, number):
    world = Still(takes)
    monkeypatch.setattr(works, "KINDS", [Idle])
    monkeypatch.setattr(run, "time", world.clock)
    try:
        scenario = run.Scenario("x", number)
        scenario.play(world)
        return scenario, world
    finally:
        world.road.close()


def test_a_fault_that_hits_nothing_is_tried_again_and_counted(monkeypatch):
    """Nobody is at work."""
    for number in range(10):
        scenario, world = played(monkeypatch, 0, number)
        assert not any(each.hit for each in scenario.breaks)
        assert "(hit nothing)" in str(scenario) and not world.struck
        assert len(scenario.works) >= run.TRIES


def test_a_road_that_carries_nothing_is_not_broken(monkeypatch):
    seen = 0
    for number in range(10):
        scenario, _ = played(monkeypatch, 0.5, number)
        seen += len([each for each in scenario.breaks if each.by_byte])
        assert not any(each.hit for each in scenario.breaks if each.by_byte)
    assert seen


def test_a_fault_that_hits_is_not_tried_again(monkeypatch):
    went = []
    attempt = run.Scenario.attempt

    def seen(scenario, world, times):
        attempt(scenario, world, times)
        went[-1].append(any(each.hit for each in scenario.breaks))

    monkeypatch.setattr(run.Scenario, "attempt", seen)
    for number in range(30):
        went.append([])
        scenario, world = played(monkeypatch, 5, number)
        assert all(world.struck.count(each.kind) > 2
                   for each in scenario.breaks if each.hit)
        assert not any(went[-1][:-1])
        assert went[-1][-1] or len(went[-1]) == run.TRIES
    assert any(each[-1] for each in went)


def test_a_scenario_is_the_same_again(monkeypatch):
    """Works, faults, places, and the noise that they make."""
    monkeypatch.setattr(works, "KINDS", [Idle, Idle])
    for number in range(20):
        one, again = (run.Scenario("x", number) for _ in range(2))
        for each in (one, again):
            each.do = lambda world, works: None
            each.attempt(Liar("/"), 0)
        assert str(one) == str(again)
        assert [each.dice.random() for each in one.breaks] \
            == [each.dice.random() for each in again.breaks]
        assert [work.dice.random() for work in one.works] \
            == [work.dice.random() for work in again.works]


def test_a_sandbox_that_cannot_be_used_any_more(monkeypatch):
    def ready(self, with_link):
        raise AssertionError("waited in vain")

    monkeypatch.setattr(Still, "ready", ready)
    scenario, _ = played(monkeypatch, 0, 1)
    assert len(scenario.wrong) == 1 and "waited in vain" in scenario.wrong[0]
    assert str(scenario)


def test_later_attempts_break_sooner():
    for number in range(20):
        each = run.Break(random.Random(number), [Idle(Liar("/"), None, "x")],
                         list(works.Work.COMMON))
        after, when = each.after, each.when
        assert after < 1000 and when < 0.1
        each.sooner(2)
        assert each.after == after // 64 and each.when == when / 16


def gathered(capsys, *answers):
    told = queue.Queue()
    for each in [*answers, None]:
        told.put(each)
    status = run.gather(told, 1, "1")
    return status, capsys.readouterr().out


def test_a_run_whose_faults_hit_nothing_fails(capsys):
    good = [("a", [], [("cut", True)], [])] * 45
    miss = [("b", [], [("cut", False)], [])]
    assert gathered(capsys, *good, *5 * miss)[0] == 0
    status, said = gathered(capsys, *good, *6 * miss)
    assert status == 1 and "too little was hit: 45 of 51 scenarios" in said
    assert gathered(capsys)[0] == 1         # none at all


def test_a_kind_of_fault_that_hits_nothing_fails_the_run():
    faults = collections.Counter(cut=100, db_locked=50, disk_full=49)
    hits = collections.Counter(cut=100, db_locked=19)
    assert run.misses(100, 100, faults, hits) == ["db_locked, 19 of 50"]
    hits["db_locked"] = 20
    assert run.misses(100, 100, faults, hits) == []


def test_what_was_wrong_fails_the_run(capsys):
    status, said = gathered(capsys, ("1:7 [Exec]", ["a lie"], [], []))
    assert status == 1 and "1:7 [Exec]\n  a lie" in said


def test_noise_for_the_database_comes_from_the_dice(tmp_path):
    said = set()
    for _ in range(2):
        world = worlds.World.__new__(worlds.World)
        world.home = type("Home", (), {"state": tmp_path})
        assert world.database().parent == tmp_path
        world.database().write_bytes(bytes(100000))
        assert world.db_broken(random.Random(5)) is worlds.nothing
        said.add(world.database().read_bytes())
    assert len(said) == 1 and said != {bytes(100000)}


def test_a_disk_that_is_full(tmp_path):
    disk = worlds.Disk(tmp_path, "1m")
    if not disk.mounted:
        pytest.skip("nothing can be mounted here")
    try:
        mend = disk.fill()
        with pytest.raises(OSError):
            (tmp_path / "more").write_bytes(bytes(5000))
        mend()
        (tmp_path / "more").write_bytes(bytes(5000))
    finally:
        disk.close()
