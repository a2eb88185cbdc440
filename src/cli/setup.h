/*
 * Setting up: what was asked for, and its two halves.
 */
#ifndef CLI_SETUP_H
#define CLI_SETUP_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/until.h"
#include "cli/change.h"

struct setup {
	json_t *entry;           /* of the sandbox to add, or NULL */
	const char *sandbox;     /* name of the one to remove, or NULL */
	json_t *clients;         /* names to register with, or NULL: ask */
	const char *config_file; /* as the user named it, or NULL */
	const char *server_name; /* for the clients */
	const char *command;     /* what they are to start, or NULL: us */
	const char *home;
	bool dry_run, remove, no_test;
	bool no_client; /* all that are here were meant, and none is */
	bool ask;       /* there is somebody to ask */
	struct until until;
};

/* Make a change, or only show it; says what was done.  "what" names it. */
int setup_change(const struct setup *s, const struct change *c,
    const char *what, struct err *err);

/* Ask for a line.  NULL at the end of input, or after a signal; caller frees.
 */
char *setup_ask(const struct setup *s, const char *prompt);
/* Ask; an empty answer is "dflt". */
bool setup_yes(const struct setup *s, const char *prompt, bool dflt);

/* Add the sandbox to the configuration file, once it has been tested. */
int setup_sandbox(struct setup *s, struct err *err);
/* Can the machine be reached?  Or the user wants it nevertheless. */
int setup_test(const struct setup *s, struct err *err);
/* Take it out again. */
int setup_forget_sandbox(const struct setup *s, struct err *err);
/* A path from where we are, as one from everywhere; caller frees. */
char *setup_whole_path(const char *path);
/* Is the configuration file one that can be changed? */
int setup_look_at_config(const struct setup *s, struct err *err);
/* The path of the configuration file; caller frees. */
char *setup_config_path(const struct setup *s, struct err *err);
/* Let the user choose a machine: s->entry, or NULL for none. */
int setup_choose_sandbox(struct setup *s, struct err *err);
/* The entry for "[user@]host[:port]". */
json_t *setup_parse_host(const char *text, struct err *err);

/* Register with the clients, or end that. */
int setup_clients(const struct setup *s, struct err *err);
/* Let the user choose some: s->clients. */
void setup_choose_clients(struct setup *s);

#endif
