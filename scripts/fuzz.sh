#!/bin/sh
# Run the fuzzers of build/fuzz, one for each processor at a time. "./dev fuzz"
# calls it.
#
#	scripts/fuzz.sh TARGET|all SECONDS
#
# Each works on a copy of its corpus, in build/fuzz/run, so that its finds do not
# end up in the tree; the next run goes on from them. An input that breaks something is kept in build/fuzz/crashes; it should
# become a file of tests/fuzz/corpus. Exits 1 if there was one.
#
# A line a target: what docs/reliability.md counts.
set -u
cd "$(dirname "$0")/.." || exit 1

target=${1#fuzz_}
seconds=$2

# Seconds of processor that children have had, of what "times" says.
spent()
{
	awk 'NR == 2 {
		split($1 "m" $2, t, /[ms]+/)
		printf "%d", t[1] * 60 + t[2] + t[3] * 60 + t[4]
	}' "$1"
	rm -f "$1"
}

fuzz()
{
	name=$1
	log=build/log/fuzz-$name.log
	corpus=build/fuzz/run/$name
	mkdir -p "$corpus"
	cp -R "tests/fuzz/corpus/$name/." "$corpus" || return 1

	status=0
	"build/fuzz/tests/fuzz_$name" -max_total_time="$seconds" -max_len=16384 \
	    -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	    -artifact_prefix="build/fuzz/crashes/$name-" \
	    -dict="tests/fuzz/$name.dict" "$corpus" >"$log" 2>&1 || status=1
	times >"$log.times" # not from within $(), which is another shell
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
	found=$(grep -c 'Test unit written to' "$log")
	[ $status -eq 0 ] && word=ok || word=FOUND
	printf '%-8s%-13s %5d s of processor, %10d runs, %5d edges, %d found\n' \
	    "$word" "$name" "$(spent "$log.times")" "${runs:-0}" "${edges:-0}" "$found"
	[ $status -eq 0 ] || {
		echo "report in $log, input in build/fuzz/crashes"
		grep -E -A 12 'ERROR: |runtime error: ' "$log" | head -n 20
	}
	return $status
}

mkdir -p build/log build/fuzz/crashes
if [ "$target" = all ]; then
	for program in build/fuzz/tests/fuzz_*; do
		echo "${program##*/fuzz_}"
	done | xargs -I '{}' -P "$(getconf _NPROCESSORS_ONLN)" \
	    scripts/fuzz.sh '{}' "$seconds" || exit 1
	exit 0
fi
program=build/fuzz/tests/fuzz_$target
if [ ! -f "$program" ] || [ ! -x "$program" ]; then
	echo "there is no $program" >&2
	exit 1
fi
fuzz "$target"
