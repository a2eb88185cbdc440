# shellcheck shell=sh disable=SC2034,SC2154
# What a cluster has, in sections: see src/job/cluster.c.

echo '=NODES='
sinfo -h -o '%P|%a|%l|%D|%T|%C|%m|%G' || exit 1
echo '=GRES='
sinfo -h -N -O PartitionName:128,NodeList:128,Gres:256,GresUsed:256 2>/dev/null |
	grep 'gpu' | sort -u
echo '=QUEUE='
q_load
case $q_how in
ok) printf 'ok\n%s\n' "$q_all";;
esac
echo '=END='
