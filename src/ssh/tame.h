/*
 * Is a command tame: does it leave the shell that runs it as it was?
 */
#ifndef SSH_TAME_H
#define SSH_TAME_H

#include <stdbool.h>

/*
 * Texts of our own need not be asked about: who passes one on as tame has seen
 * to it that it sets no trap and no option, leaves its streams, IFS and the
 * positional parameters as they were, starts nothing that stays, and, where all
 * is well, comes to its end without "exit".
 */

/*
 * True if running this text in bash can change nothing of that bash but its
 * directory: programs and harmless builtins, with quoted or plain arguments
 * and redirections, joined by "|", "&&", "||" and ";".  Says "no" to much that
 * would do no harm, and to whatever it does not know.
 */
bool tame_command(const char *text);

#endif
