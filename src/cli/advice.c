/* Commands of this program, for people to copy. */
#include "cli/advice.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/quote.h"

static void
add_config(struct buf *out, const char *config_file)
{
	if (config_file == NULL)
		return;
	buf_adds(out, " --config ");
	quote_sh(out, config_file);
}

/* "~/x" as people write it: it stands in a shell's command already. */
static void
add_dir(struct buf *out, const char *dir)
{
	if (path_is_home(dir) && dir[1] == '/' && dir[2] != '\0') {
		buf_adds(out, "~/");
		quote_sh(out, dir + 2);
	} else {
		quote_path(out, dir);
	}
}

char *
advice_mkdir(const struct sandbox *sb, const char *config_file)
{
	struct buf line, command;

	buf_init(&line, SIZE_MAX);
	buf_init(&command, SIZE_MAX);
	buf_adds(&command, "mkdir -p ");
	add_dir(&command, sb->workdir != NULL ? sb->workdir : "~");
	buf_adds(&line, "remote-sandbox-mcp call exec_bash");
	add_config(&line, config_file);
	buf_adds(&line, " sandbox_name=");
	quote_sh(&line, sb->name);
	buf_adds(&line, " cwd='~' command=");
	quote_sh(&line, command.data);
	buf_free(&command);
	return buf_take(&line);
}

char *
advice_setup(const char *config_file)
{
	struct buf line;

	buf_init(&line, SIZE_MAX);
	buf_adds(&line, "remote-sandbox-mcp setup --host NAME");
	add_config(&line, config_file);
	return buf_take(&line);
}
