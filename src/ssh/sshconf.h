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

/* What is meant for the target alone, so not for the file. */
struct sshconf_extra {
	bool ask;                /* there is somebody to answer prompts */
	bool dsa;                /* the key is a DSA key */
	const char *pin_file;    /* known_hosts file with nothing but the key */
	const char *pin_command; /* or a KnownHostsCommand that knows it */
	const char *host_key_algorithms; /* or NULL: as ssh likes */
};

/* Append the configuration file. */
void sshconf_file(struct buf *out, const struct sandbox *sb,
    const struct sshconf *conf);

/*
 * The command line that starts a master on "socket", as a list of strings:
 * "-F" "file", options, "--", host.
 */
json_t *sshconf_master(const struct sandbox *sb, const char *file,
    const char *socket, const struct sshconf_extra *extra);

/*
 * The command line for a login that cannot succeed: nothing is tried.  With a
 * ProxyJump a master hides why it failed; this one tells.
 */
json_t *sshconf_diagnose(const struct sandbox *sb, const char *file,
    const struct sshconf_extra *extra);

/* The options for the target alone; also good for "ssh -G". */
void sshconf_target(json_t *argv, const struct sandbox *sb);

/* A name for the masters of this sandbox: the same for the same way in. */
void sshconf_name(const struct sandbox *sb, char out[17]);

#endif
