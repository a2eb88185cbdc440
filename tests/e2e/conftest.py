"""Fixtures of pytest for these tests."""

import os
import pathlib

import pytest

import agent as agents
import claude as agent_claude
import rsmcp
import slurm
import sshd as ssh_servers
import watched as watchdogs

# Tests marked as long run with RSMCP_LONG=1, and then they alone.


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long, see RSMCP_LONG")


def pytest_collection_modifyitems(config, items):
    wanted = bool(os.environ.get("RSMCP_LONG"))
    other = [item for item in items
             if bool(item.get_closest_marker("long")) != wanted]
    items[:] = [item for item in items if item not in other]
    config.hook.pytest_deselected(items=other)
    if other and not wanted:
        config.long_tests = other


def pytest_terminal_summary(terminalreporter, config):
    for item in getattr(config, "long_tests", ()):
        terminalreporter.write_line("LONG, not run: " + item.name)


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


# Sandboxes: see sshd.py.

@pytest.fixture
def home():
    """A user who owns nothing yet."""
    user = ssh_servers.Home()
    yield user
    user.end()


@pytest.fixture
def new_sshd(tmp_path):
    """Makes ssh servers: new_sshd("MaxSessions 1", ...)."""
    if not ssh_servers.SSHD:
        pytest.skip("there is no sshd")
    made = []

    def make(*options, **more):
        made.append(ssh_servers.Sshd(
            tmp_path / ("sshd%d" % len(made)), *options, **more))
        return made[-1]

    yield make
    for server in made:
        server.end()


@pytest.fixture
def sshd(new_sshd):
    """A plain ssh server."""
    return new_sshd()


@pytest.fixture(scope="session")
def new_account():
    """Makes users of this system: new_account(password=..., shell=...)."""
    if not ssh_servers.ROOT:
        pytest.skip("only root can make users")
    ssh_servers.sweep_accounts()
    made = []

    def make(**options):
        made.append(ssh_servers.Account(**options))
        return made[-1]

    yield make
    for account in made:
        account.remove()


@pytest.fixture(scope="session")
def account(new_account):
    """An ordinary user with /bin/bash."""
    return new_account()


# Clusters: see slurm.py.

@pytest.fixture(scope="module")
def new_cluster():
    """Makes clusters: new_cluster(min_job_age=2)."""
    if slurm.MISSING:
        pytest.skip("Slurm is not installed: no " + ", ".join(slurm.MISSING))
    made = []

    def make(**options):
        made.append(slurm.Cluster(**options))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture(scope="module")
def shared_cluster(new_cluster):
    return new_cluster()


@pytest.fixture
def cluster(shared_cluster):
    """One that has nothing to do; tests of a file share it."""
    yield shared_cluster
    shared_cluster.cancel_all()
    shared_cluster.ready()


# Commands on them: see agent.py.

@pytest.fixture
def new_agent(home):
    """Starts agents: new_agent(entry, ...)."""
    return lambda *entries, **options: agents.Agent(home, *entries, **options)


@pytest.fixture
def agent(new_agent, sshd):
    """One with a sandbox for who runs the tests."""
    return new_agent(sshd.entry())


@pytest.fixture
def new_tag():
    made = []

    def make():
        made.append(agents.Tag())
        return made[-1]

    yield make
    for tag in made:
        tag.kill()


@pytest.fixture
def tag(new_tag):
    return new_tag()


# The program by its name, and a client that starts it so: see claude.py.

@pytest.fixture
def named_path(tmp_path):
    """A PATH with our program by its name."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/remote-sandbox-mcp").symlink_to(
        os.path.abspath(rsmcp.SERVER))
    return "%s:%s" % (tmp_path / "bin", os.environ["PATH"])


@pytest.fixture
def claude(home, named_path):
    if agent_claude.MISSING:
        pytest.skip(agent_claude.MISSING)
    return agent_claude.Claude(home, named_path)


@pytest.fixture
def plugin(tmp_path):
    return agent_claude.copy_plugin(tmp_path / "plugin")


# Watches of jobs: see watched.py.

@pytest.fixture
def watched(home, sshd):
    made = watchdogs.Watched(home, sshd)
    yield made
    made.daemon.kill()
    print(made.daemon.log())    # shown if the test failed
