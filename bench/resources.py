#!/usr/bin/env python3
"""How busy ten sandboxes are, when two of them do not answer.

Eight sshd's on loopback; behind one further address somebody takes connections
and never says a word, behind another nobody is.  Asked is list_sandboxes with
check_resources of our server and of the one in Python whose tools ours has:
once from nothing, with all logins, and once more.  The others have no tool that
asks all sandboxes.  Each answer has to tell the living from the dead.
"""

import contextlib
import json
import socket
import statistics
import sys

from lib import far, peers
from lib.record import Record
from lib.stage import Stage, options_for, ready

SECTION = "Ten sandboxes, two of them dead"
SANDBOXES = 10
DEAD = ("silent", "refusing")
PATIENCE_S = 300

# What ours has to reach: seconds.
FIRST_S = 16
AGAIN_S = 2


class Ten:
    """A server with all of these sandboxes."""

    entries = ()
    patience_s = PATIENCE_S

    def setup(self, place):
        command, env, *rest = super().setup(place)
        env["REMOTE_SANDBOX_LIST"] = json.dumps(self.entries)
        return command, env, *rest

    def warm(self):
        pass                    # the logins are a part of the question

    def query(self):
        text, took = self.call("list_sandboxes", {"check_resources": True})
        alive = {box["name"]: box.get("connection_alive") for box in
                 json.loads(text)["sandboxes"]}
        if alive != {box["name"]: box["name"] not in DEAD
                     for box in self.entries}:
            raise peers.Broken(f"a wrong answer: {alive}")
        return took


class Ours(Ten, peers.Ours):
    pass


class Original(Ten, peers.Original):
    pass


class Bench(Stage):
    def sandboxes(self, user):
        """Entries for all ten."""
        silent = socket.create_server(("127.0.0.1", 0))
        self.stack.callback(silent.close)
        ports = {"silent": silent.getsockname()[1],
                 "refusing": far.free_port()}
        keys = dict.fromkeys(ports, self.sshd.key)
        for number in range(SANDBOXES - len(DEAD)):
            place = self.dir / f"sshd{number}"
            place.mkdir()
            sshd = far.Sshd(place)
            self.stack.callback(sshd.close)
            name = f"box{number}"
            ports[name], keys[name] = sshd.port, sshd.key
        return [{"name": name, "host": "127.0.0.1", "port": port,
                 "user": user, "key_file": str(keys[name])}
                for name, port in ports.items()]

    def once(self, kind):
        """Seconds from nothing, and again."""
        with contextlib.ExitStack() as stack:
            server = self.start(stack, kind, self.sshd.port, far.me())
            return server and (server.query(), server.query())

    def measure(self):
        kinds = (Ours, Original)
        took = {kind.name: ([], []) for kind in kinds}
        for kind in self.turns(kinds, self.options.rounds):
            if sum(map(sum, took[kind.name])) > self.options.share:
                continue
            done = self.attempt(kind, lambda: self.once(kind))
            for values, seconds in zip(took[kind.name], done or ()):
                values.append(seconds)
        return took


def report(took, record):
    medians = {}
    for index, title in enumerate(("first query, with all logins", "again")):
        row = record.table(SECTION, title, "s", {
            name: both[index] for name, both in took.items()})
        for kind in (peers.ControlMaster, peers.SshMcp, peers.SshManager):
            row.cannot(kind.name, "no tool that asks all sandboxes")
        medians[title] = {name: statistics.median(both[index])
                          for name, both in took.items() if both[index]}
    print(f"{SANDBOXES} sandboxes, {len(DEAD)} of them dead: median s")
    print(f"{'':22}" + "".join(f"{title:>30}" for title in medians))
    for name in took:
        print(f"{name:22}" + "".join(
            f"{each[name]:30.2f}" for each in medians.values()
            if name in each))
    first, again = (each[peers.Ours.name] for each in medians.values())
    record.target(f"the first query within {FIRST_S} s ({first:.1f})",
                  first <= FIRST_S)
    record.target(f"the next within {AGAIN_S} s ({again:.1f})",
                  again <= AGAIN_S)


def main():
    parser = options_for(__doc__)
    parser.add_argument("--rounds", type=int, default=3,
                        help="turns of each")
    parser.add_argument("--share", type=float, default=60,
                        help="seconds after which one has no more turns")
    options = parser.parse_args()
    if not ready(options):
        return 0
    record = Record("resources", options.realtime)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, options)
        Ten.entries = bench.sandboxes(bench.plain_account())
        report(bench.measure(), record)
    return record.end(bench.skipped)


if __name__ == "__main__":
    sys.exit(main())
