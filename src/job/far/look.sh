# shellcheck shell=sh disable=SC2034,SC2154
# Looks at a job: prints lines "word value", an empty line, and bytes of the
# log.
#
# N name, I the run with this word (else the newest; -: one of the seed), L log
# (if it is not known here), A lines, O offset (-1: the last A lines), Z bytes at
# most, G expression, S how much of the log an expression is looked for in, Q a
# word that is in no log, W seconds to wait, E to wait for the end alone, q_task a
# task of an array.
#
# Where the log's bytes end may be in the middle of a line.  With an expression
# that would tear a line that matches, so then Q is put there, and all after
# the last newline comes with it.

# Reads the expression, as every grep after it, but with limits: there are short
# ones that take hours and all memory.  A line of input, since some greps read
# it with the first alone.
# shellcheck disable=SC3045
try() {
	echo | {
		ulimit -t 5
		ulimit -v 500000
		exec grep -aE -e "$G" >/dev/null
	} 2>&1
}

# z is where the log ends, or where the next run begins in it (X).
size() {
	z=
	[ ! -f "$L" ] || z=$(wc -c <"$L" 2>/dev/null)
	z=$((${z:--1}))
	[ -z "$X" ] || [ "$z" -le "$X" ] || z=$X
}

# small: a newer bash reads a small log by itself, into T, for a fraction of what
# a program costs.  Not one with a NUL, which no variable can hold.  Nothing
# after it depends on the locale.
small() {
	T=
	[ -z "$G$X" ] && [ "$O" -le 16384 ] && [ "$a" -le 16384 ] || return 1
	case ${BASH_VERSION-} in
	[4-9].*|[1-9][0-9]*) ;;
	*) return 1;;
	esac
	LC_ALL=C
	[ -f "$L" ] && [ -r "$L" ] || return 1
	! eval 'IFS= read -r -d "" -n 16384 T <"$L"' || T=
	z=${#T}
	[ -n "$T" ]
}

# blocks FROM LENGTH: these bytes, and what is before them in their block.
blocks() {
	dd if="$L" bs=4096 skip=$(($1/4096)) \
		count=$((($1%4096+$2+4095)/4096)) 2>/dev/null
}

part() {
	if [ $(($1%4096)) = 0 ]; then
		blocks "$1" "$2"
	else
		blocks "$1" "$2" | tail -c +$(($1%4096+1))
	fi | head -c "$2"
}

# The seed's: a session, or the last word of the log about a run.  That may be
# one of ours that came to nothing.
old() {
	s=none w=- e=0 p=0
	if session; then
		s=running
	elif [ -f "$L" ]; then
		w=$(tail -c 65536 "$L" |
			grep -aE '^(EXIT_CODE=|== session: |== not started: )' |
			tail -n 1)
		w=${w#EXIT_CODE=}
		case $w in
		'== not started'*) s=none w=-;;
		''|*[!0-9]*) s=lost w=runner;;
		*) s=exited;;
		esac
	fi
}

# Where run n is, and its log; X is where the next run's begins in it.
place() {
	D=$J/$N/r$n a=0 X=
	if [ "$n" = 0 ]; then
		case $L in
		'') L=$HOME/.codex_logs/$N.log;;
		\~|\~/*) L=$HOME${L#\~};;
		/*) ;;
		*) L=$HOME/$L;;
		esac
		return
	fi
	[ ! -f "$D/t$q_task/log" ] || D=$D/t$q_task
	[ ! -f "$D/log" ] || IFS= read -r L <"$D/log"
	[ ! -f "$D/begin" ] || read -r a <"$D/begin"
	h=$J/$N/r$((n+1))${D#"$J/$N/r$n"}
	if [ "$n" -lt "$u" ] && [ -f "$h/log" ] && [ -f "$h/begin" ]; then
		IFS= read -r x <"$h/log"
		read -r l <"$h/begin"
		[ "$x" != "$L" ] || [ "$l" -lt "$a" ] || X=$l
	fi
	D=$J/$N/r$n
}

# The log of one that has just been started is not an old one's.
look() {
	if [ "$n" != 0 ]; then
		st "$D"
	elif [ "${I:--}" = - ]; then
		old
		[ -n "$I" ] || newest "$J/$N"
		if [ "$n" != 0 ]; then
			u=$n
			place
			st "$D"
		fi
	else
		s=none w=- e=0 p=0
	fi
}

# "expression 0" tells that we are here, and what takes its time.
if [ -n "$G" ]; then
	echo 'expression 0'
	x=$(try)
	i=$?
	if [ $i -gt 1 ]; then
		printf 'state none\nexpression %s %s\n\n' $i \
			"$(printf '%s\n' "$x" | tail -n 1)"
		exit 0
	fi
fi

newest "$J/$N"
u=$n
while [ -n "$I" ] && [ "$n" != 0 ]; do
	i=
	[ ! -f "$J/$N/r$n/id" ] || read -r i x <"$J/$N/r$n/id"
	[ "$i" != "$I" ] || break
	n=$((n-1))
done
place
z=-1
look
[ "$W" = 0 ] || size

# c is how far the log has been searched already, y its size then.
f=$O i=0
[ "$O" -ge 0 ] || f=$z
[ "$f" -ge 0 ] || f=0
c=$f y=$f
while [ $i -lt $((W*20)) ]; do
	case $s in
	running|starting) ;;
	*) break;;
	esac
	if [ -n "$E" ] || [ "$z" = "$y" ]; then
		:
	elif [ -z "$G" ] || [ "$z" -lt "$f" ]; then
		[ "$z" -lt 0 ] || break
	else
		! {
			part "$c" $((z-c))
			printf '%s\n' "$Q"
		} | grep -aE -e "$G" | grep -aqv -e "$Q" || break
		[ $((z-65536)) -le "$c" ] || c=$((z-65536))
		y=$z
	fi
	if [ $i -lt 20 ]; then
		nap
		i=$((i+1))
	else
		sleep 0.2 2>/dev/null || sleep 1
		i=$((i+4))
	fi
	look
	size
done

# What was seen in the log may be its last line: the runner writes that after
# the record of the end, and goes.
[ "$W" = 0 ] || look
y=0
while [ "$n" != 0 ] && [ $y -lt 10 ]; do
	case $s in
	exited|killed) ;;
	*) break;;
	esac
	if ! tick "$q" || [ "$k" != "$t" ]; then
		break
	fi
	nap
	y=$((y+1))
done
small || size

g=0 o=$O
if [ "$O" -gt 0 ] && [ "$O" -gt "$z" ]; then
	g=1 o=0
fi
l=$Z
[ -z "$G" ] || l=$S
if [ "$o" -lt 0 ]; then
	[ "$a" -le "$z" ] || a=0
	o=$(((z-l)/4096*4096))
	[ "$o" -ge "$a" ] || o=$a
	l=$((z-o))
fi
[ "$l" -le $((z-o)) ] || l=$((z-o))
[ "$l" -ge 0 ] || l=0
b=$o
case $s in
running|starting) ;;
*) Q=;;
esac
# What is little is sent as it is, in blocks; the reader cuts it.
Y=
if [ -n "$G" ]; then
	[ "$O" -ge 0 ] || Q=
else
	Q=
	if [ -n "$T" ]; then
		Y=1
	elif [ "$O" -ge 0 ] || [ "$l" -le 16384 ]; then
		Y=1 b=$((o/4096*4096))
	fi
fi
h=0 r=- v=0 x='' m=0 k=0 orphaned=
[ ! -f "$D/stop" ] || h=1
[ ! -f "$D/id" ] || read -r r x <"$D/id"
[ ! -f "$D/started" ] || read -r v x <"$D/started"
[ ! -f "$D/tmux" ] || m=1
x=0
[ "$O" -ge 0 ] || x=$A
case $n.$s in
0.*) ;;
*.exited|*.killed|*.lost)
	j=$o y=$x
	orphans "$D"
	# Who waited for the end is so early that some are about to go.
	if [ "$W" != 0 ] && [ "$o" != 0 ]; then
		nap
		orphans "$D"
	fi
	k=$o o=$j x=$y;;
esac
printf 'run %s\nnewest %s\nstate %s\nwhat %s\nended %s\npid %s\nstarted %s\nstop %s\nid %s\ntmux %s\norphans %s\nleft %s\nbegin %s\nsize %s\nfrom %s\nat %s\noffset %s\nreplaced %s\nlines %s\nmark %s\nlog %s\n' \
	"$n" "$u" "$s" "$w" "$e" "$p" "$v" "$h" "$r" "$m" "$k" "$orphaned" "$a" "$z" "$b" "$o" $((o+l)) \
	$g "$x" "$Q" "$L"
sched_words "$D"
echo
if [ "$l" -eq 0 ]; then
	:
elif [ -n "$T" ]; then
	eval 'printf %s "${T:o:l}"'
elif [ -n "$Y" ]; then
	blocks "$o" "$l"
elif [ -z "$G" ] && [ $((o%4096)) = 0 ]; then
	dd if="$L" bs=4096 skip=$((o/4096)) count=$((l/4096+1)) 2>/dev/null |
		head -c "$l" | tail -n "$A"
elif [ -z "$G" ]; then
	part "$o" "$l" | tail -n "$A"
elif [ "$O" -lt 0 ]; then
	part "$o" "$l" | grep -aE -e "$G" | tail -n "$A" | tail -c $((Z+1))
elif [ -z "$Q" ]; then
	part "$o" "$l" | grep -aE -e "$G" | tail -c $((Z+1))
else
	{
		part "$o" "$l"
		printf '%s\n' "$Q"
	} | grep -aE -e "$G" -e "$Q" | tail -c $((Z+1))
fi
:
