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
l=
[ -z "$2" ] || {
	"$2" leave-local "$1" &
	l=$!
}
kill $p
wait $p

# All that descends from this shell, to which orphans come; but for the program
# above, and for what looks.
family()
{
	cat /proc/[0-9]*/stat | sed -n \
	    's/^\([0-9]*\) (.*) \([A-Za-z]\) \([0-9]*\) .*/\1 \2 \3/p' |
	    awk -v me=$$ -v other="$l" '
		{ state[$1] = $2; parent[$1] = $3 }
		END {
			getline stat <"/proc/self/stat"
			split(stat, f, " ")
			top = f[1]
			parent[top] = f[4]
			while (parent[top] != me && parent[top] > 1)
				top = parent[top]
			all[me]
			do {
				n = 0
				for (p in parent)
					if (!(p in all) && parent[p] in all &&
					    p != top && p != other) {
						all[p]
						n++
					}
			} while (n > 0)
			for (p in all)
				if (p != me && state[p] != "Z")
					print p
		}'
}

# Who sees others end may start more of them.
for s in TERM KILL KILL KILL KILL; do
	pids=$(family)
	[ -n "$pids" ] || break
	# shellcheck disable=SC2086
	kill -$s $pids
	sleep 0.2
done 2>/dev/null
rm -rf "$1"
