#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

/* Words of a host may be among a sentence's: it does nothing to a terminal.
 * C1 controls are two bytes in UTF-8. */
static void
disarm(char *s)
{
	unsigned char last = 0;

	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
			*s = '?';
		else if (last == 0xc2 && c < 0xa0)
			s[-1] = *s = '?';
		last = c;
	}
}

/*
 * Format into "out"; what does not fit is cut between characters and "..."
 * put in its place.  Returns the length.
 */
static size_t __attribute__((format(printf, 3, 0)))
compose(char *out, size_t size, const char *fmt, va_list ap)
{
	int n = vsnprintf(out, size, fmt, ap);
	size_t len;

	if (n < 0)
		out[0] = '\0';
	disarm(out);
	if (n >= 0 && (size_t)n < size)
		return (size_t)n;
	len = utf8_cut(out, strnlen(out, size - 1), size - sizeof("..."));
	memcpy(out + len, "...", sizeof("..."));
	return len + strlen("...");
}

/* strerror_r() returns the text in glibc with _GNU_SOURCE and an int
 * everywhere else. */
static __attribute__((unused)) const char *
text_of_string(const char *said, const char *space)
{
	(void)space;
	return said;
}

static __attribute__((unused)) const char *
text_of_int(int failed, const char *space)
{
	return failed ? "unknown error" : space;
}

static const char *
errno_text(int number, char *space, size_t size)
{
	return _Generic(strerror_r(number, space, size),
	    char *: text_of_string,
	    int: text_of_int)(strerror_r(number, space, size), space);
}

static enum err_code
errno_code(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR:
		return ERR_NOT_FOUND;
	case EACCES:
	case EPERM:
	case EROFS:
		return ERR_DENIED;
	default:
		return ERR_IO;
	}
}

/* The sentence is made aside first: its arguments may be err's old one. */

int
err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	char msg[ERR_MSG_SIZE];
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	len = compose(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	memcpy(err->msg, msg, len + 1);
	err->code = code;
	return -1;
}

int
err_sys(struct err *err, const char *fmt, ...)
{
	int number = errno;
	char space[128];
	char msg[ERR_MSG_SIZE];
	const char *why = errno_text(number, space, sizeof(space));
	size_t why_len = strnlen(why, sizeof(space));
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	len = compose(msg, sizeof(msg) - strlen(": ") - why_len, fmt, ap);
	va_end(ap);
	memcpy(err->msg, msg, len);
	snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", why);
	err->code = errno_code(number);
	errno = number;
	return -1;
}

int
err_wrap(struct err *err, const char *fmt, ...)
{
	char context[ERR_MSG_SIZE];
	va_list ap;

	va_start(ap, fmt);
	compose(context, sizeof(context), fmt, ap);
	va_end(ap);
	return err_set(err, err->code, "%s: %s", context, err->msg);
}
