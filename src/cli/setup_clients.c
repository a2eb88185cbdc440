/* Setting up: the clients. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/self.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/clients.h"
#include "cli/setup.h"

/*
 * What clients are to start: the name by which PATH finds us, if it is us, as
 * that one outlives an update; else where we are.
 */
static char *
own_command(void)
{
	char *self = self_path(), *named, *real;

	if (self == NULL)
		return NULL;
	named = client_which("remote-sandbox-mcp");
	real = named != NULL ? realpath(named, NULL) : NULL;
	if (real != NULL && strcmp(real, self) == 0) {
		free(self);
		self = xstrdup(named);
	}
	free(named);
	free(real);
	return self;
}

/* The arguments: none, unless the configuration is somewhere special.  Clients
 * do not hand their environment on. */
static json_t *
own_args(const struct setup *s, struct err *err)
{
	char *path = setup_config_path(s, err), *usual;
	json_t *args;

	if (path == NULL)
		return NULL;
	usual = path_join(s->home, ".config/remote-sandbox-mcp/config.json");
	args = strcmp(path, usual) == 0
	    ? json_array()
	    : json_pack("[sss]", "serve", "--config", path);
	free(usual);
	free(path);
	return args;
}

/* By its own command, if it has one and there is nothing of the user's to be
 * kept; the change to its file tells whether there is anything to do. */
static int
by_command(const struct setup *s, const struct client *c,
    const struct server_entry *e, struct err *err)
{
	char *line = client_command_line(c, e, s->remove);
	int rc = 0;

	if (s->dry_run) {
		printf("%s: would run: %s\n", c->title, line);
	} else {
		printf("%s: running: %s\n", c->title, line);
		fflush(stdout);
		rc = client_command(c, e, s->remove, &s->until, err);
	}
	free(line);
	return rc;
}

static int
one_client(const struct setup *s, const struct client *c,
    const struct server_entry *e, struct err *err)
{
	char *program = c->own_command ? client_which(c->program) : NULL;
	struct change ch;
	int rc = client_change(c, s->home, e, s->remove, &ch, err);
	bool needed = rc == 0 && change_needed(&ch);

	if (needed && program != NULL &&
	    (s->remove || !client_knows(c, e, &ch)))
		rc = by_command(s, c, e, err);
	else if (rc == 0)
		rc = setup_change(s, &ch, c->title, err);
	if (rc == 0 && needed && !s->remove && !s->dry_run)
		printf("  %s\n", c->then);
	change_free(&ch);
	free(program);
	return rc;
}

static void
tell_no_client(void)
{
	const struct client *c;

	printf("No client was found on this machine; --client registers with "
	       "one all the same:");
	for (c = client_table; c->name != NULL; c++)
		printf(" %s%s", c->name, c[1].name != NULL ? "," : ".\n");
}

int
setup_clients(const struct setup *s, struct err *err)
{
	char *self = s->command != NULL ? xstrdup(s->command) : own_command();
	struct server_entry e = { .name = s->server_name, .command = self };
	const json_t *name;
	size_t i, wrong = 0;

	if (s->no_client)
		tell_no_client();
	if (self == NULL)
		return err_set(err, ERR_NOT_FOUND,
		    "cannot find our own program; name it by --command");
	if (!utf8_valid(self, strlen(self)) ||
	    !utf8_valid(e.name, strlen(e.name))) {
		free(self);
		return err_set(err, ERR_INVALID,
		    "the program's path and --server-name must be UTF-8, as "
		    "the clients' files are; name another path by --command");
	}
	e.args = own_args(s, err);
	if (e.args == NULL) {
		free(self);
		return -1;
	}
	/* One that cannot be changed does not keep the others from it. */
	json_array_foreach (s->clients, i, name) {
		const struct client *c = client_find(json_string_value(name));
		struct err why;

		if (one_client(s, c, &e, &why) == 0)
			continue;
		log_error("%s: %s", c->title, why.msg);
		wrong++;
	}
	json_decref(e.args);
	free(self);
	return wrong == 0 ? 0
	                  : err_set(err, ERR_IO,
	                        "%zu of %zu clients stayed as "
	                        "they were",
	                        wrong, json_array_size(s->clients));
}

void
setup_choose_clients(struct setup *s)
{
	const struct client *c;
	char *prompt;

	s->clients = json_array();
	s->no_client = true;
	for (c = client_table; c->name != NULL; c++) {
		if (!client_there(c, s->home))
			continue;
		s->no_client = false;
		prompt = xasprintf("%s %s?",
		    s->remove ? "Remove the server from" : "Register with",
		    c->title);
		if (setup_yes(s, prompt, true))
			json_array_append_new(s->clients, json_string(c->name));
		free(prompt);
	}
}
