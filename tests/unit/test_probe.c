/*
 * What the probe's script prints, on hosts of many kinds.  The texts are in
 * tests/data; parts of nvidia-smi and rocm-smi have the form of the versions
 * that their names tell.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/utf8.h"
#include "help.h"
#include "ssh/probe.h"

static json_t *got;

static int
forget(void **state)
{
	(void)state;
	json_decref(got);
	got = NULL;
	return 0;
}

/* Every result has this form, whatever the text. */
static void
check_form(const json_t *o)
{
	const json_t *score = json_object_get(o, "idle_score");
	const json_t *gpu = json_object_get(o, "gpu");
	char *text = json_dumps(o, 0);

	assert_non_null(text);
	assert_true(utf8_valid(text, strlen(text)));
	free(text);
	assert_true(json_is_object(json_object_get(o, "cpu")));
	assert_true(json_is_object(json_object_get(o, "memory")));
	assert_non_null(json_object_get(o, "disk"));
	assert_true(json_is_array(gpu) || json_is_null(gpu));
	assert_true(json_is_null(score) || json_is_real(score));
	if (json_is_real(score)) {
		assert_true(json_real_value(score) >= 0);
		assert_true(json_real_value(score) <= 1);
	}
}

static void
parse(const char *text)
{
	forget(NULL);
	got = probe_parse(text);
	assert_non_null(got);
	check_form(got);
}

static void
parse_file(const char *name)
{
	char *text = recorded(name);

	parse(text);
	free(text);
}

/* A part of it, as JSON with ' for ". */
static void
part_is(const char *name, const char *want)
{
	char *json = xstrdup(want), *c, *a, *b;
	json_t *expected, *part = json_object_get(got, name);
	json_error_t je;

	for (c = json; *c != '\0'; c++) {
		if (*c == '\'')
			*c = '"';
	}
	expected = json_loads(json, JSON_DECODE_ANY, &je);
	if (expected == NULL)
		fail_msg("the test's JSON is wrong: %s: %s", je.text, json);
	if (part == NULL)
		fail_msg("there is no %s", name);
	if (!json_equal(part, expected)) {
		a = json_dumps(part, JSON_ENCODE_ANY | JSON_SHORT_REALS);
		b = json_dumps(expected, JSON_ENCODE_ANY | JSON_SHORT_REALS);
		fail_msg("%s is %s\nnot %s", name, a, b);
	}
	json_decref(expected);
	free(json);
}

static void
an_ordinary_linux_host_is_read(void **state)
{
	(void)state;
	parse_file("probe-linux.txt");
	part_is("cpu",
	    "{'load_1m':0.5,'load_5m':0.75,'load_15m':0.65,'count':2}");
	part_is("memory",
	    "{'total_mb':24103,'used_mb':997,'free_mb':21695,"
	    "'available_mb':23106,'used_pct':4.1}");
	part_is("disk", "{'total_mb':258019,'free_mb':79351,'used_pct':14.9}");
	part_is("gpu", "[]");
	assert_null(json_object_get(got, "gpu_free_mb"));
	/* 0.4 * (1 - 0.5 / 2) + 0.4 * 0.9586 + 0.2 */
	part_is("idle_score", "0.883");
}

/* MemAvailable came with Linux 3.14; the disk is full, the load too high. */
static void
an_old_and_busy_one_is_read(void **state)
{
	(void)state;
	parse_file("probe-old-kernel.txt");
	part_is("memory",
	    "{'total_mb':8000,'used_mb':4000,'free_mb':1000,"
	    "'available_mb':4000,'used_pct':50.0}");
	part_is("disk", "{'total_mb':1024,'free_mb':0,'used_pct':100.0}");
	part_is("idle_score", "0.4");
}

static void
several_gpus_with_their_processes_and_owners_are_read(void **state)
{
	(void)state;
	parse_file("probe-nvidia-535.txt");
	part_is("gpu",
	    "[{'index':0,'name':'NVIDIA GeForce RTX 4090','util_pct':98,"
	    "'mem_used_mb':22310,'mem_total_mb':24564,'mem_used_pct':90.8,"
	    "'processes':["
	    "{'pid':120331,'user':'ann','mem_mb':20480,'name':'python'},"
	    "{'pid':120777,'user':'ann','mem_mb':1822,"
	    "'name':'/home/ann/my env/bin/python3.11'}]},"
	    "{'index':1,'name':'NVIDIA GeForce RTX 4090','util_pct':2,"
	    "'mem_used_mb':564,'mem_total_mb':24564,'mem_used_pct':2.3,"
	    "'processes':[{'pid':4471,'user':'bob','mem_mb':556,"
	    "'name':'/usr/libexec/ollama, runner'}]},"
	    "{'index':2,'name':'NVIDIA H100 80GB HBM3','util_pct':0,"
	    "'mem_used_mb':4,'mem_total_mb':81559,'mem_used_pct':0.0,"
	    "'processes':[]}]");
	part_is("gpu_free_mb", "107809");
	/* 0.4 * 0.75 + 0.4 * 0.75 + 0.2 * (1 - 1 / 3) */
	part_is("idle_score", "0.733");
}

/* With MIG nobody measures the whole card: that counts as busy. */
static void
a_partitioned_gpu_is_not_idle(void **state)
{
	(void)state;
	parse_file("probe-nvidia-mig.txt");
	part_is("gpu",
	    "[{'index':0,'name':'NVIDIA A100-SXM4-40GB','util_pct':null,"
	    "'mem_used_mb':14293,'mem_total_mb':40960,'mem_used_pct':34.9,"
	    "'processes':[{'pid':3101,'mem_mb':null,'name':'[Not Found]'}]},"
	    "{'index':1,'name':'NVIDIA A100-SXM4-40GB','util_pct':40,"
	    "'mem_used_mb':20480,'mem_total_mb':40960,'mem_used_pct':50.0,"
	    "'processes':[{'pid':3102,'mem_mb':20000,"
	    "'name':'[Insufficient Permissions]'}]}]");
	part_is("gpu_free_mb", "47147");
	/* 0.4 * 0.875 + 0.4 * 0.5 + 0.2 * (1 - 0.7) */
	part_is("idle_score", "0.61");
}

static void
what_an_old_card_does_not_tell_is_null(void **state)
{
	(void)state;
	parse_file("probe-nvidia-390.txt");
	part_is("gpu",
	    "[{'index':0,'name':'Quadro K620','util_pct':null,"
	    "'mem_used_mb':300,'mem_total_mb':2002,'mem_used_pct':15.0,"
	    "'processes':[]}]");
	part_is("gpu_free_mb", "1702");
	part_is("idle_score", "0.8");
}

/* Memory that is shared with the CPU is not told. */
static void
memory_of_a_gpu_that_is_not_told_is_null(void **state)
{
	(void)state;
	parse_file("probe-nvidia-unified.txt");
	part_is("gpu",
	    "[{'index':0,'name':'NVIDIA GB10','util_pct':25,"
	    "'mem_used_mb':null,'mem_total_mb':null,'mem_used_pct':null,"
	    "'processes':[{'pid':900,'user':'ann','mem_mb':5120,"
	    "'name':'python3'}]}]");
	part_is("gpu_free_mb", "null");
	/* 0.4 * 0.9 + 0.4 * 0.5 + 0.2 * 0.75 */
	part_is("idle_score", "0.71");
}

static void
a_driver_that_fails_is_not_an_idle_gpu(void **state)
{
	(void)state;
	parse_file("probe-nvidia-failed.txt");
	part_is("gpu", "null");
	part_is("idle_score", "0.8");
	parse_file("probe-nvidia-mismatch.txt");
	part_is("gpu", "null");
	part_is("idle_score", "0.8");
}

static void
a_driver_without_devices_is_a_host_without_gpus(void **state)
{
	(void)state;
	parse("=CPU=\n0 0 0\n=NCPU=\n1\n=MEM=\n=GPU=\nNo devices were found\n"
	      "=GPUPROC=\nNo devices were found\n=PS=\n=ROCM=\n=END=\n");
	part_is("gpu", "[]");
	part_is("idle_score", "0.6");
}

static void
gpus_of_amd_are_read(void **state)
{
	(void)state;
	parse_file("probe-rocm.txt");
	part_is("gpu",
	    "[{'index':0,'name':'AMD GPU','util_pct':0,'mem_used_mb':26,"
	    "'mem_total_mb':20464,'mem_used_pct':0.1},"
	    "{'index':1,'name':'AMD GPU','util_pct':100,'mem_used_mb':8184,"
	    "'mem_total_mb':16368,'mem_used_pct':50.0}]");
	part_is("gpu_free_mb", "28621");
	/* 0.4 * 0.75 + 0.4 * 0.5 + 0.2 * 0.5 */
	part_is("idle_score", "0.6");
}

static void
columns_of_amd_are_found_by_name(void **state)
{
	(void)state;
	parse_file("probe-rocm-6.txt");
	part_is("gpu",
	    "[{'index':0,'name':'AMD GPU','util_pct':50,'mem_used_mb':1,"
	    "'mem_total_mb':65520,'mem_used_pct':0.0},"
	    "{'index':3,'name':'AMD GPU','util_pct':null,'mem_used_mb':null,"
	    "'mem_total_mb':null,'mem_used_pct':null}]");
	part_is("gpu_free_mb", "65519");
	part_is("idle_score", "0.55");
}

static void
a_mac_tells_what_it_has(void **state)
{
	static const char *const files[] = { "probe-macos.txt",
		"probe-macos-comma.txt" };
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		parse_file(files[i]);
		part_is("cpu",
		    "{'load_1m':1.87,'load_5m':1.92,'load_15m':2.01,"
		    "'count':8}");
		part_is("memory",
		    "{'total_mb':null,'used_mb':null,'free_mb':null,"
		    "'available_mb':null,'used_pct':null}");
		part_is("disk",
		    "{'total_mb':471482,'free_mb':235741,'used_pct':50.0}");
		/* Memory counts as busy: 0.4 * (1 - 1.87 / 8) + 0.2 */
		part_is("idle_score", "0.506");
	}
}

static void
uptime_of_many_countries_is_read(void **state)
{
	static const struct {
		const char *uptime, *want;
	} cases[] = {
		{ " 10:01:02 up 5 days,  1:02,  3 users,  load average: 0.52, "
		  "0.58, 0.59",
		    "{'load_1m':0.52,'load_5m':0.58,'load_15m':0.59,"
		    "'count':4}" },
		{ " 10:01:02 up 5 days,  1:02,  3 users,  load average: 0,52, "
		  "0,58, 0,59",
		    "{'load_1m':0.52,'load_5m':0.58,'load_15m':0.59,"
		    "'count':4}" },
		{ "10:01  up 1 day, 2 users, load averages: 12.00 1.92 0.01",
		    "{'load_1m':12.0,'load_5m':1.92,'load_15m':0.01,"
		    "'count':4}" },
		{ " 10:01AM  up 10 mins, 1 user, load averages: 0.08, 0.10, "
		  "0.09",
		    "{'load_1m':0.08,'load_5m':0.1,'load_15m':0.09,"
		    "'count':4}" },
		{ "0.00 0.01 0.05 1/30 3",
		    "{'load_1m':0.0,'load_5m':0.01,"
		    "'load_15m':0.05,'count':4}" },
		{ "0.5",
		    "{'load_1m':0.5,'load_5m':null,'load_15m':null,"
		    "'count':4}" },
	};
	char text[400];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "=CPU=\n%s\n=NCPU=\n4\n=MEM=\n",
		    cases[i].uptime);
		parse(text);
		part_is("cpu", cases[i].want);
	}
}

static void
nothing_measured_is_no_score(void **state)
{
	static const char *const texts[] = { "", "\n", "=CPU=\n", "garbage",
		"=CPU=\nnonsense\n=NCPU=\nfour\n=MEM=\nMemTotal: much\n",
		"bash: line 1: cat: command not found\n" };
	size_t i;

	(void)state;
	parse_file("probe-nothing.txt");
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (i > 0)
			parse(texts[i]);
		part_is("idle_score", "null");
		part_is("cpu",
		    "{'load_1m':null,'load_5m':null,'load_15m':null,"
		    "'count':null}");
		part_is("memory",
		    "{'total_mb':null,'used_mb':null,'free_mb':null,"
		    "'available_mb':null,'used_pct':null}");
		part_is("disk", "null");
		part_is("gpu", "[]");
	}
}

/* W33: what is not known is never taken for idle. */
static void
what_is_not_measured_counts_as_busy(void **state)
{
	(void)state;
	/* A load without the number of CPUs says nothing. */
	parse("=CPU=\n0 0 0\n=NCPU=\n=MEM=\nMemTotal: 100 kB\n"
	      "MemAvailable: 100 kB\n");
	part_is("idle_score", "0.6");
	parse("=CPU=\n=NCPU=\n4\n=MEM=\nMemTotal: 100 kB\n"
	      "MemAvailable: 100 kB\n");
	part_is("idle_score", "0.6");
	/* Memory of which nobody knows how much is used. */
	parse("=CPU=\n0 0 0\n=NCPU=\n4\n=MEM=\nMemTotal: 100 kB\n"
	      "MemFree: 50 kB\n");
	part_is("idle_score", "0.6");
	part_is("memory",
	    "{'total_mb':0,'used_mb':null,'free_mb':0,'available_mb':null,"
	    "'used_pct':null}");
}

static void
numbers_that_cannot_be_do_no_harm(void **state)
{
	static const char *const texts[] = {
		"=CPU=\n-5 -5 -5\n=NCPU=\n4\n",
		"=CPU=\n1e300 inf nan\n=NCPU=\n4\n",
		"=CPU=\ninf\n=NCPU=\n4\n",
		"=CPU=\nnan nan nan\n=NCPU=\nnan\n",
		"=CPU=\n0x10 0x10\n=NCPU=\n0x10\n",
		"=CPU=\n1\n=NCPU=\n1e300\n",
		"=CPU=\n1\n=NCPU=\n-4\n",
		"=CPU=\n1\n=NCPU=\n0\n",
		"=CPU=\n1\n=NCPU=\n0.5\n",
		"=CPU=\n1\n=NCPU=\n99999999999999999999\n",
		"=MEM=\nMemTotal: 100\nMemAvailable: 200\n",
		"=MEM=\nMemTotal: 100\nMemAvailable: -200\n",
		"=MEM=\nMemTotal: 0\nMemAvailable: 0\n",
		"=MEM=\nMemTotal: -1\nMemAvailable: 1\n",
		"=MEM=\nMemTotal: 1e308\nMemAvailable: 1e300\n",
		"=MEM=\nMemTotal: inf\nMemAvailable: inf\n",
		"=DISK=\nx 1e308 1e308 1e308\n",
		"=DISK=\nx 0 0 0 - /\n",
		"=DISK=\nx 100 -5 -100 0% /\n",
		"=DISK=\nx y z\n",
		"=CPU=\n1\n=NCPU=\n1\n=GPU=\n0, 200, 1, 1, u, n\n",
		"=CPU=\n1\n=NCPU=\n1\n=GPU=\n0, -50, -1, -1, u, n\n",
		"=CPU=\n1\n=NCPU=\n1\n=GPU=\n1e300, 1e300, 1e300, 0, u, n\n",
		"=CPU=\n1\n=NCPU=\n1\n=GPU=\n0, 1e308, 1, 1, u, n\n"
		"0, 1e308, 1, 1, u, n\n",
		"=CPU=\n1\n=NCPU=\n1\n=ROCM=\ndevice,GPU use (%)\ncard,1\n"
		"card99999999999999999999,2\ncard-1,\ncard\n",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		parse(texts[i]);
}

static void
lines_of_gpus_that_are_cut_short_are_left_out(void **state)
{
	(void)state;
	parse("=GPU=\n0, 1, 2, 3, u, name\n1, 2, 3\n2\n,,,,,\n\n"
	      "=GPUPROC=\nu\nu,\nu, 5\nu, 6, 7\nu, 8, 9, n\n,,,\n"
	      "=PS=\n5\n 6 \n 8 ann extra\n");
	part_is("gpu",
	    "[{'index':0,'name':'name','util_pct':1,'mem_used_mb':2,"
	    "'mem_total_mb':3,'mem_used_pct':66.7,'processes':["
	    "{'pid':5,'mem_mb':null},{'pid':6,'mem_mb':7},"
	    "{'pid':8,'user':'ann','mem_mb':9,'name':'n'}]}]");
}

/* A section is what stands behind its own line, in whatever order. */
static void
sections_are_found_by_their_line(void **state)
{
	(void)state;
	parse("noise =CPU=\n9 9 9\n=NCPU=\n2\n=CPU=\n1 1 1\n=END=\n"
	      "=MEM=\nMemTotal: 1024 kB\nMemAvailable: 1024 kB\n");
	part_is("cpu",
	    "{'load_1m':1.0,'load_5m':1.0,'load_15m':1.0,'count':2}");
	part_is("idle_score", "0.8");
	/* No line end at the very end. */
	parse("=CPU=\n1 2 3\n=NCPU=\n2");
	part_is("cpu",
	    "{'load_1m':1.0,'load_5m':2.0,'load_15m':3.0,'count':2}");
}

static void
names_from_the_host_become_text(void **state)
{
	(void)state;
	parse("=GPU=\n0, 1, 2, 3, u\xff, caf\xe9\n"
	      "=GPUPROC=\nu\xff, 7, 8, \xf0\x9f\n=PS=\n7 \xff\xfe\n");
	assert_string_equal(json_string_value(json_object_get(
	                        json_array_get(json_object_get(got, "gpu"), 0),
	                        "name")),
	    "caf\xef\xbf\xbd");
}

static void
much_of_it_is_read_in_no_time(void **state)
{
	char *gpus = repeated("0, 1, 2, 3, GPU-1, name\n", 300);
	char *procs = repeated("GPU-1, 5, 6, name\n", 300);
	char *equals = repeated("=GPU=", 20000);
	struct buf b;

	(void)state;
	buf_init(&b, SIZE_MAX);
	buf_addf(&b, "=GPU=\n%s=GPUPROC=\n%s=PS=\n5 ann\n", gpus, procs);
	parse(b.data);
	assert_int_equal(json_array_size(json_object_get(got, "gpu")), 64);
	assert_int_equal(json_array_size(
	                     json_object_get(json_array_get(json_object_get(got,
	                                                        "gpu"),
	                                         63),
	                         "processes")),
	    64);
	parse(equals);
	buf_free(&b);
	free(gpus);
	free(procs);
	free(equals);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
	const struct CMUnitTest tests[] = {
		TEST(an_ordinary_linux_host_is_read),
		TEST(an_old_and_busy_one_is_read),
		TEST(several_gpus_with_their_processes_and_owners_are_read),
		TEST(a_partitioned_gpu_is_not_idle),
		TEST(what_an_old_card_does_not_tell_is_null),
		TEST(memory_of_a_gpu_that_is_not_told_is_null),
		TEST(a_driver_that_fails_is_not_an_idle_gpu),
		TEST(a_driver_without_devices_is_a_host_without_gpus),
		TEST(gpus_of_amd_are_read),
		TEST(columns_of_amd_are_found_by_name),
		TEST(a_mac_tells_what_it_has),
		TEST(uptime_of_many_countries_is_read),
		TEST(nothing_measured_is_no_score),
		TEST(what_is_not_measured_counts_as_busy),
		TEST(numbers_that_cannot_be_do_no_harm),
		TEST(lines_of_gpus_that_are_cut_short_are_left_out),
		TEST(sections_are_found_by_their_line),
		TEST(names_from_the_host_become_text),
		TEST(much_of_it_is_read_in_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
