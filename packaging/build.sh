#!/bin/sh
# Make packages into build/package. "./dev package" calls it after it has
# installed what is needed and built the static program.
#
#	packaging/build.sh [KIND ...]
#
# RSMCP_MCP_NAME	name in the MCP registry
# RSMCP_HOMEPAGE	for the formula
# RSMCP_SOURCE_URL	where the source archive will be, for the formula
# SOURCE_DATE_EPOCH	date of files in archives
set -eu
CDPATH='' cd "$(dirname "$0")/.."

kinds='source wheel deb npm mcpb registry brew container'
out=$PWD/build/package
work=$out/work
name=remote-sandbox-mcp

die()
{
	echo "package: $*" >&2
	exit 1
}

# The one place that has the version.
version=$(sed -n 's/^project(.* VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
summary=$(sed -n 's/^  DESCRIPTION "\(.*\)")/\1/p' CMakeLists.txt)
mcp_name=${RSMCP_MCP_NAME-io.github.$name/$name}
homepage=${RSMCP_HOMEPAGE-https://modelcontextprotocol.io}
source=$out/$name-$version.tar.gz
source_url=${RSMCP_SOURCE_URL-file://$source}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH-$(git log -1 --format=%ct 2>/dev/null ||
    date +%s)}
export SOURCE_DATE_EPOCH

# npm's words for this platform, and the wheel's. The static program needs a
# kernel and nothing else, so any C library will do.
case $(uname -sm) in
'Linux x86_64') os=linux cpu=x64 machine=x86_64 ;;
'Linux aarch64') os=linux cpu=arm64 machine=aarch64 ;;
'Darwin x86_64') os=darwin cpu=x64 machine=x86_64 ;;
'Darwin arm64') os=darwin cpu=arm64 machine=arm64 ;;
*) die "packages are made on Linux and macOS, on x86-64 and ARM64" ;;
esac
case $os in
linux) tag=manylinux_2_17_$machine.manylinux2014_$machine.musllinux_1_1_$machine ;;
darwin) tag=macosx_11_0_$machine ;;
esac

# A template with its @NAMES@ filled in.
fill()
{
	sed -e "s|@VERSION@|$version|g" -e "s|@SUMMARY@|$summary|g" \
	    -e "s|@MCP_NAME@|$mcp_name|g" -e "s|@OS@|$os|g" -e "s|@CPU@|$cpu|g" \
	    -e "s|@HOMEPAGE@|$homepage|g" -e "s|@SOURCE_URL@|$source_url|g" \
	    -e "s|@SOURCE_SHA256@|${sha256-}|g" -e "s|@DATE@|${date-}|g" "$1"
}

# An empty directory to put a package together in.
fresh()
{
	rm -rf "${work:?}/$1"
	mkdir -p "$work/$1"
}

# The static program without what only a debugger wants.
program()
{
	[ -x build/static/$name ] || die "build/static/$name is missing;" \
	    "run ./dev package, or ./dev build static"
	mkdir -p "$(dirname "$1")"
	strip -o "$1" build/static/$name
	chmod 755 "$1"
}

files()
{
	if [ -e .git ]; then
		git ls-files --cached --others --exclude-standard
	else
		find . -type d \( -name build -o -name node_modules -o \
		    -name __pycache__ \) -prune -o -type f -print | sed 's,^\./,,'
	fi | LC_ALL=C sort
}

# As it lies here, with what git does not know yet.
make_source()
{
	tar=$(command -v gtar || echo tar)
	files | while read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done | "$tar" --format=gnu --transform "s,^,$name-$version/," \
	    --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
	    --mode=u+rw,go=rX -cf - -T - | gzip -n9 >"$source"
	echo "$source"
}

make_wheel()
{
	fresh wheel
	program "$work/wheel/$name"
	{
		fill packaging/wheel/METADATA.in
		echo
		cat packaging/about.md
		printf '\n<!-- mcp-name: %s -->\n' "$mcp_name"
	} >"$work/wheel/METADATA"
	rm -f "$out"/remote_sandbox_mcp-*.whl
	python3 packaging/wheel/build.py "$work/wheel/METADATA" LICENSE \
	    "$work/wheel/$name" "$tag" "$out"
}

# By Debian's own tools, of the source archive.
make_deb()
{
	command -v dpkg-buildpackage >/dev/null || {
		echo "deb: skipped, there is no dpkg-buildpackage here"
		return 0
	}
	make_source >/dev/null
	fresh deb
	tar -xzf "$source" -C "$work/deb"
	tree=$work/deb/$name-$version
	cp -R packaging/debian "$tree/debian"
	date=$(date -uR -d "@$SOURCE_DATE_EPOCH")
	fill packaging/debian/changelog.in >"$tree/debian/changelog"
	rm "$tree/debian/changelog.in"
	rm -f "$out"/${name}_*.deb
	(cd "$tree" && dpkg-buildpackage -b -us -uc) >"$work/deb.log" 2>&1 || {
		tail -n 20 "$work/deb.log" >&2
		die "the Debian package does not build: $work/deb.log"
	}
	mv "$work/deb/${name}_$version"-*.deb "$out"
	ls "$out"/${name}_*.deb
}

# One with the start script, one with the program for this platform.
make_npm()
{
	platform=$name-$os-$cpu
	fresh npm
	mkdir "$work/npm/main" "$work/npm/$platform"
	for folder in main "$platform"; do
		cp LICENSE "$work/npm/$folder"
		cp packaging/about.md "$work/npm/$folder/README.md"
	done
	cp packaging/npm/start.js "$work/npm/main"
	chmod 755 "$work/npm/main/start.js"
	fill packaging/npm/package.json.in >"$work/npm/main/package.json"
	fill packaging/npm/platform.json.in >"$work/npm/$platform/package.json"
	program "$work/npm/$platform/bin/$name"
	rm -f "$out/$name"*.tgz
	for folder in main "$platform"; do
		(cd "$work/npm/$folder" &&
		    npm pack --loglevel=error --pack-destination "$out" |
		    sed "s|^|$out/|")
	done
}

# The bundle's own tool checks and packs it.
make_mcpb()
{
	tool=packaging/mcpb/tool/node_modules/.bin/mcpb
	[ -x $tool ] || {
		echo "mcpb: skipped, $tool is missing; ./dev package installs it"
		return 0
	}
	fresh mcpb
	program "$work/mcpb/server/$name"
	fill packaging/mcpb/manifest.json.in >"$work/mcpb/manifest.json"
	cp packaging/about.md "$work/mcpb/README.md"
	cp LICENSE "$work/mcpb"
	bundle=$out/$name-$version-$os-$cpu.mcpb
	rm -f "$out"/*.mcpb
	$tool pack "$work/mcpb" "$bundle" \
	    >"$work/mcpb.log" || die "no bundle: see $work/mcpb.log"
	echo "$bundle"
}

make_registry()
{
	fill packaging/registry/server.json.in >"$out/server.json"
	echo "$out/server.json"
}

make_brew()
{
	make_source >/dev/null
	sha256=$(openssl dgst -sha256 "$source" | sed 's/.* //')
	fill packaging/homebrew/$name.rb.in >"$out/$name.rb"
	echo "$out/$name.rb"
}

# To be built beside the source archive.
make_container()
{
	make_source >/dev/null
	fill packaging/container/Containerfile.in >"$out/Containerfile"
	echo "$out/Containerfile"
}

# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $kinds
for kind; do
	case " $kinds " in
	*" $kind "*) ;;
	*)
		echo "usage: ./dev package [KIND ...]; kinds: $kinds" >&2
		exit 2
		;;
	esac
done
mkdir -p "$work"
for kind; do
	"make_$kind"
done
