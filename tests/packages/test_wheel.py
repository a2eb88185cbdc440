"""The wheel, by the commands that users of the Python server know."""

import os
import subprocess
import sys
import zipfile

import pytest

import pack

UV = "uv==0.13.7"


@pytest.fixture(scope="module")
def wheel():
    return pack.find("*.whl")


def make_venv(folder):
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)],
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if made.returncode != 0:
        pytest.skip("no venv can be made here: " + made.stdout[-200:])
    return folder / "bin"


@pytest.fixture(scope="module")
def uv(tmp_path_factory):
    """uv is in no Debian package; pip may know where to get it."""
    found = make_venv(tmp_path_factory.mktemp("uv") / "venv")
    got = subprocess.run([str(found / "pip"), "install", "-q", UV], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if got.returncode != 0:
        pytest.skip("pip cannot install " + UV)
    return found / "uv"


def test_pip_installs_it_it_starts_and_pip_removes_it(wheel, tmp_path):
    found = make_venv(tmp_path / "venv")
    before = sorted((tmp_path / "venv").rglob("*"))
    pack.run(found / "pip", "install", "-q", "--no-index", wheel)
    program = found / pack.NAME
    assert program.read_bytes()[:4] == b"\x7fELF", "an interpreter is between"
    pack.serves(tmp_path, program)
    pack.serves(tmp_path, found / "python", "-m", "remote_sandbox_mcp.server")
    pack.serves(tmp_path, found / "python", "-m", "remote_sandbox_mcp")
    pack.run(found / "pip", "uninstall", "-qy", pack.NAME)
    assert sorted((tmp_path / "venv").rglob("*")) == before


@pytest.fixture
def unpacked(wheel, tmp_path):
    """The package, with the program where its record does not say."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
        program, = (name for name in archive.namelist()
                    if name.endswith("scripts/" + pack.NAME))
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "unpacked" / program).rename(
        tmp_path / "elsewhere" / pack.NAME)
    moved.chmod(0o755)

    def run(*args, path="/nowhere"):
        return subprocess.run(
            [sys.executable, "-m", "remote_sandbox_mcp.server", *args],
            cwd=tmp_path / "unpacked", env={"PATH": path}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    run.folder = str(moved.parent)
    return run


def test_the_module_takes_the_program_in_path_and_passes_all_on(unpacked):
    told = unpacked("version", path=unpacked.folder)
    assert told.stdout.split() == [pack.NAME, pack.VERSION]
    assert unpacked("nonsense", path=unpacked.folder).returncode == 2


def test_the_module_says_so_if_the_program_is_gone(unpacked):
    tried = unpacked()
    assert tried.returncode == 1
    assert "install the package again" in tried.stderr


def test_uv_installs_it_into_a_venv(wheel, uv, tmp_path):
    env = {**os.environ, "UV_CACHE_DIR": str(tmp_path / "cache")}
    pack.run(uv, "venv", "-q", tmp_path / "venv", env=env)
    pack.run(uv, "pip", "install", "-q", "--offline", "--python",
             tmp_path / "venv", wheel, env=env)
    pack.serves(tmp_path, tmp_path / "venv/bin" / pack.NAME)


# As "uvx remote-sandbox-mcp", with the wheel's directory for an index.
def test_uvx_starts_it(wheel, uv, tmp_path):
    pack.serves(tmp_path, uv, "tool", "run", "--no-index", "--find-links",
                wheel.parent, pack.NAME,
                env={"UV_CACHE_DIR": str(tmp_path / "cache")})


def test_uv_installs_it_as_a_tool(wheel, uv, tmp_path):
    env = {"UV_CACHE_DIR": str(tmp_path / "cache"),
           "UV_TOOL_DIR": str(tmp_path / "tools"),
           "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    pack.run(uv, "tool", "install", "-q", "--no-index", "--find-links",
             wheel.parent, pack.NAME, env={**os.environ, **env})
    pack.serves(tmp_path, tmp_path / "bin" / pack.NAME)
