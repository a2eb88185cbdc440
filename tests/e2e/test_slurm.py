"""Jobs on a cluster: a real Slurm on loopback, its login node an sshd."""

import pathlib
import re
import time

import pytest

import rsmcp
import slurm
import sshd as ssh_servers

pytestmark = [
    pytest.mark.skipif(not ssh_servers.SSHD, reason="there is no sshd"),
    pytest.mark.skipif(bool(slurm.MISSING), reason="Slurm is not installed: "
                       "no " + ", ".join(slurm.MISSING)),
    rsmcp.needs_proc,
]


class Jobs:
    """The tools, of a server whose sandbox is the cluster's login node."""

    def __init__(self, home, cluster, host, **entry):
        self.home, self.cluster, self.host = home, cluster, host
        self.entries = [host.entry(**{"scheduler": "slurm", **entry})]
        self.server = home.server(self.entries)

    def ask(self, tool, **arguments):
        return self.home.ask(self.server, tool, **arguments)

    def good(self, tool, **arguments):
        result = self.ask(tool, **arguments)
        assert not result.failed, result
        return result

    def start(self, command, name="j", **more):
        more.setdefault("watch", False)
        return self.good("exec_bash_background", command=command,
                         session_name=name, **more)

    def refused(self, **arguments):
        result = self.ask("exec_bash_background", **arguments)
        assert result.failed, result
        return result["error"]

    def check(self, name="j", **more):
        return self.good("check_background_task", tmux_session=name, **more)

    def when(self, condition, name="j", **more):
        """Ask until it is so."""
        return rsmcp.until("%s is so" % name, lambda: (
            lambda r: r if condition(r) else None)(self.check(name, **more)),
            3 * rsmcp.PATIENCE_S)

    def over(self, name="j", **more):
        return self.when(lambda r: r["running"] is False, name, wait_s=5,
                         **more)

    def runs(self, name="j"):
        return self.when(lambda r: r.get("slurm_state") == "RUNNING"
                         and "go" in r["log_tail"].split(), name)

    def stop(self, name="j", **more):
        return self.good("stop_background_task", tmux_session=name, **more)

    def tasks(self, **more):
        result = self.good("list_background_tasks", **more)
        return {task["tmux_session"]: task for task in result["tasks"]}


@pytest.fixture
def jobs(home, cluster, new_sshd):
    return Jobs(home, cluster, new_sshd(env=cluster.env))


# What every job does.

def test_a_job_runs_on_a_node(jobs):
    started = jobs.start("echo on $SLURMD_NODENAME; exit 3")
    assert started["status"] == "started"
    assert started["slurm_job_id"].isdigit()
    result = jobs.over()
    assert (result["state"], result["exit_code"]) == ("exited", 3)
    assert result["slurm_state"] == "FAILED"
    assert result["slurm_job_id"] == started["slurm_job_id"]
    assert re.search(r"^on n[12]$", result["log_tail"], re.M)
    assert result["log_tail"].endswith("EXIT_CODE=3\n")


@pytest.mark.parametrize("command, state, code, theirs", [
    ("true", "exited", 0, "COMPLETED"),
    ("kill -9 $$", "killed", 137, "FAILED"),
    ("exit 143", "exited", 143, "FAILED"),
])
def test_ends(jobs, command, state, code, theirs):
    jobs.start(command)
    result = jobs.over()
    assert (result["state"], result["exit_code"], result["slurm_state"]) == \
        (state, code, theirs), result
