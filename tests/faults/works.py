"""What is done while things break, and whether what was said of it is true.

Each work begins calls, may poll while the world breaks, and is settled once
all is well again.  What it finds wrong it adds to "wrong".
"""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import agent as agents  # noqa: E402
from trees import describe, write  # noqa: E402
from world import Gone, wait  # noqa: E402


class Work:
    def __init__(self, world, dice, name):
        self.world, self.dice, self.name = world, dice, name
        self.runs = world.far / "runs"      # a line for each time it ran
        self.wrong = []
        self.last = None        # reply, while it is tried again
        self.outcome = "no reply: the server was killed"

    def false(self, text, *values):
        self.wrong.append("%s %s: %s" % (type(self).__name__, self.name,
                                         text % values))

    def mark(self):
        return "echo %s >>%s" % (self.name, self.runs)

    def times(self):
        return self.runs.read_text().split("\n").count(self.name) \
            if self.runs.exists() else 0

    def poll(self):
        """While the world breaks."""

    def finally_ran(self):
        """How often it may have run, when all is over: (least, most)."""
        return None


class Exec(Work):
    """A command: its reply says what became of it."""

    def begin(self):
        self.size = self.dice.choice([0, 0, 10, 100000, 900000])
        self.pause = self.dice.choice([0, 0, 0.05, 0.3, 1])
        self.call = self.world.begin(
            "exec_bash", "%s; head -c %d /dev/zero | tr '\\0' x; sleep %g; "
            "echo done" % (self.mark(), self.size, self.pause),
            timeout_s=20, max_output_chars=1000000)

    bounds = (0, 1)

    def settle(self):
        try:
            result = self.world.end(self.call)
        except Gone:
            return
        times = self.times()
        if result.failed:
            self.outcome = "not run"
            self.bounds = (0, 0)
            if times:
                self.false("an error, and it ran %d times: %r", times, result)
        elif result["exit_code"] is not None:
            self.outcome = "finished"
            self.bounds = (1, 1)
            if times != 1 or result["exit_code"] != 0 \
                    or result["stdout"] != "x" * self.size + "done\n":
                self.false("it ran %d times: %.300r", times, result)
        else:
            self.outcome = result.get("command_state", "")
            if times > 1 or not (self.outcome == "may_be_running"
                                 or result.get("timed_out")):
                self.false("it ran %d times: %.300r", times, result)

    def finally_ran(self):
        return self.bounds


class Kill(Work):
    """A tree of processes that is ended at its timeout."""

    def begin(self):
        self.tag = agents.Tag()
        self.call = self.world.begin(
            "exec_bash", "%s; sleep %s & setsid sleep %s & "
            "(trap '' TERM; sleep %s); wait" % (
                self.mark(), self.tag, self.tag, self.tag), timeout_s=1)

    def settle(self):
        try:
            result = self.world.end(self.call)
        except Gone:
            result = {}
        left = self.tag.pids()
        if result:
            self.outcome = "kill verified" \
                if result.get("kill_verified") is True else "kill not verified"
        if result.get("kill_verified") is True and left:
            self.false("%d are alive after a verified kill: %r", len(left),
                       result)
        if self.times() > 1:
            self.false("it ran %d times", self.times())
        if result and not result.failed and result["exit_code"] is not None \
                and not result.get("timed_out"):
            self.false("it cannot have ended: %r", result)
        # Whatever was said: who lost its server or link ends, by its lease.
        wait("%s has ended" % self.name, lambda: not self.tag.pids())

    def finally_ran(self):
        return (0, 1)


class Job(Work):
    """A job: started once, and its end is its own."""

    def begin(self):
        self.code = self.dice.randrange(5)
        self.again = self.dice.random() < 0.7
        self.ends = self.world.far / ("end-" + self.name)
        self.start = {
            "command": "%s; sleep %g; echo x >>%s; exit %d" % (
                self.mark(), self.dice.choice([0, 0.1, 0.6]), self.ends,
                self.code),
            "session_name": self.name, "idempotency_key": self.name,
            "watch": False}
        self.call = self.world.begin("exec_bash_background", **self.start)
        self.state = "unknown"
        self.never = False

    def judge(self, result):
        """A look at it may not know, but must not be wrong."""
        if result.failed or result["state"] in ("unknown", "starting"):
            return
        if result["state"] == "exited":
            if result["exit_code"] != self.code or not self.ends.exists():
                self.false("it did not end like that: %.400r", result)
        elif result.get("reason") == "it never came to run":
            self.never = True       # the start was given up, and said so?
        elif result["state"] != "running":
            self.false("nobody killed it: %.400r", result)

    def poll(self):
        try:
            self.judge(self.world.call(
                "check_background_task", tmux_session=self.name, wait_s=1))
        except Gone:
            pass

    def settle(self):
        try:
            result = self.world.end(self.call)
            self.outcome = "not known whether it was started"
            if not result.failed:
                self.state = self.outcome = "started"
            elif "may have been started" not in result["error"]:
                self.state = "refused"
                self.outcome = "not started"
        except Gone:
            result = None
        if self.never and self.state == "started":
            self.false("it never came to run, and was started: %r", result)
        if self.state == "refused" and self.times():
            self.false("it was not started, and runs: %r", result)
        if self.again:
            self.world.settled("exec_bash_background", **self.start)
            self.state = "started"
        if self.state == "started":
            last = wait("%s has ended" % self.name, self.over)
            if last["exit_code"] != self.code or self.times() != 1:
                self.false("it ran %d times: %.400r", self.times(), last)

    def over(self):
        self.last = result = self.world.settled("check_background_task",
                                                tmux_session=self.name)
        self.judge(result)
        return result if result["state"] not in (
            "starting", "running", "unknown") else None

    def finally_ran(self):
        return {"started": (1, 1), "refused": (0, 0)}.get(self.state, (0, 1))


class Stop(Work):
    """A job that is ended while things break."""

    def begin(self):
        self.tag = agents.Tag()
        self.start = self.world.begin(
            "exec_bash_background", "%s; sleep %s & setsid sleep %s & wait" % (
                self.mark(), self.tag, self.tag),
            session_name=self.name, watch=False)
        self.stop = None

    def poll(self):
        if self.stop is None:
            self.stop = self.world.begin("stop_background_task",
                                         tmux_session=self.name, grace_s=1)

    def settle(self):
        for call in (self.start, self.stop):
            try:
                result = self.world.end(call) if call else {}
            except Gone:
                continue
            self.outcome = "a reply"
            if result.get("kill_verified") is True and self.tag.pids():
                self.false("alive after a verified kill: %r", result)
        # One that was started late, or whose end failed, is ended now.
        wait("%s has ended" % self.name, self.ended)

    def ended(self):
        self.last = result = self.world.call(
            "stop_background_task", tmux_session=self.name, grace_s=1)
        if result.get("kill_verified") is True and self.tag.pids():
            self.false("alive after a verified kill: %r", result)
        return not self.tag.pids()

    def finally_ran(self):
        return (0, 1)


class Sync(Work):
    """A tree is copied: whole files, and nothing that is excluded."""

    tool, here, there = "sync_local_to_remote", "local_path", "remote_path"
    EXCLUDES = ["keep", "*.tmp"]

    def begin(self):
        top = self.world.small / self.name
        self.source, self.target = top / "source", top / "target"
        dice = self.dice
        for n in range(dice.randrange(2, 25)):
            size = dice.choice([0, 10, 5000, 70000, 200000])
            write(self.source / ("d%d/f%d" % (n % 4, n)),
                  dice.randbytes(size), mtime=(10 ** 9 + n) * 10 ** 9)
            if dice.random() < 0.3:
                write(self.target / ("d%d/f%d" % (n % 4, n)), "old%d" % n)
        write(self.source / "d0/x.tmp", "not this")
        write(self.target / "d0/x.tmp", "mine")
        write(self.target / "keep/a", "mine too")
        write(self.target / "extra", "old")
        self.before = describe(self.source)
        self.old = describe(self.target)
        self.arguments = {
            self.here: str(self.source), self.there: str(self.target),
            "excludes": self.EXCLUDES, "confirm_delete": True,
            "delete_extras": dice.random() < 0.5}
        self.call = self.world.begin(self.tool, **self.arguments)

    @staticmethod
    def excluded(name):
        return name.endswith(b".tmp") or name.split(b"/")[0] == b"keep"

    def describe_target(self):
        """What is temporary may go while it is looked at."""
        try:
            return describe(self.target)
        except FileNotFoundError:
            return None

    def look(self):
        """Old or new, never half, and nothing else was touched."""
        if describe(self.source) != self.before:
            self.false("the source has changed")
        now = wait("the target can be described", self.describe_target)
        for name, what in self.old.items():
            if self.excluded(name) and what[0] == "file" \
                    and now.get(name) != what:
                self.false("%r is excluded, and is now %.100r", name,
                           now.get(name))
        for name, what in now.items():
            if what[0] == "file" and not self.excluded(name) \
                    and b".rsmcp-" not in name \
                    and what[3] not in (self.content(self.old, name),
                                        self.content(self.before, name)):
                self.false("%r is neither old nor new (%d bytes)", name,
                           len(what[3]))
        return now

    @staticmethod
    def content(tree, name):
        return tree[name][3] if name in tree and tree[name][0] == "file" \
            else None

    def same(self, result):
        now = self.look()
        for name, what in self.before.items():
            if what[0] == "file" and not self.excluded(name) \
                    and now.get(name) != what:
                self.false("%r is %.60r after %.900r", name, now.get(name),
                           result)
        if self.arguments["delete_extras"] and b"extra" in now:
            self.false("what was to go is there after %.900r", result)

    def done(self, result):
        """Did it say that all was done?"""
        return not result.failed and not result.get("problem_count")

    def settle(self):
        try:
            result = self.world.end(self.call)
            self.outcome = "failed"
            if self.done(result):
                self.outcome = "done"
                self.same(result)
        except Gone:
            pass
        self.look()
        self.same(wait("the sync is done", self.repeat))
        shutil.rmtree(self.source.parent)

    def repeat(self):
        self.last = self.world.call(self.tool, **self.arguments)
        return self.last if self.done(self.last) else None


class Down(Sync):
    tool, here, there = "sync_remote_to_local", "remote_path", "local_path"


class Transfer(Sync):
    """The same by a worker."""

    tool = "sync_local_to_remote_background"
    task = None

    def poll(self):
        try:
            if self.task is None:
                self.task = self.world.end(self.call).get("task_id")
            if self.task and self.dice.random() < 0.3:
                self.cancel()
        except Gone:
            pass

    def cancel(self):
        result = self.world.call("cancel_file_transfer_task",
                                 task_id=self.task)
        if result.get("status") != "cancelled" or not result.get("terminated"):
            return
        # A program that it was about to start has its name for a moment.
        try:
            wait("the worker is gone", lambda: not self.working(), 2)
        except AssertionError:
            self.false("the worker lives after %r", result)

    def working(self):
        """Does a worker hold the lock of this task?"""
        return any(b"\0%d\0" % self.task in pathlib.Path(
            "/proc/%d/cmdline" % pid).read_bytes() + b"\0"
            for pid in self.world.workers())

    def ended(self, task):
        result = self.world.call("check_file_transfer_task", task_id=task)
        if result.failed:
            return result if self.world.db_was_broken else None
        if result["status"] in ("queued", "running") \
                and not result.get("stale"):
            return None
        return result

    def settle(self):
        try:
            first = self.world.end(self.call)
            self.outcome = "failed"
            if not first.failed and self.finish(first["task_id"]):
                self.outcome = "done"
        except Gone:
            pass
        self.look()
        wait("the transfer is done", self.repeat)
        shutil.rmtree(self.source.parent)

    def repeat(self):
        self.last = self.world.call(self.tool, **self.arguments)
        return not self.last.failed and self.finish(self.last["task_id"])

    def finish(self, task):
        """Wait for its end; was it a good one?"""
        result = wait("transfer %d has ended" % task,
                      lambda: self.ended(task))
        if result.get("status") != "completed" \
                or result.get("result", {}).get("problem_count"):
            self.look()
            return False
        self.same(result)
        return True


class Watch(Work):
    """A job under guard: its end is told, and once."""

    def begin(self):
        self.world.begin_daemon()
        self.code = self.dice.choice([0, 3])
        self.call = self.world.begin(
            "exec_bash_background", "%s; sleep %g; exit %d" % (
                self.mark(), self.dice.choice([0, 0.5, 1.5]), self.code),
            session_name=self.name, idempotency_key=self.name, interval_s=1,
            ensure_watchdog=False, notify_local=False)

    def settle(self):
        try:
            result = self.world.end(self.call)
        except Gone:
            return
        watch = result.get("watch_id")
        self.outcome = "no watch"
        if result.failed or watch is None or self.world.db_was_broken:
            return
        kind = "failed" if self.code else "completed"
        try:
            wait("the end of %s is told" % self.name,
                 lambda: self.told(watch).count(kind))
        except AssertionError:
            if not self.world.db_was_broken:
                self.false("its end was never told: %r", self.told(watch))
            return
        self.outcome = "its end was told"
        ends = [each for each in self.told(watch)
                if each in ("completed", "failed", "lost", "killed")]
        if ends != [kind]:
            self.false("its end was told as %r", ends)

    def told(self, watch):
        result = self.world.call("list_background_watch_events",
                                 watch_id=watch, limit=1000)
        return [] if result.failed else [
            event["event_type"] for event in result["events"]]

    def finally_ran(self):
        return (0, 1)


KINDS = [Exec, Exec, Exec, Kill, Job, Job, Stop, Sync, Down, Transfer, Watch]
