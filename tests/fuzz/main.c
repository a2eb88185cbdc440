/*
 * A plain main() for a fuzz function: gives it each file that is named, or
 * that is in a directory that is named, twice, as leftovers of the first run
 * may show in the second.  So a corpus is an ordinary test with any compiler.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"

#define INPUT_LIMIT (16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int inputs;

static void
run_file(const char *path)
{
	struct err err = ERR_INIT;
	struct buf input;
	uint8_t *exact; /* so that a sanitizer sees a read past the end */
	int i;

	buf_init(&input, INPUT_LIMIT);
	if (fs_read(path, &input, &err) == -1) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	for (i = 0; i < 2; i++) {
		exact = xmalloc(input.len);
		memcpy(exact, input.data, input.len);
		LLVMFuzzerTestOneInput(exact, input.len);
		free(exact);
	}
	buf_free(&input);
	inputs++;
}

static void
run_path(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (dir == NULL) {
		run_file(path);
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		char *inner = path_join(path, entry->d_name);

		if (entry->d_name[0] != '.')
			run_path(inner);
		free(inner);
	}
	closedir(dir);
}

int
main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		run_path(argv[i]);
	if (inputs == 0) {
		fprintf(stderr, "usage: %s FILE|DIRECTORY...: no input\n",
		    argv[0]);
		return 1;
	}
	return 0;
}
