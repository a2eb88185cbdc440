"""Which sandboxes there are: every source of the configuration, good and bad.

Entries that nobody has to reach point to a port where nothing listens.
"""

import contextlib
import json
import os
import re
import socket
import time

import pytest

import rsmcp
from rsmcp import SLOW
from sshd import free_port

SECRET = "Xk7-quitte-93"


@pytest.fixture(scope="module")
def dead():
    """A port where nothing listens: bound, so that nobody else gets it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def config(home):
    """Writes a configuration file; its path."""
    def write(content, path=None, mode=0o600):
        path = path or home.path / "etc" / "remote-sandbox-mcp" / "config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str)
                        else json.dumps(content))
        path.chmod(mode)
        return path

    home.more["XDG_CONFIG_HOME"] = str(home.path / "etc")
    return write


def entry(port, name=None, **fields):
    named = {"name": name} if name else {}
    return {**named, "host": "127.0.0.1", "port": port, "user": "nobody",
            **fields}


def listed(home, entries=None, **options):
    result = home.call("list_sandboxes", entries, **options)
    assert not result.failed, result
    return result


def names(result):
    return [sandbox["name"] for sandbox in result["sandboxes"]]


def none_usable(home, entries=None, **options):
    """Nothing is configured that could be used; the whole answer."""
    result = home.call("list_sandboxes", entries, **options)
    assert result.failed
    assert result["sandboxes"] == []
    assert result["hint"]
    assert SECRET not in result.stdout + result.stderr
    return result


def hello(home, *args, **options):
    result = home.call("exec_bash", *args, command="echo hi", **options)
    assert not result.failed, result
    assert result["stdout"] == "hi\n"
    return result


# Sources

def test_nothing_configured(home):
    result = none_usable(home)
    assert "REMOTE_SANDBOX_LIST" in result["error"]
    assert result["diagnostics"] == {
        "REMOTE_SANDBOX_LIST_set": False, "REMOTE_SANDBOX_LIST_length": 0,
        "REMOTE_HOST_set": False, "init_error": None}


@pytest.mark.parametrize("tool, arguments", [
    ("exec_bash", {"command": "true"}), ("get_active_sandbox", {}),
    ("exec_bash", {"command": "true", "sandbox_name": "x"}),
    ("select_sandbox", {"sandbox_name": "x"}),
    ("select_sandbox", {"sandbox_name": "auto"})])
def test_every_tool_says_what_to_do(home, tool, arguments):
    empty = home.call(tool, **arguments)
    assert empty.failed and "REMOTE_SANDBOX_LIST" in empty["error"]
    assert "'remote-sandbox-mcp setup' adds one" in empty["error"]
    broken = home.call(tool, '[{"host": "x"', **arguments)
    assert broken.failed
    assert "Sandbox configuration error" in broken["error"]
    assert "not valid JSON" in broken["error"]


def test_server_starts_without_any(home):
    server = home.server("{broken")
    server.initialize()
    assert home.ask(server, "exec_bash", command="true").failed
    assert not home.ask(server, "get_server_info").failed


def test_list(home, sshd, dead):
    entries = [sshd.entry("good"), entry(dead, "bad")]
    result = listed(home, entries)
    good, bad = result["sandboxes"]
    assert result["active_sandbox"] == "good"
    assert not {"problems", "notes", "diagnostics"} & set(result)
    assert good.pop("host_key_added")
    assert good == {"name": "good", "host": "127.0.0.1", "port": sshd.port,
                    "user": sshd.user, "is_active": True,
                    "connection_alive": True}
    assert "refused" in bad.pop("connection_error")
    assert bad == {"name": "bad", "host": "127.0.0.1", "port": dead,
                   "user": "nobody", "is_active": False,
                   "connection_alive": False}
    assert hello(home, entries)["sandbox"] == "good"


def test_what_an_entry_leaves_out_is_left_to_ssh(home, dead):
    (home.home / ".ssh" / "config").write_text(
        "Host work\nHostName 127.0.0.1\nPort %d\nUser somebody\n" % dead)
    [sandbox] = listed(home, [{"host": "work"}])["sandboxes"]
    assert (sandbox["name"], sandbox["host"], sandbox["port"],
            sandbox["user"]) == ("work", "work", dead, "somebody")


def test_single_variables(home, sshd):
    env = {"REMOTE_HOST": " 127.0.0.1\n", "REMOTE_PORT": " %d " % sshd.port,
           "REMOTE_USER": sshd.user + " ", "REMOTE_KEY_FILE": str(sshd.key)}
    assert hello(home, env=env)["sandbox"] == "127.0.0.1"
    result = home.call("get_active_sandbox", env=env)
    assert (result["active_sandbox"], result["port"], result["user"]) == \
        ("127.0.0.1", sshd.port, sshd.user)
    assert result["connection_alive"] is True


@pytest.mark.parametrize("env, field", [
    ({"REMOTE_HOST": "127.0.0.1", "REMOTE_PORT": "ssh"}, "port"),
    ({"REMOTE_HOST": "127.0.0.1", "REMOTE_PORT": "0"}, "port"),
    ({"REMOTE_HOST": "-oProxyCommand=x"}, "host"),
    ({"REMOTE_HOST": "two words"}, "host"),
    ({"REMOTE_HOST": "127.0.0.1", "REMOTE_USER": "-x"}, "user")])
def test_wrong_single_variables(home, env, field):
    result = none_usable(home, env={**env, "REMOTE_PASSWORD": SECRET})
    assert "REMOTE_HOST" in result["error"]
    assert "'%s'" % field in result["error"]
    assert result["diagnostics"]["REMOTE_HOST_set"] is True
    assert result["diagnostics"]["init_error"] in result["error"]


def test_list_wins_over_single_variables(home, dead):
    single = {"REMOTE_HOST": "127.0.0.9", "REMOTE_PORT": str(dead)}
    assert names(listed(home, [entry(dead, "x")], env=single)) == ["x"]
    for blank in ["", "  \n\t "]:
        assert names(listed(home, blank, env=single)) == ["127.0.0.9"]


@pytest.mark.parametrize("shape", [lambda e: e, lambda e: {"sandboxes": e}])
def test_config_file(home, config, sshd, shape):
    config(shape([sshd.entry("filed")]))
    assert hello(home)["sandbox"] == "filed"


def test_config_file_below_home(home, config, dead):
    del home.more["XDG_CONFIG_HOME"]
    config([entry(dead, "x")], home.home / ".config" / "remote-sandbox-mcp"
           / "config.json")
    assert names(listed(home)) == ["x"]


def test_named_config_file(home, config, sshd, tmp_path):
    """It takes the place of the usual one."""
    config([sshd.entry("usual")])
    named = config([sshd.entry("named")], tmp_path / "my config.json")
    assert hello(home, args=["--config", str(named)])["sandbox"] == "named"
    assert hello(home, args=["--config=" + str(named)])["sandbox"] == "named"
    server = home.server(args=["serve", "--config", str(named)])
    assert names(home.ask(server, "list_sandboxes")) == ["named"]
    assert hello(home)["sandbox"] == "usual"


def test_named_config_file_is_relative(home, config, dead):
    config([entry(dead, "x")], home.home / "boxes.json")
    assert names(listed(home, args=["--config", "boxes.json"])) == ["x"]


def test_named_config_file_is_missing(home, dead):
    result = none_usable(home, args=["--config", "/nonexistent/c.json"])
    assert "/nonexistent/c.json" in result["error"]
    result = listed(home, [entry(dead, "x")],
                    args=["--config", "/nonexistent/c.json"])
    assert names(result) == ["x"]
    [problem] = result["problems"]
    assert "/nonexistent/c.json" in problem


def test_config_file_is_a_directory(home, dead, tmp_path):
    result = listed(home, [entry(dead, "x")], args=["--config", str(tmp_path)])
    [problem] = result["problems"]
    assert str(tmp_path) in problem


def test_config_file_that_may_not_be_read(home, config, dead):
    path = config([entry(dead, "x")])
    path.unlink()
    path.symlink_to(path)       # not even root can
    assert str(path) in none_usable(home)["error"]


# Names

def test_environment_first_then_the_file(home, config, dead):
    config([entry(dead, "b"), entry(dead, "a"), entry(dead, "c")])
    result = listed(home, [entry(dead, "a", user="env"), entry(dead, "z")])
    assert names(result) == ["a", "z", "b", "c"]
    assert result["active_sandbox"] == "a"
    assert result["sandboxes"][0]["user"] == "env"
    [note] = result["notes"]
    assert "entry 2 (a)" in note and "environment" in note
    assert "problems" not in result
    assert result["diagnostics"]["notes"] == [note]
    assert result["diagnostics"]["REMOTE_SANDBOX_LIST_set"] is True
    assert result["diagnostics"]["init_error"] is None


@pytest.mark.parametrize("tool", ["exec_bash", "select_sandbox"])
def test_asking_for_an_entry_that_was_left_out(home, dead, tool):
    """It says what is wrong with it, and not that there is none."""
    more = {"command": "true"} if tool == "exec_bash" else {}
    result = home.call(tool, [entry(dead, "good"), entry(0, "gpu1")],
                       sandbox_name="gpu1", **more)
    assert result.failed
    assert "entry 2 (gpu1): field 'port'" in result["error"]
    assert result["error"].endswith("available: good")


def test_behind_a_broken_entry_nothing_runs(home, config, sshd):
    """Work that is meant for one machine does not run on another."""
    config([sshd.entry(name="other")])
    server = home.server('[{"host": "gpu1", "port": "x"}]')
    for tool, arguments in (("exec_bash", {"command": "true"}),
                            ("get_active_sandbox", {})):
        result = home.ask(server, tool, **arguments)
        assert result.failed
        assert "entry 1 (gpu1): field 'port'" in result["error"], result
        assert result["error"].endswith(" other"), result
    listing = home.ask(server, "list_sandboxes")
    assert listing["active_sandbox"] is None and names(listing) == ["other"]
    home.ask(server, "select_sandbox", sandbox_name="other")
    assert home.ask(server, "exec_bash", command="true")["exit_code"] == 0


def test_same_name_twice(home, dead):
    """Which of them is meant? Neither is taken; the others are."""
    result = listed(home, [entry(dead, "a"), entry(dead, "b"),
                           entry(dead, "a"), entry(dead, "c")])
    assert names(result) == ["b", "c"]
    problems = sorted(result["problems"])
    assert len(problems) == 2
    for number, problem in zip([1, 3], problems):
        assert "entry %d (a)" % number in problem
        assert "same name" in problem


def test_default_names_that_collide(home, dead):
    other = free_port()
    result = listed(home, [entry(dead), entry(other), {"host": "127.0.0.2",
                                                       "port": dead}])
    assert names(result) == ["127.0.0.1:%d" % dead, "127.0.0.1:%d" % other,
                             "127.0.0.2"]


def test_default_name_that_is_given_to_another(home, dead):
    result = listed(home, [entry(dead, "127.0.0.2"),
                           {"host": "127.0.0.2", "port": dead}])
    assert names(result) == ["127.0.0.2", "127.0.0.2:%d" % dead]


def test_default_names_that_collide_for_good(home, dead):
    """Same host, same port, two users: they have to be named."""
    result = listed(home, [entry(dead, user="a"), entry(dead, user="b"),
                           entry(dead, "good")])
    assert names(result) == ["good"]
    assert len(result["problems"]) == 2


def test_collision_with_the_usual_port(home, dead):
    """The one without a port keeps the name of the host."""
    result = listed(home, [{"host": "127.0.0.1", "connect_timeout_s": 1},
                           entry(dead)])
    assert names(result) == ["127.0.0.1", "127.0.0.1:%d" % dead]


def test_odd_names(home, dead):
    odd = ["ä/ö\u00a0 北京", "a b", "-x", "auto", '"', "%s%n"]
    assert names(listed(home, [entry(dead, name) for name in odd])) == odd


# Faults

@pytest.mark.parametrize("text, place", [
    ('[{"host": "x", "password": "%s"' % SECRET, "line 1"),
    ('[\n {"host": "x",\n  "password": "%s"\n  "port": 22}]' % SECRET,
     "line 4"),
    ('[{"host": "x", "password": %s}]' % SECRET, "line 1"),
    ('[{"host": "x", "password": "%s}]' % SECRET, "line 1"),
    ('[{"password": "%s", "password": "%s"}]' % (SECRET, SECRET), "line 1"),
    ("[{'host': 'x', 'password': '%s'}]" % SECRET, "line 1"),
    ('[{"host": "x"}] "%s"' % SECRET, "line 1"),
    ('[{"host": "\udcff", "password": "%s"}]' % SECRET, "line 1"),
    (SECRET, "line 1"),
], ids=range(9))
def test_broken_json(home, text, place):
    result = none_usable(home, text)
    assert "REMOTE_SANDBOX_LIST" in result["error"]
    assert "not valid JSON" in result["error"]
    assert re.search(place + r", column \d+", result["error"])
    assert result["diagnostics"]["REMOTE_SANDBOX_LIST_set"] is True
    assert result["diagnostics"]["REMOTE_SANDBOX_LIST_length"] == \
        len(os.fsencode(text))
    assert "not valid JSON" in result["diagnostics"]["init_error"]


def test_broken_file(home, config):
    path = config('{"sandboxes": [\n{"password": "%s",,}]}' % SECRET)
    result = none_usable(home)
    assert str(path) in result["error"] and "line 2" in result["error"]


def test_broken_file_does_not_stop_the_environment(home, config, sshd):
    path = config("[{")
    assert hello(home, [sshd.entry()])["sandbox"] == "box"
    [problem] = listed(home, [sshd.entry()])["problems"]
    assert str(path) in problem


@pytest.mark.parametrize("text", [
    "null", "5", '"x"', "{}", '{"sandboxes": {}}', '{"host": "x"}', "true"])
def test_not_a_list(home, text):
    assert "must be a JSON array" in none_usable(home, text)["error"]


def test_empty_list(home):
    result = none_usable(home, "[]")
    assert result["diagnostics"]["REMOTE_SANDBOX_LIST_set"] is True
    assert result["diagnostics"]["REMOTE_SANDBOX_LIST_length"] == 2


def test_too_much(home):
    assert "1000" in none_usable(home, [{"host": "x%d" % i}
                                        for i in range(1001)])["error"]
    assert "nested" in none_usable(home, "[" * 1000 + "]" * 1000)["error"]


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJvZ3VzYm9ndXNib2d1c2JvZ3VzYm9ndXM"

# What is wrong with an entry, and the field that is named for it.
WRONG = [
    ({}, "host"), ({"host": None}, "host"), ({"host": ""}, "host"),
    ({"host": 5}, "host"), ({"host": ["x"]}, "host"), ({"host": " "}, "host"),
    ({"host": "-x"}, "host"), ({"host": "-oProxyCommand=touch x"}, "host"),
    ({"host": "a b"}, "host"), ({"host": " a"}, "host"),
    ({"host": "a\n"}, "host"), ({"host": "a\tb"}, "host"),
    ({"host": "a\x7f"}, "host"), ({"host": "a\0b"}, "host"),
    ({"host": "a\x1b[2J"}, "host"), ({"host": "a\x9b2J"}, "host"),
    ({"user": "a\x85b"}, "user"), ({"name": "a\x9b2J"}, "name"),
    ({"user": 5}, "user"), ({"user": "-l"}, "user"),
    ({"user": "a b"}, "user"), ({"user": "a\nb"}, "user"),
    ({"user": "a\0"}, "user"), ({"user": {}}, "user"),
    ({"port": 0}, "port"), ({"port": 65536}, "port"), ({"port": -22}, "port"),
    ({"port": 22.5}, "port"), ({"port": "ssh"}, "port"),
    ({"port": "-22"}, "port"), ({"port": "22 x"}, "port"),
    ({"port": True}, "port"), ({"port": []}, "port"),
    ({"port": 2 ** 62}, "port"), ({"port": "0x16"}, "port"),
    ({"name": 5}, "name"), ({"name": " "}, "name"), ({"name": "a\nb"}, "name"),
    ({"name": "a\0b"}, "name"), ({"name": {}}, "name"),
    ({"password": 5}, "password"), ({"password": [SECRET]}, "password"),
    ({"password": SECRET + "\n"}, "password"),
    ({"password": SECRET + "\0"}, "password"),
    ({"key_file": 5}, "key_file"), ({"key_file": "a\nb"}, "key_file"),
    ({"key_file": "/${HOME}"}, "key_file"),
    ({"key_passphrase": {"x": SECRET}}, "key_passphrase"),
    ({"password_command": SECRET}, "password_command"),
    ({"password_command": []}, "password_command"),
    ({"password_command": [5]}, "password_command"),
    ({"password_command": ["a", None]}, "password_command"),
    ({"password_command": ["a\0b"]}, "password_command"),
    ({"key_passphrase_command": {}}, "key_passphrase_command"),
    ({"host_key": "yes"}, "host_key"), ({"host_key": 5}, "host_key"),
    ({"host_key": "SHA256:short"}, "host_key"),
    ({"host_key": "MD5:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff"},
     "host_key"),
    ({"host_key": KEY + "\n* " + KEY}, "host_key"),
    ({"host_key": "SHA256:" + "%" * 43}, "host_key"),
    ({"host_key": "ssh-ed25519 ,-,"}, "host_key"),
    ({"host_key_policy": "no"}, "host_key_policy"),
    ({"host_key_policy": True}, "host_key_policy"),
    ({"workdir": 5}, "workdir"),
    ({"connect_timeout_s": 0}, "connect_timeout_s"),
    ({"connect_timeout_s": "soon"}, "connect_timeout_s"),
    ({"connect_timeout_s": 1e3}, "connect_timeout_s"),
    ({"control_persist_s": -1}, "control_persist_s"),
    ({"control_persist_s": "yes"}, "control_persist_s"),
    ({"ssh_options": "Compression=yes"}, "ssh_options"),
    ({"ssh_options": ["Compression"]}, "ssh_options"),
    ({"ssh_options": [["Compression=yes"]]}, "ssh_options"),
    ({"ssh_options": ["Compression=yes\nProxyCommand=x"]}, "ssh_options"),
    ({"ssh_options": ["ProxyCommand=touch x"]}, "ssh_options"),
    ({"ssh_options": ["proxycommand=touch x"]}, "ssh_options"),
    ({"ssh_options": ["ProxyCommand touch=x"]}, "ssh_options"),
    ({"ssh_options": [" ProxyCommand=touch x"]}, "ssh_options"),
    ({"ssh_options": ["LocalCommand=touch x"]}, "ssh_options"),
    ({"ssh_options": ["PermitLocalCommand=yes"]}, "ssh_options"),
    ({"ssh_options": ["KnownHostsCommand=touch x"]}, "ssh_options"),
    ({"ssh_options": ["PKCS11Provider=x"]}, "ssh_options"),
    ({"ssh_options": ["SecurityKeyProvider=x"]}, "ssh_options"),
    ({"ssh_options": ["StrictHostKeyChecking=no"]}, "ssh_options"),
    ({"ssh_options": ["UserKnownHostsFile=/dev/null"]}, "ssh_options"),
    ({"ssh_options": ["ForwardAgent=yes"]}, "ssh_options"),
    ({"ssh_options": ["LocalForward=1 x:2"]}, "ssh_options"),
    ({"ssh_options": ["ControlPath=x"]}, "ssh_options"),
    ({"ssh_options": ["Include=x"]}, "ssh_options"),
    ({"ssh_options": ["Match=exec x"]}, "ssh_options"),
    ({"ssh_options": ["SetEnv=A=b"]}, "ssh_options"),
    ({"ssh_options": ["=x"]}, "ssh_options"),
]


def test_wrong_entries(home, dead):
    """All in one list, each told of, and none harms the good one."""
    entries = [{**({} if "host" in wrong or not wrong else {"host": "x"}),
                "password": SECRET, **wrong} for wrong, _ in WRONG]
    result = listed(home, [entry(dead, "good"), *entries])
    assert names(result) == ["good"]
    assert SECRET not in result.stdout + result.stderr
    told = {int(number): (field, problem) for problem in result["problems"]
            for number, field in re.findall(
                r"^REMOTE_SANDBOX_LIST, entry (\d+).*?: field '(\w+)' ",
                problem, re.S)}
    missing = [(wrong, field, told.get(i + 2))
               for i, (wrong, field) in enumerate(WRONG)
               if told.get(i + 2, ("",))[0] != field]
    assert not missing
    for problem in result["problems"]:
        assert not re.search("[\0-\x1f\x7f]", problem), repr(problem)


def test_wrong_entries_do_not_reach_ssh(home, tmp_path):
    """What looks like an option is never taken for one."""
    mark = tmp_path / "mark"
    for host in ["-oProxyCommand=touch${IFS}%s" % mark,
                 "x;touch${IFS}%s" % mark, "$(touch${IFS}%s)" % mark,
                 "`touch${IFS}%s`" % mark]:
        assert home.call("exec_bash", [{"host": host,
                                        "connect_timeout_s": 1}],
                         command="true").failed
    assert not mark.exists()


@pytest.mark.parametrize("item", ["x", 5, None, [], True])
def test_entry_that_is_no_object(home, dead, item):
    result = listed(home, [item, entry(dead, "good")])
    assert names(result) == ["good"]
    [problem] = result["problems"]
    assert "entry 1" in problem and "not an object" in problem


def test_good_values_of_every_field(home, sshd, tmp_path):
    """All that may be given, in one entry; null counts as not given."""
    result = hello(home, [sshd.entry(
        port=str(sshd.port), password="", key_passphrase=None,
        host_key_policy="accept-new", workdir="/", connect_timeout_s="20",
        control_persist_s=60, password_command=None, ssh_options=[
            "Compression=yes", "serveraliveinterval=3",
            "Ciphers=aes128-ctr"])])
    assert result["sandbox"] == "box"


def test_unknown_fields_are_noted(home, dead):
    result = listed(home, [entry(dead, "a", passwort=SECRET, hots="x"),
                           entry(dead, "b")])
    assert names(result) == ["a", "b"]
    assert "problems" not in result
    notes = sorted(result["notes"])
    assert len(notes) == 2
    assert "'hots'" in notes[0] and "entry 1 (a)" in notes[0]
    assert "'passwort'" in notes[1]
    assert SECRET not in result.stdout


def test_problems_and_what_they_look_like_to_a_client(home):
    result = none_usable(home, [{"host": "-x"}, {"port": 5}])
    assert "entry 1 (-x)" in result["error"]
    assert result["diagnostics"]["init_error"] in result["error"]
    assert len(result["diagnostics"]["problems"]) == 2


def test_file_with_a_command_that_others_can_write(home, config, dead,
                                                   tmp_path):
    """Whoever can write it would run what they like."""
    trap = tmp_path / "trap"
    config([entry(dead, "trap", password_command=["touch", str(trap)]),
            entry(dead, "plain")], mode=0o664)
    result = listed(home)
    assert names(result) == ["plain"]
    [problem] = result["problems"]
    assert "(trap)" in problem and "chmod 600" in problem
    assert not trap.exists()


# Secrets in a file

@pytest.mark.parametrize("field", ["password", "key_passphrase"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_file_with_a_secret_that_others_can_read(home, config, dead, field,
                                                 mode):
    path = config([entry(dead, "secret", **{field: SECRET}),
                   entry(dead, "open", password_command=["true"])], mode=mode)
    result = listed(home)
    assert names(result) == ["open"]
    [problem] = result["problems"]
    assert str(path) in problem and "chmod 600" in problem
    assert "(secret)" in problem
    assert SECRET not in result.stdout + result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_file_of_somebody_else(home, config, dead, tmp_path):
    """Root reads it, as in a container, and so does its owner; but that one
    could have root run anything."""
    trap = tmp_path / "trap"
    path = config([entry(dead, "secret", password=SECRET),
                   entry(dead, "trap",
                         password_command=["touch", str(trap)])], mode=0o600)
    os.chown(path, 12345, -1)
    result = listed(home)
    assert names(result) == ["secret"]
    [problem] = result["problems"]
    assert "(trap)" in problem and "chown" in problem
    assert not trap.exists()


def test_file_with_a_secret(home, config, dead):
    config([entry(dead, "secret", password=SECRET)], mode=0o600)
    assert names(listed(home)) == ["secret"]


def test_secrets_are_never_shown(home, dead):
    entries = [entry(dead, "a", password=SECRET),
               entry(dead, "b", key_file="/nonexistent/key",
                     key_passphrase=SECRET)]
    server = home.server(entries, env={"REMOTE_SANDBOX_LOG_LEVEL": "debug",
                                       "REMOTE_PASSWORD": SECRET})
    for tool in ["list_sandboxes", "get_active_sandbox", "get_server_info"]:
        home.ask(server, tool)
    for name in ["a", "b"]:
        home.ask(server, "exec_bash", command="true", sandbox_name=name)
    assert not [text for text in [*home.said, server.stderr()]
                if SECRET in text]


# list_sandboxes takes as long as the slowest.

@pytest.fixture
def black_holes():
    """Makes ports that connect and never say a word."""
    with contextlib.ExitStack() as stack:
        def make():
            server = stack.enter_context(
                socket.create_server(("127.0.0.1", 0)))
            return server.getsockname()[1]
        yield make


def test_dead_hosts_are_asked_at_once(home, sshd, dead, black_holes):
    holes = [entry(black_holes(), "hole%d" % i, connect_timeout_s=2)
             for i in range(8)]
    result = listed(home, [*holes, sshd.entry("good"), entry(dead, "dead")])
    assert result.seconds < 2 + 3 * SLOW
    *bad, good, dead_one = result["sandboxes"]
    assert good["connection_alive"] is True
    for sandbox in [*bad, dead_one]:
        assert sandbox["connection_alive"] is False
        assert sandbox["name"] in sandbox["connection_error"]


def test_dead_host_does_not_delay_a_live_one(home, sshd, black_holes):
    server = home.server([entry(black_holes(), "hole", connect_timeout_s=2),
                          sshd.entry("good")])
    server.send(rsmcp.call("hole", "exec_bash", command="true"),
                rsmcp.call("list", "list_sandboxes"),
                rsmcp.call("good", "exec_bash", command="echo hi",
                           sandbox_name="good"))
    begun = time.monotonic()
    answered = [server.message()["id"] for _ in range(3)]
    assert answered[0] == "good"
    assert time.monotonic() - begun < 2 + 3 * SLOW


# The active sandbox

def test_select(home, sshd, dead):
    server = home.server([entry(dead, "a"), sshd.entry("b"),
                          sshd.entry("c", ssh_options=["Compression=yes"])])
    assert home.ask(server, "get_active_sandbox")["active_sandbox"] == "a"
    assert home.ask(server, "select_sandbox", sandbox_name="b") == {
        "active_sandbox": "b", "status": "selected"}
    active = home.ask(server, "get_active_sandbox")
    assert active["active_sandbox"] == "b"
    assert active["connection_alive"] is True
    result = home.ask(server, "exec_bash", command="echo hi")
    assert (result["stdout"], result["sandbox"]) == ("hi\n", "b")
    # A name in the call goes before it, and changes nothing.
    result = home.ask(server, "exec_bash", command="echo hi",
                      sandbox_name="c")
    assert (result["stdout"], result["sandbox"]) == ("hi\n", "c")
    whole = home.ask(server, "list_sandboxes")
    assert whole["active_sandbox"] == "b"
    assert [s["is_active"] for s in whole["sandboxes"]] == [
        False, True, False]


def test_selecting_does_not_connect(home, sshd):
    server = home.server([sshd.entry("a"), sshd.entry("b")])
    assert not home.ask(server, "select_sandbox", sandbox_name="b").failed
    assert sshd.connections_ever() == 0


@pytest.mark.parametrize("tool", ["select_sandbox", "exec_bash"])
def test_unknown_sandbox(home, dead, tool):
    more = {"command": "true"} if tool == "exec_bash" else {}
    result = home.call(tool, [entry(dead, "one"), entry(dead, "two")],
                       sandbox_name="three", **more)
    assert result.failed
    assert "'three'" in result["error"]
    assert "one, two" in result["error"]
    if tool == "select_sandbox":
        assert result["available"] == ["one", "two"]


def test_select_auto_takes_one_that_answers(home, sshd, dead):
    server = home.server([entry(dead, "dead"), sshd.entry("alive")])
    result = home.ask(server, "select_sandbox", sandbox_name="auto")
    assert result["active_sandbox"] == "alive"
    assert 0 <= result["idle_score"] <= 1
    assert home.ask(server, "exec_bash",
                    command="true")["sandbox"] == "alive"


def with_gpu(sshd, use):
    """Its entry, with one GPU that is this busy, in percent."""
    smi = sshd.home / "nvidia-smi"
    smi.write_text('#!/bin/sh\ncase "$*" in *query-gpu*) echo '
                   '"0, %d, 100, 24576, GPU-1, NVIDIA Test";; esac\n' % use)
    smi.chmod(0o755)
    (sshd.home / ".bashrc").write_text("PATH=%s:$PATH\n" % sshd.home)
    return sshd.entry("gpu%d" % use)


def test_select_auto_takes_the_idle_one(home, new_sshd):
    busy, idle = with_gpu(new_sshd(), 100), with_gpu(new_sshd(), 0)
    for entries in [busy, idle], [idle, busy]:
        result = home.call("select_sandbox", entries, sandbox_name="auto")
        assert result["active_sandbox"] == "gpu0"


def test_select_auto_where_none_answers(home, dead):
    result = home.call("select_sandbox", [entry(dead, "x")],
                       sandbox_name="auto")
    assert result.failed and "list_sandboxes" in result["error"]
    assert result["available"] == ["x"]


def test_sandbox_named_auto(home, dead):
    result = home.call("select_sandbox", [entry(dead, "x"),
                                          entry(dead, "auto")],
                       sandbox_name="auto")
    assert result == {"active_sandbox": "auto", "status": "selected"}


def test_resources(home, sshd):
    [sandbox] = listed(home, [sshd.entry()], check_resources=True)[
        "sandboxes"]
    resources = sandbox["resources"]
    assert resources["cpu"]["count"] == os.cpu_count()
    assert resources["memory"]["total_mb"] > 0
    assert 0 <= resources["idle_score"] <= 1
    plain = listed(home, [sshd.entry()])["sandboxes"]
    assert "resources" not in plain[0]
