/*
 * The keyring of the user's session, by its own program: secret-tool of
 * libsecret, security of macOS.  A secret goes there on stdin.
 */
#ifndef CONFIG_KEYRING_H
#define CONFIG_KEYRING_H

#include "base/err.h"
#include "base/secret.h"
#include "base/until.h"

/* What a person who looks into the keyring sees. */
#define KEYRING_SERVICE "remote-sandbox-mcp"

/* Which secret is meant. */
struct keyring_item {
	const char *key;   /* digits and letters */
	const char *field; /* "password", ... */
	const char *label; /* for people */
};

/* ERR_NOT_FOUND if there is no such program, ERR_DENIED if it refuses, for
 * example because no keyring is unlocked. */
int keyring_put(const struct keyring_item *item, const struct secret *s,
    const struct until *until, struct err *err);
int keyring_get(const struct keyring_item *item, struct secret *out,
    const struct until *until, struct err *err);
/* It not being there is no failure. */
void keyring_drop(const struct keyring_item *item, const struct until *until);

#endif
