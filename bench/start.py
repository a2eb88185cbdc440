#!/usr/bin/env python3
"""Start-up, memory and list of tools of the server, side by side with others.

Each server is started the way a client starts it, initialised, and asked for
its tools.  What is compared: the time from starting the process to the reply
of tools/list, the memory the process then holds, and the size of that reply,
which every conversation carries with it.  The servers take turns, so that a
busy machine is busy for all of them; the figures that count are the ratios of
one run.

A second part sends our server many small calls, sixteen at a time, and looks
whether its memory grows.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import tempfile
import time

from lib import peers
from lib.record import Record

SECTION = "Start-up"
PORT = 9                # nobody logs in, so nothing has to listen there

# What the figures have to reach, and how.
TIME_RATIO = 20
MEMORY_RATIO = 8
LIST_KB = 24
GROWTH_KB = 512
IN_FLIGHT = 16


class Everything(peers.Server):
    """The protocol's own example; it knows nothing of ssh."""

    name = "server-everything"
    script = (peers.CLIENTS
              / "@modelcontextprotocol/server-everything/dist/index.js")

    def setup(self, place):
        return [peers.node(self.script), str(self.script)], {}, None, {}


SERVERS = (peers.Ours, peers.SshMcp, peers.SshManager, peers.Original,
           Everything)


class Start:
    """What one server took each time."""

    def __init__(self, kind):
        self.kind = kind
        self.ms, self.mb, self.kb = [], [], []
        self.tools = 0

    def once(self, place):
        server = self.kind(place)
        try:
            reply, _ = server.ask("tools/list", {})
            took = time.perf_counter() - server.began
            memory = server.status_kb("VmRSS")
        finally:
            server.close()
        text = json.dumps(reply["result"], separators=(",", ":"),
                          ensure_ascii=False)
        self.ms.append(took * 1000)
        self.mb.append(memory / 1024)
        self.kb.append(len(text.encode()) / 1000)
        self.tools = len(reply["result"]["tools"])


def new_place(stack):
    """For a server that is to have nothing of the last one's."""
    directory = stack.enter_context(tempfile.TemporaryDirectory(
        dir="/tmp", prefix="rs", ignore_cleanup_errors=True))
    return peers.Place(pathlib.Path(directory) / "place", PORT, "nobody",
                       "/dev/null")


def compare(rounds):
    """What there is, and what not, with the reason."""
    found, skipped = {kind.name: Start(kind) for kind in SERVERS}, {}
    for _ in range(rounds):
        for name, start in list(found.items()):
            try:
                with contextlib.ExitStack() as stack:
                    start.once(new_place(stack))
            except peers.Broken as reason:
                if start.kind is peers.Ours:
                    raise SystemExit(f"our server does not work: {reason}")
                skipped[name] = str(reason)
                del found[name]
    return found, skipped


def report(found, record):
    rows = [record.row(SECTION, "start to the reply of `tools/list`", "ms"),
            record.row(SECTION, "resident memory then", "MB"),
            record.row(SECTION, "size of `tools/list`", "kB")]
    medians = {}
    print(f"{'server':22}{'start ms':>10}{'RSS MB':>9}{'tools':>7}{'kB':>7}"
          f"{'time':>9}{'memory':>9}")
    for name, start in found.items():
        tools = f"has {start.tools} tools"
        medians[name] = [row.add(name, values, note) for row, values, note in
                         zip(rows, (start.ms, start.mb, start.kb),
                             ("", "", tools))]
        took, memory, size = medians[name]
        line = f"{name:22}{took:10.1f}{memory:9.1f}{start.tools:7}{size:7.1f}"
        ours = medians[peers.Ours.name]
        if name != peers.Ours.name:
            line += f"{took / ours[0]:8.0f}x{memory / ours[1]:8.1f}x"
        print(line)
    others = [each for name, each in medians.items() if name != peers.Ours.name]
    if others:
        least = [min(each[i] for each in others) / ours[i] for i in (0, 1)]
        record.target(f"at most 1/{TIME_RATIO} of their time to start "
                      f"(1/{least[0]:.0f})", least[0] >= TIME_RATIO)
        record.target(f"at most 1/{MEMORY_RATIO} of their memory "
                      f"(1/{least[1]:.0f})", least[1] >= MEMORY_RATIO)
    record.target(f"`tools/list` of at most {LIST_KB} kB ({ours[2]:.1f})",
                  ours[2] <= LIST_KB)


def many_calls(count, record):
    """Send calls, IN_FLIGHT at a time; memory at a tenth and at the end."""
    params = {"name": "get_server_info", "arguments": {}}
    warm = count // 10
    with contextlib.ExitStack() as stack:
        server = peers.Ours(new_place(stack))
        stack.callback(server.close)
        began = time.perf_counter()
        for sent in range(count):
            if sent >= IN_FLIGHT:
                server.text(server.reply()[0])
            if sent == warm:
                early = server.status_kb("VmRSS")
            server.request("tools/call", params)
        for _ in range(min(IN_FLIGHT, count)):
            server.text(server.reply()[0])
        took = time.perf_counter() - began
        late = server.status_kb("VmRSS")
    print(f"{count} calls of get_server_info, {IN_FLIGHT} in flight: "
          f"{count / took:.0f} a second; memory {early} kB after {warm}, "
          f"{late} kB at the end")
    record.target(f"memory grows by at most {GROWTH_KB} kB in {count} calls "
                  f"({late - early})", late - early <= GROWTH_KB)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=10000)
    options = parser.parse_args()
    peers.Ours.binary = options.binary.resolve()
    record = Record("start")
    found, skipped = compare(options.rounds)
    report(found, record)
    many_calls(options.calls, record)
    return record.end(skipped)


if __name__ == "__main__":
    sys.exit(main())
