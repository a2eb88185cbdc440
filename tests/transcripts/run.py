#!/usr/bin/env python3
"""Run transcripts: what a client sends a server and what must come back.

    run.py --server PATH [--wire-dir DIR] FILE...

Each FILE is one scenario, played against a server of its own; README.md next
to this file tells how to write one.  With --wire-dir the conversations are
recorded for ../wire/check.py.
"""

import argparse
import ast
import concurrent.futures
import json
import os
import pathlib
import queue
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

TAP = pathlib.Path(__file__).resolve().parent.parent / "wire" / "tap.py"
REPLY_S = 10        # how long a message may take
EXIT_S = 5          # how long an exit may take
GRACE_S = 0.02      # to notice a server that is about to end by itself
AT_ONCE = 2         # scenarios run side by side


class Failure(Exception):
    """What was expected and what came instead."""


class BadTranscript(Exception):
    """The scenario itself cannot be read."""


# Matching one message against its pattern.

def mismatch(pattern, value, at="message"):
    """Where and why value does not match pattern, or None."""
    if pattern == "*":
        return None
    if isinstance(pattern, str) and pattern.startswith("re:"):
        if isinstance(value, str) and re.search(pattern[3:], value):
            return None
    elif isinstance(pattern, dict) and isinstance(value, dict):
        return mismatch_object(pattern, value, at)
    elif isinstance(pattern, list) and isinstance(value, list):
        return mismatch_array(pattern, value, at)
    elif type(pattern) is type(value) and pattern == value:
        # The type too: to Python 1, 1.0 and true are equal, to an id not.
        return None
    return "%s is %s instead of %s" % (at, show(value), show(pattern))


def mismatch_object(pattern, value, at):
    for key, expected in pattern.items():
        if key == "...":
            continue
        if key not in value:
            return "%s has no %s" % (at, show(key))
        why = mismatch(expected, value[key], "%s.%s" % (at, key))
        if why:
            return why
    extra = sorted(value.keys() - pattern.keys())
    if extra and "..." not in pattern:
        return "%s also has %s" % (at, ", ".join(map(show, extra)))
    return None


def mismatch_array(pattern, value, at):
    is_open = pattern[-1:] == ["..."]
    if is_open:
        pattern = pattern[:-1]
    if len(value) < len(pattern) or (len(value) > len(pattern)
                                     and not is_open):
        return "%s has %d elements instead of %d" % (at, len(value),
                                                     len(pattern))
    for index, expected in enumerate(pattern):
        why = mismatch(expected, value[index], "%s[%d]" % (at, index))
        if why:
            return why
    return None


def show(value, size=600):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    text = text.decode("utf-8", "backslashreplace")
    return text if len(text) <= size else text[:size] + "..."


def seat(message, patterns, seats):
    """Give message a pattern of its own, moving earlier ones if needed.

    seats maps the index of a pattern to its message.  A pattern that matches
    much must not take the place of one that matches little, whichever message
    happened to come first.
    """
    def place(guest, tried):
        for index, pattern in enumerate(patterns):
            if index in tried or mismatch(pattern, guest):
                continue
            tried.add(index)
            if index not in seats or place(seats[index], tried):
                seats[index] = guest
                return True
        return False

    return place(message, set())


# The server under test.

class Server:
    """The process, with what it says collected by two threads."""

    def __init__(self, command, env, directory):
        # A session of its own, so that a scenario gone wrong can be cleaned
        # up with all that it started.
        self.process = subprocess.Popen(
            command, env=env, cwd=directory, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, bufsize=0)
        os.set_blocking(self.process.stdin.fileno(), False)
        self.lines = queue.Queue()      # bytes, then None at the end
        self.stderr = bytearray()
        self.readers = [threading.Thread(target=self.read_out, daemon=True),
                        threading.Thread(target=self.read_err, daemon=True)]
        for reader in self.readers:
            reader.start()

    def read_out(self):
        with open(self.process.stdout.fileno(), "rb", closefd=False) as out:
            for line in out:
                self.lines.put(line)
        self.lines.put(None)

    def read_err(self):
        while data := self.process.stderr.read(1 << 16):
            self.stderr += data

    def send(self, data):
        """Write all of data, or fail once the server has stopped reading."""
        fd = self.process.stdin.fileno()
        view = memoryview(data)
        while view:
            if not select.select([], [fd], [], REPLY_S)[1]:
                raise Failure("the server has not read its input for %d s"
                              % REPLY_S)
            try:
                view = view[os.write(fd, view):]
            except BrokenPipeError:
                # It may have ended on purpose; the next steps will tell.
                return

    def next_line(self, timeout):
        """The next line, None at the end, queue.Empty if there is none."""
        line = self.lines.get(timeout > 0, timeout)
        if line is None:
            self.lines.put(None)
        return line

    def close_input(self):
        self.process.stdin.close()

    def wait(self, timeout):
        """The exit status as a shell tells it, or None if still running."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        return status if status >= 0 else 128 - status

    def drain(self):
        """Let the readers come to the end of what an ended server wrote."""
        for reader in self.readers:
            reader.join(EXIT_S)

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


# The steps of a scenario.  Each is a function of the scenario being played.

class Play:
    """A running scenario."""

    def __init__(self, server):
        self.server = server
        self.ended = False      # an `exit` step has seen it end
        self.may_end = False    # it was told to
        self.notes = []         # for the ok line

    def message(self, expected):
        """The next message; expected only serves to complain."""
        try:
            line = self.server.next_line(REPLY_S)
        except queue.Empty:
            raise Failure("nothing came within %d s\n  expected %s"
                          % (REPLY_S, show(expected))) from None
        if line is None:
            status = self.server.wait(1)
            raise Failure("the server closed its output (exit status %s)\n"
                          "  expected %s" % (status, show(expected)))
        try:
            if not line.endswith(b"\n"):
                raise ValueError
            return json.loads(line)
        except ValueError:
            raise Failure("not a line of JSON\n  expected %s\n  got      %s"
                          % (show(expected), show(line))) from None

    def send(self, data):
        self.server.send(data)

    def expect(self, pattern):
        got = self.message(pattern)
        why = mismatch(pattern, got)
        if why:
            raise Failure("%s\n  expected %s\n  got      %s"
                          % (why, show(pattern), show(got)))

    def expect_all(self, patterns):
        seats = {}
        while len(seats) < len(patterns):
            left = [p for i, p in enumerate(patterns) if i not in seats]
            got = self.message(left)
            if not seat(got, patterns, seats):
                raise Failure("this matches none of the messages still "
                              "expected\n  expected %s\n  got      %s"
                              % (show(left), show(got)))

    def silence(self, milliseconds):
        try:
            line = self.server.next_line(milliseconds / 1000)
        except queue.Empty:
            return
        if line is not None:
            raise Failure("expected silence\n  got      %s" % show(line))
        if not self.may_end:
            raise Failure("the server closed its output by itself")

    def eof(self):
        self.may_end = True
        self.server.close_input()

    def exit(self, status, within):
        begun = time.monotonic()
        got = self.server.wait(within)
        took = time.monotonic() - begun
        if got is None:
            raise Failure("the server still runs after %d ms"
                          % (within * 1000))
        if got != status:
            raise Failure("the server ended with status %d instead of %d"
                          % (got, status))
        self.ended = True
        self.notes.append("ended in %d ms" % (took * 1000))

    def signal(self, number):
        self.may_end = True
        self.server.process.send_signal(number)

    def stderr(self, pattern):
        until = time.monotonic() + REPLY_S
        while True:
            at_end = not self.server.readers[1].is_alive()
            text = bytes(self.server.stderr).decode("utf-8", "replace")
            if re.search(pattern, text, re.MULTILINE):
                return
            if at_end or time.monotonic() > until:
                raise Failure("nothing on stderr matches %s" % pattern)
            time.sleep(0.02)

    def finish(self):
        if not self.ended:
            if not self.may_end and self.server.wait(GRACE_S) is not None:
                raise Failure("the server ended by itself")
            self.server.close_input()
            self.exit(0, EXIT_S)
        self.server.drain()
        try:
            line = self.server.next_line(0)
        except queue.Empty:
            return      # something left behind holds the output open
        if line is not None:
            raise Failure("an unexpected message\n  got      %s" % show(line))


# Reading a transcript.

class Transcript:
    """A scenario as read from its file."""

    def __init__(self, path):
        self.path = path
        self.args = []
        self.env = {}
        self.steps = []             # (line number, function of a Play)
        self.line = 0
        self.any_order = None       # patterns of a running group of `<~`
        text = pathlib.Path(path).read_text("utf-8")
        for self.line, raw in enumerate(text.split("\n"), 1):
            if raw.strip() and not raw.startswith("#"):
                self.read(raw)
        if not self.steps:
            raise BadTranscript("%s:%d there are no steps" % (path, self.line))

    def read(self, raw):
        word, _, rest = raw.partition(" ")
        if word != "<~":
            self.any_order = None
        try:
            if word not in READERS:
                raise ValueError("unknown step")
            READERS[word](self, rest.strip())
        except (ValueError, SyntaxError, KeyError, re.error) as error:
            raise BadTranscript("%s:%d %s: %s" % (self.path, self.line, word,
                                                  error)) from None

    def step(self, function):
        self.steps.append((self.line, function))

    def read_args(self, rest):
        if self.steps or self.args:
            raise ValueError("arguments must come first, and once")
        self.args = shlex.split(rest)

    def read_env(self, rest):
        if self.steps:
            raise ValueError("must come before the first step")
        name, equals, value = rest.partition("=")
        if not equals:
            raise ValueError("wants NAME=VALUE")
        self.env[name] = value

    def read_send(self, rest):
        json.loads(rest)        # rubbish is sent with >raw, on purpose
        data = rest.encode("utf-8") + b"\n"
        self.step(lambda play: play.send(data))

    def read_raw(self, rest):
        data = literal(rest)
        self.step(lambda play: play.send(data))

    def read_repeat(self, rest):
        count, _, text = rest.partition(" ")
        data = literal(text.strip()) * int(count)
        self.step(lambda play: play.send(data))

    def read_expect(self, rest):
        pattern = pattern_of(rest)
        self.step(lambda play: play.expect(pattern))

    def read_any_order(self, rest):
        pattern = pattern_of(rest)
        if self.any_order is None:
            patterns = self.any_order = []
            self.step(lambda play: play.expect_all(patterns))
        self.any_order.append(pattern)

    def read_silence(self, rest):
        milliseconds = int(rest)
        self.step(lambda play: play.silence(milliseconds))

    def read_eof(self, rest):
        if rest:
            raise ValueError("takes nothing")
        self.step(lambda play: play.eof())

    def read_exit(self, rest):
        found = re.fullmatch(r"(\d+)(?: +within +(\d+))?", rest)
        if not found:
            raise ValueError("wants a status, or: STATUS within MS")
        status = int(found[1])
        within = int(found[2]) / 1000 if found[2] else EXIT_S
        self.step(lambda play: play.exit(status, within))

    def read_signal(self, rest):
        number = signal.Signals["SIG" + rest]
        self.step(lambda play: play.signal(number))

    def read_stderr(self, rest):
        if not rest.startswith("re:"):
            raise ValueError("wants re:PATTERN")
        pattern = re.compile(rest[3:]).pattern
        self.step(lambda play: play.stderr(pattern))


READERS = {
    "$": Transcript.read_args,
    "env": Transcript.read_env,
    ">": Transcript.read_send,
    ">raw": Transcript.read_raw,
    ">repeat": Transcript.read_repeat,
    "<": Transcript.read_expect,
    "<~": Transcript.read_any_order,
    "silence": Transcript.read_silence,
    "eof": Transcript.read_eof,
    "exit": Transcript.read_exit,
    "signal": Transcript.read_signal,
    "stderr": Transcript.read_stderr,
}


def literal(text):
    """The bytes of a quoted string with Python's escapes."""
    if not text.startswith('"'):
        raise ValueError('wants "..."')
    return ast.literal_eval("b" + text)


def pattern_of(text):
    """Read a pattern and try its regular expressions now, not half-way."""
    pattern = json.loads(text)

    def visit(value):
        if isinstance(value, str) and value.startswith("re:"):
            re.compile(value[3:])
        elif isinstance(value, dict):
            list(map(visit, value.values()))
        elif isinstance(value, list):
            list(map(visit, value))

    visit(pattern)
    return pattern


# Playing it.

def environment(transcript, home):
    """Ours, but with nothing of the user's own files in it."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("XDG_")}
    return {**env, "HOME": home, **transcript.env}


def play(transcript, options):
    """Play a transcript; the notes for its ok line."""
    command = [os.path.abspath(options.server), *transcript.args]
    if options.wire_dir:
        command = [sys.executable, str(TAP), "--dir",
                   os.path.abspath(options.wire_dir), "--", *command]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        server = Server(command, environment(transcript, home), home)
        line = 0
        try:
            scene = Play(server)
            for line, step in transcript.steps:
                step(scene)
            scene.finish()
            return scene.notes
        except Failure as failure:
            server.kill()
            server.drain()
            where = "%s:%d" % (transcript.path, line)
            said = bytes(server.stderr[-1000:]).decode("utf-8", "replace")
            if said.strip():
                said = "\n  stderr   " + said.strip().replace("\n", "\n    ")
            raise Failure("%s %s%s" % (where, failure, said)) from None
        finally:
            server.kill()


def run(path, options):
    """(good, what to print) for one file."""
    try:
        notes = play(Transcript(path), options)
    except OSError as error:
        return False, "FAIL %s:0 %s" % (path, error)
    except (BadTranscript, Failure) as error:
        return False, "FAIL %s" % error
    return True, " ".join(["ok", path, *("(%s)" % n for n in notes)])


def main():
    parser = argparse.ArgumentParser(description="Run MCP transcripts.")
    parser.add_argument("--server", required=True)
    parser.add_argument("--wire-dir")
    parser.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for good, text in pool.map(lambda f: run(f, options), options.files):
            print(text, flush=True)
            bad += not good
    print("%d scenarios, %d failed" % (len(options.files), bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
