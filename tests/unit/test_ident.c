#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/ident.h"
#include "help.h"

/* A child that waits to be killed. */
static pid_t
child(void)
{
	pid_t pid = fork();

	assert_true(pid != -1);
	if (pid == 0) {
		for (;;)
			pause();
	}
	return pid;
}

static void
we_know_ourselves(void **state)
{
	struct ident self = ident_self();

	(void)state;
	assert_int_equal(self.pid, getpid());
	assert_true(self.start > 0);
	assert_true(ident_alive(&self));
}

static void
a_child_is_alive_until_it_is_killed(void **state)
{
	struct ident who = { .pid = child() };

	(void)state;
	who.start = ident_start(who.pid);
	assert_true(ident_alive(&who));
	assert_int_equal(ident_signal(&who, SIGKILL), 0);
	while (ident_alive(&who))
		;
	/* It is a zombie now: dead all the same. */
	assert_int_equal(kill(who.pid, 0), 0);
	assert_int_equal(ident_start(who.pid), 0);
	assert_int_equal(ident_signal(&who, SIGTERM), -1);
	assert_int_equal(errno, ESRCH);
	waitpid(who.pid, NULL, 0);
	assert_int_equal(ident_signal(&who, SIGTERM), -1);
	assert_int_equal(errno, ESRCH);
}

/* The number of somebody who was started at another time. */
static void
a_stranger_is_not_signalled(void **state)
{
	struct ident who = { .pid = child() };
	struct ident wrong;

	(void)state;
	who.start = ident_start(who.pid);
	wrong = who;
	wrong.start++;
	assert_false(ident_alive(&wrong));
	assert_int_equal(ident_signal(&wrong, SIGKILL), -1);
	assert_int_equal(errno, ESRCH);
	wrong.start = 0;
	assert_false(ident_alive(&wrong));
	assert_int_equal(ident_signal(&wrong, SIGKILL), -1);
	assert_true(ident_alive(&who));
	assert_int_equal(ident_signal(&who, SIGKILL), 0);
	waitpid(who.pid, NULL, 0);
}

static void
groups_and_everybody_are_no_process(void **state)
{
	struct ident none = { .pid = 0, .start = 0 };
	struct ident all = { .pid = -1, .start = 0 };

	(void)state;
	assert_false(ident_alive(&none));
	assert_false(ident_alive(&all));
	assert_int_equal(ident_signal(&none, SIGTERM), -1);
	assert_int_equal(ident_signal(&all, SIGTERM), -1);
}

static void
words_of_a_command_line_are_found(void **state)
{
	pid_t pid = fork();
	struct ident who;

	(void)state;
	if (pid == 0) {
		execlp("sleep", "sleep", "600", "700", (char *)NULL);
		_exit(1);
	}
	while (!ident_has_args(pid, "600", "700") && ident_start(pid) != 0)
		;
	assert_true(ident_has_args(pid, "sleep", "600"));
	assert_false(ident_has_args(pid, "sleep", "60"));
	assert_false(ident_has_args(pid, "700", ""));
	who = (struct ident){ pid, ident_start(pid) };
	assert_int_equal(ident_signal(&who, SIGKILL), 0);
	waitpid(pid, NULL, 0);
	assert_false(ident_has_args(pid, "sleep", "600"));
}

static void
the_end_of_a_child_can_be_polled(void **state)
{
	pid_t pid = child();
	struct pollfd p = { .events = POLLIN };

	(void)state;
	p.fd = ident_end_fd(pid);
	if (p.fd == -1) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		skip(); /* the system has no such descriptor */
	}
	assert_int_equal(poll(&p, 1, 0), 0);
	kill(pid, SIGKILL);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), pid);
	close(p.fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(we_know_ourselves),
		cmocka_unit_test(a_child_is_alive_until_it_is_killed),
		cmocka_unit_test(a_stranger_is_not_signalled),
		cmocka_unit_test(groups_and_everybody_are_no_process),
		cmocka_unit_test(words_of_a_command_line_are_found),
		cmocka_unit_test(the_end_of_a_child_can_be_polled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
