"""What is done while things break, and whether what was said of it is true.

Each work is prepared, begins calls, may poll while the world breaks, and is
settled once all is well again.  What it finds wrong it adds to "wrong".  Where
a reply may be too early, what there is to see is looked at the moment that it
comes.
"""

import collections
import pathlib
import shutil
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import agent as agents  # noqa: E402
import rsmcp  # noqa: E402
import sshd as ssh_servers  # noqa: E402
from trees import describe, write  # noqa: E402
from world import PATIENCE_S, Gone, wait  # noqa: E402

LATE_S = PATIENCE_S / 8     # what comes at once has come by then


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

    # For who decides what breaks, and where.

    COMMON = ("sshd_cut", "sshd_gone", "sshd_frozen", "server_killed",
              "master_killed", "disk_full", "state_full", "clock_set",
              "far_clock_set")
    breakers = COMMON       # one that is there twice is twice as likely

    def moves(self, outward):
        """How many bytes pass the road in that direction, at least."""
        raise NotImplementedError

    def lasts(self):
        """Seconds, about."""
        raise NotImplementedError

    def busy(self):
        """Is it under way?"""
        return not self.world.over(self.call)

    # What is done.

    def prepare(self):
        """What takes time before it begins."""

    def poll(self):
        """While the world breaks, in a thread of its own."""

    polling = False

    def poll_all(self):
        try:
            self.poll()
        except Exception as e:
            self.false("%s  at last: %r", "".join(
                traceback.format_exception(e, limit=-4)), self.last)
        self.polling = False

    def finally_ran(self):
        """How often it may have run, when all is over: (least, most)."""
        return None


class Exec(Work):
    """A command: its reply says what became of it."""

    def prepare(self):
        self.size = self.dice.choice([0, 0, 10, 100000, 900000])
        self.pause = self.dice.choice([0, 0, 0.05, 0.3, 1])
        self.end_mark = self.world.far / ("end-" + self.name)
        self.ended = None       # when the reply came

    def moves(self, outward):
        return 270 if outward else 160 + self.size

    def lasts(self):
        return 0.02 + self.pause + self.size / 1e7

    def begin(self):
        self.call = self.world.begin(
            "exec_bash", "%s; head -c %d /dev/zero | tr '\\0' x; sleep %g; "
            "echo x >%s; echo done" % (self.mark(), self.size, self.pause,
                                       self.end_mark),
            then=self.replied, timeout_s=20, max_output_chars=1000000)

    def replied(self):
        self.ended = self.end_mark.exists()

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
            if not self.ended:
                self.false("it had not ended when that was said: %.300r",
                           result)
        else:
            self.outcome = result.get("command_state", "")
            if times > 1 or not (self.outcome == "may_be_running"
                                 or result.get("timed_out")):
                self.false("it ran %d times: %.300r", times, result)

    def finally_ran(self):
        return self.bounds


class Doomed(Work):
    """Processes that are to end, and what is alive of them."""

    def prepare(self):
        self.tag = agents.Tag()
        self.marked = self.world.far / ("mark-" + self.name)
        self.left = {}          # what was alive when a reply came, by call

    def mark(self):
        """Leaves the word that all its processes have in their environment,
        which some have before they have the tag."""
        return 'echo "$RSMCP_CALL" >%s; %s' % (self.marked, super().mark())

    def alive(self):
        """Its processes."""
        word = self.marked.read_text().strip() if self.marked.exists() else ""
        found = set(self.tag.pids())
        if word:
            found |= marked(b"RSMCP_CALL=%s\0" % word.encode())
        return sorted(found)

    def look(self, which):
        """For the moment of a reply."""
        def replied():
            self.left[which] = [self.describe(pid) for pid in self.alive()]
        return replied

    @staticmethod
    def describe(pid):
        return "%d (%s)" % (pid, cmdline(pid).replace(b"\0", b" ").decode(
            errors="replace")[:60])

    def judge(self, result, which):
        if result.get("kill_verified") is True and self.left.get(which):
            self.false("alive after a verified kill: %s, which said %r",
                       ", ".join(self.left[which]), result)

    def finally_ran(self):
        return (0, 1)


def cmdline(pid):
    try:
        return pathlib.Path("/proc/%d/cmdline" % pid).read_bytes()
    except OSError:
        return b""


def marked(mark):
    """Living processes with this in their environment."""
    found = set()
    for pid in ssh_servers.pids():
        try:
            if mark in pathlib.Path(
                    "/proc/%d/environ" % pid).read_bytes() + b"\0" \
                    and not rsmcp.gone(pid):
                found.add(pid)
        except OSError:
            pass
    return found


class Kill(Doomed):
    """A tree of processes that is ended at its timeout."""

    def moves(self, outward):
        return 540 if outward else 420

    def lasts(self):
        return 3

    def begin(self):
        self.call = self.world.begin(
            "exec_bash", "%s; sleep %s & setsid sleep %s & "
            "(trap '' TERM; sleep %s); wait" % (
                self.mark(), self.tag, self.tag, self.tag),
            then=self.look("call"), timeout_s=1)

    def settle(self):
        try:
            result = self.world.end(self.call)
        except Gone:
            result = {}
        self.judge(result, "call")
        if result:
            self.outcome = "kill verified" \
                if result.get("kill_verified") is True else "kill not verified"
        if self.times() > 1:
            self.false("it ran %d times", self.times())
        if result and not result.failed and result["exit_code"] is not None \
                and not result.get("timed_out"):
            self.false("it cannot have ended: %r", result)
        # Whatever was said: who lost its server or link ends, by its lease.
        try:
            wait("%s has ended" % self.name, lambda: not self.alive())
        except AssertionError:
            self.false("%r never ended after %r", [
                self.describe(pid) for pid in self.alive()], result)


class Job(Work):
    """A job: started once, and its end is its own."""

    breakers = Work.COMMON + 4 * ("tmux_killed",)

    def prepare(self):
        self.code = self.dice.randrange(5)
        self.again = self.dice.random() < 0.7
        self.pause = self.dice.choice([0, 0.1, 0.6])
        self.ends = self.world.far / ("end-" + self.name)
        self.start = {
            "command": "%s; sleep %g; echo x >>%s; exit %d" % (
                self.mark(), self.pause, self.ends, self.code),
            "session_name": self.name, "idempotency_key": self.name,
            "watch": False}
        self.state = "unknown"
        self.never = False

    def moves(self, outward):
        return 7500 if outward else 700

    def lasts(self):
        return 0.3 + self.pause

    def begin(self):
        self.call = self.world.begin("exec_bash_background", **self.start)

    def busy(self):
        return super().busy() or (self.state != "refused"
                                  and self.times() and not self.ends.exists())

    def judge(self, result, ended):
        """A look at it may not know, but must not be wrong.  "ended" is
        whether it had ended when the reply came."""
        if result.failed or result["state"] in ("unknown", "starting"):
            return
        if result["state"] == "exited":
            if result["exit_code"] != self.code or not ended:
                self.false("it did not end like that: %.400r", result)
        elif result.get("reason") == "it never came to run":
            self.never = True       # the start was given up, and said so?
        elif result["state"] != "running":
            self.false("nobody killed it: %.400r", result)

    def look(self, **more):
        """Ask how it is; the reply was judged."""
        seen = []
        result = self.world.end(self.world.begin(
            "check_background_task", tmux_session=self.name,
            then=lambda: seen.append(self.ends.exists()), **more))
        self.judge(result, seen[0])
        return result

    def poll(self):
        try:
            self.look(wait_s=1)
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
        self.last = result = self.look()
        return result if not result.failed and result["state"] not in (
            "starting", "running", "unknown") else None

    def finally_ran(self):
        return {"started": (1, 1), "refused": (0, 0)}.get(self.state, (0, 1))


class Stop(Doomed):
    """A job that is ended while things break."""

    breakers = Work.COMMON + 4 * ("tmux_killed",)
    stop = None

    def prepare(self):
        super().prepare()
        self.early = self.dice.random() < 0.3

    def moves(self, outward):
        return 7400 if outward else 450

    def lasts(self):
        return 0.6

    def begin(self):
        self.call = self.world.begin(
            "exec_bash_background", "%s; sleep %s & setsid sleep %s & wait" % (
                self.mark(), self.tag, self.tag),
            session_name=self.name, watch=False)

    def busy(self):
        return super().busy() or self.stop is None \
            or not self.world.over(self.stop)

    def poll(self):
        """It may be ended before it has begun."""
        if not self.early:
            wait("it has a reply", lambda: self.world.over(self.call))
        self.stop = self.end("while")

    def end(self, which):
        return self.world.begin(
            "stop_background_task", tmux_session=self.name, grace_s=1,
            then=self.look(which))

    def settle(self):
        for which, call in (("start", self.call), ("while", self.stop)):
            try:
                result = self.world.end(call)
            except Gone:
                continue
            self.outcome = "kill verified" if result.get("kill_verified") \
                else "kill not verified"
            self.judge(result, which)
        # One that was started late, or whose end failed, is ended now.
        try:
            wait("%s has ended" % self.name, self.ended)
        except AssertionError:
            self.false("%r never ended; at last %r", [
                self.describe(pid) for pid in self.alive()], self.last)

    def ended(self):
        self.last = result = self.world.end(self.end("after"))
        self.judge(result, "after")
        return not self.alive()


class Sync(Work):
    """A tree is copied: whole files, and nothing that is excluded."""

    tool, here, there = "sync_local_to_remote", "local_path", "remote_path"
    EXCLUDES = ["keep", "*.tmp"]
    up = True
    at_reply = None         # what the target was when the reply came

    def prepare(self):
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

    def moves(self, outward):
        content = sum(len(what[3]) for what in self.before.values()
                      if what[0] == "file")
        return 1100 + (content if outward == self.up else 0)

    def lasts(self):
        return 0.1

    def begin(self):
        self.call = self.world.begin(self.tool, then=self.replied,
                                     **self.arguments)

    def replied(self):
        self.at_reply = self.describe_target()

    @staticmethod
    def excluded(name):
        return name.endswith(b".tmp") or name.split(b"/")[0] == b"keep"

    def describe_target(self):
        """What is temporary may go while it is looked at."""
        try:
            return describe(self.target)
        except FileNotFoundError:
            return None

    def look(self, now=None):
        """Old or new, never half, and nothing else was touched."""
        if describe(self.source) != self.before:
            self.false("the source has changed")
        now = now or wait("the target can be described", self.describe_target)
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

    def same(self, result, now=None):
        now = self.look(now)
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
                self.same(result, self.at_reply)
        except Gone:
            pass
        self.look()
        self.same(wait("the sync is done", self.repeat))
        shutil.rmtree(self.source.parent)

    def repeat(self):
        self.last = self.world.call(self.tool, **self.arguments)
        return self.last if self.done(self.last) else None


class Down(Sync):
    up = False
    tool, here, there = "sync_remote_to_local", "remote_path", "local_path"


class Transfer(Sync):
    """The same by a worker."""

    tool = "sync_local_to_remote_background"
    breakers = Work.COMMON + 6 * ("worker_killed",) + 4 * (
        "db_locked", "db_broken")
    task = pid = None

    def prepare(self):
        super().prepare()
        self.cancelled = self.dice.random() < 0.3
        self.patience = self.dice.choice([0, 0, 0.1, 0.3])

    def moves(self, outward):
        return min(super().moves(outward), 8000 if outward else 200) \
            if self.cancelled else super().moves(outward)

    def lasts(self):
        return self.patience + 0.2 if self.cancelled else 0.5

    def busy(self):
        return super().busy() or (self.task is not None and self.working())

    def poll(self):
        try:
            if self.task is None:
                started = self.world.end(self.call)
                self.task, self.pid = started.get("task_id"), started.get("pid")
            if self.task and self.cancelled:
                time.sleep(self.patience)
                self.cancel()
        except Gone:
            pass

    def cancel(self):
        seen = []
        result = self.world.end(self.world.begin(
            "cancel_file_transfer_task", task_id=self.task,
            then=lambda: seen.append(self.pid and not rsmcp.gone(self.pid))))
        if result.get("terminated") and seen[0]:
            self.false("the worker lives after %r", result)

    def working(self):
        """Does its worker run?"""
        return self.pid is not None and not rsmcp.gone(self.pid)

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
    """A job under guard: what happens to it is told, and once."""

    breakers = Work.COMMON + 6 * ("daemon_killed",) + 3 * (
        "tmux_killed", "db_locked", "db_broken")
    # After these an event may be told again, by the same id.
    REPEATED = {"daemon_killed", "db_locked", "db_broken", "state_full"}
    # What may be said of its way to the end.
    BETWEEN = {"ssh_unreachable", "running_restored"}
    LEASE_S = 500           # no delivery has longer
    watch = None

    def prepare(self):
        self.world.begin_daemon()
        self.code = self.dice.choice([0, 3])
        self.kind = "failed" if self.code else "completed"
        self.pause = self.dice.choice([0, 0.5, 1.5])
        self.word = "said%d" % self.dice.randrange(10 ** 9)

    def moves(self, outward):
        return 15000 if outward else 2100

    def lasts(self):
        return 1 + self.pause

    def begin(self):
        self.call = self.world.begin(
            "exec_bash_background", "%s; echo %s; sleep %g; exit %d" % (
                self.mark(), self.word, self.pause, self.code),
            session_name=self.name, idempotency_key=self.name, interval_s=1,
            ensure_watchdog=False, notify_local=False,
            event_command=self.world.receiver())

    def poll(self):
        try:
            self.watch = self.world.end(self.call).get("watch_id")
        except Gone:
            pass

    def busy(self):
        return super().busy() or (self.watch is not None
                                  and not self.end_was_told())

    def told(self):
        """(event, its file), one for each time.  A database that was begun
        anew counts its watches from the start again."""
        return [each for each in self.world.told(self.watch)
                if not self.world.db_was_broken
                or each[0]["payload"]["watch"]["tmux_session"] == self.name]

    def end_was_told(self):
        return any(event["event_type"] == self.kind for event, _ in self.told())

    def stored(self):
        """Its events as they are kept, by their ids; None: it is not known."""
        self.last = self.world.call("list_background_watch_events",
                                    watch_id=self.watch, limit=1000)
        return None if self.last.failed else {
            event["id"]: event for event in self.last["events"]}

    def settle(self):
        try:
            result = self.world.end(self.call)
        except Gone:
            return
        self.watch = result.get("watch_id")
        self.outcome = "no watch"
        if result.failed or self.watch is None:
            return
        try:
            self.hear()
            self.outcome = "its end was told"
        except AssertionError as e:
            # What is not in the database any more cannot be told.
            self.outcome = "the database was broken"
            if not self.world.db_was_broken:
                self.false("%s: told %.600r, stored %.600r", e, self.told(),
                           self.stored())
        self.judge()

    def hear(self):
        """Wait until all that was stored is told.  What a watchdog had in
        hand that was killed is told when its lease is over, so time passes."""
        begun = time.monotonic()
        try:
            while not self.all_told():
                waited = time.monotonic() - begun
                assert waited < PATIENCE_S and not self.world.db_was_broken, \
                    "its end was never told"
                if waited > LATE_S:
                    self.world.time_passes(self.LEASE_S)
                time.sleep(0.1)
        finally:
            self.world.time_passes(0)

    def all_told(self):
        if not self.end_was_told():
            return False
        stored = self.stored()
        return stored is not None and stored.keys() <= {
            event["id"] for event, _ in self.told()}

    def judge(self):
        """Each that was told is true, and no other than what is kept."""
        stored = self.stored() or {}
        counts = collections.Counter(event["id"] for event, _ in self.told())
        repeated = self.REPEATED & self.world.happened
        ends = {event["id"] for event, _ in self.told()
                if event["event_type"] not in self.BETWEEN}
        if len(ends) > 1:
            self.false("its end was told by %d events: %.900r", len(ends),
                       self.told())
        for event, file in self.told():
            self.judge_event(event)
            if counts[event["id"]] > 1 and not repeated:
                self.false("event %d was told %d times", event["id"],
                           counts[event["id"]])
            kept = stored.get(event["id"])
            if self.world.db_was_broken:
                continue
            if not kept or event != kept or event != file \
                    or event != self.world.event_file(event["id"]):
                self.false("told %.400r, kept %.400r, its file %.400r", event,
                           kept, file)

    def judge_event(self, event):
        payload = event["payload"]
        right = payload["watch"]["id"] == self.watch \
            and payload["watch"]["tmux_session"] == self.name
        if event["event_type"] not in self.BETWEEN:
            right = right and event["event_type"] == self.kind \
                and payload["exit_code"] == self.code \
                and self.word in payload["log_tail"].split() \
                and self.name in event["summary"]
        if not right:
            self.false("that is not what happened: %.900r", event)

    def finally_ran(self):
        return (0, 1)


KINDS = [Exec, Exec, Exec, Kill, Job, Job, Stop, Sync, Down, Transfer, Watch]
