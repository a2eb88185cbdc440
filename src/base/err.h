/*
 * Why something failed: a code for the program, a sentence for the reader.
 *
 * The caller owns the struct, usually on its stack; nothing is allocated.
 * Functions that can fail take one last, return -1 (or NULL) and fill it, and
 * leave it alone when they succeed.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#define ERR_MSG_SIZE 1024

enum err_code {
	ERR_NONE,
	ERR_INVALID,   /* the caller gave something that cannot be used */
	ERR_NOT_FOUND, /* what was named does not exist */
	ERR_DENIED,    /* it exists, but we may not */
	ERR_IO,        /* the system or the network said no */
	ERR_LIMIT,     /* larger or more than we are willing to take */
	ERR_TIMEOUT,   /* the deadline of the until passed */
	ERR_CANCELLED, /* whoever asked no longer wants it */
};

struct err {
	enum err_code code;
	char msg[ERR_MSG_SIZE];
};

#define ERR_INIT             \
	{                    \
		ERR_NONE, "" \
	}

/*
 * Record a failure.  Always returns -1, so "return err_set(...)" reads well.
 * A message that is too long ends in "...", cut between characters.
 */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * The same for a failed system call: appends ": " and the text of errno, which
 * stays whole if the message is too long, and picks the code: NOT_FOUND, DENIED
 * or IO.  Keeps errno.
 */
int err_sys(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Put context and ": " in front of the message already there.  Returns -1. */
int err_wrap(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
