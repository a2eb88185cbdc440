#!/bin/sh
# Checks that need no run of the program: form, layers, banned functions,
# shell, manual pages, static analysis. "./dev lint" calls it after it has
# configured the build whose compile database the analysers read.
#
#	scripts/lint.sh [STEP ...]
#
# "quick" stands for all steps but the analyzer, which takes longer than they
# do together. One line a step, the findings below it. Exits 1 if any step failed. That each
# check can fail is shown by tests/lint.
set -u
cd "$(dirname "$0")/.." || exit 1

python=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1
database=build/dev/compile_commands.json
quick='format layers calls text readme proof shell man cppcheck clang-tidy'

# Files of ours below the given places whose names match; run the rest on them.
on_files()
{
	pattern=$1
	shift
	places=
	for place in $1; do
		[ -e "$place" ] && places="$places $place"
	done
	shift
	# Both are lists of words without spaces.
	# shellcheck disable=SC2086
	find $places -name node_modules -prune -o \
	    -type f -name "$pattern" -exec "$@" {} +
}

check_format()
{
	on_files '*.[ch]' 'src tests' clang-format --dry-run -Werror
}

check_shell()
{
	shellcheck -x dev .ci/run &&
	    on_files '*.sh' 'src scripts tests bench packaging' shellcheck
}

check_man()
{
	on_files '*.[1-8]' 'man build/dev/man' mandoc -Tlint -Wwarning
}

static()
{
	if [ ! -f "$database" ]; then
		echo "$database is missing: configure the preset dev first"
		return 1
	fi
	"$python" scripts/check_static.py "$1" "$database"
}

run_step()
{
	case $1 in
	format) check_format ;;
	layers) "$python" scripts/check_layers.py ;;
	calls) "$python" scripts/check_calls.py ;;
	text) "$python" scripts/check_text.py ;;
	readme) "$python" scripts/check_readme.py ;;
	proof) "$python" scripts/check_proof.py ;;
	shell) check_shell ;;
	man) check_man ;;
	cppcheck | clang-tidy | analyzer) static "$1" ;;
	*)
		echo "usage: scripts/lint.sh [quick | STEP ...];" \
		    "steps: $quick analyzer" >&2
		exit 2
		;;
	esac
}

failed=0
# shellcheck disable=SC2086
case $# in
0) set -- $quick analyzer ;;
*) [ "$1" != quick ] || set -- $quick ;;
esac
for step; do
	output=$(run_step "$step" 2>&1)
	case $? in
	0)
		printf 'ok      %-10s %s\n' "$step" "$(echo "$output" | tail -n 1)"
		;;
	2)
		echo "$output" >&2
		exit 2
		;;
	*)
		printf 'FAILED  %s\n%s\n' "$step" "$output"
		failed=1
		;;
	esac
done
exit $failed
