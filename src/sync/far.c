/* The far side's texts. */
#include "sync/far.h"

#include <inttypes.h>
#include <string.h>

#include "base/quote.h"
#include "sync/inside.h"

/* Two runs filled one part, and the other one was done with it first. */
#define TWICE "another sync wrote it at the same time; sync again"

/*
 * Does what the list says: NUL-separated pairs of an operation and a path.
 * Works in the staging directory; its arguments are the target and the kind of
 * machine.  What lies on another file system is copied next to its place
 * first.
 *
 * No module is loaded, as that would take longer than ten files.  So errors
 * are numbers (of ENOTEMPTY there are two), and the call that sets times to
 * the nanosecond is made by its number, where that is known.
 */
static const char perl_commit[] =
    "my ($T,$m)=@ARGV; my %n=(x86_64=>280,aarch64=>88,riscv64=>88,"
    "loongarch64=>88,s390x=>315,ppc64le=>304,ppc64=>304,powerpc64le=>304,"
    "powerpc64=>304); my ($X,$R)=(0,0); $m=~s/-.*//; "
    "my $q=$^O eq \"linux\" && length(pack(\"p\",undef))==8 ? $n{$m} : 0; "
    "sub bad { print \"p$_[0]\\0$_[1]\\0\" } "
    "sub mv { my ($s,$t,$p)=@_; return 1 if rename $s,$t; "
    "if ($!==18) { my $x=$t; $x=~s{[^/]*$}{.rsmcp-x$$}; "
    "return 1 if system(\"cp\",\"-pPR\",\"--\",$s,$x)==0 && rename $x,$t; "
    "my $w=\"$!\"; system(\"rm\",\"-rf\",\"--\",$x); "
    "bad($p,$w||\"cannot copy it\"); return 0 } "
    "bad($p,\"$!\"); 0 } "
    "sub meta { my ($t,$p,$o,$s,$f)=@_; "
    "if (!-l $t) { chmod(oct $o,$t) or return bad($p,\"$!\") } "
    "return if $s eq \"-\"; "
    "if ($q) { my $b=pack(\"q4\",$s,$f,$s,$f); my $c=$t; "
    "syscall($q,-100,$c,$b,256)==0 or bad($p,\"$!\") } "
    "else { system(\"touch\",\"-h\",\"-d\",\"\\@$s.$f\",\"--\",$t)==0 "
    "or bad($p,\"cannot set its time\") } } "
    "sub part { my ($q,$t,$p,$n,@m)=@_; my %h; local $/=\"\\n\"; "
    "if (open(D,\"<\",\"$q.done\")) { / / and $h{$_}=1 while <D>; close D } "
    "return bad($p,\"" TWICE "\") if keys %h!=$n; "
    "mv($q,$t,$p) or return; unlink \"$q.done\"; meta($t,$p,@m) } "
    "open(L,\"<\",\"list\") or exit 5; $/=\"\\0\"; "
    "while (defined(my $o=<L>)) { my $p=<L>; chomp $o; chomp $p; "
    "my $t=\"$T/$p\"; "
    "if ($o eq \"m\") { mv(\"d/$p\",$t,$p) } "
    "elsif ($o =~ /^b (\\S+) (.*)$/) { part(\"$T/$1\",$t,$p,split / /,$2) } "
    "elsif ($o eq \"x\") { if (unlink $t) { $X++ } "
    "elsif ($!!=2) { bad($p,\"$!\") } } "
    "elsif ($o eq \"u\") { unlink \"d/$p\" } "
    "elsif ($o eq \"r\") { if (rmdir $t) { $R++ } "
    "elsif ($!!=2 && $!!=17 && $!!=39 && $!!=66) { bad($p,\"$!\") } } "
    "elsif ($o =~ /^t (\\S+) (\\S+) (\\S+)$/) { meta($t,$p,$1,$2,$3) } } "
    "print \"e$X $R\\0\"";

static const char python_commit[] =
    "import os,sys,errno,subprocess\n"
    "T=os.fsencode(sys.argv[1]); w=sys.stdout.buffer; n=[0,0]\n"
    "def mv(s,t):\n"
    "    try: os.rename(s,t)\n"
    "    except OSError as e:\n"
    "        if e.errno!=errno.EXDEV: raise\n"
    "        x=os.path.join(os.path.dirname(t),b'.rsmcp-x%d'%os.getpid())\n"
    "        try: subprocess.check_call([b'cp',b'-pPR',b'--',s,x]); "
    "os.rename(x,t)\n"
    "        finally: subprocess.call([b'rm',b'-rf',b'--',x])\n"
    "def gone(f,t):\n"
    "    try: f(t); return 1\n"
    "    except OSError as e:\n"
    "        if e.errno in (errno.ENOENT,errno.ENOTEMPTY,errno.EEXIST): "
    "return 0\n"
    "        raise\n"
    "def meta(t,o):\n"
    "    if not os.path.islink(t): os.chmod(t,int(o[1],8))\n"
    "    if o[2]!=b'-':\n"
    "        n=int(o[2])*10**9+int(o[3])\n"
    "        os.utime(t,ns=(n,n),follow_symlinks=False)\n"
    "def part(q,t,o):\n"
    "    d=set(x for x in open(q+b'.done','rb') if b' ' in x)\n"
    "    if len(d)!=int(o[2]): raise OSError(0,'" TWICE "')\n"
    "    mv(q,t); gone(os.unlink,q+b'.done'); meta(t,o[2:])\n"
    "a=open('list','rb').read().split(b'\\0')\n"
    "for i in range(0,len(a)-1,2):\n"
    "    o=a[i].split(); p=a[i+1]; t=os.path.join(T,p)\n"
    "    try:\n"
    "        if o[0]==b'm': mv(b'd/'+p,t)\n"
    "        elif o[0]==b'b': part(os.path.join(T,o[1]),t,o)\n"
    "        elif o[0]==b'x': n[0]+=gone(os.unlink,t)\n"
    "        elif o[0]==b'u': gone(os.unlink,b'd/'+p)\n"
    "        elif o[0]==b'r': n[1]+=gone(os.rmdir,t)\n"
    "        elif o[0]==b't': meta(t,o)\n"
    "    except (OSError,subprocess.CalledProcessError) as e:\n"
    "        m=getattr(e,'strerror',None) or 'cannot copy it'\n"
    "        w.write(b'p'+p+b'\\0'+m.encode()+b'\\0')\n"
    "w.write(b'e%d %d\\0'%tuple(n))\n";

/* For hosts with neither: the list is a script that calls these.  mv
 * would move into a directory, or into what a link leads to. */
static const char shell_commit[] =
    "X=0 R=0; z() { printf \"p%s\\\\000%s\\\\000\" \"$1\" \"$2\"; }; "
    "v() { [ -e \"$1\" ] || [ -h \"$1\" ] || return 1; "
    "[ ! -h \"$2\" ] || [ ! -d \"$2\" ] || rm -f -- \"$2\"; "
    "[ ! -d \"$2\" ] && mv -f -- \"$1\" \"$2\"; }; "
    "m() { v \"d/$1\" \"$T/$1\" || z \"$1\" \"cannot move it\"; }; "
    "b() { if [ `sort -u \"$T/$2.done\" | grep -c \" \"` != $3 ]; then "
    "z \"$1\" \"" TWICE "\"; "
    "elif v \"$T/$2\" \"$T/$1\"; then rm -f \"$T/$2.done\"; "
    "t \"$1\" $4 $5 $6; else z \"$1\" \"cannot move it\"; fi; }; "
    "x() { [ -e \"$T/$1\" ] || [ -h \"$T/$1\" ] || return 0; "
    "if rm -f -- \"$T/$1\"; then X=$((X+1)); "
    "else z \"$1\" \"cannot delete it\"; fi; }; "
    "u() { rm -f -- \"d/$1\"; }; "
    "r() { [ -d \"$T/$1\" ] || return 0; "
    "if rmdir -- \"$T/$1\" 2>/dev/null; then R=$((R+1)); "
    "else [ -n \"`ls -A -- \"$T/$1\"`\" ] || z \"$1\" \"cannot remove it\"; "
    "fi; }; "
    "t() { [ -h \"$T/$1\" ] || chmod $2 -- \"$T/$1\" || "
    "z \"$1\" \"cannot set its mode\"; "
    "[ $3 = - ] || touch -h -d @$3.$4 -- \"$T/$1\" 2>/dev/null || "
    "touch -d @$3 -- \"$T/$1\" 2>/dev/null || "
    "touch -t `date -r $3 +%Y%m%d%H%M.%S` -- \"$T/$1\" || "
    "z \"$1\" \"cannot set its time\"; }; "
    ". ./list; printf \"e%s %s\\\\000\" $X $R";

static void
assign(struct buf *out, const char *name, const char *value)
{
	buf_addf(out, "%s=", name);
	quote_sh(out, value);
	buf_adds(out, "; ");
}

/*
 * Remove staging places whose owner is gone.  Their name tells who that is, so
 * that there is no moment without it, whenever one ends.  One on a shared disk
 * may belong to another host, which is left alone for a day; and a process of
 * the same number may be another one, so a week is enough for any.  Parts that
 * nobody came back for go after a week as well.
 */
static const char sweep[] =
    "for s in \"$T\"/.rsmcp-p*; do [ ! -f \"$s\" ] || "
    "find \"$s\" -prune -mtime +7 -exec rm -f {} \\;; done; "
    "for s in \"$T\"/.rsmcp-s*; do [ -d \"$s\" ] || continue; "
    "p=${s##*/.rsmcp-s}; p=${p#*.}; h=${p#*.}; p=${p%%.*}; "
    "if [ \"$h\" != \"$H\" ]; then d=1; "
    "elif kill -0 \"$p\" 2>/dev/null; then d=7; "
    "else rm -rf \"$s\"; continue; fi; "
    "find \"$s\" -prune -mtime +$d -exec rm -rf {} \\;; done; ";

/* H: where process numbers mean what they do here. */
static const char where[] =
    "read -r H 2>/dev/null </proc/sys/kernel/hostname || H=`uname -n`; "
    "case $H in */*) H=odd;; esac; B= N=; "
    "{ read -r B </proc/sys/kernel/random/boot_id; "
    "N=`readlink /proc/self/ns/pid`; } 2>/dev/null; "
    "N=${N##*\\[}; H=$H.${B%%-*}.${N%]}; ";

/* A program in one line, as all of a script has to be: plain shells read no
 * more. */
static void
add_python(struct buf *out, const char *text)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	buf_adds(&b, "exec('");
	for (; *text != '\0'; text++) {
		if (*text == '\n') {
			buf_adds(&b, "\\n");
			continue;
		}
		if (*text == '\'' || *text == '\\')
			buf_addc(&b, '\\');
		buf_addc(&b, *text);
	}
	buf_adds(&b, "')");
	buf_adds(out, "python3 -I -c ");
	quote_sh(out, b.data);
	buf_free(&b);
}

/*
 * Unpack what comes; c is how tar ended.  It goes on after a file that it could
 * not write whole, and that one must not be put in place, nor a list that is
 * not whole be followed.  What it could not make at all it may name (lost).
 * Other complaints concern what can be done without, such as a mode that the
 * disk does not know.
 */
static const char unpack[] =
    "; } 2>&1; echo \"rsmcp= $?\"; } | { c=1 f=; "
    "while IFS= read -r l; do case $l in "
    "\"rsmcp= \"*) c=${l#rsmcp= }; continue;; "
    "*\"No space left\"*|*\"uota exceeded\"*|*\"rote only\"*|"
    "*\"nput/output error\"*|*\": Cannot write: \"*|*\": Cannot close: \"*|"
    "*\"write error\"*|*\"short write\"*|*\": Write failed\"*) f=1;; "
    "\"tar: d/\"*\": Cannot open: \"*|\"tar: d/\"*\": Cannot mkdir: \"*|"
    "\"tar: d/\"*\": Cannot create symlink \"*) printf \"%s\\n\" \"$l\" >>lost;; "
    /* of other kinds of tar: can't create symlink 'd/a' to 'b': why */
    "*\"an't create \"*\"'d/\"*\"': \"*) "
    "q=${l#*\"'d/\"}; p=${q%%\"'\"*}; case ${q#\"$p\"} in "
    "\"': \"*|\"' to '\"*) "
    "printf \"tar: d/%s: Cannot create it: %s\\n\" \"$p\" \"${l##*: }\" >>lost;; "
    "*) f=1;; esac;; "
    "*\"an't open \"*|*\"an't create \"*|*\": Cannot open: \"*|"
    "*\": Cannot mkdir: \"*|*\": Cannot create symlink \"*) f=1;; "
    "esac; printf \"%s\\n\" \"$l\" >&2; done; "
    "[ -z \"$f\" ] || rm -f end; echo \"$c\"; }); "
    "[ -f end ] || { cat >/dev/null; [ $c != 0 ] || c=90; exit $c; }; "
    "[ ! -f lost ] || while IFS= read -r l; do l=${l#tar: d/}; "
    "printf 'p%s\\000%s\\000' \"${l%%: Cannot *}\" \"Cannot ${l#*: Cannot }\"; "
    "done <lost; ";

void
far_take(struct buf *out, const struct far_root *r, const char *id, bool gzip)
{
	assign(out, "T", r->path);
	buf_adds(out,
	    "[ -d \"$T\" ] || mkdir -p -- \"$T\" && cd -- \"$T\" || exit 3; ");
	buf_adds(out, where);
	buf_adds(out, sweep);
	buf_addf(out, "S=$T/.rsmcp-s%s.$$.$H; ", id);
	buf_adds(out,
	    "trap 'cd /; rm -rf \"$S\"' EXIT; trap 'exit 1' HUP INT TERM; "
	    "umask 077; mkdir \"$S\" \"$S/d\" && cd \"$S\" || exit 4; ");
	buf_addf(out, "c=$({ { %sLC_ALL=C tar -xpof -%s",
	    gzip ? "gzip -dc | " : "",
	    r->gnu_tar ? " --quoting-style=literal" : "");
	buf_adds(out, unpack);
	if (r->perl) {
		buf_adds(out, "perl -e ");
		quote_sh(out, perl_commit);
		buf_adds(out, " \"$T\" \"${HOSTTYPE:-`uname -m`}\"");
	} else if (r->python) {
		add_python(out, python_commit);
		buf_adds(out, " \"$T\"");
	} else {
		buf_adds(out, shell_commit);
	}
}

/* One operation: a pair for a program, a line for the shell. */
static void
add(struct buf *list, const struct far_root *r, const char *op,
    const char *path, const char *rest)
{
	if (r->perl || r->python) {
		buf_addf(list, "%s%s%s", op, rest[0] != '\0' ? " " : "", rest);
		buf_addc(list, '\0');
		buf_add(list, path, strlen(path) + 1);
		return;
	}
	buf_addf(list, "%s ", op);
	quote_sh(list, path);
	buf_addf(list, " %s\n", rest);
}

void
far_do_move(struct buf *list, const struct far_root *r, const char *path)
{
	add(list, r, "m", path, "");
}

void
far_do_delete(struct buf *list, const struct far_root *r, const char *path,
    bool dir)
{
	add(list, r, dir ? "r" : "x", path, "");
}

void
far_do_undo(struct buf *list, const struct far_root *r, const char *path)
{
	add(list, r, "u", path, "");
}

/* Mode, seconds and nanoseconds. */
static void
add_meta(struct buf *rest, const struct entry *e)
{
	int64_t ns = e->mtime % 1000000000, s = e->mtime / 1000000000;

	if (ns < 0) {
		ns += 1000000000;
		s--;
	}
	buf_addf(rest, "%o %" PRId64 " %09" PRId64, e->mode & 0777, s, ns);
}

void
far_do_part(struct buf *list, const struct far_root *r, const struct entry *e,
    const char *part, size_t pieces)
{
	struct buf rest;

	buf_init(&rest, 256);
	buf_addf(&rest, "%s %zu ", part, pieces);
	add_meta(&rest, e);
	add(list, r, "b", e->path, rest.data);
	buf_free(&rest);
}

void
far_do_meta(struct buf *list, const struct far_root *r, const struct entry *e,
    bool mtime)
{
	struct buf rest;

	buf_init(&rest, 128);
	if (mtime)
		add_meta(&rest, e);
	else
		buf_addf(&rest, "%o - 0", e->mode & 0777);
	add(list, r, "t", e->path, rest.data);
	buf_free(&rest);
}

void
far_give(struct buf *out, const struct far_root *r)
{
	assign(out, "T", r->path);
	buf_adds(out, "cd -- \"$T\" || exit 3; ");
	if (r->gnu_tar)
		buf_adds(out,
		    "LC_ALL=C tar -b 128 -cf - --quoting-style=literal "
		    "--format=gnu --no-recursion --null -T -");
	else if (r->bsd_tar)
		buf_adds(out,
		    "LC_ALL=C tar -cnf - --format=gnutar --null -T -");
	else
		buf_adds(out, "LC_ALL=C tar -cf -");
}

bool
far_reads_list(const struct far_root *r)
{
	return r->gnu_tar || r->bsd_tar;
}

void
far_have_pieces(struct buf *out, const struct far_root *r, const char *part,
    int64_t size)
{
	assign(out, "T", r->path);
	buf_addf(out,
	    "mkdir -p -- \"$T\" && cd -- \"$T\" || exit 3; "
	    "dd if=/dev/null of=/dev/null iflag=fullblock count=0 2>/dev/null "
	    "|| exit 7; P=%s; for o in %.*s*; do case $o in $P|$P.done) ;; "
	    "*) rm -f $o;; esac; done; i=- j=; "
	    "[ ! -r /proc/sys/kernel/random/boot_id ] || "
	    "read -r i </proc/sys/kernel/random/boot_id; "
	    "[ ! -f $P ] || read -r j 2>/dev/null <$P.done; "
	    "if [ \"$i\" != \"$j\" ]; then (umask 077; : >$P && "
	    "echo \"$i\" >$P.done) || exit 4; ",
	    part, PART_FILE_LEN, part);
	/* Other kinds of dd cut the file at the end of what they wrote. */
	if (size > 0)
		buf_addf(out,
		    "case `dd --version 2>/dev/null` in *coreutils*) "
		    "! dd if=/dev/null of=$P bs=1 seek=%" PRId64
		    " count=0 2>/dev/null || echo " FAR_HOLES ";; esac; ",
		    size);
	buf_adds(out, "fi; cat $P.done");
}

void
far_drop_pieces(struct buf *out, const struct far_root *r, const char *part)
{
	assign(out, "T", r->path);
	buf_addf(out, "cd -- \"$T\" && rm -f %s.done %s", part, part);
}

void
far_take_pieces(struct buf *out, const struct far_root *r, const char *part,
    bool holes)
{
	assign(out, "T", r->path);
	assign(out, "s", holes ? ",sparse" : "");
	buf_addf(out,
	    "cd -- \"$T\" || exit 3; P=%s; [ -f $P ] || exit %d; "
	    /* is it the same part still?  ls would take a process a piece */
	    "exec 3<$P; q() { [ $P -ef /dev/fd/3 ]; }; q 2>/dev/null || { "
	    "i=`ls -i $P`; q() { [ \"`ls -i $P`\" = \"$i\" ]; }; }; "
	    /* dd: block size, first block, count; exact for a pipe */
	    "w() { [ $3 = 0 ] || dd of=$P bs=$1 seek=$2 count=$3 "
	    "iflag=fullblock conv=notrunc$s 2>/dev/null; }; "
	    "while read -r a n; do "
	    "b=$((n/1048576)); c=$((n%%1048576)); "
	    "w 1048576 $((a/1048576)) $b && o=$((a+b*1048576)) && "
	    "w 4096 $((o/4096)) $((c/4096)) && "
	    "o=$((o+c/4096*4096)) && w 1 $o $((c%%4096)) || exit 6; "
	    "read -r e && [ \"$e\" = \"ok $a\" ] || exit 8; "
	    "q || exit %d; "
	    "echo \"$a $n\" >>$P.done; echo \"$a\"; done",
	    part, FAR_OTHER_PART, FAR_OTHER_PART);
}

void
far_give_pieces(struct buf *out, const struct far_root *r, const char *path)
{
	assign(out, "T", r->path);
	assign(out, "F", path);
	buf_adds(out,
	    "cd -- \"$T\" || exit 3; while read -r a n; do "
	    "dd bs=1048576 skip=$((a/1048576)) "
	    "count=$(((n+1048575)/1048576)) <\"$F\" 2>/dev/null || exit 6; "
	    "echo \"ok $a\"; done");
}
