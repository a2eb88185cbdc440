# shellcheck shell=sh disable=SC2034,SC2154
# Runs that were given to Slurm: they have a file "opts".  Added to the other
# texts where the sandbox is a cluster.
#
# All who ask look at one copy of the user's queue, $J/.queue, which is asked
# for anew when it is a few seconds old: a line "TIME ok" or "TIME down WORDS",
# then a line a job.  The same goes for what the cluster has: q_what says which
# copy is meant.  What has ended is kept with the run, since Slurm forgets it
# after minutes:
#
#	slurm	number of the job, and when it was submitted
#	over	what was last said of it, or of its tasks that have ended
#	final	all of it is over
#
# Functions here use names with q_, so they are safe from the others.  Two come
# from outside: q_task, the number of a task of an array if that is meant, and
# q_opts, options for sbatch as words for a shell.

# Many clusters have its programs in a place that profiles add to PATH.
if ! command -v squeue >/dev/null 2>&1 && [ -r /etc/profile ]; then
	# shellcheck source=/dev/null
	. /etc/profile >/dev/null 2>&1
fi

q_what=queue q_age=3 q_time=0 q_how='' q_all='' q_job='' q_rows='' q_live=0
q_nl='
'

q_read() {
	q_time=0 q_how='' q_all=
	[ -f "$J/.$q_what" ] || return 0
	{
		read -r q_time q_how
		q_all=$(cat)
	} 2>/dev/null <"$J/.$q_what"
	case $q_time in
	''|*[!0-9]*) q_time=0;;
	esac
}

# A newer bash needs no program to tell the time.
q_fresh() {
	case ${BASH_VERSION-} in
	[5-9]*|4.[2-9]*) eval "printf -v q_now '%(%s)T' -1";;
	*) q_now=$(date +%s);;
	esac
	[ $((q_now-q_time)) -lt $q_age ] && [ $((q_time-q_now)) -lt 5 ]
}

# A daemon that hangs must not hold up the rest.
q_limit() {
	q_i=
	! command -v timeout >/dev/null 2>&1 || q_i='timeout 20'
}

# Settings of the user's must not hide jobs.
q_ask_queue() {
	unset SQUEUE_ACCOUNT SQUEUE_NAMES SQUEUE_PARTITION SQUEUE_QOS \
		SQUEUE_LICENSES SQUEUE_SORT SQUEUE_FEDERATION SQUEUE_LOCAL
	export SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0
	$q_i squeue -h -t all -u "$(id -u)" -o '%i|%T|%r|%S|%N|%l|%k|%j'
}

q_ask() {
	q_limit
	q_x=$J/.$q_what.$$
	if (
		printf '%s ok\n' "$q_now"
		"q_ask_$q_what"
	) >"$q_x" 2>"$q_x.err"; then
		:
	else
		printf '%s down %s\n' "$q_now" "$(tail -n 1 "$q_x.err")" >"$q_x"
	fi
	mv -f "$q_x" "$J/.$q_what"
	rm -f "$q_x.err"
}

# Of several one asks; meanwhile the others have what is not much older.  The
# lock is a link that names its time: one that is old was left by somebody who
# was killed, and so was one from a time to come if the clock was set back.
q_load() {
	! q_fresh || return 0
	[ -d "$J" ] || mkdir -p "${J%/*}" 2>/dev/null
	[ -d "$J" ] || mkdir -m 700 "$J" || exit 1
	q_read
	q_i=0
	until q_fresh || ln -s "$q_now" "$J/.$q_what.asking" 2>/dev/null; do
		[ "$q_how" != ok ] || [ $((q_now-q_time)) -gt 9 ] || return 0
		q_x=$(readlink "$J/.$q_what.asking")
		case $q_x in
		''|*[!0-9]*) ;;
		*)
			if [ $((q_now-q_x)) -gt 25 ] ||
			    [ $((q_x-q_now)) -gt 25 ]; then
				rm -f "$J/.$q_what.asking"
			fi;;
		esac
		if [ $q_i -lt 10 ]; then
			nap
		else
			sleep 0.5 2>/dev/null || sleep 1
		fi
		q_i=$((q_i+1))
		if [ $q_i -gt 120 ]; then
			q_how='down nobody can ask it'
			return
		fi
		q_read
	done
	! q_fresh || return 0
	q_read
	q_fresh || q_ask
	rm -f "$J/.$q_what.asking"
	q_read
}

# q_over STATE: has it ended for good?  Whatever we do not know has not.
q_over() {
	case $1 in
	BOOT_FAIL|CANCELLED*|COMPLETED|DEADLINE|FAILED|LAUNCH_FAILED) ;;
	NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|REVOKED|TIMEOUT) ;;
	*) return 1;;
	esac
}

# q_row LINE: it is live, or it has ended: q_gone gets it.
q_row() {
	q_x=${1#*|}
	if q_over "${q_x%%|*}"; then
		q_gone="${q_gone}done $1$q_nl"
	else
		q_rows="${q_rows}q $1$q_nl" q_live=$((q_live+1))
	fi
}

# q_find JOB: its rows.  To cut a long text at a pattern takes shells long, to
# split it into lines does not.
q_find() {
	q_rows='' q_live=0 q_gone='' q_ifs=$IFS IFS=$q_nl
	set -f
	for q_i in $q_all; do
		case $q_i in
		"$1|"*|"$1_"*) q_row "$q_i";;
		esac
	done
	set +f
	IFS=$q_ifs
}

# q_acct DIR: Slurm has forgotten it; the accounting may remember.  One that does
# not answer is asked again; one that a site does not have never will.
q_acct() {
	q_limit
	q_out=$(SLURM_TIME_FORMAT=%s $q_i sacct -n -P -X -j "$q_job" \
		-o JobID,State,ExitCode,Start,NodeList 2>"$1/acct.err")
	q_x="$? $(tail -n 1 "$1/acct.err")"
	rm -f "$1/acct.err"
	case $q_x in
	0*) ;;
	124*) q_how='down sacct does not answer';;
	*onnect*|*contact*|*talking*|*'timed out'*) q_how="down ${q_x#* }";;
	esac
	case $q_how in
	down*) return 1;;
	esac
	printf '%s\n' "$q_out" | while IFS= read -r q_i; do
		q_x=${q_i#*|}
		! q_over "${q_x%%|*}" || printf 'acct %s\n' "$q_i"
	done >>"$1/over"
}

# q_keep DIR: rows of what has ended stay with the run.
q_keep() {
	q_old=
	[ ! -f "$1/over" ] || q_old=$(cat "$1/over")
	while IFS= read -r q_i; do
		case $q_nl$q_old$q_nl in
		*"$q_nl$q_i$q_nl"*) ;;
		*) [ -z "$q_i" ] || printf '%s\n' "$q_i" >>"$1/over";;
		esac
	done <<EOF
$q_gone
EOF
}

# q_number DIR: q_job, and q_since when it was submitted.  A starter that was
# killed may have left no number; the job bears the word of the run.
q_number() {
	q_job='' q_since=0
	[ ! -f "$1/slurm" ] || read -r q_job q_since <"$1/slurm"
	[ -z "$q_job" ] || return 0
	q_load
	q_me=
	[ ! -f "$1/id" ] || read -r q_me q_x <"$1/id"
	[ -n "$q_me" ] || return 1
	q_ifs=$IFS IFS=$q_nl
	set -f
	for q_i in $q_all; do
		case $q_i in
		*"|rsmcp $q_me|"*) q_job=${q_i%%[_|]*};;
		esac
	done
	set +f
	IFS=$q_ifs
	[ -n "$q_job" ] || return 1
	printf '%s 0\n' "$q_job" >"$1/slurm"
}

# q_array DIR: q_want is what was asked for, if it is an array.
q_array() {
	q_want=
	read -r q_x <"$1/opts"
	case " $q_x" in
	*" '--array="*)
		q_x=${q_x#*"'--array="}
		q_want=${q_x%%"'"*};;
	esac
}

# q_has DIR: is q_task one of its tasks?  A number may begin with zeros, which
# the shell takes for another kind.
q_has() {
	q_array "$1"
	q_x=${q_want%%\%*}
	while [ -n "$q_x" ]; do
		q_i=${q_x%%,*}
		case $q_x in
		*,*) q_x=${q_x#*,};;
		*) q_x=;;
		esac
		q_step=1
		case $q_i in
		*:*) q_step=${q_i##*:} q_i=${q_i%:*};;
		esac
		# shellcheck disable=SC2003
		if [ "$q_task" -ge "${q_i%-*}" ] &&
		    [ "$q_task" -le "${q_i#*-}" ] &&
		    [ "$(expr \( "$q_task" - "${q_i%-*}" \) % "$q_step")" = 0 ]
		then
			return 0
		fi
	done 2>/dev/null
	return 1
}

# The clocks of login nodes may differ: who took the copy was perhaps on
# another than who submitted the job.
q_newer() {
	[ "$q_time" -gt $((${q_since:-0}+5)) ]
}

# q_settle DIR: what the queue says of a run, and whether it is final.
q_settle() {
	q_load
	case $q_how in
	ok) ;;
	*) return;;
	esac
	q_find "$q_job"
	if [ -z "$q_rows$q_gone" ] && ! q_newer; then
		return # the copy may be older than the job
	fi
	[ -z "$q_gone" ] || q_keep "$1"
	[ $q_live = 0 ] || return
	# Of an array, tasks that ended long ago are not in the queue.
	q_array "$1"
	if [ -n "$q_want" ] || [ ! -s "$1/over" ]; then
		q_acct "$1" || return
		[ -s "$1/over" ] || echo 'gone -' >"$1/over"
	fi
	printf '' >"$1/final"
}

# A task is over when its row is; one without a row may still have to come.
q_task_over() {
	case $q_nl$q_rows$q_gone in
	*"${q_nl}q ${q_job}_$q_task|"*) return 1;;
	*"${q_nl}done ${q_job}_$q_task|"*) return 0;;
	*"${q_nl}q ${q_job}_["*) return 1;;
	esac
	case $q_how in
	ok) q_newer;;
	*) return 1;;
	esac
}

sched() {
	[ -f "$1/opts" ] || return 1
	s=running w=- e=0 p=0 q=0 t='' b='' q_rows='' q_gone='' q_live=0
	if [ -n "${q_task-}" ] && ! q_has "$1"; then
		s=none
		return 0
	fi
	if ! q_number "$1"; then
		case $q_how in
		down*) ;;
		*) unborn "$1";;
		esac
		return 0
	fi
	[ -f "$1/final" ] || q_settle "$1"
	q_x=$1${q_task:+/t$q_task}/exit
	if [ -f "$1/final" ] || { [ -n "${q_task-}" ] && q_task_over; }; then
		s=lost w=slurm
		[ ! -f "$q_x" ] || read -r s w e <"$q_x"
	fi
	return 0
}

# What is told of it besides: see src/job/slurm.h.
sched_words() {
	[ -f "$1/opts" ] || return 0
	printf 'slurm %s\nqueue %s %s\n%s' "$q_job ${q_task-}" "$q_time" "$q_how" "$q_rows"
	q_array "$1"
	[ -z "$q_want" ] || printf 'array %s\n' "$q_want"
	[ ! -f "$1/over" ] || cat "$1/over"
	for q_i in "$1"/t*/exit; do
		[ -f "$q_i" ] || continue
		read -r q_x <"$q_i"
		q_i=${q_i%/exit}
		printf 'task %s %s\n' "${q_i##*/t}" "$q_x"
	done
}

# All that is in the queue, whoever put it there.
sched_all() {
	q_load
	printf 'queue %s %s\n' "$q_time" "$q_how"
	[ -z "$q_all" ] || printf '%s\n' "$q_all" | sed 's/^/q /'
	echo
}

# Gives the run in D to Slurm.
sched_start() {
	q_x=$(printf %s "$D" | sed "s/'/'\\\\''/g")
	q_i=$(printf %s "$L" | sed 's/%/%%/g')
	case " $q_opts" in
	*" '--array="*) q_i=${q_i%.log}_%a.log;;
	esac
	unset RSMCP_CALL
	eval "set -- $q_opts"
	q_out=$(sbatch --parsable --job-name="$N" --comment="rsmcp $I" \
		--chdir="$C" --output="$q_i" --open-mode=append "$@" \
		--wrap="exec sh '$q_x/run' slurm" 2>"$D/err") ||
		bad "sbatch says: $(tail -n 3 "$D/err" | tr '\n' ' ')"
	# Some sites let it say more than that.
	q_job=$(printf '%s\n' "$q_out" |
		sed -n 's/^\([0-9][0-9]*\)\(;.*\)*$/\1/p' | tail -n 1)
	if [ -z "$q_job" ]; then
		q_age=0
		q_number "$D" || ! bar "$D" ||
			bad "sbatch gave no number: $(printf %s "$q_out" |
				tail -n 3 | tr '\n' ' ')"
		[ -n "$q_job" ] || [ ! -s "$D/slurm" ] ||
			read -r q_job q_x <"$D/slurm" # it began
	fi
	# Without one, the runner writes it down.
	[ -z "$q_job" ] ||
		{ printf '%s %s\n' "$q_job" "$(date +%s)" >"$D/slurm.new" &&
			mv -f "$D/slurm.new" "$D/slurm"; }
	printf '%1023s\n' '' >"$D/err"
	say "queued ${q_job:-0} $n 0 $b $L"
}

# Ends the run in D, or a task of it.  Slurm sends TERM and, after its own
# KillWait, KILL; whoever does not want to wait that long gets KILL sooner.
sched_stop() {
	st "$D"
	if [ "$s" = starting ] || { [ "$s" != none ] && [ -z "$q_job" ]; }; then
		! bar "$D" || s=lost
	fi
	if [ "$s" != running ]; then
		printf 'was 0\nstate %s\nleft \n' "$s"
		return
	fi
	q_me=$q_job${q_task:+_$q_task}
	[ -n "${q_task-}" ] || date +%s >"$D/stop"
	scancel "$q_me" >&2 || {
		rm -f "$D/stop"
		exit 1
	}
	q_age=2 y=0 x=$((G/50+20))
	while [ $y -lt $x ]; do
		st "$D"
		[ "$s" = running ] || break
		if [ $y = $((G/50)) ]; then
			scancel -s KILL --full "$q_me" ||
				scancel -s KILL -b "$q_me"
		fi >/dev/null 2>&1
		sleep 0.5 2>/dev/null || sleep 1
		y=$((y+1))
	done
	case $s in
	running) printf 'was 1\nstate running\nleft Slurm-job:%s\n' "$q_me";;
	lost) printf 'was 1\nstate killed\nleft \n';;
	*) printf 'was 1\nstate %s\nleft \n' "$s";;
	esac
}
