#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/mem.h"
#include "config/dirs.h"
#include "help.h"
#include "ssh/master.h"
#include "ssh/sshconf.h"

/* A socket where the master of a sandbox would be: it takes connections, and
 * says nothing. */
static struct sandbox sb;
static char *top, *dir, *path;
static struct err err;
static int listener;

static int
begin(void **state)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	char name[17];
	json_t *entry;

	(void)state;
	top = make_dir();
	setenv("XDG_RUNTIME_DIR", top, 1);
	setenv("HOME", top, 1);
	entry = json_pack("{s:s}", "host", "192.0.2.1");
	assert_int_equal(sandbox_parse(&sb, entry, top, NULL, &err), 0);
	json_decref(entry);
	dir = dirs_runtime(&err);
	assert_non_null(dir);
	sshconf_name(&sb, name);
	path = xasprintf("%s/%s.0", dir, name);
	assert_true(strlen(path) < sizeof(sa.sun_path));
	memcpy(sa.sun_path, path, strlen(path) + 1);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(listener, 4), 0);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	close(listener);
	free(path);
	sandbox_free(&sb);
	remove_dir(dir);
	remove_dir(top);
	return 0;
}

/* It may well be alive: nothing was heard for want of time. */
static void
who_has_no_time_leaves_it_alone(void **state)
{
	struct until over = until_in(0);
	struct master m;
	struct stat st;

	(void)state;
	assert_int_equal(master_ensure(&m, &sb, 0, &over, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_int_equal(stat(path, &st), 0);
	master_free(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_has_no_time_leaves_it_alone,
		    begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
