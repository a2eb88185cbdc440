/* What cmocka wants included before itself, it, and a check for JSON. */
#ifndef UNIT_TEST_H
#define UNIT_TEST_H

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static inline void
is_json(const json_t *made, const char *expected)
{
	json_t *e = json_loads(expected,
	    JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	char *text;

	if (e == NULL)
		fail_msg("the test's JSON is wrong: %s", expected);
	assert_non_null(made);
	if (!json_equal(made, e)) {
		text = json_dumps(made, JSON_INDENT(2) | JSON_ENCODE_ANY);
		fail_msg("this is not what was expected:\n%s", text);
		free(text);
	}
	json_decref(e);
}

#endif
