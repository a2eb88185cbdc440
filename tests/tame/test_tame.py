"""Texts that tame_command() lets through leave a real bash as it was.

    RSMCP_TAME      the program that says what it thinks of a text (says.c)
    RSMCP_LONG      many more texts, with a seed of their own
    RSMCP_SEED      a seed, to have the texts of a run again

Texts are put together at random from what bash knows, then damaged at random;
those that are let through are run.  Their shell (state.sh) may have another
directory then, and nothing else.
"""

import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BASH = shutil.which("bash")
LONG = bool(os.environ.get("RSMCP_LONG"))
TEXTS = 10000 if LONG else 500     # to be run
SEED = int(os.environ.get("RSMCP_SEED")
           or (random.SystemRandom().randrange(1 << 32) if LONG else 1))

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/fd"),
                                reason="there is no /proc here")

# What a shell does not keep for long, where it is, and what it counts.
PASSING = re.compile(
    r"^(_|BASHPID|BASH_(ARG[CV]|CMDS|COMMAND|LINENO|SOURCE|SUBSHELL)|DIRSTACK|"
    r"EPOCH\w+|FUNCNAME|LINENO|OLDPWD|PIPESTATUS|PWD|RANDOM|SECONDS|SRANDOM)"
    r"=.*\n", re.M)

PROGRAMS = ["cat", "head", "ls", "sort", "tr", "wc"]
HARMLESS = ["cd", "echo", "false", "pwd", "true"]

# Texts that change their shell: what each builtin does, and the ways to write
# it that are no plain word in the place of a command.
CHANGES = [
    "trap x EXIT", "set -x", "set -- q", "shift", "shopt -s extglob",
    "alias a=b", "umask 0", "exit 3", "exec true", "exec >f", "exec 5<f",
    "eval x=1", "builtin set -f", "command set -f", ". ./s", "source s",
    "declare x=1", "typeset x=1", "export x=1", "readonly x=1", "let x=1",
    "read x", "mapfile x", "readarray x", "getopts a x", "printf -v x y",
    "unset HOME", "enable -n echo", "complete -W a x", "coproc cat",
    "ulimit -n 99", "test -v x[y=1]", "x=1", "x=1; ls", "x+=1", "x[1]=2",
    "f() { ls; }", "function f { ls; }", "for x in a; do ls; done",
    "select x in a; do ls; done", "sleep 0.3 &", "ls & sleep 0.3 &",
    "{ set -f; }", "! set -f", "if set -f; then ls; fi", "ls; ((x=1))",
    "while set -f; do break; done", "until set -f; do ls; done",
    "case a in a) set -f; esac", "time set -f", "[[ -v x[y=1] ]]",
    "[ -v x[y=1] ]", ": ${x=1}", "echo ${x=1}", "echo $((x=1))",
    "echo \"${x:=1}\"", "echo $[x=1]", "'set' -f", "s\\et -f", "\"set\" -f",
    "s''et -f", "2>&1 set -f", ">f set -f", "<f >f set -f", "ls\nset -f",
    "ls #\nset -f", "echo {x}>f", "echo 12>&1-", "`echo set` -f", "$(echo set) -f", "$'set' -f",
    "x=1 y=2", "cat <<x; set -f\nx", "cat <<<x && set -f", "ls |& cat; set -f",
    "ls && set -f", "ls || set -f; set -f", "echo a;set -f", "\tset -f",
]
ARGUMENTS = ["a", "b c", "-n", "-x", "x=1", "f", "d", "x[y=1]", "~", "EXIT",
             "'a b'", "\"a b\"", "'$x'", "\"'\"", "*", "?", "[a-f]", "%s",
             "+f", "-v x", "--", "1", "5", "$x", "#", "!"]
REDIRECTIONS = [">f", "2>&1", ">>f", "<f", "<>f", ">&f", ">&1", "2>&1-", "1>&-",
                "<&5", "3>f", "5<f", "&>f", ">|f", "0<&-", "<<<x", "{x}>f"]
JOINTS = [";", "&&", "||", "|", "&", "|&", "\n", ";;", " "]
CHARACTERS = " \t\n'\"`$\\;|&<>(){}[]*?~!#=+-.,:@%^_015afstx"

# Some of bash's words do more than to change a shell.
NEVER = ("kill", "suspend", "logout")
# A path that leads out of the directory of the test.
OUTSIDE = re.compile(r"\.\.|(?<![\w.~])/|/(?![\w.])|~\w")


def bash(*args, **options):
    return subprocess.run([BASH, "--norc", *args], check=True, timeout=900,
                          stdout=subprocess.PIPE, **options).stdout


BUILTINS = [word for word in bash("-c", "compgen -b; compgen -k").decode().split()
            if word not in NEVER]


class Texts:
    """At random, and again the same for the same seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def command(self):
        pick = self.random.choice
        kind = self.random.random()
        if kind < 0.2:
            return pick(CHANGES)
        words = [pick(PROGRAMS + HARMLESS) if kind < 0.9 else pick(BUILTINS)]
        while self.random.random() < 0.7:
            words.append(pick(ARGUMENTS if self.random.random() < 0.7
                              else REDIRECTIONS))
        if self.random.random() < 0.05:
            self.random.shuffle(words)
        return " ".join(words)

    def damage(self, text):
        at = self.random.randrange(len(text) + 1)
        kept = at + self.random.randrange(2)
        return text[:at] + self.random.choice(["", *CHARACTERS]) + text[kept:]

    def text(self):
        text = self.command()
        while self.random.random() < 0.5:
            text += self.random.choice(JOINTS) + self.command()
        while text and self.random.random() < 0.4:
            text = self.damage(text)
        return text

    def safe(self):
        while True:
            text = self.text()
            if not OUTSIDE.search(text) and not any(
                    word in text for word in NEVER):
                return text


def says(texts):
    """Which of them are tame."""
    said = subprocess.run(
        [os.environ["RSMCP_TAME"]], input="".join(
            text + "\0" for text in texts).encode(),
        stdout=subprocess.PIPE, check=True, timeout=60).stdout.split()
    return [text for text, word in zip(texts, said) if word == b"tame"]


@pytest.fixture
def changed(tmp_path):
    """Of some texts, those that change the bash that runs them, with what is
    different."""
    home = tmp_path / "a/b/c"
    (home / "bin").mkdir(parents=True)
    for name in (*PROGRAMS, "sleep"):
        (home / "bin" / name).symlink_to(shutil.which(name))

    def fresh():
        """The files that a text may find."""
        work = home / "work"
        shutil.rmtree(work, ignore_errors=True)
        (work / "d").mkdir(parents=True)
        (work / "s").write_text("set -f\n")
        return work

    def run(texts):
        said = bash(HERE / "state.sh", cwd=fresh(), input="".join(
            text + "\0" for text in ["true", *texts]).encode(),
            env={"HOME": str(home), "PATH": str(home / "bin"), "LC_ALL": "C"},
            start_new_session=True)
        states = said.decode(errors="replace").split("\0")[:-1]
        assert len(states) == len(texts) + 1
        usual, *states = [PASSING.sub("", state).splitlines()
                          for state in states]
        assert len(usual) > 100
        return {text: [line for line in usual if line not in state]
                + [line for line in state if line not in usual]
                for text, state in zip(texts, states) if state != usual}

    return run


def test_a_change_is_seen(changed):
    """Else the next one could not fail."""
    found = changed(CHANGES)
    assert [text for text in CHANGES if text not in found] == []


def test_every_word_of_bash_is_known():
    """Also to a bash that is newer than the list."""
    tame = says([word + " x" for word in BUILTINS])
    assert sorted(tame) == [word + " x" for word in HARMLESS]


def test_what_is_tame_changes_nothing(changed):
    print("RSMCP_SEED=%d" % SEED)
    source = Texts(SEED)
    seen = set()
    while len(seen) < TEXTS:
        texts = {source.safe(): None for _ in range(1000)}
        tame = [text for text in says(texts) if text not in seen]
        assert len(tame) > 50
        assert changed(tame) == {}
        seen.update(tame)
    print(len(seen), "texts")
