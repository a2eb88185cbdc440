/*
 * The command that lists.
 *
 * P is the path as given, R is 1 to go deep, D is 1 if the free space is to be
 * told, K is what is known of the host, X a way to list for tests, and "$@" are
 * names that are told of and not looked at.  It has to run in bash, dash and
 * busybox; what a name may hold passes through variables and arguments only.
 * "x" behind what a command prints saves newlines at its end.  A program that
 * need not be started saves a millisecond, of some thirty that ten thousand
 * files take.
 */
#include "sync/lister.h"

#include <string.h>

#include "base/quote.h"

/* p, a: the path, and the nearest directory above that exists; k: its kind. */
static const char look[] =
    "export LC_ALL=C; unset CDPATH POSIXLY_CORRECT; b=; nl='\n'\n"
    "command -v find >/dev/null 2>&1 || b=busybox\n"
    "case $P in '~'|'~/'*) P=$HOME${P#'~'};; esac\n"
    "case $P in /*) p=$P;; *) p=$(pwd; echo x); p=${p%??}/$P;; esac\n"
    "while :; do case $p in ?*/) p=${p%/};; *) break;; esac; done\n"
    "if [ -d \"$p\" ]; then k=d\n"
    "elif [ -f \"$p\" ]; then k=f\n"
    "elif [ -e \"$p\" ] || [ -L \"$p\" ]; then k=o\n"
    "else k=m; fi\n"
    "case $k$p/ in\n"
    "d*/../*) q=$(cd -P \"$p\" 2>/dev/null && pwd && echo x) && p=${q%??};;\n"
    "esac\n"
    "a=$p; [ $k = d ] || while :; do\n"
    "case $a in */) a=${a%/}; continue;; esac\n"
    "a=${a%/*}; [ -n \"$a\" ] || { a=/; break; }; [ ! -e \"$a\" ] || break\n"
    "done\n"
    "w=; if [ -d \"$a\" ]; then\n"
    "if [ ! -x \"$a\" ]; then k=x\n"
    "elif [ -w \"$a\" ]; then w=w; fi; fi\n"
    "r=; [ ! -r \"$p\" ] || r=r\n"
    "t=${K%% *} l=${K#* }\n";

/* What is there, and who can list?  -printf is GNU's; a look at what it prints
 * is the only sure sign. */
static const char probe[] =
    "have() { command -v \"$1\" >/dev/null 2>&1; }\n"
    "have tar && case $(tar --version 2>/dev/null) in\n"
    "*GNU*) t=g;; *bsdtar*) t=b;; esac\n"
    "have perl && t=${t}p\n"
    "have python3 && t=${t}y\n"
    "have gzip && t=${t}z\n"
    "f=$(find / -maxdepth 0 -printf '%y%m %s %T@ %P.' 2>/dev/null)\n"
    "case $f in\n"
    "d[0-7]*\" \"[0-9]*\" \"[0-9]*.[0-9]*\" .\") l=find;;\n"
    "*) if perl -e 1 2>/dev/null; then l=perl\n"
    "elif python3 -I -c 1 2>/dev/null; then l=python\n"
    "fi;; esac\n"
    "l=${X:-$l}; case $l in\n"
    "''|stat) if $b stat -c %f / >/dev/null 2>&1; then\n"
    "l=stat; s='-c s%f %s %Y %n'\n"
    "elif stat -f %Xp / >/dev/null 2>&1; then\n"
    "l=stat; s='-f s%Xp %z %m %N'; fi;; esac\n";

static const char header[] =
    "printf '%s\\000' RSMCP1 $k \"$p\" \"$r$w\" \"$t\" \"$l\"\n";

/*
 * A file is done with after one test: find puts the tests of names before all
 * others that stand beside them, and they would double its time.
 */
static const char by_find[] =
    "list_find() {\n"
    "m=; [ \"$R\" = 1 ] || m='-maxdepth 1'\n"
    "exec find . -mindepth 1 $m -ignore_readdir_race "
    "-type f -printf 'f%m %s %T@ %P\\0' -o \"$@\" "
    "-o -type l -printf 'l%m %s %T@ %P\\0%l\\0' -o "
    "-printf '%y%m %s %T@ %P\\0' -type d "
    "\\( ! -readable -o ! -executable \\) -printf '-%P\\0' -prune; }\n"
    "file_find() { exec find -H \"$p\" -maxdepth 0 "
    "-printf '%y%m %s %T@ f\\0'; }\n";

static const char by_perl[] =
    "list_perl() { perl -e '"
    "binmode STDOUT; my $r = shift; my %p = map { $_ => 1 } @ARGV; "
    "my @d = (\"\"); while (defined(my $d = pop @d)) { my $h; "
    "unless (opendir($h, \"./$d\")) { print \"-$d\\0\"; next } "
    "$! = 0; my @n = readdir $h; print \"-$d\\0\" if $! + 0; closedir $h; "
    "for my $n (@n) { next if $n eq \".\" or $n eq \"..\"; "
    "my $f = $d eq \"\" ? $n : \"$d/$n\"; "
    "if ($p{$n}) { print \"_$f\\0\"; next } my @s = lstat \"./$f\"; "
    "unless (@s) { print \"!$f\\0\" if $! != 2; next } "
    "my $t; if (-l _) { $t = readlink \"./$f\"; "
    "unless (defined $t) { print \"!$f\\0\" if $! != 2; next } } "
    "elsif (-d _ and $r) { push @d, $f } "
    "printf \"s%x %s %s %s\\0\", $s[2], $s[7], $s[9], $f; "
    "print \"$t\\0\" if defined $t; } }' \"$R\" \"$@\"; }\n"
    "file_perl() { perl -e 'my @s = stat shift; "
    "printf \"s%x %s %s f\\0\", $s[2], $s[7], $s[9] if @s' \"$p\"; }\n";

static const char by_python[] =
    "list_python() { python3 -I -c '\n"
    "import os, sys\n"
    "deep = sys.argv[1] == \"1\"\n"
    "skip = set(os.fsencode(a) for a in sys.argv[2:])\n"
    "put = sys.stdout.buffer.write\n"
    "dirs = [b\"\"]\n"
    "while dirs:\n"
    "  d = dirs.pop()\n"
    "  try: names = os.listdir(b\"./\" + d)\n"
    "  except OSError:\n"
    "    put(b\"-\" + d + b\"\\0\")\n"
    "    continue\n"
    "  for n in names:\n"
    "    f = d + b\"/\" + n if d else n\n"
    "    if n in skip:\n"
    "      put(b\"_\" + f + b\"\\0\")\n"
    "      continue\n"
    "    t = b\"\"\n"
    "    try:\n"
    "      s = os.lstat(b\"./\" + f)\n"
    "      if s.st_mode & 0o170000 == 0o120000:\n"
    "        t = os.readlink(b\"./\" + f) + b\"\\0\"\n"
    "    except FileNotFoundError: continue\n"
    "    except OSError:\n"
    "      put(b\"!\" + f + b\"\\0\")\n"
    "      continue\n"
    "    if deep and s.st_mode & 0o170000 == 0o040000: dirs.append(f)\n"
    "    ns = divmod(s.st_mtime_ns, 10**9)\n"
    "    put(b\"s%x %d %d.%09d %s\\0\" % (s.st_mode, s.st_size, ns[0], ns[1], "
    "f) + t)\n"
    "' \"$R\" \"$@\"; }\n"
    "file_python() { python3 -I -c '\n"
    "import os, sys\n"
    "s = os.stat(os.fsencode(sys.argv[1]))\n"
    "sys.stdout.write(\"s%x %d %d.%09d f\\0\" % ((s.st_mode, s.st_size) + "
    "divmod(s.st_mtime_ns, 10**9)))' \"$p\"; }\n";

/* Without -print0 for all of it: names with a newline are set aside first, so
 * that the rest can be told by lines. */
static const char by_stat[] =
    "list_stat() {\n"
    "[ \"$R\" = 1 ] || set -- -maxdepth 1 \"$@\"; z=0\n"
    "$b find . \"$@\" -exec sh -c "
    "'for f do printf \"%s\\000\" \"_$f\"; done' sh {} + -o "
    "-name \"*$nl*\" -prune -exec sh -c "
    "'for f do printf \"%s\\000\" \"+$f\"; done' sh {} + || z=1\n"
    "$b find . \"$@\" -o -name \"*$nl*\" -prune -o -type d -exec sh -c "
    "'for f do [ -r \"$f\" ] && [ -x \"$f\" ] || printf \"%s\\000\" \"-$f\"; "
    "done' sh {} +\n"
    "{ $b find . \"$@\" -o -name \"*$nl*\" -prune -o ! -type l "
    "-exec $b stat \"${s%% *}\" \"${s#* }\" {} +; } | $b tr '\\n' '\\000'\n"
    "B=$b F=${s%% *} G=${s#* }; export B F G\n"
    "$b find . \"$@\" -o -name \"*$nl*\" -prune -o -type l -exec sh -c "
    "'for f do m=$($B stat \"$F\" \"$G\" \"$f\") && "
    "t=$($B readlink \"$f\" && echo x) && "
    "printf \"%s\\000%s\\000\" \"$m\" \"${t%??}\"; done' sh {} +\n"
    "return $z; }\n"
    "file_stat() { m=$($b stat -L \"${s%% *}\" \"${s#* }\" \"$p\") && "
    "printf '%s f\\000' \"${m%\" $p\"}\"; }\n";

static const struct {
	const char *name, *text;
} ways[] = {
	{ "find", by_find },
	{ "perl", by_perl },
	{ "python", by_python },
	{ "stat", by_stat },
};

/*
 * df runs beside the listing: it is wanted only at the end.  Who asks for it
 * wants to write there, and is told of staging places, too, which not everybody
 * lists.
 */
static const char act[] =
    "left() { [ -z \"$D\" ] || for x in .rsmcp-s*; do [ ! -d \"$x\" ] || "
    "printf 'd700 0 0 %s\\000' \"$x\"; done; }\n"
    "go() { [ -n \"$l\" ] || return 0; case $k in f) file_$l;; "
    "d) cd \"$p\" 2>/dev/null && left && list_$l \"$@\";; esac; }\n"
    "if [ -n \"$D\" ]; then go \"$@\" &\n"
    "d=$($b df -Pk \"$a\" 2>/dev/null); wait $!; e=$?\n"
    "printf '=%s\\000' \"$d\"\n"
    "else ( go \"$@\" ); e=$?; fi\n"
    "printf 'E%s\\000' $e\n";

/*
 * Names for the far side to pass over.  For find they become tests of
 * directories alone, since files cost little and the reader knows them anyway;
 * perl and python take those without "*" as they are.
 */
struct names {
	struct buf find, plain;
};

static void
add_name(void *data, const char *name)
{
	struct names *n = data;

	buf_adds(&n->find,
	    n->find.len == 0 ? " -type d \\( -name " : " -o -name ");
	quote_sh(&n->find, name);
	if (strchr(name, '*') != NULL)
		return;
	buf_adds(&n->plain, " ");
	quote_sh(&n->plain, name);
}

static void
assign(struct buf *out, const char *name, const char *value)
{
	buf_addf(out, "%s=", name);
	quote_sh(out, value);
	buf_adds(out, "\n");
}

/* The ways to list that the host may take. */
static void
add_ways(struct buf *out, const char *known)
{
	const char *name = known != NULL ? strchr(known, ' ') : NULL;
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (name == NULL || strcmp(name + 1, ways[i].name) == 0)
			buf_adds(out, ways[i].text);
	}
}

void
lister_script(struct buf *out, const char *path,
    const struct farlist_options *o, const char *known)
{
	struct names n;

	buf_init(&n.find, SIZE_MAX);
	buf_init(&n.plain, SIZE_MAX);
	add_name(&n, ".rsmcp-*");
	if (o->rules != NULL)
		rules_each_name(o->rules, add_name, &n);
	assign(out, "P", path);
	assign(out, "R", o->recursive ? "1" : "");
	assign(out, "D", o->space ? "1" : "");
	assign(out, "K", known != NULL ? known : "");
	assign(out, "X", o->lister != NULL ? o->lister : "");
	buf_adds(out, look);
	if (known == NULL)
		buf_adds(out, probe);
	buf_adds(out, header);
	add_ways(out, known);
	buf_addf(out,
	    "case $l in find) set --%s \\) -printf '_%%P\\0' -prune;; "
	    "stat) set --%s \\) -prune;; *) set --%s;; esac\n",
	    n.find.data, n.find.data, n.plain.data);
	buf_adds(out, act);
	buf_free(&n.find);
	buf_free(&n.plain);
}
