"""A private Slurm on loopback: munged, slurmctld and slurmd, without systemd.

    with Cluster(directory) as cluster: ...

It runs as who runs the tests.  Its commands find it by SLURM_CONF, which
cluster.env has; its login node is an Sshd with that environment.  conftest.py
has a fixture that makes one for all tests of a file: cluster.
"""

import getpass
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import rsmcp
import sshd as ssh_servers

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
PROGRAMS = {name: shutil.which(name, path=PATH)
            for name in ("munged", "slurmctld", "slurmd", "sbatch", "srun",
                         "squeue", "sacct", "scancel", "sinfo", "scontrol",
                         "sdiag")}
MISSING = sorted(name for name, path in PROGRAMS.items() if not path)

# Nodes of this machine, whatever it has: (name, CPUs, GRES).
NODES = [("n1", 4, "gpu:a100:2"), ("n2", 2, "")]

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobCompType=jobcomp/filetxt
JobCompLoc={dir}/jobcomp.log
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmdTimeout=6
MessageTimeout=3
KillWait=2
MinJobAge={min_job_age}
"""

# What ends a job that takes more memory than it asked for: the kernel, whose
# word Slurm passes on, or Slurm itself, which looks once a second.
MEMORY = {
    "cgroup": "TaskPlugin=task/cgroup\n",
    "gather": "JobAcctGatherType=jobacct_gather/linux\n"
              "JobAcctGatherFrequency=task=1\n"
              "JobAcctGatherParams=OverMemoryKill\n",
}
CGROUP = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainRAMSpace=yes\n"
CGROUPS = pathlib.Path("/sys/fs/cgroup/memory")


class Cluster:
    """A controller and its nodes; up when the constructor returns."""

    def __init__(self, min_job_age=300, memory=None):
        # Short, as there is a socket in it.
        self.dir = pathlib.Path(tempfile.mkdtemp(dir="/tmp", prefix="s"))
        self.conf = self.dir / "slurm.conf"
        self.env = {"SLURM_CONF": str(self.conf)}
        self.daemons = {}
        self.login = None
        try:
            self.write_conf(min_job_age, memory)
            self.start_munged()
            self.start_controller()
            for name, _, _ in NODES:
                self.start_node(name)
            self.ready()
        except BaseException:
            self.end()
            raise

    def write_conf(self, min_job_age, memory):
        conf = CONF
        if memory:
            # The last word counts.
            conf += "SelectTypeParameters=CR_Core_Memory\n" + MEMORY[memory]
        # A daemon takes its port before any other program may.
        lines = [conf.format(
            dir=self.dir, host=socket.gethostname(), user=getpass.getuser(),
            port=ssh_servers.free_port(), min_job_age=min_job_age)]
        for name, cpus, gres in NODES:
            lines.append(
                "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d "
                "CPUs=%d RealMemory=1000 State=UNKNOWN%s" % (
                    name, socket.gethostname(), ssh_servers.free_port(), cpus,
                    " Gres=" + gres if gres else ""))
        lines += [
            "PartitionName=main Nodes=ALL Default=YES State=UP PriorityTier=1",
            "PartitionName=urgent Nodes=ALL State=UP PriorityTier=9",
            "PartitionName=cancel Nodes=ALL State=UP PriorityTier=1 "
            "PreemptMode=CANCEL"]
        self.conf.write_text("\n".join(lines) + "\n")
        (self.dir / "gres.conf").write_text(
            "NodeName=n1 Name=gpu Type=a100 File=/dev/null,/dev/zero\n")
        (self.dir / "cgroup.conf").write_text(CGROUP)
        (self.dir / "state").mkdir()
        (self.dir / "munge.key").write_bytes(secrets.token_bytes(128))
        (self.dir / "munge.key").chmod(0o600)

    # Daemons, each a child of ours.

    def start(self, name, *argv):
        with open(self.dir / (name + ".out"), "ab") as out:
            self.daemons[name] = subprocess.Popen(
                [str(arg) for arg in argv], stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True,
                env={**os.environ, **self.env})

    def start_munged(self):
        self.start("munged", PROGRAMS["munged"], "--force", "--foreground",
                   "-S", self.dir / "munge.sock",
                   "--key-file", self.dir / "munge.key",
                   "--pid-file", self.dir / "munged.pid",
                   "--log-file", self.dir / "munged.log",
                   "--seed-file", self.dir / "munge.seed")
        rsmcp.until("munged listens", (self.dir / "munge.sock").exists)

    def start_controller(self):
        self.start("slurmctld", PROGRAMS["slurmctld"], "-D", "-f", self.conf)
        rsmcp.until("slurmctld answers", lambda: self.run(
            "scontrol", "ping", check=False).stdout.count(" UP") == 1)

    def start_node(self, name):
        self.start(name, PROGRAMS["slurmd"], "-D", "-f", self.conf,
                   "-N", name)

    def kill(self, name):
        """A daemon is gone, and what it ran with it if it was a node."""
        process = self.daemons.pop(name)
        family = ssh_servers.descendants(process.pid)
        process.kill()
        process.wait()
        return family

    def kill_node(self, name):
        """As if it had lost its power."""
        self.kill(name)
        mark = b"SLURMD_NODENAME=%s\0" % name.encode()
        for pid in ssh_servers.pids():
            try:
                words = pathlib.Path("/proc/%d/cmdline" % pid).read_bytes()
                mine = mark in pathlib.Path(
                    "/proc/%d/environ" % pid).read_bytes() + b"\0" \
                    or (words.startswith(b"slurmstepd") and self.owns(pid))
            except OSError:
                continue
            if mine:
                ssh_servers.kill(pid, signal.SIGKILL)

    def owns(self, pid):
        return b"SLURM_CONF=%s\0" % os.fsencode(self.conf) in pathlib.Path(
            "/proc/%d/environ" % pid).read_bytes() + b"\0"

    def save(self, job):
        """The controller has written down what it knows."""
        begun = time.time()
        self.run("scontrol", "update", "JobId=%s" % job, "AdminComment=x")
        rsmcp.until("it is written down", lambda: (
            self.dir / "state" / "job_state").stat().st_mtime > begun)

    def ready(self):
        rsmcp.until("all nodes are idle", lambda: self.sinfo("%T") == {"idle"},
                    3 * rsmcp.PATIENCE_S)

    def end(self):
        for name in list(self.daemons):
            self.kill(name)
        # Steps are children of nobody, and they remember us.
        for pid in ssh_servers.pids():
            try:
                if self.owns(pid) and pid != os.getpid():
                    ssh_servers.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.dir, ignore_errors=True)
        for name, _, _ in NODES:
            for place, _, _ in os.walk(CGROUPS / ("slurm_" + name),
                                       topdown=False):
                rsmcp.until("it is empty", lambda: self.empty(place))

    def empty(self, place):
        """Remove a control group; its processes may be on their way out."""
        try:
            os.rmdir(place)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True

    # Its commands, for tests.

    def run(self, name, *args, check=True):
        done = subprocess.run(
            [PROGRAMS[name], *map(str, args)], text=True, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=rsmcp.PATIENCE_S,
            env={**os.environ, **self.env})
        assert not check or done.returncode == 0, done.stderr
        return done

    def sinfo(self, form):
        return set(self.run("sinfo", "-h", "-o", form).stdout.split())

    def state(self, job):
        return self.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T",
                        check=False).stdout.strip()

    def cancel_all(self):
        self.run("scancel", "-s", "KILL", "-u", getpass.getuser())
        self.run("scancel", "-u", getpass.getuser())
        rsmcp.until("the queue is empty", lambda: not self.run(
            "squeue", "-h").stdout.strip(), 3 * rsmcp.PATIENCE_S)

    def questions(self):
        """How often it was asked for jobs or nodes since it began."""
        text = self.run("sdiag").stdout
        jobs, nodes = (sum(int(n) for n in re.findall(
            kind + r"_INFO(?:_SINGLE)?\s.*count:(\d+)", text)) for kind in (
                "REQUEST_JOB(?:_USER)?", "REQUEST_NODE"))
        return jobs, nodes
