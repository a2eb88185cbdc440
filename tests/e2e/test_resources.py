"""Prompts and resources, with jobs and transfers on a real sshd."""

import json
import pathlib

import pytest

import rsmcp

ERAS = ("legacy", "modern")
NOT_FOUND = {"legacy": -32002, "modern": -32602}


class Reader:
    """A server with a sandbox "my box", asked in an era."""

    def __init__(self, home, sshd):
        self.home = home
        self.server = home.server([sshd.entry("my box")])
        self.server.initialize()
        self.count = 0

    def ask(self, era, method, **params):
        self.count += 1
        if era == "modern":
            params["_meta"] = rsmcp.MODERN_META
        return self.server.ask(self.count, method, params)

    def read(self, era, uri):
        result = self.ask(era, "resources/read", uri=uri)["result"]
        [content] = result["contents"]
        assert content["uri"] == uri
        if era == "modern":
            assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
        return content

    def read_json(self, era, uri):
        content = self.read(era, uri)
        assert content["mimeType"] == "application/json"
        return json.loads(content["text"])

    def listed(self, era):
        result = self.ask(era, "resources/list")["result"]
        return {r["uri"]: r["name"] for r in result["resources"]}

    def tool(self, name, **arguments):
        result = self.home.ask(self.server, name, **arguments)
        assert not result.failed, result
        return result


@pytest.fixture
def reader(home, sshd):
    return Reader(home, sshd)


def ended(reader, job):
    rsmcp.until("the job has ended", lambda: not reader.tool(
        "check_background_task", tmux_session=job, wait_s=5)["running"])


def test_a_job_and_its_log_are_resources(reader):
    assert reader.listed("modern") == {"sandbox://my%20box/jobs":
                                       "jobs on my box"}
    reader.tool("exec_bash_background", session_name="train-1",
                command="printf 'epoch %d\\n' 1 2 3; exit 3",
                notify_local=False)
    ended(reader, "train-1")
    uri = "sandbox://my%20box/jobs/train-1"
    for era in ERAS:
        assert reader.listed(era) == {
            "sandbox://my%20box/jobs": "jobs on my box",
            uri: "job train-1 on my box",
            uri + "/log": "log of train-1 on my box"}
        job = reader.read_json(era, uri)
        assert (job["state"], job["exit_code"]) == ("exited", 3)
        [one] = reader.read_json(era, "sandbox://my%20box/jobs")["tasks"]
        assert one["tmux_session"] == "train-1"
        log = reader.read(era, uri + "/log")
        assert log["mimeType"] == "text/plain"
        assert "epoch 1\nepoch 2\nepoch 3\n" in log["text"]
        reply = reader.ask(era, "resources/read", uri=uri + "0")
        assert reply["error"]["code"] == NOT_FOUND[era]
        assert reply["error"]["data"] == {"uri": uri + "0"}
        assert "train-10" in reply["error"]["message"]
        done = reader.ask(
            era, "completion/complete",
            ref={"type": "ref/resource",
                 "uri": "sandbox://{sandbox}/jobs/{job}/log"},
            argument={"name": "job", "value": "tr"},
            context={"arguments": {"sandbox": "my box"}})
        assert done["result"]["completion"]["values"] == ["train-1"]


def test_the_end_of_a_long_log_is_read_and_the_rest_told_of(reader):
    reader.tool("exec_bash_background", session_name="long",
                command="seq 100000", watch=False)
    ended(reader, "long")
    text = reader.read("modern", "sandbox://my%20box/jobs/long/log")["text"]
    assert text.startswith("[earlier lines left out; ")
    assert "\n100000\n" in text
    assert 30000 < len(text) < 50000


def test_a_transfer_is_a_resource_of_its_sandbox(reader, home):
    tree = pathlib.Path(home.home) / "tree"
    tree.mkdir()
    (tree / "a").write_text("x")
    task = reader.tool("sync_local_to_remote_background",
                       local_path=str(tree), remote_path="there")["task_id"]
    uri = "sandbox://my%%20box/transfers/%d" % task
    for era in ERAS:
        assert uri in reader.listed(era)
        rsmcp.until("it is complete", lambda: reader.read_json(era, uri)[
            "status"] == "completed")
        assert reader.read_json(era, uri)["result"]["uploaded_files"] == 1
        reply = reader.ask(era, "resources/read",
                           uri="sandbox://my%20box/transfers/99")
        assert reply["error"]["code"] == NOT_FOUND[era]
    other = reader.ask("modern", "completion/complete",
                       ref={"type": "ref/resource", "uri":
                            "sandbox://{sandbox}/transfers/{task_id}"},
                       argument={"name": "task_id", "value": ""})
    assert other["result"]["completion"]["values"] == [str(task)]


def test_a_host_that_is_away_is_said_and_nothing_is_made_up(reader, sshd):
    sshd.stop()
    uri = "sandbox://my%20box/jobs/train-1"
    assert reader.read_json("legacy", uri)["state"] == "unknown"
    error = reader.ask("modern", "resources/read", uri=uri + "/log")["error"]
    assert error["code"] == -32603
    assert error["data"] == {"uri": uri + "/log"}
    listing = reader.read_json("modern", "sandbox://my%20box/jobs")
    assert listing["unreachable"][0]["sandbox"] == "my box"


def test_lists_ask_no_host_and_leave_no_database(reader, home, sshd):
    for era in ERAS:
        reader.listed(era)
        assert len(reader.ask(era, "prompts/list")["result"]["prompts"]) == 3
    assert not list(home.state.glob("*.sqlite3"))
    assert sshd.connections_ever() == 0
    reader.read_json("modern", "sandbox://my%20box/jobs")
    rsmcp.until("a connection is seen", sshd.connections_ever)
