"""What is only described: server.json, the Homebrew formula, the plugin."""

import hashlib
import json
import re
import tarfile
import zipfile

import pack


def described():
    return json.loads(pack.find("server.json").read_text())


# The fields that the registry's schema of 2025-12-11 asks for, and its limits.
def test_server_json_has_what_a_registry_asks_for():
    server = described()
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert 1 <= len(server["description"]) <= 100
    assert 1 <= len(server["title"]) <= 100
    assert server["$schema"].endswith("/2025-12-11/server.schema.json")
    assert {package["registryType"] for package in server["packages"]} == {
        "npm", "pypi"}
    for package in server["packages"]:
        assert package["identifier"] == pack.NAME
        assert package["transport"] == {"type": "stdio"}
        assert all(variable["name"] and variable["description"]
                   for variable in package["environmentVariables"])


def test_server_json_names_no_registry():
    text = pack.find("server.json").read_text()
    assert "registryBaseUrl" not in text


def test_all_versions_are_that_of_the_build():
    server = described()
    assert server["version"] == pack.VERSION
    assert {package["version"] for package in server["packages"]} == {
        pack.VERSION}


def test_the_plugin_has_that_version_too():
    plugin = json.loads((pack.TREE / ".claude-plugin/plugin.json").read_text())
    assert plugin["version"] == pack.VERSION


def test_the_npm_package_carries_the_same_name():
    archive = pack.find("remote-sandbox-mcp-%s.tgz" % pack.VERSION)
    with tarfile.open(archive) as package:
        about = json.load(package.extractfile("package/package.json"))
    assert about["mcpName"] == described()["name"]
    assert about["version"] == pack.VERSION
    assert set(about["optionalDependencies"].values()) == {pack.VERSION}


# By this line the registry knows that a package of PyPI is its publisher's.
def test_the_wheel_says_that_name_in_its_description():
    with zipfile.ZipFile(pack.find("*.whl")) as wheel:
        about = wheel.read("remote_sandbox_mcp-%s.dist-info/METADATA"
                           % pack.VERSION).decode()
    assert "mcp-name: %s " % described()["name"] in about.partition("\n\n")[2]


def test_the_formula_is_ruby():
    pack.needs("ruby")
    assert "Syntax OK" in pack.run("ruby", "-wc",
                                   pack.find("remote-sandbox-mcp.rb"))


def test_the_formula_names_the_source_archive_by_its_sum():
    formula = pack.find("remote-sandbox-mcp.rb").read_text()
    archive = pack.find("remote-sandbox-mcp-%s.tar.gz" % pack.VERSION)
    assert 'sha256 "%s"' % hashlib.sha256(
        archive.read_bytes()).hexdigest() in formula
    assert archive.name in re.search(r'url "(.*)"', formula)[1]
    assert "@" not in re.sub(r"#.*", "", formula)
