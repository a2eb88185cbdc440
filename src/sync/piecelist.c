/* Which pieces of a big file are there. */
#include "sync/piecelist.h"

#include <stdlib.h>
#include <string.h>

size_t
piece_count(int64_t size)
{
	return (size_t)(size / PIECE + (size % PIECE != 0));
}

int64_t
piece_len(int64_t size, size_t i)
{
	int64_t left = size - (int64_t)i * PIECE;

	return left < PIECE ? left : PIECE;
}

int64_t
piecelist_read(char *text, int64_t size, bool *have)
{
	char *save = NULL, *line;
	int64_t bytes = 0;

	for (line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		char *end;
		long long at = strtoll(line, &end, 10), len;
		size_t i;

		if (end == line || *end != ' ' || at < 0 || at % PIECE != 0 ||
		    at >= size)
			continue;
		i = (size_t)(at / PIECE);
		len = strtoll(end, NULL, 10);
		if (len != piece_len(size, i) || have[i])
			continue;
		have[i] = true;
		bytes += len;
	}
	return bytes;
}
