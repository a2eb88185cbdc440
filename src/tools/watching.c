/* Watches, for the tools. */
#include "tools/watching.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/allow.h"
#include "config/keep.h"
#include "ssh/agent.h"
#include "tools/app.h"
#include "tools/fit.h"
#include "tools/jobs.h"
#include "watch/event.h"
#include "watch/service.h"
#include "watch/step.h"
#include "watch/webhook.h"

/* --- making a record ------------------------------------------------------
 */

char *
watching_path(const char *cwd, const char *path)
{
	char *dir, *full;

	if (str_blank(path))
		return xstrdup("");
	if (path[0] == '/' || path_is_home(path))
		return xstrdup(path);
	dir = str_blank(cwd) ? xstrdup("~") : watching_path("", cwd);
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	full = path_join(dir, path);
	free(dir);
	return full;
}

static const char *
plan_text(const json_t *plan, const char *name)
{
	const char *text = decode_text(json_object_get(plan, name));

	return text != NULL ? text : "";
}

/* One that was given beats the plan's; both are the same afterwards. */
static void
merge(json_t *plan, const char *name, const char *given, char **field)
{
	watch_set(field, str_blank(given) ? plan_text(plan, name) : given);
	if (!str_blank(*field))
		json_object_set_new(plan, name,
		    utf8_json(*field, strlen(*field)));
}

static void
add_missing(json_t *plan, const char *name, const char *value)
{
	if (str_blank(plan_text(plan, name)) && !str_blank(value))
		json_object_set_new(plan, name,
		    utf8_json(value, strlen(value)));
}

static void
resolve(json_t *plan, const char *name, const char *cwd)
{
	char *path = watching_path(cwd, plan_text(plan, name));

	if (path[0] != '\0')
		json_object_set_new(plan, name, utf8_json(path, strlen(path)));
	free(path);
}

static void
make_plan(struct watch *w, const struct watch_wish *wish,
    const struct sandbox *sb)
{
	json_t *plan = wish->args->resume_plan_json != NULL
	    ? json_deep_copy(wish->args->resume_plan_json)
	    : json_object();
	bool empty = json_object_size(plan) == 0;
	char *text;

	resolve(plan, "cwd", sb->workdir);
	resolve(plan, "log_file", w->cwd);
	resolve(plan, "checkpoint_path", w->cwd);
	text = watching_path(w->cwd, wish->args->checkpoint_path);
	merge(plan, "checkpoint_path", text, &w->checkpoint_path);
	free(text);
	merge(plan, "resume_command", wish->args->resume_command,
	    &w->resume_command);
	merge(plan, "checkpoint_command", wish->args->checkpoint_command,
	    &w->checkpoint_command);
	merge(plan, "checkpoint_format", wish->args->checkpoint_format,
	    &w->checkpoint_format);
	if (str_blank(w->checkpoint_format))
		watch_set(&w->checkpoint_format, "text");
	empty = empty && json_object_size(plan) == 0;
	add_missing(plan, "checkpoint_format", w->checkpoint_format);
	add_missing(plan, "launch_command", w->launch_command);
	add_missing(plan, "cwd", w->cwd);
	add_missing(plan, "tmux_session", w->tmux_session);
	text = json_dumps(plan, JSON_COMPACT);
	watch_set(&w->resume_plan_json, empty || text == NULL ? "{}" : text);
	free(text);
	json_decref(plan);
}

static void
set_texts(struct watch *w, const struct watch_wish *wish,
    const struct sandbox *sb)
{
	char *text = str_blank(wish->cwd)
	    ? watching_path("", sb->workdir)
	    : watching_path(sb->workdir, wish->cwd);

	watch_set(&w->cwd, text);
	free(text);
	watch_set(&w->sandbox_name, sb->name);
	watch_set(&w->tmux_session, wish->tmux_session);
	text = watching_path(w->cwd, wish->log_file);
	watch_set(&w->log_file, text);
	free(text);
	watch_set(&w->launch_command,
	    wish->launch_command != NULL ? wish->launch_command : "");
	watch_set(&w->run_id,
	    str_blank(wish->args->run_id) ? wish->tmux_session
	                                  : wish->args->run_id);
	watch_set(&w->name, wish->name);
	watch_set(&w->webhook_url, wish->args->webhook_url);
}

static void
set_metadata(struct watch *w, const json_t *metadata)
{
	char *text =
	    metadata != NULL ? json_dumps(metadata, JSON_COMPACT) : NULL;

	watch_set(&w->metadata_json, text != NULL ? text : "{}");
	free(text);
}

static int
check_paths(const struct watch *w, const struct watch_wish *wish,
    struct err *err)
{
	if (job_check_path("cwd", w->cwd, err) == -1 ||
	    job_check_path("log_file", w->log_file, err) == -1)
		return -1;
	return job_check_path("cwd in resume_plan_json",
	    plan_text(wish->args->resume_plan_json, "cwd"), err);
}

static int
check_resume(const struct watch *w, struct err *err)
{
	if (!w->auto_resume)
		return 0;
	if (str_blank(w->resume_command))
		return err_set(err, ERR_INVALID,
		    "auto_resume needs a resume_command, as an argument or in "
		    "resume_plan_json; nothing was started");
	if (str_blank(w->checkpoint_path) && str_blank(w->checkpoint_command))
		return err_set(err, ERR_INVALID,
		    "auto_resume needs a checkpoint_path or a "
		    "checkpoint_command, as an argument or in "
		    "resume_plan_json; nothing was started");
	return 0;
}

int
watching_make(struct watch *w, const struct watch_wish *wish,
    const struct sandbox *sb, struct err *err)
{
	watch_init(w);
	set_texts(w, wish, sb);
	make_plan(w, wish, sb);
	set_metadata(w, wish->args->metadata_json);
	w->interval_s = wish->args->interval_s;
	w->max_log_lines = wish->args->max_log_lines;
	w->auto_resume = wish->args->auto_resume;
	w->max_resume_attempts = wish->args->max_resume_attempts;
	w->alert_after_failures = wish->args->alert_after_failures;
	w->resume_delay_s = wish->args->resume_delay_s;
	w->notify_local = wish->args->notify_local;
	if (!str_blank(wish->args->event_command)) {
		watch_set(&w->event_command, wish->args->event_command);
	} else if (wish->codex_wakeup) {
		free(w->event_command);
		w->event_command =
		    event_codex_command(wish->codex_command, w->auto_resume);
	}
	return check_paths(w, wish, err) == -1 ? -1 : check_resume(w, err);
}

/* --- storing it -----------------------------------------------------------
 */

static void
add_note(json_t *notes, const char *sentence)
{
	json_array_append_new(notes, utf8_json(sentence, strlen(sentence)));
}

/* Local commands run only where the person at this machine wants them. */
static void
check_command(struct watch *w, json_t *notes)
{
	struct allow allow;
	struct err err;

	if (str_blank(w->event_command))
		return;
	allow_load(&allow, false);
	if (allow_check_command(&allow, "event_command or codex_wakeup",
	        &err) == -1) {
		add_note(notes, err.msg);
		watch_set(&w->event_command, "");
	} else if (allow_remember(&err) == -1) {
		add_note(notes, err.msg);
	}
	allow_free(&allow);
}

int
watching_check_webhook(const char *url, struct err *err)
{
	struct allow allow;
	int rc;

	if (str_blank(url))
		return 0;
	allow_load(&allow, false);
	rc = webhook_check(url, &allow, err);
	allow_free(&allow);
	return rc == 0 ? allow_remember(err) : -1;
}

int
watching_store(struct watch *w, const struct sandbox *sb, int64_t delay_s,
    json_t *notes, json_t **kept_out, const struct until *until,
    struct err *err)
{
	struct kept kept;

	if (watching_check_webhook(w->webhook_url, err) == -1)
		return -1;
	check_command(w, notes);
	if (agent_remember(err) == -1)
		return -1;
	if (keep_put(sb, &kept, until, err) == -1) {
		kept_free(&kept);
		return -1;
	}
	watch_set(&w->sandbox_key, kept.key);
	if (kept.warning != NULL)
		add_note(notes, kept.warning);
	if (kept_out != NULL)
		*kept_out = kept_json(&kept);
	kept_free(&kept);
	w->next_check_ts = (int64_t)time(NULL) + delay_s;
	return watches_add(w, until, err);
}

int
watching_leave(const char *key_file, const struct until *until, struct err *err)
{
	char key[KEEP_KEY_SIZE];
	struct watch *list;
	size_t i, count;
	int rc = 0;

	/* There is a record before there is a watch. */
	if (!keep_find(key_file, key))
		return 0;
	if (watches_list(WATCH_ACTIVE, &list, &count, until, err) == -1)
		return -1;
	for (i = 0; i < count && rc == 0; i++) {
		if (strcmp(list[i].sandbox_key, key) == 0)
			rc = watches_leave(list[i].id, STATE_INTERRUPTED,
			    "Its sandbox is gone, and the job with it.", until,
			    err);
	}
	watches_free(list, count);
	return rc == 0 ? keep_drop(key, until, err) : -1;
}

void
watching_ensure(json_t *notes, const struct until *until)
{
	const char *warning, *hint;
	json_t *done;
	struct err err;

	if (service_ensure(&done, until, &err) == -1) {
		add_note(notes, err.msg);
		return;
	}
	warning = json_string_value(json_object_get(done, "warning"));
	hint = json_string_value(json_object_get(done, "hint"));
	if (warning != NULL)
		add_note(notes, warning);
	if (hint != NULL)
		add_note(notes, hint);
	json_decref(done);
}

void
watching_set_note(json_t *result, const json_t *notes)
{
	const json_t *v;
	struct buf b;
	size_t i;

	if (json_array_size(notes) == 0)
		return;
	buf_init(&b, SIZE_MAX);
	for (i = 0; i < json_array_size(notes); i++) {
		v = json_array_get(notes, i);
		buf_addf(&b, "%s%s", i > 0 ? " " : "", json_string_value(v));
	}
	json_object_set_new(result, "watch_note", utf8_json(b.data, b.len));
	buf_free(&b);
}

/* --- reading --------------------------------------------------------------
 */

int
watching_get(struct call *call, int64_t id, struct watch *w, struct err *err)
{
	return watches_get(id, w, &call->until, err);
}

/* Where a sandbox is; how to log in there may have been changed since. */
static bool
is_same_place(const struct sandbox *a, const struct sandbox *b)
{
	return strcmp(a->host, b->host) == 0 && a->port == b->port;
}

static int
check_sandbox(struct call *call, const struct watch *w,
    const struct sandbox *sb, struct err *err)
{
	char key[KEEP_KEY_SIZE], kept_key[KEEP_KEY_SIZE];
	struct sandbox kept;
	struct err ignored;
	int rc = 0;

	keep_key(sb, key);
	if (str_blank(w->sandbox_key) || strcmp(w->sandbox_key, key) == 0)
		return 0;
	if (keep_get(w->sandbox_key, w->sandbox_name, &kept, &call->until,
	        &ignored) == 0)
		keep_key(&kept, kept_key);
	else
		kept_key[0] = '\0';
	/* Another of that name tells nothing. */
	if (strcmp(kept_key, w->sandbox_key) == 0 && !is_same_place(&kept, sb))
		rc = err_set(err, ERR_INVALID,
		    "watch %lld is for a job on %.200s, which another server "
		    "calls '%.100s'; here that is %.200s. If both are one "
		    "machine, call check_background_task with tmux_session "
		    "'%.100s' instead",
		    (long long)w->id, kept.host, w->sandbox_name, sb->host,
		    w->tmux_session);
	sandbox_free(&kept);
	return rc;
}

const struct sandbox *
watching_sandbox(struct call *call, const struct watch *w, struct err *err)
{
	const struct sandbox *sb = app_sandbox(call->app, w->sandbox_name, err);

	if (sb == NULL) {
		err_wrap(err,
		    "watch %lld is for a job on the sandbox '%.100s', which "
		    "may have another name now",
		    (long long)w->id, w->sandbox_name);
		return NULL;
	}
	return check_sandbox(call, w, sb, err) == 0 ? sb : NULL;
}

struct link *
watching_link(struct call *call, const struct watch *w, struct err *err)
{
	const struct sandbox *sb = watching_sandbox(call, w, err);

	return sb != NULL ? links_get(call->app->links, sb) : NULL;
}

int
watching_look(struct call *call, const struct watch *w, int64_t lines,
    size_t checkpoint_max, struct look *l, struct err *err)
{
	struct look_query q = { .log_lines = lines,
		.log_max = LOOK_LOG_MAX,
		.checkpoint_max = checkpoint_max };
	struct link *link = watching_link(call, w, err);

	memset(l, 0, sizeof(*l));
	if (link == NULL)
		return -1;
	watch_look(l, link, w, &q, &call->until);
	if (l->reached)
		return 0;
	*err = l->err;
	look_free(l);
	return -1;
}

json_t *
watching_task(const struct look *l, const struct watch *w)
{
	json_t *o = json_object();

	json_object_set_new(o, "tmux_session", json_string(l->name));
	jobs_set_status(o, &l->job);
	json_object_set_new(o, "log_tail",
	    l->job.log_size >= 0 ? utf8_json(l->log.data, l->log.len)
	                         : json_string("[log file not found]"));
	json_object_set_new(o, "watch_id", json_integer(w->id));
	return o;
}

json_t *
watching_checkpoint(const struct watch *w, const char *text)
{
	json_t *o, *parsed;
	struct err err;

	if (text == NULL || text[0] == '\0')
		return json_null();
	o = json_object();
	json_object_set_new(o, "raw", utf8_json(text, strlen(text)));
	json_object_set_new(o, "format",
	    utf8_json(w->checkpoint_format, strlen(w->checkpoint_format)));
	if (!str_same(w->checkpoint_format, "json"))
		return o;
	parsed = decode_json(text, strlen(text), &err);
	if (parsed != NULL)
		json_object_set_new(o, "parsed", parsed);
	return o;
}

void
watching_fit(json_t *result, const char *part, size_t max)
{
	if (fit_texts(json_object_get(result, part), max) > 0)
		json_object_set_new(result, "texts_cut", json_true());
}

json_t *
watching_status(const struct until *until, struct err *err)
{
	return service_status(until, err);
}
