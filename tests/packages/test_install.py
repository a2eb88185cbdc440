"""What "cmake --install" puts where; packagers start from it."""

import pytest

import pack

BUILD = pack.TREE / "build/static"
SKILL = pack.TREE / "skills/remote-sandbox-script-exec"


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    place = tmp_path_factory.mktemp("stage")
    pack.run("cmake", "--install", BUILD, "--prefix", place)
    return place


def test_program_and_manuals_are_where_they_are_looked_for(stage):
    assert (stage / "bin" / pack.NAME).stat().st_mode & 0o111 == 0o111
    for page in ("man1/remote-sandbox-mcp.1", "man5/remote-sandbox-mcp.conf.5",
                 "man7/remote-sandbox-mcp-tools.7"):
        assert (stage / "share/man" / page).stat().st_size > 0


@pytest.mark.parametrize("source, place", [
    (BUILD / "completions/bash",
     "bash-completion/completions/remote-sandbox-mcp"),
    (BUILD / "completions/zsh", "zsh/site-functions/_remote-sandbox-mcp"),
    (BUILD / "completions/fish",
     "fish/vendor_completions.d/remote-sandbox-mcp.fish"),
    *((SKILL / name, "remote-sandbox-mcp/skills/%s/%s" % (SKILL.name, name))
      for name in ("SKILL.md", "references/remote-runbook.md",
                   "agents/openai.yaml")),
])
def test_what_shells_and_agents_look_for_is_there(stage, source, place):
    installed = (stage / "share" / place).read_bytes()
    assert installed and installed == source.read_bytes()


def test_it_starts_from_there(stage, tmp_path):
    pack.serves(tmp_path, stage / "bin" / pack.NAME)
