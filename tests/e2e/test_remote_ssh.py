"""The tools of the server "remote-ssh" against real ssh servers and git.

Its test plan and every call of its guide are here, as its users wrote them
(/workspace is below the home of the test's host).  Rarer things are in
test_remote_ssh_more.py.
"""

import json
import re
import secrets
import shutil
import time

import pytest

import rsmcp
import sshd as ssh_servers
from remote_ssh import TOOLS, Remote, alias, lines

pytestmark = [
    pytest.mark.skipif(not ssh_servers.SSHD, reason="there is no sshd"),
    rsmcp.needs_proc,
]


@pytest.fixture
def host(new_sshd, tmp_path):
    """A machine with a GPU, as far as nvidia-smi can tell, and with uv."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {
            "nvidia-smi": 'case $1 in --query-gpu=*) echo "0, 97 %, 79 C";;\n'
                          '*) echo "| NVIDIA-SMI 550.54  |  0  A100 |";; esac',
            "uv": '[ "$1" = sync ] && mkdir -p .venv/bin && echo '
                  '"VIRTUAL_ENV=$PWD/.venv" >.venv/bin/activate'}.items():
        (programs / name).write_text("#!/bin/sh\n%s\n" % text)
        (programs / name).chmod(0o755)
    return new_sshd(env={"PATH": "%s:/usr/local/bin:/usr/bin:/bin" % programs,
                         "GIT_CONFIG_GLOBAL": tmp_path / "gitconfig"})


@pytest.fixture
def remote(home, host):
    """A server that was told of the machine by an alias."""
    return Remote(home, alias(home, host))


class Git:
    """A remote, a clone on this side, and where one is on the other."""

    def __init__(self, tmp_path, host):
        (tmp_path / "gitconfig").write_text(
            "[user]\nname = a\nemail = a@b\n[init]\ndefaultBranch = main\n"
            "[pull]\nrebase = false\n")
        self.origin = tmp_path / "origin.git"
        self.local = tmp_path / "project"
        self.workspace = host.home / "workspace"
        self.workspace.mkdir(parents=True)
        self.repo = self.workspace / "project"
        self.env = {"GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
                    "PATH": "/usr/bin:/bin"}
        self.git("init", "-q", "--bare", self.origin, cwd=tmp_path)
        self.git("clone", "-q", self.origin, self.local, cwd=tmp_path)

    def git(self, *words, cwd=None):
        return ssh_servers.run("git", *words, cwd=cwd or self.local,
                               env=self.env)

    def push(self, **files):
        """Change the code here, as everybody should."""
        for name, text in files.items():
            path = self.local / name.replace("__", "/").replace("_sh", ".sh")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change")
        self.git("push", "-q", "origin", "HEAD:main")


@pytest.fixture
def git(tmp_path, host):
    made = Git(tmp_path, host)
    made.push(scripts__train_sh=(
        "#!/bin/bash\nmkdir -p logs\n"
        "for n in 1 2 3; do echo \"epoch $n\"; echo \"step ${n}00\"; "
        "echo \"loss 0.$n\"; done\n"),
        scripts__status_sh="#!/bin/sh\ntmux list-sessions; ps aux | head -3\n")
    return made


# --- Its documents ----------------------------------------------------------

def test_plan(home, host, git):
    """All of it, with the settings that its users have: the command in them
    is all that changed."""
    settings = {"mcpServers": {"remote-ssh": {
        "command": "node", "args": ["mcp-server/dist/index.js"],
        "env": {"SSH_HOST": "gpu-box", "SSH_PORT": "22"}}}}
    (home.home / ".mcp.json").write_text(json.dumps(settings))
    entry = json.loads((home.home / ".mcp.json").read_text())[
        "mcpServers"]["remote-ssh"]
    alias(home, host)
    remote = Remote(home, entry["env"], entry["args"], legacy="2024-11-05")
    assert list(remote.tools()) == TOOLS

    # 1 to 5
    assert remote.bash("echo 'Hello from remote!'",
                       description="Test connection") == \
        "Hello from remote!\n"
    assert "NVIDIA-SMI" in remote.bash("nvidia-smi")
    git.git("clone", "-q", git.origin, git.repo, cwd=git.workspace)
    assert "PID" in remote.bash("cd %s && ./scripts/status.sh" % git.repo)
    log = git.workspace / "train.log"
    log.write_text("".join("line %d\n" % n for n in range(1, 201)))
    assert remote.read(log, limit=50) == lines(151, 200)
    begun = time.monotonic()
    assert remote.start("sleep 1; echo 'Background task complete'") == \
        "remote-1"
    assert time.monotonic() - begun < 1 * rsmcp.SLOW
    assert remote.output("remote-1") == \
        "Status: running\nExit code: N/A\n\n"
    assert remote.over("remote-1") == \
        "Status: completed\nExit code: 0\n\nBackground task complete\n"

    # The workflow
    git.push(marker="new\n")
    assert "marker" in remote.bash("cd %s && git pull" % git.repo)
    job = remote.start("cd %s && ./scripts/train.sh 2>&1 | tee %s; sleep 600"
                       % (git.repo, log))
    rsmcp.until("it trains", lambda: "loss 0.3" in remote.output(job))
    assert remote.bash("cd %s && ./scripts/status.sh" % git.repo)
    assert remote.read(log, limit=100).endswith("     9\tloss 0.3\n")
    assert "A100" in remote.bash("nvidia-smi")
    if shutil.which("tmux"):
        rsmcp.until("its session is there",
                    lambda: job in remote.bash("tmux list-sessions 2>&1; :"))


def test_guide(remote, git):
    repo = git.repo
    # First-time set-up
    remote.bash("cd %s && git clone -q %s" % (git.workspace, git.origin))
    assert (git.workspace / "origin" / "scripts").is_dir()
    (git.workspace / "origin").rename(repo)
    assert remote.bash("cd %s && uv sync" % repo) == "(no output)"
    assert "A100" in remote.bash("nvidia-smi")
    assert remote.bash("mkdir -p %s/logs %s/results" % (repo, repo)) == \
        "(no output)"
    assert remote.bash("""cd %s && python3 -c 'import json; """
                       """print("it is", json.dumps({"a": "b"}))'"""
                       % repo) == 'it is {"a": "b"}\n'

    # Code change, run
    git.push(scripts__train_sh=(git.local / "scripts/train.sh").read_text()
             + "echo version 2\n")
    assert "train.sh" in remote.bash("cd %s && git pull" % repo,
                                     description="Get the newest code")
    assert "version 2\n" in remote.bash(
        "cd %s && ./scripts/train.sh" % repo, description="Run training")

    # Long task
    job = remote.start(
        "cd %s && ./scripts/train.sh 2>&1 | tee logs/x.log" % repo,
        timeout=3600000)
    assert job == "remote-1"
    head = "Status: completed\nExit code: 0\n\n"
    assert remote.over(job).startswith(head + "epoch 1\nstep 100\n")
    assert remote.output(job, filter="epoch") == \
        head + "epoch 1\nepoch 2\nepoch 3\n"
    assert remote.output(job, filter="step") == \
        head + "step 100\nstep 200\nstep 300\n"
    assert remote.read(repo / "logs/x.log", limit=50).endswith(
        "    10\tversion 2\n")

    # Status
    remote.bash("ps aux | grep python")
    assert remote.bash("nvidia-smi --query-gpu=index,utilization.gpu,"
                       "temperature.gpu --format=csv") == "0, 97 %, 79 C\n"
    assert "Mounted on" in remote.bash("df -h %s" % git.workspace)
    (repo / "logs/error.log").write_text("Traceback (most recent call)\n  x\n")
    assert remote.read(repo / "logs/error.log", limit=100) == \
        "     1\tTraceback (most recent call)\n     2\t  x\n"

    # Results
    remote.bash("cd %s && echo '{\"loss\": 0.3}' >results/summary.json"
                % repo)
    assert "summary.json" in remote.bash("ls -lh %s/results" % repo)
    assert remote.read(repo / "results/summary.json", limit=1000) == \
        '     1\t{"loss": 0.3}\n'
    remote.bash("cd %s && git add results && git commit -q -m 'Add results' "
                "&& git push -q origin HEAD:main" % repo)
    git.git("pull", "-q", "origin", "main")
    assert json.loads((git.local / "results/summary.json").read_text()) == \
        {"loss": 0.3}

    # Environment
    assert remote.bash("cd %s && source .venv/bin/activate && "
                       "python3 -c 'print(1)'; echo $VIRTUAL_ENV" % repo) == \
        "1\n%s/.venv\n" % repo

    # Troubleshooting
    (repo / "scripts/train.sh").write_text("broken")
    assert "HEAD is now at" in remote.bash(
        "cd %s && git fetch origin && git reset --hard origin/main" % repo)
    name = "rsmcp-%s.py" % secrets.token_hex(6)
    (repo / name).write_text("import time\nprint('up', flush=True)\n"
                             "time.sleep(600)\n")
    job = remote.start("cd %s && python3 %s" % (repo, name))
    rsmcp.until("it runs", lambda: "up\n" in remote.output(job))
    assert remote.bash("pkill -f " + name) == "(no output)"
    assert remote.over(job).startswith("Status: completed\nExit code: 143\n")
    remote.ask("remote_bash", command="tmux list-sessions")
    assert remote.bash("tail -200 %s/logs/error.log | grep -A 10 'Traceback'"
                       % repo).endswith("  x\n")
    assert remote.bash("echo quick", timeout=5000) == "quick\n"


# --- remote_bash ------------------------------------------------------------

def test_what_a_command_printed(remote, host):
    for command, text in [
            ("echo hi", "hi\n"),
            ("printf hi", "hi"),
            ("echo out; echo err >&2", "out\n[stderr]\nerr\n"),
            ("printf out; printf err >&2; exit 3",
             "out\n[stderr]\nerr\nExit code: 3"),
            ("echo err >&2", "[stderr]\nerr\n"),
            ("exit 4", "Exit code: 4"),
            ("kill -9 $$", "Exit code: 137"),
            ("true", "(no output)"),
            ("cat; echo $?", "0\n"),            # stdin is empty
            ("-o ProxyCommand=false", "[stderr]\nbash: line 1: -o: command "
             "not found\nExit code: 127"),
            ("for i in 1 2 3 4; do printf '\\xe2\\x82'; sleep 0.05; "
             "printf '\\xac'; done", "€€€€")]:
        got = remote.bash(command)
        assert re.sub(r"^.*: -o:", "bash: line 1: -o:", got, flags=re.M) == \
            text, command
    assert host.logins_ever() == 1
    assert "'command' must not be empty" in remote.bad("remote_bash",
                                                       command=" ")
    assert "'command' is missing" in remote.bad("remote_bash")
    assert "from 0 to 86400000" in remote.bad("remote_bash", command="true",
                                              timeout=86400001)


# --- Jobs -------------------------------------------------------------------

def test_jobs_outlive_the_server(home, host):
    env = alias(home, host)
    first = Remote(home, env)
    go = host.home / "go"
    job = first.start("echo one; until [ -e %s ]; do sleep 0.05; done; "
                      "echo two; echo err >&2; exit 7" % go)
    assert job == "remote-1"
    first.server.kill()
    home.end_masters()

    second = Remote(home, env)
    rsmcp.until("it is there", lambda: second.output(job) ==
                "Status: running\nExit code: N/A\n\none\n")
    go.touch()
    assert second.over(job) == \
        "Status: completed\nExit code: 7\n\none\ntwo\nerr\n"
    assert second.output(job, filter="^(?:two|e.r)$").endswith("\ntwo\nerr\n")
    assert second.output(job, filter="none such") == \
        "Status: completed\nExit code: 7\n\n"
    assert second.start("true") == "remote-2"
    # The header of the log, where the command stands, is no output.
    assert "until" not in second.output(job, filter="until")
    assert "session" not in second.output(job, filter="session|started_at")

    for wrong in ("remote-99", "remote-0", "remote-x", "remote-1x", "1", ""):
        assert "Error: Job %s not found" % wrong == second.bad(
            "remote_bash_output", bash_id=wrong)
    assert re.match(
        r"Error: filter: grep on \S+ does not take '\(': ",
        second.bad("remote_bash_output", bash_id=job, filter="("))


# --- remote_file_read -------------------------------------------------------

def test_lines_have_their_own_numbers(remote, host):
    path = host.home / "it's $(touch oops) \"f\" `touch oops`.txt"
    path.write_text("".join("line %d\n" % n for n in range(1, 31)))
    assert remote.read(path) == lines(1, 30)
    assert remote.read(path, offset=0) == lines(1, 30)
    assert remote.read(path, limit=0) == lines(1, 30)
    assert remote.read(path, offset=28) == lines(28, 30)
    assert remote.read(path, offset=10, limit=3) == lines(10, 12)
    assert remote.read(path, offset=0, limit=3) == lines(1, 3)
    assert remote.read(path, limit=3) == lines(28, 30)
    assert remote.read(path, limit=1000) == lines(1, 30)
    assert remote.read(path, offset=31) == "(no output)"
    assert remote.read(path, offset="2", limit=1.0) == lines(2, 2)
    assert remote.read("~/" + path.name, limit=1) == lines(30, 30)
    path.write_text("no newline")
    assert remote.read(path, limit=1) == "     1\tno newline"
    path.write_text("")
    assert remote.read(path) == remote.read(path, limit=5) == "(no output)"
    assert not list(host.home.rglob("oops"))
    assert "No such file" in remote.bad("remote_file_read",
                                        file_path="/nowhere")
    assert "is a directory" in remote.bad("remote_file_read",
                                          file_path=str(host.home))
    assert "'limit' must be an integer" in remote.bad(
        "remote_file_read", file_path=str(path), limit="$(id)")


# --- Which tools, which machine ---------------------------------------------

LIST = json.dumps([{"host": "a"}])


@pytest.mark.parametrize("env, name, sets", [
    ({}, "remote-sandbox", "s"),
    ({"REMOTE_SANDBOX_LIST": LIST}, "remote-sandbox", "s"),
    ({"SSH_HOST": "gpu"}, "remote-ssh", "r"),
    ({"SSH_HOST": "-oProxyCommand=x"}, "remote-ssh", "r"),
    ({"SSH_HOST": "gpu", "REMOTE_HOST": "a"}, "remote-sandbox", "sr"),
    ({"SSH_HOST": "gpu", "REMOTE_SANDBOX_LIST": LIST}, "remote-sandbox", "sr"),
    ({"SSH_HOST": "gpu", "REMOTE_SANDBOX_TOOLSET": "sandbox"},
     "remote-sandbox", "s"),
    ({"REMOTE_SANDBOX_LIST": LIST, "REMOTE_SANDBOX_TOOLSET": "remote-ssh"},
     "remote-ssh", "r"),
    ({"REMOTE_SANDBOX_TOOLSET": "all"}, "remote-sandbox", "sr"),
    ({"REMOTE_SANDBOX_TOOLSET": "both"}, "remote-sandbox", "s"),
])
def test_toolsets(home, env, name, sets):
    for version in (None, "2025-11-25", "2024-11-05"):
        remote = Remote(home, env, legacy=version)
        tools = remote.tools()
        found = [tool for tool in tools if tool in TOOLS]
        assert found == (TOOLS if "r" in sets else [])
        assert len(tools) - len(found) == (15 if "s" in sets else 0)
        for tool in found:
            assert "outputSchema" not in tools[tool]
        if version is None:
            reply = remote.server.ask("discover", "server/discover",
                                      {"_meta": rsmcp.MODERN_META})
            assert reply["result"]["_meta"][
                "io.modelcontextprotocol/serverInfo"]["name"] == name
            words = reply["result"]["instructions"]
            assert ("remote_bash" in words) == ("r" in sets)
            assert ("exec_bash" in words) == ("s" in sets)
        # What is not listed is not there.
        for tool in ("remote_bash", "exec_bash"):
            message = rsmcp.call("call", tool, command="")
            if version:
                del message["params"]["_meta"]
            remote.server.send(message)
            there = "result" in remote.server.reply("call")
            assert there == (tool in tools)
        if env.get("REMOTE_SANDBOX_TOOLSET") == "both":
            remote.server.stderr_has("sandbox, remote-ssh or all, not 'both'")


def test_their_arguments(home):
    tools = Remote(home, {"SSH_HOST": "x"}).tools()

    def shape(tool):
        schema = tools[tool]["inputSchema"]
        return ({name: value["type"]
                 for name, value in schema["properties"].items()},
                schema["required"])

    assert shape("remote_bash") == (
        {"command": "string", "description": "string",
         "run_in_background": "boolean", "timeout": "integer"}, ["command"])
    assert shape("remote_bash_output") == (
        {"bash_id": "string", "filter": "string"}, ["bash_id"])
    assert shape("remote_file_read") == (
        {"file_path": "string", "offset": "integer", "limit": "integer"},
        ["file_path"])
    # An absent one is another thing than any value.
    for tool, name in [("remote_bash", "timeout"),
                       ("remote_file_read", "offset"),
                       ("remote_file_read", "limit")]:
        assert "default" not in \
            tools[tool]["inputSchema"]["properties"][name]


@pytest.mark.skipif(not ssh_servers.ROOT, reason="only root gives files away")
def test_env_file_of_somebody_else(home, host):
    """It is not read."""
    alias(home, host)
    file = home.home / ".env"
    file.write_text("SSH_HOST=gpu-box\n")
    assert list(Remote(home, {}).tools()) == TOOLS
    shutil.chown(file, 65534)
    assert not Remote(home, {}).tools().keys() & set(TOOLS)


def test_env_file_of_the_project(home, host, tmp_path):
    alias(home, host)
    trap = tmp_path / "trap"
    file = home.home / ".env"
    file.write_text(
        "# settings\nPATH=/nowhere\nLD_PRELOAD=/nowhere.so\n"
        "TEXT=\"two lines\nSSH_HOST=wrong\n\"\n"
        "REMOTE_SANDBOX_TOOLSET=sandbox\n"
        "REMOTE_SANDBOX_LIST='[{\"host\": \"x\", \"password_command\": "
        "[\"touch\", \"%s\"]}]'\n"
        "export SSH_HOST = 'gpu-box' # ours\nSSH_PORT=22\n" % trap)
    remote = Remote(home, {})
    assert list(remote.tools()) == TOOLS
    assert remote.bash("echo hi") == "hi\n"
    assert not trap.exists()
    # The environment wins, even if it says nothing.
    file.write_text("SSH_HOST=wrong\n")
    assert Remote(home, {"SSH_HOST": "gpu-box"}).bash("echo hi") == "hi\n"
    assert not Remote(home, {"SSH_HOST": ""}).tools().keys() & set(TOOLS)
    # Who has sandboxes does not get one of a project, nor its tools.
    file.write_text("SSH_HOST=gpu-box\n")
    result = home.call("list_sandboxes", [host.entry("mine")])
    assert [s["name"] for s in result["sandboxes"]] == ["mine"]
    [note] = [n for n in result["notes"] if "SSH_HOST in .env" in n]
    assert "is not used" in note


@pytest.mark.parametrize("text", [
    "-oProxyCommand=touch TRAP", "-oProxyCommand=touch${IFS}TRAP",
    "a;touch${IFS}TRAP", "`touch TRAP`", "$(touch TRAP)@b", "u@-oX=y", "u@"])
def test_no_host_runs_anything_here(home, tmp_path, text):
    trap = tmp_path / "trap"
    (home.home / ".ssh" / "config").write_text(
        "Host *\n\tProxyCommand sh -c 'exec nc %h %p'\n")
    (home.home / ".env").write_text("SSH_HOST=%s\n" % text.replace(
        "TRAP", str(trap)))
    remote = Remote(home, {})
    assert "SSH_HOST in .env" in remote.bad("remote_bash", command="true")
    remote.server.stderr_has("SSH_HOST in .env: ")
    assert not trap.exists()


