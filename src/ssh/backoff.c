/* Waiting between logins that fail. */
#include "ssh/backoff.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/sha1.h"
#include "base/utf8.h"
#include "ssh/sshconf.h"

#define MIN_MS ((int64_t)1000)
#define DENIED_MS                                                  \
	((int64_t)8000) /* a password does not get right by itself \
	                 */
#define MAX_MS ((int64_t)60000)

/* So long after its wait a failure tells nothing of the next one. */
#define FORGET_MS ((int64_t)600000)
#define FILE_MAX 8192

/* What is said of a failure that is remembered, around the seconds. */
#define NOT_NOW "not tried again for "
#define DOCTOR "s after a failure (remote-sandbox-mcp doctor tries at once): "

/* A command that prints a secret: which one it is, as text. */
static void
add_command(struct buf *out, const json_t *command)
{
	char *text = json_dumps(command, JSON_COMPACT | JSON_ENCODE_ANY);

	buf_addf(out, "%s\n", text != NULL ? text : "");
	free(text);
}

/* What else decides whether a login works, and may be corrected after one that
 * did not.  Of a secret no more than that it is given: whoever reads a hash of
 * it could try words until one fits. */
static void
describe(struct buf *out, const struct sandbox *sb)
{
	struct stat st;

	buf_addf(out, "%s\n%d %d %d\n", sb->name, sb->connect_timeout_s,
	    secret_given(&sb->password), secret_given(&sb->key_passphrase));
	add_command(out, sb->password_command);
	add_command(out, sb->key_passphrase_command);
	if (sb->key_file != NULL && stat(sb->key_file, &st) == 0)
		buf_addf(out, "%lld %lld %o\n", (long long)st.st_mtime,
		    (long long)st.st_size, (unsigned)st.st_mode);
}

char *
backoff_path(const struct sandbox *sb, const char *runtime_dir)
{
	char way[17], entry[SHA1_HEX];
	struct buf text;

	buf_init(&text, SIZE_MAX);
	describe(&text, sb);
	sha1_hex(entry, text.data, text.len);
	buf_free(&text);
	sshconf_name(sb, way);
	return xasprintf("%s/%s-%.16s.fail", runtime_dir, way, entry);
}

/* The time that all processes share. */
static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t
backoff_next(int64_t last_ms, enum err_code code)
{
	int64_t wait = MIN_MS;

	if (last_ms > 0)
		wait = last_ms < MAX_MS ? last_ms * 2 : MAX_MS;
	if (code == ERR_DENIED && wait < DENIED_MS)
		wait = DENIED_MS;
	return wait < MAX_MS ? wait : MAX_MS;
}

/* What the file says, or NULL. */
static json_t *
read_file(const char *path)
{
	struct buf text;
	struct err err;
	json_t *o = NULL;

	buf_init(&text, FILE_MAX);
	if (fs_read(path, &text, &err) == 0)
		o = decode_json(text.data, text.len, &err);
	buf_free(&text);
	return o;
}

/* The code of a file that anything may have happened to. */
static enum err_code
known_code(int64_t code)
{
	return code > ERR_NONE && code <= ERR_CANCELLED ? (enum err_code)code
	                                                : ERR_IO;
}

void
backoff_cause(struct err *err)
{
	char *from = strstr(err->msg, NOT_NOW), *to = NULL;

	if (from != NULL)
		to = strstr(from, DOCTOR);
	if (to == NULL)
		return;
	to += strlen(DOCTOR);
	memmove(from, to, strlen(to) + 1);
}

int
backoff_check(const char *path, struct err *err)
{
	json_t *o = read_file(path);
	int64_t next = json_integer_value(json_object_get(o, "next"));
	int64_t code = json_integer_value(json_object_get(o, "code"));
	int64_t most = json_integer_value(json_object_get(o, "wait"));
	int64_t wait = next > 0 ? next - now_ms() : 0;
	const char *msg = decode_text(json_object_get(o, "message"));
	int rc = 0;

	/* Longer than it can be: a clock was changed. */
	if (wait > 0 && wait <= most && most <= MAX_MS && msg != NULL)
		rc = err_set(err, known_code(code), NOT_NOW "%d " DOCTOR "%s",
		    (int)((wait + 999) / 1000), msg);
	json_decref(o);
	return rc;
}

void
backoff_note(const char *path, const struct err *failure)
{
	json_t *o = read_file(path);
	int64_t next = json_integer_value(json_object_get(o, "next"));
	int64_t last = json_integer_value(json_object_get(o, "wait"));
	int64_t now = now_ms(), wait;
	struct err err;
	char *text;

	wait = backoff_next(next < now - FORGET_MS ? 0 : last, failure->code);
	json_decref(o);
	o = json_object();
	json_object_set_new(o, "next", json_integer(now + wait));
	json_object_set_new(o, "wait", json_integer(wait));
	json_object_set_new(o, "code", json_integer(failure->code));
	json_object_set_new(o, "message",
	    utf8_json(failure->msg, strlen(failure->msg)));
	text = json_dumps(o, JSON_COMPACT);
	if (text != NULL)
		fs_replace(path, text, strlen(text), 0600, &err);
	free(text);
	json_decref(o);
}

void
backoff_clear(const char *path)
{
	unlink(path);
}
