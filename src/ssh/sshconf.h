/*
 * From a sandbox to what ssh is told: a configuration file and a command
 * line.  Pure but for the names of the user's files.
 *
 * Our options stand in a file, under "Host *" and before an Include of the
 * user's, because the ssh that a ProxyJump starts gets the file but none of
 * the command line.  What is meant for the target alone (its user, its port,
 * its key) stands on the command line.
 */
#ifndef SSH_SSHCONF_H
#define SSH_SSHCONF_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "config/sandbox.h"

struct sshconf {
	const char *known_hosts; /* our own file; NULL: leave host keys alone */
	const char *user_known_hosts; /* the user's, as ssh prints them */
	const char *user_config;      /* the user's, or NULL */
	const char *system_config;    /* or NULL */
	bool ask;                     /* there is somebody to answer prompts */
};

/* A pinned host key: for the target alone, so not in the file. */
struct sshconf_pin {
	const char *file;    /* known_hosts file with nothing but the key */
	const char *command; /* or a KnownHostsCommand that knows it */
};

/* Append the configuration file. */
void sshconf_file(struct buf *out, const struct sandbox *sb,
    const struct sshconf *conf);

/*
 * The command line that starts a master on "socket", as a list of strings:
 * "-F" "file", options, "--", host.
 */
json_t *sshconf_master(const struct sandbox *sb, const char *file,
    const char *socket, const struct sshconf_pin *pin);

/* The options for the target alone; also good for "ssh -G". */
void sshconf_target(json_t *argv, const struct sandbox *sb);

/* A name for the masters of this sandbox: the same for the same way in. */
void sshconf_name(const struct sandbox *sb, char out[17]);

#endif
