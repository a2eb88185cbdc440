/*
 * The far side's texts.
 *
 * Each is one line, because it travels as one line; a newline in the source
 * below is a blank there.  Roles: the *waiter* owns a channel and outlives
 * the commands; for each it starts, ahead of time, a *command shell* in a
 * session of its own with the call's mark in its environment.
 */
#include "ssh/script.h"

#include <string.h>

#include "base/quote.h"

const char script_boot[] =
    "exec sh -c 'IFS= read -r RSMCP_L && eval \"$RSMCP_L\"'";

/*
 * The texts use variables of one letter.  Where the login exports one of that
 * name, commands would get our value for it, and the nonce would be in their
 * environment.  So such variables wait under another name, and are put back
 * before a command runs.
 */
static const char hide[] =
    "for RSMCP_L in a b c d e f g h i j k l m n o p q r s t u v w x y z "
    "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z B2; do "
    "eval \"[ -z \\\"\\${$RSMCP_L+x}\\\" ] || "
    "{ RSMCP_V_$RSMCP_L=\\$$RSMCP_L RSMCP_V=\\\"\\$RSMCP_V $RSMCP_L\\\"; "
    "export RSMCP_V_$RSMCP_L RSMCP_V; unset $RSMCP_L; }\"; done; "
    "unset RSMCP_L; ";

/* In run.sh, too. */
#define SHOW                                                   \
	"for RSMCP_L in $RSMCP_V; do "                         \
	"eval \"export $RSMCP_L=\\\"\\$RSMCP_V_$RSMCP_L\\\"; " \
	"unset RSMCP_V_$RSMCP_L\"; done; unset RSMCP_L RSMCP_V; "

/*
 * I: which machine this is, in a word.  Containers share the boot of a host,
 * and clones a name.
 */
#define MACHINE                                               \
	"I=-; [ ! -r /proc/sys/kernel/random/boot_id ] || { " \
	"read -r I </proc/sys/kernel/random/boot_id; "        \
	"read -r x </proc/sys/kernel/hostname; "              \
	"I=$I-${x%%[!A-Za-z0-9._-]*}; }; "

/*
 * The waiter, for bash 4.2 and newer.  $1 command shell, $2 token, $3 is 0 if
 * orphans of its children come to it (subreaper).
 *
 * Descriptor 8 is a pipe to itself: there bash says that a child was killed,
 * and the command shell why it did not begin, or that it took the rest of the
 * input for itself: what it left of that is nobody's.  With children left it
 * keeps still until the channel is closed, so that they stay its children.  The
 * nap lets the report of the end travel before the next shell is started, which
 * is the dearest part of it all.  It tells as well whether a new bash is as it
 * should be here (0): nothing that the environment brings along changes it.
 */
static const char waiter[] =
    "unset RSMCP_WAITER; exec 5<&0 7>&2 8<> <(:) 2>&8 </dev/null; wait; "
    "f=/proc/$$/task/$$/children; [ -r $f ] || f=/dev/null; " MACHINE
    "echo \"$2 bash $3 "
    "$([ \"$-$BASH_ENV$(declare -F)\" = hBc ]; echo $?) "
    "$I ${f#/dev/null}\"; "
    "while IFS=\" \" read -r -u 5 N M L; do "
    "RSMCP_CALL=$M setsid bash --norc -c \"$1\" "
    "<&5 2>&7 5<&- 7>&-; s=$?; g=; k=; "
    "while read -t 0 -u 8; do IFS= read -r -u 8 x; "
    "if [ \"$x\" = stream ]; then L=0; else g=$x; fi; done; "
    "case $g in cwd|stale) ;; ?*) g=sig;; *) g=-;; esac; "
    "read -r k <$f; "
    "echo \"$N $s $g $k\"; echo \"$N $s $g $k\" >&7; "
    "[ -z \"$k\" ] || { exec >&- 7>&-; "
    "while read -r -u 5 x; do :; done; exit; }; "
    "[ \"$L\" = 1 ] || exit; read -t 0.002 -u 8 x; done";

/*
 * The clock of the far side that both ends mean: seconds since its boot where
 * the system tells them, since the time of day may be set at any moment.
 *
 * The command shell.  Says that it is ready, on both streams, with its id,
 * its parent's and that clock; takes a header of SCRIPT_HEADER bytes
 * ("not-after cwd-length command-length kind", filled up with blanks: a line
 * would be read byte by byte) and the two texts; runs the command.  The kind is
 * "a" for texts of ASCII alone: another locale takes time.  A fifth word "s"
 * leaves it the rest of the input.  A blank keeps eval from taking a command
 * that begins with a dash for an option.
 *
 * A fifth word of 32 letters is the nonce, for a command that is tame: then
 * this shell, which nothing has changed, can tell its end itself if no process
 * is left but itself.  That of a process costs more than all the rest, and the
 * waiter's words about it are heard by nobody.
 */
static const char command_shell[] =
    "if [ -r /proc/uptime ]; then read -r -d . e </proc/uptime; "
    "else printf -v e \"%(%s)T\" -1; fi; "
    "echo \"$RSMCP_CALL $$ $PPID $e\"; "
    "echo \"$RSMCP_CALL $$ $PPID $e\" >&2; "
    "read -r -N 64 REPLY || exit; set -- $REPLY; c=; "
    "if [ \"$4\" = a ]; then "
    "[ \"$2\" = 0 ] || IFS= read -r -N \"$2\" c; "
    "REPLY=; [ \"$3\" = 0 ] || IFS= read -r -N \"$3\"; "
    "else [ \"$2\" = 0 ] || LC_ALL=C IFS= read -r -N \"$2\" c; "
    "REPLY=; [ \"$3\" = 0 ] || LC_ALL=C IFS= read -r -N \"$3\"; fi; "
    "if [ -r /proc/uptime ]; then read -r -d . e </proc/uptime; "
    "else printf -v e \"%(%s)T\" -1; fi; "
    "[ \"$e\" -le \"$1\" ] || { echo stale >&8; exit 1; }; "
    "case $c in \"~\"|\"~/\"*) c=$HOME${c#\"~\"};; esac; "
    "[ -z \"$c\" ] || CDPATH= cd -- \"$c\" 2>/dev/null || "
    "{ echo cwd >&8; exit 1; }; "
    "if [ \"$5\" = s ]; then echo stream >&8; exec 8>&-; "
    "else exec </dev/null 8>&-; fi; "
    "unset -v c e; [ -z \"$RSMCP_V\" ] || { " SHOW "}; "
    "[ ${#5} != 32 ] || { eval \" $REPLY\"; set -- $5 $?; "
    "read -r REPLY </proc/$PPID/task/$PPID/children; "
    "[ \"$REPLY\" != $$ ] || [ $2 -gt 128 ] || "
    "{ echo \"$1 $2 -\"; echo \"$1 $2 -\" >&2; }; exit $2; }; "
    "set --; eval \" $REPLY\"";

/*
 * The same two for any POSIX shell, for one command.  $1 command shell, $2
 * token, $3 the shell to use, $4 how a session of its own is made, $5 as $3
 * above.  The command is what follows on stdin up to its end.
 */
static const char plain_waiter[] =
    "unset RSMCP_WAITER; exec 5<&0 6>&1 7>&2 2>/dev/null </dev/null; "
    "f=/proc/$$/task/$$/children; [ -r $f ] || f=/dev/null; "
    "case $3 in bash) k=plain;; *) k=sh;; esac; " MACHINE
    "echo \"$2 $k $5 1 $I ${f#/dev/null}\" >&6; "
    "IFS=\" \" read -r N M L <&5; "
    "RSMCP_CALL=$M $4 $3 -c \"$1\" <&5 >&6 2>&7 5<&- 6>&- 7>&-; s=$?; k=; "
    "read -r k <$f; "
    "echo \"$N $s - $k\" >&6; echo \"$N $s - $k\" >&7; exit";

static const char plain_command_shell[] =
    "u() { if [ -r /proc/uptime ]; then read -r e </proc/uptime; "
    "e=${e%%.*}; else e=`date +%s`; fi; }; "
    "u; echo \"$RSMCP_CALL $$ $PPID $e\"; "
    "echo \"$RSMCP_CALL $$ $PPID $e\" >&2; "
    "IFS=\" \" read -r t n m k || exit; c=; "
    "[ \"$n\" = 0 ] || IFS= read -r c; "
    "if [ -n \"$k\" ]; then IFS= read -r RSMCP_R; "
    "else RSMCP_R=`cat; echo x`; RSMCP_R=${RSMCP_R%x}; exec </dev/null; fi; "
    "u; [ \"$e\" -le \"$t\" ] || { echo \"$RSMCP_CALL stale\"; exit 1; }; "
    "case $c in \"~\"|\"~/\"*) c=$HOME${c#\"~\"};; esac; "
    "[ -z \"$c\" ] || CDPATH= cd -- \"$c\" 2>/dev/null || "
    "{ echo \"$RSMCP_CALL cwd\"; exit 1; }; "
    "unset c n m t e k; unset -f u; " SHOW "eval \" $RSMCP_R\"";

/*
 * Chooses the best that the host allows.  Orphans of a command come back to
 * the waiter if it can be made a subreaper, which takes perl or python.  The
 * latter ignores SIGPIPE and SIGXFSZ (13, 25), which no command shall; a small
 * one has no ctypes.
 */
static const char chooser[] =
    "q=; case `uname -s`-`uname -m` in Linux-x86_64) q=157;; "
    "Linux-aarch64|Linux-riscv64|Linux-loongarch64) q=167;; "
    "Linux-i?86|Linux-arm*|Linux-s390*) q=172;; Linux-ppc*) q=171;; esac; "
    "d=; command -v setsid >/dev/null 2>&1 && d=setsid; s=sh; b=; "
    "v=`bash --version 2>/dev/null` && { s=bash; case $v in "
    "*\"version 4.\"[2-9]*|*\"version \"[5-9]*|*\"version \"[1-9][0-9]*) "
    "b=1;; esac; }; "
    "if [ -n \"$b\" ] && [ -n \"$d\" ] && [ -d /dev/fd ]; "
    "then set -- bash --norc -c \"$A\" rsmcp \"$B\" \"$T\"; "
    "else set -- sh -c \"$P\" rsmcp \"$Q\" \"$T\" $s \"$d\"; fi; "
    "unset A B P Q T d s b v; "
    "[ -z \"$q\" ] || { "
    "if command -v perl >/dev/null 2>&1; "
    "then exec perl -e \"exec @ARGV, syscall($q,36,1,0,0,0)\" \"$@\"; fi; "
    "for y in python3 python; do if command -v $y >/dev/null 2>&1; "
    "then exec $y -c \"import os,sys,signal; "
    "signal.signal(13,signal.SIG_DFL); signal.signal(25,signal.SIG_DFL); "
    "exec('try:\\n import ctypes; r = ctypes.CDLL(None).prctl(36,1,0,0,0)"
    "\\nexcept Exception: r = -1'); "
    "os.execvp(sys.argv[1], sys.argv[1:] + [str(r)])\" \"$@\"; fi; done; }; "
    "exec \"$@\" -1";

static void
assign(struct buf *out, const char *name, const char *value)
{
	buf_addf(out, "%s=", name);
	quote_sh(out, value);
	buf_adds(out, "; ");
}

void
script_shell(struct buf *out, const char *token, const char *mark)
{
	buf_adds(out, hide);
	/* By this the lease finds the waiters of its link. */
	buf_addf(out, "export RSMCP_WAITER=%.*s.; ", (int)strcspn(mark, "."),
	    mark);
	assign(out, "T", token);
	assign(out, "A", waiter);
	assign(out, "B", command_shell);
	assign(out, "P", plain_waiter);
	assign(out, "Q", plain_command_shell);
	buf_adds(out, chooser);
	buf_adds(out, "\n");
}

/*
 * Ends processes.  Those that belong to the command are found anew each time,
 * because they may fork.  They are stopped first: else a shell whose child
 * got its TERM before it would go on with the next statement.  Needs /proc;
 * without it the group is all there is.
 *
 * Leaves what it could not end in L.
 *
 * What it is told: M mark of the command (of the link, to end all of it), P
 * mark of the link, A waiter, B command shell, G grace in hundredths of a
 * second, X marks whose processes stay, W 1 to take the link's waiters with all
 * below them as well, Y waiters not to be taken.  Waiters are stopped first and
 * ended last (W 2, 3): orphans come to them, and by nothing else is one found
 * that has emptied its environment.
 *
 * m() lists the living members.  A process that bears another mark of the
 * link is another command's, though it may be a child of the same waiter: the
 * next command shell is already waiting there.  c() is a clock, w() a nap.
 * g() prints "/proc/PID/..." of those that have a word in their environment, or
 * one of several: "-e" each, as older kinds of busybox take several lines for a
 * single word.
 * A grep that stops at NUL (busybox) is of no use for environments as they are;
 * strings looks at all of them in one process, where it is there.
 */
const char script_kill[] =
    "z=$$; if printf \"a\\000b\" | grep -qF b; "
    "then g() { grep -lF \"$@\" /proc/[0-9]*/environ; }; "
    "elif strings -f -n 6 /proc/$$/environ | grep -q \"^/proc/$$/environ: \"; "
    "then g() { strings -f -n 6 /proc/[0-9]*/environ | grep -F \"$@\"; }; "
    "else g() { for f in /proc/[0-9]*; do tr \"\\000\" \"\\n\" <$f/environ | "
    "grep -qF \"$@\" && echo $f/; done; }; fi 2>/dev/null; "
    "n() { tg=$1; shift; g \"$@\" 2>/dev/null | "
    "sed \"s|^/proc/\\([0-9]*\\)/.*|$tg \\1|\"; }; "
    "m() { { n m -e \"RSMCP_CALL=$M\"; n o -e \"RSMCP_CALL=$P\"; "
    "xl=; for x in $X; do xl=\"$xl -e RSMCP_CALL=$x\"; done; "
    "[ -z \"$xl\" ] || n x $xl; "
    "for x in $Y; do echo \"y $x\"; done; "
    "[ -z \"$W\" ] || n w -e \"RSMCP_WAITER=$P\"; "
    "cat /proc/[0-9]*/stat 2>/dev/null; } | "
    "awk -v a=\"$A\" -v b=\"$B\" -v me=\"$z\" -v h=\"$W\" "
    "'$1==\"m\" {i[$2]=1; next} $1==\"o\" {o[$2]=1; next} "
    "$1==\"x\" {ex[$2]=1; next} $1==\"w\" {w[$2]=1; next} "
    "$1==\"y\" {y[$2]=1; next} "
    "{p=$1; sub(/^.*\\) /,\"\"); st[p]=$1; pp[p]=$2; "
    "if (b>1 && ($3==b || $4==b)) i[p]=1} "
    "END {for (p in i) delete o[p]; for (p in ex) {delete i[p]; o[p]=1}; "
    "for (p in w) if (!(p in y)) i[p]=1; o[me]=1; if (a>1) i[a]=1; "
    "do {n=0; for (p in pp) if (!(p in i) && !(p in o)) { "
    "if (pp[p] in o) {o[p]=1; n++} else if (pp[p] in i) {i[p]=1; n++}}} "
    "while (n); "
    "for (p in i) if ((p in st) && st[p]!=\"Z\" && st[p]!=\"X\" && p!=a && "
    "(h==1 ? (p in w) : (h!=2 || !(p in w)))) printf \"%s \",p}'; }; "
    "c() { read -r u x </proc/uptime; u=${u%.*}${u#*.}; }; "
    "d=2; w() { sleep 0.0$d 2>/dev/null || sleep 1; "
    "[ $d = 8 ] || d=$((d*2)); }; "
    "if [ ! -r /proc/self/stat ]; then "
    "[ \"$B\" -le 1 ] || { kill -TERM -$B; w; kill -KILL -$B; } 2>/dev/null; "
    "L=unknown; else "
    "[ -z \"$W\" ] || { L=`m`; [ -z \"$L\" ] || kill -STOP $L; W=2; } "
    "2>/dev/null; "
    "L=`m`; [ -z \"$L\" ] || "
    "{ kill -STOP $L; kill -TERM $L; kill -CONT $L; } 2>/dev/null; "
    "c; e=$((u+G)); while [ -n \"$L\" ] && [ $u -lt $e ]; "
    "do w; L=`m`; c; done; [ -z \"$W\" ] || { W=3; L=`m`; }; "
    /* The hard phase, and a look without forks at who is below the waiter:
     * a process that is another one every few milliseconds is never in a
     * list.  The waiter is not used again, so its next shell may go, too.  If
     * only those are left that are not ours to end (Q), a look is enough. */
    "h() { k=; [ \"$A\" -le 1 ] || read -r k </proc/$A/task/$A/children; }; "
    "R=0; Q=2000; while [ $R -lt 3 ]; do R=$((R+1)); "
    "r=0; while [ -n \"$L\" ] && [ $r -lt 40 ]; do "
    "k=0; while [ $k -lt 5 ]; do kill -STOP $L 2>/dev/null; N=`m`; "
    "[ \"$N\" = \"$L\" ] && break; L=$N; k=$((k+1)); "
    "[ -n \"$L\" ] || break; done; "
    "[ -z \"$L\" ] || kill -KILL $L 2>/dev/null; r=$((r+1)); L=`m`; "
    "if [ -n \"$L\" ]; then x=; Q=2000; "
    "for p in $L; do if kill -0 $p 2>/dev/null; then x=1; "
    "elif [ -d /proc/$p ]; then Q=50; fi; done; "
    "[ -n \"$x\" ] || break; Q=2000; w; fi; done; "
    "i=0; while h 2>/dev/null; [ -n \"$k\" ] && [ $i -lt $Q ]; "
    "do kill -KILL $k 2>/dev/null; i=$((i+1)); done; "
    "L=`m`; h 2>/dev/null; "
    "[ -n \"$L$k\" ] && [ $Q != 50 ] || break; done; "
    "for p in $k; do read -r s 2>/dev/null </proc/$p/stat && "
    "case \" $L / ${s##*) }\" in *\" $p \"*|*\"/ Z\"*|*\"/ X\"*) ;; "
    "*) L=\"$L$p \";; esac; done; fi";

/* What is left: "pid:command" each, in one line. */
const char script_left[] =
    "for p in $L; do printf \"%s:%s \" $p "
    "\"`tr \"\\000 \" __ </proc/$p/cmdline 2>/dev/null | cut -c1-40`\"; done";

/*
 * The lease: reads a line now and then.
 *
 * "p N" is answered with "p N" (we are alive, and so is the link).
 * "k N MARK WAITER SHELL GRACE" ends a command, in the background, and is
 * answered with "k N" and what is left.
 * "r MARK WAITER" lets go of a command whose children may stay.
 * "d 0 LENGTH" and so many bytes are definitions for the scripts of "x": what
 * all of them have in common is read, and understood, once.
 * "x N LENGTH" and so many bytes of script runs that, in the background.  It
 * prints the answer itself, a line that begins with $A ("x N "), and then takes
 * back the trap that answers for one that ends without a word: to collect its
 * output would take another process, and its end.
 *
 * The end of its input, or silence, ends the rest, also in the middle of a
 * text, of which nothing is run then; half a second to go in peace is what srun
 * needs to give its nodes back.  "read -t" is there in bash alone; elsewhere
 * only the end is noticed.  From 5.2 on it goes by the time of day: once that
 * is set forward, it gives up in the middle of a line that has just come.  So
 * the time since boot (t) tells whether it was silent or has to go on (y), and
 * what was read of the line is kept (l).  e() reads a text, in bytes.  A word
 * from us may come with the end of the link, and the answer to it must not be
 * the end of the lease: no SIGPIPE.  A process that is just becoming another
 * program shows no environment for that moment, which lasts on a busy host: so
 * it looks again for a second (q), and in ten more now and then, in a process
 * that nobody waits for.
 */
static const char lease_text[] =
    "exec 2>/dev/null; trap \"\" HUP PIPE; "
    "o=; [ -z \"$BASH_VERSION\" ] || o=-t$S; "
    "t() { u=; [ ! -r /proc/uptime ] || read -r u </proc/uptime; "
    "u=${u%%.*}; }; "
    "y() { [ $1 -gt 128 ] && t && [ -n \"$u\" ] && "
    "[ $((u-i)) -lt $((S-1)) ]; }; "
    "case $BASH_VERSION in 4.[1-9]*|[5-9].*|[1-9][0-9].*) "
    "e() { local LC_ALL=C IFS= n; c=; "
    "while n=$(($1-${#c})); [ $n -gt 0 ]; do "
    "read -r $o -N $n q; s=$?; c=$c$q; "
    "[ $s = 0 ] || y $s || return 1; done; };; "
    "*) e() { c=`dd bs=1 count=$1; echo x`; c=${c%x}; "
    "[ `printf %s \"$c\" | wc -c` -eq $1 ]; };; esac; " MACHINE
    "echo \"$T $I\"; P=$M; X=; Y=; l=; t; i=$u; set -f; "
    "while :; do IFS= read -r $o q; s=$?; l=$l$q; "
    "if y $s; then continue; fi; "
    "[ $s = 0 ] || break; set -- $l; q=$1 a=$2 b=$3 s=$4 f=$5 g=$6; set --; "
    "l=; t; i=$u; case $q in "
    "p) echo \"p $a .\";; "
    "r) X=\"$X $a\"; Y=\"$Y $b\";; "
    "d) e $b || break; eval \"$c\";; "
    "x) e $b || break; "
    "( trap - HUP PIPE; exec </dev/null; set +f; unset -f t y e; "
    "unset T K E M S P X Y Z I o l i u x; "
    "A=\"x $a \"; trap 'echo \"$A\"' 0; eval \"$c\" ) & ;; "
    "k) ( exec </dev/null; set +f; M=$b A=$s B=$f G=$g W= X= Y=; eval \"$K\"; "
    "echo \"k $a `eval \"$E\"`\" ) & ;; esac; done; "
    "exec </dev/null >/dev/null; set +f; "
    "A=0 B=0 G=50 W=1; eval \"$K\"; G=0; "
    "q() { W=3; [ -z \"`m`\" ] || { W=1; eval \"$K\"; }; }; "
    "for j in 1 2 3; do sleep 0.2 || sleep 1; q; done; "
    "( for j in 1 2 3 4; do sleep $j; q; done ) &";

void
script_lease(struct buf *out, const char *token, const char *link_id,
    int silence_s)
{
	buf_adds(out, hide);
	assign(out, "T", token);
	assign(out, "K", script_kill);
	assign(out, "E", script_left);
	assign(out, "Z", lease_text);
	buf_addf(out, "M=%s. S=%d; export T K E M S; ", link_id, silence_s);
	buf_adds(out,
	    "s=sh; command -v bash >/dev/null 2>&1 && s=\"bash --norc\"; "
	    "exec $s -c \"$Z\"\n");
}
