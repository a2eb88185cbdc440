# shellcheck shell=sh
# What building and testing need, and how to get it. Part of ./dev, which has
# say, die, logged and must.
#
#	setup build|test|packages	everything; "packages" for testing them too
#	setup_packages build|test|...	without the MCP clients of the tests
#	setup_package			what making packages takes
#
# Debian and Ubuntu: by apt. macOS: by Homebrew. Elsewhere: names what is
# missing and stops. Sets $python, except for "build".

# Debian's names. A command after "=" or a pkg-config module after "@" counts
# as good, wherever it came from.
needs_build='cmake=cmake ninja-build=ninja gcc=gcc libc6-dev
	pkg-config=pkg-config libjansson-dev@jansson
	libarchive-dev@libarchive libsqlite3-dev@sqlite3 zlib1g-dev@zlib
	mandoc=mandoc
	openssh-client=ssh openssh-server=/usr/sbin/sshd'
needs_test="$needs_build clang=clang clang-format=clang-format
	clang-tidy=clang-tidy llvm=llvm-symbolizer
	cppcheck=cppcheck shellcheck=shellcheck
	libcmocka-dev@cmocka python3-pytest python3-jsonschema python3-yaml
	libarchive-tools=bsdtar zsh=zsh busybox=busybox fish=fish tcsh=tcsh mksh=mksh
	tmux=tmux dash=dash rsync=rsync git=git npm=npm ca-certificates
	curl=curl dbus-daemon=dbus-daemon libnotify-bin=notify-send
	libsecret-tools=secret-tool gnome-keyring=gnome-keyring-daemon
	python3-dbusmock"

needs_package='debhelper=dh dpkg-dev=dpkg-buildpackage fakeroot=fakeroot
	python3=python3 npm=npm openssl=openssl'
# To try the packages.
needs_packages="$needs_test $needs_package binutils=readelf
	debootstrap=debootstrap lintian=lintian python3-venv ruby=ruby"

# Homebrew's. The compiler is the system's; llvm brings what Apple leaves out.
brew_build='cmake ninja pkgconf jansson libarchive sqlite mandoc'
brew_package="$brew_build gnu-tar node python"
brew_test="$brew_build llvm cppcheck shellcheck cmocka python node rsync tmux"

have()
{
	command -v "$1" >/dev/null 2>&1
}

# Of the needs given, print the packages that are not there.
apt_missing()
{
	names=
	for need; do
		names="$names ${need%%[=@]*}"
	done
	# shellcheck disable=SC2086,SC2016
	installed=$(dpkg-query -W -f '/${Package}/${db:Status-Status}/\n' \
	    $names 2>/dev/null || :)
	for need; do
		case $installed in
		*"/${need%%[=@]*}/installed/"*) continue ;;
		esac
		case $need in
		*=*) have "${need#*=}" && continue ;;
		esac
		printf '%s ' "${need%%[=@]*}"
	done
}

# Where packages have names unknown to us, look for what they bring.
other_missing()
{
	for need; do
		case $need in
		*=*) have "${need#*=}" && continue ;;
		*@*) pkg-config --exists "${need#*@}" 2>/dev/null && continue ;;
		python3-*) find_python && continue ;;
		libc6-dev | ca-certificates) continue ;;
		esac
		printf '%s ' "${need%%[=@]*}"
	done
}

brew_missing()
{
	prefix=$(brew --prefix)
	for formula; do
		[ -d "$prefix/opt/$formula" ] || printf '%s ' "$formula"
	done
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# dpkg wants the sbin directories in PATH, where su does not always put them.
apt_get()
{
	as_root env DEBIAN_FRONTEND=noninteractive \
	    PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" \
	    apt-get -o DPkg::Lock::Timeout=300 "$@"
}

# Debian starts a service as soon as its package is in, and at every boot. Demo
# and tests run private daemons and want only the programs, so such packages go
# in under a policy that forbids starting anything. A policy that is already
# there (containers have one) is left as it is.
install_quietly()
(
	policy=/usr/sbin/policy-rc.d
	if [ ! -e $policy ]; then
		trap 'as_root rm -f $policy' EXIT
		trap 'exit 1' HUP INT TERM
		printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null &&
		    as_root chmod 755 $policy || exit 1
	fi
	apt_get install -y --no-install-recommends "$@"
)

# And their services are switched off.
install_sshd()
{
	install_quietly openssh-server || return 1
	as_root /usr/sbin/update-rc.d ssh disable
	# Ubuntu starts it by way of a socket.
	if [ -e /lib/systemd/system/ssh.socket ] && have systemctl; then
		as_root systemctl disable ssh.socket || :
	fi
}

install_slurm()
{
	install_quietly slurmctld slurmd slurm-client munge || return 1
	for service in slurmctld slurmd munge; do
		as_root /usr/sbin/update-rc.d $service disable
	done
}

# A cluster on loopback, for its tests; without it they are skipped.
setup_slurm()
{
	have apt-get && have dpkg-query || return 0
	[ -n "$(apt_missing slurmctld slurmd slurm-client munge)" ] || return 0
	if [ "$(id -u)" != 0 ] && ! have sudo; then
		say "no Slurm, so its tests are skipped"
		return 0
	fi
	say "installing with apt: Slurm, for its tests"
	logged apt-update apt_get update || :
	logged apt-slurm install_slurm ||
	    say "no Slurm: see build/log/apt-slurm.log; going on"
}

apt_install()
{
	if [ "$(id -u)" != 0 ] && ! have sudo; then
		die "missing packages; as root, run: apt-get install $*"
	fi
	say "installing with apt: $*"
	logged apt-update apt_get update ||
	    say "apt-get update failed: see build/log/apt-update.log; going on"
	sshd=
	packages=
	for package; do
		case $package in
		openssh-server) sshd=1 ;;
		*) packages="$packages $package" ;;
		esac
	done
	# shellcheck disable=SC2086
	[ -z "$packages" ] ||
	    must apt-install apt_get install -y --no-install-recommends $packages
	[ -z "$sshd" ] || must apt-install-sshd install_sshd
}

# libFuzzer and clang's sanitizers are in a package named after clang's version.
setup_clang_runtime()
{
	for file in "$(clang -print-resource-dir)"/lib/*/libclang_rt.fuzzer*; do
		[ ! -e "$file" ] || return 0
	done
	version=$(clang -dumpversion)
	apt_install "libclang-rt-${version%%.*}-dev"
}

# A FIDO token made of software, for its test. It is in a package that would
# bring much with it, so only the files are taken; without them the test is
# skipped.
setup_token()
{
	[ ! -d build/token ] && have apt-get && have dpkg || return 0
	mkdir -p build/token || return 0
	logged apt-token sh -c 'cd build/token && apt-get download openssh-tests &&
	    dpkg -x openssh-tests_*.deb .' ||
	    say "no software FIDO token: see build/log/apt-token.log; going on"
}

setup_brew()
{
	case $1 in
	build) wanted=$brew_build ;;
	package) wanted=$brew_package ;;
	packages) wanted="$brew_test gnu-tar" ;;
	*) wanted=$brew_test ;;
	esac
	# shellcheck disable=SC2086
	missing=$(brew_missing $wanted)
	if [ -n "$missing" ]; then
		say "installing with Homebrew: $missing"
		# shellcheck disable=SC2086
		must brew brew install $missing
	fi
	PATH=$(brew --prefix)/opt/llvm/bin:$PATH
	# Homebrew keeps this one beside macOS's own, which has no headers.
	PKG_CONFIG_PATH=$(brew --prefix)/opt/libarchive/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
	export PKG_CONFIG_PATH
	if for_tests "$1" && ! find_python; then
		say "installing pytest, jsonschema and pyyaml into build/venv"
		must venv python3 -m venv build/venv
		must venv build/venv/bin/python3 -m pip install pytest jsonschema \
		    pyyaml
	fi
}

for_tests()
{
	[ "$1" = test ] || [ "$1" = packages ]
}

# Programs and libraries, for "build", "package", "test" or "packages".
setup_packages()
{
	case $1 in
	build) needs=$needs_build ;;
	package) needs="$needs_build $needs_package" ;;
	packages) needs=$needs_packages ;;
	*) needs=$needs_test ;;
	esac
	if have apt-get && have dpkg-query; then
		# shellcheck disable=SC2086
		missing=$(apt_missing $needs)
		# shellcheck disable=SC2086
		[ -z "$missing" ] || apt_install $missing
		! for_tests "$1" || { setup_clang_runtime; setup_token; setup_slurm; }
	elif have brew; then
		setup_brew "$1"
	else
		# shellcheck disable=SC2086
		missing=$(other_missing $needs)
		[ -z "$missing" ] || die "please install (Debian's names): $missing"
	fi
	! for_tests "$1" || find_python ||
	    die "no python3 here can import pytest and jsonschema"
}

# Sets $python to one that has what the tests import.
find_python()
{
	for python in /usr/bin/python3 "$(command -v python3 || :)" \
	    "$PWD/build/venv/bin/python3"; do
		[ -x "$python" ] && "$python" -c '
import importlib.util, sys
sys.exit(not all(map(importlib.util.find_spec, ("pytest", "jsonschema"))))
' && return 0
	done 2>/dev/null
	return 1
}

# DIRECTORY WHAT [OPTION]: what a lock file names, if it is not there already.
npm_ci()
{
	sum=$(cat "$1/package.json" "$1/package-lock.json" | cksum)
	[ "$(cat "$1/node_modules/.installed" 2>/dev/null)" != "$sum" ] ||
	    return 0
	say "installing $2 (npm ci)"
	logged npm sh -c "cd $1 &&
	    exec npm ci --ignore-scripts --loglevel=error ${3-}" &&
	    echo "$sum" >"$1/node_modules/.installed"
}

# The official MCP clients, as the lock file has them. They run on the node
# among them, which is for one kind of machine; elsewhere "--force" passes over
# it, and $NODE names another.
setup_clients()
{
	force=
	if [ "$(uname -sm)" != 'Linux x86_64' ]; then
		force=--force
		export NODE="${NODE-$(command -v node)}"
	fi
	npm_ci tests/clients 'the MCP clients of the tests' $force ||
	    die_with_log "that failed"
}

# The tool that checks and packs MCP bundles; without it there is no bundle.
setup_bundle_tool()
{
	npm_ci packaging/mcpb/tool 'the tool for MCP bundles' ||
	    say "no tool for MCP bundles: see build/log/npm.log; going on"
}

setup_package()
{
	setup_packages package
	setup_bundle_tool
}

# A real agent that the long tests hand the plugin to, 360 MB; without it that
# test is skipped.
setup_agents()
{
	npm_ci tests/agents 'the agents of the long tests' ||
	    say "that failed: see build/log/npm.log; going on"
}

setup()
{
	setup_packages "$1"
	[ "$1" = build ] || setup_clients
	[ "$1" != packages ] || setup_bundle_tool
}
