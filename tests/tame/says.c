/*
 * What tame_command() says: texts on stdin, each ended by a NUL; for each a
 * line "tame" or "wild" on stdout.
 */
#include <stdio.h>
#include <stdlib.h>

#include "ssh/tame.h"

int
main(void)
{
	char *text = NULL;
	size_t room = 0;

	while (getdelim(&text, &room, '\0', stdin) > 0)
		puts(tame_command(text) ? "tame" : "wild");
	free(text);
	return 0;
}
