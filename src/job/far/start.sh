# shellcheck shell=sh disable=SC2034,SC2154
# Starts a job.
#
# N name, C cwd, L log, K key, I word of this start, X command, H the command
# in a line, M meta, R runner, V exports, E job with whose last run it shares
# variables and options (or nothing), T the last second at which it may start
# (0: any; of the clock of src/ssh/script.c), Q what ends it in time
# (limit.sh; or nothing), P word of the run that has to be the last one so far
# (else any may), q_opts options if it is for the scheduler (slurm.sh).  Answers
# with one line:
#
#	ok RUN TMUX BEGIN LOG		started; BEGIN is where its log begins
#	queued JOB RUN TMUX BEGIN LOG	the same, by the scheduler
#	again|exists RUN TMUX ORPHANS JOB ID NAME LOG	JOB is 0 if it has none
#	cwd DIRECTORY | stale | bad WORDS

# Who waits for the line wants $A before it (see src/ssh/script.c).
say() {
	printf '%s%s\n' "${A-}" "$1"
	trap - 0
}

# A log that has its head already says that no run belongs to it.
D='' r='' kept=
bad() {
	[ -z "$kept" ] || rm -f "$kept"
	[ -z "$D" ] || rm -rf "$D"
	[ -z "$r" ] || printf '== not started: %s\n' "$1" 2>/dev/null >>"$L"
	say "bad $1"
	exit
}

# found WORD DIR: st has looked at it.  A session goes with its run.
found() {
	l='' i='' a='' c=0 m=0 j=
	[ ! -f "$2/log" ] || IFS= read -r l <"$2/log"
	[ ! -f "$2/id" ] || read -r i a c <"$2/id"
	[ "$s" != running ] || [ ! -f "$2/tmux" ] || m=1
	[ ! -f "$2/slurm" ] || read -r j x <"$2/slurm"
	say "$1 ${c:-0} $m ${o:-0} ${j:-0} ${i:--} ${a:-$N} $l"
	exit
}

# The key is a link to the run that has it.  A run that never began, or that
# was cleaned up, gives its key to the next link: g is the first that is free.
known() {
	g=0
	while [ -h "$J/.keys/$K.$g" ]; do
		h=$J/.keys/$K.$g
		if [ -f "$h/id" ]; then
			st "$h"
			if [ "$s.$w" != lost.start ] || ! bar "$h"; then
				[ -z "$D" ] || rm -rf "$D"
				o=0
				found again "$h"
			fi
		fi
		g=$((g+1))
	done
}

# The name is taken; perhaps by a call with the same key that is on its way.
busy() {
	[ -z "$K" ] || known
	if [ -n "$K" ] && [ "$s" = starting ] && [ $y -lt 40 ]; then
		y=$((y+1))
		nap
		return
	fi
	found exists "$J/$N/r$n"
}

# Somebody else started a run meanwhile.
other() {
	i=
	[ ! -f "$J/$N/r$n/id" ] || read -r i x <"$J/$N/r$n/id"
	[ "$i" != "$P" ]
}

make() {
	[ -d "$1" ] || mkdir -m 700 "$1" 2>/dev/null || [ -d "$1" ] ||
		bad "cannot make $1: is the disk full, or the home read-only?"
}

case $C in
\~|\~/*) C=$HOME${C#\~};;
'') C=$HOME;;
/*) ;;
*) C=$HOME/$C;;
esac
case $L in
\~|\~/*) L=$HOME${L#\~};;
/*) ;;
*) L=${C%/}/$L;;
esac
# Capital letters are safe from the functions.  A newer bash needs no program
# to tell the time.
case ${BASH_VERSION-} in
[5-9]*|4.[2-9]*)
	eval "TZ=UTC0 printf -v x '%(%s %Y-%m-%dT%H:%M:%SZ)T' -1";;
*)
	x=$(date -u '+%s %Y-%m-%dT%H:%M:%SZ');;
esac
Z=${x%% *} Y=${x#* }
up
if [ "$T" != 0 ] && [ "${U:-$Z}" -gt "$T" ]; then
	say stale
	exit
fi
cd -- "$C" 2>/dev/null || {
	say "cwd $C"
	exit
}
if [ -d "$L" ] || [ -p "$L" ]; then
	bad "the log $L is not a file"
fi
[ -d "$J" ] || mkdir -p "${J%/*}" 2>/dev/null
make "$J"
if [ -n "$K" ]; then
	make "$J/.keys"
	known
fi

# Of several starters one makes the file "claim".
y=0 u=0
while :; do
	newest "$J/$N"
	if [ "$n" != 0 ]; then
		st "$J/$N/r$n"
		o=0
		[ "$s" != lost ] || orphans "$J/$N/r$n"
		case $s.$w.$o in
		running.*|starting.*|lost.runner.[1-9]*) busy; continue;;
		lost.start.*) bar "$J/$N/r$n" || { s=running; busy; };;
		*) [ -z "$P" ] || ! other || found exists "$J/$N/r$n";;
		esac
	fi
	n=$((n+1))
	h=$J/$N/r$n
	if [ ! -d "$h" ] && mkdir -p "$h" 2>/dev/null; then
		set -C
		printf '' 2>/dev/null >"$h/claim" && D=$h
		set +C
	fi
	[ -z "$D" ] || break
	u=$((u+1))
	if [ ! -d "$h" ] || [ $u -ge 50 ]; then
		bad "cannot make $h: is the disk full, or the home read-only?"
	fi
done

# What is resumed may have got another name.
case $E in
'') h=;;
"$N") h=$J/$N/r$((n-1));;
*) h=$(newest "$J/$E"; echo "$J/$E/r$n");;
esac
if [ -n "$h" ] && [ -f "$h/env" ]; then
	V="$(cat "$h/env")
$V"
fi
# It has the options of the run before, and no two run at once.
if [ -n "$h" ] && [ -f "$h/opts" ]; then
	q_opts="$q_opts $(cat "$h/opts") --dependency="
	j=
	[ "$E" = "$N" ] || [ ! -s "$h/slurm" ] || read -r j x <"$h/slurm"
	q_opts="$q_opts${j:+afterany:$j,}singleton"
fi
[ -d "${L%/*}" ] || mkdir -p "${L%/*}" 2>/dev/null
b=0
[ ! -s "$L" ] || b=$(($(wc -c <"$L")))
# The boot of a login node says nothing about what runs elsewhere.
[ -z "$q_opts" ] || B=
[ -z "$B" ] || here
# A full disk shows here; what is to be written later has its room already.
store() {
	printf '%s %s\n' "$Z" "${B:+$B $U}" >"$D/started" &&
		{ [ -z "$B" ] || printf '%s\n' "$k" >"$D/node"; } &&
		printf '%s %s %s\n' "$I" "$N" "$n" >"$D/id" &&
		printf '%s\n' "$X" >"$D/cmd" &&
		printf '%s\n' "$L" >"$D/log" &&
		printf '%s\n' "$b" >"$D/begin" &&
		printf '%s\n' "$M" >"$D/meta" &&
		printf '%s\n' "$V" >"$D/env" &&
		printf '%s\n' "$R" >"$D/run" &&
		{ [ -z "$Q" ] || printf '%s\n' "$Q" >"$D/limit"; } &&
		{ [ -z "$q_opts" ] || printf '%s\n' "$q_opts" >"$D/opts"; } &&
		printf '%63s\n' '' >"$D/exit.new" &&
		printf '%127s\n' '' >"$D/pid.new" &&
		printf '%15s\n' '' >"$D/child" &&
		printf '%1023s\n' '' >"$D/err"
}
store 2>/dev/null || bad "cannot write to $D: is the disk full?"
# A directory may have kept us waiting.  Who gives us up looks for "id" a moment
# after the last time at which we may go on, and it is there now.
up
[ "$T" = 0 ] || [ "${U:-$(date +%s)}" -le $((T+2)) ] ||
	bad "it took too long to start, and was given up"
printf '== session: %s\n== started_at: %s\n== command: %s\n' \
	"$N" "$Y" "$H" 2>/dev/null >>"$L" ||
	bad "cannot write to the log $L"
r=1
while [ -n "$K" ] && ! ln -sn "../$N/r$n" "$J/.keys/$K.$g" 2>/dev/null; do
	h=$g
	known
	[ "$g" != "$h" ] || bad "cannot make $J/.keys/$K.$g: is the disk full?"
done
[ -z "$K" ] || kept=$J/.keys/$K.$g
printf '%s\n' "$n" >"$J/$N/newest"
printf '' 2>/dev/null >"$D/wait" || bad "cannot write to $D: is the disk full?"
[ ! -e "$D/off" ] || ! rm "$D/wait" 2>/dev/null ||
	bad "it took too long to start, and was given up"

if [ -n "$q_opts" ]; then
	sched_start
	exit
fi
m=0
! command -v tmux >/dev/null 2>&1 || m=1
set -- sh
if command -v setsid >/dev/null 2>&1; then
	set -- setsid "$@"
elif command -v perl >/dev/null 2>&1; then
	set -- perl -e 'use POSIX; POSIX::setsid(); exec @ARGV' "$@"
else
	set -- nohup "$@"
	set -m
fi 2>/dev/null
if [ -n "$Q" ]; then
	"$@" "$D/limit" </dev/null >/dev/null 2>&1 &
fi
"$@" "$D/run" </dev/null >>"$L" 2<>"$D/err" &
say "ok $n $m $b $L"
