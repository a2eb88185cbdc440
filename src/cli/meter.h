/*
 * How far a sync is, for a person: a bar that is drawn anew on a terminal,
 * lines now and then elsewhere.
 */
#ifndef CLI_METER_H
#define CLI_METER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "sync/sync.h"

struct meter {
	FILE *out;
	bool terminal;
	int64_t next_ms; /* when it may be drawn again */
	bool drawn;      /* there is a bar on the line */
	char phase[24];
};

void meter_init(struct meter *m, FILE *out, bool terminal);
void meter_show(struct meter *m, const struct sync_progress *p);
/* The bar vanishes. */
void meter_end(struct meter *m);

/* "1.4 GB": decimal, at most four figures. */
void meter_bytes(struct buf *out, int64_t n);
/* "1:02:03" or "2:03". */
void meter_time(struct buf *out, int64_t seconds);
/* One line of at most "width" characters: bar, files, bytes, rate, time
 * left, path. */
void meter_line(struct buf *out, const struct sync_progress *p, size_t width);

#endif
