/*
 * The programs that use MCP servers, and how each learns of one: by its own
 * command, or by its configuration file.
 */
#ifndef CLI_CLIENTS_H
#define CLI_CLIENTS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/until.h"
#include "cli/change.h"

struct client {
	const char *name;    /* for --client */
	const char *title;   /* for people */
	const char *program; /* tells that it is there */
	const char *dir;     /* so does this one, in the home directory */
	/* Where its configuration is.  Caller frees. */
	char *(*file)(const char *home);
	const char *section; /* its list of servers; NULL: it is TOML */
	bool typed;          /* entries say "type": "stdio" */
	bool own_command;    /* PROGRAM mcp add, if it is there */
	bool no_agent;       /* starts servers without SSH_AUTH_SOCK */
	const char *then;    /* what the user does next */
};

/* Ends with an entry without a name. */
extern const struct client client_table[];

const struct client *client_find(const char *name);

/* What a client is told. */
struct server_entry {
	const char *name;
	const char *command;
	json_t *args; /* a list of strings */
};

/* Is the client on this machine? */
bool client_there(const struct client *c, const char *home);

/* The path of a program, by PATH; NULL if there is none.  Caller frees. */
char *client_which(const char *program);

/* The change to its file that makes it know the server, or forget it.
 * change_free() it in every case. */
int client_change(const struct client *c, const char *home,
    const struct server_entry *e, bool forget, struct change *out,
    struct err *err);

/* Does its file, as the change found it, know a server of that name? */
bool client_knows(const struct client *c, const struct server_entry *e,
    const struct change *ch);

/* The same by its own command; it neither adds what it knows nor changes what
 * it has.  client_command_line() is what is run, for people; caller frees. */
char *client_command_line(const struct client *c, const struct server_entry *e,
    bool forget);
int client_command(const struct client *c, const struct server_entry *e,
    bool forget, const struct until *until, struct err *err);

#endif
