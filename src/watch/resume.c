#include "watch/resume.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/job.h"
#include "watch/look.h"

static void
judge(int rc, const struct job_handle *h, struct observation *o,
    struct err *err)
{
	if (rc == -1) {
		o->seen =
		    h->refused ? SEEN_RESUME_REFUSED : SEEN_RESUME_UNKNOWN;
	} else if (h->how != JOB_EXISTS) {
		o->seen = SEEN_RESUMED;
	} else if (h->orphans > 0) {
		o->seen = SEEN_RESUME_REFUSED;
		err_set(err, ERR_IO, "%" PRId64 " %s of the job '%s' still %s",
		    h->orphans, str_plural(h->orphans, "process", "processes"),
		    h->name, str_plural(h->orphans, "runs", "run"));
	} else {
		o->seen = SEEN_RESUME_TAKEN;
	}
}

void
watch_resume(struct link *link, const struct watch *w, struct observation *o,
    struct err *err, const struct until *until)
{
	json_t *plan =
	    decode_json(w->resume_plan_json, strlen(w->resume_plan_json), err);
	const char *cwd = decode_text(json_object_get(plan, "cwd"));
	char *command = watch_resume_command(w);
	char *key = xasprintf("watch-%s-%" PRId64, w->token, w->resume_pending);
	char *attempt = xasprintf("%" PRId64, w->resume_pending);
	json_t *env = json_pack("{s:s}", "RSMCP_RESUME_ATTEMPT", attempt);
	char name[JOB_NAME_MAX + 1], last[JOB_NAME_MAX + 1];
	char id[JOB_ID_MAX + 1];
	struct job_handle h;
	int rc;

	memset(o, 0, sizeof(*o));
	memset(err, 0, sizeof(*err));
	o->error = err->msg;
	o->reason = o->boot_id = o->checkpoint_error = o->slurm_state = "";
	look_resume_name(w, name);
	look_job(w, last, id);
	rc = job_start(link,
	    &(struct job_start){
	        .name = name,
	        .after = strcmp(last, name) == 0 && id[0] != '-' ? id : NULL,
	        .command = command,
	        .cwd = str_blank(cwd) ? w->cwd : cwd,
	        .log_file = w->log_file,
	        .key = key,
	        .env = env,
	        .heir_of = last,
	        .slurm = link_sandbox(link)->slurm ? " " : NULL,
	    },
	    &h, until, err);
	judge(rc, &h, o, err);
	look_job_run(o->job_run, h.name, h.id);
	if (rc == 0)
		job_handle_free(&h);
	json_decref(env);
	json_decref(plan);
	free(attempt);
	free(key);
	free(command);
}
