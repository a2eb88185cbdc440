"""Fixtures of pytest for these tests."""

import os
import pathlib

import pytest

import rsmcp


@pytest.fixture
def start(tmp_path):
    """Starts servers; they are gone after the test, however it went."""
    servers = []

    def start_one(*args, **options):
        servers.append(rsmcp.Server(tmp_path, *args, **options))
        return servers[-1]

    yield start_one
    for server in servers:
        server.kill()


class SlowSsh:
    """An `ssh` that never answers, so that get_server_info takes long."""

    def __init__(self, directory):
        directory.mkdir()
        self.pid_file = directory / "pid"
        program = directory / "ssh"
        # The name is moved into place, so that it is never seen half written.
        program.write_text('#!/bin/sh\n'
                           'echo $$ >"$0.new" && mv "$0.new" "${0%/*}/pid"\n'
                           'exec sleep 600\n')
        program.chmod(0o755)
        self.env = {"PATH": "%s:%s" % (directory, os.environ["PATH"])}

    def started(self):
        """Wait until it runs; its process id."""
        rsmcp.until("ssh was started", self.pid_file.exists)
        return int(self.pid_file.read_text())


@pytest.fixture
def slow_ssh(tmp_path):
    return SlowSsh(pathlib.Path(tmp_path) / "bin")
