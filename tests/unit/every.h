/*
 * An argument table with every type, for the tests and fuzzers of binding and
 * schema.
 */
#ifndef UNIT_EVERY_H
#define UNIT_EVERY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/arg.h"

struct every_license {
	const char *key;
};

struct every_slurm {
	const char *partition;
	int64_t nodes;
	double hours;
	int qos;
	bool exclusive;
	const char *password;
	const json_t *modules;
	struct every_license license;
};

struct every {
	const char *text;
	const char *greeting;
	int64_t count;
	int64_t port;
	int64_t size;
	double ratio;
	double any;
	bool off;
	bool on;
	int mode;
	int level;
	const json_t *tags;
	const json_t *env;
	struct every_slurm slurm;
	const json_t *extra_json;
	const char *passphrase;
	int64_t pin;
	const json_t *tokens;
};

static const char *const every_modes[] = { "fast", "slow", NULL };
static const char *const every_levels[] = { "low", "mid", "high", NULL };

#define LICENSE(field) \
	.name = #field, .offset = offsetof(struct every_license, field)

static const struct arg every_license[] = {
	{ LICENSE(key), .type = ARG_STRING, .secret = true,
	    .help = "Key of the license." },
	{ 0 },
};

#define SLURM(field) \
	.name = #field, .offset = offsetof(struct every_slurm, field)

static const struct arg every_slurm[] = {
	{ SLURM(partition), .type = ARG_STRING, .required = true,
	    .help = "Partition to use." },
	{ SLURM(nodes), .type = ARG_INT, .min = 1, .max = 4, .dflt = 1,
	    .help = "How many nodes." },
	{ SLURM(hours), .type = ARG_NUMBER, .min = 0, .max = 48,
	    .dflt_num = 1.5, .help = "How long." },
	{ SLURM(qos), .type = ARG_ENUM, .choices = every_levels,
	    .dflt_str = "mid", .help = "How urgent." },
	{ SLURM(exclusive), .type = ARG_BOOL, .dflt = true,
	    .help = "Nobody else on the nodes." },
	{ SLURM(password), .type = ARG_STRING, .secret = true,
	    .help = "Password." },
	{ SLURM(modules), .type = ARG_STRINGS, .help = "Modules to load." },
	{ SLURM(license), .type = ARG_OBJECT, .fields = every_license,
	    .help = "License to use." },
	{ 0 },
};

#define EVERY(field) .name = #field, .offset = offsetof(struct every, field)

static const struct arg every_args[] = {
	{ EVERY(text), .type = ARG_STRING, .help = "Some text." },
	{ EVERY(greeting), .type = ARG_STRING, .dflt_str = "hello",
	    .help = "Text with a default." },
	{ EVERY(count), .type = ARG_INT, .dflt = -7, .help = "Any integer." },
	{ EVERY(port), .type = ARG_INT, .min = 1, .max = 65535, .dflt = 22,
	    .help = "Integer in a range." },
	{ EVERY(size), .type = ARG_INT, .min = 10, .max = INT64_MAX, .dflt = 10,
	    .help = "Integer with a lower bound." },
	{ EVERY(ratio), .type = ARG_NUMBER, .min = 0, .max = 1,
	    .dflt_num = 0.25, .help = "Number in a range." },
	{ EVERY(any), .type = ARG_NUMBER, .help = "Any number." },
	{ EVERY(off), .type = ARG_BOOL, .help = "False by default." },
	{ EVERY(on), .type = ARG_BOOL, .dflt = 1, .help = "True by default." },
	{ EVERY(mode), .type = ARG_ENUM, .choices = every_modes,
	    .dflt_str = "slow", .help = "Choice with a default." },
	{ EVERY(level), .type = ARG_ENUM, .choices = every_levels,
	    .help = "Choice without a default." },
	{ EVERY(tags), .type = ARG_STRINGS, .help = "List of strings." },
	{ EVERY(env), .type = ARG_MAP, .help = "Map of strings." },
	{ EVERY(slurm), .type = ARG_OBJECT, .fields = every_slurm,
	    .help = "Object with fields." },
	{ EVERY(extra_json), .type = ARG_JSON, .help = "Any object." },
	{ EVERY(passphrase), .type = ARG_STRING, .secret = true,
	    .help = "Secret text." },
	{ EVERY(pin), .type = ARG_INT, .min = 0, .max = 9999, .secret = true,
	    .help = "Secret integer." },
	{ EVERY(tokens), .type = ARG_STRINGS, .secret = true,
	    .help = "Secret list." },
	{ 0 },
};

#undef LICENSE
#undef SLURM
#undef EVERY

#endif
