# shellcheck shell=sh disable=SC2034,SC2154
# Waits until a run has had its time; stop.sh, which comes next, then ends it.
# Kept with the run and started beside its runner, in a session of its own: it
# must not end itself.  U seconds, and what stop.sh wants.

D=${0%/*} y=0
while [ "$y" -lt "$U" ]; do
	if [ ! -d "$D" ] || [ -f "$D/exit" ]; then
		exit 0
	fi
	x=$((U-y))
	[ $x -le 5 ] || x=5
	sleep $x
	y=$((y+x))
done
newest "$J/$N"
if [ "$D" != "$J/$N/r$n" ] || [ -f "$D/exit" ]; then
	exit 0
fi
IFS= read -r l <"$D/log"
y=$(tail -c 1 "$l")
{
	[ -z "$y" ] || echo
	printf '[TIMEOUT] ended after %s s\n' "$U"
} >>"$l"
