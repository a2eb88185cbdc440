/*
 * The two halves of the doctor: this machine, and one sandbox.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <jansson.h>

#include "base/until.h"
#include "config/config.h"

/* Checks of this machine, as report_add() makes them; "config_file" as the
 * user named it, or NULL. */
json_t *doctor_here(const struct config *c, const char *config_file,
    const struct until *until);

/* Checks of a sandbox, from its name's address to its clock.  What depends on
 * a check that failed is left out. */
json_t *doctor_host(const struct sandbox *sb, const char *config_file,
    const struct until *until);

#endif
