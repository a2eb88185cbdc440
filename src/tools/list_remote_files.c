/*
 * list_remote_files: what is in a directory of a sandbox, and below it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "sync/farlist.h"
#include "tools/remote.h"
#include "tools/tool.h"

#define ENTRIES_DFLT 200
#define ENTRIES_MAX 20000
#define PROBLEMS_MAX 20
#define LIST_MS 60000

struct list_remote_files_args {
	const char *remote_path;
	bool recursive;
	int64_t max_entries;
	const char *sandbox_name;
};

#define ARG(field) \
	.name = #field, .offset = offsetof(struct list_remote_files_args, field)

static const struct arg args[] = {
	{ ARG(remote_path), .type = ARG_STRING, .dflt_str = ".",
	    .help = "Directory, relative to the workdir or the login "
	            "directory; a file gives its own entry." },
	{ ARG(recursive), .type = ARG_BOOL,
	    .help = "Everything below it, too; links are not followed." },
	{ ARG(max_entries), .type = ARG_INT, .min = 1, .max = ENTRIES_MAX,
	    .dflt = ENTRIES_DFLT,
	    .help = "The first so many, by name; up to the default the whole "
	            "answer keeps to 40000 characters." },
	{ ARG(sandbox_name), REMOTE_ARG_SANDBOX },
	{ 0 },
};

static const struct out entry_outputs[] = {
	{ "path", OUT_STRING, NULL, .always = true },
	{ "is_dir", OUT_BOOL, NULL, .always = true },
	{ "size", OUT_INT, "Of a file; else 0.", .always = true },
	{ "mtime", OUT_INT, "Seconds since 1970.", .always = true },
	{ "mode", OUT_STRING, "Octal, as 0644.", .always = true },
	{ "type", OUT_STRING, "file, dir, link or other.", .always = true },
	{ "target", OUT_STRING, "Of a link." },
	{ "escaped", OUT_BOOL,
	    "Not UTF-8: path and target are what bash writes in $'...'." },
	{ 0 },
};

static const struct out problem_outputs[] = {
	{ "path", OUT_STRING, NULL, .always = true },
	{ "problem", OUT_STRING, NULL, .always = true },
	{ 0 },
};

static const struct out outputs[] = {
	{ "truncated", OUT_BOOL, "Something was left out.", .always = true },
	{ "entries", OUT_OBJECTS,
	    "Sorted; a directory is followed by what is in it.", .always = true,
	    .fields = entry_outputs },
	{ "is_file", OUT_BOOL, "remote_path is a file, and this its entry." },
	{ "problems", OUT_OBJECTS, "What could not be looked at.",
	    .fields = problem_outputs },
	{ "problem_count", OUT_INT },
	{ REMOTE_OUT_SANDBOX },
	{ REMOTE_OUT_NEWS },
	{ 0 },
};

/* An answer in the making. */
struct answer {
	char *dir; /* what names are joined to */
	json_t *entries, *problems;
	json_int_t problem_count;
	size_t chars; /* of the entries, as the client sees them */
};

/*
 * A text that is not UTF-8, so that it can be read, and pasted into a command
 * of bash: $'gr\xfcn'.
 */
static json_t *
escaped_json(const char *s)
{
	size_t len = strlen(s), i, n;
	struct buf b;
	json_t *text;

	buf_init(&b, SIZE_MAX);
	for (i = 0; i < len; i += n) {
		for (n = 1; n <= 4 && i + n <= len; n++) {
			if (utf8_valid(s + i, n))
				break;
		}
		if (n > 4 || i + n > len) {
			n = 1;
			buf_addf(&b, "\\x%02x", (unsigned char)s[i]);
			continue;
		}
		if (s[i] == '\\' || s[i] == '\'')
			buf_addc(&b, '\\');
		buf_add(&b, s + i, n);
	}
	text = utf8_json(b.data, b.len);
	buf_free(&b);
	return text;
}

static bool
is_text(const char *s)
{
	return s == NULL || utf8_valid(s, strlen(s));
}

static json_t *
name_json(const char *s, bool escaped)
{
	return escaped ? escaped_json(s) : utf8_json(s, strlen(s));
}

/* Whole seconds, as a clock before 1970 counts them, too. */
static json_int_t
seconds(int64_t ns)
{
	return ns / 1000000000 - (ns % 1000000000 < 0);
}

static json_t *
entry_json(const struct entry *e, const char *path)
{
	static const char *const types[] = { [ENTRY_FILE] = "file",
		[ENTRY_DIR] = "dir",
		[ENTRY_LINK] = "link",
		[ENTRY_OTHER] = "other" };
	bool escaped = !is_text(path) || !is_text(e->target);
	json_t *o = json_object();
	char mode[8];

	snprintf(mode, sizeof(mode), "%04o", e->mode & 07777u);
	json_object_set_new(o, "path", name_json(path, escaped));
	json_object_set_new(o, "is_dir", json_boolean(e->type == ENTRY_DIR));
	json_object_set_new(o, "size", json_integer(e->size));
	json_object_set_new(o, "mtime", json_integer(seconds(e->mtime)));
	json_object_set_new(o, "mode", json_string(mode));
	json_object_set_new(o, "type", json_string(types[e->type]));
	if (e->target != NULL)
		json_object_set_new(o, "target", name_json(e->target, escaped));
	if (escaped)
		json_object_set_new(o, "escaped", json_true());
	return o;
}

/* How long it is in the text of the answer: indented by four, a comma. */
static size_t
chars_of(const json_t *entry)
{
	char *text = json_dumps(entry, JSON_INDENT(2));
	const char *at;
	size_t n = 6;

	if (text == NULL)
		out_of_memory();
	for (at = text; at != NULL && *at != '\0'; at++) {
		n += ((unsigned char)*at & 0xc0) != 0x80;
		n += *at == '\n' ? 4 : 0;
	}
	free(text);
	return n;
}

/* Adds it if there is room for "max" characters. */
static bool
add_entry(struct answer *a, const struct entry *e, const char *path, size_t max)
{
	json_t *o = entry_json(e, path);
	size_t n = chars_of(o);

	if (a->chars + n > max) {
		json_decref(o);
		return false;
	}
	a->chars += n;
	json_array_append_new(a->entries, o);
	return true;
}

/* The whole of the tree, or what of it fits; false if that is less. */
static bool
add_tree(struct answer *a, const struct tree *t, size_t max)
{
	bool all = true;
	size_t i;

	for (i = 0; i < t->count && all; i++) {
		char *path = path_join(a->dir, t->entries[i].path);

		all = add_entry(a, &t->entries[i], path, max);
		free(path);
	}
	return all;
}

static void
problem(void *data, const char *path, const char *why)
{
	struct answer *a = data;
	json_t *o;

	if (++a->problem_count > PROBLEMS_MAX)
		return;
	o = json_object();
	json_object_set_new(o, "path", name_json(path, !is_text(path)));
	json_object_set_new(o, "problem", utf8_json(why, strlen(why)));
	a->chars += chars_of(o);
	json_array_append_new(a->problems, o);
}

/* The directory as the caller named it, so that names can be used in the same
 * way; ".." stays, since it may not mean what it seems to. */
static char *
base_of(const char *given, const struct far_root *root)
{
	char *slashed, *base;

	if (path_is_home(given))
		return xstrdup(root->path);
	slashed = xasprintf("/%s/", given);
	base = strstr(slashed, "/../") != NULL ? xstrdup(given)
	                                       : path_clean(given);
	free(slashed);
	return base;
}

/* Neither file nor directory. */
static int
refuse(const char *path, const struct far_root *root, struct link *link,
    struct err *err)
{
	const char *name = link_sandbox(link)->name;

	if (root->kind == FAR_MISSING)
		return err_set(err, ERR_NOT_FOUND,
		    "there is no '%.300s' on %s (%.300s)", path, name,
		    root->path);
	return err_set(err, ERR_INVALID,
	    "'%.300s' on %s is no file and no directory: a device, a fifo, a "
	    "socket, or a link that leads nowhere",
	    path, name);
}

/* Those are told by the path below the directory. */
static void
join_problems(struct answer *a)
{
	json_t *o;
	size_t i;

	json_array_foreach (a->problems, i, o) {
		const char *name =
		    json_string_value(json_object_get(o, "path"));
		char *path = path_join(a->dir, name);

		if (name[0] != '\0')
			json_object_set_new(o, "path",
			    utf8_json(path, strlen(path)));
		free(path);
	}
}

/* The result, from what was found. */
static json_t *
result_json(struct answer *a, const struct far_root *root,
    const struct tree *tree, size_t max_chars)
{
	json_t *o = json_object();
	bool whole = !tree->cut;

	if (root->kind == FAR_FILE)
		add_entry(a, &root->file, a->dir, SIZE_MAX);
	else
		whole = add_tree(a, tree, max_chars) && whole;
	json_object_set_new(o, "truncated", json_boolean(!whole));
	json_object_set(o, "entries", a->entries);
	if (root->kind == FAR_FILE)
		json_object_set_new(o, "is_file", json_true());
	if (a->problem_count > 0) {
		join_problems(a);
		json_object_set(o, "problems", a->problems);
		json_object_set_new(o, "problem_count",
		    json_integer(a->problem_count));
	}
	return o;
}

static json_t *
list(struct link *link, const struct list_remote_files_args *g,
    struct answer *a, const struct until *until, struct err *err)
{
	const char *path = str_blank(g->remote_path) ? "." : g->remote_path;
	struct farlist_options o = {
		.recursive = g->recursive,
		.max_entries = (size_t)g->max_entries,
		.problem = problem,
		.problem_data = a,
	};
	struct far_root root;
	struct tree tree;
	json_t *result = NULL;

	if (farlist_run(link, path, &o, &root, &tree, until, err) == -1)
		return NULL;
	a->dir = base_of(path, &root);
	if (root.kind != FAR_FILE && root.kind != FAR_DIR)
		refuse(path, &root, link, err);
	else
		result = result_json(a, &root, &tree,
		    remote_answer_chars(g->max_entries > ENTRIES_DFLT));
	far_root_free(&root);
	tree_free(&tree);
	return result;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct list_remote_files_args *g = given;
	struct until until = until_within(&call->until, LIST_MS);
	struct link *link = remote_link(call, g->sandbox_name, err);
	struct answer a = { 0 };
	json_t *found;

	if (link == NULL)
		return -1;
	a.entries = json_array();
	a.problems = json_array();
	found = list(link, g, &a, &until, err);
	if (found != NULL) {
		remote_set_sandbox(found, link, g->sandbox_name);
		*result = found;
	} else if (err->code == ERR_TIMEOUT && until_left(&until) == 0) {
		err_set(err, ERR_TIMEOUT,
		    "listing '%.300s' on %s took more than %d s; name a "
		    "smaller directory, or leave out 'recursive'",
		    g->remote_path, link_sandbox(link)->name, LIST_MS / 1000);
	}
	free(a.dir);
	json_decref(a.entries);
	json_decref(a.problems);
	return found != NULL ? 0 : -1;
}

const struct tool tool_list_remote_files = {
	.name = "list_remote_files",
	.title = "List remote files",
	.description =
	    "List a directory of a sandbox, or with recursive all below it, "
	    "with size, time, mode, and the targets of links.",
	.args = args,
	.args_size = sizeof(struct list_remote_files_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true, .open_world = true },
	.run = run,
};
