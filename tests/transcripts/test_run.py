"""The transcript runner, tried on small servers that behave and misbehave."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent

# Does what it is told: each line is a list of [order, argument] to carry out.
OBEDIENT = r'''
import json, os, signal, sys, time
def out(text):
    sys.stdout.write(text)
    sys.stdout.flush()
if "--greet" in sys.argv:
    print("greetings from " + os.environ["WHO"], file=sys.stderr, flush=True)
for line in sys.stdin.buffer:
    try:
        orders = json.loads(line)
    except ValueError:
        out('{"bad": %d}\n' % len(line))
        continue
    for order, value in orders:
        if order == "say":
            out(json.dumps(value) + "\n")
        elif order == "write":
            out(value)
        elif order == "sleep":
            time.sleep(value)
        elif order == "exit":
            os._exit(value)
        elif order == "args":
            out(json.dumps(sys.argv[1:]) + "\n")
        elif order == "home":
            out(json.dumps([os.getcwd() == os.environ["HOME"],
                            os.listdir()]) + "\n")
        elif order == "at end":
            end = value
            try:
                sys.stdin.buffer.read()
            finally:
                out(end["write"])
                time.sleep(end.get("sleep", 0))
                os._exit(end["exit"])
'''


@pytest.fixture(name="play")
def fixture_play(tmp_path):
    server = tmp_path / "server"
    server.write_text("#!%s\n%s" % (sys.executable, OBEDIENT))
    server.chmod(0o755)

    def play(*texts, more=()):
        files = []
        for index, text in enumerate(texts):
            files.append(tmp_path / ("%d.txt" % index))
            files[-1].write_text(text)
        done = subprocess.run(
            [sys.executable, HERE / "run.py", "--server", server, *more,
             *files], capture_output=True, text=True)
        assert done.stderr == ""
        return done.returncode, done.stdout
    return play


def say(*messages):
    return "> %s\n" % json.dumps([["say", m] for m in messages])


def do(*orders):
    return "> %s\n" % json.dumps(orders)


AT_END = {"write": "", "exit": 0}

GOOD = {
    "nothing but a start": "silence 50\n",
    "equal": say({"a": [1, "x", None], "b": {}})
    + '< {"b": {}, "a": [1, "x", null]}\n',
    "any value": say({"a": 1}, 5) + '< {"a": "*"}\n< "*"\n',
    "regular expression": say({"a": "version 1.2"})
    + '< {"a": "re:[0-9][.][0-9]$"}',
    "further keys": say({"a": 1, "b": 2}) + '< {"a": 1, "...": 0}\n',
    "no further keys": say({"a": 1}) + '< {"a": 1, "...": 0}\n',
    "further elements": say([1, 2, 3]) + '< [1, "..."]\n',
    "no further elements": say([1]) + '< [1, "..."]\n',
    "any order": say(1, 2, 3) + "<~ 3\n<~ 1\n<~ 2\n",
    "any order, wide pattern first": say({"id": 1}, {"id": 2})
    + '<~ {"id": "*"}\n<~ {"id": 1}\n',
    "order between groups": say(1, 2) + "<~ 1\n# next\n\n<~ 2\n" + say(3)
    + "< 3\n",
    "raw": '>raw "[[\\"say\\","\n>raw " 1]]\\n"\n< 1\n',
    "raw bytes": '>raw "\\xff\\x00\\n"\n< {"bad": 3}\n',
    "repeat": '>repeat 300000 "0123456789"\n>raw "\\n"\n'
    '< {"bad": 3000001}\n',
    "arguments": '$ --one "two three"\n' + do(["args", 0])
    + '< ["--one", "two three"]\n',
    "environment and stderr": "$ --greet\nenv WHO=me=you\n"
    "stderr re:^greetings from me=you$\n",
    "home": do(["home", 0]) + "< [true, []]\n",
    "eof and exit": do(["at end", {**AT_END, "exit": 3}]) + "eof\nexit 3\n",
    "eof and a last message": do(["at end", {**AT_END, "write": "9\n"}])
    + "eof\n< 9\nexit 0 within 2000\n",
    "exit by itself": do(["exit", 4]) + "exit 4\n",
    "last words": do(["say", 1], ["exit", 4]) + "exit 4\n< 1\n",
    "signal": say(1) + "< 1\nsignal TERM\nexit 143\n",
}

BAD = {
    "other value": (say({"a": 1}) + '< {"a": 2}\n',
                    ":2 ", "message.a is 1 instead of 2"),
    "other type": (say({"id": "1"}) + '< {"id": 1}\n', ":2 ", "instead of 1"),
    "float for int": (say(1.0) + "< 1\n", ":2 ", "1.0 instead of 1"),
    "true for one": (say(True) + "< 1\n", ":2 ", "true instead of 1"),
    "missing key": (say({}) + '< {"a": "*"}\n', ":2 ", 'has no "a"'),
    "further key": (say({"a": 1, "b": 2}) + '< {"a": 1}\n',
                    ":2 ", 'also has "b"'),
    "too many elements": (say([1, 2]) + "< [1]\n", ":2 ", "2 elements"),
    "too few elements": (say([]) + '< [1, "..."]\n', ":2 ", "0 elements"),
    "regular expression": (say("abc") + '< "re:^b"\n', ":2 ", "instead of"),
    "regular expression on a number": (say(5) + '< "re:5"\n', ":2 ",
                                       "5 instead of"),
    "wrong order": (say(1, 2) + "< 2\n< 1\n", ":2 ", "1 instead of 2"),
    "not in the group": (say(1, 3) + "<~ 1\n<~ 2\n", ":2 ",
                         "matches none"),
    "one message for two patterns": (say(1, 2) + '<~ 1\n<~ "re:1"\n',
                                     ":2 ", "matches none"),
    "no JSON": (do(["write", "hello\n"]) + '< "*"\n', ":2 ", "hello"),
    "no newline": (do(["write", "5"], ["exit", 0]) + "< 5\n", ":2 ",
                   "not a line of JSON"),
    "not silent": (say(1) + "silence 1000\n", ":2 ", "expected silence"),
    "dead instead of silent": (do(["exit", 0]) + "silence 1000\n", ":2 ",
                               "closed its output"),
    "message nobody expected": (say(1), ":1 ", "unexpected message"),
    "message after the end": (
        do(["at end", {**AT_END, "write": "9\n"}]) + "eof\nexit 0\n",
        ":3 ", "unexpected message"),
    "bad status at the end": (
        say(1) + "< 1\n" + do(["at end", {**AT_END, "exit": 1}]),
        ":3 ", "status 1 instead of 0"),
    "ended by itself": (do(["exit", 0]) + '>repeat 300000 "0123456789"\n',
                        ":2 ", "ended by itself"),
    "slow at the end": (do(["at end", {**AT_END, "sleep": 9}]), ":1 ",
                        "still runs after 5000 ms"),
    "other exit status": (do(["exit", 4]) + "exit 5\n", ":2 ",
                          "status 4 instead of 5"),
    "slow exit": (do(["at end", {**AT_END, "sleep": 9}])
                  + "eof\nexit 0 within 100\n", ":3 ",
                  "still runs after 100 ms"),
    "crash instead of a reply": (do(["exit", 9]) + "< 1\n", ":2 ",
                                 "exit status 9"),
    "nothing on stderr": ("$ --greet\nenv WHO=me\n" + do(["exit", 0])
                          + "stderr re:you\n", ":4 ", "nothing on stderr"),
    "unknown step": ("# first\nspeak\n", ":2 ", "unknown step"),
    "broken pattern": ("< {\n", ":1 ", "<: "),
    "broken request": ("> {\n", ":1 ", ">: "),
    "broken regular expression": ('< "re:("\n', ":1 ", "<: "),
    "broken literal": (">raw x\n", ":1 ", ">raw: "),
    "unknown signal": ("signal FOO\n", ":1 ", "signal: "),
    "late arguments": ("eof\n$ x\n", ":2 ", "must come first"),
    "empty file": ("# nothing\n", ":2 ", "no steps"),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_scenarios_pass(play, name):
    status, said = play(GOOD[name])
    assert status == 0, said
    assert said.startswith("ok ") and "1 scenarios, 0 failed" in said


@pytest.mark.parametrize("name", BAD)
def test_bad_scenarios_fail(play, name):
    text, line, reason = BAD[name]
    status, said = play(text)
    assert status == 1, said
    assert said.startswith("FAIL ") and "1 scenarios, 1 failed" in said
    assert "0.txt" + line in said and reason in said, said


def test_one_failure_among_many_fails_the_run(play):
    status, said = play(say(1) + "< 1\n", say(1) + "< 2\n", say(1) + "< 1\n")
    assert status == 1
    assert [line.split()[0] for line in said.splitlines()
            if line.startswith(("ok", "FAIL"))] == ["ok", "FAIL", "ok"]
    assert "3 scenarios, 1 failed" in said


def test_a_failure_shows_what_the_server_said_on_stderr(play):
    said = play("$ --greet\nenv WHO=somebody\n" + say(1) + "< 2\n")[1]
    assert "greetings from somebody" in said


def test_a_server_that_is_not_there(tmp_path):
    (tmp_path / "a.txt").write_text("eof\n")
    done = subprocess.run(
        [sys.executable, HERE / "run.py", "--server", tmp_path / "none",
         tmp_path / "a.txt"], capture_output=True, text=True)
    assert done.returncode == 1 and "No such file" in done.stdout


def test_scenarios_are_recorded(play, tmp_path):
    wires = tmp_path / "wires"
    status, said = play(say(1) + "< 1\nsignal TERM\nexit 143\n",
                        say(2) + "< 2\n", more=["--wire-dir", wires])
    assert status == 0, said
    records = sorted(wires.glob("*.wire"))
    assert len(records) == 2
    lines = [[json.loads(raw) for raw in open(record, encoding="utf-8")]
             for record in records]
    assert sorted([e["dir"] for e in entries] for entries in lines) \
        == [[">", "<"]] * 2


def test_a_failed_scenario_leaves_no_process(play, tmp_path):
    name = "left-behind-%d" % os.getpid()
    play("$ %s\n" % name + do(["at end", {**AT_END, "sleep": 60}])
         + "eof\nexit 0 within 100\n",
         more=["--wire-dir", tmp_path / "wires"])
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert name.encode() not in path.read_bytes()
        except OSError:
            pass
