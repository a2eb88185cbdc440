/*
 * The resource probe.
 *
 * Sections are introduced by lines such as "=CPU=".  A tool that is missing
 * on the host leaves its section empty, and what it would have told is null:
 * not known is never the same as idle.
 */
#include "ssh/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/str.h"
#include "base/utf8.h"
#include "ssh/exec.h"

#define PROBE_MS 15000
#define PROBE_CHARS 60000

/* No machine has more; one that says so would make us multiply the two. */
#define GPUS_MAX 64
#define GPU_PROCESSES_MAX 64 /* of one */

/* Weights of the idle score. */
#define WEIGHT_CPU 0.4
#define WEIGHT_MEMORY 0.4
#define WEIGHT_GPU 0.2

static const char script[] =
    "echo =CPU=; cat /proc/loadavg 2>/dev/null || uptime 2>/dev/null\n"
    "echo =NCPU=; nproc 2>/dev/null || getconf _NPROCESSORS_ONLN "
    "2>/dev/null || sysctl -n hw.ncpu 2>/dev/null\n"
    "echo =MEM=; grep -E '^(MemTotal|MemFree|MemAvailable|Buffers|Cached):' "
    "/proc/meminfo 2>/dev/null\n"
    "echo =DISK=; df -Pk . 2>/dev/null | tail -n 1\n"
    "echo =GPU=; nvidia-smi --query-gpu=index,utilization.gpu,memory.used,"
    "memory.total,uuid,name --format=csv,noheader,nounits 2>/dev/null\n"
    "echo =GPUPROC=; p=`nvidia-smi --query-compute-apps=gpu_uuid,pid,"
    "used_memory,process_name --format=csv,noheader,nounits 2>/dev/null`; "
    "echo \"$p\"; echo =PS=; [ -z \"$p\" ] || ps -o pid=,user= -p "
    "`echo \"$p\" | cut -d, -f2 | tr -d ' ' | paste -s -d, -` 2>/dev/null\n"
    "echo =ROCM=; rocm-smi --showuse --showmeminfo vram --csv 2>/dev/null\n"
    "echo =SLURM=; command -v sbatch 2>/dev/null\n"
    "echo =END=\n";

char *
probe_section(const char *text, const char *name)
{
	char *start = xasprintf("=%s=\n", name);
	const char *at = text, *end;
	size_t len = strlen(start);

	while ((at = strstr(at, start)) != NULL && at != text && at[-1] != '\n')
		at++;
	free(start);
	if (at == NULL)
		return xstrdup("");
	at += len;
	for (end = at; *end != '\0' && *end != '=';) {
		end += strcspn(end, "\n");
		end += *end == '\n';
	}
	return xstrndup(at, (size_t)(end - at));
}

char *
probe_line(char **at)
{
	char *line;

	do {
		line = strsep(at, "\n");
	} while (line != NULL && line[0] == '\0');
	return line;
}

static json_t *
number(double d)
{
	return isfinite(d) ? json_real(d) : json_null();
}

static json_t *
whole(double d)
{
	return isfinite(d) && fabs(d) < 1e15 ? json_integer((json_int_t)d)
	                                     : json_null();
}

static double
rounded(double d, int digits)
{
	double f = pow(10, digits);

	return round(d * f) / f;
}

/*
 * A number at "*at", which moves behind it; NAN if there is none.  In many
 * languages uptime writes "0,52, 0,58": a comma between digits is a point.
 */
static double
load_number(const char **at)
{
	char text[32];
	size_t n;
	double d;

	*at += strspn(*at, " \t,");
	n = strspn(*at, "0123456789.,");
	if (n == 0 || n >= sizeof(text))
		return NAN;
	memcpy(text, *at, n);
	*at += n;
	if (text[n - 1] == ',')
		n--;
	text[n] = '\0';
	if (strchr(text, ',') != NULL)
		*strchr(text, ',') = '.';
	return str_to_num(text, &d) == 0 ? d : NAN;
}

/* "0.52 0.58 0.59 1/467 1234", or the end of what uptime prints. */
static json_t *
read_cpu(const char *text, const char *count_text, double *load, double *count)
{
	json_t *o = json_object();
	const char *at = strstr(text, "load average");
	char *line = xstrndup(count_text, strcspn(count_text, "\n"));

	if (at != NULL)
		at += strcspn(at, ":\n") + (at[strcspn(at, ":\n")] == ':');
	else
		at = text;
	if (str_to_num(line, count) == -1 || *count < 1)
		*count = NAN;
	free(line);
	*load = load_number(&at);
	json_object_set_new(o, "load_1m", number(*load));
	json_object_set_new(o, "load_5m", number(load_number(&at)));
	json_object_set_new(o, "load_15m", number(load_number(&at)));
	json_object_set_new(o, "count", whole(*count));
	return o;
}

/* A line of /proc/meminfo, in megabytes; NAN if it is not there. */
static double
meminfo(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	double kb;

	/* NOLINTNEXTLINE(cert-err34-c): checked by the count */
	if (at == NULL || sscanf(at + strlen(name), " %lf", &kb) != 1)
		return NAN;
	return kb / 1024;
}

static json_t *
read_memory(const char *text, double *used_pct)
{
	json_t *o = json_object();
	double total = meminfo(text, "MemTotal:");
	double free_mb = meminfo(text, "MemFree:");
	double available = meminfo(text, "MemAvailable:");

	if (!isfinite(available))
		available = free_mb + meminfo(text, "Buffers:") +
		    meminfo(text, "Cached:");
	*used_pct = total > 0 ? 100 * (total - available) / total : NAN;
	json_object_set_new(o, "total_mb", whole(total));
	json_object_set_new(o, "used_mb", whole(total - available));
	json_object_set_new(o, "free_mb", whole(free_mb));
	json_object_set_new(o, "available_mb", whole(available));
	json_object_set_new(o, "used_pct", number(rounded(*used_pct, 1)));
	return o;
}

/* "/dev/sda1 41152736 1234 39918000 4% /home" */
json_t *
probe_disk(const char *text)
{
	double total, used, left;
	json_t *o;

	/* NOLINTNEXTLINE(cert-err34-c): checked by the count */
	if (sscanf(text, "%*s %lf %lf %lf", &total, &used, &left) != 3 ||
	    total <= 0)
		return json_null();
	o = json_object();
	json_object_set_new(o, "total_mb", whole(total / 1024));
	json_object_set_new(o, "free_mb", whole(left / 1024));
	json_object_set_new(o, "used_pct",
	    number(
	        rounded(100 * used / (used + left > 0 ? used + left : 1), 1)));
	return o;
}

/* The next field of a line of comma-separated values, without blanks. */
static char *
csv_field(char **at)
{
	char *f = strsep(at, ",");
	size_t len;

	if (f == NULL)
		return NULL;
	f += strspn(f, " \t");
	for (len = strlen(f); len > 0 && strchr(" \t\r", f[len - 1]); len--)
		f[len - 1] = '\0';
	return f;
}

/* What is left of a line: a last field that may hold commas. */
static char *
csv_rest(char **at)
{
	char *f = *at;

	*at = NULL;
	return f == NULL ? NULL : f + strspn(f, " \t");
}

/* A number, or NAN for "[N/A]", "[Not Supported]" and the like. */
static double
csv_number(char **at)
{
	const char *f = csv_field(at);
	double d;

	return f != NULL && str_to_num(f, &d) == 0 ? d : NAN;
}

static void
set_gpu_memory(json_t *o, double used, double total)
{
	json_object_set_new(o, "mem_used_mb", whole(used));
	json_object_set_new(o, "mem_total_mb", whole(total));
	json_object_set_new(o, "mem_used_pct",
	    total > 0 ? number(rounded(100 * used / total, 1)) : json_null());
}

static const char *
owner_of(const char *ps, const char *pid, char *out, size_t size)
{
	char *copy = xstrdup(ps), *at = copy, *line;

	out[0] = '\0';
	while ((line = probe_line(&at)) != NULL) {
		char p[32], user[64];

		if (sscanf(line, "%31s %63s", p, user) == 2 &&
		    strcmp(p, pid) == 0)
			snprintf(out, size, "%s", user);
	}
	free(copy);
	return out;
}

/* Processes on the GPU with this id: "uuid, pid, memory, name". */
static json_t *
gpu_processes(const char *uuid, const char *procs, const char *ps)
{
	char *copy = xstrdup(procs), *at = copy, *line, owner[64];
	json_t *list = json_array();

	while (json_array_size(list) < GPU_PROCESSES_MAX &&
	    (line = probe_line(&at)) != NULL) {
		const char *id = csv_field(&line);
		const char *pid = csv_field(&line);
		double mb = csv_number(&line);
		const char *name = csv_rest(&line);
		int64_t n;
		json_t *o;

		if (pid == NULL || strcmp(id, uuid) != 0 ||
		    str_to_int(pid, 1, INT32_MAX, &n) == -1)
			continue;
		o = json_object();
		json_object_set_new(o, "pid",
		    json_integer(strtoll(pid, NULL, 10)));
		owner_of(ps, pid, owner, sizeof(owner));
		if (owner[0] != '\0')
			json_object_set_new(o, "user",
			    utf8_json(owner, strlen(owner)));
		json_object_set_new(o, "mem_mb", whole(mb));
		if (name != NULL)
			json_object_set_new(o, "name",
			    utf8_json(name, strlen(name)));
		json_array_append_new(list, o);
	}
	free(copy);
	return list;
}

/* What is summed up over the GPUs. */
struct gpus {
	json_t *list;
	double util_sum; /* not measured counts as busy */
	double free_mb;  /* of those that told it */
	size_t told;
	size_t count;
	bool failed; /* a tool is there, but could not measure */
};

static void
count_gpu(struct gpus *g, json_t *o, double util, double used, double total)
{
	json_array_append_new(g->list, o);
	g->util_sum += isfinite(util) ? util : 100;
	if (isfinite(total - used)) {
		g->free_mb += total - used;
		g->told++;
	}
	g->count++;
}

/* nvidia-smi: "0, 12, 345, 24576, GPU-1234, NVIDIA GeForce RTX 4090" */
static void
read_nvidia(struct gpus *g, char *text, const char *procs, const char *ps)
{
	char *line;

	while (g->count < GPUS_MAX && (line = probe_line(&text)) != NULL) {
		bool none = str_starts(line, "No devices");
		double index = csv_number(&line);
		double util = csv_number(&line);
		double used = csv_number(&line);
		double total = csv_number(&line);
		const char *uuid = csv_field(&line);
		const char *name = csv_rest(&line);
		json_t *o;

		if (!isfinite(index) || name == NULL) {
			/* "NVIDIA-SMI has failed because ..." */
			g->failed = g->failed || !none;
			continue;
		}
		o = json_object();
		json_object_set_new(o, "index", whole(index));
		json_object_set_new(o, "name", utf8_json(name, strlen(name)));
		json_object_set_new(o, "util_pct", whole(util));
		set_gpu_memory(o, used, total);
		json_object_set_new(o, "processes",
		    gpu_processes(uuid, procs, ps));
		count_gpu(g, o, util, used, total);
	}
}

/* Which column of rocm-smi's header mentions these words; -1 if none. */
static int
column(const char *header, const char *words)
{
	char *copy = xstrdup(header), *at = copy, *f;
	int i, found = -1;

	for (i = 0; found == -1 && (f = csv_field(&at)) != NULL; i++) {
		if (strcasestr(f, words) != NULL)
			found = i;
	}
	free(copy);
	return found;
}

static double
field_number(const char *line, int which)
{
	char *copy = xstrdup(line), *at = copy;
	double d = NAN;

	for (; which >= 0; which--)
		d = csv_number(&at);
	free(copy);
	return d;
}

/* rocm-smi: a header, then "card0,..." lines; memory in bytes. */
static void
read_rocm(struct gpus *g, char *text)
{
	char *line, *header = NULL;

	while (g->count < GPUS_MAX && (line = probe_line(&text)) != NULL) {
		double util, used, total;
		json_t *o;

		if (str_starts(line, "device")) {
			header = line;
			continue;
		}
		if (header == NULL || !str_starts(line, "card"))
			continue;
		util = field_number(line, column(header, "GPU use"));
		total = field_number(line, column(header, "Total Memory"));
		used = field_number(line, column(header, "Used Memory"));
		o = json_object();
		json_object_set_new(o, "index",
		    json_integer(strtol(line + 4, NULL, 10)));
		json_object_set_new(o, "name", json_string("AMD GPU"));
		json_object_set_new(o, "util_pct", whole(util));
		used /= 1024.0 * 1024;
		total /= 1024.0 * 1024;
		set_gpu_memory(o, used, total);
		count_gpu(g, o, util, used, total);
	}
}

/* Whatever a host tells, a share is one from 0 to 1. */
static double
share(double d)
{
	return fmin(fmax(d, 0), 1);
}

static double
score(double load, double count, double used_pct, const struct gpus *g)
{
	double cpu = 0, memory = 0, gpu = g->failed ? 0 : 1;

	if (!isfinite(load) && !isfinite(used_pct))
		return NAN;
	if (isfinite(load) && isfinite(count))
		cpu = 1 - fmin(load / count, 1);
	if (isfinite(used_pct))
		memory = 1 - used_pct / 100;
	if (g->count > 0)
		gpu = 1 - g->util_sum / (double)g->count / 100;
	return rounded(WEIGHT_CPU * share(cpu) + WEIGHT_MEMORY * share(memory) +
	        WEIGHT_GPU * share(gpu),
	    3);
}

/* A cluster that nobody said is one. */
static void
set_scheduler(json_t *o, const char *text)
{
	char *slurm = probe_section(text, "SLURM");

	if (slurm[0] == '/')
		json_object_set_new(o, "scheduler_found",
		    json_string("slurm: to run jobs on its compute nodes, set "
		                "\"scheduler\": \"slurm\" in the entry of "
		                "this sandbox"));
	free(slurm);
}

json_t *
probe_parse(const char *text)
{
	char *cpu = probe_section(text, "CPU"),
	     *ncpu = probe_section(text, "NCPU");
	char *mem = probe_section(text, "MEM"),
	     *disk = probe_section(text, "DISK");
	char *gpu = probe_section(text, "GPU"),
	     *procs = probe_section(text, "GPUPROC");
	char *ps = probe_section(text, "PS"),
	     *rocm = probe_section(text, "ROCM");
	struct gpus g = { .list = json_array() };
	double load, count, used_pct;
	json_t *o = json_object();

	json_object_set_new(o, "cpu", read_cpu(cpu, ncpu, &load, &count));
	json_object_set_new(o, "memory", read_memory(mem, &used_pct));
	json_object_set_new(o, "disk", probe_disk(disk));
	read_nvidia(&g, gpu, procs, ps);
	if (g.count == 0)
		read_rocm(&g, rocm);
	if (g.count == 0 && g.failed)
		json_object_set_new(o, "gpu", json_null());
	else
		json_object_set(o, "gpu", g.list);
	json_decref(g.list);
	if (g.count > 0 || g.failed)
		json_object_set_new(o, "gpu_free_mb",
		    g.told > 0 ? whole(g.free_mb) : json_null());
	json_object_set_new(o, "idle_score",
	    number(score(load, count, used_pct, &g)));
	free(cpu);
	free(ncpu);
	free(mem);
	free(disk);
	free(gpu);
	free(procs);
	free(ps);
	free(rocm);
	set_scheduler(o, text);
	return o;
}

json_t *
probe_run(struct link *link, const struct until *until, struct err *err)
{
	struct exec_request req = {
		.command = script,
		.cwd = link_sandbox(link)->workdir,
		.timeout_ms = PROBE_MS,
		.max_chars = PROBE_CHARS,
	};
	struct exec_result res;
	json_t *o = NULL;

	if (exec_run(link, &req, &res, until, err) == -1)
		return NULL;
	if (res.state == EXEC_FINISHED)
		o = probe_parse(res.out.data);
	else
		err_set(err, ERR_IO, "the probe of %s did not end",
		    link_sandbox(link)->name);
	exec_result_free(&res);
	return o;
}
