/*
 * Whatever a host prints, what is read from it has its form: text, numbers
 * that JSON can hold, and a score from 0 to 1 or none.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "ssh/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
number_or_null(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	must(json_is_null(v) || json_is_number(v));
	must(isfinite(json_number_value(v)));
}

static void
check_numbers(const json_t *o, const char *const *names)
{
	must(json_is_object(o));
	for (; *names != NULL; names++)
		number_or_null(o, *names);
}

static void
check_process(const json_t *o)
{
	const json_t *user = json_object_get(o, "user");
	const json_t *name = json_object_get(o, "name");

	must(json_is_integer(json_object_get(o, "pid")));
	must(json_integer_value(json_object_get(o, "pid")) > 0);
	number_or_null(o, "mem_mb");
	must(user == NULL || json_is_string(user));
	must(name == NULL || json_is_string(name));
}

static void
check_gpu(const json_t *o)
{
	static const char *const names[] = { "index", "util_pct", "mem_used_mb",
		"mem_total_mb", "mem_used_pct", NULL };
	const json_t *p;
	size_t i;

	check_numbers(o, names);
	must(json_is_string(json_object_get(o, "name")));
	json_array_foreach (json_object_get(o, "processes"), i, p)
		check_process(p);
}

static void
check_score(const json_t *v)
{
	double d = json_number_value(v);

	must(json_is_null(v) || json_is_real(v));
	must(d >= 0 && d <= 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const cpu[] = { "load_1m", "load_5m", "load_15m",
		"count", NULL };
	static const char *const memory[] = { "total_mb", "used_mb", "free_mb",
		"available_mb", "used_pct", NULL };
	static const char *const disk[] = { "total_mb", "free_mb", "used_pct",
		NULL };
	char *text = xstrndup((const char *)data, size), *dump;
	json_t *o = probe_parse(text), *again;
	const json_t *gpu = json_object_get(o, "gpu"), *g;
	size_t i;

	check_numbers(json_object_get(o, "cpu"), cpu);
	check_numbers(json_object_get(o, "memory"), memory);
	if (!json_is_null(json_object_get(o, "disk")))
		check_numbers(json_object_get(o, "disk"), disk);
	must(json_is_array(gpu) || json_is_null(gpu));
	json_array_foreach (gpu, i, g)
		check_gpu(g);
	if (json_object_get(o, "gpu_free_mb") != NULL)
		number_or_null(o, "gpu_free_mb");
	check_score(json_object_get(o, "idle_score"));

	dump = json_dumps(o, 0);
	must(dump != NULL && utf8_valid(dump, strlen(dump)));
	again = json_loads(dump, 0, NULL);
	must(again != NULL);
	json_decref(again);
	free(dump);
	json_decref(o);
	free(text);
	return 0;
}
