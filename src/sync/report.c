/*
 * What a sync did, or would do, as its caller is told.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "sync/inside.h"

#define PLAN_SHOWN 100

static const char *
action_name(enum action_kind kind)
{
	static const char *const names[] = {
		[ACTION_OPEN] = "unlock",
		[ACTION_DELETE] = "delete",
		[ACTION_RMDIR] = "delete",
		[ACTION_MKDIR] = "make_dir",
		[ACTION_FILE] = "copy",
		[ACTION_LINK] = "link",
		[ACTION_META] = "set_mode_and_time",
	};

	return names[kind];
}

void
report_plan(struct run *r)
{
	const struct plan *p = &r->plan;
	size_t i;

	r->report->plan = json_array();
	for (i = 0; i < p->count && i < PLAN_SHOWN; i++) {
		const struct action *a = &p->actions[i];
		json_t *o = json_object();

		json_object_set_new(o, "action",
		    json_string(action_name(a->kind)));
		json_object_set_new(o, "path",
		    utf8_json(a->entry->path, strlen(a->entry->path)));
		if (a->kind == ACTION_FILE)
			json_object_set_new(o, "size",
			    json_integer(a->entry->size));
		json_array_append_new(r->report->plan, o);
	}
	r->report->dirs = (int64_t)p->new_dirs;
	r->report->files = (int64_t)(p->files + p->links);
	r->report->links = (int64_t)p->links;
	r->report->deleted_files = (int64_t)p->deleted_files;
	r->report->deleted_dirs = (int64_t)p->deleted_dirs;
	r->report->bytes = p->bytes;
}

void
sync_report_free(struct sync_report *r)
{
	free(r->local_path);
	free(r->remote_path);
	json_decref(r->problems);
	json_decref(r->outside);
	json_decref(r->plan);
	memset(r, 0, sizeof(*r));
}

static void
set_int(json_t *o, const char *name, int64_t n)
{
	json_object_set_new(o, name, json_integer((json_int_t)n));
}

json_t *
sync_report_json(const struct sync_report *r, const struct sync_request *req)
{
	bool up = req->direction == SYNC_UP;
	json_t *o = json_object();

	json_object_set_new(o, "mode",
	    json_string(req->dry_run ? "dry_run" : "inline"));
	json_object_set_new(o, "local_path",
	    utf8_json(r->local_path, strlen(r->local_path)));
	json_object_set_new(o, "remote_path",
	    r->remote_path != NULL
	        ? utf8_json(r->remote_path, strlen(r->remote_path))
	        : json_null());
	json_object_set_new(o, "synced_type",
	    json_string(r->is_file ? "file" : "directory"));
	set_int(o, up ? "uploaded_dirs" : "created_dirs", r->dirs);
	set_int(o, up ? "uploaded_files" : "downloaded_files", r->files);
	set_int(o, "skipped_files", r->skipped);
	if (up || req->delete_extras) {
		set_int(o, "deleted_dirs", r->deleted_dirs);
		set_int(o, "deleted_files", r->deleted_files);
	}
	if (up)
		json_object_set_new(o, "delete_extras",
		    json_boolean(req->delete_extras));
	set_int(o, "bytes", r->bytes);
	json_object_set_new(o, "duration_s",
	    json_real((double)r->duration_ms / 1000));
	if (r->links > 0)
		set_int(o, "links", r->links);
	if (json_array_size(r->outside) > 0)
		json_object_set(o, "outside_links", r->outside);
	if (r->problem_count > 0) {
		json_object_set(o, "problems", r->problems);
		set_int(o, "problem_count", r->problem_count);
	}
	if (r->plan != NULL)
		json_object_set(o, "plan", r->plan);
	return o;
}
