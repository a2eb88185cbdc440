/*
 * Reading the list of the far side.
 *
 * What the command prints is a row of texts, each ended by a NUL: those of the
 * header first, then records, then the end.
 *
 *   RSMCP1                     header: what this is
 *   d                          kind: d, f, o (other), m (missing), x (denied)
 *   /home/u/x                  the path, absolute
 *   rw                         what we may do: read it, write there
 *   gpyz                       tar (g GNU, b BSD), p perl, y python, z gzip
 *   find                       who lists ("sftp": sftplist.c); "" if nobody
 *
 *   f644 12 1700000000.5 a/b   type, mode, size, mtime, path
 *   l777 3 1700000000.5 c      a link, and its target in the next text
 *   s81a4 12 1700000000 ./a/b  the same with the mode as stat(2) has it
 *   -a/d                       a directory whose content cannot be read
 *   !a/e                       something that could not be looked at
 *   +a/f                       a name that this host cannot tell (newline)
 *   _a/g                       something excluded that was passed over
 *   =/dev/sda1 9 5 4 56% /     what df prints
 *   E0                         the end, and the status of who listed
 *
 * For a file there is one record, for others none.
 */
#include "sync/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#define TEXT_MAX ((size_t)64 << 10)        /* of one text */
#define LONG_MAX_BYTES ((size_t)1 << 20)   /* of one that is let go by */
#define ENTRIES_MAX ((size_t)3 << 20)      /* half a gigabyte of memory */
#define NAMES_MAX ((size_t)512 << 20)      /* bytes of their names */
#define FIRST_NAMES_MAX ((size_t)16 << 20) /* the same with max_entries */
#define UNREAD_MAX 10000                   /* directories that cannot be read */
#define UNREAD_MAX_BYTES ((size_t)4 << 20)
#define DEPTH_MAX 2000
#define SLACK 4096 /* entries beyond max_entries before they are sorted out */

enum step {
	STEP_MAGIC,
	STEP_KIND,
	STEP_PATH,
	STEP_RIGHTS,
	STEP_TOOLS,
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
	size_t passed;       /* bytes of it that were let go by */
	struct entry parsed; /* a link that waits for its target */
	char *parsed_path;
	bool denied, unreadable;
	bool nobody;    /* no way to list */
	char known[16]; /* programs of the host, and who lists; or "" */
	bool file_seen;
	size_t seen;  /* records, with those left out */
	size_t names; /* bytes of the names that are kept */
	/* Is everything below this directory excluded?  Most entries have the
	 * directory of the one before. */
	struct buf dir;
	bool dir_covered;
	struct tree unread; /* directories, the first of them */
	size_t unread_bytes;
	struct tree kept; /* directories that hold something excluded */
	struct err err;   /* why it is no use any more */
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
	tree_init(&l->kept);
	buf_init(&l->text, TEXT_MAX);
	buf_init(&l->dir, TEXT_MAX);
	return l;
}

const char *
listing_known(const struct listing *l)
{
	return l->known[0] != '\0' ? l->known : NULL;
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
	tree_free(&l->kept);
	free(l);
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

static int
names_too_long(struct listing *l)
{
	return err_set(&l->err, ERR_LIMIT,
	    "the names of the host's files are too long to be kept; name a "
	    "smaller directory");
}

/* The path is excluded, and so its directory stays.  Those of one directory
 * mostly come one behind the other. */
static int
note_kept(struct listing *l, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash != NULL ? (size_t)(slash - path) : 0;
	const char *last =
	    l->kept.count > 0 ? l->kept.entries[l->kept.count - 1].path : "";
	char *dir;

	if (strlen(last) == n && memcmp(last, path, n) == 0)
		return 0;
	l->names += n + sizeof(struct entry);
	if (l->names > NAMES_MAX)
		return names_too_long(l);
	dir = xstrndup(path, n);
	tree_add(&l->kept, dir, NULL);
	free(dir);
	return 0;
}

static size_t
name_bytes(const char *path, const char *target)
{
	return strlen(path) + (target != NULL ? strlen(target) : 0);
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
	l->names = 0;
	fresh.whole_seconds = l->out->whole_seconds;
	fresh.partial = l->out->partial;
	fresh.cut = true;
	for (i = 0; i < keep; i++) {
		const struct entry *e = &l->out->entries[i];
		struct entry *c = tree_add(&fresh, e->path, e->target);

		l->names += name_bytes(e->path, e->target);
		c->size = e->size;
		c->mtime = e->mtime;
		c->mode = e->mode;
		c->type = e->type;
	}
	tree_free(l->out);
	*l->out = fresh;
}

/* Ours, not what is in it. */
static void
take_left_over(struct listing *l, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (l->o->left_over != NULL &&
	    rules_staging(slash != NULL ? slash + 1 : path))
		l->o->left_over(l->o->problem_data, path, l->parsed.size,
		    l->parsed.mtime / 1000000000);
}

static int
add_entry(struct listing *l, const char *path, const char *target)
{
	size_t max = l->o->max_entries;
	bool too_long = false;
	struct entry *e;

	if (rules_staging(path)) {
		take_left_over(l, path);
		return 0;
	}
	if (covered(l, path, l->parsed.type == ENTRY_DIR))
		return l->dir_covered ? 0 : note_kept(l, path);
	if (max > 0 &&
	    (l->out->count >= max + max / 2 + SLACK ||
	        l->names > FIRST_NAMES_MAX)) {
		cut(l, max);
		/* Not again and again for a few. */
		too_long = l->names > FIRST_NAMES_MAX / 2;
	}
	l->names += name_bytes(path, target);
	if (too_long || l->names > NAMES_MAX)
		return names_too_long(l);
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
		/* Of more than anybody has it is not known which. */
		l->unread_bytes += strlen(path);
		if (l->unread.count < UNREAD_MAX &&
		    l->unread_bytes < UNREAD_MAX_BYTES)
			tree_add(&l->unread, path, NULL);
		else
			l->out->partial = true;
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
take_passed(struct listing *l, const char *path)
{
	if (str_starts(path, "./"))
		path += 2;
	if (l->root->kind != FAR_DIR || !good_path(path))
		return nonsense(l, "name");
	return rules_staging(path) ? 0 : note_kept(l, path);
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
take_record(struct listing *l)
{
	char *text = l->text.data, *path;
	char letter = text[0];

	if (letter == 'E') {
		l->step = STEP_END;
		if (strcmp(text, "E0") != 0) {
			l->out->partial = true;
			l->known[0] = '\0'; /* is it there still? */
		}
		return 0;
	}
	if (++l->seen > ENTRIES_MAX * 4)
		return err_set(&l->err, ERR_LIMIT,
		    "the host lists more than %zu files", ENTRIES_MAX * 4);
	if (letter == '=') {
		l->root->free_bytes = read_df(text + 1);
		return 0;
	}
	if (letter == '-' || letter == '!' || letter == '+')
		return take_trouble(l, letter, text + 1);
	if (letter == '_')
		return take_passed(l, text + 1);
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
	l->root->gzip = strchr(s, 'z') != NULL;
}

/* For "stat" there is more to know, and SFTP has no programs. */
static void
take_lister(struct listing *l, const char *s)
{
	const struct far_root *r = l->root;

	l->nobody = *s == '\0';
	l->out->whole_seconds = strcmp(s, "perl") == 0 ||
	    strcmp(s, "stat") == 0 || strcmp(s, "sftp") == 0;
	if (strcmp(s, "find") != 0 && strcmp(s, "perl") != 0 &&
	    strcmp(s, "python") != 0)
		return;
	snprintf(l->known, sizeof(l->known), "%s%s%s%s%s %s",
	    r->gnu_tar ? "g" : "", r->bsd_tar ? "b" : "", r->perl ? "p" : "",
	    r->python ? "y" : "", r->gzip ? "z" : "", s);
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
	case STEP_LISTER:
		take_lister(l, s);
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

/* Some of a text.  One that is too long and has no end is none. */
static void
take_bytes(struct listing *l, const char *bytes, size_t n)
{
	size_t before = l->text.len;

	buf_add(&l->text, bytes, n);
	l->passed += n - (l->text.len - before);
	if (l->passed > LONG_MAX_BYTES ||
	    (l->text.full && l->step < STEP_RECORD))
		nonsense(l, "too long:");
}

bool
listing_add(struct listing *l, const char *bytes, size_t len)
{
	while (len > 0 && l->err.code == ERR_NONE) {
		const char *end = memchr(bytes, '\0', len);
		size_t n = end != NULL ? (size_t)(end - bytes) : len;
		bool header = l->step < STEP_RECORD;

		take_bytes(l, bytes, n);
		bytes += n;
		len -= n;
		if (end == NULL || l->err.code != ERR_NONE)
			break;
		bytes++;
		len--;
		if (l->text.full)
			take_long(l);
		else
			take(l);
		if (header)
			l->step++;
		buf_reset(&l->text);
		l->passed = 0;
	}
	return l->err.code == ERR_NONE;
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

static void
mark_kept(struct listing *l)
{
	struct tree *t = l->out;
	size_t i;

	for (i = 0; i < l->kept.count; i++) {
		const struct entry *e = tree_find(t, l->kept.entries[i].path);

		if (e != NULL && e->type == ENTRY_DIR)
			t->entries[e - t->entries].kept = true;
	}
	tree_spread_kept(t);
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
	mark_kept(l);
	return 0;
}
