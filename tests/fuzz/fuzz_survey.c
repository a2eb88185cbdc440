/*
 * Whatever a server or a host says to the doctor, or a file of ssh holds, what
 * is read from it is text and numbers that JSON can hold.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "config/sshnames.h"
#include "ssh/handshake.h"
#include "ssh/survey.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_json(json_t *v)
{
	char *dump = json_dumps(v, 0);

	must(dump != NULL && utf8_valid(dump, strlen(dump)));
	free(dump);
	json_decref(v);
}

static void
check_line(const char *s)
{
	must(utf8_valid(s, strlen(s)));
	must(strchr(s, '\n') == NULL && strchr(s, '\033') == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup((const char *)data, size);
	json_t *hosts = json_array(), *includes = json_array();
	struct handshake h;
	struct buf words;

	check_json(survey_parse(text));
	handshake_parse(&h, text);
	check_line(h.software);
	check_line(h.kex);
	check_line(h.host_key);
	check_line(h.methods);
	buf_init(&words, SIZE_MAX);
	handshake_words(&words, text);
	must(words.len <= strlen(text));
	buf_free(&words);
	sshnames_parse(text, hosts, includes);
	check_json(hosts);
	check_json(includes);
	free(text);
	return 0;
}
