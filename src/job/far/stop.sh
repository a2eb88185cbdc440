# shellcheck shell=sh disable=SC2034,SC2154
# Ends a job.  N name, G grace in hundredths of a second, T the text that ends
# processes and E the one that names those left (of src/ssh/script.c: they use
# many variables), q_task a task of an array.  Prints lines "word value".

# ours: q was the runner's number.  It is not given away while its session or
# its group has members, so if nobody has it now and one with the mark is in
# there, all in there belong to the job.
ours() {
	! tick "$q" || return 1
	for f in $orphaned; do
		read -r k 2>/dev/null <"/proc/$f/stat" || continue
		k=${k##*") "}
		# shellcheck disable=SC2086
		set -- $k
		if [ "$3" = "$q" ] || [ "$4" = "$q" ]; then
			return 0
		fi
	done
	return 1
}

newest "$J/$N"
# S is the name where those texts do not change it.
D=$J/$N/r$n S=$N M=- P=- A=0 B2=0 V=0
if [ -f "$D/opts" ]; then
	sched_stop
	exit 0
elif [ "$n" = 0 ]; then
	session || {
		printf 'was 0\nstate none\nleft \n'
		exit 0
	}
	V=1
	B2=$(tmux list-panes -t "=$N:" -F '#{pane_pid}' 2>/dev/null)
	B2=${B2%%[!0-9]*}
else
	st "$D"
	y=0
	while [ "$s" = starting ] && [ $y -lt 40 ]; do
		nap
		y=$((y+1))
		st "$D"
	done
	if [ "$s" = starting ]; then
		! bar "$D" || s=lost w=start
	fi
	case $w in
	elsewhere*)
		printf 'was 0\nstate %s\nleft \n' "$w"
		exit 0;;
	esac
	# The job may have ended, and some of its processes not.
	if [ "$s" = running ]; then
		V=1 B2=$q
	else
		orphans "$D"
		[ "$o" = 0 ] || V=1
		! ours || B2=$q
	fi
	if [ $V = 0 ]; then
		printf 'was 0\nstate %s\nleft \n' "$s"
		exit 0
	fi
	# How one ended that did so by itself stays as it is.
	if [ ! -f "$D/exit" ]; then
		tick $$
		printf '%s %s %s\n' "$(date +%s)" $$ "${k:--}" >"$D/stop"
	fi
	read -r i x <"$D/id"
	M=job.$i.
fi
B=${B2:-0} X='' Y='' W=''
eval "$T"
if [ ! -d "$D" ]; then
	[ -n "$L" ] || tmux kill-session -t "=$S" 2>/dev/null
	printf 'was 1\nstate killed\n'
else
	y=0
	while [ ! -f "$D/exit" ] && [ $y -lt 10 ] && tick "$q"; do
		nap
		y=$((y+1))
	done
	if [ ! -f "$D/exit" ] && [ -z "$L" ]; then
		printf '%-63s\n' "killed 9 $(date +%s)" 1<>"$D/exit.new" &&
			mv -f "$D/exit.new" "$D/exit"
		IFS= read -r l <"$D/log"
		[ ! -f "$l" ] || printf 'EXIT_CODE=137\n' >>"$l"
		[ ! -f "$D/tmux" ] || tmux kill-session -t "=$S" 2>/dev/null
	fi
	s=lost
	[ ! -f "$D/exit" ] || st "$D"
	printf 'was 1\nstate %s\n' "$s"
fi
printf 'left %s\n' "$(eval "$E")"
