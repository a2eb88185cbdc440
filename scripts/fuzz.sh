#!/bin/sh
# Run the fuzzers of build/fuzz, one for each processor at a time. "./dev fuzz"
# calls it.
#
#	scripts/fuzz.sh SECONDS [TARGET]
#
# Each works on a copy of its corpus, so that its finds do not end up in the
# tree. An input that breaks something is kept in build/fuzz/crashes; it should
# become a file of tests/fuzz/corpus. Exits 1 if there was one.
set -u
cd "$(dirname "$0")/.." || exit 1

seconds=$1
target=${2-}
target=${target#fuzz_}

fuzz()
{
	name=$1
	log=build/log/fuzz-$name.log
	corpus=build/fuzz/run/$name
	rm -rf "$corpus"
	mkdir -p "$corpus"
	cp -R "tests/fuzz/corpus/$name/." "$corpus" || return 1

	set -- -max_total_time="$seconds" -max_len=16384 -timeout=10 \
	    -rss_limit_mb=2048 -print_final_stats=1 \
	    -artifact_prefix="build/fuzz/crashes/$name-"
	[ ! -f "tests/fuzz/$name.dict" ] ||
	    set -- "$@" -dict="tests/fuzz/$name.dict"
	if "build/fuzz/tests/fuzz_$name" "$@" "$corpus" >"$log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
		echo "ok      $name: $runs runs in $seconds s, $edges edges covered"
		return 0
	fi
	echo "FOUND   $name: report in $log, input in build/fuzz/crashes"
	grep -E -A 12 'ERROR: |runtime error: ' "$log" | head -n 20
	return 1
}

mkdir -p build/log build/fuzz/crashes
if [ -z "$target" ]; then
	for program in build/fuzz/tests/fuzz_*; do
		echo "${program##*/fuzz_}"
	done | xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN)" \
	    scripts/fuzz.sh "$seconds" || exit 1
	exit 0
fi
program=build/fuzz/tests/fuzz_$target
if [ ! -f "$program" ] || [ ! -x "$program" ]; then
	echo "there is no $program" >&2
	exit 1
fi
fuzz "$target"
