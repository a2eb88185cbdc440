# shellcheck shell=sh
# Keeps the private sshd of localhost.c, and ends it with all that was started
# by way of it.
#
#	$0 sshd   $1 its directory   $2 our program, or nothing
#
# stdin ends when the server does, however that comes to its end.
"$0" -D -f "$1/sshd_config" -E "$1/log" </dev/null &
p=$!
trap '' INT TERM HUP
cat >/dev/null
# A database that is locked holds nothing up.
[ -z "$2" ] || "$2" leave-local "$1" &
kill $p
wait $p

# Processes with the directory as their home.  In some kinds of grep an
# environment ends at its first NUL.
if printf 'a\000b' | grep -qF b; then
	at_home() { grep -lF "HOME=$1" /proc/[0-9]*/environ; }
else
	at_home() {
		for f in /proc/[0-9]*/environ; do
			tr '\000' '\n' <"$f" | grep -qxF "HOME=$1" && echo "$f"
		done
	}
fi

# Those, and what descends from them with another home.
family()
{
	{
		at_home "$1" | sed 's|^/proc/\([0-9]*\)/.*|\1 home|'
		cat /proc/[0-9]*/stat |
		    sed -n 's/^\([0-9]*\) (.*) [A-Za-z] \([0-9]*\) .*/\1 \2/p'
	} | awk '
		$2 == "home" { all[$1]; next }
		{ parent[$1] = $2 }
		END {
			do {
				n = 0
				for (p in parent)
					if (!(p in all) && parent[p] in all) {
						all[p]
						n++
					}
			} while (n > 0)
			for (p in all)
				print p
		}'
}

for s in TERM KILL; do
	pids=$(family "$1")
	[ -n "$pids" ] || break
	# shellcheck disable=SC2086
	kill -$s $pids
	sleep 0.2
done 2>/dev/null
rm -rf "$1"
