#include "base/rate.h"

#define LOOK_MS 100    /* less is noise */
#define SMOOTH_MS 3000 /* what is older than this hardly counts */
#define LEFT_MAX 31536000.0
#define RATE_MAX 1e18 /* fits into an int64_t */

void
rate_look(struct rate *r, int64_t now, int64_t done)
{
	int64_t passed = now - r->time;
	double current, weight;

	if (r->time == 0 || done < r->done || passed < 0) {
		*r = (struct rate){ .time = now, .done = done };
		return;
	}
	if (passed < LOOK_MS)
		return;
	current = (double)(done - r->done) * 1000.0 / (double)passed;
	weight = (double)passed / (double)(passed + SMOOTH_MS);
	if (r->per_second <= 0)
		weight = 1;
	r->per_second += (current - r->per_second) * weight;
	r->time = now;
	r->done = done;
}

int64_t
rate_per_second(const struct rate *r)
{
	return (int64_t)(r->per_second < RATE_MAX ? r->per_second : RATE_MAX);
}

int64_t
rate_left_s(const struct rate *r, int64_t total)
{
	double left;

	if (r->done >= total)
		return 0;
	if (r->per_second < 1)
		return -1;
	left = (double)(total - r->done) / r->per_second;
	return left > LEFT_MAX ? -1 : (int64_t)left + 1;
}
