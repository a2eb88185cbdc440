# shellcheck shell=sh disable=SC2034,SC2154
# All jobs.  A days after which the files of ended ones go; 0: never.  Prints,
# for each, lines as look.sh does, and an empty one; then what else is in the
# scheduler's queue; at last "gone N".

# alive DIR: had its run processes when we began to look at ended ones?  One
# look for all of them tells of which that is worth another.
alive() {
	i=
	[ ! -f "$1/id" ] || read -r i x <"$1/id"
	[ -n "$marks" ] || marks=" $(cat /proc/[0-9]*/environ 2>/dev/null |
		tr '\000' '\n' |
		sed -n 's/.*RSMCP_CALL=job\.\([^.]*\)\..*/\1/p' |
		sort -u | tr '\n' ' ')"
	case $marks in
	*" $i "*) [ -n "$i" ];;
	*) false;;
	esac
}

# A run that is started meanwhile is in a directory of its own, and stays.
clean() {
	for d in "$1"/r*; do
		d=${d##*/r}
		case $d in
		''|*[!0-9]*) continue;;
		esac
		[ "$d" -gt "$n" ] || rm -rf "$1/r$d"
	done
	rm -f "$1/newest"
	rmdir "$1" 2>/dev/null
}

y=0 marks=
for j in "$J"/*; do
	[ -d "$j" ] || continue
	N=${j##*/}
	newest "$j"
	[ "$n" != 0 ] || continue
	D=$j/r$n
	st "$D"
	o=0
	case $s in
	exited|killed|lost) ! alive "$D" || orphans "$D";;
	esac
	case $s.$o in
	running.*|starting.*|*.[1-9]*) ;;
	*)
		if [ "$A" -gt 0 ] && [ -n "$(
			find "$D" -prune -mtime +$((A-1)) 2>/dev/null)" ]; then
			clean "$j"
			y=$((y+1))
			continue
		fi;;
	esac
	L='' z=-1 h=0 r=- v=0 x='' m=0
	[ ! -f "$D/log" ] || IFS= read -r L <"$D/log"
	if [ "$s" = running ] && [ -f "$L" ]; then
		z=$(wc -c <"$L" 2>/dev/null)
		z=$((${z:--1}))
	fi
	[ ! -f "$D/stop" ] || h=1
	[ ! -f "$D/id" ] || read -r r x <"$D/id"
	[ ! -f "$D/started" ] || read -r v x <"$D/started"
	[ ! -f "$D/tmux" ] || m=1
	printf 'name %s\nrun %s\nstate %s\nwhat %s\nended %s\npid %s\nstarted %s\nstop %s\nid %s\ntmux %s\norphans %s\nsize %s\nlog %s\n' \
		"$N" "$n" "$s" "$w" "$e" "$p" "$v" "$h" "$r" "$m" "$o" "$z" "$L"
	sched_words "$D"
	echo
done
if [ "$A" -gt 0 ]; then
	find "$J" -name '.start-*' -mtime +0 -exec rm -f {} + 2>/dev/null
	for k in "$J"/.keys/*; do
		[ -e "$k" ] || [ ! -h "$k" ] || rm -f "$k"
	done
fi
sched_all
printf 'gone %s\n\n' $y
