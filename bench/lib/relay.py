"""A slow network: a relay on loopback that holds every byte for a while.

    relay.py DELAY_MS MB_PER_S PORT ...

For each port of this machine a free port is opened that leads there; these
are printed in one line.  Bytes keep their order, each way has the same delay.
All connections share what the line carries each way (0: no limit).  It is a
process of its own, so that it does not share the time of the one that measures,
and it ends with its stdin.
"""

import collections
import select
import socket
import subprocess
import sys
import time

CHUNK = 1 << 18
ON_THE_WAY = 1 << 24        # bytes; beyond it the sender has to wait
QUEUED_S = 0.05             # what a router would keep of a line that is full


class Line:
    """One direction of the network, for all connections."""

    def __init__(self, delay, rate):
        self.delay, self.rate = delay, rate     # seconds, bytes a second or 0
        self.free = 0.0         # when all that was sent has left
        self.most = (rate * (delay + QUEUED_S)) if rate else ON_THE_WAY
        self.chunk = min(CHUNK, max(1500, rate / 500)) if rate else CHUNK

    def due(self, size):
        """When so many bytes that are sent now are there."""
        now = time.monotonic()
        if not self.rate:
            return now + self.delay
        self.free = max(self.free, now) + size / self.rate
        return self.free + self.delay


class Way:
    """One direction of a connection."""

    def __init__(self, source, target, line):
        self.source, self.target, self.line = source, target, line
        self.queue = collections.deque()    # (due, bytes); b"" is the end
        self.held = 0
        self.blocked = self.ended = self.done = False

    def reading(self):
        return not self.ended and self.held < self.line.most

    def take(self):
        try:
            data = self.source.recv(int(self.line.chunk))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.ended = not data
        self.held += len(data)
        self.queue.append((self.line.due(len(data)), data))

    def give(self, now):
        """Send what is due."""
        self.blocked = False
        while self.queue and self.queue[0][0] <= now:
            due, data = self.queue.popleft()
            try:
                if not data:
                    self.done = True
                    self.target.shutdown(socket.SHUT_WR)
                    return
                sent = self.target.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:         # nobody is there any more
                self.ended = self.done = True
                return
            self.held -= sent
            if sent < len(data):
                self.queue.appendleft((due, data[sent:]))
                self.blocked = True
                return


def connect(listener, port, lines):
    """The two ways of a new connection, or nothing if nobody is there."""
    near, _ = listener.accept()
    try:
        far = socket.create_connection(("127.0.0.1", port))
    except OSError:
        near.close()
        return ()
    for end in (near, far):
        end.setblocking(False)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Way(near, far, lines[0]), Way(far, near, lines[1])


def relay(delay, rate, ports):
    lines = Line(delay, rate), Line(delay, rate)
    listeners = {socket.create_server(("127.0.0.1", 0)): port
                 for port in ports}
    print(*(each.getsockname()[1] for each in listeners), flush=True)
    pairs = []
    while True:
        ways = [way for pair in pairs for way in pair if not way.done]
        due = [way.queue[0][0] for way in ways
               if way.queue and not way.blocked]
        wait = max(0, min(due) - time.monotonic()) if due else None
        # select, because its time limit is finer than a millisecond.
        ready, _, _ = select.select(
            [sys.stdin, *listeners] + [w.source for w in ways if w.reading()],
            [w.target for w in ways if w.blocked], [], wait)
        if sys.stdin in ready:
            return
        for way in ways:
            if way.source in ready and way.reading():
                way.take()
        now = time.monotonic()
        for way in ways:
            way.give(now)
        for pair in [pair for pair in pairs if all(w.done for w in pair)]:
            pairs.remove(pair)
            for way in pair:
                way.source.close()
        for listener, port in listeners.items():
            if listener in ready:
                pairs.append(connect(listener, port, lines))


class Relay:
    """The relay as the one who measures sees it."""

    def __init__(self, delay_ms, port, mb_per_s=0):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(delay_ms), str(mb_per_s), str(port),
             str(self.listener.getsockname()[1])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port, mine = map(int, self.process.stdout.readline().split())
        self.near = socket.create_connection(("127.0.0.1", mine))
        self.far, _ = self.listener.accept()
        for end in (self.near, self.far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def round_trip(self):
        """Seconds for a byte there and another back; both ends are ours."""
        began = time.perf_counter()
        self.near.sendall(b"i")
        self.far.recv(1)
        self.far.sendall(b"o")
        self.near.recv(1)
        return time.perf_counter() - began

    def close(self):
        for end in (self.near, self.far, self.listener):
            end.close()
        self.process.stdin.close()
        self.process.wait()


if __name__ == "__main__":
    relay(float(sys.argv[1]) / 1000, float(sys.argv[2]) * 1e6,
          list(map(int, sys.argv[3:])))
