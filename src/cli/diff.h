/* What a change to a text is, as people read it. */
#ifndef CLI_DIFF_H
#define CLI_DIFF_H

/*
 * Print a unified diff of two texts on stdout, as one hunk.  Values whose
 * names tell that they are secret show as "***".
 */
void diff_print(const char *path, const char *before, const char *after);

#endif
