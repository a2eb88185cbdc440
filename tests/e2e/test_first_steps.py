"""The first steps of a user, one after the other: setup, doctor, completion.

All there is to say about each is in test_setup.py, test_doctor.py and
test_completion.py, which take longer.
"""

import json


def test_first_steps(home, sshd):
    cursor = home.home / ".cursor/mcp.json"
    cursor.parent.mkdir()
    cursor.write_text('{\n  // mine\n  "mcpServers": {}\n}\n')
    done = home.command(
        "setup", "--host", "%s@127.0.0.1:%d" % (sshd.user, sshd.port),
        "--name", "box", "--key-file", str(sshd.key), "--client", "cursor")
    assert done.returncode == 0, done
    assert "box answers" in done.stdout
    assert "  // mine\n" in cursor.read_text()
    assert '"remote-sandbox": {\n' in cursor.read_text()

    done = home.command("doctor", "box", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0, report
    lines = {line["check"]: line["state"]
             for line in report["sandboxes"][0]["checks"]}
    assert lines["login"] == lines["shell"] == lines["clock"] == "ok"

    # What has nothing to tell says so, to people.
    assert home.command("watches").stdout == "Nothing is watched.\n"
    assert home.command("events").stdout == \
        "Nothing has happened to watched jobs.\n"
    assert home.command("events", "--json").stdout == ""

    done = home.command("completion", "--words", "--", "doctor", "b")
    assert done.stdout == "box\t127.0.0.1\n"
