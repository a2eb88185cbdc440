/*
 * The hosts that the user's ssh configuration names, to choose from.
 */
#ifndef CONFIG_SSHNAMES_H
#define CONFIG_SSHNAMES_H

#include <jansson.h>

/* Their names, in the order of the files and without patterns.  Files that are
 * included are read too; what cannot be read is passed over. */
json_t *sshnames(const char *home);

/* Add the names of one file's text, each once, and the patterns of files that
 * it includes.  Pure. */
void sshnames_parse(const char *text, json_t *hosts, json_t *includes);

#endif
