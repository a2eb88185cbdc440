/* URIs of resources. */
#include "tools/resource_uri.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"

#define SCHEME "sandbox://"
#define PARTS_MAX 4

static int
unknown(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
	    "no resource has this URI; there are " SCHEME
	    "NAME/jobs, .../jobs/JOB, .../jobs/JOB/log and "
	    ".../transfers/ID");
}

static int
hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = strchr(digits, tolower((unsigned char)c));

	return c != '\0' && at != NULL ? (int)(at - digits) : -1;
}

static bool
is_plain(char c)
{
	return isalnum((unsigned char)c) || (c != '\0' && strchr("-._~", c));
}

/* "len" bytes as they are meant, or NULL; the caller frees it. */
static char *
decoded(const char *s, size_t len)
{
	struct buf out;
	bool good = len > 0;
	size_t i;

	buf_init(&out, RESOURCE_URI_MAX);
	for (i = 0; i < len && good; i++) {
		int high = -1, low = -1;

		if (s[i] != '%') {
			good = is_plain(s[i]) || (unsigned char)s[i] >= 0x80 ||
			    s[i] == ':' || s[i] == '@';
			buf_addc(&out, s[i]);
			continue;
		}
		if (i + 2 < len) {
			high = hex_digit(s[i + 1]);
			low = hex_digit(s[i + 2]);
		}
		good = high >= 0 && low >= 0 && (high > 0 || low > 0);
		buf_addc(&out, (char)(high * 16 + low));
		i += 2;
	}
	if (good && utf8_valid(out.data, out.len))
		return buf_take(&out);
	buf_free(&out);
	return NULL;
}

static void
encode(struct buf *out, const char *s)
{
	for (; *s != '\0'; s++) {
		if (is_plain(*s))
			buf_addc(out, *s);
		else
			buf_addf(out, "%%%02X", (unsigned char)*s);
	}
}

/* What is between the slashes; how many there are, 0 if one is wrong. */
static size_t
split(const char *s, char *parts[PARTS_MAX])
{
	size_t count = 0, len;

	for (;;) {
		if (count == PARTS_MAX)
			return 0;
		len = strcspn(s, "/");
		parts[count] = decoded(s, len);
		if (parts[count] == NULL)
			return 0;
		count++;
		if (s[len] == '\0')
			return count;
		s += len + 1;
	}
}

static int
take_parts(struct resource_uri *u, char *parts[PARTS_MAX], size_t count)
{
	if (count < 2)
		return -1;
	u->sandbox = xstrdup(parts[0]);
	if (strcmp(parts[1], "transfers") == 0) {
		u->kind = RESOURCE_TRANSFER;
		if (count != 3 || !isdigit((unsigned char)parts[2][0]))
			return -1;
		return str_to_int(parts[2], 1, INT64_MAX, &u->id);
	}
	if (strcmp(parts[1], "jobs") != 0)
		return -1;
	if (count == 4 && strcmp(parts[3], "log") != 0)
		return -1;
	u->kind = count == 2 ? RESOURCE_JOBS
	    : count == 3     ? RESOURCE_JOB
	                     : RESOURCE_LOG;
	if (count > 2)
		u->job = xstrdup(parts[2]);
	return 0;
}

int
resource_uri_parse(const char *uri, struct resource_uri *u, struct err *err)
{
	char *parts[PARTS_MAX] = { NULL };
	size_t i;
	int rc;

	memset(u, 0, sizeof(*u));
	if (strlen(uri) > RESOURCE_URI_MAX || !str_starts(uri, SCHEME))
		return unknown(err);
	rc = take_parts(u, parts, split(uri + strlen(SCHEME), parts));
	for (i = 0; i < PARTS_MAX; i++)
		free(parts[i]);
	return rc == 0 ? 0 : unknown(err);
}

void
resource_uri_free(struct resource_uri *u)
{
	free(u->sandbox);
	free(u->job);
	memset(u, 0, sizeof(*u));
}

char *
resource_uri_text(const struct resource_uri *u)
{
	struct buf out;

	buf_init(&out, SIZE_MAX);
	buf_adds(&out, SCHEME);
	encode(&out, u->sandbox);
	if (u->kind == RESOURCE_TRANSFER) {
		buf_addf(&out, "/transfers/%lld", (long long)u->id);
		return buf_take(&out);
	}
	buf_adds(&out, "/jobs");
	if (u->kind != RESOURCE_JOBS) {
		buf_addc(&out, '/');
		encode(&out, u->job);
	}
	if (u->kind == RESOURCE_LOG)
		buf_adds(&out, "/log");
	return buf_take(&out);
}
