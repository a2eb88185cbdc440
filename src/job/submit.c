/* Options of sbatch and srun. */
#include "job/submit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/str.h"

#define WORD_CHARS                                                       \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" \
	"_.,@+-"
#define EXTRA_MAX 64

const char *const submit_requeue[] = { "no", "yes", NULL };

/* What we set ourselves, what would keep sbatch from returning at once, and
 * what sends the job to where nobody looks for it. */
static const char *const ours[] = { "array", "chdir", "clusters", "comment",
	"error", "help", "input", "job-name", "open-mode", "output", "parsable",
	"quiet", "test-only", "usage", "version", "wait", "wrap", NULL };

/* An argument that becomes "--option=value". */
struct word {
	const char *name;   /* of the argument */
	const char *option; /* of sbatch */
	const char *value;
	const char *chars; /* that it may have */
	const char *form;  /* in words */
};

static void
add_option(struct buf *out, const char *option, const char *value)
{
	char *text = xasprintf("--%s=%s", option, value);

	buf_addc(out, ' ');
	quote_sh(out, text);
	free(text);
}

static int
add_word(struct buf *out, const struct word *w, struct err *err)
{
	if (str_blank(w->value))
		return 0;
	if (w->value[strspn(w->value, w->chars)] != '\0' ||
	    strlen(w->value) > 500)
		return err_set(err, ERR_INVALID,
		    "argument 'slurm.%s' must be %s, not '%.100s'", w->name,
		    w->form, w->value);
	add_option(out, w->option, w->value);
	return 0;
}

static int
add_words(struct buf *out, const struct submit *s, struct err *err)
{
	const struct word words[] = {
		{ "partition", "partition", s->partition, WORD_CHARS,
		    "the name of a partition" },
		{ "account", "account", s->account, WORD_CHARS,
		    "the name of an account" },
		{ "qos", "qos", s->qos, WORD_CHARS,
		    "the name of a quality of service" },
		{ "time", "time", s->time, "0123456789:-",
		    "minutes, or days-hours:minutes:seconds" },
		{ "mem", "mem", s->mem, "0123456789KMGTkmgt",
		    "a number of megabytes, or one with K, M, G or T" },
		{ "gpus", "gpus", s->gpus, WORD_CHARS ":",
		    "a number of GPUs, or TYPE:NUMBER" },
		{ "constraint", "constraint", s->constraint,
		    WORD_CHARS "&|*()[]:", "features joined by & or |" },
		{ "array", "array", s->array, "0123456789,:%-",
		    "task numbers such as 0-9 or 1-100%5" },
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (add_word(out, &words[i], err) == -1)
			return -1;
	}
	return 0;
}

static void
add_number(struct buf *out, const char *option, int64_t n)
{
	char text[24];

	if (n <= 0)
		return;
	snprintf(text, sizeof(text), "%" PRId64, n);
	add_option(out, option, text);
}

/* "--name" or "--name=value", and not one of ours. */
static int
add_extra(struct buf *out, const char *text, struct err *err)
{
	const char *name = text + 2;
	size_t n;
	int i;

	n = str_starts(text, "--")
	    ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")
	    : 0;
	if (n == 0 || (name[n] != '\0' && name[n] != '=') ||
	    strpbrk(text, "\r\n") != NULL)
		return err_set(err, ERR_INVALID,
		    "argument 'slurm.extra' must hold options such as "
		    "\"--exclusive\" or \"--mail-user=me\", not '%.100s'",
		    text);
	for (i = 0; ours[i] != NULL; i++) {
		/* sbatch takes what its options begin with. */
		if (strncmp(ours[i], name, n) == 0)
			return err_set(err, ERR_INVALID,
			    "argument 'slurm.extra' may not hold '--%s': %s",
			    ours[i],
			    strcmp(ours[i], "array") == 0
			        ? "use slurm.array"
			        : "this server sets it, or relies on it not "
			          "being set");
	}
	buf_addc(out, ' ');
	quote_sh(out, text);
	return 0;
}

static int
add_extras(struct buf *out, const json_t *extra, struct err *err)
{
	const json_t *item;
	size_t i;

	if (json_array_size(extra) > EXTRA_MAX)
		return err_set(err, ERR_INVALID,
		    "argument 'slurm.extra' has more than %d options",
		    EXTRA_MAX);
	json_array_foreach (extra, i, item) {
		if (add_extra(out, json_string_value(item), err) == -1)
			return -1;
	}
	return 0;
}

bool
submit_given(const struct submit *s)
{
	return !str_blank(s->partition) || !str_blank(s->account) ||
	    !str_blank(s->qos) || !str_blank(s->time) || s->nodes > 0 ||
	    s->ntasks > 0 || s->cpus > 0 || !str_blank(s->mem) ||
	    !str_blank(s->gpus) || !str_blank(s->constraint) ||
	    !str_blank(s->array) || s->requeue != -1 ||
	    json_array_size(s->extra) > 0;
}

int
submit_options(struct buf *out, const struct submit *s, bool array_allowed,
    struct err *err)
{
	if (!array_allowed && (!str_blank(s->array) || s->requeue != -1))
		return err_set(err, ERR_INVALID,
		    "arguments 'slurm.array' and 'slurm.requeue' are for "
		    "exec_bash_background");
	buf_addc(out, ' ');
	if (add_words(out, s, err) == -1)
		return -1;
	add_number(out, "nodes", s->nodes);
	add_number(out, "ntasks", s->ntasks);
	add_number(out, "cpus-per-task", s->cpus);
	if (s->requeue != -1)
		buf_adds(out, s->requeue == 1 ? " --requeue" : " --no-requeue");
	return add_extras(out, s->extra, err);
}
