#!/bin/sh
# Take into tests/fuzz/corpus what the fuzzers have found: as few inputs as will
# do that reach code which none there does. "./dev fuzz --keep" calls it.
#
#	scripts/fuzz_keep.sh [TARGET]
#
# The runs left them in build/fuzz/run. What is longer than 4 kB is cut.
set -eu
cd "$(dirname "$0")/.."

keep()
{
	name=$1
	log=build/log/fuzz-keep-$name.log
	corpus=tests/fuzz/corpus/$name
	merged=build/fuzz/keep/$name
	rm -rf "$merged"
	mkdir -p "$merged"
	cp "$corpus"/* "$merged"
	"build/fuzz/tests/fuzz_$name" -set_cover_merge=1 -use_counters=0 \
	    -max_len=4096 "$merged" "build/fuzz/run/$name" >"$log" 2>&1 || {
		tail -n 20 "$log"
		return 1
	}
	new=0
	for file in "$merged"/*; do
		[ ! -e "$corpus/${file##*/}" ] || continue
		sum=${file##*/}
		cp "$file" "$corpus/found_$(printf %.10s "$sum")"
		new=$((new+1))
	done
	printf '%-13s %d new inputs\n' "$name" $new
}

mkdir -p build/log
for run in build/fuzz/run/${1:-*}; do
	[ -d "$run" ] || {
		echo "there is nothing in $run: run the fuzzer first" >&2
		exit 1
	}
	keep "${run##*/}"
done
