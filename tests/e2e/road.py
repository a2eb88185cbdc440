"""The way to a sandbox, and what can happen on it.

A Road is a port of loopback that leads to another one.  It can be told to
break at a certain byte: a fault is armed with a direction and a number of
bytes, and strikes when so many have passed.
"""

import dataclasses
import pathlib
import select
import socket
import struct
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from lib import relay  # noqa: E402

RESET = struct.pack("ii", 1, 0)     # SO_LINGER: close without a word


@dataclasses.dataclass
class Fault:
    kind: str           # one of Road.KINDS
    outward: bool       # towards the sandbox, or back
    after: int          # bytes in that direction
    seconds: float      # how long it lasts, where it does
    amount: int         # bytes a second for "throttle"

    def __str__(self):
        return "%s %s after %d bytes for %.2f s" % (
            self.kind, "there" if self.outward else "back", self.after,
            self.seconds)


class Way(relay.Way):
    """One direction of a connection, as far as the road lets it."""

    def __init__(self, source, target, road, outward):
        super().__init__(source, target, relay.Line(0, 0))
        self.road, self.outward = road, outward
        self.clock = 0.0        # when the last byte has got through

    def take(self):
        before = len(self.queue)
        super().take()
        if len(self.queue) > before:
            due, data = self.queue.pop()
            due, data = self.road.pass_on(self, due, data)
            self.queue.append((due, data))


class Road:
    KINDS = ("cut", "reset", "freeze", "half", "delay", "corrupt",
             "throttle", "away")

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.awake, self.waker = socket.socketpair()
        self.lock = threading.Lock()
        self.pairs = []
        self.closed = False
        self.witness = bool     # asked when a fault strikes; see "struck"
        self.heal()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    # What is asked of it, by any thread.

    def arm(self, fault):
        with self.lock:
            self.faults.append(fault)
            self.passed = {True: 0, False: 0}

    def disarm(self, fault):
        """It will not strike any more; if it was a freeze, that is over."""
        with self.lock:
            if fault in self.faults:
                self.faults.remove(fault)
        for outward in (True, False):
            self.hold(outward, 0)

    def heal(self):
        """From here on it is a good road."""
        with self.lock:
            self.faults = []
            self.passed = {True: 0, False: 0}
            self.frozen = {True: 0.0, False: 0.0}    # until when
            self.delay = self.rate = (0, 0.0)        # how much, until when
            self.away = 0.0
            self.struck = []            # (fault, what the witness said)
        self.waker.send(b"x")

    def hold(self, outward, seconds=600):
        """Nothing gets through in that direction; 0 lets it go on."""
        with self.lock:
            self.frozen[outward] = time.monotonic() + seconds
        self.waker.send(b"x")

    def close(self):
        self.closed = True
        self.waker.send(b"x")
        self.thread.join()

    # Its own thread.

    def pass_on(self, way, due, data):
        """When these bytes are due, and what has become of them."""
        with self.lock:
            now = time.monotonic()
            self.passed[way.outward] += len(data)
            for fault in list(self.faults):
                over = self.passed[way.outward] - fault.after
                if fault.outward == way.outward and over >= 0 and data:
                    self.faults.remove(fault)
                    self.struck.append((fault, self.witness()))
                    data = self.strike(fault, data, over, now)
            if now < self.delay[1]:
                due += self.delay[0]
            if now < self.rate[1]:
                way.clock = max(way.clock, now) + len(data) / self.rate[0]
            # Bytes keep their order.
            way.clock = due = max(due, way.clock)
            return due, data

    def strike(self, fault, data, over, now):
        end = now + fault.seconds
        if fault.kind in ("cut", "reset", "away"):
            data = data[:len(data) - over]
            self.breaking = fault.kind
            if fault.kind == "away":
                self.away = end
        elif fault.kind == "freeze":
            self.frozen = {True: end, False: end}
        elif fault.kind == "half":
            self.frozen[fault.outward] = end
        elif fault.kind == "delay":
            self.delay = (0.3, end)
        elif fault.kind == "throttle":
            self.rate = (fault.amount, end)
        elif fault.kind == "corrupt":
            at = len(data) // 2
            data = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]
        return data

    breaking = None

    def held(self, way, now):
        return now < self.frozen[way.outward]

    def run(self):
        while not self.closed:
            now = time.monotonic()
            ways = [way for pair in self.pairs for way in pair
                    if not way.done]
            moving = [way for way in ways if not self.held(way, now)]
            due = [way.queue[0][0] for way in moving
                   if way.queue and not way.blocked]
            due += [end for end in self.frozen.values() if end > now]
            ready, _, _ = select.select(
                [self.awake, self.listener]
                + [way.source for way in moving if way.reading()],
                [way.target for way in moving if way.blocked], [],
                max(0, min(due) - now) if due else None)
            self.turn(moving, ready)
        self.drop(self.pairs)
        for each in (self.listener, self.awake, self.waker):
            each.close()

    def turn(self, moving, ready):
        if self.awake in ready:
            self.awake.recv(64)
        for way in moving:
            if way.source in ready and way.reading():
                way.take()
        now = time.monotonic()
        for way in moving:
            if not self.held(way, now):
                way.give(now)
        if self.breaking:
            self.drop(self.pairs, self.breaking == "reset")
            self.breaking = None
        self.drop([pair for pair in self.pairs
                   if all(way.done for way in pair)])
        if self.listener in ready:
            self.take_in(now)

    def take_in(self, now):
        near, _ = self.listener.accept()
        try:
            if now < self.away:
                raise ConnectionRefusedError
            far = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            near.close()
            return
        for end in (near, far):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pairs.append((Way(near, far, self, True),
                           Way(far, near, self, False)))

    def drop(self, pairs, reset=False):
        for pair in list(pairs):
            self.pairs.remove(pair)
            for way in pair:
                if reset:
                    way.source.setsockopt(socket.SOL_SOCKET,
                                          socket.SO_LINGER, RESET)
                way.source.close()
