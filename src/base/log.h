/*
 * The program's log: lines on stderr, one write each, safe from any thread.
 * Only the top (mcp, cli, daemon) logs; lower layers return a struct err.
 * REMOTE_SANDBOX_LOG_LEVEL (error, warn, info, debug) picks what is shown.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

/* Set the level from a word, any case; NULL or an unknown one means "warn". */
void log_init(const char *level);

/* From now on each line begins with its time, for those that go to a file. */
void log_dated(void);

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
