/* The local directories that may be used. */
#include "config/roots.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/decode.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#define VARIABLE "REMOTE_SANDBOX_LOCAL_ROOTS"

/* The directories as an array of strings. */
static json_t *
parse(const char *list, struct err *err)
{
	const char *at = list + strspn(list, " \t\r\n");
	json_t *roots;
	size_t n;

	if (*at == '[') {
		roots = decode_json(at, strlen(at), err);
		if (roots == NULL)
			err_wrap(err, VARIABLE);
		return roots;
	}
	roots = json_array();
	for (at = list; *at != '\0'; at += n + (at[n] == ':')) {
		n = strcspn(at, ":");
		/* Not checked to be UTF-8: names may be anything. */
		if (n > 0)
			json_array_append_new(roots,
			    json_stringn_nocheck(at, n));
	}
	return roots;
}

/* Without slashes at the end: a link with one behind it would be followed. */
static void
trim(char *path, size_t len)
{
	while (len > 1 && path[len - 1] == '/')
		len--;
	path[len] = '\0';
}

/* Is the name itself there, be it a link to nowhere? */
static bool
is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/*
 * The real path of the longest part that exists, with the rest behind it.
 * NULL if it cannot be told: a rest with "..", a part that we may not look
 * into, a link to nowhere (writing to it would make its target).
 */
static char *
resolve(const char *path, struct err *err)
{
	char *part = xstrdup(path[0] == '\0' ? "." : path), *real, *whole;
	const char *rest = "", *slash;

	trim(part, strlen(part));
	while ((real = realpath(part, NULL)) == NULL) {
		if (errno != ENOENT || is_there(part)) {
			err_sys(err, "cannot resolve the local path '%s'",
			    path);
			free(part);
			return NULL;
		}
		slash = strrchr(part, '/');
		if (slash == NULL) {
			rest = path;
			memcpy(part, ".", sizeof("."));
		} else {
			rest = path + (slash - part) + 1;
			trim(part, (size_t)(slash - part) + 1);
		}
	}
	free(part);
	if (*rest == '\0' || path_inside(rest)) {
		whole = path_join(real, rest);
	} else {
		whole = NULL;
		err_set(err, ERR_DENIED,
		    "the local path '%s' has '..' behind a directory that does "
		    "not exist",
		    path);
	}
	free(real);
	return whole;
}

static bool
is_inside(const char *real, const char *root)
{
	size_t len = strlen(root);

	if (strcmp(root, "/") == 0)
		return true;
	return strncmp(real, root, len) == 0 &&
	    (real[len] == '/' || real[len] == '\0');
}

/* 1 if it is in this root, 0 if not, -1 if that is none. */
static int
allows(const char *root, const char *home, const char *real, struct err *err)
{
	char *path, *resolved;
	int allowed = 0;

	if (root == NULL)
		return err_set(err, ERR_INVALID,
		    VARIABLE " must hold directories, with ':' between them or "
		             "as a JSON array of strings");
	path = path_home(root, home != NULL ? home : "/nonexistent");
	if (path[0] != '/') {
		err_set(err, ERR_INVALID,
		    VARIABLE " has '%s', which is no absolute path", root);
		free(path);
		return -1;
	}
	resolved = realpath(path, NULL);
	if (resolved != NULL)
		allowed = is_inside(real, resolved) ? 1 : 0;
	free(resolved);
	free(path);
	return allowed;
}

/* One of the roots has it.  All are looked at, so that a slip in the list is
 * told whatever the path. */
static int
check_roots(const json_t *roots, const char *home, const char *path,
    const char *list, struct err *err)
{
	char *real = resolve(path, err), *clean;
	bool allowed = false;
	const json_t *v;
	size_t i;
	int one;

	if (real == NULL)
		return -1;
	clean = path_clean(real);
	free(real);
	json_array_foreach (roots, i, v) {
		one = allows(decode_text(v), home, clean, err);
		if (one == -1) {
			free(clean);
			return -1;
		}
		allowed = allowed || one == 1;
	}
	if (!allowed)
		err_set(err, ERR_DENIED,
		    "the local path '%s' is outside the directories that " VARIABLE
		    " allows (%s); take one inside, or let the user "
		    "change the variable",
		    clean, list);
	free(clean);
	return allowed ? 0 : -1;
}

int
roots_allow(const char *list, const char *home, const char *path,
    struct err *err)
{
	json_t *roots;
	int ret;

	if (list == NULL || str_blank(list))
		return 0;
	roots = parse(list, err);
	if (roots == NULL)
		return -1;
	ret = check_roots(roots, home, path, list, err);
	json_decref(roots);
	return ret;
}

int
roots_check(const char *path, struct err *err)
{
	return roots_allow(getenv(VARIABLE), getenv("HOME"), path, err);
}

int
roots_check_fd(int fd, const char *path, struct err *err)
{
	char *real = fs_fd_path(fd);
	int rc = roots_check(real != NULL ? real : path, err);

	free(real);
	return rc;
}
