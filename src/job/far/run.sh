# shellcheck shell=sh disable=SC2034,SC2154
# The runner: kept with the run, it outlives whoever started it.  Its stdout is
# the log.  Its stderr is a file in which the shell says that the command was
# killed by a signal: a status of 128 and more alone does not tell.
#
#	run		runs the command and writes down how it ended
#	run go		becomes the command
#	run view	shows the log, in a tmux session
#	run slurm	on a compute node: the batch script
#	run batch	runs the command for that one

D=${0%/*}
j=${D%/*}
N=${j##*/}
n=${D##*/r}
IFS= read -r L <"$D/log"

case ${1-} in
view)
	read -r q x <"$D/pid"
	tail -n 200 -F "$L" &
	while kill -0 "$q" 2>/dev/null && sleep 1; do
		:
	done
	kill $!
	exit;;
go)
	printf '%-15s\n' $$ 1<>"$D/child"
	read -r i x <"$D/id"
	RSMCP_CALL=job.$i.
	PYTHONUNBUFFERED=${PYTHONUNBUFFERED-1}
	export RSMCP_CALL PYTHONUNBUFFERED
	s=$(command -v bash) || s='sh'
	set -- "$s" "$D/cmd"
	# A shell's background child ignores these two, and so would its own.
	# shellcheck disable=SC2016
	if env --default-signal=INT,QUIT true; then
		set -- "$(command -v env)" --default-signal=INT,QUIT "$@"
	elif command -v perl >/dev/null; then
		set -- "$(command -v perl)" -e \
			'$SIG{INT} = $SIG{QUIT} = "DEFAULT"; exec @ARGV' "$@"
	fi 2>/dev/null
	set -- "$D/env" "$@"
	# Variables of the login that have names of ours: see src/ssh/script.c.
	for RSMCP_L in ${RSMCP_V-}; do
		eval "export $RSMCP_L=\"\$RSMCP_V_$RSMCP_L\""
		unset "RSMCP_V_$RSMCP_L"
	done
	unset RSMCP_L RSMCP_V
	# What the shells had to say so far (a locale that is missing) is not
	# about the command.
	printf '%1023s\n' '' 1<>"$D/err"
	# The last that runs here: it may set any variable.
	# shellcheck source=/dev/null
	. "$1" 2>&1
	shift
	exec "$@" 2>&1;;
slurm)
	k=${SLURM_ARRAY_TASK_ID-} a=${SLURM_RESTART_COUNT:-0} T=$D
	if [ "$a" = 0 ] && ! rm "$D/wait" 2>/dev/null; then
		[ -n "$k" ] && [ ! -e "$D/off" ] || exit 1
	fi
	# Who submitted it may have been killed before it wrote the number down.
	[ -s "$D/slurm" ] ||
		echo "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID} $(date +%s)" \
			>"$D/slurm"
	if [ -n "$k" ]; then
		T=$D/t$k
		mkdir -p "$T"
		for f in id cmd env run; do
			ln -sf "../$f" "$T/$f"
		done
		L=${L%.log}_$k.log
		printf '%s\n' "$L" >"$T/log"
		[ -f "$T/begin" ] || echo $(($(wc -c <"$L"))) >"$T/begin"
		printf '== session: %s[%s]\n== started_at: %s\n== node: %s\n' \
			"$N" "$k" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$(uname -n)"
	fi
	if [ "$a" != 0 ]; then
		rm -f "$T/exit" "$D/final"
		[ -n "$k" ] || rm -f "$D/over"
		printf '== requeued: %s\n' "$a"
	fi
	printf '%63s\n' '' >"$T/exit.new"
	printf '%127s\n' '' >"$T/pid.new"
	printf '%15s\n' '' >"$T/child"
	printf '%1023s\n' '' >"$T/err"
	# Signals that somebody asked Slurm for are for the command.
	# shellcheck disable=SC2317
	pass() {
		read -r x <"$T/child"
		[ -z "$x" ] || kill -s "$1" "$x"
	}
	trap : HUP INT TERM
	trap 'pass USR1' USR1
	trap 'pass USR2' USR2
	sh "$T/run" batch </dev/null 2<>"$T/err" &
	while kill -0 $! 2>/dev/null; do
		wait $!
	done
	[ -f "$T/exit" ] || exit 1
	read -r s w x <"$T/exit"
	[ "$s" = exited ] || w=$((128+w))
	exit "$w";;
esac

trap : HUP INT TERM
[ -z "${1-}" ] || trap : USR1 USR2
tick $$
printf '%-127s\n' "$$ ${k:--} $B" 1<>"$D/pid.new"
mv -f "$D/pid.new" "$D/pid"
[ -n "${1-}" ] || rm "$D/wait" 2>/dev/null || {
	rm -f "$D/pid"
	exit 1
}
if [ -z "${1-}" ] && command -v tmux >/dev/null; then
	(
		q=$D
		case $q in
		*\'*) q=$(printf %s "$q" | sed "s/'/'\\\\''/g");;
		esac
		show() {
			tmux new-session -d -s "$N" "exec sh '$q/run' view" &&
				printf '' >"$D/tmux"
		}
		show || { sleep 2; show; }
	) </dev/null >/dev/null 2>&1 &
fi
sh "$D/run" go </dev/null
c=$?
x=
read -r x <"$D/err"
if [ $c -gt 128 ] && [ -n "$x" ]; then
	x="killed $((c-128))"
else
	x="exited $c"
fi
printf '%-63s\n' "$x $(date +%s)" 1<>"$D/exit.new"
mv -f "$D/exit.new" "$D/exit"
y=$(tail -c 1 "$L")
[ -z "$y" ] || echo
printf 'EXIT_CODE=%s\n' $c
[ -z "${1-}" ] || exit 0
(
	[ ! -f "$D/tmux" ] || tmux kill-session -t "=$N"
	[ ! -d "$j/r$((n-50))" ] || rm -rf "$j/r$((n-50))"
) >/dev/null 2>&1 &
