/* The keychain of macOS. */
#include "config/keyring_inside.h"

#include "base/mem.h"

#include <stdlib.h>

#define SECRET_MAX 16384

/* One name for the item: the keychain knows an account and a service. */
static char *
account(const struct keyring_item *item)
{
	return xasprintf("%s-%s", item->key, item->field);
}

/*
 * "security -i" reads commands from stdin, so the secret is on no command
 * line; as digits it needs no quotes.
 */
int
keyring_put(const struct keyring_item *item, const struct secret *s,
    const struct until *until, struct err *err)
{
	static const char *const argv[] = { "security", "-i", NULL };
	char *name = account(item);
	struct secret back = { 0 };
	struct buf text;
	int rc;

	buf_init(&text, SECRET_MAX);
	buf_addf(&text, "add-generic-password -U -s %s -a %s -w ",
	    KEYRING_SERVICE, name);
	keyring_digits(&text, s);
	buf_addc(&text, '\n');
	rc = keyring_run(argv, &text, NULL, until, err);
	secret_wipe(text.data, text.cap);
	buf_free(&text);
	free(name);
	/* -i ends with status 0 whatever its commands did. */
	if (rc == 0)
		rc = keyring_get(item, &back, until, err);
	if (rc == 0 && !secret_equal(&back, s))
		rc = err_set(err, ERR_DENIED,
		    "the keychain did not take the %s", item->field);
	secret_free(&back);
	return rc;
}

int
keyring_get(const struct keyring_item *item, struct secret *out,
    const struct until *until, struct err *err)
{
	char *name = account(item);
	const char *argv[] = { "security", "find-generic-password", "-s",
		KEYRING_SERVICE, "-a", name, "-w", NULL };
	struct buf text;
	int rc;

	buf_init(&text, SECRET_MAX);
	rc = keyring_run(argv, NULL, &text, until, err);
	if (rc == 0 && keyring_undigits(out, text.data, text.len) == -1)
		rc = err_set(err, ERR_NOT_FOUND,
		    "the keychain holds no %s for this sandbox", item->field);
	secret_wipe(text.data, text.cap);
	buf_free(&text);
	free(name);
	return rc;
}

void
keyring_drop(const struct keyring_item *item, const struct until *until)
{
	char *name = account(item);
	const char *argv[] = { "security", "delete-generic-password", "-s",
		KEYRING_SERVICE, "-a", name, NULL };
	struct err err;

	(void)keyring_run(argv, NULL, NULL, until, &err);
	free(name);
}
