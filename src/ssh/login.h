/*
 * Logging in: starting an OpenSSH master with everything it needs, and
 * saying in a sentence why it did not work.
 */
#ifndef SSH_LOGIN_H
#define SSH_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/until.h"
#include "config/sandbox.h"

/*
 * Start a master for the sandbox on "socket"; it is up when this returns 0.
 * If the login remembered a new host key, "new_key" says which, else it is "".
 */
int login_start(const struct sandbox *sb, const char *runtime_dir,
    const char *socket, char *new_key, size_t new_key_size,
    const struct until *until, struct err *err);

/* What a login that failed was about, where it did not fail for what the
 * server thinks of it. */
enum login_trouble {
	LOGIN_OTHER,
	LOGIN_COMMAND,     /* one that prints a secret did not */
	LOGIN_KEY_MISSING, /* there is no such file */
	LOGIN_KEY_OPEN,    /* others can read it */
	LOGIN_PASSPHRASE_MISSING,
	LOGIN_PASSPHRASE_WRONG, /* or the server does not know the key */
};

/* By the error of login_start().  Pure. */
enum login_trouble login_trouble(const struct err *err);

/*
 * Only say hello to the server, by "ssh -v": host keys are checked as in a
 * login, but nothing is tried.  What ssh said is appended to "said", for
 * handshake_parse().
 */
struct buf;
int login_hello(const struct sandbox *sb, const char *runtime_dir,
    struct buf *said, const struct until *until, struct err *err);

/* What ssh would use for a sandbox, as "ssh -G" prints it. */
struct login_target {
	char *user;
	char *host; /* the name in prompts: HostKeyAlias, or HostName */
	char *hostname;
	int port;
	char *known_hosts; /* the user's files */
	bool proxied;      /* by a jump host or a command */
	char *control;     /* the user's own control socket, or NULL */
};

/* The path of a file of this sandbox in the runtime directory: "NAME.end".
 * Caller frees. */
char *login_path(const struct sandbox *sb, const char *runtime_dir,
    const char *end);

/* Write the configuration file for ssh, as "NAME.end"; its path, or NULL.  The
 * user's and the system's own are filled in.  Caller frees. */
struct sshconf;
char *login_write_conf(const struct sandbox *sb, const char *runtime_dir,
    struct sshconf *conf, const char *end, struct err *err);

int login_target(struct login_target *t, const struct sandbox *sb,
    const char *runtime_dir, const struct until *until, struct err *err);
void login_target_free(struct login_target *t);

/* Read what "ssh -G" printed.  Pure. */
void login_target_parse(struct login_target *t, const char *text);

#endif
