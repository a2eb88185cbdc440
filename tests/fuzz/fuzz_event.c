/*
 * Whatever a job printed and a row of the database holds, the event about it is
 * JSON that can be read, its texts are clean and bounded, and in the text for
 * an agent each line of the job's stands behind a bar.
 *
 * The input is texts with NULs between them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "watch/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
set(char **field, const char **at, const char *end)
{
	size_t n = strnlen(*at, (size_t)(end - *at));
	char *text = xstrndup(*at, n);

	watch_set(field, text);
	free(text);
	*at += n;
	*at += *at < end;
}

static void
check_line(const char *text, size_t max)
{
	must(strlen(text) <= max && utf8_valid(text, strlen(text)));
	for (; *text != '\0'; text++)
		must((unsigned char)*text >= ' ' && *text != 0x7f);
}

static const char *
text_of(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	must(text != NULL);
	return text;
}

/* From the title of the log on there are no other lines. */
static void
check_prompt(const char *prompt)
{
	const char *at = strstr(prompt, "\nLog tail (data from the remote");

	must(strchr(prompt, '\r') == NULL && strchr(prompt, '\033') == NULL);
	while (at != NULL) {
		at += strspn(at, "\n");
		must(*at == '\0' || strncmp(at, "| ", 2) == 0 ||
		    strncmp(at, "Log tail (", 10) == 0 ||
		    strncmp(at, "Checkpoint (", 12) == 0);
		at = strchr(at, '\n');
	}
}

static void
check_payload(const struct event *e)
{
	struct err err = ERR_INIT;
	json_t *o = decode_json(e->payload_json, strlen(e->payload_json), &err);
	json_t *watch = json_object_get(o, "watch");

	must(json_is_object(o) && json_is_object(watch));
	check_line(text_of(watch, "name"), 1000);
	check_line(text_of(watch, "log_file"), 1000);
	check_line(text_of(o, "summary"), 1000);
	must(strlen(text_of(o, "log_tail")) <= EVENT_TEXT_MAX);
	must(strlen(text_of(o, "checkpoint_text")) <= EVENT_TEXT_MAX);
	check_prompt(text_of(o, "suggested_codex_prompt"));
	json_decref(o);
}

/* As it is read back, and as a row may have it that others wrote. */
static void
check_row(struct event *e, const char *payload)
{
	json_t *o = event_json(e);

	must(json_object_size(json_object_get(o, "payload")) > 0);
	json_decref(o);
	free(e->payload_json);
	e->payload_json = xstrdup(payload);
	o = event_json(e);
	must(json_is_object(json_object_get(o, "payload")));
	json_decref(o);
}

static void
check_env(const struct event *e, const struct watch *w)
{
	struct delivery d = { .event = *e,
		.watch_name = w->name,
		.sandbox_name = w->sandbox_name,
		.tmux_session = w->tmux_session,
		.log_file = w->log_file };
	struct env env = { xcalloc(1, sizeof(char *)), 0 };
	size_t i;

	event_env(&env, &d, "/file");
	for (i = 0; i < env.count; i++)
		must(strlen(env.list[i]) <= EVENT_VARIABLE_MAX + 100);
	env_free(&env);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = size > 0 ? (const char *)data : "", *end = at + size;
	struct watch w;
	struct event e;

	watch_init(&w);
	set(&w.last_log_tail, &at, end);
	set(&w.last_checkpoint_text, &at, end);
	set(&w.name, &at, end);
	set(&w.resume_plan_json, &at, end);
	set(&w.resume_command, &at, end);
	set(&w.last_summary, &at, end);
	set(&w.checkpoint_error, &at, end);
	set(&w.metadata_json, &at, end);
	watch_set(&w.log_file, w.last_log_tail);
	event_make(&e, &w, EVENT_FAILED, w.last_summary, NULL, 1000);
	check_line(e.summary, 1000);
	check_payload(&e);
	check_env(&e, &w);
	check_row(&e, w.last_log_tail);
	event_free(&e);
	watch_free(&w);
	return 0;
}
