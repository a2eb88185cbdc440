# shellcheck shell=sh disable=SC2034,SC2154
# What a cluster has, in sections: see src/job/cluster.c.

q_ask_nodes() {
	echo '=NODES='
	$q_i sinfo -h -o '%P|%a|%l|%D|%T|%C|%m|%G' || return 1
	echo '=GRES='
	$q_i sinfo -h -N -O PartitionName:128,NodeList:128,Gres:256,GresUsed:256 \
		2>/dev/null | grep 'gpu' | sort -u
}

q_what=nodes
q_load
case $q_how in
ok) printf '%s\n' "$q_all";;
*)
	printf '%s\n' "${q_how#down }" >&2
	exit 1;;
esac
q_what=queue q_time=0
q_load
echo '=QUEUE='
case $q_how in
ok) printf 'ok\n%s\n' "$q_all";;
esac
echo '=END='
