"""The skill: every template of its runbook runs, on a private sshd.

Blocks marked "tool" are calls, run in the order in which they stand; blocks
marked "sh" or "python" are files, named by their first comment.
"""

import ast
import json
import pathlib
import re
import subprocess
import sys

import pytest

import rsmcp
import sshd as ssh_servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKILL = ROOT / "skills/remote-sandbox-script-exec"
RUNBOOK = SKILL / "references/remote-runbook.md"
UV = "uv==0.13.7"
WORDS = {"true": True, "false": False}


def blocks(text):
    """(section, kind, text) of each code block."""
    section = ""
    for heading, kind, body in re.findall(
            r"^## ([^\n]*)$|^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        section = heading or section
        if kind:
            yield section, kind, body


def calls(text):
    """(tool, arguments) of each call in a block."""
    for statement in ast.parse(text).body:
        call = statement.value
        assert not call.args, "arguments have names"
        yield call.func.id, {
            k.arg: WORDS[k.value.id] if isinstance(k.value, ast.Name)
            else ast.literal_eval(k.value) for k in call.keywords}


def every_block():
    found = list(blocks(RUNBOOK.read_text()))
    assert {kind for _, kind, _ in found} == {"tool", "sh", "python"}
    return found


# What can be said without a sandbox.

@pytest.fixture
def tools(start):
    server = start(env={"REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS": "1"})
    server.initialize()
    return {tool["name"]: tool["inputSchema"] for tool in
            server.ask(1, "tools/list", {})["result"]["tools"]}


def test_calls_name_tools_and_arguments_that_exist(tools):
    numbers = {"NEXT_OFFSET": "1", "TASK_ID": "1"}
    for section, kind, text in every_block():
        for word, number in numbers.items():
            text = text.replace("=" + word, "=" + number)
        for tool, arguments in calls(text) if kind == "tool" else ():
            schema = tools[tool]
            assert set(arguments) <= set(schema.get("properties", ())), section
            assert set(schema.get("required", ())) <= set(arguments), section


def test_the_skill_speaks_of_tools_that_exist(tools):
    words = re.findall(r"`([a-z]+_[a-z_]+)`", (SKILL / "SKILL.md").read_text())
    known = {name for schema in tools.values()
             for name in schema.get("properties", ())}
    # Fields of results, and values.
    known |= {"idle_score", "exit_code", "watch_id"}
    assert set(words) - set(tools) - known == set()
    table = set(words) & set(tools)
    assert {"exec_bash", "sync_remote_to_local", "wait_for_events"} <= table


def test_the_front_matter_is_yaml_and_within_its_limits():
    yaml = pytest.importorskip("yaml")
    text = (SKILL / "SKILL.md").read_text()
    front = yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, re.S)[1])
    assert front["name"] == SKILL.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", front["name"])
    assert 100 < len(front["description"]) <= 1024
    assert len(front["compatibility"]) <= 500
    assert set(front) <= {"name", "description", "license", "compatibility"}
    assert text.count("\n") < 500
    agent = yaml.safe_load((SKILL / "agents/openai.yaml").read_text())
    assert "$" + SKILL.name in agent["interface"]["default_prompt"]
    assert 25 <= len(agent["interface"]["short_description"]) <= 64
    [tool] = agent["dependencies"]["tools"]
    assert (tool["type"], tool["command"]) == ("mcp", "remote-sandbox-mcp")


def test_links_of_the_skill_lead_somewhere():
    for file in SKILL.rglob("*.md"):
        for link in re.findall(r"\]\(([^)]+)\)", file.read_text()):
            assert (file.parent / link).is_file(), link


# The templates.

@pytest.fixture(scope="session")
def uv(tmp_path_factory):
    """uv itself; from where pip gets it."""
    there = tmp_path_factory.mktemp("uv")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps",
         "--disable-pip-version-check", "--target", there, UV],
        stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("uv cannot be had: " + done.stderr[-300:])
    return there / "bin/uv"


class Project:
    """What the runbook works on: a project here, its copy on a sandbox."""

    def __init__(self, directory, home, sshd):
        self.home = home
        self.server = home.server([sshd.entry("box")])
        self.local = directory / "project"
        self.far = sshd.home / "sandboxes/demo"
        self.words = {"PROJECT": "demo", "RUN_ID": "demo-1",
                      "LOCAL_DIR": str(self.local)}
        self.local.mkdir()
        (self.local / "requirements.txt").write_text("# nothing\n")
        (self.local / "data").mkdir()
        (self.local / "data/large").write_text("stays here\n")

    def fill(self, text):
        for word, value in self.words.items():
            text = text.replace(word, str(value))
        return text

    def write(self, text):
        text = self.fill(text)
        path = self.local / re.search(r"^# ([\w/.-]+): ", text, re.M)[1]
        path.parent.mkdir(exist_ok=True)
        # Long enough to be stopped on its way, however slow the program.
        path.write_text(text.replace("default=0.1", "default=%g"
                                     % (0.1 * min(rsmcp.BUILD, 3))))

    def run(self, text):
        """Run the calls of a block; the results."""
        results = []
        for tool, arguments in calls(self.fill(text)):
            result = self.home.ask(self.server, tool, **arguments)
            assert not result.failed, (tool, result)
            assert tool != "exec_bash" or result["exit_code"] == 0, result
            results.append(result)
            if "next_offset" in result:
                self.words["NEXT_OFFSET"] = result["next_offset"]
        return results

    def git(self, directory):
        """The project's history, pushed."""
        def git(*args):
            return ssh_servers.run(
                "git", "-c", "user.name=t", "-c", "user.email=t@example.org",
                "-c", "init.defaultBranch=main", *args, cwd=self.local)

        git("init", "-q", "--bare", directory)
        git("init", "-q")
        git("add", "-A")
        git("commit", "-q", "-m", "all of it")
        git("push", "-q", directory, "HEAD:main")
        return git("rev-parse", "HEAD").strip()

    def ended(self):
        def look():
            return self.home.ask(self.server, "check_background_task",
                                 tmux_session="demo-1", wait_s=5)

        return rsmcp.until("the run has ended", lambda: next(
            (r for r in [look()] if not r["running"]), None))


def test_every_template_of_the_runbook_runs(tmp_path, home, sshd, uv):
    project = Project(tmp_path, home, sshd)
    (sshd.home / ".local/bin").mkdir(parents=True)
    (sshd.home / ".local/bin/uv").symlink_to(uv)
    left = {}
    for section, kind, text in every_block():
        if kind == "tool":
            left.setdefault(section, []).append(text)
        else:
            project.write(text)

    def run(section):
        return [project.run(text) for text in left.pop(section)]

    [[listed, _, active]] = run("Pick a sandbox")
    assert listed["sandboxes"][0]["resources"]["idle_score"] >= 0
    assert active["connection_alive"]
    run("Define the workspace")

    # A second sync in the background, for the block that looks at one.
    project.words["TASK_ID"] = home.ask(
        project.server, "sync_local_to_remote_background",
        local_path=str(project.local / "data"), remote_path="d")["task_id"]
    [[plan, done], _] = run("Bring the code")
    assert (plan["mode"], done["mode"]) == ("dry_run", "inline")
    assert (project.far / "train.py").is_file()
    assert not (project.far / "data").exists()

    project.words["COMMIT"] = project.git(tmp_path / "git")
    project.words["GIT_URL"] = tmp_path / "git"
    again = left["Bring the code by git"][:]
    [[checked_out]] = run("Bring the code by git")
    assert "all of it" in checked_out["stdout"]
    assert (project.far / "code/train.py").is_file()
    project.run(again[0])

    again = left["Bootstrap the runtime"][:]
    [[_, ready]] = run("Bootstrap the runtime")
    assert re.search(r"^Python 3\S+\n\Z", ready["stdout"], re.M), ready
    project.run(again[0])       # it can be repeated
    run("Run something short")

    run("Scripts for a long run")
    assert not list((project.far / "checkpoints").iterdir())
    again = left["Start a long run"][:]
    [[_, job]] = run("Start a long run")
    assert (job["tmux_session"], job["status"]) == ("demo-1", "started")
    assert job["watch_id"] > 0
    [[_, same]] = [project.run(again[0])]
    assert same["status"] == "already_started"
    rsmcp.until("there is a checkpoint",
                (project.far / "checkpoints/demo-1.json").exists)
    [[_, news]] = run("Follow it")
    assert re.search(r"^step \d+$", news["log_tail"], re.M)
    [[tasks, _, checkpoint, log]] = run("Inspect")
    assert tasks["tasks"][0]["tmux_session"] == "demo-1"
    assert json.loads(checkpoint["content"])["step"] >= 1
    assert "== command: bash scripts/run_demo-1.sh" in log["content"]

    [[stopped, _]] = run("Stop it, and go on by hand")
    assert stopped["was_running"] and stopped["kill_verified"] is not False
    assert project.ended()["exit_code"] == 0
    run("Bring back")
    result = project.local / "outputs/demo-1/result.json"
    assert json.loads(result.read_text()) == {"steps": 50}
    log = (project.local / "logs/demo-1.log").read_text()
    resumed = int(re.search(r"^resumed at step (\d+)$", log, re.M)[1])
    assert 1 <= resumed < 50
    steps = [int(n) for n in re.findall(r"^step (\d+)$", log, re.M)]
    assert steps == list(range(1, 51)), "a step is lost or done twice"
    assert not left, "templates that nobody tried"
