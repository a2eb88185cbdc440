#!/usr/bin/env python3
"""How busy ten sandboxes are, when two of them do not answer.

Eight sshd's on loopback; behind one further address somebody takes connections
and never says a word, behind another nobody is.  Asked once from nothing, with
all logins, and once more.  Our server and the one in Python whose tools ours has
are asked by list_sandboxes with check_resources; mcp-ssh-manager by its tool for
groups of servers, ssh-mcp by ten calls at once, both with a command that prints
load, processors and memory; ssh is started ten times at once, with a master for
each and as long to connect as ours has.  Each answer has to tell the living from
the dead.  Who takes too long is stopped and shown as "> N s".
"""

import contextlib
import json
import re
import socket
import statistics
import subprocess
import sys
import time

from lib import far, peers
from lib.record import Record
from lib.stage import Stage, options_for, progress, ready

SECTION = "Ten sandboxes, two of them dead"
SANDBOXES = 10
DEAD = ("silent", "refusing")
CASES = ("first query, with all logins", "again")
PATIENCE_S = 45
CONNECT_S = 15          # what ours has by default
COMMAND = ("cat /proc/loadavg; nproc; grep -E 'MemTotal|MemAvail' "
           "/proc/meminfo; echo told-$((40+2))")

# What ours has to reach: seconds.
FIRST_S = 16
AGAIN_S = 2


class Ten:
    """One with all of these sandboxes."""

    entries = ()
    patience_s = PATIENCE_S

    def warm(self):
        pass                    # the logins are a part of the question

    def query(self):
        """Seconds, and nobody is taken for dead or alive who is not."""
        alive, took = self.ask_all()
        wanted = {box["name"]: box["name"] not in DEAD
                  for box in self.entries}
        if alive != wanted:
            raise peers.Broken(f"a wrong answer: {alive}")
        return took


class Lists(Ten):
    """A server with a tool that asks all."""

    def setup(self, place):
        command, env, *rest = super().setup(place)
        env["REMOTE_SANDBOX_LIST"] = json.dumps(self.entries)
        return command, env, *rest

    def ask_all(self):
        text, took = self.call("list_sandboxes", {"check_resources": True})
        return {box["name"]: box.get("connection_alive") for box in
                json.loads(text)["sandboxes"]}, took


class Ours(Lists, peers.Ours):
    pass


class Original(Lists, peers.Original):
    pass


class SshManager(Ten, peers.SshManager):
    """Its group "all" has every server."""

    def setup(self, place):
        command, env, *rest = super().setup(place)
        env = {name: value for name, value in env.items()
               if not name.startswith("SSH_SERVER_")}
        for box in self.entries:
            name = f"SSH_SERVER_{box['name'].upper()}"
            env |= {f"{name}_HOST": box["host"],
                    f"{name}_PORT": str(box["port"]),
                    f"{name}_USER": box["user"],
                    f"{name}_KEYPATH": box["key_file"]}
        return command, env, *rest

    def ask_all(self):
        text, took = self.call("ssh_execute_group", {
            "group": "all", "command": COMMAND, "strategy": "parallel"})
        parts = re.split(r"\U0001F4CD (\w+):", text)
        return {name: "told-42" in said for name, said
                in zip(parts[1::2], parts[2::2])}, took


class SshMcp(Ten, peers.SshMcp):
    """A call for each of its profiles, all at once."""

    def setup(self, place):
        config = place.dir / "settings" / "config.toml"
        config.parent.mkdir(mode=0o700)
        config.write_text("".join(f'''
[[profiles]]
name = "{box['name']}"
host = "{box['host']}"
port = {box['port']}
user = "{box['user']}"
auth = "key"
keyRef = "{box['key_file']}"
group = "dev"
role = "admin"
approvalPolicy = "auto"
''' for box in self.entries))
        config.chmod(0o600)
        return [peers.node(self.script), str(self.script),
                f"--config={config}"], {}, "run-command", {}

    def ask_all(self):
        waiting, alive, began = {}, {}, time.perf_counter()
        for box in self.entries:
            self.request("tools/call", {"name": self.tool, "arguments": {
                "command": COMMAND, "profile": box["name"]}})
            waiting[self.next_id] = box["name"]
        while waiting:
            message, when = self.reply()
            if name := waiting.pop(message["id"], None):
                alive[name] = "told-42" in json.dumps(message)
        return alive, when - began


class ControlMaster(Ten):
    """Ten times `ssh` at once."""

    name = peers.ControlMaster.name

    def __init__(self, place):
        self.env = place.environment()
        self.places = {box["name"]: peers.Place(
            place.dir / box["name"], box["port"], box["user"],
            box["key_file"]) for box in self.entries}

    def ssh(self, place):
        return subprocess.Popen(
            ["ssh", "-n", "-o", "ControlMaster=auto", "-o",
             "ControlPersist=60", "-o", f"ConnectTimeout={CONNECT_S}",
             *peers.ControlMaster.login(place), COMMAND], env=self.env,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask_all(self):
        began = time.perf_counter()
        running = {name: self.ssh(place)
                   for name, place in self.places.items()}
        alive = {name: "told-42" in child.communicate()[0]
                 for name, child in running.items()}
        return alive, time.perf_counter() - began

    def close(self):
        for place in self.places.values():
            peers.end_master(place.dir / "socket")


KINDS = (Ours, ControlMaster, SshMcp, SshManager, Original)


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

    def once(self, kind, took):
        """From nothing, and again; whether it was stopped."""
        def ask():
            try:
                return server.query()
            except peers.Slow:
                return None
        with contextlib.ExitStack() as stack:
            server = self.start(stack, kind, self.sshd.port, far.me())
            for values in took if server else ():
                seconds = self.attempt(kind, ask)
                if seconds is None:
                    return kind.name not in self.skipped
                values.append(seconds)
        return False

    def measure(self):
        """{name: (first, again)}, and the names of those stopped."""
        took = {kind.name: ([], []) for kind in KINDS}
        slow = set()
        for kind in self.turns(KINDS, self.options.rounds):
            if (kind.name in slow
                    or sum(map(sum, took[kind.name])) > self.options.share):
                continue
            progress(kind.name)
            if self.once(kind, took[kind.name]):
                slow.add(kind.name)
        return took, slow


def report(took, slow, record):
    print(f"{SANDBOXES} sandboxes, {len(DEAD)} of them dead: median s")
    print(f"{'':22}" + "".join(f"{title:>30}" for title in CASES))
    rows = [record.row(SECTION, title, "s") for title in CASES]
    for name, both in took.items():
        line = f"{name:22}"
        for row, values in zip(rows, both):
            if values:
                line += f"{row.add(name, values):30.2f}"
            elif name in slow and row is rows[0]:
                row.bound(name, PATIENCE_S)
                line += f"{f'> {PATIENCE_S}':>30}"
            elif name in slow:
                row.cannot(name, f"the first query took more than {PATIENCE_S}"
                           " s, so it was not asked again")
        print(line)
    first, again = map(statistics.median, took[Ours.name])
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
        report(*bench.measure(), record)
    return record.end(bench.skipped)


if __name__ == "__main__":
    sys.exit(main())
