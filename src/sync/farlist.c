/*
 * Listing the far side.
 *
 * What the command prints is a row of texts, each ended by a NUL: those of the
 * header first, then records, then the end.
 *
 *   RSMCP1                     header: what this is
 *   d                          kind: d, f, o (other), m (missing), x (denied)
 *   /home/u/x                  the path, absolute
 *   rw                         what we may do: read it, write there
 *   gpy                        tar (g GNU, b BSD), p perl, y python
 *   /dev/sda1 9 5 4 56% /      df's line
 *   find                       who lists ("sftp": sftplist.c); "" if nobody
 *
 *   f644 12 1700000000.5 a/b   type, mode, size, mtime, path
 *   l777 3 1700000000.5 c      a link, and its target in the next text
 *   s81a4 12 1700000000 ./a/b  the same with the mode as stat(2) has it
 *   -a/d                       a directory whose content cannot be read
 *   !a/e                       something that could not be looked at
 *   +a/f                       a name that this host cannot tell (newline)
 *   E0                         the end, and the status of who listed
 *
 * For a file there is one record, for others none.
 */
#include "sync/farlist.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/quote.h"
#include "base/str.h"
#include "ssh/exec.h"
#include "sync/sftplist.h"

#define LIST_MS ((int64_t)24 * 3600 * 1000) /* the until ends it sooner */
#define ERR_CHARS 2000
#define TEXT_MAX ((size_t)64 << 10)   /* of one text */
#define ENTRIES_MAX ((size_t)3 << 20) /* half a gigabyte of memory */
#define DEPTH_MAX 2000
#define IGNORE_MAX ((size_t)1 << 20) /* of a .gitignore file */
#define SLACK 4096 /* entries beyond max_entries before they are sorted out */

/* --- The command ----------------------------------------------------------
 *
 * P is the path as given, R is 1 to go deep, and "$@" are names that need not
 * be looked at.  It has to run in bash, dash and busybox; what a name may hold
 * passes through variables and arguments only.  "x" behind what a command
 * prints saves newlines at its end.
 */

/* p, a: the path, and the nearest directory above that exists; k: its kind. */
static const char find_out[] =
    "export LC_ALL=C; unset CDPATH POSIXLY_CORRECT; b=; nl='\n'\n"
    "command -v find >/dev/null 2>&1 || b=busybox\n"
    "have() { command -v \"$1\" >/dev/null 2>&1; }\n"
    "case $P in '~'|'~/'*) P=$HOME${P#'~'};; esac\n"
    "case $P in /*) p=$P;; *) p=$(pwd; echo x); p=${p%??}/$P;; esac\n"
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
    "t=; have tar && case $(tar --version 2>/dev/null) in\n"
    "*GNU*) t=g;; *bsdtar*) t=b;; esac\n"
    "have perl && t=${t}p\n"
    "have python3 && t=${t}y\n"
    "d=$($b df -Pk \"$a\" 2>/dev/null | $b tail -n 1)\n"
    /* Who can list?  -printf is GNU's; a look at what it prints is the only
     * sure sign. */
    "l=; f=$(find / -maxdepth 0 -printf '%y%m %s %T@ %P.' 2>/dev/null)\n"
    "case $f in\n"
    "d[0-7]*\" \"[0-9]*\" \"[0-9]*.[0-9]*\" .\") l=find;;\n"
    "*) if perl -e 1 2>/dev/null; then l=perl\n"
    "elif python3 -I -c 1 2>/dev/null; then l=python\n"
    "fi;; esac\n"
    "l=${X:-$l}; case $l in\n"
    "''|stat) if $b stat -c %f / >/dev/null 2>&1; then\n"
    "l=stat; s='-c s%f %s %Y %n'\n"
    "elif stat -f %Xp / >/dev/null 2>&1; then\n"
    "l=stat; s='-f s%Xp %z %m %N'; fi;; esac\n"
    "printf '%s\\000' RSMCP1 $k \"$p\" \"$r$w\" \"$t\" \"$d\" \"$l\"\n";

/* The four ways to list ".", and a single file. */
static const char ways[] =
    "list_find() {\n"
    "if [ \"$R\" = 1 ]; then set -- -mindepth 1 \"$@\"\n"
    "else set -- -mindepth 1 -maxdepth 1 \"$@\"; fi\n"
    "find . -ignore_readdir_race \"$@\" -type l "
    "-printf 'l%m %s %T@ %P\\0%l\\0' -o "
    "-printf '%y%m %s %T@ %P\\0' -type d "
    "\\( ! -readable -o ! -executable \\) -printf '-%P\\0' -prune; }\n"
    "file_find() { find -H \"$p\" -maxdepth 0 -printf '%y%m %s %T@ f\\0'; }\n"

    "list_perl() { perl -e '"
    "binmode STDOUT; my $r = shift; my %p = map { $_ => 1 } @ARGV; "
    "my @d = (\"\"); while (defined(my $d = pop @d)) { my $h; "
    "unless (opendir($h, \"./$d\")) { print \"-$d\\0\"; next } "
    "$! = 0; my @n = readdir $h; print \"-$d\\0\" if $! + 0; closedir $h; "
    "for my $n (@n) { next if $n eq \".\" or $n eq \"..\" or $p{$n}; "
    "my $f = $d eq \"\" ? $n : \"$d/$n\"; my @s = lstat \"./$f\"; "
    "unless (@s) { print \"!$f\\0\" if $! != 2; next } "
    "my $t; if (-l _) { $t = readlink \"./$f\"; "
    "unless (defined $t) { print \"!$f\\0\" if $! != 2; next } } "
    "elsif (-d _ and $r) { push @d, $f } "
    "printf \"s%x %s %s %s\\0\", $s[2], $s[7], $s[9], $f; "
    "print \"$t\\0\" if defined $t; } }' \"$R\" \"$@\"; }\n"
    "file_perl() { perl -e 'my @s = stat shift; "
    "printf \"s%x %s %s f\\0\", $s[2], $s[7], $s[9] if @s' \"$p\"; }\n"

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
    "    if n in skip: continue\n"
    "    f = d + b\"/\" + n if d else n\n"
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
    "divmod(s.st_mtime_ns, 10**9)))' \"$p\"; }\n"

    /* Without -print0 for all of it: names with a newline are set aside first,
     * so that the rest can be told by lines. */
    "list_stat() {\n"
    "[ \"$R\" = 1 ] || set -- -maxdepth 1 \"$@\"; z=0\n"
    "$b find . \"$@\" -name \"*$nl*\" -prune -exec sh -c "
    "'for f do printf \"%s\\000\" \"+$f\"; done' sh {} + || z=1\n"
    "$b find . \"$@\" -name \"*$nl*\" -prune -o -type d -exec sh -c "
    "'for f do [ -r \"$f\" ] && [ -x \"$f\" ] || printf \"%s\\000\" \"-$f\"; "
    "done' sh {} +\n"
    "{ $b find . \"$@\" -name \"*$nl*\" -prune -o ! -type l "
    "-exec $b stat \"${s%% *}\" \"${s#* }\" {} +; } | $b tr '\\n' '\\000'\n"
    "B=$b F=${s%% *} G=${s#* }; export B F G\n"
    "$b find . \"$@\" -name \"*$nl*\" -prune -o -type l -exec sh -c "
    "'for f do m=$($B stat \"$F\" \"$G\" \"$f\") && "
    "t=$($B readlink \"$f\" && echo x) && "
    "printf \"%s\\000%s\\000\" \"$m\" \"${t%??}\"; done' sh {} +\n"
    "return $z; }\n"
    "file_stat() { m=$($b stat -L \"${s%% *}\" \"${s#* }\" \"$p\") && "
    "printf '%s f\\000' \"${m%\" $p\"}\"; }\n";

static const char act[] =
    "e=0; if [ $k = f ] && [ -n \"$l\" ]; then file_$l; e=$?\n"
    "elif [ $k = d ] && [ -n \"$l\" ]; then\n"
    "( cd \"$p\" 2>/dev/null && list_$l \"$@\" ); e=$?; fi\n"
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

void
farlist_script(struct buf *out, const char *path,
    const struct farlist_options *o)
{
	struct names n;

	buf_init(&n.find, SIZE_MAX);
	buf_init(&n.plain, SIZE_MAX);
	add_name(&n, ".rsmcp-*");
	if (o->rules != NULL)
		rules_each_name(o->rules, add_name, &n);
	assign(out, "P", path);
	assign(out, "R", o->recursive ? "1" : "");
	assign(out, "X", o->lister != NULL ? o->lister : "");
	buf_adds(out, find_out);
	buf_adds(out, ways);
	buf_addf(out,
	    "case $l in find|stat) set --%s \\) -prune -o;; *) set --%s;; "
	    "esac\n",
	    n.find.data, n.plain.data);
	buf_adds(out, act);
	buf_free(&n.find);
	buf_free(&n.plain);
}

/* --- The reader ----------------------------------------------------------- */

enum step {
	STEP_MAGIC,
	STEP_KIND,
	STEP_PATH,
	STEP_RIGHTS,
	STEP_TOOLS,
	STEP_DF,
	STEP_LISTER,
	STEP_RECORD,
	STEP_TARGET,
	STEP_END,
};

struct listing {
	const struct farlist_options *o;
	struct far_root *root;
	struct tree *out;
	enum step step;
	struct buf text;     /* the one that is coming */
	struct entry parsed; /* a link that waits for its target */
	char *parsed_path;
	bool denied, unreadable;
	bool nobody; /* no way to list */
	bool file_seen;
	size_t seen; /* entries, with those left out */
	/* Is everything below this directory excluded?  Most entries have the
	 * directory of the one before. */
	struct buf dir;
	bool dir_covered;
	struct tree unread; /* directories */
	struct err err;     /* why it is no use any more */
};

struct listing *
listing_new(const struct farlist_options *o, struct far_root *root,
    struct tree *out)
{
	struct listing *l = xcalloc(1, sizeof(*l));

	l->o = o;
	l->root = root;
	l->out = out;
	memset(root, 0, sizeof(*root));
	root->free_bytes = -1;
	tree_init(out);
	tree_init(&l->unread);
	buf_init(&l->text, TEXT_MAX);
	buf_init(&l->dir, TEXT_MAX);
	return l;
}

void
listing_free(struct listing *l)
{
	if (l == NULL)
		return;
	buf_free(&l->text);
	buf_free(&l->dir);
	free(l->parsed_path);
	tree_free(&l->unread);
	free(l);
}

void
far_root_free(struct far_root *r)
{
	free(r->path);
	memset(r, 0, sizeof(*r));
}

static void
problem(struct listing *l, const char *path, const char *why)
{
	if (l->o->problem != NULL)
		l->o->problem(l->o->problem_data, path, why);
}

static int
nonsense(struct listing *l, const char *what)
{
	return err_set(&l->err, ERR_IO,
	    "the host's list of files makes no sense (%s '%.200s')", what,
	    l->text.data);
}

/* Names of one to 255 bytes between single slashes, none of them dots; and not
 * deeper than anything real. */
static bool
good_path(const char *path)
{
	size_t depth = 0;

	for (;;) {
		size_t n = strcspn(path, "/");

		if (n == 0 || n > 255 || ++depth > DEPTH_MAX ||
		    (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (path[n] == '\0')
			return true;
		path += n + 1;
	}
}

/* The word at *at, which moves behind it and its blank.  NULL: none. */
static char *
word(char **at)
{
	char *w = *at, *blank = strchr(w, ' ');

	if (blank == NULL)
		return NULL;
	*blank = '\0';
	*at = blank + 1;
	return w;
}

static int
number(const char *s, int base, int64_t max, int64_t *out)
{
	int64_t v = 0;

	if (*s == '\0' || strlen(s) > 20)
		return -1;
	for (; *s != '\0'; s++) {
		int d = *s >= '0' && *s <= '9' ? *s - '0'
		    : *s >= 'a' && *s <= 'f'   ? *s - 'a' + 10
		    : *s >= 'A' && *s <= 'F'   ? *s - 'A' + 10
		                               : 99;
		if (d >= base || v > (max - d) / base)
			return -1;
		v = v * base + d;
	}
	*out = v;
	return 0;
}

/* "-2.25" is two seconds before 1970 and a quarter of one after that. */
static int
read_time(char *s, int64_t *out)
{
	const int64_t far = 9000000000; /* some 285 years either way */
	char *dot = strchr(s, '.');
	int64_t sec, ns = 0;
	char digits[10] = "000000000";
	size_t n;

	if (dot != NULL) {
		*dot++ = '\0';
		n = strlen(dot);
		memcpy(digits, dot, n < 9 ? n : 9);
		if (number(digits, 10, 999999999, &ns) == -1)
			return -1;
	}
	if (str_to_int(s, INT64_MIN, INT64_MAX, &sec) == -1)
		return -1;
	if (sec > far)
		sec = far;
	if (sec < -far)
		sec = -far;
	*out = sec * 1000000000 + ns;
	return 0;
}

static enum entry_type
type_of_letter(char c)
{
	return c == 'f' ? ENTRY_FILE
	    : c == 'd'  ? ENTRY_DIR
	    : c == 'l'  ? ENTRY_LINK
	                : ENTRY_OTHER;
}

static enum entry_type
type_of_mode(int64_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return ENTRY_FILE;
	case S_IFDIR:
		return ENTRY_DIR;
	case S_IFLNK:
		return ENTRY_LINK;
	default:
		return ENTRY_OTHER;
	}
}

/* "f644 12 1700000000.5 path"; *path lies within "s". */
static int
read_record(char *s, struct entry *e, char **path)
{
	char letter = *s++;
	char *mode = word(&s), *size, *mtime;
	int64_t bits;

	memset(e, 0, sizeof(*e));
	if (mode == NULL || (size = word(&s)) == NULL ||
	    (mtime = word(&s)) == NULL ||
	    number(mode, letter == 's' ? 16 : 8, INT32_MAX, &bits) == -1 ||
	    number(size, 10, INT64_MAX / 2, &e->size) == -1 ||
	    read_time(mtime, &e->mtime) == -1)
		return -1;
	e->type = (uint8_t)(letter == 's' ? type_of_mode(bits)
	                                  : type_of_letter(letter));
	e->mode = (uint16_t)(bits & 0777);
	if (e->type != ENTRY_FILE)
		e->size = 0;
	*path = str_starts(s, "./") ? s + 2 : s;
	return 0;
}

/* Is it excluded, by itself or by a directory above? */
static bool
covered(struct listing *l, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash != NULL ? (size_t)(slash - path) : 0;

	if (l->o->rules == NULL)
		return false;
	if (n != l->dir.len || memcmp(l->dir.data, path, n) != 0) {
		buf_reset(&l->dir);
		buf_add(&l->dir, path, n);
		l->dir_covered =
		    n > 0 && rules_cover(l->o->rules, l->dir.data, true);
	}
	return l->dir_covered || rules_match(l->o->rules, path, is_dir);
}

/* Only the first of them are wanted: forget what cannot be among these. */
static void
cut(struct listing *l, size_t keep)
{
	struct tree fresh;
	size_t i;

	tree_sort(l->out);
	if (l->out->count <= keep)
		return;
	tree_init(&fresh);
	fresh.whole_seconds = l->out->whole_seconds;
	fresh.partial = l->out->partial;
	fresh.cut = true;
	for (i = 0; i < keep; i++) {
		const struct entry *e = &l->out->entries[i];
		struct entry *c = tree_add(&fresh, e->path, e->target);

		c->size = e->size;
		c->mtime = e->mtime;
		c->mode = e->mode;
		c->type = e->type;
	}
	tree_free(l->out);
	*l->out = fresh;
}

static int
add_entry(struct listing *l, const char *path, const char *target)
{
	size_t max = l->o->max_entries;
	struct entry *e;

	if (rules_staging(path) ||
	    covered(l, path, l->parsed.type == ENTRY_DIR))
		return 0;
	if (max > 0 && l->out->count >= max + max / 2 + SLACK)
		cut(l, max);
	if (l->out->count >= ENTRIES_MAX)
		return err_set(&l->err, ERR_LIMIT,
		    "there are more than %zu files and directories; name a "
		    "smaller directory, or exclude some",
		    ENTRIES_MAX);
	e = tree_add(l->out, path, target);
	e->size = l->parsed.size;
	e->mtime = l->parsed.mtime;
	e->mode = l->parsed.mode;
	e->type = l->parsed.type;
	return 0;
}

static void
take_file(struct listing *l)
{
	struct entry *e = &l->root->file;
	const char *slash = strrchr(l->root->path, '/');

	*e = l->parsed;
	e->path = slash + 1;
	l->file_seen = true;
}

/* One of those that could not be read.  Excluded ones are nobody's loss. */
static int
take_trouble(struct listing *l, char letter, const char *path)
{
	if (str_starts(path, "./"))
		path += 2;
	if (*path == '\0' || strcmp(path, ".") == 0) {
		l->unreadable = true;
		return 0;
	}
	if (!good_path(path))
		return nonsense(l, "name");
	if (rules_staging(path) || covered(l, path, letter == '-'))
		return 0;
	if (letter == '-' && !l->o->recursive)
		return 0; /* nobody asked for what is in it */
	if (letter == '-') {
		tree_add(&l->unread, path, NULL);
		problem(l, path, "the directory cannot be read");
	} else if (letter == '+') {
		problem(l, path,
		    "names with a newline need GNU find, perl or python3 on "
		    "the host");
	} else {
		problem(l, path, "cannot be looked at");
	}
	l->out->partial = l->out->partial || letter != '-';
	return 0;
}

static int
take_record(struct listing *l)
{
	char *text = l->text.data, *path;
	char letter = text[0];

	if (letter == 'E') {
		l->step = STEP_END;
		if (strcmp(text, "E0") != 0)
			l->out->partial = true;
		return 0;
	}
	if (letter == '-' || letter == '!' || letter == '+')
		return take_trouble(l, letter, text + 1);
	if (letter == '\0' || read_record(text, &l->parsed, &path) == -1)
		return nonsense(l, "record");
	if (l->root->kind == FAR_FILE) {
		take_file(l);
		return 0;
	}
	if (strcmp(path, ".") == 0)
		return 0;
	if (l->root->kind != FAR_DIR || !good_path(path))
		return nonsense(l, "name");
	if (++l->seen > ENTRIES_MAX * 4)
		return err_set(&l->err, ERR_LIMIT,
		    "the host lists more than %zu files", ENTRIES_MAX * 4);
	if (l->parsed.type != ENTRY_LINK)
		return add_entry(l, path, NULL);
	l->parsed_path = xstrdup(path);
	l->step = STEP_TARGET;
	return 0;
}

static int
take_target(struct listing *l)
{
	int rc = 0;

	if (l->text.len == 0 || l->text.len >= 4096)
		problem(l, l->parsed_path, "the link's target cannot be read");
	else
		rc = add_entry(l, l->parsed_path, l->text.data);
	free(l->parsed_path);
	l->parsed_path = NULL;
	l->step = STEP_RECORD;
	return rc;
}

/* The available kilobytes stand before the percentage. */
static int64_t
read_df(char *line)
{
	char *before = NULL, *w;
	int64_t kb;

	while ((w = strsep(&line, " \t\n")) != NULL) {
		if (*w == '\0')
			continue;
		if (str_ends(w, "%") && before != NULL &&
		    number(before, 10, INT64_MAX / 1024, &kb) == 0)
			return kb * 1024;
		before = w;
	}
	return -1;
}

static int
take_kind(struct listing *l, char c)
{
	if (c == '\0' || strchr("dfomx", c) == NULL || l->text.len != 1)
		return nonsense(l, "kind");
	l->denied = c == 'x';
	l->root->kind = c == 'd' ? FAR_DIR
	    : c == 'f'           ? FAR_FILE
	    : c == 'o'           ? FAR_OTHER
	                         : FAR_MISSING;
	return 0;
}

/* Without "//" and "."; ".." means what it means only on the host. */
static int
take_path(struct listing *l)
{
	const char *p = l->text.data, *at;
	char *whole;

	if (*p != '/')
		return nonsense(l, "path");
	whole = xasprintf("%s/", p);
	at = strstr(whole, "/../");
	free(whole);
	l->root->path = at == NULL ? path_clean(p) : xstrdup(p);
	return 0;
}

static void
take_tools(struct listing *l)
{
	const char *s = l->text.data;

	l->root->gnu_tar = strchr(s, 'g') != NULL;
	l->root->bsd_tar = strchr(s, 'b') != NULL;
	l->root->perl = strchr(s, 'p') != NULL;
	l->root->python = strchr(s, 'y') != NULL;
}

/* A text is whole. */
static int
take(struct listing *l)
{
	const char *s = l->text.data;

	switch (l->step) {
	case STEP_MAGIC:
		return strcmp(s, "RSMCP1") == 0 ? 0 : nonsense(l, "start");
	case STEP_KIND:
		return take_kind(l, s[0]);
	case STEP_PATH:
		return take_path(l);
	case STEP_RIGHTS:
		l->unreadable = strchr(s, 'r') == NULL;
		l->root->writable = strchr(s, 'w') != NULL;
		return 0;
	case STEP_TOOLS:
		take_tools(l);
		return 0;
	case STEP_DF:
		l->root->free_bytes = read_df(l->text.data);
		return 0;
	case STEP_LISTER:
		l->nobody = *s == '\0';
		l->out->whole_seconds = strcmp(s, "perl") == 0 ||
		    strcmp(s, "stat") == 0 || strcmp(s, "sftp") == 0;
		return 0;
	case STEP_RECORD:
		return take_record(l);
	case STEP_TARGET:
		return take_target(l);
	case STEP_END:
		return nonsense(l, "behind the end:");
	}
	return 0;
}

/* One that is too long is let go by; if it was a name, it is told. */
static int
take_long(struct listing *l)
{
	if (l->step != STEP_RECORD && l->step != STEP_TARGET)
		return nonsense(l, "too long:");
	l->text.data[200] = '\0';
	problem(l, l->text.data, "the name is too long");
	l->out->partial = true;
	/* A link's target may follow, or not: nobody can tell. */
	if (l->step == STEP_RECORD && l->text.data[0] == 'l')
		return nonsense(l, "too long:");
	free(l->parsed_path);
	l->parsed_path = NULL;
	l->step = STEP_RECORD;
	return 0;
}

void
listing_add(struct listing *l, const char *bytes, size_t len)
{
	while (len > 0 && l->err.code == ERR_NONE) {
		const char *end = memchr(bytes, '\0', len);
		size_t n = end != NULL ? (size_t)(end - bytes) : len;
		bool header = l->step < STEP_RECORD;

		buf_add(&l->text, bytes, n);
		bytes += n;
		len -= n;
		if (end == NULL)
			return;
		bytes++;
		len--;
		if (l->text.full)
			take_long(l);
		else
			take(l);
		if (header)
			l->step++;
		buf_reset(&l->text);
	}
}

/*
 * Each entry needs its directory before it: a race may have dropped one, and a
 * host can claim anything.  The entry of a directory that could not be read
 * gets its mark.
 */
static void
check_parents(struct listing *l)
{
	struct tree *t = l->out;
	const struct entry *dir = NULL;
	size_t i, n = 0, u = 0;

	for (i = 0; i < t->count; i++) {
		struct entry *e = &t->entries[i];
		const char *slash = strrchr(e->path, '/');
		size_t len = slash != NULL ? (size_t)(slash - e->path) : 0;

		if (len > 0 &&
		    (dir == NULL || strlen(dir->path) != len ||
		        memcmp(dir->path, e->path, len) != 0)) {
			struct tree before = { .entries = t->entries,
				.count = n };
			char *name = xstrndup(e->path, len);

			dir = tree_find(&before, name);
			free(name);
		}
		if (len > 0 && (dir == NULL || dir->type != ENTRY_DIR)) {
			problem(l, e->path,
			    "its directory vanished while the host was listed");
			t->partial = true;
			dir = NULL;
			continue;
		}
		while (u < l->unread.count &&
		    tree_compare(l->unread.entries[u].path, e->path) < 0)
			u++;
		e->unread = e->type == ENTRY_DIR && u < l->unread.count &&
		    strcmp(l->unread.entries[u].path, e->path) == 0;
		t->entries[n++] = *e;
	}
	t->count = n;
}

int
listing_end(struct listing *l, struct err *err)
{
	const char *path = l->root->path;

	if (l->err.code == ERR_NONE && l->denied)
		err_set(&l->err, ERR_DENIED,
		    "'%.300s' may not be entered on the host, or is in a "
		    "directory that may not be (permission denied)",
		    path);
	if (l->err.code == ERR_NONE && (l->step != STEP_END || l->text.len > 0))
		err_set(&l->err, ERR_IO,
		    "the host's list of files broke off; try again");
	if (l->err.code == ERR_NONE && l->unreadable &&
	    l->root->kind == FAR_DIR)
		err_set(&l->err, ERR_DENIED,
		    "the directory '%.300s' cannot be read on the host "
		    "(permission denied)",
		    path);
	if (l->err.code == ERR_NONE && l->nobody &&
	    (l->root->kind == FAR_DIR || l->root->kind == FAR_FILE))
		err_set(&l->err, ERR_IO,
		    "the host has no program to list files with: it needs "
		    "find and stat, perl, or python3");
	if (l->err.code == ERR_NONE && l->root->kind == FAR_FILE &&
	    !l->file_seen)
		err_set(&l->err, ERR_IO,
		    "'%.300s' vanished while the host looked at it", path);
	if (l->err.code != ERR_NONE)
		return err_set(err, l->err.code, "%s", l->err.msg);
	tree_sort(&l->unread);
	tree_sort(l->out);
	if (l->o->max_entries > 0)
		cut(l, l->o->max_entries);
	check_parents(l);
	return 0;
}

/* --- Both together -------------------------------------------------------- */

static void
sink(void *data, const char *bytes, size_t len)
{
	listing_add(data, bytes, len);
}

/* A run that did not end by itself. */
static int
explain(const struct exec_result *res, struct link *link, struct err *err)
{
	const char *name = link_sandbox(link)->name;

	if (res->cancelled)
		return err_set(err, ERR_CANCELLED,
		    "listing files on %s was cancelled", name);
	if (res->timed_out)
		return err_set(err, ERR_TIMEOUT,
		    "listing files on %s took too long", name);
	return err_set(err, ERR_IO,
	    "the connection to %s was lost while files were listed", name);
}

/* Run a script whose stdout goes to "take". */
static int
run(struct link *link, const char *script,
    void (*take_bytes)(void *data, const char *bytes, size_t len), void *data,
    struct exec_result *res, const struct until *until, struct err *err)
{
	struct exec_request req = {
		.command = script,
		.cwd = link_sandbox(link)->workdir,
		.timeout_ms = LIST_MS,
		.max_chars = ERR_CHARS,
		.sink = take_bytes,
		.sink_data = data,
	};

	if (exec_run(link, &req, res, until, err) == -1)
		return -1;
	if (res->state == EXEC_FINISHED)
		return 0;
	explain(res, link, err);
	exec_result_free(res);
	return -1;
}

static int
list_by_command(struct link *link, const char *path, struct listing *l,
    const struct until *until, struct err *err)
{
	struct exec_result res;
	struct buf script;
	int rc;

	buf_init(&script, SIZE_MAX);
	farlist_script(&script, path, l->o);
	rc = run(link, script.data, sink, l, &res, until, err);
	buf_free(&script);
	if (rc == -1)
		return -1;
	rc = listing_end(l, err);
	if (rc == 0 && l->out->partial && !str_blank(res.err.data))
		problem(l, "", res.err.data);
	exec_result_free(&res);
	return rc;
}

static int
run_list(struct link *link, const char *path, const struct farlist_options *o,
    struct far_root *root, struct tree *out, const struct until *until,
    struct err *err)
{
	struct listing *l = listing_new(o, root, out);
	int rc = link_ways(link, until, err);

	if (rc == 0) {
		rc = list_by_command(link, path, l, until, err);
	} else if (rc == 1) {
		rc = sftplist_run(link, path, o, sink, l, until, err);
		if (rc == 0)
			rc = listing_end(l, err);
	}
	if (rc == -1) {
		tree_free(out);
		far_root_free(root);
	}
	listing_free(l);
	return rc;
}

/* --- .gitignore files ----------------------------------------------------- */

/* Their texts as they come, each ended by a NUL, and "E" behind the last. */
struct ignores {
	const struct tree *tree;
	struct rules *rules;
	size_t next; /* entry to look at */
	struct buf text;
	bool ended;
};

static bool
is_ignore_file(const struct entry *e)
{
	const char *slash = strrchr(e->path, '/');

	return e->type == ENTRY_FILE &&
	    strcmp(slash != NULL ? slash + 1 : e->path, ".gitignore") == 0;
}

static const struct entry *
next_ignore(const struct tree *t, size_t *at)
{
	while (*at < t->count) {
		const struct entry *e = &t->entries[(*at)++];

		if (is_ignore_file(e))
			return e;
	}
	return NULL;
}

/* NULL if there are none. */
static char *
ignore_script(const struct far_root *root, const struct tree *t)
{
	const struct entry *e;
	struct buf b;
	size_t at = 0;

	e = next_ignore(t, &at);
	if (e == NULL)
		return NULL;
	buf_init(&b, SIZE_MAX);
	buf_adds(&b, "export LC_ALL=C; unset CDPATH; cd ");
	quote_sh(&b, root->path);
	buf_addf(&b,
	    " || exit 1\ng() { head -c %zu <\"./$1\" 2>/dev/null | "
	    "tr -d '\\000'; printf '\\000'; }\n",
	    IGNORE_MAX);
	for (; e != NULL; e = next_ignore(t, &at)) {
		buf_adds(&b, "g ");
		quote_sh(&b, e->path);
		buf_adds(&b, "\n");
	}
	buf_adds(&b, "printf 'E\\000'\n");
	return buf_take(&b);
}

static void
take_ignore(struct ignores *g)
{
	const struct entry *e = next_ignore(g->tree, &g->next);
	const char *slash;
	char *dir;

	if (e == NULL) {
		g->ended = strcmp(g->text.data, "E") == 0;
		return;
	}
	slash = strrchr(e->path, '/');
	dir = xstrndup(e->path, slash != NULL ? (size_t)(slash - e->path) : 0);
	rules_add_gitignore(g->rules, dir, g->text.data, g->text.len);
	free(dir);
}

static void
ignore_sink(void *data, const char *bytes, size_t len)
{
	struct ignores *g = data;

	while (len > 0) {
		const char *end = memchr(bytes, '\0', len);
		size_t n = end != NULL ? (size_t)(end - bytes) : len;

		buf_add(&g->text, bytes, n);
		if (end == NULL)
			return;
		take_ignore(g);
		buf_reset(&g->text);
		bytes += n + 1;
		len -= n + 1;
	}
}

/* Drop what is excluded by now. */
static void
drop_excluded(struct tree *t, const struct rules *rules)
{
	const char *dir = NULL; /* that was dropped */
	size_t i, n = 0;

	for (i = 0; i < t->count; i++) {
		const struct entry *e = &t->entries[i];
		bool is_dir = e->type == ENTRY_DIR;

		if (dir != NULL && tree_below(e->path, dir))
			continue;
		if (!rules_match(rules, e->path, is_dir))
			t->entries[n++] = *e;
		else if (is_dir)
			dir = e->path;
	}
	t->count = n;
}

/* By SFTP; those that cannot be read are taken for empty. */
static int
get_ignores(struct link *link, const struct far_root *root, struct ignores *g,
    const struct until *until, struct err *err)
{
	struct sftp *s = link_sftp(link, until, err);
	const struct entry *e;
	struct buf text;
	size_t at = 0;
	int rc = s == NULL ? -1 : 0;

	buf_init(&text, IGNORE_MAX);
	while (rc == 0 && (e = next_ignore(g->tree, &at)) != NULL) {
		char *path = sftplist_join(root->path, e->path);

		buf_reset(&text);
		if (sftp_get(s, path, IGNORE_MAX, &text, until, err) == -1 &&
		    err->code != ERR_DENIED && err->code != ERR_NOT_FOUND)
			rc = -1;
		text.len = strlen(text.data);
		ignore_sink(g, text.data, text.len + 1);
		free(path);
	}
	if (rc == 0)
		ignore_sink(g, "E", 2);
	buf_free(&text);
	sftp_free(s);
	return rc;
}

static int
print_ignores(struct link *link, const char *script, struct ignores *g,
    const struct until *until, struct err *err)
{
	struct exec_result res;

	if (run(link, script, ignore_sink, g, &res, until, err) == -1)
		return -1;
	exec_result_free(&res);
	return 0;
}

static int
run_ignores(struct link *link, const struct far_root *root, struct rules *rules,
    struct tree *t, const struct until *until, struct err *err)
{
	struct ignores g = { .tree = t, .rules = rules };
	char *script = ignore_script(root, t);
	int rc;

	if (script == NULL)
		return 0;
	buf_init(&g.text, IGNORE_MAX);
	rc = link_ways(link, until, err);
	if (rc == 0)
		rc = print_ignores(link, script, &g, until, err);
	else if (rc == 1)
		rc = get_ignores(link, root, &g, until, err);
	if (rc == 0) {
		if (!g.ended)
			rc = err_set(err, ERR_IO,
			    "the .gitignore files below '%.300s' could not be "
			    "read on the host",
			    root->path);
	}
	if (rc == 0)
		drop_excluded(t, rules);
	buf_free(&g.text);
	free(script);
	return rc;
}

int
farlist_run(struct link *link, const char *path,
    const struct farlist_options *o, struct far_root *root, struct tree *out,
    const struct until *until, struct err *err)
{
	bool ignores = o->gitignore && o->rules != NULL;
	struct farlist_options all = *o;

	if (!ignores)
		return run_list(link, path, o, root, out, until, err);
	all.max_entries = 0;
	if (run_list(link, path, &all, root, out, until, err) == -1)
		return -1;
	if (run_ignores(link, root, o->rules, out, until, err) == -1) {
		tree_free(out);
		far_root_free(root);
		return -1;
	}
	if (o->max_entries > 0 && out->count > o->max_entries) {
		out->count = o->max_entries;
		out->cut = true;
	}
	return 0;
}
