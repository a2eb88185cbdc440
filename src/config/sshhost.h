/*
 * SSH_HOST, SSH_PORT and SSH_KEY_PATH: the one machine of who comes from the
 * server "remote-ssh".
 *
 * Each is taken from the environment, or else from the file .env of the
 * project.  That file is the project's and not the user's: nothing else in it
 * is read, and nothing that these three may say runs anything here.
 */
#ifndef CONFIG_SSHHOST_H
#define CONFIG_SSHHOST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct sshhost {
	char *host, *port, *key; /* NULL: not set */
	bool from_file;          /* the host is the file's */
	char *note;              /* why the file was not read, or NULL */
};

/* As the environment and the .env of this directory have them. */
void sshhost_read(struct sshhost *s, const char *dir);
void sshhost_free(struct sshhost *s);

/* Take from the text of a .env what is not set yet.  Pure. */
void sshhost_dotenv(struct sshhost *s, const char *text, size_t len);

/* Is there a host? */
bool sshhost_given(const struct sshhost *s);

/*
 * The entry of the configuration that it means, for sandbox_parse().  NULL if
 * it cannot be one.  A key file that is not there is left out, and *note says
 * so (the caller frees it).
 */
json_t *sshhost_entry(const struct sshhost *s, const char *home, char **note,
    struct err *err);

#endif
