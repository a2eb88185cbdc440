"""Each check of our own fails on a tree with the one thing it looks for, and
says where; it passes on the same tree without that thing."""

import contextlib
import importlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
from unittest import mock

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))


def check(script, root):
    module = importlib.import_module(script.removesuffix(".py"))
    output = io.StringIO()
    with mock.patch.object(sys, "argv", [script, str(root)]), \
            contextlib.redirect_stdout(output):
        status = module.main()
    return status, output.getvalue()


def plant(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def passes(script, root):
    status, output = check(script, root)
    assert (status, output) == (0, "")


def fails(script, root, *expected):
    status, output = check(script, root)
    assert status == 1
    assert output.count("\n") == len(expected)
    for line in expected:
        assert line in output


# README

README = """# Name

Text with `word` and a [file](docs/x.md).

```sh
run it    # a comment
```

## Part

It takes 1.5 s.

| `a` | b |
"""


@pytest.fixture
def readmes(tmp_path):
    plant(tmp_path, "docs/x.md", "")
    plant(tmp_path, "README.md", README)
    return tmp_path


def translated(root, *changes):
    text = README.replace("Text with", "Texte avec")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    plant(root, "README.zh-CN.md", text)


def test_a_translation_has_other_prose_and_comments(readmes):
    translated(readmes, ("a comment", "un commentaire"), ("Part", "Partie"))
    passes("check_readme.py", readmes)


@pytest.mark.parametrize("old, new, told", [
    ("run it", "run that", "has other code blocks"),
    ("`word`", "word", "lacks word of"),
    ("Texte", "`plus`", "has plus, which"),
    ("docs/x.md", "docs/y.md", "lacks docs/x.md"),
    ("| `a` | b |\n", "| `a` | b |\n| c | d |\n", "has other rows"),
    ("1.5 s", "1.4 s", "has other figures"),
    ("## Part", "### Part", "is a section of another level"),
    ("## Part", "## More\n\n## Part", "has 3 sections"),
])
def test_a_translation_that_differs_is_told(readmes, old, new, told):
    translated(readmes, (old, new))
    status, output = check("check_readme.py", readmes)
    assert status == 1
    assert told in output


def test_a_link_of_the_readme_leads_somewhere(readmes):
    translated(readmes)
    (readmes / "docs/x.md").unlink()
    fails("check_readme.py", readmes, "README.md:1: there is no docs/x.md")


# Layers

@pytest.fixture
def layers(tmp_path):
    for folder in ("base", "config", "store", "ssh", "sync", "job", "watch",
                   "tools", "mcp", "cli"):
        plant(tmp_path, "src/%s/x.h" % folder, "int %s_x(void);\n" % folder)
    return tmp_path


@pytest.mark.parametrize("user, used", [
    ("ssh", "base"), ("ssh", "ssh"), ("cli", "base"), ("mcp", "tools"),
    ("config", "store"), ("store", "config"), ("sync", "job"),
    ("job", "sync"), ("cli", "mcp"),
])
def test_an_include_may_point_down_or_sideways(layers, user, used):
    plant(layers, "src/%s/y.c" % user, '#include "%s/x.h"\n' % used)
    passes("check_layers.py", layers)


@pytest.mark.parametrize("user, used", [
    ("base", "config"), ("config", "ssh"), ("ssh", "sync"), ("job", "watch"),
    ("watch", "tools"), ("tools", "mcp"), ("tools", "cli"), ("mcp", "cli"),
    ("base", "mcp"),
])
def test_an_include_may_not_point_up(layers, user, used):
    plant(layers, "src/%s/y.c" % user,
          '/* one\n * two */\n#include <stdio.h>\n#include "%s/x.h"\n' % used)
    fails("check_layers.py", layers, "src/%s/y.c:4: " % user)


def test_an_include_in_a_comment_is_none(layers):
    plant(layers, "src/base/y.c", '/*\n#include "mcp/x.h"\n*/\n')
    passes("check_layers.py", layers)


def test_a_string_does_not_hide_an_include(layers):
    plant(layers, "src/base/y.c",
          'const char *glob = "src/*";\n#include "mcp/x.h"\n/* end */\n')
    fails("check_layers.py", layers, "src/base/y.c:2: ")


def test_includes_go_by_the_path_from_src(layers):
    plant(layers, "src/ssh/y.c", '#include "x.h"\n#include "../base/x.h"\n')
    fails("check_layers.py", layers, "src/ssh/y.c:1: ", "src/ssh/y.c:2: ")


def test_a_folder_that_is_no_layer_is_named(layers):
    plant(layers, "src/misc/y.c", '#include "base/x.h"\n')
    fails("check_layers.py", layers, "src/misc is no layer")


def test_a_library_stays_in_its_home(layers):
    plant(layers, "src/store/y.c", "#include <sqlite3.h>\n")
    passes("check_layers.py", layers)
    plant(layers, "src/tools/y.c", "#include <sqlite3.h>\n")
    fails("check_layers.py", layers, "src/tools/y.c:1: ")


# Calls

@pytest.mark.parametrize("function", [
    "strcpy", "strcat", "sprintf", "vsprintf", "gets", "atoi", "atol",
    "strtok", "system", "popen", "alloca", "tmpnam", "mktemp",
])
def test_a_banned_function_is_found_anywhere(tmp_path, function):
    call = "void f(void)\n{\n\t%s(a, b);\n}\n" % function
    plant(tmp_path, "src/base/x.c", call)
    plant(tmp_path, "tests/unit/x.c", call)
    fails("check_calls.py", tmp_path,
          "src/base/x.c:3: %s()" % function,
          "tests/unit/x.c:3: %s()" % function)


@pytest.mark.parametrize("function", [
    "malloc", "calloc", "realloc", "strdup",
])
def test_memory_comes_from_one_file(tmp_path, function):
    call = "void *f(void)\n{\n\treturn %s (x);\n}\n" % function
    plant(tmp_path, "src/base/mem.c", call)
    plant(tmp_path, "tests/unit/x.c", call)
    passes("check_calls.py", tmp_path)
    plant(tmp_path, "src/tools/x.c", call)
    fails("check_calls.py", tmp_path, "src/tools/x.c:3: %s()" % function)


@pytest.mark.parametrize("use", [
    'printf("x");', 'vprintf("x", ap);', 'puts("x");', "putchar('x');",
    "fwrite(p, 1, n, stdout);", 'fprintf(stdout, "x");', "fflush(stdout);",
    "write(1, p, n);", "write( 1 , p, n);", 'dprintf(1, "x");',
    "write(STDOUT_FILENO, p, n);", "dup2(fd, STDOUT_FILENO);",
])
def test_stdout_belongs_to_the_frame_writer_and_the_cli(tmp_path, use):
    call = "void f(void)\n{\n\t%s\n}\n" % use
    for allowed in ("src/mcp/frame.c", "src/mcp/frame_out.c",
                    "src/cli/tools.c", "tests/unit/x.c"):
        plant(tmp_path, allowed, call)
    passes("check_calls.py", tmp_path)
    plant(tmp_path, "src/mcp/rpc.c", call)
    fails("check_calls.py", tmp_path, "src/mcp/rpc.c:3: ")


@pytest.mark.parametrize("harmless", [
    "/* never strcpy(a, b) or printf(x) to stdout */",
    "// system(x); puts(x);",
    "// goes on \\\n system(x);",
    'const char *s = "sprintf(a) \\" stdout";',
    "char c = '\"'; /* strcpy(a) */ char d = '\"';",
    "int n = xmalloc(3) + my_system(2) + fprintf(stderr, x);",
    "int n = ops->system(1) + ops.popen(2) + system_of(3);",
    "snprintf(a, n, x); vsnprintf(a, n, x, ap);",
    "int f(const char *, ...) __attribute__((format(printf, 1, 2)));",
    "void *g(int) __attribute__((malloc(free, 1)));",
    "write(10, p, n); write(out, p, 1);",
])
def test_comments_literals_and_namesakes_are_left_alone(tmp_path, harmless):
    plant(tmp_path, "src/base/x.c", harmless + "\n")
    passes("check_calls.py", tmp_path)


def test_code_after_a_comment_is_looked_at(tmp_path):
    plant(tmp_path, "src/base/x.c",
          '/* "a */ int a = atoi(s); // x\nint b = atoi("//");\n')
    fails("check_calls.py", tmp_path,
          "src/base/x.c:1: atoi()", "src/base/x.c:2: atoi()")


# Text.  The findings are put together here, so that this file has none.

def test_a_lock_file_records_no_download_address(tmp_path):
    plant(tmp_path, "a/package-lock.json", '{\n "version": "1"\n}\n')
    plant(tmp_path, "a/other.json", '{ "resolved": true }\n')
    passes("check_text.py", tmp_path)
    plant(tmp_path, "a/package-lock.json", '{\n "resolved": "x"\n}\n')
    fails("check_text.py", tmp_path, "a/package-lock.json:2: ")


def test_no_file_names_a_registry(tmp_path):
    plant(tmp_path, "a.md", "See the registry of your choice.\n")
    passes("check_text.py", tmp_path)
    plant(tmp_path, "a.md", "\nhttps:" + "//npm.registry.example/x\n")
    fails("check_text.py", tmp_path, "a.md:2: ")


@pytest.mark.parametrize("folder", ["root", "work"])
def test_no_file_names_a_path_of_one_machine(tmp_path, folder):
    plant(tmp_path, "a.md", "a/{0}/b ~/{0}/b {0}/b ./{0}/\n".format(folder))
    passes("check_text.py", tmp_path)
    plant(tmp_path, "a.md", "cd /" + folder + "/x\n")
    fails("check_text.py", tmp_path, "a.md:1: path of one machine")


# Proof: tests that documents name

@pytest.fixture
def documents(tmp_path):
    plant(tmp_path, "tests/e2e/test_a.py", "def test_b(x):\n    pass\n")
    plant(tmp_path, "tests/unit/test_a.c", "static void\nb(void **s)\n{\n}\n")
    plant(tmp_path, "tests/fuzz/fuzz_a.c", "int x;\n")
    plant(tmp_path, "docs/x.md", "See `test_a.py::test_b`.\n\n"
          "| risk | test |\n| --- | --- |\n"
          "| r | `test_a.c::b`, `fuzz_a.c` |\n\n| other | table |\n")
    passes("check_proof.py", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [
    "test_z.py::test_b", "test_a.py::test_z", "test_a.c::z", "fuzz_z.c",
    "test_a.py::b",
])
def test_a_test_that_is_named_has_to_be_there(documents, name):
    plant(documents, "docs/y.md", "\nAs `%s` shows.\n" % name)
    fails("check_proof.py", documents, "docs/y.md:2: ")


def test_every_row_of_a_table_of_tests_names_one(documents):
    plant(documents, "docs/y.md", "| risk | test |\n| --- | --- |\n"
          "| r | `test_a.c::b` |\n| s | somewhere |\n")
    fails("check_proof.py", documents, "docs/y.md:4: this row names no test")


# Static analysis, and that a clean file is not looked at twice

def analyse(analyser, root):
    done = subprocess.run(
        [sys.executable, SCRIPTS / "check_static.py", analyser,
         "build/dev/compile_commands.json"], cwd=root,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("analyser, program, finding", [
    ("cppcheck", "cppcheck", "i = a[N - 1];"),
    ("clang-tidy", "clang-tidy", "memset(a, N, 8);"),
    ("analyzer", "clang-tidy", "i = a[N - 1];"),
])
def test_an_analyser_looks_at_what_changed(tmp_path, analyser, program,
                                           finding):
    if shutil.which(program) is None:
        pytest.skip(program + " is not installed")
    shutil.copy(SCRIPTS.parent / ".clang-tidy", tmp_path)
    plant(tmp_path, "src/base/x.h", "#define N 4\n")
    for name in ("good", "other"):
        plant(tmp_path, "src/base/%s.c" % name,
              'int %s(void);\nint\n%s(void)\n{\n\treturn 1;\n}\n'
              % (name, name))
    use = '#include <string.h>\n#include "base/x.h"\nint f(int i);\nint\n' \
        "f(int i)\n{\n\tint a[4] = { i, 0, 0, 0 };\n" \
        "\t%s\n\treturn i + a[0];\n}\n" % finding
    plant(tmp_path, "src/base/x.c", use)
    plant(tmp_path, "build/dev/compile_commands.json", json.dumps([
        {"directory": str(tmp_path / "build/dev"),
         "command": "gcc -I%s -c %s" % (tmp_path / "src", path),
         "file": str(path)}
        for path in sorted((tmp_path / "src/base").glob("*.c"))]))

    status, output = analyse(analyser, tmp_path)
    assert status == 0 and "3 of 3 files looked at, 0 with" in output
    status, output = analyse(analyser, tmp_path)
    assert status == 0 and "0 of 3 files looked at" in output

    # A header changes, and with it the one file that includes it.
    plant(tmp_path, "src/base/x.h", "#define N 999\n")
    for _ in range(2):      # a finding is not forgotten
        status, output = analyse(analyser, tmp_path)
        assert status == 1 and "1 of 3 files looked at, 1 with" in output
        assert "x.c:8" in output


# The steps of lint.sh that call a tool of others

MAN = """.Dd January 1, 2026
.Dt X 1
.Os
.Sh NAME
.Nm x
.Nd a page
.Sh DESCRIPTION
Text.
"""


@pytest.mark.parametrize("step, tool, name, good, bad", [
    ("format", "clang-format", "src/base/x.c", "int x;\n", "int  x ;\n"),
    ("format", "clang-format", "tests/unit/x.h", "int x;\n", "int  x ;\n"),
    ("shell", "shellcheck", "scripts/x.sh", "#!/bin/sh\necho\n",
     "#!/bin/sh\necho $1\n"),
    ("shell", "shellcheck", "tests/a/b/x.sh", "#!/bin/sh\necho\n",
     "#!/bin/sh\necho $1\n"),
    ("shell", "shellcheck", "dev", "#!/bin/sh\necho\n",
     "#!/bin/sh\n[[ a ]]\n"),
    ("man", "mandoc", "man/x.1", MAN, MAN + ".Em\n"),
    ("man", "mandoc", "build/dev/man/x.1", MAN, MAN + ".Em\n"),
])
def test_a_step_of_lint_fails(tmp_path, step, tool, name, good, bad):
    if shutil.which(tool) is None:
        pytest.skip(tool + " is not installed")
    shutil.copy(SCRIPTS.parent / ".clang-format", tmp_path)
    for script in ("dev", ".ci/run"):
        plant(tmp_path, script, "#!/bin/sh\n:\n")
    plant(tmp_path, "tests/x.c", "int x;\n")
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPTS / "lint.sh", tmp_path / "scripts")

    def lint():
        return subprocess.run([tmp_path / "scripts/lint.sh", step],
                              stdout=subprocess.PIPE, text=True, check=False)
    plant(tmp_path, name, good)
    done = lint()
    assert (done.returncode, done.stdout.split()) == (0, ["ok", step])
    plant(tmp_path, name, bad)
    done = lint()
    assert done.returncode == 1
    assert done.stdout.startswith("FAILED  " + step)
    assert name.rpartition("/")[2] in done.stdout


# What git knows decides which files are looked at.

@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_ignored_and_deleted_files_are_not_looked_at(tmp_path):
    def git(*words):
        subprocess.run(["git", "-C", tmp_path, *words], check=True,
                       env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    bad = "int x = atoi(s);\n"
    git("init", "-q")
    plant(tmp_path, ".gitignore", "gone\n")
    plant(tmp_path, "src/base/gone/x.c", bad)
    plant(tmp_path, "src/base/old.c", bad)
    git("add", "src/base/old.c")
    (tmp_path / "src/base/old.c").unlink()
    passes("check_calls.py", tmp_path)
    plant(tmp_path, "src/base/new.c", bad)
    fails("check_calls.py", tmp_path, "src/base/new.c:1: ")
