/*
 * What a tool takes and gives back, as tables.
 *
 * An argument table is the single source of a tool's JSON Schema, of the
 * validation and binding of what a client sends, and of the manual page.  An
 * output table describes the fields of the result in the same way.
 *
 * Clients are not exact, so binding is lenient: null means absent, "5" and 5.0
 * are integers, "yes" is a boolean, a list or an object may come as JSON text,
 * and a string is a list of one.  Clients add arguments of their own, so
 * unknown ones are ignored.  One that is a slip for a known one is refused,
 * though: who writes "dryrun" must not get the deed in place of the rehearsal.
 * So is every unknown one inside an object, where no client adds any.
 */
#ifndef TOOLS_ARG_H
#define TOOLS_ARG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum arg_type {
	ARG_END,     /* behind the last one */
	ARG_STRING,  /* const char *; NULL if absent without a default */
	ARG_INT,     /* int64_t */
	ARG_NUMBER,  /* double */
	ARG_BOOL,    /* bool */
	ARG_ENUM,    /* int: place in "choices"; -1 if absent, no default */
	ARG_STRINGS, /* json_t *: array of strings; NULL if absent or "" */
	ARG_MAP,     /* json_t *: object of strings; NULL if absent */
	ARG_OBJECT,  /* a struct with its own table in "fields" */
	ARG_JSON,    /* json_t *: any object; NULL if absent or "" */
};

struct arg {
	const char *name;
	enum arg_type type;
	size_t offset;    /* of the field in the tool's argument struct */
	const char *help; /* one sentence */
	bool required;
	bool unsaid;                /* INT: the default stands for "absent",
	                             * and nobody is told of it */
	bool advanced;              /* listed only with the advanced tools */
	bool cluster;               /* listed where a sandbox is a cluster */
	bool secret;                /* its value never appears in an error */
	int64_t min, max;           /* INT, NUMBER: inclusive; both 0: any */
	int64_t dflt;               /* INT, BOOL */
	double dflt_num;            /* NUMBER */
	const char *dflt_str;       /* STRING, ENUM */
	const char *const *choices; /* ENUM: NULL-terminated */
	const struct arg *fields;   /* OBJECT */
};

/* The argument struct of one call, and what keeps its pointers alive. */
struct bound {
	void *values;
	json_t *keep; /* values that were not given as they are */
};

/*
 * Fill an argument struct of "size" bytes from "given" (an object, or NULL
 * for none).  Strings and lists are borrowed from "given", which must outlive
 * the result.  On failure the error names the argument, what was given and
 * what is allowed.  bound_free() is fine in every case.
 */
int args_bind(const struct arg *args, size_t size, const json_t *given,
    struct bound *out, struct err *err);
void bound_free(struct bound *b);

/* The argument of this name, or NULL.  "args" may be NULL: there are none. */
const struct arg *args_find(const struct arg *args, const char *name);

/* The one that is surely meant by a name that is none of them, or NULL. */
const char *args_nearest(const struct arg *args, const char *name);

/* What an argument may be, in a few words: "integer from 1 to 10". */
void arg_allowed(const struct arg *a, char *out, size_t size);

/* The default as JSON, or NULL if there is none to speak of. */
json_t *arg_default(const struct arg *a);

/* What is listed besides the plain things. */
enum arg_listing {
	LIST_ALL = 1 << 0,     /* all there is: the advanced tools are wanted */
	LIST_CLUSTER = 1 << 1, /* what is of use with a cluster */
};

/* JSON Schema of an object with these arguments. */
json_t *args_schema(const struct arg *args, unsigned listing);

enum out_type {
	OUT_END,
	OUT_STRING,
	OUT_INT,
	OUT_NUMBER,
	OUT_BOOL,
	OUT_OBJECT,  /* with "fields"; without, any object */
	OUT_OBJECTS, /* list of such objects */
	OUT_STRINGS, /* list of strings */
	OUT_INTS,    /* list of integers */
	OUT_BOOL_OR_STRING,
};

struct out {
	const char *name;
	enum out_type type;
	const char *help;
	bool always;   /* present in every successful result */
	bool nullable; /* may be null: not known */
	bool cluster;  /* as of an argument */
	const struct out *fields;
};

/* JSON Schema of an object with these fields. */
json_t *outs_schema(const struct out *outs, unsigned listing);

#endif
