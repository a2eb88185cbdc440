/*
 * What the person at this machine allows the watchdog to do here: run local
 * commands on events, call webhooks in private networks; and the secret that
 * webhooks are signed with.
 *
 * It is allowed by the environment of the server or by the configuration
 * file.  The watchdog does not have the server's environment, so what that
 * allows is remembered in the state directory when a watch is made.  A "false"
 * in the configuration file wins over all.
 */
#ifndef CONFIG_ALLOW_H
#define CONFIG_ALLOW_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/secret.h"

#define ALLOW_COMMAND_ENV "REMOTE_SANDBOX_ALLOW_EVENT_COMMAND"
#define ALLOW_PRIVATE_ENV "REMOTE_SANDBOX_ALLOW_PRIVATE_WEBHOOKS"

struct allow {
	bool event_command;
	bool private_webhooks; /* loopback and private addresses */
	struct secret webhook_secret;
	json_t *webhook_secret_command; /* argv list that prints it, or NULL */
	bool unread; /* the configuration file is there, and cannot be read */
	bool secret_refused; /* it names one, and others can write it */
};

/*
 * Never fails: what cannot be read allows nothing.  allow_free() it.  What the
 * environment of another server allowed is for the watchdog: a server goes by
 * its own.
 */
void allow_load(struct allow *a, bool watchdog);
void allow_free(struct allow *a);

/* Let the watchdog know what our environment allows. */
int allow_remember(struct err *err);

/* Forget what was remembered. */
void allow_forget(void);

/* ERR_DENIED, with what a person has to do, unless local commands may run. */
int allow_check_command(const struct allow *a, const char *argument,
    struct err *err);

#endif
