"""Completion: what the program offers, and what real shells make of it."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

import rsmcp

NAME = "remote-sandbox-mcp"
ENTRIES = [{"host": "gpu1"}, {"name": "gpu2", "host": "192.0.2.7"}]


@pytest.fixture
def offers(home):
    """What is offered for the last of some words: word by word."""
    def ask(*words):
        done = home.command("completion", "--words", "--", *words,
                            entries=ENTRIES)
        assert done.returncode == 0 and done.stderr == "", done
        return [line.partition("\t")[0] for line in done.stdout.splitlines()]

    return ask


@pytest.mark.parametrize("words, expected", [
    (["doc"], ["doctor"]),
    (["transfer-w"], []),           # not for people
    (["doctor", ""], ["gpu1", "gpu2"]),
    (["doctor", "gpu1", ""], []),
    (["doctor", "--json", "x"], []),
    (["doctor", "--"], ["--config", "--json", "--help"]),
    (["help", "set"], ["setup"]),
    (["tools", "get_server"], ["get_server_info"]),
    (["call", "--config", "/none", "exec_bash_background_w"],
     ["exec_bash_background_watch"]),
    (["call", "exec_bash", "comm"], ["command="]),
    (["call", "exec_bash", "command=x", "--json", "cw"], ["cwd="]),
    (["call", "exec_bash", "sandbox_name=g"],
     ["sandbox_name=gpu1", "sandbox_name=gpu2"]),
    (["call", "exec_bash", "on_timeout=b"], ["on_timeout=background"]),
    (["call", "sync_local_to_remote", "dry_run="],
     ["dry_run=true", "dry_run=false"]),
    (["call", "exec_bash", "cwd="], []),
    (["sync", "gpu"], ["gpu1:", "gpu2:"]),
    (["sync", ".", "gpu2"], ["gpu2:"]),
    (["watchdog", ""], ["install", "uninstall", "status", "logs"]),
    (["watches", "--status", "c"], ["completed", "cancelled"]),
    (["setup", "--client", "c"], ["claude-code", "codex", "cursor"]),
    (["setup", "--remove", "--sandbox", ""], ["gpu1", "gpu2"]),
    (["setup", "--config", ""], []),
    (["completion", ""], ["bash", "zsh", "fish"]),
    (["no-such-command", ""], []),
])
def test_words(offers, words, expected):
    assert offers(*words) == expected


def test_hosts_of_the_ssh_configuration(home, offers):
    (home.home / ".ssh/config").write_text(
        'Host a "b c" *.d !e\n\tHost=f\nMatch host g\nHOST a # h\n')
    assert offers("setup", "--host", "") == ["a", "b c", "f"]


def test_every_option_is_offered(home, offers):
    """Each that a command's getopt table has is in its help text."""
    source = pathlib.Path(__file__).resolve().parents[2] / "src/cli"
    checked = 0
    for path in source.glob("*.c"):
        text = path.read_text()
        names = re.findall(r'^\t\.name = "([a-z-]+)",', text, re.M)
        tables = re.findall(r'{ "([a-z-]+)", \w+_argument,', text)
        if len(names) != 1 or names[0] in ("transfer-worker", "completion"):
            continue
        assert set(tables) <= {word[2:] for word in offers(names[0], "--")}, \
            names[0]
        checked += len(tables)
    assert checked > 20


def test_wrong_usage(home):
    assert home.command("completion").returncode == 2
    assert home.command("completion", "csh").returncode == 2


# --- shells ----------------------------------------------------------------

def program(home):
    """A directory with the program under its name."""
    place = home.path / "bin"
    place.mkdir()
    (place / NAME).symlink_to(os.path.abspath(rsmcp.SERVER))
    return place


def environment(home):
    return rsmcp.environment(
        home.home, **home.env(ENTRIES), TERM="dumb", PS1="> ",
        PATH="%s:%s" % (program(home), os.environ["PATH"]))


class Shell:
    """An interactive shell in a terminal."""

    def __init__(self, home, *argv):
        env = environment(home)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home.home)
            os.execvpe(argv[0], argv, env)
        self.said = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, words):
        end = time.monotonic() + rsmcp.PATIENCE_S
        while words not in self.said:
            assert time.monotonic() < end, self.said
            if select.select([self.fd], [], [], 1)[0]:
                self.said += os.read(self.fd, 4096).decode(errors="replace")

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def shell(home):
    started = []

    def start(*argv):
        if not shutil.which(argv[0]):
            pytest.skip("there is no " + argv[0])
        started.append(Shell(home, *argv))
        return started[-1]

    yield start
    for one in started:
        one.end()


# What is typed, and what stands on the line afterwards; the line is given to
# "echo" then, so that the shell tells what it has.
TYPED = [
    (NAME + " doct\t", NAME + " doctor"),
    (NAME + " watchdog unin\t", NAME + " watchdog uninstall"),
    (NAME + " doctor gpu2\t --js\t", NAME + " doctor gpu2 --json"),
    (NAME + " call exec_bash sandbox_name=gpu1\t",
     NAME + " call exec_bash sandbox_name=gpu1"),
    (NAME + " call exec_bash comm\tx", NAME + " call exec_bash command=x"),
    (NAME + " sync . gpu2\tdir", NAME + " sync . gpu2:dir"),
    (NAME + " tools get_serv\t", NAME + " tools get_server_info"),
    (NAME + " setup --client vs\t", NAME + " setup --client vscode"),
    (NAME + " serve --config file-\t", NAME + " serve --config file-one"),
]


def check_line(shell, number, typed, expected):
    """In a shell where ^A goes to the front of the line and ^E to its end."""
    shell.type("%s\x01echo '%d<'\x05'>'\r" % (typed, number))
    shell.until("\n%d<%s" % (number, expected))


def test_bash(home, shell):
    (home.home / "file-one").touch()
    bash = shell("bash", "--norc", "--noprofile", "-i")
    bash.type("source <(%s completion bash); bind 'set bell-style none'; "
              "bind 'set enable-bracketed-paste off'; echo rea''dy\r" % NAME)
    bash.until("\nready")
    for number, (typed, expected) in enumerate(TYPED):
        check_line(bash, number, typed, expected)


def test_zsh(home, shell):
    (home.home / "file-one").touch()
    zsh = shell("zsh", "-f", "-i")
    zsh.type("autoload -U compinit; compinit -u -D; bindkey -e; "
             "source <(%s completion zsh); echo rea''dy\r" % NAME)
    zsh.until("\nready")
    for number, (typed, expected) in enumerate(TYPED):
        check_line(zsh, number, typed, expected)


def test_zsh_by_its_function_directory(home, shell, tmp_path):
    """As it is installed: a file of that name, found by compinit."""
    script = home.command("completion", "zsh").stdout
    (tmp_path / ("_" + NAME)).write_text(script)
    zsh = shell("zsh", "-f", "-i")
    zsh.type("fpath=(%s $fpath); autoload -U compinit; "
             "compinit -u -D; bindkey -e; echo rea''dy\r"
             % tmp_path)
    zsh.until("\nready")
    check_line(zsh, 0, NAME + " doct\t", NAME + " doctor")
    check_line(zsh, 1, NAME + " doctor gpu2\t", NAME + " doctor gpu2")


def test_fish(home):
    if not shutil.which("fish"):
        pytest.skip("there is no fish")
    env = environment(home)

    def complete(line):
        done = subprocess.run(
            ["fish", "--no-config", "-c",
             "%s completion fish | source; complete -C %s"
             % (NAME, "'%s'" % line)],
            cwd=home.home, env=env, text=True, capture_output=True,
            timeout=rsmcp.PATIENCE_S)
        assert done.returncode == 0, done
        return [word.partition("\t")[0] for word in done.stdout.splitlines()]

    (home.home / "file-one").touch()
    assert complete(NAME + " doct") == ["doctor"]
    assert complete(NAME + " doctor ") == ["gpu1", "gpu2"]
    assert complete(NAME + " call exec_bash sandbox_name=gpu1") \
        == ["sandbox_name=gpu1"]
    assert complete(NAME + " sync . gpu2") == ["gpu2:"]
    assert complete(NAME + " serve --config file-") == ["file-one"]
