/*
 * What the watchdog needs to log in while nobody is there.
 *
 * A server keeps a record for each sandbox that a watch is on: a file of its
 * own in the directory "kept" of the state directory, named after the machine
 * that is meant.  So servers with different lists do not overwrite each
 * other, not even if they give one name to two machines.
 *
 * A record holds no secret if a key file, an agent, a command or ssh's own
 * configuration does the login.  A password or passphrase in clear goes to
 * the keyring, and only where there is none into the record, with a warning.
 */
#ifndef CONFIG_KEEP_H
#define CONFIG_KEEP_H

#include <jansson.h>

#include "base/err.h"
#include "base/until.h"
#include "config/sandbox.h"

#define KEEP_KEY_SIZE 17

enum keep_place {
	KEEP_NOTHING, /* there is no secret to keep */
	KEEP_KEYRING,
	KEEP_FILE,
};

struct kept {
	char key[KEEP_KEY_SIZE]; /* names the record */
	char *path;              /* of the record */
	enum keep_place place;   /* of its secrets */
	char *warning;           /* what the user should know, or NULL */
};

void kept_free(struct kept *k);
/* {config_path, sandbox_count, key, secrets, warning}: what tools show. */
json_t *kept_json(const struct kept *k);

/* The name of a sandbox's record: 16 digits of its name and the machine. */
void keep_key(const struct sandbox *sb, char out[KEEP_KEY_SIZE]);

/* Make or renew the record of a sandbox.  kept_free() it in every case. */
int keep_put(const struct sandbox *sb, struct kept *out,
    const struct until *until, struct err *err);

/*
 * The sandbox to log in to, with its secrets.  By its record's key; if that is
 * NULL or "", by name: the newest record, the user's configuration file, the
 * config.json of the earlier Python server.  ERR_NOT_FOUND if none has it.
 * sandbox_free() it in every case.
 */
int keep_get(const char *key, const char *name, struct sandbox *sb,
    const struct until *until, struct err *err);

/* A file that is asked before the other two, as "daemon --config" names it.
 * Before there are threads; the path must stay. */
void keep_use_file(const char *path);

/* Sentences about secrets that are in a file of ours, for who looks after
 * the machine.  A new array. */
json_t *keep_warnings(void);

/* The record of the login with this key file, which is no other's; false if
 * there is none. */
bool keep_find(const char *key_file, char key[KEEP_KEY_SIZE]);

/* Remove a record, and its secrets from the keyring; -1 if it is still there.
 */
int keep_drop(const char *key, const struct until *until, struct err *err);

/* Remove all records, and their secrets from the keyring; how many. */
int keep_drop_all(const struct until *until, struct err *err);

#endif
