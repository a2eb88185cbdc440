/* What sinfo prints, of old and new versions. */
#include <stdlib.h>
#include <string.h>

#include "job/cluster.h"
#include "test.h"

static void
is(const char *text, const char *want)
{
	json_t *o = cluster_parse(text);
	char *got = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6));

	assert_string_equal(got, want);
	free(got);
	json_decref(o);
}

static void
a_cluster_is_summed_up(void **state)
{
	(void)state;
	is("=NODES=\n"
	   "main*|up|1-00:00:00|2|mixed|6/2/0/8|1000|gpu:a100:2(S:0-1)\n"
	   "main*|up|1-00:00:00|1|idle~|0/8/0/8|1000|(null)\n"
	   "main*|up|1-00:00:00|1|down*|0/0/4/4|1000|(null)\n"
	   "old|inact|infinite|1|planned|0/4/0/4|1000|(null)\n"
	   "=GRES=\n"
	   "main n1 gpu:a100:2(S:0-1) gpu:a100:1(IDX:0,1)\n"
	   "old n1 gpu:a100:2(S:0-1) gpu:a100:1(IDX:0)\n"
	   "old n2 gpu:3 gpu:0\n"
	   "=QUEUE=\nok\n5|RUNNING|None|1|n1|1||a\n"
	   "6_[0-3]|PENDING|Priority|N/A||1||b\n7|COMPLETED|None|1|n1|1||c\n"
	   "=END=\n",
	    "{\"scheduler\":\"slurm\",\"partitions\":["
	    "{\"name\":\"main\",\"default\":true,\"up\":true,"
	    "\"time_limit\":\"1-00:00:00\",\"nodes\":{\"idle\":1,\"mixed\":2,"
	    "\"allocated\":0,\"other\":1},\"cpus_free\":10,\"cpus_total\":20},"
	    "{\"name\":\"old\",\"default\":false,\"up\":false,"
	    "\"time_limit\":\"infinite\",\"nodes\":{\"idle\":0,\"mixed\":0,"
	    "\"allocated\":0,\"other\":1},\"cpus_free\":4,\"cpus_total\":4}],"
	    "\"gpus\":[{\"type\":\"a100\",\"total\":2,\"free\":1},"
	    "{\"type\":\"gpu\",\"total\":3,\"free\":3}],"
	    "\"jobs\":{\"running\":1,\"pending\":4},\"idle_score\":0.5}");
}

static void
what_is_not_known_is_null(void **state)
{
	(void)state;
	is("",
	    "{\"scheduler\":\"slurm\",\"partitions\":[],\"gpus\":[],"
	    "\"jobs\":null,\"idle_score\":null}");
	is("=NODES=\nx|up\n|||||\n=GRES=\nx\n=QUEUE=\n",
	    "{\"scheduler\":\"slurm\",\"partitions\":[],\"gpus\":[],"
	    "\"jobs\":null,\"idle_score\":null}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cluster_is_summed_up),
		cmocka_unit_test(what_is_not_known_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
