# shellcheck shell=bash
# Runs each text of stdin (ended by a NUL) in a bash of its own and writes, for
# each, all that is to be known about that bash afterwards; also ended by a NUL.
# Nothing but that is written for a bash that did not get so far.
exec 201>&1 202<&0 >/dev/null 2>&1 </dev/null
set -- a b c

descriptors()
{
	local fd

	for fd in "/proc/$BASHPID/fd"/*; do
		[[ $fd -ef /dev/null ]] && echo nowhere: >&201
		echo "${fd##*/}" >&201
	done
}

state()
{
	descriptors
	echo "$# $* $-" >&201
	set +o >&201
	shopt -p >&201
	trap -p >&201
	declare -f >&201
	alias -p >&201
	jobs -l >&201
	umask >&201
	ulimit -a >&201
	enable -a >&201
	complete -p >&201
	set >&201
}

while IFS= read -r -d '' -u 202 the_text; do
	(
		eval " $the_text"
		the_text=
		state "$@"
	)
	printf '\0' >&201
done
