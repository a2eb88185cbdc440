/* Setting up: does the sandbox work? */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/quote.h"
#include "base/str.h"
#include "cli/advice.h"
#include "cli/setup.h"
#include "ssh/exec.h"
#include "ssh/master.h"
#include "tools/app.h"

#define TEST_MS 60000
#define COMMAND_MS 20000
#define GRACE_MS 1000
#define WORDS_MAX 1000

/* Does this work there, in this directory?  1: it does; 0: it does not, or
 * there is no such directory; -1: nobody knows. */
static int
works_in(struct link *link, const char *dir, const char *command,
    const struct until *until)
{
	struct exec_request req = {
		.command = command,
		.cwd = dir,
		.timeout_ms = COMMAND_MS,
		.grace_ms = GRACE_MS,
		.max_chars = WORDS_MAX,
	};
	struct exec_result res;
	struct err err;
	int rc;

	if (exec_run(link, &req, &res, until, &err) == -1)
		return err.code == ERR_NOT_FOUND ? 0 : -1;
	rc = res.state != EXEC_FINISHED ? -1 : res.exit_code == 0;
	exec_result_free(&res);
	return rc;
}

static bool
make_workdir(struct link *link, const char *dir, const struct until *until)
{
	struct buf command;
	bool made;

	buf_init(&command, SIZE_MAX);
	buf_adds(&command, "mkdir -p ");
	quote_path(&command, dir);
	made = works_in(link, "~", command.data, until) == 1 &&
	    works_in(link, dir, ":", until) == 1;
	printf("%s %s.\n", dir, made ? "was made" : "could not be made");
	buf_free(&command);
	return made;
}

/* Without its workdir every command fails, and long after this. */
static void
look_at_workdir(const struct setup *s, struct link *link,
    const struct until *until)
{
	const struct sandbox *sb = link_sandbox(link);
	char *line;

	if (str_blank(sb->workdir) ||
	    works_in(link, sb->workdir, ":", until) != 0)
		return;
	printf("Its workdir %s does not exist there, or may not be entered.\n",
	    sb->workdir);
	if (s->ask && setup_yes(s, "Make it?", true) &&
	    make_workdir(link, sb->workdir, until))
		return;
	line = advice_mkdir(sb, s->config_file);
	printf("Commands need it. Once %s is added, this makes it:\n  %s\n",
	    sb->name, line);
	free(line);
}

static int
test_login(struct app *app, const struct setup *s, struct err *err)
{
	struct until limit = until_within(&s->until, TEST_MS);
	const struct sandbox *sb = app_active(app);
	struct link *link;
	char news[256];
	bool files_only;

	printf("Logging in to %s ...\n", sb->name);
	fflush(stdout);
	/* Whoever corrected something wants to know now. */
	master_try_again(sb);
	link = links_get(app->links, sb);
	if (link_check(link, &limit, err) == -1)
		return -1;
	link_news(link, news, sizeof(news));
	if (news[0] != '\0')
		printf("Its host key is new and was remembered: %s\n", news);
	files_only = link_sftp_only(link, err);
	printf("%s answers%s.\n", sb->name,
	    files_only ? ", but allows file transfer (SFTP) only"
	               : " and runs commands");
	if (!files_only)
		look_at_workdir(s, link, &s->until);
	return 0;
}

int
setup_test(const struct setup *s, struct err *err)
{
	json_t *copy = json_deep_copy(s->entry);
	struct app *app = app_new_only(copy);
	int rc = test_login(app, s, err);

	app_free(app);
	json_decref(copy);
	if (rc == 0)
		return 0;
	if (s->ask) {
		printf("That did not work: %s\n", err->msg);
		printf("A user, a key file or a password command can be given "
		       "as options: remote-sandbox-mcp help setup\n");
		err_set(err, ERR_CANCELLED, "the sandbox was not added");
		return setup_yes(s, "Keep it nevertheless?", false) ? 0 : -1;
	}
	return err_wrap(err,
	    "the sandbox was not added (--no-test adds it "
	    "nevertheless)");
}
