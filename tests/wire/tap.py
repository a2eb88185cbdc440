#!/usr/bin/env python3
"""Record what a client and an MCP server say to each other over stdio.

    tap.py [--dir DIR] -- SERVER ARGS...

Stands in the place of the server: starts it, passes every byte on as it
comes, and writes each line of both directions to a file of its own in DIR
(or $RSMCP_WIRE_DIR), one JSON object a line:

    {"dir": ">", "line": "..."}     client to server
    {"dir": "<", "line": "..."}     server to client

"partial": true marks a last line that had no newline.  Bytes that are not
UTF-8 are kept as lone surrogates (Python's surrogateescape), so a line can
always be turned back into the bytes that were sent.

A line is written down before it is passed on, in both directions.  So a
reply never stands before its request in the record, and what a client says
in answer to a message never stands before that message.

Without a directory the tap steps aside and becomes the server.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time

CHUNK = 1 << 16


class Record:
    """The file of one recording; both directions write to it in turn."""

    def __init__(self, directory, server):
        os.makedirs(directory, exist_ok=True)
        name = "%d-%d-%s.wire" % (time.time_ns(), os.getpid(),
                                  os.path.basename(server))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self.fd = os.open(os.path.join(directory, name), flags, 0o600)
        self.lock = threading.Lock()

    def add(self, direction, line, partial=False):
        entry = {"dir": direction,
                 "line": line.decode("utf-8", "surrogateescape")}
        if partial:
            entry["partial"] = True
        with self.lock:
            write_all(self.fd, json.dumps(entry).encode() + b"\n")


class Lines:
    """Cuts one direction into lines for the record."""

    def __init__(self, record, direction):
        self.record = record
        self.direction = direction
        self.begun = []     # pieces of a line whose end has not come yet

    def feed(self, data):
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self.record.add(self.direction, b"".join(self.begun) + piece)
            self.begun.clear()
        if rest:
            self.begun.append(rest)

    def end(self):
        if self.begun:
            self.record.add(self.direction, b"".join(self.begun), partial=True)
            self.begun.clear()


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


def pump(source, sink, lines):
    """Copy until either side is gone, then close both, as a pipe would."""
    try:
        while data := os.read(source, CHUNK):
            lines.feed(data)
            write_all(sink, data)
    except OSError:
        pass
    lines.end()
    os.close(sink)
    os.close(source)


class Signals:
    """Passes SIGTERM and SIGINT on, also those that come before the server."""

    def __init__(self):
        self.server = None
        self.early = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.pass_on)

    def pass_on(self, number, _frame):
        if self.server is None:
            self.early.append(number)
        else:
            self.server.send_signal(number)

    def attach(self, server):
        self.server = server
        for number in self.early:
            server.send_signal(number)


def run(directory, command):
    record = Record(directory, command[0])
    signals = Signals()
    try:
        server = subprocess.Popen(command, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, close_fds=False)
    except OSError as error:
        print("tap: cannot start %s: %s" % (command[0], error.strerror),
              file=sys.stderr)
        return 127
    signals.attach(server)

    # The pumps own the descriptors from here on.
    to_server, from_server = os.dup(server.stdin.fileno()), \
        os.dup(server.stdout.fileno())
    server.stdin.close()
    server.stdout.close()
    threading.Thread(target=pump, daemon=True,
                     args=(0, to_server, Lines(record, ">"))).start()
    back = threading.Thread(target=pump, daemon=True,
                            args=(from_server, 1, Lines(record, "<")))
    back.start()

    status = server.wait()
    # Bounded, since a process the server left behind may hold its stdout.
    back.join(1)
    # Kept until the end, so that no line of the record is cut short.
    record.lock.acquire()
    return status if status >= 0 else 128 - status


def main():
    parser = argparse.ArgumentParser(description="Record an MCP stdio server.")
    parser.add_argument("--dir", default=os.environ.get("RSMCP_WIRE_DIR"))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        parser.error("no server given")
    if not options.dir:
        os.execvp(command[0], command)
    status = run(options.dir, command)
    # Not sys.exit: the other pump may sit in a read that never ends.
    os._exit(status)


if __name__ == "__main__":
    main()
