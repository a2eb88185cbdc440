/* The keyring of libsecret (GNOME Keyring, KWallet, KeePassXC). */
#include "config/keyring_inside.h"

#include <string.h>

#define SECRET_MAX 16384

int
keyring_put(const struct keyring_item *item, const struct secret *s,
    const struct until *until, struct err *err)
{
	const char *argv[] = { "secret-tool", "store", "--label", item->label,
		"service", KEYRING_SERVICE, "key", item->key, "field",
		item->field, NULL };
	struct buf text;
	int rc;

	buf_init(&text, SECRET_MAX);
	keyring_digits(&text, s);
	rc = keyring_run(argv, &text, NULL, until, err);
	secret_wipe(text.data, text.cap);
	buf_free(&text);
	return rc;
}

int
keyring_get(const struct keyring_item *item, struct secret *out,
    const struct until *until, struct err *err)
{
	const char *argv[] = { "secret-tool", "lookup", "service",
		KEYRING_SERVICE, "key", item->key, "field", item->field, NULL };
	struct buf text;
	int rc;

	buf_init(&text, SECRET_MAX);
	rc = keyring_run(argv, NULL, &text, until, err);
	if (rc == 0 && keyring_undigits(out, text.data, text.len) == -1)
		rc = err_set(err, ERR_NOT_FOUND,
		    "the keyring holds no %s for this sandbox", item->field);
	secret_wipe(text.data, text.cap);
	buf_free(&text);
	return rc;
}

void
keyring_drop(const struct keyring_item *item, const struct until *until)
{
	const char *argv[] = { "secret-tool", "clear", "service",
		KEYRING_SERVICE, "key", item->key, "field", item->field, NULL };
	struct err err;

	(void)keyring_run(argv, NULL, NULL, until, &err);
}
