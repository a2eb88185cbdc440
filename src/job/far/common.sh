# shellcheck shell=sh disable=SC2034,SC2154
# J is where jobs are.

case ${XDG_STATE_HOME-} in
/*) J=$XDG_STATE_HOME/remote-sandbox-mcp/jobs;;
*) J=$HOME/.local/state/remote-sandbox-mcp/jobs;;
esac

nap() {
	sleep 0.05 2>/dev/null || sleep 1
}

# U is how many seconds the host is up, which nobody can set; empty where the
# system does not tell.
up() {
	U=
	[ ! -r /proc/uptime ] || read -r U </proc/uptime
	U=${U%%.*}
}

# elsewhere DIR: it was started on another machine that has the same home, as
# login nodes behind one name do.  What became of it is seen from there alone.
elsewhere() {
	b=
	[ ! -f "$1/node" ] || read -r b <"$1/node"
	here
	[ -n "$b" ] && [ "$b" != "$k" ] || return 1
	s=running w="elsewhere $b"
}

# unborn DIR: a run that has no pid is about to start, or never will.
unborn() {
	up
	s=starting v=0 b='' k=
	[ ! -f "$1/started" ] || read -r v b k <"$1/started"
	if [ -e "$1/off" ]; then
		s=lost w=start
	elif [ -n "$b" ] && [ "$b" != "$B" ]; then
		elsewhere "$1" || s=lost w=reboot
	elif [ -n "$k" ] && [ -n "$U" ]; then
		[ $((U - k)) -le 60 ] && [ "$U" -ge "$k" ] || s=lost w=start
	elif [ "${v:-0}" != 0 ]; then
		[ $(($(date +%s) - v)) -le 60 ] || s=lost w=start
	elif [ -n "$(find "$1" -prune -mmin +1 2>/dev/null)" ]; then
		# Or the clock was set just now, while somebody starts it.
		v=0
		while [ ! -s "$1/started" ] && [ $v -lt 10 ]; do
			nap
			v=$((v+1))
		done
		[ -s "$1/started" ] || s=lost w=start
	fi
}

# stopping DIR: somebody is ending it.  If that has to kill the runner, the
# record of the end comes from there.
stopping() {
	b=
	[ ! -f "$1/stop" ] || read -r b <"$1/stop"
	# shellcheck disable=SC2086
	set -- $b
	[ $# = 3 ] && tick "$2" && [ "$k" = "$3" ]
}

# Jobs of a scheduler are its business (slurm.sh); without it nothing is known
# of them.
sched() {
	s=running w=scheduler e=0 p=0 q=0 t='' b=''
	[ -f "$1/opts" ]
}
sched_words() {
	:
}
sched_all() {
	:
}
sched_stop() {
	printf 'state scheduler\n'
}

# st DIR: s state, w code or signal or reason, e end, p pid of the command, q
# of its runner.  A runner that ends between two looks has left its record, so
# that is read last.
st() {
	! sched "$1" || return 0
	s='' w=- e=0 p=0 q=0 t='' b=''
	[ ! -f "$1/pid" ] || read -r q t b <"$1/pid"
	[ ! -f "$1/child" ] || read -r p <"$1/child"
	q=${q:-0} p=${p:-0}
	if [ -f "$1/exit" ]; then
		s=ended
	elif [ "$q" = 0 ]; then
		unborn "$1"
	elif [ "$b" != "$B" ]; then
		elsewhere "$1" || s=lost w=reboot
	elif tick "$q" && [ "$k" = "$t" ]; then
		s=running
	elif stopping "$1"; then
		s=running
	elif [ -f "$1/exit" ]; then
		s=ended
	elif [ ! -f "$1/pid" ]; then
		unborn "$1"	# the runner has just seen that it is not wanted
	else
		s=lost w=runner
	fi
	[ $s = ended ] || return 0
	read -r s w e <"$1/exit"
	case $s in
	exited|killed) ;;
	*) s=lost w=record e=0;;
	esac
}

# marked WORD: prints "/proc/PID/..." for each process that has the word in its
# environment.  The grep of busybox sees nothing of a line after a NUL; its
# strings does, for all at once.
marked() {
	if printf 'a\000b' | grep -qF b; then
		grep -lsF -e "$1" /proc/[0-9]*/environ
	elif strings -f -n 6 /proc/$$/environ 2>/dev/null |
	    grep -q "^/proc/$$/environ: "; then
		strings -f -n 6 /proc/[0-9]*/environ 2>/dev/null |
			grep -F -e "$1" | cut -d: -f1 | sort -u
	else
		for f in /proc/[0-9]*; do
			! tr '\000' '\n' 2>/dev/null <"$f/environ" |
				grep -qF -e "$1" || echo "$f/"
		done
	fi
}

# orphans DIR: of a run that has ended, "orphaned" are the numbers of processes
# that bear its mark, and o is how many they are.  A scheduler looks after its
# own.
orphans() {
	o=0 i='' orphaned=''
	[ ! -f "$1/id" ] || read -r i x <"$1/id"
	if [ -z "$i" ] || [ -f "$1/opts" ] || [ ! -r /proc/self/stat ]; then
		return
	fi
	for x in $(marked "RSMCP_CALL=job.$i."); do
		x=${x#/proc/}
		orphaned="$orphaned${x%%/*} "
		o=$((o+1))
	done
}

# bar DIR: a run that has not begun is not to begin any more; fails if it has.
# Runner and barrer both want to remove "wait", and one of them does.
bar() {
	printf '' >"$1/off"
	[ ! -e "$1/wait" ] || rm "$1/wait" 2>/dev/null
}

# newest DIR: n is the newest run of a job, 0 if there is none.
newest() {
	n=0
	[ ! -f "$1/newest" ] || read -r n <"$1/newest"
	case $n in
	''|*[!0-9]*) n=0;;
	esac
	if [ "$n" = 0 ] || [ ! -d "$1/r$n" ]; then
		n=0
		for d in "$1"/r*; do
			d=${d##*/r}
			case $d in
			''|*[!0-9]*) continue;;
			esac
			[ "$d" -le "$n" ] || n=$d
		done
	fi
	while [ -d "$1/r$((n+1))" ]; do
		n=$((n+1))
	done
}

# A job of an older server has a tmux session, and its log.
session() {
	tmux list-sessions -F '#{session_name}' 2>/dev/null | grep -qxF -e "$N"
}
