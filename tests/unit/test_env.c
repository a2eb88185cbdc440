#include "base/env.h"
#include "help.h"

static struct env env;

static int
begin(void **state)
{
	(void)state;
	clearenv();
	setenv("FIRST", "1", 1);
	setenv("SECOND", "a=b", 1);
	env_init(&env);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	env_free(&env);
	return 0;
}

static void
it_begins_with_ours(void **state)
{
	(void)state;
	assert_string_equal(env_get(&env, "FIRST"), "1");
	assert_string_equal(env_get(&env, "SECOND"), "a=b");
	assert_null(env_get(&env, "FIRS"));
	assert_int_equal(env.count, 2);
	assert_null(env.list[2]);
}

static void
a_variable_is_there_once(void **state)
{
	(void)state;
	env_set(&env, "FIRST", "2");
	env_set(&env, "THIRD", "");
	assert_int_equal(env.count, 3);
	assert_null(env.list[3]);
	assert_string_equal(env_get(&env, "FIRST"), "2");
	assert_string_equal(env_get(&env, "THIRD"), "");
	assert_string_equal(getenv("FIRST"), "1");
}

static void
null_removes(void **state)
{
	(void)state;
	env_set(&env, "FIRST", NULL);
	env_set(&env, "NEVER", NULL);
	assert_null(env_get(&env, "FIRST"));
	assert_int_equal(env.count, 1);
	assert_null(env.list[1]);
}

static void
a_session_that_is_named_stays(void **state)
{
	(void)state;
	env_set(&env, "XDG_RUNTIME_DIR", "/mine");
	env_session(&env);
	assert_string_equal(env_get(&env, "XDG_RUNTIME_DIR"), "/mine");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_begins_with_ours, begin,
		    end),
		cmocka_unit_test_setup_teardown(a_variable_is_there_once, begin,
		    end),
		cmocka_unit_test_setup_teardown(null_removes, begin, end),
		cmocka_unit_test_setup_teardown(a_session_that_is_named_stays,
		    begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
