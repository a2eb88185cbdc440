"""The MCP bundle, by its own tool."""

import json

import pytest

import pack

TOOL = pack.TREE / "packaging/mcpb/tool/node_modules/.bin/mcpb"


@pytest.fixture
def bundle(tmp_path):
    """Its directory, unpacked as a client does it."""
    archive = pack.find("*.mcpb")
    pack.run(TOOL, "unpack", archive, tmp_path / "bundle")
    return tmp_path / "bundle"


def test_its_tool_finds_it_valid(bundle):
    pack.run(TOOL, "validate", bundle / "manifest.json")


def test_it_starts_as_its_manifest_says(bundle, tmp_path):
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["version"] == pack.VERSION
    start = manifest["server"]["mcp_config"]
    values = {"${__dirname}": str(bundle)}
    for name, field in manifest["user_config"].items():
        values["${user_config.%s}" % name] = field["default"]

    def fill(text):
        for name, value in values.items():
            text = text.replace(name, value)
        assert "${" not in text, text
        return text

    env = {name: fill(value) for name, value in start["env"].items()}
    pack.serves(tmp_path, fill(start["command"]), *start["args"], env=env)
