#!/usr/bin/env python3
"""Check recorded conversations (see tap.py) against the protocol's schemas.

    MCP_SCHEMA_DIR=DIR check.py WIRE_DIR...

Every message a server sent is checked against the JSON Schema of the protocol
version it was sent in.  MCP_SCHEMA_DIR holds one file a version, named
VERSION.json, as the protocol publishes them.  Without it there is nothing to
check against: exit status 77, "skipped".

To know the version both directions are followed: the reply to `initialize`
sets it for a legacy conversation, and a modern request names its own.  On the
way the rules a schema cannot say are checked too: one reply to a request and
none without, progress that rises, subscriptions acknowledged first, tool
results that keep what the tool's outputSchema promises.

Exit status 1 if anything was found, and also if there was no message at all:
a check that saw nothing has checked nothing.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import sys

import jsonschema
from jsonschema.validators import Draft202012Validator, validator_for

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"            # the first version without `initialize`
NEWEST_LEGACY = "2025-11-25"
MAY_ASK_FOR_INPUT = {"tools/call", "prompts/get", "resources/read"}
LEGACY_ONLY_CODES = {-32002, -32042}
MODERN_ERRORS = {
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}
MAX_PRINTED = 100


def strict_json(text):
    """Parse JSON as other parsers do: no NaN, no key twice."""
    def no_constant(name):
        raise ValueError("%s is not JSON" % name)

    def no_key_twice(pairs):
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("an object has the same key twice")
        return dict(pairs)

    return json.loads(text, parse_constant=no_constant,
                      object_pairs_hook=no_key_twice)


def canonical(value):
    """One text for equal JSON; unlike ==, it tells 1, 1.0 and true apart."""
    return json.dumps(value, sort_keys=True)


def member(value, *path):
    """value[path[0]][path[1]]..., or None where there is no such thing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def is_id(value):
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def formats():
    """The formats the protocol's schemas use; the library has none of them."""
    checker = jsonschema.FormatChecker(formats=())
    scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
    checker.checkers = {
        "uri": (lambda v: not isinstance(v, str) or bool(scheme.match(v)), ()),
        "byte": (lambda v: not isinstance(v, str)
                 or base64.b64decode(v, validate=True) is not None,
                 (ValueError,)),
    }
    return checker


class Schemas:
    """The protocol's definitions, by version and name."""

    def __init__(self, directory):
        self.formats = formats()
        self.roots = {}
        for path in sorted(pathlib.Path(directory).glob("*.json")):
            self.roots[path.stem] = json.loads(path.read_text("utf-8"))
        self.validators = {}
        self.verdicts = {}

    def defs(self, version):
        root = self.roots[version]
        return root["$defs" if "$defs" in root else "definitions"]

    def validator(self, version, name):
        key = version, name
        if key not in self.validators:
            root = self.roots[version]
            where = "$defs" if "$defs" in root else "definitions"
            schema = {"$schema": root["$schema"], where: root[where],
                      "$ref": "#/%s/%s" % (where, name)}
            self.validators[key] = validator_for(schema)(
                schema, format_checker=self.formats)
        return self.validators[key]

    def fault(self, version, name, value):
        """Why value is no such thing, or None."""
        # The same few messages come again and again.
        key = version, name, canonical(value)
        if key not in self.verdicts:
            self.verdicts[key] = explain(self.validator(version, name), value)
        return self.verdicts[key]

    def first_of(self, version, *names):
        """The name a definition has in this version."""
        return next(name for name in names if name in self.defs(version))

    def by_method(self, version, union):
        """{method: name of its definition} for a union of message types."""
        defs = self.defs(version)
        arms = defs.get(union, {}).get("anyOf", [])
        names = [arm["$ref"].rsplit("/", 1)[1] for arm in arms]
        return {defs[name]["properties"]["method"]["const"]: name
                for name in names}

    def result_of(self, version, method):
        """The definition of the result of a request, or None."""
        request = self.by_method(version, "ClientRequest").get(method)
        if request is None:
            return None
        result = re.sub("Request$", "Result", request)
        return result if result in self.defs(version) else "EmptyResult"


def explain(validator, value):
    try:
        error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    except jsonschema.RefResolutionError as problem:
        return "a $ref leads nowhere: %s" % problem
    if error is None:
        return None
    return "%s: %s" % (error.json_path, error.message[:300])


class Request:
    """What a client asked, and what has come for it so far."""

    def __init__(self, message):
        method = message.get("method")
        meta = member(message, "params", "_meta")
        self.method = method if isinstance(method, str) else None
        tool = member(message, "params", "name")
        self.tool = tool if isinstance(tool, str) else None
        self.asked = member(meta, META + "protocolVersion")
        self.modern = self.method != "initialize" and isinstance(meta, dict) \
            and (META + "protocolVersion" in meta
                 or META + "clientCapabilities" in meta)
        self.answered = False
        self.cancelled = False
        self.after_cancel = 0       # messages that came for it since
        self.progress = None        # the last value reported
        self.acknowledged = False   # for subscriptions/listen


class Recording:
    """One conversation, followed line by line."""

    def __init__(self, checker, path):
        self.checker = checker
        self.schemas = checker.schemas
        self.path = path
        self.requests = {}      # id as JSON -> requests, oldest first
        self.tokens = {}        # progress token as JSON -> request
        self.legacy = None      # version that `initialize` settled on
        self.tools = {}         # name -> tool, as listed here
        self.line = 0
        self.text = ""

    def report(self, reason):
        self.checker.report(self.path, self.line, self.text, reason)

    def check(self):
        with open(self.path, encoding="utf-8") as file:
            for self.line, raw in enumerate(file, 1):
                self.text = raw
                try:
                    entry = json.loads(raw)
                except ValueError:
                    self.report("the recording itself is damaged")
                    continue
                self.text = entry["line"]
                if entry["dir"] == ">":
                    self.from_client()
                else:
                    self.from_server(entry.get("partial", False))

    # What the client sends is only followed, not judged: tests send rubbish
    # on purpose.

    def from_client(self):
        try:
            message = json.loads(self.text)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict):
            return
        if message.get("method") == "notifications/cancelled":
            self.cancel(member(message, "params", "requestId"))
        elif is_id(message.get("id")) and "result" not in message \
                and "error" not in message:
            self.ask(message)

    def ask(self, message):
        request = Request(message)
        key = canonical(message["id"])
        self.requests.setdefault(key, []).append(request)
        token = member(message, "params", "_meta", "progressToken")
        if is_id(token):
            self.tokens[canonical(token)] = request

    def cancel(self, request_id):
        for request in self.requests.get(canonical(request_id), []):
            request.cancelled = True

    # What the server sends is judged.

    def from_server(self, partial):
        self.checker.messages += 1
        if partial:
            self.report("the output ends in the middle of a line")
            return
        try:
            self.text.encode("utf-8")
            message = strict_json(self.text)
            # Half a surrogate pair can be escaped but is no character.
            json.dumps(message, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError) as problem:
            self.report("not one JSON message: %s" % problem)
            return
        if not isinstance(message, dict):
            self.report("not a message object (batches are not allowed)")
            return
        kinds = [k for k in ("method", "result", "error") if k in message]
        if len(kinds) != 1:
            self.report("must have exactly one of method, result, error")
        elif kinds == ["method"]:
            if "id" in message:
                self.server_request(message)
            else:
                self.notification(message)
        else:
            self.response(message)

    def against(self, version, name, value):
        """Check one value; True if it is good."""
        self.checker.versions.add(version)
        if version not in self.schemas.roots:
            self.report("there is no schema for version %s" % version)
            return False
        fault = self.schemas.fault(version, name, value)
        if fault:
            self.report("no valid %s of %s: %s" % (name, version, fault))
        return fault is None

    def server_request(self, message):
        if self.legacy is None:
            self.report("a request from the server, but the client has not "
                        "initialized: the modern era has no such requests")
            return
        self.by_method(self.legacy, "ServerRequest", "JSONRPCRequest", message)

    def by_method(self, version, union, envelope, message):
        if not self.against(version, envelope, message):
            return
        name = self.schemas.by_method(version, union).get(message["method"])
        if name is None:
            self.report("%s has no %s %r" % (version, union,
                                             message["method"]))
        else:
            self.against(version, name, message)

    # Notifications.

    def notification(self, message):
        subscription = member(message, "params", "_meta",
                              META + "subscriptionId")
        if message["method"] == "notifications/progress":
            version = self.progress(message)
        elif subscription is not None:
            version = MODERN
            self.subscribed(message, subscription)
        else:
            version = self.legacy or MODERN
            self.unasked(message, version)
        self.by_method(version, "ServerNotification", "JSONRPCNotification",
                       message)

    def progress(self, message):
        """Check the order of progress; returns the version it is in."""
        token = member(message, "params", "progressToken")
        value = member(message, "params", "progress")
        request = self.tokens.get(canonical(token))
        if request is None:
            self.report("progress for a token that no request carried")
            return self.legacy or MODERN
        if request.answered:
            self.report("progress for a request that is answered already")
        if isinstance(value, (int, float)):
            if request.progress is not None and value <= request.progress:
                self.report("progress does not rise: %s after %s"
                            % (value, request.progress))
            request.progress = value
        self.count_after_cancel(request)
        return MODERN if request.modern else self.legacy or NEWEST_LEGACY

    def subscribed(self, message, subscription):
        asked = [r for r in self.requests.get(canonical(subscription), [])
                 if r.method == "subscriptions/listen" and not r.answered]
        if not asked:
            self.report("no subscription with this id is open")
            return
        request = asked[0]
        if message["method"] == "notifications/subscriptions/acknowledged":
            request.acknowledged = True
        elif not request.acknowledged:
            self.report("the subscription was not acknowledged first")
        self.count_after_cancel(request)

    def unasked(self, message, version):
        allowed = "notifications/message", "notifications/cancelled"
        if version >= MODERN and message["method"] not in allowed:
            self.report("a modern notification outside any subscription")

    def count_after_cancel(self, request):
        # The cancellation may cross with one message on its way.  There are
        # no times in a record, so one is let pass however late it comes, and
        # the second one is reported.
        if request.cancelled:
            request.after_cancel += 1
            if request.after_cancel == 2:
                self.report("a second message for a cancelled request")

    # Responses.

    def response(self, message):
        if "id" not in message:
            self.without_id(message)
            return
        request = self.answered_request(message)
        if request is None:
            return
        self.count_after_cancel(request)
        if "error" in message:
            self.error(request, message)
        else:
            self.result(request, message)

    def without_id(self, message):
        if "error" not in message:
            self.report("a result without an id")
            return
        # Before 2025-11-25 the schema has no such error, though JSON-RPC
        # needs one for a request whose id could not be read.
        version = max(self.legacy or MODERN, NEWEST_LEGACY)
        self.against(version, "JSONRPCErrorResponse", message)

    def answered_request(self, message):
        """The request this answers, or None after a report."""
        if not is_id(message["id"]):
            self.report("the id of a response must be a string or an integer")
            return None
        asked = self.requests.get(canonical(message["id"]), [])
        waiting = [r for r in asked if not r.answered]
        if not waiting:
            self.report("a second response to this id" if asked
                        else "a response to an id that was never requested")
            return None
        # If a client uses an id twice at once, the error is for the newcomer.
        request = waiting[-1 if "error" in message else 0]
        request.answered = True
        return request

    def error(self, request, message):
        version = MODERN if request.modern else self.legacy or NEWEST_LEGACY
        name = self.schemas.first_of(version, "JSONRPCErrorResponse",
                                     "JSONRPCError")
        if not self.against(version, name, message) or not request.modern:
            return
        code = message["error"]["code"]
        if code in LEGACY_ONLY_CODES:
            self.report("error %d does not exist in the modern era" % code)
        if code in MODERN_ERRORS:
            self.against(version, MODERN_ERRORS[code], message)

    def result(self, request, message):
        result = message["result"]
        version = self.result_version(request, result)
        if version not in self.schemas.roots:
            self.report("a result in version %r, for which there is no schema"
                        % version)
            return
        if request.method == "initialize":
            self.legacy = version
        if request.modern != (version >= MODERN):
            self.report("%s is a version of the other era" % version)
        envelope = self.schemas.first_of(version, "JSONRPCResultResponse",
                                         "JSONRPCResponse")
        name = self.schemas.result_of(version, request.method)
        if name is None:
            self.report("a result for %r, which %s does not have"
                        % (request.method, version))
        if not self.against(version, envelope, message) or name is None:
            return
        if request.modern and result["resultType"] != "complete":
            self.unfinished(request, version, result)
        elif self.against(version, name, result):
            self.look_closer(request, version, result)

    def result_version(self, request, result):
        if request.method == "initialize":
            version = member(result, "protocolVersion")
        elif request.modern:
            version = request.asked
        else:
            version = self.legacy or NEWEST_LEGACY
        return version if isinstance(version, str) else None

    def unfinished(self, request, version, result):
        if result["resultType"] != "input_required":
            self.report("unknown resultType %r" % result["resultType"])
        elif request.method not in MAY_ASK_FOR_INPUT:
            self.report("%s must not ask for input" % request.method)
        elif self.against(version, "InputRequiredResult", result) \
                and not {"inputRequests", "requestState"} & result.keys():
            self.report("neither inputRequests nor requestState")

    def look_closer(self, request, version, result):
        if request.method == "tools/list":
            self.listed(version, result["tools"])
        elif request.method == "tools/call":
            self.checker.calls.append((self, self.line, self.text, version,
                                       request.tool, result))

    def listed(self, version, tools):
        names = [tool["name"] for tool in tools]
        if len(set(names)) != len(names):
            self.report("two tools have the same name")
        for tool in tools:
            for key in "inputSchema", "outputSchema":
                fault = key in tool and self.checker.schema_fault(tool[key])
                if fault:
                    self.report("%s of tool %s: %s"
                                % (key, tool["name"], fault))
            self.tools[tool["name"]] = tool
            self.checker.remember_tool(version, tool)


class Checker:
    """All recordings together, and what was found in them."""

    def __init__(self, schemas):
        self.schemas = schemas
        self.findings = []
        self.messages = 0
        self.recordings = 0
        self.versions = set()
        self.calls = []
        self.listed = {}            # (version, name) -> outputSchemas seen
        self.schema_verdicts = {}

    def report(self, path, line, text, reason):
        self.findings.append("%s:%d: %s\n    %s"
                             % (path, line, reason, excerpt(text)))

    def check(self, paths):
        for path in paths:
            self.recordings += 1
            Recording(self, path).check()
        # Last, since a tool may be called before or without being listed.
        for recording, recording.line, recording.text, *call in self.calls:
            self.check_call(recording, *call)

    def schema_fault(self, schema):
        """Why a tool's schema is no valid JSON Schema, or None."""
        key = canonical(schema)
        if key not in self.schema_verdicts:
            self.schema_verdicts[key] = bad_schema(schema)
        return self.schema_verdicts[key]

    def remember_tool(self, version, tool):
        seen = self.listed.setdefault((version, tool["name"]), {})
        schema = tool.get("outputSchema")
        seen[canonical(schema)] = schema

    def output_schema(self, recording, version, name):
        """As listed in this recording, or else wherever all others agree."""
        if name in recording.tools:
            return recording.tools[name].get("outputSchema")
        seen = self.listed.get((version, name), {})
        return list(seen.values())[0] if len(seen) == 1 else None

    def check_call(self, recording, version, name, result):
        has = "structuredContent" in result
        schema = self.output_schema(recording, version, name)
        if schema is not None and not self.schema_fault(schema) \
                and not result.get("isError"):
            if not has:
                recording.report("tool %s has an outputSchema but returned no "
                                 "structuredContent" % name)
            else:
                self.check_structured(recording, name, schema, result)
        if has and not same_as_text(result):
            recording.report("the text block is not the same JSON as "
                             "structuredContent")

    def check_structured(self, recording, name, schema, result):
        validator = validator_for(schema, Draft202012Validator)(schema)
        fault = explain(validator, result["structuredContent"])
        if fault:
            recording.report("structuredContent does not fit the outputSchema "
                             "of tool %s: %s" % (name, fault))


def bad_schema(schema):
    if far := remote_ref(schema):
        return "refers to something outside itself: %s" % far
    try:
        validator_for(schema, Draft202012Validator).check_schema(schema)
    except jsonschema.SchemaError as error:
        return "not valid: %s: %s" % (error.json_path, error.message[:300])
    return None


def remote_ref(schema):
    """A $ref that would need the network, which no client follows."""
    if isinstance(schema, dict):
        ref = schema.get("$ref")
        if isinstance(ref, str) and not ref.startswith("#"):
            return ref
        schema = list(schema.values())
    if isinstance(schema, list):
        return next(filter(None, map(remote_ref, schema)), None)
    return None


def same_as_text(result):
    """A single text block must say what structuredContent says: some clients
    show the model only the one, some only the other."""
    texts = [b["text"] for b in result["content"] if b["type"] == "text"]
    if len(texts) != 1:
        return True
    try:
        said = strict_json(texts[0])
    except (ValueError, RecursionError):
        return False
    return canonical(said) == canonical(result["structuredContent"])


def excerpt(text, size=240):
    text = text.rstrip("\n").encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= size else text[:size] + "..."


def main():
    parser = argparse.ArgumentParser(
        description="Check recordings against the protocol's schemas.")
    parser.add_argument("dirs", nargs="+", metavar="WIRE_DIR")
    options = parser.parse_args()
    schema_dir = os.environ.get("MCP_SCHEMA_DIR")
    if not schema_dir:
        print("skipped: MCP_SCHEMA_DIR does not name the directory with the "
              "protocol's JSON Schemas")
        return 77
    schemas = Schemas(schema_dir)
    if not {MODERN, NEWEST_LEGACY} <= schemas.roots.keys():
        print("MCP_SCHEMA_DIR has no %s.json or %s.json"
              % (MODERN, NEWEST_LEGACY))
        return 1

    checker = Checker(schemas)
    checker.check(path for directory in options.dirs
                  for path in sorted(pathlib.Path(directory).glob("*.wire")))
    for finding in checker.findings[:MAX_PRINTED]:
        print(finding)
    if len(checker.findings) > MAX_PRINTED:
        print("... and %d more" % (len(checker.findings) - MAX_PRINTED))
    print("%d messages in %d recordings, versions %s: %d findings"
          % (checker.messages, checker.recordings,
             ", ".join(sorted(checker.versions)) or "none",
             len(checker.findings)))
    if checker.messages == 0:
        print("no message was checked, so nothing is proven")
    return 1 if checker.findings or checker.messages == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
