/*
 * What a cluster has.  The far side prints sections, introduced by lines such
 * as "=NODES=":
 *
 *	NODES	of sinfo, a group of nodes that are alike a line:
 *		"partition*|up|limit|nodes|state|alloc/idle/other/total|mb|gres"
 *	GRES	a node of a partition a line: "partition node gres used"
 *	QUEUE	"ok" and the rows of squeue; empty if there is no answer
 */
#include "job/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "job/slurm.h"
#include "job/text.h"
#include "ssh/exec.h"
#include "ssh/probe.h"

#define CLUSTER_MS 30000
#define CLUSTER_CHARS 2000000
#define PARTITIONS_MAX 100

/* What is summed up. */
struct cluster {
	json_t *partitions;           /* by name */
	json_t *gpus;                 /* by type */
	json_t *nodes;                /* whose GPUs were counted */
	char main[64];                /* the default partition, or "" */
	double gpus_free, gpus_total; /* of that one */
};

static void
add_to(json_t *o, const char *name, int64_t n)
{
	json_int_t old = json_integer_value(json_object_get(o, name));

	json_object_set_new(o, name, json_integer(old + n));
}

static int64_t
number(const char *text, int64_t max)
{
	int64_t n;

	return text != NULL && str_to_int(text, 0, max, &n) == 0 ? n : 0;
}

/* --- partitions ----------------------------------------------------------- */

/* "mixed*", "idle~": the marks say that it is not there, or asleep. */
static const char *
node_state(const char *state)
{
	static const char *const known[] = { "idle", "mixed", "allocated",
		NULL };
	size_t n = strspn(state, "abcdefghijklmnopqrstuvwxyz");
	int i;

	for (i = 0; known[i] != NULL; i++) {
		if (strlen(known[i]) == n && strncmp(known[i], state, n) == 0 &&
		    strchr(state, '*') == NULL)
			return known[i];
	}
	return "other";
}

static json_t *
partition_new(const char *name, bool is_main, const char *up, const char *limit)
{
	static const char *const states[] = { "idle", "mixed", "allocated",
		"other", NULL };
	json_t *o = json_object(), *nodes = json_object();
	int i;

	for (i = 0; states[i] != NULL; i++)
		json_object_set_new(nodes, states[i], json_integer(0));
	json_object_set_new(o, "name", utf8_json(name, strlen(name)));
	json_object_set_new(o, "default", json_boolean(is_main));
	json_object_set_new(o, "up", json_boolean(strcmp(up, "up") == 0));
	json_object_set_new(o, "time_limit", utf8_json(limit, strlen(limit)));
	json_object_set_new(o, "nodes", nodes);
	json_object_set_new(o, "cpus_free", json_integer(0));
	json_object_set_new(o, "cpus_total", json_integer(0));
	return o;
}

static void
read_partition(struct cluster *c, char *line)
{
	char *f[6], *name, *key;
	json_t *o;
	bool is_main;
	size_t i;

	for (i = 0; i < 6; i++) {
		f[i] = strsep(&line, "|");
		if (f[i] == NULL)
			return;
	}
	name = f[0];
	is_main = str_ends(name, "*");
	if (is_main)
		name[strlen(name) - 1] = '\0';
	if (is_main)
		snprintf(c->main, sizeof(c->main), "%s", name);
	if (!utf8_valid(name, strlen(name)) || name[0] == '\0')
		return;
	o = json_object_get(c->partitions, name);
	if (o == NULL) {
		if (json_object_size(c->partitions) >= PARTITIONS_MAX)
			return;
		o = partition_new(name, is_main, f[1], f[2]);
		json_object_set_new(c->partitions, name, o);
	}
	add_to(json_object_get(o, "nodes"), node_state(f[4]),
	    number(f[3], INT32_MAX));
	key = f[5];
	strsep(&key, "/"); /* those in use */
	add_to(o, "cpus_free", number(strsep(&key, "/"), INT32_MAX));
	strsep(&key, "/"); /* those that are not to be had */
	add_to(o, "cpus_total", number(key, INT32_MAX));
}

/* --- GPUs ----------------------------------------------------------------- */

/* The next of "gpu:a100:2(S:0-1),gpu:3": commas in parentheses are no ends. */
static char *
next_gres(char **at)
{
	char *start = *at;
	int depth = 0;

	if (start == NULL || *start == '\0')
		return NULL;
	for (; **at != '\0' && (depth > 0 || **at != ','); (*at)++)
		depth += (**at == '(') - (**at == ')');
	if (**at == ',')
		*(*at)++ = '\0';
	return start;
}

/* Add the GPUs of a list to "field" of their types; returns how many. */
static int64_t
read_gres(char *list, json_t *gpus, const char *field)
{
	int64_t sum = 0, n;
	char *one;

	while ((one = next_gres(&list)) != NULL) {
		const char *type = "gpu";
		char *count;
		json_t *o;

		one[strcspn(one, "(")] = '\0';
		if (strcmp(strsep(&one, ":"), "gpu") != 0 || one == NULL)
			continue;
		count = strrchr(one, ':');
		if (count != NULL)
			*count++ = '\0';
		n = number(count != NULL ? count : one, 100000);
		sum += n;
		if (gpus == NULL)
			continue;
		if (count != NULL && utf8_valid(one, strlen(one)))
			type = one;
		o = json_object_get(gpus, type);
		if (o == NULL) {
			o = json_object();
			json_object_set_new(gpus, type, o);
		}
		add_to(o, field, n);
	}
	return sum;
}

/* "partition node gres used" */
static void
read_node(struct cluster *c, const char *line)
{
	char partition[129], node[129], gres[257], used[257], *copy;
	bool first;
	int64_t n;

	if (sscanf(line, "%128s %128s %256s %256s", partition, node, gres,
	        used) != 4 ||
	    !utf8_valid(node, strlen(node)))
		return;
	first = json_object_get(c->nodes, node) == NULL;
	json_object_set_new(c->nodes, node, json_true());
	copy = xstrdup(gres);
	n = read_gres(copy, first ? c->gpus : NULL, "total");
	free(copy);
	copy = xstrdup(used);
	if (strcmp(partition, c->main) == 0) {
		c->gpus_total += (double)n;
		c->gpus_free += (double)n;
	}
	n = read_gres(copy, first ? c->gpus : NULL, "used");
	free(copy);
	if (strcmp(partition, c->main) == 0)
		c->gpus_free -= (double)n;
}

static json_t *
gpus_json(const struct cluster *c)
{
	json_t *list = json_array(), *o, *entry;
	const char *type;

	json_object_foreach (c->gpus, type, o) {
		json_int_t total =
		    json_integer_value(json_object_get(o, "total"));
		json_int_t used =
		    json_integer_value(json_object_get(o, "used"));

		if (total == 0)
			continue;
		entry = json_object();
		json_object_set_new(entry, "type", json_string(type));
		json_object_set_new(entry, "total", json_integer(total));
		json_object_set_new(entry, "free",
		    json_integer(used < total ? total - used : 0));
		json_array_append_new(list, entry);
	}
	return list;
}

/* --- jobs ----------------------------------------------------------------- */

static json_t *
jobs_json(char *text)
{
	json_t *o = json_object();
	int64_t running = 0, pending = 0;
	char *line = strsep(&text, "\n");
	struct slurm_row row;

	if (line == NULL || strcmp(line, "ok") != 0) {
		json_decref(o);
		return json_null();
	}
	while ((line = probe_line(&text)) != NULL) {
		struct job_status s = { 0 };

		if (slurm_row_parse(&row, SLURM_QUEUE, line) == -1)
			continue;
		slurm_status(&row, &s);
		if (s.state == JOB_RUNNING)
			running++;
		if (s.state == JOB_PENDING)
			pending += row.tasks[0] != '\0'
			    ? slurm_tasks_count(row.tasks)
			    : 1;
	}
	json_object_set_new(o, "running", json_integer(running));
	json_object_set_new(o, "pending", json_integer(pending));
	return o;
}

/* --- all of it ------------------------------------------------------------ */

/* The share of what the default partition offers that is free. */
static json_t *
score_json(const struct cluster *c)
{
	const json_t *o = json_object_get(c->partitions, c->main);
	double total =
	    (double)json_integer_value(json_object_get(o, "cpus_total"));
	double share =
	    (double)json_integer_value(json_object_get(o, "cpus_free"));

	if (o == NULL || total <= 0)
		return json_null();
	share /= total;
	if (c->gpus_total > 0)
		share = (share + fmax(c->gpus_free, 0) / c->gpus_total) / 2;
	if (!json_is_true(json_object_get(o, "up")))
		share = 0;
	return json_real(round(fmin(share, 1) * 1000) / 1000);
}

static json_t *
partitions_json(const struct cluster *c)
{
	json_t *list = json_array(), *o;
	const char *name;

	json_object_foreach (c->partitions, name, o) {
		json_array_append(list, o);
	}
	return list;
}

json_t *
cluster_parse(const char *text)
{
	char *nodes = probe_section(text, "NODES"), *at = nodes, *line;
	char *gres = probe_section(text, "GRES");
	char *queue = probe_section(text, "QUEUE");
	struct cluster c = { .partitions = json_object(),
		.gpus = json_object(),
		.nodes = json_object() };
	json_t *o = json_object();

	while ((line = probe_line(&at)) != NULL)
		read_partition(&c, line);
	at = gres;
	while ((line = probe_line(&at)) != NULL)
		read_node(&c, line);
	json_object_set_new(o, "scheduler", json_string("slurm"));
	json_object_set_new(o, "partitions", partitions_json(&c));
	json_object_set_new(o, "gpus", gpus_json(&c));
	json_object_set_new(o, "jobs", jobs_json(queue));
	json_object_set_new(o, "idle_score", score_json(&c));
	json_decref(c.partitions);
	json_decref(c.gpus);
	json_decref(c.nodes);
	free(nodes);
	free(gres);
	free(queue);
	return o;
}

json_t *
cluster_run(struct link *link, const struct until *until, struct err *err)
{
	struct exec_request req = {
		.timeout_ms = CLUSTER_MS,
		.max_chars = CLUSTER_CHARS,
	};
	const char *box = link_sandbox(link)->name;
	struct exec_result res;
	struct buf script;
	json_t *o = NULL;
	int rc;

	buf_init(&script, SIZE_MAX);
	job_text_add(&script, job_text_cluster, true);
	req.command = script.data;
	rc = exec_run(link, &req, &res, until, err);
	buf_free(&script);
	if (rc == -1)
		return NULL;
	if (res.state == EXEC_FINISHED && res.exit_code == 0)
		o = cluster_parse(res.out.data);
	else
		err_set(err, ERR_IO, "Slurm of %s could not be asked: %.200s",
		    box, res.err.data);
	exec_result_free(&res);
	return o;
}
