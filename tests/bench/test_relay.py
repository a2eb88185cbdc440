"""The slow network of the benchmarks (bench/lib/relay.py): never faster than it
says, and all bytes come."""

import pathlib
import socket
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from lib.relay import Relay  # noqa: E402  (found by the line above)

SIZE = 400_000


class Echo:
    """A server that says what it hears."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                end, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(end,),
                             daemon=True).start()

    @staticmethod
    def answer(end):
        with end:
            while data := end.recv(1 << 16):
                end.sendall(data)


@pytest.fixture
def echo():
    server = Echo()
    yield server
    server.listener.close()


def there_and_back(port, data, heard):
    with socket.create_connection(("127.0.0.1", port)) as end:
        sender = threading.Thread(target=lambda: (
            end.sendall(data), end.shutdown(socket.SHUT_WR)))
        sender.start()
        said = b""
        while piece := end.recv(1 << 16):
            said += piece
        sender.join()
    heard.append(said)


def carry(relay, count):
    """Seconds for so many connections at once, each heard in full."""
    heard = []
    data = bytes(range(250)) * (SIZE // 250)
    threads = [threading.Thread(target=there_and_back,
                                args=(relay.port, data, heard))
               for _ in range(count)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == [data] * count
    return time.monotonic() - began


def test_a_byte_takes_the_delay_each_way(echo):
    relay = Relay(30, echo.port)
    try:
        assert relay.round_trip() >= 0.06
        assert carry(relay, 2) >= 0.06
    finally:
        relay.close()


def test_all_connections_share_what_the_line_carries(echo):
    relay = Relay(0, echo.port, 2)
    try:
        assert carry(relay, 1) >= SIZE / 2e6
        assert carry(relay, 3) >= 3 * SIZE / 2e6
    finally:
        relay.close()
