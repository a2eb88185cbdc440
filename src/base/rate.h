/*
 * How fast something goes, and how long it will take.  Pure.
 */
#ifndef BASE_RATE_H
#define BASE_RATE_H

#include <stdint.h>

struct rate {
	int64_t time, done; /* at the last look; time 0: none yet */
	double per_second;  /* smoothed over some seconds */
};

/* "done" so far, at clock_ms() "now".  Looks that come too close upon each
 * other are kept together. */
void rate_look(struct rate *r, int64_t now, int64_t done);

/* Per second; 0 while it is not known, or nothing moves. */
int64_t rate_per_second(const struct rate *r);

/* Seconds until "total" is reached, rounded up; -1 if nobody knows. */
int64_t rate_left_s(const struct rate *r, int64_t total);

#endif
