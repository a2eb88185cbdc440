/*
 * The configuration: which sandboxes there are.
 *
 * Sources, in this order: REMOTE_SANDBOX_LIST, or REMOTE_HOST and its
 * companions; then the configuration file; then SSH_HOST.  A broken entry is
 * left out and told about; it never stops the others, nor the server.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "config/sandbox.h"
#include "config/sshhost.h"

#define CONFIG_FILE_MAX ((size_t)1 << 20)
#define CONFIG_SANDBOXES_MAX 1000

/* What the sources are; every pointer may be NULL: not set. */
struct config_sources {
	const char *list;                          /* REMOTE_SANDBOX_LIST */
	const char *host, *port, *user, *password; /* REMOTE_HOST ... */
	const char *key_file, *key_passphrase;
	const char *file; /* path of the configuration file */
	bool file_named;  /* the user named it: it has to exist */
	const char *home;
	const json_t *first; /* an entry to come before all others, or NULL */
	const struct sshhost *ssh; /* SSH_HOST ... */
};

struct config {
	struct sandbox *sandboxes;
	size_t count;
	json_t *problems; /* sentences: what was left out and why */
	json_t *notes;    /* sentences: what may surprise */
	/* The problem of what would have come before the first sandbox, which
	 * is not the one that was meant then; or NULL.  One of the problems. */
	const char *no_default;
	bool list_set; /* for the diagnostics of list_sandboxes */
	size_t list_length;
	bool host_set;
	bool ssh_host_set;
};

/* The sources as the environment has them, but for "first" and "ssh"; "file"
 * from --config or NULL. */
void config_sources(struct config_sources *src, const char *file, char **path);

/* Take the variables that may hold a secret out of our environment, so that no
 * child inherits them.  After config_load(), before there are threads. */
void config_forget_env(void);

/* Never fails: what is wrong is in "problems". */
void config_load(struct config *c, const struct config_sources *src);
void config_free(struct config *c);

/* The sandbox of this name, or NULL. */
const struct sandbox *config_find(const struct config *c, const char *name);

/*
 * The same, as a tool needs it: "name" may be NULL or "" for "active".  The
 * error says which sandboxes there are, or what is wrong with the
 * configuration and how to mend it.
 */
const struct sandbox *config_pick(const struct config *c, const char *name,
    const char *active, struct err *err);

/* The sandbox of SSH_HOST; if that is not set, "active".  The error as above.
 */
const struct sandbox *config_pick_ssh_host(const struct config *c,
    const char *active, struct err *err);

/* What others can do with where an entry comes from, both perhaps: no secret
 * may stand where they read, no command where they write.  Of a file of another
 * user, that one can. */
enum config_open {
	CONFIG_OURS = 0,
	CONFIG_READABLE = 1,
	CONFIG_WRITABLE = 2,
};

/* Add the entries of a JSON text (an array, or an object with "sandboxes").
 * "where" names it in messages. */
void config_add_list(struct config *c, const char *text, size_t len,
    const char *where, const char *home, unsigned open);

#endif
