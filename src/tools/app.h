/*
 * What the tools of one process share: the configuration, the links, and
 * which sandbox is the default.
 */
#ifndef TOOLS_APP_H
#define TOOLS_APP_H

#include <pthread.h>

#include "base/err.h"
#include "config/config.h"
#include "ssh/link.h"

struct app {
	struct config config; /* does not change after start */
	struct links *links;
	pthread_mutex_t lock;
	const struct sandbox *active; /* under the lock; NULL: none */
};

/*
 * Load the configuration; "config_file" is what the user named, or NULL.
 * "first" is an entry to come before all others, or NULL; "brief" says that
 * only a call or two will come.
 */
struct app *app_new(const char *config_file, const json_t *first, bool brief);
/* The same with nothing but this entry. */
struct app *app_new_only(const json_t *entry);
void app_free(struct app *app);

/* Is one of its sandboxes a cluster? */
bool app_has_cluster(const struct app *app);

/* The sandbox a tool was asked for; "" or NULL is the active one. */
const struct sandbox *app_sandbox(struct app *app, const char *name,
    struct err *err);

/* The one of SSH_HOST; the active one if that is not set. */
const struct sandbox *app_ssh_host(struct app *app, struct err *err);

const struct sandbox *app_active(struct app *app);
void app_select(struct app *app, const struct sandbox *sb);

#endif
