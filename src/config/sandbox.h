/*
 * A sandbox: a machine that the user named, and how to reach it.
 *
 * Only "host" is certain.  What an entry leaves out is left to ssh and the
 * user's ssh configuration, never filled in with a default of ours.
 */
#ifndef CONFIG_SANDBOX_H
#define CONFIG_SANDBOX_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/secret.h"

enum host_key_policy { HOST_KEY_ACCEPT_NEW, HOST_KEY_STRICT };

#define SANDBOX_CONNECT_TIMEOUT_S 15
#define SANDBOX_PERSIST_S 600

struct sandbox {
	char *name; /* unique */
	char *host; /* name, address or alias of the user's ssh config */
	char *user; /* or NULL: as ssh decides */
	int port;   /* or 0: as ssh decides */
	struct secret password;
	json_t *password_command; /* argv list that prints it, or NULL */
	char *key_file;           /* "~" expanded, or NULL */
	bool other_keys;          /* those that ssh finds may be tried, too */
	struct secret key_passphrase;
	json_t *key_passphrase_command;
	char *host_key; /* public key or "SHA256:..." fingerprint, or NULL */
	enum host_key_policy host_key_policy;
	char *workdir; /* default directory of commands, or NULL */
	int connect_timeout_s;
	int control_persist_s;
	json_t *ssh_options; /* list of "Name=value", checked; or NULL */
	bool slurm;          /* a login node: jobs go to its scheduler */

	char *source;   /* where it came from, for messages */
	bool throwaway; /* its masters end with us */
	bool ssh_host;  /* it is what SSH_HOST means */
	bool named;     /* the name was given, not made from the host */
};

/*
 * Fill a sandbox from an object of the configuration.  On failure the error
 * names the field; nothing in it ever repeats a secret.  Fields that are not
 * known are appended to "unknown" (an array of their names).
 */
int sandbox_parse(struct sandbox *sb, const json_t *entry, const char *home,
    json_t *unknown, struct err *err);
void sandbox_free(struct sandbox *sb);

/*
 * The entry that sandbox_parse() would make this from, without its secrets:
 * those may be any bytes, and JSON cannot hold that.
 */
json_t *sandbox_entry(const struct sandbox *sb);

/* Where a command runs there: in "cwd", which is below the workdir if it is
 * relative, or in the workdir if it is blank; NULL: where a login begins.
 * Caller frees. */
char *sandbox_dir(const struct sandbox *sb, const char *cwd);

/* Does it hold a secret in clear? */
bool sandbox_has_secret(const struct sandbox *sb);
/* Does it name a command that is run here, to get one? */
bool sandbox_has_command(const struct sandbox *sb);

#endif
