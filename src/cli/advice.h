/* Commands of this program, for people to copy. */
#ifndef CLI_ADVICE_H
#define CLI_ADVICE_H

#include "config/sandbox.h"

/*
 * "config_file" is what the user named, or NULL.  Caller frees.
 */

/* Make the workdir of a sandbox.  By us, since a plain ssh knows neither the
 * key nor the host key of the entry. */
char *advice_mkdir(const struct sandbox *sb, const char *config_file);

/* Add a sandbox. */
char *advice_setup(const char *config_file);

#endif
