/* Hosts that say nothing. */
#include "sync/silence.h"

#include <stdlib.h>

#include "base/str.h"
#include "ssh/sftp.h"

#define SILENCE_ENV "REMOTE_SANDBOX_SYNC_SILENCE_S"
#define SILENCE_S 300
#define SILENCE_MAX_S 86400

int64_t
silence_ms(void)
{
	const char *text = getenv(SILENCE_ENV);
	int64_t s;

	if (text == NULL || str_to_int(text, 1, SILENCE_MAX_S, &s) == -1)
		s = SILENCE_S;
	return s * 1000;
}

struct stream *
silence_stream(struct link *link, const char *script, const struct until *until,
    struct err *err)
{
	struct stream *s = stream_open(link, script, until, err);

	if (s != NULL)
		stream_patience(s, silence_ms());
	return s;
}

struct sftp *
silence_sftp(struct link *link, const struct until *until, struct err *err)
{
	struct sftp *s = link_sftp(link, until, err);

	if (s != NULL)
		sftp_patience(s, silence_ms());
	return s;
}
