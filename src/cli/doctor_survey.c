/* The doctor's look at what is on a sandbox. */
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "cli/advice.h"
#include "cli/doctor_inside.h"
#include "cli/report.h"
#include "ssh/sftp.h"
#include "ssh/survey.h"

#define SESSIONS_TRIED 10 /* what servers allow by default */
#define SESSIONS_FEW 4
#define SURVEY_MS 60000
#define SLOW_SHELL_MS 1000
#define SKEW_MS 5000
#define DISK_FEW_MB 1024
#define DISK_NONE_MB 16

static const char sessions_todo[] =
    "raise MaxSessions in /etc/ssh/sshd_config there (10 is its default), "
    "reload sshd, and run: remote-sandbox-mcp disconnect";

static void
check_sessions(struct visit *v)
{
	struct err err;
	int n = survey_sessions(v->master.path, SESSIONS_TRIED, v->until, &err);
	bool few = n < SESSIONS_FEW;

	if (n == -1)
		visit_failed(v, "sessions", "try again", err.msg);
	else
		report_add(v->list, "sessions",
		    few ? REPORT_WARNING : REPORT_OK,
		    few ? sessions_todo : NULL,
		    "%d %sat once on a connection (MaxSessions)%s", n,
		    n < SESSIONS_TRIED ? "" : "or more ",
		    few ? ": commands wait for one another" : "");
}

/* No shell came up: is there SFTP at least? */
static int
explain_no_shell(struct visit *v, const struct survey *s)
{
	struct err err;
	struct sftp *sftp = sftp_open(v->master.path, v->until, &err);
	char *line;

	if (sftp != NULL) {
		sftp_free(sftp);
		report_add(v->list, "shell", REPORT_WARNING,
		    "nothing, if it is meant to be so; else look at "
		    "ForceCommand in sshd_config there and at the account's "
		    "login shell",
		    "the host allows file transfer (SFTP) only: commands do "
		    "not run there, files can be listed, read and synced");
		return -1;
	}
	line = visit_line(v, "see what this says: ssh", " true");
	report_add(v->list, "shell", REPORT_FAILED, line,
	    "no shell came up%s%s", s->noise.len > 0 ? "; it said: " : "",
	    s->noise.data);
	free(line);
	return -1;
}

static int
check_shell(struct visit *v, const struct survey *s)
{
	const char *shell = decode_text(json_object_get(s->facts, "shell"));
	int64_t cost = s->ready_ms - 2 * v->rtt_ms;

	if (!s->shell)
		return explain_no_shell(v, s);
	cost = cost > 0 ? cost : 0;
	report_add(v->list, "shell",
	    cost > SLOW_SHELL_MS ? REPORT_WARNING : REPORT_OK,
	    cost > SLOW_SHELL_MS
	        ? "let the rc files there (.bashrc, .zshenv, config.fish) "
	          "return early if the shell is not interactive: case $- in "
	          "*i*) ;; *) return ;; esac"
	        : NULL,
	    "%s, ready after %lld ms", shell != NULL ? shell : "a shell",
	    (long long)cost);
	if (s->noise.len > 0)
		report_add(v->list, "noise", REPORT_WARNING,
		    "let the rc files there print only if the shell is "
		    "interactive: [ -t 1 ] && echo ...; here it is dropped, "
		    "but scp and rsync stumble over it",
		    "rc files print %zu bytes: %.200s", s->noise.len,
		    s->noise.data);
	else
		report_add(v->list, "noise", REPORT_OK, NULL,
		    "rc files print nothing");
	return 0;
}

/* Tools, and what is missing without them. */
static const struct wanted {
	const char *name;
	enum report_state without;
	const char *found, *todo;
} wanted[] = {
	{ "bash", REPORT_WARNING, "not there: commands run in sh",
	    "install bash there (apt install bash)" },
	{ "tar", REPORT_FAILED, "not there: trees cannot be synced",
	    "install tar there (apt install tar)" },
	{ "find", REPORT_FAILED, "not there: trees cannot be listed or synced",
	    "install find there (apt install findutils)" },
	{ "tmux", REPORT_WARNING,
	    "not there: jobs work, but nobody can attach to one",
	    "install tmux there (apt install tmux), if you want that" },
	{ "timeout", REPORT_OK, "not there; not needed here", NULL },
	{ "rsync", REPORT_OK, "not there; not needed here", NULL },
};

static void
check_tools(struct visit *v, const json_t *facts)
{
	const json_t *tools = json_object_get(facts, "tools");
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct wanted *w = &wanted[i];
		const char *version =
		    decode_text(json_object_get(tools, w->name));

		if (version != NULL)
			report_add(v->list, w->name, REPORT_OK, NULL, "%s",
			    version[0] != '\0' ? version : "there");
		else
			report_add(v->list, w->name, w->without, w->todo, "%s",
			    w->found);
	}
}

static void
check_gpu(struct visit *v, const json_t *facts)
{
	const char *said = decode_text(json_object_get(facts, "gpu"));
	const json_t *ok = json_object_get(facts, "gpu_ok");
	const char *slurm = decode_text(
	    json_object_get(json_object_get(facts, "tools"), "sbatch"));

	if (said == NULL)
		report_add(v->list, "nvidia-smi", REPORT_OK, NULL,
		    "not there: no NVIDIA GPU is seen");
	else if (json_is_true(ok))
		report_add(v->list, "nvidia-smi", REPORT_OK, NULL, "%s", said);
	else
		report_add(v->list, "nvidia-smi", REPORT_WARNING,
		    "see what nvidia-smi says there; after an update of the "
		    "driver the machine must boot anew",
		    "%s%s", json_is_false(ok) ? "it fails: " : "it hangs",
		    said);
	report_add(v->list, "slurm", REPORT_OK, NULL, "%s",
	    slurm == NULL          ? "not there"
	        : slurm[0] != '\0' ? slurm
	                           : "there");
}

static void
check_disk(struct visit *v, const json_t *facts)
{
	const char *dir = decode_text(json_object_get(facts, "dir"));
	const json_t *disk = json_object_get(facts, "disk");
	json_int_t left = json_integer_value(json_object_get(disk, "free_mb"));
	const char *where =
	    v->sb->workdir != NULL ? v->sb->workdir : "the home directory";
	char *todo = advice_mkdir(v->sb, v->config_file);

	if (dir != NULL && strcmp(dir, "missing") == 0)
		report_add(v->list, "workdir", REPORT_FAILED, todo,
		    "%s does not exist there, or may not be entered; make it, "
		    "or change \"workdir\"",
		    where);
	else if (dir != NULL && strcmp(dir, "readonly") == 0)
		report_add(v->list, "workdir", REPORT_WARNING,
		    "set \"workdir\" of the entry to a directory that you may "
		    "write to",
		    "%s cannot be written to", where);
	else
		report_add(v->list, "workdir", REPORT_OK, NULL, "%s", where);
	free(todo);
	if (!json_is_object(disk))
		report_add(v->list, "disk", REPORT_WARNING,
		    "see what df says there", "df does not tell");
	else
		report_add(v->list, "disk",
		    left < DISK_NONE_MB      ? REPORT_FAILED
		        : left < DISK_FEW_MB ? REPORT_WARNING
		                             : REPORT_OK,
		    left < DISK_FEW_MB
		        ? "make room there: 'du -xh ~ | sort -h | tail' shows "
		          "what is large"
		        : NULL,
		    "%" JSON_INTEGER_FORMAT " MB left, %.0f %% used", left,
		    json_number_value(json_object_get(disk, "used_pct")));
}

static void
check_clock(struct visit *v, const struct survey *s)
{
	long long seconds = s->ahead_ms / 1000;
	bool off = llabs(s->ahead_ms) > SKEW_MS + v->rtt_ms;

	if (!s->clock)
		report_add(v->list, "clock", REPORT_WARNING,
		    "see what date says there", "date does not tell");
	else if (off)
		report_add(v->list, "clock", REPORT_WARNING,
		    "set it by the network, there or here: timedatectl "
		    "set-ntp true",
		    "it is %lld s %s ours: times of files and events mislead",
		    llabs(seconds), seconds > 0 ? "ahead of" : "behind");
	else
		report_add(v->list, "clock", REPORT_OK, NULL,
		    "as ours, within %d s", SKEW_MS / 1000);
}

void
visit_inside(struct visit *v)
{
	struct until limit = until_within(v->until, SURVEY_MS);
	struct survey s;
	struct err err;

	if (survey_run(&s, v->master.path, v->sb->workdir, &limit, &err) ==
	    -1) {
		if (err.code == ERR_LIMIT)
			visit_failed(v, "sessions", sessions_todo,
			    "the server allows no session, or other programs "
			    "use all that it allows");
		else
			visit_failed(v, "shell", "try again", err.msg);
	} else if (check_shell(v, &s) == 0) {
		check_sessions(v);
		check_tools(v, s.facts);
		check_gpu(v, s.facts);
		check_disk(v, s.facts);
		check_clock(v, &s);
	}
	survey_free(&s);
}
