"""tap.py records what was said; check.py finds what is wrong in it."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
SCHEMAS = os.environ.get("MCP_SCHEMA_DIR")
needs_schemas = pytest.mark.skipif(
    not SCHEMAS, reason="MCP_SCHEMA_DIR does not name the protocol's schemas")

INFO = {"name": "remote-sandbox", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOOL = {
    "name": "count",
    "description": "Counts.",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "required": ["n"],
                     "properties": {"n": {"type": "integer"}}},
}
COUNTED = {"content": [{"type": "text", "text": '{"n":1}'}],
           "structuredContent": {"n": 1}}
CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


def ask(request_id, method, **params):
    return ">", {"jsonrpc": "2.0", "id": request_id, "method": method,
                 "params": params}


def modern(request_id, method, _meta=None, **params):
    return ask(request_id, method, _meta={**ENVELOPE, **(_meta or {})},
               **params)


def cancel(request_id):
    return ">", {"jsonrpc": "2.0", "method": "notifications/cancelled",
                 "params": {"requestId": request_id}}


def answer(request_id, result):
    return "<", {"jsonrpc": "2.0", "id": request_id, "result": result}


def fail(request_id, code, **more):
    return "<", {"jsonrpc": "2.0", "id": request_id,
                 "error": {"code": code, "message": "No.", **more}}


def tell(method, **params):
    return "<", {"jsonrpc": "2.0", "method": method, "params": params}


def progress(token, value):
    return tell("notifications/progress", progressToken=token, progress=value)


def hello(version):
    return [
        ask(0, "initialize", protocolVersion=version, capabilities={},
            clientInfo=INFO),
        answer(0, {"protocolVersion": version, "serverInfo": INFO,
                   "capabilities": {"tools": {}}}),
        (">", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]


def listed(tool, version="2025-11-25"):
    return [*hello(version), ask(1, "tools/list"),
            answer(1, {"tools": [tool]})]


def listed_modern(tool):
    return [modern(1, "tools/list"), answer(1, {**CACHED, "tools": [tool]})]


def called(result):
    return [*listed(TOOL), ask(2, "tools/call", name="count", arguments={}),
            answer(2, result)]


def called_modern(result):
    return [*listed_modern(TOOL), modern(2, "tools/call", name="count"),
            answer(2, result)]


def listen(*then):
    return [modern("l", "subscriptions/listen",
                   notifications={"toolsListChanged": True}), *then]


SUBSCRIPTION = {"io.modelcontextprotocol/subscriptionId": "l"}
ACKNOWLEDGED = tell("notifications/subscriptions/acknowledged",
                    notifications={}, _meta=SUBSCRIPTION)
CHANGED = tell("notifications/tools/list_changed", _meta=SUBSCRIPTION)


def write(path, entries):
    """Write a recording; a message may be given as text to break it."""
    with open(path, "w", encoding="utf-8") as file:
        for direction, message, *partial in entries:
            text = message if isinstance(message, str) \
                else json.dumps(message)
            entry = {"dir": direction, "line": text}
            if partial:
                entry["partial"] = True
            file.write(json.dumps(entry) + "\n")


def check(directory, schemas=SCHEMAS):
    env = {**os.environ, "MCP_SCHEMA_DIR": schemas or ""}
    done = subprocess.run([sys.executable, HERE / "check.py", directory],
                          capture_output=True, text=True, env=env)
    assert done.stderr == ""
    return done.returncode, done.stdout


GOOD = {
    **{"legacy " + version: [
        *listed(TOOL, version), ask(2, "ping"), answer(2, {}),
        ask(3, "tools/call", name="count", arguments={}), answer(3, COUNTED)]
       for version in ("2025-03-26", "2025-06-18", "2025-11-25")},
    "oldest legacy": [*hello("2024-11-05"), ask(2, "ping"), answer(2, {}),
                      tell("notifications/tools/list_changed")],
    "modern": [
        modern("d", "server/discover"),
        answer("d", {**CACHED, "supportedVersions": ["2026-07-28"],
                     "capabilities": {"tools": {}}}),
        *called_modern({**COUNTED, "resultType": "complete"})],
    "both eras in one process": [
        *listed(TOOL), *listed_modern(TOOL), ask(9, "ping"), answer(9, {})],
    "ping before initialize": [ask(1, "ping"), answer(1, {})],
    "rubbish in, error without id out": [
        (">", "rubbish"), ("<", {"jsonrpc": "2.0",
                                 "error": {"code": -32700, "message": "?"}})],
    "the same in an old version": [
        *hello("2025-03-26"), (">", "\udcff"),
        ("<", {"jsonrpc": "2.0", "error": {"code": -32700, "message": "?"}})],
    "malformed request with an id": [
        (">", {"id": 5}), fail(5, -32600)],
    "unsupported version": [
        modern(1, "tools/list", {
            "io.modelcontextprotocol/protocolVersion": "2099-01-01"}),
        fail(1, -32022, data={"supported": ["2026-07-28"],
                              "requested": "2099-01-01"})],
    "tool error without structuredContent": called(
        {"content": [{"type": "text", "text": "It failed."}],
         "isError": True}),
    "input required": [
        modern(1, "tools/call", name="count"),
        answer(1, {"resultType": "input_required", "requestState": "x"})],
    "cancelled and silent": [
        modern(1, "tools/call", name="count"), cancel(1),
        modern(2, "tools/list"), answer(2, {**CACHED, "tools": []})],
    "cancellation crossing with the answer": [
        ask(1, "ping"), cancel(1), answer(1, {})],
    "rising progress": [
        modern(1, "tools/call", {"progressToken": 0}, name="count"),
        progress(0, 0), progress(0, 0.5),
        answer(1, {**COUNTED, "resultType": "complete"})],
    "subscription": listen(
        ACKNOWLEDGED, CHANGED,
        answer("l", {"resultType": "complete", "_meta": SUBSCRIPTION})),
    "an id used again after its answer": [
        ask(1, "ping"), answer(1, {}), ask(1, "ping"), answer(1, {})],
    "legacy server asks": [
        *hello("2025-11-25"),
        ("<", {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}),
        (">", {"jsonrpc": "2.0", "id": 1, "result": {"roots": []}})],
}

BAD = {
    "no JSON": ([("<", "hello")], "not one JSON message"),
    "empty line": ([("<", "")], "not one JSON message"),
    "two messages on a line": (
        [ask(1, "ping"), ("<", '{"jsonrpc":"2.0","id":1,"result":{}} {}')],
        "not one JSON message"),
    "batch": ([*hello("2025-03-26"), ask(1, "ping"),
               ("<", [answer(1, {})[1]])], "batches"),
    "same key twice": (
        [ask(1, "ping"), ("<", '{"jsonrpc":"2.0","id":1,"id":1,"result":{}}')],
        "same key twice"),
    "not UTF-8": (
        [ask(1, "ping"),
         ("<", '{"jsonrpc":"2.0","id":1,"result":{"a":"\udcff"}}')],
        "not one JSON message"),
    "NaN": ([ask(1, "ping"), ("<", '{"jsonrpc":"2.0","id":1,"result":'
                                   '{"a":NaN}}')], "not one JSON message"),
    "half a line": ([("<", '{"jsonrpc"', True)], "middle of a line"),
    "no jsonrpc": ([ask(1, "ping"), ("<", {"id": 1, "result": {}})],
                   "'jsonrpc' is a required property"),
    "result and error": (
        [ask(1, "ping"), ("<", {**answer(1, {})[1], **fail(1, -32603)[1]})],
        "exactly one of"),
    "id null": ([(">", "rubbish"), fail(None, -32700)],
                "string or an integer"),
    "id of another type": ([ask(1, "ping"), answer("1", {})],
                           "never requested"),
    "never requested": ([answer(7, {})], "never requested"),
    "double response": ([ask(1, "ping"), answer(1, {}), answer(1, {})],
                        "second response"),
    "two messages after cancel": (
        [*hello("2025-11-25"),
         ask(1, "tools/call", name="count", _meta={"progressToken": "t"}),
         cancel(1), progress("t", 1), answer(1, COUNTED)],
        "second message for a cancelled request"),
    "error without message": (
        [ask(1, "ping"),
         ("<", {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603}})],
        "'message' is a required property"),
    "no resultType": (called_modern(COUNTED),
                      "'resultType' is a required property"),
    "unknown resultType": (called_modern({**COUNTED, "resultType": "done"}),
                           "unknown resultType"),
    "no ttlMs": ([modern(1, "tools/list"),
                  answer(1, {"resultType": "complete", "tools": [],
                             "cacheScope": "public"})],
                 "'ttlMs' is a required property"),
    "input required from a list": (
        [modern(1, "tools/list"),
         answer(1, {"resultType": "input_required", "requestState": "x"})],
        "must not ask for input"),
    "input required without saying what": (
        [modern(1, "tools/call", name="count"),
         answer(1, {"resultType": "input_required"})], "neither"),
    "modern ping": ([modern(1, "ping"), answer(1, {"resultType": "complete"})],
                    "does not have"),
    "result in an unknown version": (
        [modern(1, "tools/list", {
            "io.modelcontextprotocol/protocolVersion": "2099-01-01"}),
         answer(1, {**CACHED, "tools": []})], "there is no schema"),
    "result to a modern request for a legacy version": (
        [modern(1, "tools/list", {
            "io.modelcontextprotocol/protocolVersion": "2025-11-25"}),
         answer(1, {**CACHED, "tools": []})], "other era"),
    "unsupported version without data": (
        [modern(1, "tools/list"), fail(1, -32022)],
        "'data' is a required property"),
    "legacy error code": ([modern(1, "resources/read", uri="a:b"),
                           fail(1, -32002)], "does not exist in the modern"),
    "modern version from initialize": (hello("2026-07-28"), "other era"),
    "modern server asks": (
        [modern(1, "tools/call", name="count"),
         ("<", {"jsonrpc": "2.0", "id": 1, "method": "roots/list"})],
        "a request from the server"),
    "unknown notification": ([*hello("2025-11-25"), tell("notifications/hm")],
                             "has no ServerNotification"),
    "notification nobody subscribed to": (
        [modern(1, "tools/list"), tell("notifications/tools/list_changed")],
        "outside any subscription"),
    "subscription not acknowledged": (listen(CHANGED),
                                      "not acknowledged first"),
    "subscription not open": ([CHANGED], "no subscription"),
    "unknown progress token": ([*hello("2025-11-25"), progress("x", 1)],
                               "no request carried"),
    "falling progress": (
        [*hello("2025-11-25"), ask(1, "ping", _meta={"progressToken": 1}),
         progress(1, 5), progress(1, 5)], "does not rise"),
    "late progress": (
        [*hello("2025-11-25"), ask(1, "ping", _meta={"progressToken": 1}),
         answer(1, {}), progress(1, 5)], "answered already"),
    "no tools": ([*hello("2025-11-25"), ask(1, "tools/list"), answer(1, {})],
                 "'tools' is a required property"),
    "bad inputSchema": (
        listed({**TOOL, "inputSchema": {
            "type": "object", "properties": {"a": {"type": "text"}}}}),
        "inputSchema of tool count"),
    "bad outputSchema": (
        listed({**TOOL, "outputSchema": {
            "type": "object", "properties": {"n": {"minimum": "0"}}}}),
        "outputSchema of tool count"),
    "remote $ref": (
        listed({**TOOL, "inputSchema": {
            "type": "object",
            "properties": {"a": {"$ref": "https://example.com/a"}}}}),
        "outside itself"),
    "tool twice": ([*hello("2025-11-25"), ask(1, "tools/list"),
                    answer(1, {"tools": [TOOL, TOOL]})], "same name"),
    "text block without text": (called({"content": [{"type": "text"}]}),
                                "no valid CallToolResult"),
    "broken base64": (
        called({"content": [{"type": "image", "data": "a b",
                             "mimeType": "image/png"}], "isError": True}),
        "no valid CallToolResult"),
    "structuredContent does not fit": (
        called({"content": [{"type": "text", "text": '{"n":"1"}'}],
                "structuredContent": {"n": "1"}}), "does not fit"),
    "no structuredContent": (called({"content": []}),
                             "returned no structuredContent"),
    "text says something else": (
        called({"content": [{"type": "text", "text": '{"n":2}'}],
                "structuredContent": {"n": 1}}), "not the same JSON"),
    "text is no JSON": (
        called({"content": [{"type": "text", "text": "one"}],
                "structuredContent": {"n": 1}}), "not the same JSON"),
    "an array as structuredContent in 2025-11-25": (
        called({"content": [], "structuredContent": []}),
        "no valid CallToolResult"),
}


@needs_schemas
@pytest.mark.parametrize("name", GOOD)
def test_good_recordings_pass(tmp_path, name):
    write(tmp_path / "a.wire", GOOD[name])
    status, said = check(tmp_path)
    assert (status, "0 findings" in said) == (0, True), said


@needs_schemas
@pytest.mark.parametrize("name", BAD)
def test_bad_recordings_are_found(tmp_path, name):
    entries, reason = BAD[name]
    write(tmp_path / "a.wire", entries)
    status, said = check(tmp_path)
    assert status == 1 and reason in said, said
    assert "a.wire:" in said


@needs_schemas
def test_a_finding_names_file_line_and_message(tmp_path):
    write(tmp_path / "b.wire", [*hello("2025-11-25"), answer(77, {})])
    status, said = check(tmp_path)
    assert status == 1
    assert "b.wire:4: " in said
    assert '"id": 77' in said
    assert "2 messages in 1 recordings, versions 2025-11-25: 1 findings" \
        in said


@needs_schemas
def test_a_schema_listed_elsewhere_counts(tmp_path):
    write(tmp_path / "a.wire", [
        *hello("2025-11-25"), ask(1, "tools/call", name="count"),
        answer(1, {"content": []})])
    assert check(tmp_path)[0] == 0
    write(tmp_path / "b.wire", listed(TOOL))
    status, said = check(tmp_path)
    assert status == 1 and "returned no structuredContent" in said


@needs_schemas
def test_seeing_nothing_is_a_failure(tmp_path):
    assert check(tmp_path)[0] == 1
    write(tmp_path / "a.wire", [ask(1, "ping")])
    status, said = check(tmp_path)
    assert status == 1 and "nothing is proven" in said


@needs_schemas
def test_a_damaged_recording_is_found(tmp_path):
    (tmp_path / "a.wire").write_text('{"dir": "<", "li')
    status, said = check(tmp_path)
    assert status == 1 and "damaged" in said


def test_without_schemas_it_says_so(tmp_path):
    status, said = check(tmp_path, schemas=None)
    assert status == 77 and said.startswith("skipped: ")


def test_with_an_empty_schema_directory_it_fails(tmp_path):
    assert check(tmp_path, schemas=str(tmp_path))[0] == 1


def tap(tmp_path, *command, **options):
    return subprocess.Popen(
        [sys.executable, HERE / "tap.py", "--dir", tmp_path, "--", *command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)


def recorded(tmp_path):
    """The recorded bytes of each direction."""
    sides = {">": [], "<": []}
    (path,) = tmp_path.glob("*.wire")
    for raw in path.read_text("utf-8").splitlines():
        entry = json.loads(raw)
        end = b"" if entry.get("partial") else b"\n"
        sides[entry["dir"]].append(
            entry["line"].encode("utf-8", "surrogateescape") + end)
    return {side: b"".join(lines) for side, lines in sides.items()}


def test_the_tap_changes_no_byte(tmp_path):
    data = b"one\n\n\xff\xfe\xed\xa0\x80\r\n" + b"x" * 3000000 \
        + "\u00e9\n".encode() + b"no newline"
    out, _ = tap(tmp_path, "cat").communicate(data)
    assert out == data
    assert recorded(tmp_path) == {">": data, "<": data}


def test_the_tap_ends_as_the_server_did(tmp_path):
    server = tap(tmp_path, "sh", "-c", "cat; exit 7")
    server.communicate(b"")
    assert server.returncode == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_tap_passes_signals_on(tmp_path, number):
    server = tap(tmp_path, "sh", "-c", "echo up; exec sleep 20")
    assert server.stdout.readline() == b"up\n"
    server.send_signal(number)
    assert server.wait(5) == 128 + number


def test_the_tap_stays_out_of_the_way_without_a_directory():
    env = {k: v for k, v in os.environ.items() if k != "RSMCP_WIRE_DIR"}
    done = subprocess.run([sys.executable, HERE / "tap.py", "--", "echo", "x"],
                          capture_output=True, env=env)
    assert (done.returncode, done.stdout) == (0, b"x\n")
