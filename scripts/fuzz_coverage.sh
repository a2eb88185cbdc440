#!/bin/sh
# What the corpora of the fuzzers reach in the files that these are for.
# "./dev fuzz --coverage" calls it with the targets built in build/coverage.
#
#	scripts/fuzz_coverage.sh [TARGET]
#
# A line a file: lines and regions that were run, of the functions that were
# entered; then the functions that were not, which ask the system or the host.
# Exits 1 if fewer than 80 of 100 lines of a file's entered functions ran.
set -u
cd "$(dirname "$0")/.." || exit 1

least=80
target=${1-}

# The files below src that a target is for.
files_of()
{
	case $1 in
	address) echo watch/address ;;
	bind) echo tools/bind ;;
	capture) echo ssh/capture ;;
	clean) echo ssh/clean ;;
	config) echo config/config config/sandbox ;;
	dispatch) echo mcp/dispatch mcp/methods mcp/tools mcp/prompts \
		mcp/resources ;;
	edit) echo config/jsonc config/jsoncscan config/toml config/tomlscan ;;
	event) echo watch/event ;;
	explain) echo ssh/explain ;;
	farread) echo ssh/farread ssh/cut ;;
	frame) echo mcp/frame_in ;;
	joblog) echo tools/expression tools/jobs ;;
	listing) echo sync/listing ;;
	login) echo ssh/askpass ssh/hostkeys ssh/target ;;
	look) echo watch/look watch/step ;;
	mux) echo ssh/mux ;;
	plan) echo sync/plan ;;
	probe) echo ssh/probe ;;
	ready) echo ssh/shell ssh/lease ;;
	resource_uri) echo tools/resource_uri ;;
	rpc) echo mcp/rpc base/decode ;;
	rules) echo sync/rules sync/glob sync/gitignore sync/wild ;;
	sftp) echo ssh/sftpwire ;;
	slurm) echo job/slurm job/cluster ;;
	sshhost) echo config/sshhost ;;
	status) echo job/start job/look ;;
	sums) echo sync/sums sync/farignore sync/piecelist ;;
	survey) echo ssh/survey ssh/handshake config/sshnames ;;
	tame) echo ssh/tame ;;
	tarwords) echo sync/tarwords ;;
	unpack) echo sync/unpack ;;
	utf8) echo base/utf8 ;;
	*) return 1 ;;
	esac
}

# FILE, then what llvm-cov says of its functions.
sum_up()
{
	awk -v file="$1" -v least=$least '
	NF == 7 && $4 ~ /%/ && $1 != "TOTAL" {
		name = $1
		sub(/^.*:/, "", name)
		if ($5 == $6)
			never = never " " name
		else {
			regions += $2; no_region += $3
			lines += $5; no_line += $6
		}
	}
	END {
		if (lines == 0) {
			print "FAILED  " file ": nothing of it was run"
			exit 1
		}
		share = 100 * (lines - no_line) / lines
		printf "%-8s%-28s%4d of %4d lines %5.1f %%, regions %5.1f %%\n",
		    share < least ? "LOW" : "ok", file, lines - no_line, lines,
		    share, 100 * (regions - no_region) / regions
		if (never != "")
			print "        not entered:" never
		exit share < least
	}'
}

measure()
{
	name=$1
	program=build/coverage/tests/corpus_$name
	profile=build/coverage/$name
	files=$(files_of "$name") || {
		echo "FAILED  $name: say in $0 which files it is for"
		return 1
	}
	LLVM_PROFILE_FILE=$profile.raw "$program" "tests/fuzz/corpus/$name" &&
	    llvm-profdata merge -o "$profile.data" "$profile.raw" || return 1
	rm -f "$profile.raw"
	echo "$name: $(find "tests/fuzz/corpus/$name" -type f | wc -l) inputs"
	low=0
	for file in $files; do
		llvm-cov report -show-functions -show-branch-summary=false \
		    -instr-profile="$profile.data" "$program" \
		    "$PWD/src/$file.c" | sum_up "$file" || low=1
	done
	return $low
}

status=0
# shellcheck disable=SC2231
for source in tests/fuzz/fuzz_${target:-*}.c; do
	name=${source##*/fuzz_}
	measure "${name%.c}" || status=1
done
exit $status
