/*
 * Whatever a file holds, a change to it is made so that nothing else changes,
 * or refused; and what was put in can be taken out again.
 *
 * The first byte says whether the rest is JSON or TOML.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/jsonc.h"
#include "config/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const path[] = { "a", "b", NULL };
static const char *const none[] = { NULL };

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static const json_t *
member(const json_t *o)
{
	return json_object_get(json_object_get(o, "a"), "b");
}

static void
json_members(const char *text, size_t len, const json_t *value)
{
	struct err err;
	json_t *before = jsonc_decode(text, len, &err), *now;
	struct buf out, back;

	buf_init(&out, SIZE_MAX);
	buf_init(&back, SIZE_MAX);
	if (jsonc_set(&out, text, len, path, value, &err) == 0) {
		must(before != NULL);
		now = jsonc_decode(out.data, out.len, &err);
		must(json_equal(member(now), value));
		json_decref(now);
		must(jsonc_remove(&back, out.data, out.len, path, &err) == 0);
		now = jsonc_decode(back.data, back.len, &err);
		must(now != NULL && member(now) == NULL);
		json_decref(now);
	} else {
		must(out.len == 0);
	}
	json_decref(before);
	buf_free(&out);
	buf_free(&back);
}

static void
json_items(const char *text, size_t len, const json_t *value)
{
	struct err err;
	struct buf out, back;
	json_t *now;
	size_t n;

	buf_init(&out, SIZE_MAX);
	buf_init(&back, SIZE_MAX);
	if (jsonc_append(&out, text, len, none, value, &err) == 0) {
		now = jsonc_decode(out.data, out.len, &err);
		n = json_array_size(now);
		must(json_equal(json_array_get(now, n - 1), value));
		json_decref(now);
		must(jsonc_remove_item(&back, out.data, out.len, none, n - 1,
		         &err) == 0);
		buf_reset(&back);
		must(jsonc_remove_item(&back, out.data, out.len, none, 0,
		         &err) == 0);
	}
	buf_free(&out);
	buf_free(&back);
}

static void
toml_tables(const char *text, size_t len, const json_t *value)
{
	struct err err;
	struct buf out, back;
	bool had, has;

	buf_init(&out, SIZE_MAX);
	buf_init(&back, SIZE_MAX);
	if (toml_has(text, len, path, &had, &err) == 0 &&
	    toml_set(&out, text, len, path, value, &err) == 0) {
		must(toml_has(out.data, out.len, path, &has, &err) == 0);
		must(has);
		if (!had) {
			must(toml_remove(&back, out.data, out.len, path,
			         &err) == 0);
			must(back.len >= len || len == 0);
			must(memcmp(back.data, text, len) == 0);
		}
	}
	buf_reset(&back);
	if (toml_remove(&back, text, len, path, &err) == 0) {
		must(toml_has(back.data, back.len, path, &has, &err) == 0);
		must(!has);
	}
	buf_free(&out);
	buf_free(&back);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	json_t *value;

	if (size < 1)
		return 0;
	value = json_pack("{s:s, s:[s]}", "c", "x \"y\"", "d", "e\n");
	if (data[0] % 2 == 0) {
		json_members(text, size - 1, value);
		json_items(text, size - 1, value);
	} else {
		toml_tables(text, size - 1, value);
	}
	json_decref(value);
	return 0;
}
