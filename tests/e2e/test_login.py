"""Logging in: keys, passwords, agents, jump hosts, host keys, failures.

Everything runs against real ssh servers (see sshd.py).  Each secret holds
TOKEN, and after every test it must be nowhere but where the test put it.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest

import rsmcp
from rsmcp import SLOW, gone, until
from sshd import (Home, descendants, fingerprint, free_port, keygen, public,
                  run)
from watched import Watched

TOKEN = "Xk7-quitte-93"
SECRET = ' "%s" $HOME \\ \'ü%%n ' % TOKEN
KINDS = ["ed25519", "rsa", "ecdsa"]
KEYGEN = {"rsa": ["-b", "2048"]}

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/environ"),
                                reason="there is no /proc here")


@pytest.fixture(autouse=True)
def secrets_are_kept(home):
    """Whatever a test does, the secret is not in anything written."""
    home.more["REMOTE_SANDBOX_LOG_LEVEL"] = "debug"
    yield
    for server in home.servers:
        home.said.append(server.stderr())
    assert not [text for text in home.said if TOKEN in text]
    for path in home.path.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path


@pytest.fixture(scope="module")
def account(new_account):
    return new_account(password=SECRET)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Keys of every kind, made once: keys("rsa", "passphrase")."""
    directory = tmp_path_factory.mktemp("keys")
    made = {}

    def key(kind, passphrase=""):
        if (kind, passphrase) not in made:
            made[kind, passphrase] = keygen(
                directory / ("%s%d" % (kind, len(made))), kind, passphrase,
                *KEYGEN.get(kind, []))
        return made[kind, passphrase]
    return key


def hello(home, *entries, **more):
    return home.call("exec_bash", list(entries) or None, command="echo hi",
                     **more)


def works(result):
    assert not result.failed, result["error"]
    assert result["stdout"] == "hi\n"
    return result


def fails(result, *patterns):
    """It failed, and the error says all this."""
    assert result.failed, dict(result)
    for pattern in patterns:
        assert re.search(pattern, result["error"], re.I), result["error"]
    return result["error"]


def nothing_was_sent(sshd):
    """It was connected to, but nobody tried to log in."""
    sshd.log_has("Connection (closed|reset) by|Disconnect")
    assert sshd.connections_ever() > 0
    assert sshd.count("user |Failed|Accepted|Postponed") == 0, sshd.log()


def password_entry(sshd, account, **fields):
    return sshd.entry(**{"user": account.name, "key_file": None,
                         "password": SECRET, **fields})


# Keys

@pytest.mark.parametrize("kind", KINDS)
def test_key(home, sshd, keys, kind):
    sshd.authorize(public(keys(kind)))
    works(hello(home, sshd.entry(key_file=str(keys(kind)))))


@pytest.mark.parametrize("kind", KINDS)
def test_key_with_passphrase(home, sshd, keys, kind):
    key = keys(kind, SECRET)
    sshd.authorize(public(key))
    works(hello(home, sshd.entry(key_file=str(key), key_passphrase=SECRET)))


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_passphrase(home, sshd, keys, kind):
    key = keys(kind, SECRET)
    sshd.authorize(public(key))
    entry = sshd.entry(key_file=str(key), key_passphrase=TOKEN + "no")
    fails(hello(home, entry), "passphrase", re.escape(str(key)))
    assert sshd.logins_ever() == 0


def test_passphrase_is_missing(home, sshd, keys):
    key = keys("ed25519", SECRET)
    sshd.authorize(public(key))
    fails(hello(home, sshd.entry(key_file=str(key))), "key_passphrase")


def test_dsa_key(home, new_sshd, tmp_path):
    if "ssh-dss" not in run("ssh", "-Q", "key"):
        pytest.skip("this ssh knows no DSA keys any more")
    sshd = new_sshd("PubkeyAcceptedAlgorithms +ssh-dss")
    key = keygen(tmp_path / "key", "dsa")
    sshd.authorize(public(key))
    works(hello(home, sshd.entry(key_file=str(key))))


def test_key_file_below_home(home, sshd):
    shutil.copy(sshd.key, home.home / ".ssh" / "a key")
    works(hello(home, sshd.entry(key_file="~/.ssh/a key")))


def test_passphrase_of_a_key_below_home(home, sshd, keys):
    key = keys("ed25519", SECRET)
    sshd.authorize(public(key))
    shutil.copy(key, home.home / ".ssh" / "a key")
    works(hello(home, sshd.entry(key_file="~/.ssh/a key",
                                 key_passphrase=SECRET)))


@pytest.mark.parametrize("name", ["100%d", '"it\'s"', "back\\slash", "%h"])
def test_odd_name_of_a_key_file(home, sshd, keys, tmp_path, name):
    key = keys("ed25519", SECRET)
    sshd.authorize(public(key))
    shutil.copy(key, tmp_path / name)
    works(hello(home, sshd.entry(key_file=str(tmp_path / name),
                                 key_passphrase=SECRET)))


@pytest.mark.parametrize("passphrase", ["", SECRET])
def test_key_readable_by_others(home, sshd, tmp_path, passphrase):
    key = keygen(tmp_path / "key", passphrase=passphrase)
    sshd.authorize(public(key))
    key.chmod(0o644)
    entry = sshd.entry(key_file=str(key), key_passphrase=passphrase)
    fails(hello(home, entry), "chmod 600 " + re.escape(str(key)))


def test_key_file_is_missing(home, sshd, tmp_path):
    path = str(tmp_path / "no-such-key")
    error = fails(hello(home, sshd.entry(key_file=path)), re.escape(path))
    assert re.search("no such file|does not exist|not found|no such identity",
                     error, re.I)


def test_key_file_is_none(home, sshd, tmp_path):
    path = tmp_path / "letter"
    path.write_text("Dear ssh,\nthis is no key.\n")
    path.chmod(0o600)
    fails(hello(home, sshd.entry(key_file=str(path))), re.escape(str(path)))


def test_key_is_refused(home, sshd, keys):
    """The error says what was tried, what is accepted and ssh's words."""
    entry = sshd.entry(key_file=str(keys("ed25519")))
    fails(hello(home, entry), "box", "key file", "accepts: .*publickey",
          "Permission denied")
    assert sshd.count("Failed publickey") == 1


def test_only_the_given_key_is_offered(home, sshd, keys, key_agent):
    for kind in KINDS:
        key_agent.add(keys(kind))
    home.more["SSH_AUTH_SOCK"] = key_agent.socket
    works(hello(home, sshd.entry()))
    assert sshd.count("publickey|Accepted key|Failed") == \
        sshd.count(re.escape(fingerprint(sshd.key))) + \
        sshd.count("Postponed publickey")


def test_key_wins_over_password(home, sshd, account):
    works(hello(home, sshd.entry(user=account.name, password=SECRET)))
    assert sshd.count("Accepted publickey") == 1
    assert sshd.count("password for") == 0


def test_key_file_and_passphrase_command(home, sshd, keys, tmp_path):
    key = keys("rsa", SECRET)
    sshd.authorize(public(key))
    (tmp_path / "secret").write_text(SECRET + "\n")
    works(hello(home, sshd.entry(
        key_file=str(key),
        key_passphrase_command=["cat", str(tmp_path / "secret")])))


def test_certificate(home, new_sshd, tmp_path):
    """Only the authority is known to the server."""
    authority = keygen(tmp_path / "ca")
    key = keygen(tmp_path / "key")
    sshd = new_sshd("TrustedUserCAKeys %s.pub" % authority)
    run("ssh-keygen", "-q", "-s", authority, "-I", "tester", "-n", sshd.user,
        "%s.pub" % key)
    works(hello(home, sshd.entry(key_file=str(key))))
    sshd.log_has("Accepted publickey .*ED25519-CERT .*tester")


# Passwords

def test_password(home, sshd, account):
    works(hello(home, password_entry(sshd, account)))
    sshd.log_has("Accepted password for " + account.name)


def test_password_from_single_variables(home, sshd, account):
    works(hello(home, env={
        "REMOTE_HOST": "127.0.0.1", "REMOTE_PORT": str(sshd.port),
        "REMOTE_USER": account.name, "REMOTE_PASSWORD": SECRET}))


def interactive(new_sshd):
    """A server that has passwords asked for by PAM only."""
    return new_sshd("UsePAM yes", "KbdInteractiveAuthentication yes",
                    "AuthenticationMethods keyboard-interactive")


def test_keyboard_interactive(home, new_sshd, account):
    sshd = interactive(new_sshd)
    works(hello(home, password_entry(sshd, account)))
    sshd.log_has("Accepted keyboard-interactive/pam for " + account.name)


def test_keyboard_interactive_wrong_password(home, new_sshd, account):
    sshd = interactive(new_sshd)
    entry = password_entry(sshd, account, password=TOKEN + "wrong")
    fails(hello(home, entry), "refused the login as " + account.name,
          "password", "keyboard-interactive")
    assert sshd.count("PAM: Authentication failure") == 1, sshd.log()


def test_wrong_password(home, sshd, account):
    entry = password_entry(sshd, account, password=TOKEN + "wrong")
    fails(hello(home, entry), "refused the login as " + account.name,
          "tried the password", "accepts: .*password")
    assert sshd.count("Failed password") == 1, sshd.log()
    assert sshd.connections_ever() == 1


def test_wrong_password_and_pam(home, new_sshd, account):
    """One try, though the server would take it in two ways."""
    sshd = new_sshd("UsePAM yes", "KbdInteractiveAuthentication yes")
    entry = password_entry(sshd, account, password=TOKEN + "wrong")
    fails(hello(home, entry), "refused the login as " + account.name,
          "tried the password", r"\(ssh: .*Password")
    assert sshd.count("Failed password|PAM: Authentication failure") == 1, \
        sshd.log()


def test_password_where_none_is_taken(home, new_sshd, account):
    sshd = new_sshd("PasswordAuthentication no",
                    "KbdInteractiveAuthentication no")
    fails(hello(home, password_entry(sshd, account)), "tried the password",
          "accepts: publickey")


def test_password_through_a_jump_host(home, new_sshd, account):
    """The jump host does not get the password, by whatever name."""
    jump, inner = new_sshd(), new_sshd()
    ssh_config(home, "Host jump\nHostName 127.0.0.1\nPort %d\nUser %s"
               % (jump.port, account.name))
    entry = password_entry(inner, account, ssh_options=["ProxyJump=jump"])
    fails(hello(home, entry))
    assert inner.connections_ever() == 0
    assert jump.count("Accepted|Failed password") == 0, jump.log()


def test_password_only_offers_no_keys(home, sshd, account, key_agent, keys,
                                      tmp_path):
    """A full agent would use up the tries of the server."""
    for i in range(8):
        key_agent.add(keygen(tmp_path / ("key%d" % i)))
    home.more["SSH_AUTH_SOCK"] = key_agent.socket
    works(hello(home, password_entry(sshd, account)))
    assert sshd.count("publickey") == 0, sshd.log()


def command_of(script):
    return ["sh", "-c", script]


@pytest.mark.parametrize("end", ["\n", "", "\r\n", "\nuser: x\nurl: y\n"])
def test_password_command(home, sshd, account, tmp_path, end):
    """As of password managers: the first line counts."""
    (tmp_path / "secret").write_bytes((SECRET + end).encode())
    works(hello(home, password_entry(
        sshd, account, password=None,
        password_command=["cat", str(tmp_path / "secret")])))


def test_password_command_that_fails(home, sshd, account):
    entry = password_entry(
        sshd, account, password=None, password_command=command_of(
            "echo %s; echo the vault is shut >&2; exit 3" % TOKEN))
    fails(hello(home, entry), "password_command", "box", "status 3",
          "the vault is shut")
    assert sshd.connections_ever() == 0


def test_passphrase_command_that_fails(home, sshd, keys):
    entry = sshd.entry(key_file=str(keys("ed25519", SECRET)),
                       key_passphrase_command=command_of("exit 9"))
    fails(hello(home, entry), "key_passphrase_command", "status 9")
    assert sshd.connections_ever() == 0


def test_password_command_that_is_killed(home, sshd, account):
    entry = password_entry(sshd, account, password=None,
                           password_command=command_of("kill -9 $$"))
    fails(hello(home, entry), "password_command", "signal|killed")


def test_password_command_that_is_not_there(home, sshd, account):
    entry = password_entry(sshd, account, password=None,
                           password_command=["no-such-program-of-ours"])
    fails(hello(home, entry), "password_command", "no-such-program-of-ours")


def test_password_command_that_says_nothing(home, sshd, account):
    entry = password_entry(sshd, account, password=None,
                           password_command=["true"])
    fails(hello(home, entry), "password_command", "nothing|empty|no password")
    assert sshd.connections_ever() == 0


def test_password_command_sees_no_other_secret(home, sshd, account, tmp_path):
    seen = tmp_path / "seen"
    entry = password_entry(sshd, account, password=None,
                           password_command=command_of(
                               "env >%s; exit 1" % seen))
    other = password_entry(sshd, account, name="other")
    fails(hello(home, entry, other), "password_command")
    assert "HOME=" in seen.read_text()
    assert TOKEN not in seen.read_text()


def test_password_command_is_cancelled(home, sshd):
    """With the call, not after some time."""
    server = home.server([sshd.entry(
        key_file=None, password_command=["sleep", "986"])])
    server.send(rsmcp.call(1, "exec_bash", command="true"))
    [sleep] = until("the command runs", lambda: [
        pid for pid, name in descendants(server.pid) if name == "sleep"])
    server.send(rsmcp.cancel(1))
    until("the command is gone", lambda: gone(sleep), 2 * SLOW)
    server.ping()


# The agent, and what ssh finds by itself

class KeyAgent:
    def __init__(self, path):
        self.socket = str(path)
        self.process = subprocess.Popen(
            ["ssh-agent", "-D", "-a", path], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)
        until("the agent listens", self.listens)

    def listens(self):
        """The socket is there before anybody listens on it."""
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(self.socket) == 0

    def add(self, key):
        run("ssh-add", "-q", key,
            env={**os.environ, "SSH_AUTH_SOCK": self.socket})


@pytest.fixture
def new_key_agent():
    """Starts agents: new_key_agent(path of the socket)."""
    made = []

    def make(path):
        made.append(KeyAgent(path))
        return made[-1]

    yield make
    for agent in made:
        agent.process.terminate()
        agent.process.wait()


@pytest.fixture
def key_agent(home, new_key_agent):
    return new_key_agent(home.path / "ssh-agent")


def ssh_config(home, text):
    (home.home / ".ssh" / "config").write_text(text + "\n")


def test_agent(home, sshd, key_agent):
    key_agent.add(sshd.key)
    home.more["SSH_AUTH_SOCK"] = key_agent.socket
    works(hello(home, sshd.entry(key_file=None)))


def test_neither_key_nor_password(home, sshd):
    fails(hello(home, sshd.entry(key_file=None)), "refused the login",
          "keys of your ssh configuration and agent",
          "no ssh agent was found by SSH_AUTH_SOCK")


def test_agent_without_the_key(home, sshd, key_agent):
    home.more["SSH_AUTH_SOCK"] = key_agent.socket
    error = fails(hello(home, sshd.entry(key_file=None)), "refused the login",
                  "keys of your ssh configuration and agent")
    assert "no ssh agent" not in error


@pytest.mark.parametrize("place", ["ssh-agent.socket", "openssh_agent",
                                   "gcr/ssh", "keyring/ssh",
                                   "gnupg/S.gpg-agent.ssh"])
def test_agent_without_the_variable(home, sshd, new_key_agent, place):
    (home.run / place).parent.mkdir(exist_ok=True)
    new_key_agent(home.run / place).add(sshd.key)
    home.more["SSH_AUTH_SOCK"] = None
    works(hello(home, sshd.entry(key_file=None)))


@pytest.mark.parametrize("value", ["$SSH_AUTH_SOCK", "/nowhere/agent.1"])
def test_agent_with_a_variable_that_names_none(home, sshd, new_key_agent,
                                               value):
    """As a client hands it on that has none itself."""
    new_key_agent(home.run / "ssh-agent.socket").add(sshd.key)
    home.more["SSH_AUTH_SOCK"] = value
    works(hello(home, sshd.entry(key_file=None)))


def test_agent_that_is_not_wanted(home, sshd, new_key_agent):
    new_key_agent(home.run / "ssh-agent.socket").add(sshd.key)
    home.more["SSH_AUTH_SOCK"] = ""
    fails(hello(home, sshd.entry(key_file=None)), "refused the login")


class WithoutKey:
    """A server whose entry leaves the key to the agent."""

    def __init__(self, sshd):
        self.sshd = sshd

    def entry(self, name):
        return self.sshd.entry(name, key_file=None)


@pytest.mark.parametrize("stale", [None, "/nowhere/agent"])
def test_agent_of_the_watchdog(home, sshd, key_agent, stale):
    """A service has another environment than the server that started the
    job, or that of a login which is over."""
    key_agent.add(sshd.key)
    home.more["SSH_AUTH_SOCK"] = key_agent.socket
    watched = Watched(home, WithoutKey(sshd))
    watch_id = watched.job("true")
    watched.server.kill()
    home.more["SSH_AUTH_SOCK"] = stale
    sshd.cut()      # nor is there a login that it could share
    until("no master is left", lambda: home.masters() == [])
    watched.daemon.start()
    try:
        until("it is looked at", lambda: json.loads(home.command(
            "watch", "show", str(watch_id), "--json").stdout)["last_state"])
        shown = json.loads(home.command("watch", "show", str(watch_id),
                                        "--json").stdout)
        assert shown["last_state"] == "completed", shown["last_error"]
    finally:
        watched.daemon.kill()


def client_without_the_variable(home, entry):
    """What a client gets that has SSH_AUTH_SOCK and does not pass it on."""
    done = subprocess.run(
        ["sh", "-c", 'sh -c \'"$@"; exit $?\' - env -u SSH_AUTH_SOCK "$@"; '
         'exit $?', "-", os.path.abspath(rsmcp.SERVER), "call", "exec_bash",
         "command=echo hi", "--json"],
        cwd=home.home, env=rsmcp.environment(home.home, **home.env([entry])),
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=rsmcp.PATIENCE_S)
    return json.loads(done.stdout)


def test_agent_of_a_client_that_keeps_the_variable(home, sshd, key_agent):
    """As of `eval $(ssh-agent)`, whose socket may be anywhere."""
    key_agent.add(sshd.key)
    home.more["SSH_AUTH_SOCK"] = key_agent.socket
    result = client_without_the_variable(home, sshd.entry(key_file=None))
    assert result.get("stdout") == "hi\n", result


def test_agent_of_a_client_that_has_ended(home, sshd, new_key_agent):
    """One in a usual place is taken then."""
    new_key_agent(home.run / "ssh-agent.socket").add(sshd.key)
    home.more["SSH_AUTH_SOCK"] = str(home.run / "no-such-socket")
    result = client_without_the_variable(home, sshd.entry(key_file=None))
    assert result.get("stdout") == "hi\n", result


def test_alias(home, sshd):
    """Only "host", with all the rest in the user's ssh config."""
    (home.home / "conf.d").mkdir()
    (home.home / "conf.d" / "work.conf").write_text(
        "Host workbench\nHostName 127.0.0.1\nUser %s\n" % sshd.user)
    ssh_config(home, """
        Include %s/conf.d/*.conf
        Match originalhost workbench exec "test -d /"
            Port %d
        Match originalhost workbench host 127.0.0.1
            IdentityFile %s
            IdentitiesOnly yes
        Match originalhost workbench exec "false"
            Port 1
        Host *
            Port 2
    """ % (home.home, sshd.port, sshd.key))
    entry = {"host": "workbench"}
    assert works(hello(home, entry))["sandbox"] == "workbench"
    [listed] = home.call("list_sandboxes", [entry])["sandboxes"]
    assert listed["connection_alive"] is True
    assert (listed["host"], listed["port"], listed["user"]) == \
        ("workbench", sshd.port, sshd.user)


def test_entry_wins_over_the_ssh_config(home, sshd):
    ssh_config(home, """
        Host 127.0.0.1
            Port 1
            User nobody-we-know
            IdentityFile /nonexistent/key
    """)
    works(hello(home, sshd.entry()))


def test_ssh_config_made_for_a_terminal(home, sshd, tmp_path):
    """What people set for their own logins does no harm."""
    ssh_config(home, """
        Host *
            RemoteCommand tmux new -A
            RequestTTY force
            LocalForward 127.0.0.1:1 127.0.0.1:2
            DynamicForward 127.0.0.1:3
            RemoteForward 127.0.0.1:1 127.0.0.1:2
            ExitOnForwardFailure yes
            ForwardAgent yes
            PermitLocalCommand yes
            LocalCommand touch %s
            ControlMaster auto
            ControlPath %s/their-%%C
            ControlPersist no
            StdinNull yes
            SessionType none
            ForkAfterAuthentication yes
            VisualHostKey yes
            LogLevel QUIET
            StrictHostKeyChecking no
            CheckHostIP yes
            HashKnownHosts yes
            UpdateHostKeys yes
            EscapeChar !
            SendEnv *
    """ % (tmp_path / "local-command", tmp_path))
    result = works(hello(home, sshd.entry()))
    assert "host_key_added" in result
    assert not (tmp_path / "local-command").exists()
    assert not list(tmp_path.glob("their-*"))
    again = hello(home, sshd.entry())
    assert "host_key_added" not in works(again)
    assert sshd.connections_ever() == 1


@pytest.fixture
def by_hand(home, sshd):
    """Somebody's own connection, by a login that only a person can do (here:
    with a key that the ssh config does not name). Tells its process."""
    socket_path = home.home / ".ssh" / "cm"
    ssh_config(home, "Host work\nHostName 127.0.0.1\nPort %d\nUser %s\n"
               "ControlPath %s\n" % (sshd.port, sshd.user, socket_path))
    ssh = ["ssh", "-F", home.home / ".ssh" / "config"]
    run(*ssh, "-i", sshd.key, "-o", "StrictHostKeyChecking=no", "-o",
        "UserKnownHostsFile=/dev/null", "-M", "-N", "-f", "work")
    check = [*ssh, "-O", "check", "work"]

    def master():
        said = subprocess.run(check, capture_output=True, text=True).stderr
        found = re.search(r"pid=(\d+)", said)
        return int(found[1]) if found else None
    yield master
    subprocess.run([*ssh, "-O", "exit", "work"], capture_output=True)


def test_connection_made_by_hand(home, sshd, by_hand):
    """Where a login asks for what only a person has."""
    server = home.server([{"host": "work"}])
    works(home.ask(server, "exec_bash", command="echo hi"))
    [listed] = home.ask(server, "list_sandboxes")["sandboxes"]
    assert listed["connection_alive"] is True
    result = home.ask(server, "exec_bash", command="sleep 60", timeout_s=1)
    assert result["kill_verified"] is True, dict(result)
    server.close_input()
    server.ends()
    assert sshd.logins_ever() == 1
    assert by_hand(), "it is not ours to end"


def test_connection_made_by_hand_is_lost(home, sshd, by_hand):
    server = home.server([{"host": "work"}])
    works(home.ask(server, "exec_bash", command="echo hi"))
    master = by_hand()
    sshd.cut()
    until("the master noticed", lambda: gone(master))
    fails(home.ask(server, "exec_bash", command="echo hi"),
          "refused the login", "accepts: .*publickey")


@pytest.mark.parametrize("field", [
    {"host_key_policy": "strict"}, {"user": "nobody-we-know"},
    {"password": SECRET}])
def test_connection_made_by_hand_is_for_plain_entries(home, by_hand, field):
    """What an entry says goes before what somebody did."""
    fails(hello(home, {"host": "work", **field}))
    assert by_hand()


def test_login_that_works_needs_no_connection_made_by_hand(home, sshd,
                                                           by_hand):
    with open(home.home / ".ssh" / "config", "a") as file:
        file.write("IdentityFile %s\n" % sshd.key)
    works(hello(home, {"host": "work"}))
    assert sshd.logins_ever() == 2


def test_mistake_in_the_ssh_config(home, sshd):
    ssh_config(home, "Hots *\n")
    fails(hello(home, sshd.entry()), "ssh config", "Hots|hots")


def jump_config(jump, inner):
    return """
        Host jump
            HostName 127.0.0.1
            Port %d
            User %s
            IdentityFile %s
        Host inner
            HostName 127.0.0.1
            Port %d
            User %s
            IdentityFile %s
    """ % (jump.port, jump.user, jump.key, inner.port, inner.user, inner.key)


def test_jump_host(home, new_sshd):
    """Both keys are new, are remembered and told of."""
    jump, inner = new_sshd(), new_sshd()
    ssh_config(home, jump_config(jump, inner) + "ProxyJump jump\n")
    result = works(hello(home, {"host": "inner"}))
    for sshd in jump, inner:
        assert sshd.logins_ever() == 1
        assert fingerprint(sshd.host_keys["ed25519"]) in \
            result["host_key_added"]
        assert remembered(home, sshd)
    # It is not the sandbox, so it goes by its address.
    assert str(jump.port) in result["host_key_added"]


def test_jump_host_by_ssh_options(home, new_sshd):
    jump, inner = new_sshd(), new_sshd()
    ssh_config(home, jump_config(jump, inner))
    works(hello(home, inner.entry(ssh_options=["ProxyJump=jump"])))
    assert jump.logins_ever() == inner.logins_ever() == 1


@pytest.mark.parametrize("pin", [public, fingerprint])
def test_pin_behind_a_jump_host(home, new_sshd, pin):
    """The pin is for the sandbox, not for what is on the way."""
    jump, inner = new_sshd(), new_sshd()
    ssh_config(home, jump_config(jump, inner))
    works(hello(home, inner.entry(
        ssh_options=["ProxyJump=jump"],
        host_key=pin(inner.host_keys["ed25519"]))))


def test_jump_host_with_another_key(home, new_sshd):
    jump, inner = new_sshd(), new_sshd()
    ssh_config(home, jump_config(jump, inner) + "ProxyJump jump\n")
    works(hello(home, {"host": "inner"}))
    home.end_masters()
    jump.restart(new_keys=True)
    fails(hello(home, {"host": "inner"}), "CHANGED",
          re.escape(fingerprint(jump.host_keys["ed25519"])))
    assert inner.connections_ever() == 1


def test_jump_host_is_down(home, new_sshd):
    jump, inner = new_sshd(), new_sshd()
    ssh_config(home, jump_config(jump, inner) + "ProxyJump jump\n")
    jump.stop()
    fails(hello(home, {"host": "inner"}), "Connection refused",
          str(jump.port))


def test_proxy_command(home, new_sshd):
    jump, inner = new_sshd(), new_sshd()
    ssh_config(home, jump_config(jump, inner) +
               "ProxyCommand ssh -F %s/.ssh/config -o BatchMode=yes "
               "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
               "-W %%h:%%p jump\n" % home.home)
    works(hello(home, {"host": "inner"}))
    assert jump.logins_ever() == inner.logins_ever() == 1


def test_ordinary_user(new_sshd, new_account):
    """Somebody with ~/.ssh: key, config with Include, known_hosts."""
    mine, sshd = new_account(), new_sshd()
    user = Home()
    shutil.rmtree(user.home)
    user.home = mine.home
    ssh = mine.home / ".ssh"
    ssh.mkdir(mode=0o700)
    shutil.copy(sshd.key, ssh / "id_ed25519")
    (ssh / "config").write_text("Include more/*\n")
    (ssh / "more").mkdir()
    (ssh / "more" / "one").write_text(
        "Host mine\nHostName 127.0.0.1\nPort %d\n" % sshd.port)
    (ssh / "known_hosts").write_text("[127.0.0.1]:%d %s\n" % (
        sshd.port, public(sshd.host_keys["ed25519"])))
    program = shutil.copy(rsmcp.SERVER, mine.home / "program")
    run("chown", "-R", mine.name, mine.home, user.path)
    try:
        done = subprocess.run(
            [program, "call", "exec_bash", "command=id -un", "--json"],
            env=rsmcp.environment(user.home, **user.env(
                [{"host": "mine", "host_key_policy": "strict"}])),
            cwd=user.home, user=mine.name, group=mine.name, extra_groups=[],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=rsmcp.PATIENCE_S)
        assert json.loads(done.stdout).get("stdout") == mine.name + "\n", done
        modes = {path: path.lstat().st_mode & 0o77
                 for path in [*user.run.iterdir(), *user.run.glob("*/*"),
                              *user.state.rglob("*")]}
        assert modes and not any(modes.values()), modes
    finally:
        user.end()


# Host keys

def known_hosts(home, *lines):
    """The user's own file."""
    path = home.home / ".ssh" / "known_hosts"
    path.write_text("".join(line + "\n" for line in lines))
    ssh_config(home, "UserKnownHostsFile %s" % path)
    return path


def known(sshd, key=None, marker=""):
    """A line for it."""
    return "%s[127.0.0.1]:%d %s" % (
        marker and marker + " ", sshd.port,
        public(key or sshd.host_keys["ed25519"]))


def remembered(home, sshd):
    """Its key is in our own file; the name may be hashed."""
    return public(sshd.host_keys["ed25519"]) in run(
        "ssh-keygen", "-F", "[127.0.0.1]:%d" % sshd.port,
        "-f", home.state / "known_hosts")


def test_new_host_key_is_remembered_and_told_once(home, sshd):
    server = home.server([sshd.entry()])
    first = works(home.ask(server, "exec_bash", command="echo hi"))
    assert "ED25519" in first["host_key_added"]
    assert fingerprint(sshd.host_keys["ed25519"]) in first["host_key_added"]
    again = works(home.ask(server, "exec_bash", command="echo hi"))
    assert "host_key_added" not in again
    assert remembered(home, sshd)
    server.kill()
    home.end_masters()
    assert "host_key_added" not in works(hello(home, sshd.entry()))
    assert sshd.logins_ever() == 2


@pytest.mark.parametrize("tool", ["list_sandboxes", "get_active_sandbox"])
def test_new_host_key_is_told_by_every_tool(home, sshd, tool):
    assert "host_key_added" in home.call(tool, [sshd.entry()]).stdout
    assert "host_key_added" not in hello(home, sshd.entry())


def test_user_files_are_not_written(home, sshd):
    mine = known_hosts(home, "")
    works(hello(home, sshd.entry()))
    assert mine.read_text() == "\n"
    assert {path.name for path in (home.home / ".ssh").iterdir()} == \
        {"config", "known_hosts"}


def test_key_that_the_user_knows(home, sshd):
    known_hosts(home, known(sshd))
    result = works(hello(home, sshd.entry(host_key_policy="strict")))
    assert "host_key_added" not in result


def test_strict_takes_no_new_key(home, sshd, account):
    entry = password_entry(sshd, account, host_key_policy="strict")
    fails(hello(home, entry), "host_key_policy", "strict", "host_key")
    nothing_was_sent(sshd)
    assert not (home.state / "known_hosts").exists()


def test_strict_takes_what_was_remembered(home, sshd):
    works(hello(home, sshd.entry()))
    works(hello(home, sshd.entry(host_key_policy="strict")))


@pytest.mark.parametrize("policy", ["accept-new", "strict"])
@pytest.mark.parametrize("whose", ["ours", "the user's"])
def test_changed_host_key(home, sshd, account, policy, whose):
    entry = password_entry(sshd, account, host_key_policy=policy)
    if whose == "ours":
        (home.state / "known_hosts").write_text(known(sshd) + "\n")
    else:
        known_hosts(home, known(sshd))
    before = fingerprint(sshd.host_keys["ed25519"])
    sshd.restart(new_keys=True)
    after = fingerprint(sshd.host_keys["ed25519"])
    error = fails(hello(home, entry), "CHANGED", "known_hosts",
                  re.escape(after), re.escape(before))
    assert "known_hosts:1" in error or "ssh-keygen -R" in error
    nothing_was_sent(sshd)


def test_changed_host_key_is_not_tried_again(home, sshd):
    (home.state / "known_hosts").write_text(known(sshd) + "\n")
    sshd.restart(new_keys=True)
    server = home.server([sshd.entry()])
    for _ in range(5):
        fails(home.ask(server, "exec_bash", command="echo hi"), "CHANGED")
    assert sshd.connections_ever() == 1


def test_revoked_host_key(home, sshd, account):
    known_hosts(home, known(sshd, marker="@revoked"))
    fails(hello(home, password_entry(sshd, account)), "revoked",
          re.escape(fingerprint(sshd.host_keys["ed25519"])))
    nothing_was_sent(sshd)


def test_revoked_by_a_list(home, sshd, account):
    ssh_config(home, "RevokedHostKeys %s.pub" % sshd.host_keys["ed25519"])
    fails(hello(home, password_entry(sshd, account)), "revoked",
          re.escape(fingerprint(sshd.host_keys["ed25519"])))
    nothing_was_sent(sshd)


def test_host_certificate(home, new_sshd, tmp_path):
    """The user trusts an authority for hosts."""
    sshd = new_sshd()
    authority = keygen(tmp_path / "ca")
    key = sshd.host_keys["ed25519"]
    run("ssh-keygen", "-q", "-s", authority, "-h", "-I", "host", "-n",
        "127.0.0.1", "%s.pub" % key)
    sshd.restart("HostCertificate %s-cert.pub" % key)
    known_hosts(home, "@cert-authority * " + public(authority))
    result = works(hello(home, sshd.entry(host_key_policy="strict")))
    assert "host_key_added" not in result


@pytest.mark.parametrize("pin", [public, fingerprint])
def test_pinned_host_key(home, sshd, account, pin):
    """It beats what the known_hosts files say."""
    other = sshd.key
    known_hosts(home, known(sshd, other))
    (home.state / "known_hosts").write_text(known(sshd, other) + "\n")
    entry = password_entry(sshd, account,
                           host_key=pin(sshd.host_keys["ed25519"]))
    assert "host_key_added" not in works(hello(home, entry))


@pytest.mark.parametrize("pin", [public, fingerprint])
def test_wrong_pin(home, sshd, account, pin):
    known_hosts(home, known(sshd))
    (home.state / "known_hosts").write_text(known(sshd) + "\n")
    entry = password_entry(sshd, account, host_key=pin(sshd.key))
    fails(hello(home, entry), "box", "pin", "host_key")
    nothing_was_sent(sshd)


@pytest.mark.parametrize("pin", [public, fingerprint])
def test_pin_of_one_key_of_several(home, new_sshd, pin):
    """The server has more keys, and ssh would prefer another."""
    sshd = new_sshd(host_keys=["ed25519", "ecdsa", "rsa"])
    for kind in sshd.host_keys:
        works(hello(home, sshd.entry(
            host_key=pin(sshd.host_keys[kind]))))
    assert sshd.logins_ever() == 3


def test_pin_with_a_comment(home, sshd):
    line = pathlib.Path("%s.pub" % sshd.host_keys["ed25519"]).read_text()
    works(hello(home, sshd.entry(host_key=line.strip())))


# Hosts that do not answer

def test_nothing_listens(home):
    port = free_port()
    result = hello(home, {"name": "box", "host": "127.0.0.1", "port": port})
    error = fails(result, "cannot connect to box", "Connection refused",
                  str(port))
    assert "not tried again" not in error   # it is the first time
    assert result.seconds < 5 * SLOW


def test_unknown_name(home):
    result = hello(home, {"name": "box", "host": "no-such-host.invalid"})
    error = fails(result, "cannot connect to box", "resolve",
                  "no-such-host.invalid")
    assert "not tried again" not in error


@contextlib.contextmanager
def listener(answer):
    """Calls answer(connection) for each; its port and what it took."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = []

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                taken.append(connection)
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1], taken
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(rsmcp.PATIENCE_S)
            for connection in taken:
                connection.close()


def never(connection):
    """It does not say a word."""


def banner_only(connection):
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


def test_black_hole(home):
    with listener(never) as (port, taken):
        result = hello(home, {"name": "box", "host": "127.0.0.1",
                              "port": port, "connect_timeout_s": 1})
        fails(result, "box", "does not answer|timed out")
        assert 0.9 < result.seconds < 4 * SLOW
        assert len(taken) == 1


def test_a_list_waits_no_longer_than_to_connect(home):
    """... though the login may take longer than that elsewhere."""
    with listener(banner_only) as (port, _):
        result = home.call("list_sandboxes", [
            {"name": "box", "host": "127.0.0.1", "port": port,
             "connect_timeout_s": 2}])
    box = result["sandboxes"][0]
    assert not box["connection_alive"], box
    # What is left of the two when it comes to that.
    assert re.search("within [12] seconds", box["connection_error"]), box
    assert 1.5 < result.seconds < 6 * SLOW, result.seconds


def test_black_hole_behind_a_queue(home):
    """Not even the connection is made."""
    with socket.socket() as server, contextlib.ExitStack() as stack:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(8):      # more than the queue holds
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        result = hello(home, {"name": "box", "host": "127.0.0.1",
                              "port": server.getsockname()[1],
                              "connect_timeout_s": 1})
        fails(result, "box", "does not answer", "timed out")
        assert 0.9 < result.seconds < 4 * SLOW


def test_not_ssh(home):
    def web(connection):
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 5)
        connection.close()

    with listener(web) as (port, _):
        result = hello(home, {"name": "box", "host": "127.0.0.1",
                              "port": port, "connect_timeout_s": 2})
        fails(result, "cannot connect to box")


def test_hostile_banner(home):
    """Control characters of a server do not reach anybody."""
    def bad(connection):
        connection.sendall(b"\x1b]0;gotcha\x07\x1b[2J\xff\r\n" * 3 +
                           b"SSH-1.0-\x1b[31mred\r\n")
        connection.close()

    with listener(bad) as (port, _):
        result = hello(home, {"name": "box", "host": "127.0.0.1",
                              "port": port, "connect_timeout_s": 2})
        error = fails(result, "box")
        assert not re.search("[\0-\x08\x0b-\x1f\x7f]", error), repr(error)


def test_no_common_algorithm(home, sshd):
    sshd.restart("Ciphers chacha20-poly1305@openssh.com")
    entry = sshd.entry(ssh_options=["Ciphers=aes128-ctr"])
    fails(hello(home, entry), "box", "no algorithm", "ssh_options",
          "chacha20")


def test_too_many_keys(home, sshd, key_agent, tmp_path):
    """The advice is to name the right one."""
    for i in range(8):
        key_agent.add(keygen(tmp_path / ("key%d" % i)))
    home.more["SSH_AUTH_SOCK"] = key_agent.socket
    fails(hello(home, sshd.entry(key_file=None)), "key_file",
          "Too many authentication failures")


def test_max_startups(home, new_sshd):
    """A server that takes nobody for a while."""
    sshd = new_sshd("MaxStartups 1")
    server = home.server([sshd.entry(connect_timeout_s=5)])
    with socket.create_connection(("127.0.0.1", sshd.port)) as first:
        first.recv(3)           # its place is taken
        error = fails(home.ask(server, "exec_bash", command="echo hi"),
                      "MaxStartups", "box")
        assert "not tried again" not in error
    until("the server takes us", lambda: not home.ask(
        server, "exec_bash", command="echo hi").failed)


def test_server_comes_up(home, sshd):
    """A failure is not held against the host for long."""
    server = home.server([sshd.entry()])
    sshd.stop()
    fails(home.ask(server, "exec_bash", command="echo hi"), "refused")
    sshd.restart()
    until("it is found", lambda: not home.ask(
        server, "exec_bash", command="echo hi").failed, 5 * SLOW)


# Failed logins are not repeated at will.

def test_refused_logins_are_not_hammered(home, sshd, keys):
    server = home.server([sshd.entry(key_file=str(keys("ed25519")))])
    first = home.ask(server, "exec_bash", command="echo hi")
    assert "not tried again" not in fails(first, "refused the login")
    for tool in ["list_sandboxes", "get_active_sandbox"]:
        home.ask(server, tool)
    for _ in range(10):
        result = home.ask(server, "exec_bash", command="echo hi")
        fails(result, "refused the login", "not tried again")
        assert result.seconds < 1 * SLOW
    assert sshd.connections_ever() <= 2


def test_parallel_calls_log_in_once(home, sshd, keys):
    server = home.server([sshd.entry(key_file=str(keys("ed25519")))])
    server.send(*[rsmcp.call(i, "exec_bash", command="true")
                  for i in range(10)])
    for _ in range(10):
        reply = server.message()
        assert "refused the login" in json.dumps(reply)
    assert sshd.connections_ever() <= 2


def test_processes_do_not_hammer_either(home, sshd, account):
    """Ten processes, one after the other, with a wrong password."""
    entry = password_entry(sshd, account, password=TOKEN + "wrong")
    for _ in range(10):
        fails(hello(home, entry), "refused the login")
    assert sshd.count("Failed password") <= 3


def test_failures_of_one_entry_do_not_hold_up_another(home, sshd, keys):
    """The same key, which one of them can open."""
    key = keys("ed25519", SECRET)
    sshd.authorize(public(key))
    shut = sshd.entry("shut", key_file=str(key))
    mute = {**shut, "name": "mute", "key_passphrase_command": ["false"]}
    fails(hello(home, shut), "of shut has a passphrase")
    assert "shut" not in fails(hello(home, mute), "_command of mute ended")
    fails(hello(home, shut), "not tried again", "of shut has a passphrase")
    opened = {**shut, "key_passphrase": SECRET}
    works(hello(home, {**opened, "name": "open"}))
    home.end_masters()
    works(hello(home, opened))      # corrected
    # The login is shared nevertheless.
    assert sshd.logins_ever() == 2
    works(hello(home, {**opened, "name": "too"}))
    assert sshd.logins_ever() == 2


def test_a_key_that_was_mended_is_tried_at_once(home, sshd, keys, tmp_path):
    key = tmp_path / "key"
    entry = sshd.entry(key_file=str(key))
    fails(hello(home, entry), "does not exist")
    shutil.copy(sshd.key, key)
    key.chmod(0o644)
    fails(hello(home, entry), "chmod 600")
    key.chmod(0o600)
    works(hello(home, entry))


def test_dead_server_is_not_hammered(home):
    with listener(lambda connection: connection.close()) as (port, taken):
        server = home.server([{"host": "127.0.0.1", "port": port}])
        begun = time.monotonic()
        for _ in range(10):
            assert home.ask(server, "exec_bash", command="true").failed
        seconds = time.monotonic() - begun
        # 1 s after the first failure, then longer and longer
        assert len(taken) <= 2 + seconds


# ssh itself

def test_no_ssh(home, sshd):
    fails(hello(home, sshd.entry(), env={"PATH": "/nonexistent"}),
          "no ssh", "install", "PATH")


def stand_in(place, text):
    """A program in place of ssh, and the environment that finds it."""
    program = place / "ssh"
    program.write_text("#!/bin/sh\n%sexec %s \"$@\"\n" % (
        text, shutil.which("ssh")))
    program.chmod(0o755)
    return {"PATH": "%s:%s" % (place, os.environ["PATH"])}


OLD = 'echo "OpenSSH_8.2p1 Ubuntu-4, OpenSSL 1.1.1f" >&2; '


@pytest.mark.parametrize("asked", [
    'case "$*" in -V) %sexit;; *-vG*) %sexit 255;; esac\n',
    # One that does not say so by itself.
    'case "$*" in -V) %sexit;; *-vG*) exec 2>/dev/null;; esac\n# %s\n'])
def test_old_ssh(home, sshd, tmp_path, asked):
    fails(hello(home, sshd.entry(), env=stand_in(tmp_path, asked % (OLD, OLD))),
          r"8\.2", r"8\.4")


def test_ssh_is_run_twice_for_a_login(home, sshd, tmp_path):
    calls = tmp_path / "calls"
    env = stand_in(tmp_path, 'echo "$*" >>%s\n' % calls)
    works(hello(home, sshd.entry(), env=env))
    runs = calls.read_text().splitlines()
    assert len(runs) == 2 and "-vG" in runs[0] and "-M" in runs[1]


# Where secrets might be seen

class Watch(threading.Thread):
    """Looks at every process, all the time, for the secret."""

    def __init__(self, known_by=()):
        super().__init__(daemon=True)
        self.known_by = known_by    # command lines that may know it
        self.ending = threading.Event()
        self.found = set()
        self.ssh = set()            # so that we know it did see something

    def look(self, path):
        command = (path / "cmdline").read_bytes()
        if command.startswith(b"ssh\0"):
            self.ssh.add(path.name)
        for name in ("cmdline", "environ"):
            if TOKEN.encode() in (path / name).read_bytes() and \
                    command not in self.known_by:
                self.found.add((name, command))

    def run(self):
        while not self.ending.is_set():
            for path in pathlib.Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    self.look(path)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join()


def test_no_process_shows_a_secret(home, new_sshd, account, keys, tmp_path):
    """The secrets come from a file: nobody has to show them."""
    key = keys("ed25519", SECRET)
    sshd = new_sshd()
    sshd.authorize(public(key))
    config = tmp_path / "config.json"
    config.write_text(json.dumps([
        password_entry(sshd, account, name="password"),
        sshd.entry("passphrase", key_file=str(key), key_passphrase=SECRET),
        password_entry(sshd, account, name="wrong", password=TOKEN + "no",
                       ssh_options=["Compression=yes"])]))
    config.chmod(0o600)
    with Watch() as watch:
        server = home.server(args=["serve", "--config", str(config)])
        for name in ["password", "passphrase"]:
            works(home.ask(server, "exec_bash", command="echo hi",
                           sandbox_name=name))
        fails(home.ask(server, "exec_bash", command="echo hi",
                       sandbox_name="wrong"))
        for name in ["password", "passphrase"]:
            env = home.ask(server, "exec_bash", sandbox_name=name,
                           command="env; ps axeww; set")
            assert not env.failed and TOKEN not in env["stdout"]
    assert watch.ssh and not watch.found


def test_no_child_inherits_a_secret(home, sshd, account):
    """The secret is in the environment of the server, and stays there."""
    server = home.server(
        [password_entry(sshd, account)],
        env={"REMOTE_PASSWORD": SECRET, "REMOTE_KEY_PASSPHRASE": SECRET})
    own = pathlib.Path("/proc/%d/cmdline" % server.pid)
    until("the server runs", lambda: b"remote-sandbox" in own.read_bytes())
    with Watch([own.read_bytes()]) as watch:
        works(home.ask(server, "exec_bash", command="echo hi"))
        home.ask(server, "list_sandboxes", check_resources=True)
        home.ask(server, "get_server_info")
    assert watch.ssh and not watch.found


def test_banner_that_looks_like_an_error(home, sshd, account, tmp_path):
    banner = tmp_path / "banner"
    banner.write_text("\x1b[31mPermission denied (nobody).\n"
                      "REMOTE HOST IDENTIFICATION HAS CHANGED!\n"
                      "Warning: Permanently added 'you' (FOOL) to the list\n")
    sshd.restart("Banner %s" % banner)
    result = works(hello(home, password_entry(sshd, account)))
    assert "FOOL" not in result["host_key_added"]
    home.end_masters()
    result = works(hello(home, password_entry(sshd, account)))
    assert "host_key_added" not in result
    result = fails(hello(home, password_entry(
        sshd, account, password=TOKEN + "wrong",
        ssh_options=["Compression=yes"])), "refused the login",
        "accepts: .*password")
    assert "CHANGED" not in result and "nobody" not in result


# What takes long is begun with the first test and looked at after the last.

class Slow:
    """Calls that wait; answers[id] is (seconds, message)."""

    def __init__(self, home, port):
        self.server = home.server([
            {"name": "vault", "host": "127.0.0.1", "port": port, "user": "x",
             "password_command": ["sleep", "987"]},
            {"name": "mute", "host": "127.0.0.1", "port": port, "user": "x",
             "connect_timeout_s": 1}])
        self.answers = {}
        self.begun = time.monotonic()
        for name in ["vault", "mute"]:
            self.server.send(rsmcp.call(name, "exec_bash", command="true",
                                        sandbox_name=name))
        threading.Thread(target=self.collect, daemon=True).start()

    def collect(self):
        while len(self.answers) < 2 and (line := self.server.line(60 * SLOW)):
            message = json.loads(line)
            self.answers[message["id"]] = (time.monotonic() - self.begun,
                                           message)

    def error(self, name, within):
        until(name + " failed", lambda: name in self.answers, within)
        seconds, message = self.answers[name]
        print("after %.1f s" % seconds)
        assert seconds < within
        assert message["result"]["isError"] is True
        return json.loads(message["result"]["content"][0]["text"])["error"]


@pytest.fixture(scope="module", autouse=True)
def slow():
    home = Home()
    with listener(banner_only) as (port, _):
        yield Slow(home, port)
        home.end()


def test_server_that_stops_after_its_banner(slow):
    error = slow.error("mute", 20 * SLOW)
    assert "mute" in error and "not tried again" not in error


def test_password_command_that_hangs(slow):
    error = slow.error("vault", 35 * SLOW)
    assert "password_command" in error and "time" in error
    until("the command is gone",
          lambda: "sleep" not in [name for _, name
                                  in descendants(slow.server.pid)], 2 * SLOW)
