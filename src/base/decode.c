/* JSON from outside. */
#include "base/decode.h"

#include <stdbool.h>
#include <string.h>

static int
guard(const char *text, size_t len, struct err *err)
{
	size_t values = 0, depth = 0, i;
	bool in_string = false;

	for (i = 0; i < len; i++) {
		char c = text[i];

		/* jansson reads over one that stands behind a number. */
		if (c == '\0')
			return err_set(err, ERR_INVALID,
			    "not valid JSON: it holds a NUL byte");
		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			continue;
		}
		if (c == '"')
			in_string = true;
		else if (c == '[' || c == '{') {
			depth++;
			values++;
		} else if (c == ']' || c == '}')
			depth -= depth > 0;
		else if (c == ',')
			values++;
		if (depth > DECODE_DEPTH_MAX)
			return err_set(err, ERR_LIMIT,
			    "JSON is nested deeper than %d levels",
			    DECODE_DEPTH_MAX);
		if (values > DECODE_VALUES_MAX)
			return err_set(err, ERR_LIMIT,
			    "JSON holds more than %d values",
			    DECODE_VALUES_MAX);
	}
	return 0;
}

/* Cut a message of jansson's before it repeats the text. */
static void
hide_quoted(char *msg)
{
	static const char *const before[] = { " near '", " escape '", " '\\",
		NULL };
	size_t i;

	for (i = 0; before[i] != NULL; i++) {
		char *at = strstr(msg, before[i]);

		if (at != NULL)
			*at = '\0';
	}
}

json_t *
decode_json(const char *text, size_t len, struct err *err)
{
	json_error_t je;
	json_t *v;

	if (guard(text, len, err) == -1)
		return NULL;
	v = json_loadb(text, len,
	    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &je);
	if (v == NULL) {
		/* jansson repeats pieces of the text in single quotes; what it
		 * quotes of its own ("'}' expected") is short. */
		hide_quoted(je.text);
		err_set(err, ERR_INVALID,
		    "not valid JSON: %s (line %d, column %d)", je.text, je.line,
		    je.column);
	}
	return v;
}

const char *
decode_text(const json_t *v)
{
	const char *s = json_string_value(v);

	if (s == NULL || strlen(s) != json_string_length(v))
		return NULL;
	return s;
}
