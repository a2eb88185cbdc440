#!/bin/sh
# Show what the program does, and fail if it does not. "./dev demo" calls it.
#
#	scripts/demo.sh BINARY
#
# Needs nothing but the program and a shell.
set -eu

[ $# -eq 1 ] || {
	echo 'usage: scripts/demo.sh BINARY' >&2
	exit 2
}
program=$1
server=
guard=
scratch=$(mktemp -d)
# What the program keeps goes there too, not among the user's own.
export REMOTE_SANDBOX_MCP_HOME="$scratch/home"

# Whatever is left at the end, however it comes about.
cleanup()
{
	[ -z "$guard" ] || kill "$guard" 2>/dev/null || :
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM
# Writing to a server that has died is an error to tell, not a reason to die.
trap : PIPE

fail()
{
	echo
	echo "demo: $*" >&2
	exit 1
}

title()
{
	printf '\n--- %s\n' "$*"
}

# Run the program as a person would and show the first lines it prints. The
# first argument is a word that has to be among them.
show()
{
	word=$1
	shift
	printf '\n$ remote-sandbox-mcp %s\n' "$*"
	"$program" "$@" >"$scratch/out" </dev/null ||
	    fail "'$*' ended with status $?"
	sed -n '1,20s/^/    /p' "$scratch/out"
	grep -q -e "$word" "$scratch/out" || fail "'$*' does not say '$word'"
}

# Start the program as a client does, with a pipe to it (3) and one from it
# (4). It gets 30 seconds for the dialogue, so that the demo cannot hang.
start_server()
{
	mkfifo "$scratch/to" "$scratch/from"
	"$program" <"$scratch/to" >"$scratch/from" 2>"$scratch/err" &
	server=$!
	exec 3>"$scratch/to" 4<"$scratch/from"
	(
		trap 'kill "$sleep"; exit' TERM
		sleep 30 &
		sleep=$!
		wait "$sleep"
		kill "$server"
	) 3>&- 4<&- >"$scratch/guard" 2>&1 &
	guard=$!
}

# Print with a mark in front, cut to the width of a page.
line()
{
	printf '%s ' "$1"
	printf '%s\n' "$2" | LC_ALL=C tr -cd '\12\40-\176' |
	    sed 's/^\(.\{150\}\).\{3,\}$/\1.../'
}

# Send a message that gets no reply.
tell()
{
	line '-->' "$1"
	printf '%s\n' "$1" 2>/dev/null >&3 || fail 'the server is gone'
}

# Send a request; each further argument has to be found in the reply.
ask()
{
	tell "$1"
	shift
	reply=
	IFS= read -r reply <&4 || fail "no reply: $(cat "$scratch/err")"
	line '<--' "$reply"
	for expected; do
		case $reply in
		*"$expected"*) ;;
		*) fail "the reply lacks $expected" ;;
		esac
	done
}

stop_server()
{
	exec 3>&-
	status=0
	wait "$server" || status=$?
	server=
	kill "$guard"
	[ $status -eq 0 ] || fail "the server ended with status $status"
	if IFS= read -r reply <&4; then
		fail "the server says what nobody asked for: $reply"
	fi
	exec 4<&-
	echo '    (stdin closed: the server has ended by itself)'
}

[ -x "$program" ] || fail "there is no program $program"

title 'For people: the command line'
show remote-sandbox-mcp version
show get_server_info tools
show version call get_server_info

title 'A sandbox on this machine, for the main things'
printf '\n$ remote-sandbox-mcp demo\n\n'
"$program" demo </dev/null || fail "'demo' ended with status $?"

start_server

title 'For agents: MCP over stdio, versions up to 2025-11-25'
ask '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"demo","version":"1"}}}' \
    '"id":1' '"protocolVersion":"2025-11-25"' '"serverInfo":{"name":"remote-sandbox'
tell '{"jsonrpc":"2.0","method":"notifications/initialized"}'
ask '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' \
    '"id":2' '"name":"get_server_info"' '"inputSchema"' '"annotations"'
ask '{"jsonrpc":"2.0","id":"three","method":"tools/call","params":{"name":"get_server_info","arguments":{}}}' \
    '"id":"three"' '"structuredContent"'
ask '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"no_such_tool"}}' \
    '"id":4' '"code":-32602'

title 'The same server, asked in the stateless way of 2026-07-28'
meta='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
ask '{"jsonrpc":"2.0","id":5,"method":"server/discover","params":{'"$meta"'}}' \
    '"id":5' '"resultType":"complete"' '"2026-07-28"'
ask '{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"get_server_info",'"$meta"'}}' \
    '"id":6' '"resultType":"complete"' '"structuredContent"'
ask '{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}' \
    '"id":7' '"code":-32022' '"supported"'

stop_server
printf '\nThe demo went well.\n'
