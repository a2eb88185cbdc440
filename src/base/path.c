#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"

/* Step over slashes to the next component and return its length, 0 at the
 * end. */
static size_t
component(const char **at)
{
	*at += strspn(*at, "/");
	return strcspn(*at, "/");
}

static bool
is_dot(const char *name, size_t len)
{
	return len == 1 && name[0] == '.';
}

static bool
is_dot_dot(const char *name, size_t len)
{
	return len == 2 && name[0] == '.' && name[1] == '.';
}

/* Where the last component of out[0..len) starts. */
static size_t
last(const char *out, size_t len)
{
	while (len > 0 && out[len - 1] != '/')
		len--;
	return len;
}

char *
path_clean(const char *path)
{
	char *out = xmalloc(strlen(path) + 2);
	size_t root = path[0] == '/' ? 1 : 0;
	size_t len = root, n;
	const char *at = path;

	out[0] = '/';
	for (; (n = component(&at)) > 0; at += n) {
		size_t start = last(out, len);
		bool up = is_dot_dot(at, n);

		if (is_dot(at, n) || (up && root && len == root))
			continue;
		if (up && len > root && !is_dot_dot(out + start, len - start)) {
			len = start > root ? start - 1 : root;
			continue;
		}
		if (len > root)
			out[len++] = '/';
		memcpy(out + len, at, n);
		len += n;
	}
	if (len == 0)
		out[len++] = '.';
	out[len] = '\0';
	return out;
}

char *
path_join(const char *dir, const char *name)
{
	size_t len = strlen(dir);

	if (name[0] == '/' || len == 0)
		return xstrdup(name);
	if (name[0] == '\0')
		return xstrdup(dir);
	return xasprintf("%s%s%s", dir, dir[len - 1] == '/' ? "" : "/", name);
}

bool
path_is_home(const char *path)
{
	return path[0] == '~' && (path[1] == '/' || path[1] == '\0');
}

char *
path_home(const char *path, const char *home)
{
	if (!path_is_home(path))
		return xstrdup(path);
	path++;
	component(&path); /* the rest is no absolute path, even of "~//x" */
	return path_join(home, path);
}

bool
path_inside(const char *path)
{
	bool below = false;
	const char *at = path;
	size_t n;

	if (path[0] == '/')
		return false;
	for (; (n = component(&at)) > 0; at += n) {
		if (is_dot_dot(at, n))
			return false;
		if (!is_dot(at, n))
			below = true;
	}
	return below;
}

const char *
path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

char *
path_dir(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return xstrdup(".");
	return slash == path ? xstrdup("/")
	                     : xstrndup(path, (size_t)(slash - path));
}
