/*
 * The survey of a host.
 *
 * The script's line is sent like those of other channels (script_boot).  It
 * says a random word on both streams first: what came before is of the login
 * shell and its rc files.  Then each fact is a line, "name value".
 */
#include "ssh/survey.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/decode.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/random.h"
#include "base/str.h"
#include "base/utf8.h"
#include "ssh/channel.h"
#include "ssh/clean.h"
#include "ssh/probe.h"
#include "ssh/script.h"

#define OUTPUT_MAX ((size_t)256 << 10)
#define NOISE_MAX 4096
#define SESSIONS_MAX 64
#define ROOM_STEP_MS 50 /* between looks whether a session has ended */
#define ROOM_MS 3000
#define CLOSED_MS 1000 /* until one that has ended counts no more */

/* Behind the word; the directory comes between the two.  nvidia-smi is last,
 * since it hangs where its driver is broken. */
static const char script_top[] =
    "echo \"time `date +%s`\"; echo \"shell $SHELL\"; "
    "for t in bash tmux tar find timeout nvidia-smi rsync sbatch; do "
    "command -v $t >/dev/null 2>&1 || continue; v=; "
    "case $t in bash|tar|rsync) v=`$t --version 2>/dev/null </dev/null`;; "
    "tmux) v=`tmux -V 2>/dev/null`;; "
    "sbatch) v=`sbatch --version 2>/dev/null </dev/null`;; esac; "
    "printf \"tool %s %s\\n\" \"$t\" \"`echo \"$v\" | head -n 1`\"; done; ";
static const char script_end[] =
    "[ -w . ] || echo \"dir readonly\"; "
    "echo \"disk `df -Pk . 2>/dev/null | tail -n 1`\"; "
    "command -v nvidia-smi >/dev/null 2>&1 && "
    "{ g=`nvidia-smi -L 2>&1 </dev/null`; echo \"gpu $? `echo $g`\"; }; "
    "echo end\n";

static void
make_script(struct buf *out, const char *token, const char *workdir)
{
	buf_addf(out, "echo %s; echo %s >&2; ", token, token);
	buf_adds(out, script_top);
	if (!str_blank(workdir)) {
		buf_adds(out, "if cd -- ");
		quote_path(out, workdir);
		buf_adds(out, " 2>/dev/null; then echo \"dir ok\"; ");
		buf_adds(out, "else echo \"dir missing\"; fi; ");
	} else {
		buf_adds(out, "echo \"dir ok\"; ");
	}
	buf_adds(out, script_end);
}

/* --- reading --------------------------------------------------------------
 */

static json_t *
text_or_null(const char *s)
{
	return s[0] != '\0' ? utf8_json(s, strlen(s)) : json_null();
}

/* "0 GPU 0: ...": the status and the words. */
static void
read_gpu(json_t *facts, const char *value)
{
	const char *words = value + strcspn(value, " ");

	json_object_set_new(facts, "gpu_ok",
	    json_boolean(str_starts(value, "0 ") || strcmp(value, "0") == 0));
	words += *words == ' ';
	json_object_set_new(facts, "gpu", utf8_json(words, strlen(words)));
}

static void
read_tool(json_t *facts, const char *value)
{
	char *name = xstrndup(value, strcspn(value, " "));
	const char *version = value + strlen(name);
	json_t *key = utf8_json(name, strlen(name));

	version += *version == ' ';
	json_object_set_new(json_object_get(facts, "tools"),
	    json_string_value(key), utf8_json(version, strlen(version)));
	json_decref(key);
	free(name);
}

static void
read_fact(json_t *facts, const char *line)
{
	const char *dir;
	int64_t time;

	if (str_starts(line, "tool ")) {
		read_tool(facts, line + 5);
		if (strcmp(line + 5, "nvidia-smi ") == 0)
			json_object_set_new(facts, "gpu", json_string(""));
	} else if (str_starts(line, "time ")) {
		if (str_to_int(line + 5, 1, INT64_C(1) << 40, &time) == 0)
			json_object_set_new(facts, "time", json_integer(time));
	} else if (str_starts(line, "shell ")) {
		json_object_set_new(facts, "shell", text_or_null(line + 6));
	} else if (str_starts(line, "dir ")) {
		/* The first says whether it is there. */
		dir = decode_text(json_object_get(facts, "dir"));
		if (dir == NULL || strcmp(dir, "ok") == 0)
			json_object_set_new(facts, "dir",
			    text_or_null(line + 4));
	} else if (str_starts(line, "disk ")) {
		json_object_set_new(facts, "disk", probe_disk(line + 5));
	} else if (str_starts(line, "gpu ")) {
		read_gpu(facts, line + 4);
	}
}

json_t *
survey_parse(const char *text)
{
	static const char *const names[] = { "shell", "time", "dir", "disk",
		"gpu", "gpu_ok", NULL };
	json_t *facts = json_object();
	char *copy = xstrdup(text), *at = copy, *line;
	size_t i;

	for (i = 0; names[i] != NULL; i++)
		json_object_set_new(facts, names[i], json_null());
	json_object_set_new(facts, "tools", json_object());
	while ((line = strsep(&at, "\n")) != NULL)
		read_fact(facts, line);
	free(copy);
	return facts;
}

/* --- asking ---------------------------------------------------------------
 */

/* Sessions that were closed a moment ago may still count. */
static int
open_patiently(struct channel *ch, const char *socket, const char *command,
    const struct until *room, const struct until *until, struct err *err)
{
	struct until step;
	struct err why;
	int rc;

	for (;;) {
		rc = channel_open(ch, socket, command, until, err);
		if (rc == 0 || err->code != ERR_LIMIT ||
		    until_check(room, &why) == -1)
			return rc;
		channel_close(ch);
		step = until_within(room, ROOM_STEP_MS);
		until_poll(&step, NULL, 0, &why);
	}
}

/* What is there to be read; false at the end of the stream. */
static bool
read_some(int fd, struct buf *out)
{
	char piece[4096];
	ssize_t n = read(fd, piece, sizeof(piece));

	if (n > 0)
		buf_add(out, piece, (size_t)n);
	return n > 0 || (n == -1 && (errno == EAGAIN || errno == EINTR));
}

/* Where the line with the word begins; NULL if it has not come. */
static const char *
find_word(const struct buf *b, const char *token)
{
	size_t n = strlen(token);
	const char *at = memmem(b->data, b->len, token, n);

	return at != NULL && at[n] == '\n' ? at : NULL;
}

static bool
ended(const struct buf *out)
{
	static const char end[] = "\nend\n";
	size_t n = strlen(end);

	return out->len >= n && memcmp(out->data + out->len - n, end, n) == 0;
}

/* Read both streams up to the end, noting when the word came. */
static int
hear(struct survey *s, struct channel *ch, const char *token, int64_t began,
    struct buf streams[2], const struct until *until, struct err *err)
{
	struct pollfd fds[2] = { { ch->out, POLLIN, 0 },
		{ ch->err, POLLIN, 0 } };
	int i;

	while (!ended(&streams[0]) ||
	    (fds[1].fd != -1 && find_word(&streams[1], token) == NULL)) {
		if (until_poll(until, fds, 2, err) == -1)
			return -1;
		for (i = 0; i < 2; i++) {
			if (fds[i].revents != 0 &&
			    !read_some(fds[i].fd, &streams[i])) {
				if (i == 0)
					return 0;
				fds[i].fd = -1;
			}
		}
		if (!s->shell && find_word(&streams[0], token) != NULL) {
			s->shell = true;
			s->ready_ms = clock_ms() - began;
			s->ahead_ms = -(int64_t)time(NULL) * 1000;
		}
	}
	return 0;
}

/* What both streams said before the word, or all of it if it never came. */
static void
take_noise(struct survey *s, const struct buf streams[2], const char *token)
{
	const char *word;
	int i;

	for (i = 0; i < 2; i++) {
		word = find_word(&streams[i], token);
		clean_text(&s->noise, streams[i].data,
		    word != NULL ? (size_t)(word - streams[i].data)
		                 : streams[i].len);
	}
}

int
survey_run(struct survey *s, const char *socket, const char *workdir,
    const struct until *until, struct err *err)
{
	struct until room = until_within(until, ROOM_MS);
	char token[RANDOM_HEX(8)];
	struct buf streams[2], script;
	struct channel ch;
	struct err why;
	const char *word;
	int64_t began = clock_ms();
	json_t *time_there;
	int rc;

	memset(s, 0, sizeof(*s));
	buf_init(&s->noise, NOISE_MAX);
	buf_init(&streams[0], OUTPUT_MAX);
	buf_init(&streams[1], OUTPUT_MAX);
	buf_init(&script, 16384);
	random_hex(token, 8);
	make_script(&script, token, workdir);
	rc = open_patiently(&ch, socket, script_boot, &room, until, err);
	if (rc == 0) {
		/* One that is gone already has said why. */
		(void)fs_write_all(ch.in, script.data, script.len);
		/* What came until patience ended is worth telling. */
		if (hear(s, &ch, token, began, streams, until, &why) == -1 &&
		    why.code == ERR_CANCELLED) {
			*err = why;
			rc = -1;
		}
	}
	channel_close(&ch);
	take_noise(s, streams, token);
	word = find_word(&streams[0], token);
	s->facts = survey_parse(word != NULL ? word : "");
	time_there = json_object_get(s->facts, "time");
	s->clock = json_is_integer(time_there);
	s->ahead_ms += json_integer_value(time_there) * 1000;
	buf_free(&streams[0]);
	buf_free(&streams[1]);
	buf_free(&script);
	return rc;
}

void
survey_free(struct survey *s)
{
	buf_free(&s->noise);
	json_decref(s->facts);
	memset(s, 0, sizeof(*s));
}

int
survey_sessions(const char *socket, int most, const struct until *until,
    struct err *err)
{
	struct until room = until_within(until, CLOSED_MS);
	struct channel open[SESSIONS_MAX];
	int count = 0, rc = 0, i;

	if (most > SESSIONS_MAX)
		most = SESSIONS_MAX;
	while (count < most) {
		/* Waits until its input ends, in any shell. */
		rc = open_patiently(&open[count], socket, "exec cat", &room,
		    until, err);
		if (rc == -1)
			break;
		count++;
	}
	for (i = 0; i < count + (rc == -1); i++)
		channel_close(&open[i]);
	return rc == -1 && err->code != ERR_LIMIT ? -1 : count;
}
