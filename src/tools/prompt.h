/*
 * Prompts: ready instructions that a person picks in a client, often as a
 * slash command.  They say in which order the tools are used.
 */
#ifndef TOOLS_PROMPT_H
#define TOOLS_PROMPT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

#define PROMPT_ARG_MAX 20000 /* bytes of one argument */

struct prompt_arg {
	const char *name;
	const char *help;
	const char *absent; /* what stands there if it was not given; NULL: it
	                     * has to be */
};

struct prompt {
	const char *name;
	const char *title;
	const char *description;
	const struct prompt_arg *args; /* ends with a NULL name */
	const char *text;              /* "{name}" stands for an argument */
};

/* The prompts of this program; ends with a NULL name. */
extern const struct prompt prompt_table[];

const struct prompt *prompt_find(const struct prompt *table, const char *name);

/* The argument of this name, or NULL. */
const struct prompt_arg *prompt_arg_find(const struct prompt *p,
    const char *name);

/* An entry of prompts/list. */
json_t *prompt_json(const struct prompt *p);

/*
 * The text with its arguments ("given": an object of strings, or NULL).  NULL
 * with a sentence that names what is missing or unknown.
 */
json_t *prompt_fill(const struct prompt *p, const json_t *given,
    struct err *err);

#endif
