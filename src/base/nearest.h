/*
 * "Did you mean": which of some known names a given one stands for.  Pure.
 *
 *	nearest_init(&n, given, NEAREST_SLIP);
 *	for (each known name)
 *		nearest_try(&n, name);
 *	n.best is the one that was meant, or NULL
 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stdbool.h>

/* How much a name may differ from the one that was meant; case, '-' and '_'
 * never count. */
enum nearest_most {
	/* Hardly anything else can be meant: one letter too many, too few or
	 * another, two swapped, or what comes behind a '_' left out, such as
	 * a unit. */
	NEAREST_SLIP,
	/* Likely meant, where nothing hangs on it: up to three letters. */
	NEAREST_GUESS,
};

/* Are they the same, but for case, '-' and '_'? */
bool nearest_same(const char *a, const char *b);

struct nearest {
	const char *best; /* the first of those that are equally near */
	const char *given;
	unsigned cost; /* of the best; without one, of the first too far */
};

/* "given" and the names are borrowed. */
void nearest_init(struct nearest *n, const char *given, enum nearest_most most);
void nearest_try(struct nearest *n, const char *known);

#endif
