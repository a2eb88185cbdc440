/*
 * Whatever a project's .env says, of it come three values at most, and a
 * sandbox only if its host is fit for ssh's command line and for a shell.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_word(const char *s)
{
	const unsigned char *c;

	must(s[0] != '\0' && s[0] != '-' && utf8_valid(s, strlen(s)));
	for (c = (const unsigned char *)s; *c != '\0'; c++)
		must(*c > ' ' && *c != 0x7f &&
		    strchr("'`\"$\\;&<>|(){}", *c) == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sshhost s = { 0 };
	struct config_sources src = { .ssh = &s, .home = "/home/ann" };
	struct config c;

	sshhost_dotenv(&s, (const char *)data, size);
	config_load(&c, &src);
	must(c.count <= 1);
	if (c.count == 1) {
		must(sshhost_given(&s) && c.sandboxes[0].ssh_host);
		check_word(c.sandboxes[0].host);
		if (c.sandboxes[0].user != NULL)
			check_word(c.sandboxes[0].user);
	}
	must(c.count == 1 || !sshhost_given(&s) ||
	    json_array_size(c.problems) == 1);
	config_free(&c);
	sshhost_free(&s);
	return 0;
}
