/* What all keyrings have in common. */
#include <string.h>

#include "base/env.h"
#include "base/proc.h"
#include "config/keyring_inside.h"

/* A keyring that asks its user to unlock it must not hold up a call. */
#define PATIENCE_MS 15000
#define OUTPUT_MAX 16384

static const char digits[] = "0123456789abcdef";

void
keyring_digits(struct buf *out, const struct secret *s)
{
	size_t i, room;

	/* All the room at once: growing would leave copies behind. */
	(void)buf_space(out, 2 * s->len + 2, &room);
	for (i = 0; i < s->len; i++) {
		unsigned char c = (unsigned char)s->data[i];

		buf_addc(out, digits[c >> 4]);
		buf_addc(out, digits[c & 15]);
	}
}

static int
nibble(char c)
{
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL ? (int)(at - digits) : -1;
}

int
keyring_undigits(struct secret *out, const char *text, size_t len)
{
	struct buf b;
	size_t i, room;
	int rc = -1;

	buf_init(&b, len / 2 + 1);
	(void)buf_space(&b, len / 2 + 1, &room);
	for (i = 0; i + 1 < len; i += 2) {
		int high = nibble(text[i]), low = nibble(text[i + 1]);

		if (high == -1 || low == -1 || (high | low) == 0)
			break;
		buf_addc(&b, (char)(high << 4 | low));
	}
	if (len > 0 && i == len) {
		secret_set(out, b.data, b.len);
		rc = 0;
	}
	secret_wipe(b.data, b.cap);
	buf_free(&b);
	return rc;
}

static int
judge(const struct proc_result *res, const char *program, struct err *err)
{
	if (res->exit_code == 0)
		return 0;
	return err_set(err, ERR_DENIED, "%s refused: %.*s", program,
	    (int)strcspn(res->err.data, "\r\n"),
	    res->err.len > 0 ? res->err.data : "it gave no reason");
}

int
keyring_run(const char *const *argv, const struct buf *input, struct buf *out,
    const struct until *until, struct err *err)
{
	struct until soon = until_within(until, PATIENCE_MS);
	struct proc_request req = { .argv = argv, .max_output = OUTPUT_MAX };
	struct proc_result res;
	struct env env;
	int rc;

	env_init(&env);
	env_session(&env);
	req.env = (const char *const *)env.list;
	if (input != NULL) {
		req.input = input->data;
		req.input_len = input->len;
	}
	rc = proc_run(&req, &res, &soon, err);
	env_free(&env);
	if (rc == -1)
		return -1;
	rc = judge(&res, argv[0], err);
	if (rc == 0 && out != NULL)
		buf_add(out, res.out.data, strcspn(res.out.data, "\r\n"));
	secret_wipe(res.out.data, res.out.cap);
	proc_result_free(&res);
	return rc;
}
