# shellcheck shell=sh disable=SC2034,SC2154
# Who is who: B names this boot of the host, tick tells processes apart.

B=-
if [ -r /proc/sys/kernel/random/boot_id ]; then
	read -r B </proc/sys/kernel/random/boot_id
elif [ ! -r /proc/self/stat ]; then
	B=$(sysctl -n kern.bootsessionuuid 2>/dev/null)
	B=${B:--}
fi

# here: k is the name of this machine.
here() {
	k=
	[ ! -r /proc/sys/kernel/hostname ] || read -r k </proc/sys/kernel/hostname
	k=${k:-$(uname -n)}
}

# tick PID: k is when it began, in the words of the system; fails if it is
# gone.
tick() {
	k=
	if [ -r /proc/self/stat ]; then
		read -r k 2>/dev/null <"/proc/$1/stat" || return 1
		k=${k##*") "}
		case $k in
		Z*|X*) return 1;;
		esac
		# shellcheck disable=SC2086
		set -- $k
		k=${20}
	else
		k=$(ps -o lstart= -p "$1" 2>/dev/null | tr -d ' :')
		[ -n "$k" ]
	fi
}
