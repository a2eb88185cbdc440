#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"

#define LINE_SIZE                                                  \
	2048 /* a write of up to 4096 to a pipe stays in one piece \
	      */

static const char *const words[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

static atomic_int shown = LOG_LEVEL_WARN;
static atomic_bool dated;

void
log_init(const char *level)
{
	int found = LOG_LEVEL_WARN;
	int i;

	for (i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++) {
		if (level != NULL && str_same(level, words[i]))
			found = i;
	}
	atomic_store(&shown, found);
}

void
log_dated(void)
{
	atomic_store(&dated, true);
}

/* What is logged may come from elsewhere: it must not start a line of its own
 * or talk to the terminal. */
static void
one_line(char *s)
{
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s < ' ' || *s == '\x7f')
			*s = ' ';
	}
}

/* Like vsnprintf(), but returns how much was written, with "..." at its end if
 * that is not all. */
static size_t __attribute__((format(printf, 3, 0)))
format(char *out, size_t size, const char *fmt, va_list ap)
{
	int n = vsnprintf(out, size, fmt, ap);
	size_t len;

	if (n < 0)
		return 0;
	one_line(out);
	if ((size_t)n < size)
		return (size_t)n;
	len = utf8_cut(out, size - 1, size - sizeof("..."));
	memcpy(out + len, "...", sizeof("..."));
	return len + strlen("...");
}

static size_t
date(char *out, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	return strftime(out, size, "%Y-%m-%d %H:%M:%S ", &tm);
}

static void __attribute__((format(printf, 2, 0)))
put(enum log_level level, const char *fmt, va_list ap)
{
	int saved = errno;
	char line[LINE_SIZE];
	size_t start, len;
	ssize_t n;

	if ((int)level > atomic_load(&shown))
		return;
	start = atomic_load(&dated) ? date(line, sizeof(line)) : 0;
	start += (size_t)snprintf(line + start, sizeof(line) - start,
	    "remote-sandbox-mcp: %s: ", words[level]);
	len = start + format(line + start, sizeof(line) - 1 - start, fmt, ap);
	line[len++] = '\n';
	do {
		n = write(STDERR_FILENO, line, len);
	} while (n == -1 && errno == EINTR);
	errno = saved;
}

void
log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(LOG_LEVEL_ERROR, fmt, ap);
	va_end(ap);
}

void
log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(LOG_LEVEL_WARN, fmt, ap);
	va_end(ap);
}

void
log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(LOG_LEVEL_INFO, fmt, ap);
	va_end(ap);
}

void
log_debug(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(LOG_LEVEL_DEBUG, fmt, ap);
	va_end(ap);
}
