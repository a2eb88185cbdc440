#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/until.h"
#include "base/utf8.h"
#include "help.h"
#include "ssh/askpass.h"

static const struct askpass_login login = {
	.user = "ann",
	.host = "gpu.example",
	.key_file = "/home/ann/id",
};

static void
the_expected_prompts_are_known(void **state)
{
	(void)state;
	assert_int_equal(askpass_match(&login, "ann@gpu.example's password: "),
	    'p');
	assert_int_equal(askpass_match(&login, "(ann@gpu.example) Password: "),
	    'p');
	assert_int_equal(askpass_match(&login, "(ann@gpu.example) password:"),
	    'p');
	assert_int_equal(askpass_match(&login,
	                     "(ann@gpu.example) Password for ann@gpu: "),
	    'p');
	assert_int_equal(askpass_match(&login,
	                     "Enter passphrase for key '/home/ann/id': "),
	    'k');
}

static void
other_prompts_get_nothing(void **state)
{
	static const char *const prompts[] = {
		"",
		"password: ",
		"Password: ",
		"ann@gpu.example's password:",
		"ann@gpu.example's password:  ",
		" ann@gpu.example's password: ",
		"ann@gpu.example's password: \n",
		"Ann@gpu.example's password: ",
		"ann@gpu.example.evil's password: ",
		"root@gpu.example's password: ",
		"ann@jump.example's password: ",
		"evil@h's ann@gpu.example's password: ",
		"(ann@jump.example) Password: ",
		"(bob@gpu.example) Password: ",
		"ann@gpu.example) Password: ",
		"(ann@gpu.example)Password: ",
		"x (ann@gpu.example) Password: ",
		"(ann@gpu.example) ",
		"(ann@gpu.example) Verification code: ",
		"(ann@gpu.example) One-time password (OATH) for `ann': ",
		"(ann@gpu.example) New password: ",
		"(ann@gpu.example) Enter your PIN: ",
		"Enter passphrase for key '/home/ann/id2': ",
		"Enter passphrase for key '/home/ann/i': ",
		"Enter passphrase for key '/home/ann/id':",
		"Enter passphrase for key '': ",
		"Enter passphrase for /home/ann/id: ",
		"Enter PIN for ED25519-SK key /home/ann/id: ",
		"Confirm user presence for key ED25519-SK SHA256:x",
		"Enter ann@gpu.example's old password: ",
		"Enter ann@gpu.example's new password: ",
		"Are you sure you want to continue connecting (yes/no)? ",
		"Allow use of key /home/ann/id?\nKey fingerprint SHA256:x.",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(prompts) / sizeof(prompts[0]); i++) {
		if (askpass_match(&login, prompts[i]) != 0)
			fail_msg("answered: %s", prompts[i]);
	}
}

static void
without_a_key_file_there_is_no_passphrase(void **state)
{
	struct askpass_login l = login;

	(void)state;
	l.key_file = NULL;
	assert_int_equal(askpass_match(&l,
	                     "Enter passphrase for key '/home/ann/id': "),
	    0);
	assert_int_equal(askpass_match(&l,
	                     "Enter passphrase for key '(null)': "),
	    0);
	assert_int_equal(askpass_match(&l, "ann@gpu.example's password: "),
	    'p');
}

/* ssh cuts the path in its prompt there, but neither user nor host. */
static void
a_long_path_is_cut_to_a_hundred_bytes_as_ssh_does(void **state)
{
	char *x = repeated("x", 200);
	char path[300], prompt[400];
	struct askpass_login l = login;

	(void)state;
	snprintf(path, sizeof(path), "/%s", x);
	l.key_file = path;
	snprintf(prompt, sizeof(prompt),
	    "Enter passphrase for key '%.100s': ", path);
	assert_int_equal(askpass_match(&l, prompt), 'k');
	snprintf(prompt, sizeof(prompt),
	    "Enter passphrase for key '%.99s': ", path);
	assert_int_equal(askpass_match(&l, prompt), 0);
	path[100] = '\0';
	snprintf(prompt, sizeof(prompt),
	    "Enter passphrase for key '%s': ", path);
	assert_int_equal(askpass_match(&l, prompt), 'k');
	l.user = x;
	snprintf(prompt, sizeof(prompt), "%s@gpu.example's password: ", x);
	assert_int_equal(askpass_match(&l, prompt), 'p');
	free(x);
}

static void
per_cent_signs_are_no_formats(void **state)
{
	struct askpass_login l = { .user = "%s%n",
		.host = "%d",
		.key_file = "/100%s" };

	(void)state;
	assert_int_equal(askpass_match(&l, "%s%n@%d's password: "), 'p');
	assert_int_equal(askpass_match(&l, "(%s%n@%d) Password: "), 'p');
	assert_int_equal(askpass_match(&l,
	                     "Enter passphrase for key '/100%s': "),
	    'k');
}

/* --- both sides ----------------------------------------------------------- */

static char *dir;
static struct secret password, passphrase;
static struct askpass *a;

static void
start(void)
{
	struct askpass_login l = login;
	struct err err;

	l.password = &password;
	l.passphrase = &passphrase;
	a = askpass_start(dir, &l, &err);
	if (a == NULL)
		fail_msg("%s", err.msg);
}

static int
begin(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	dir = make_dir();
	secret_set(&password, "hunter2", 7);
	secret_set(&passphrase, " open sesame ", 13);
	start();
	return 0;
}

/* Once more, with less to tell. */
static void
start_without(struct secret *s)
{
	askpass_stop(a);
	secret_free(s);
	start();
}

static int
end(void **state)
{
	(void)state;
	askpass_stop(a);
	a = NULL;
	secret_free(&password);
	secret_free(&passphrase);
	remove_dir(dir); /* it is empty, or this fails */
	return 0;
}

/* As ssh does: start the helper and wait for it.  Never returns. */
static void
pretend_ssh(const char *path, const char *prompt, int out)
{
	int status;

	if (fork() == 0)
		_exit(askpass_helper(path, prompt, out));
	if (wait(&status) == -1 || !WIFEXITED(status))
		_exit(99);
	_exit(WEXITSTATUS(status));
}

/* What the helper prints for a prompt.  Its status, or -1 if it ended the
 * ssh that asked. */
static int
ask(const char *path, const char *prompt, char *out, size_t size)
{
	struct err err;
	int fds[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t ssh;

	assert_int_equal(fs_pipe(fds, &err), 0);
	ssh = fork();
	if (ssh == 0)
		pretend_ssh(path, prompt, fds[1]);
	assert_true(ssh > 0);
	close(fds[1]);
	while ((n = read(fds[0], out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(ssh, &status, 0), ssh);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
		return -1;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
answered(const char *prompt, const char *want)
{
	char out[200];

	assert_int_equal(ask(askpass_socket(a), prompt, out, sizeof(out)), 0);
	assert_string_equal(out, want);
}

/* No answer, and that is the end of the login. */
static void
ignored(const char *prompt)
{
	char out[200];

	assert_int_equal(ask(askpass_socket(a), prompt, out, sizeof(out)), -1);
	assert_string_equal(out, "");
}

static void
the_helper_prints_the_secret_as_a_line(void **state)
{
	(void)state;
	assert_true(strncmp(askpass_socket(a), dir, strlen(dir)) == 0);
	answered("ann@gpu.example's password: ", "hunter2\n");
	answered("Enter passphrase for key '/home/ann/id': ",
	    " open sesame \n");
}

static void
a_second_prompt_gets_nothing(void **state)
{
	(void)state;
	answered("ann@gpu.example's password: ", "hunter2\n");
	ignored("ann@gpu.example's password: ");
	ignored("(ann@gpu.example) Password: ");
	answered("Enter passphrase for key '/home/ann/id': ",
	    " open sesame \n");
	ignored("Enter passphrase for key '/home/ann/id': ");
}

static void
a_wrong_prompt_does_not_use_up_the_answer(void **state)
{
	(void)state;
	ignored("ann@evil's password: ");
	ignored("");
	ignored("(ann@gpu.example) Verification code: ");
	answered("(ann@gpu.example) Password: ", "hunter2\n");
}

static void
a_secret_that_is_not_there_is_not_given(void **state)
{
	(void)state;
	start_without(&password);
	ignored("ann@gpu.example's password: ");
	answered("Enter passphrase for key '/home/ann/id': ",
	    " open sesame \n");
}

static void
what_was_asked_in_vain_is_told(void **state)
{
	struct askpass_refusal r;

	(void)state;
	askpass_refused(a, &r);
	assert_string_equal(r.prompt, "");
	answered("ann@gpu.example's password: ", "hunter2\n");
	askpass_refused(a, &r);
	assert_string_equal(r.prompt, "");
	ignored("(ann@gpu.example) Verification code: ");
	askpass_refused(a, &r);
	assert_string_equal(r.prompt, "(ann@gpu.example) Verification code: ");
	assert_int_equal(r.which, 0);
	assert_false(r.given);
	/* Once more: it was wrong. */
	ignored("ann@gpu.example's password: ");
	askpass_refused(a, &r);
	assert_int_equal(r.which, 'p');
	assert_true(r.given);
	/* It was never there. */
	start_without(&passphrase);
	ignored("Enter passphrase for key '/home/ann/id': ");
	askpass_refused(a, &r);
	assert_int_equal(r.which, 'k');
	assert_false(r.given);
	askpass_refused(NULL, &r);
	assert_string_equal(r.prompt, "");
}

static void
a_prompt_told_in_vain_is_clean_text_of_a_bounded_length(void **state)
{
	char *wide = repeated("\xe2\x82\xac", 300);
	struct askpass_refusal r;

	(void)state;
	ignored("\x1b[31mred\x07\xff: ");
	askpass_refused(a, &r);
	assert_string_equal(r.prompt, "red\xef\xbf\xbd: ");
	ignored(wide);
	askpass_refused(a, &r);
	assert_true(strlen(r.prompt) < sizeof(r.prompt));
	assert_true(utf8_valid(r.prompt, strlen(r.prompt)));
	free(wide);
}

/* "Confirm user presence", where ssh waits for no answer. */
static void
what_ssh_only_tells_needs_no_answer(void **state)
{
	struct askpass_refusal r;
	char out[200];

	(void)state;
	setenv("SSH_ASKPASS_PROMPT", "none", 1);
	assert_int_equal(ask(askpass_socket(a), "Confirm user presence", out,
	                     sizeof(out)),
	    0);
	unsetenv("SSH_ASKPASS_PROMPT");
	assert_string_equal(out, "");
	askpass_refused(a, &r);
	assert_string_equal(r.prompt, "");
}

/* Connect by hand and say this; no secret comes back. */
static void
say_raw(const void *data, size_t len)
{
	char out[200] = "";
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t total = 0;
	ssize_t n;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", askpass_socket(a));
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	(void)!fs_write_all(fd, data, len);
	shutdown(fd, SHUT_WR);
	while ((n = read(fd, out + total, sizeof(out) - total)) > 0)
		total += (size_t)n;
	close(fd);
	assert_true(total <= 1 && out[0] != '+');
}

static void
odd_clients_get_nothing_and_do_no_harm(void **state)
{
	static const char nul[] = "ann@gpu.example's password: \0and more";
	char *much = repeated("x", 100000);

	(void)state;
	say_raw("", 0);
	say_raw(much, 100000);
	say_raw("\xff\0\x01", 3);
	say_raw(nul, sizeof(nul) - 1);
	answered("ann@gpu.example's password: ", "hunter2\n");
	free(much);
}

static void
only_the_user_may_connect(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat(askpass_socket(a), &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 077, 0);
}

static void
stopping_ends_it_and_removes_the_socket(void **state)
{
	char *path = xstrdup(askpass_socket(a));
	char out[200];

	(void)state;
	askpass_stop(a);
	a = NULL;
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(ask(path, "ann@gpu.example's password: ", out,
	                     sizeof(out)),
	    -1);
	assert_string_equal(out, "");
	askpass_stop(NULL);
	free(path);
}

/* A helper that was killed before it said anything, or that hangs. */
static void
stopping_does_not_wait_for_a_silent_client(void **state)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct until moment = until_in(100);
	struct err err;
	int64_t began;

	(void)state;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", askpass_socket(a));
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(fs_write_all(fd, "ann", 3), 0);
	/* So that it is being served when the end comes. */
	until_poll(&moment, NULL, 0, &err);
	began = clock_ms();
	askpass_stop(a);
	a = NULL;
	assert_true(clock_ms() - began < 20000);
	close(fd);
}

static void
two_logins_do_not_mix(void **state)
{
	struct askpass_login l = { .user = "bob", .host = "gpu.example" };
	struct secret other = { 0 };
	struct askpass *b;
	struct err err;
	char out[200];

	(void)state;
	secret_set(&other, "swordfish", 9);
	l.password = &other;
	b = askpass_start(dir, &l, &err);
	assert_non_null(b);
	assert_string_not_equal(askpass_socket(a), askpass_socket(b));
	ignored("bob@gpu.example's password: ");
	assert_int_equal(ask(askpass_socket(b),
	                     "bob@gpu.example's password: ", out, sizeof(out)),
	    0);
	assert_string_equal(out, "swordfish\n");
	answered("ann@gpu.example's password: ", "hunter2\n");
	askpass_stop(b);
	secret_free(&other);
}

static void
without_a_place_for_its_socket_it_fails(void **state)
{
	char *x = repeated("x", 200);
	struct err err = ERR_INIT;
	char out[200];

	(void)state;
	assert_null(askpass_start("/nonexistent", &login, &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_null(askpass_start(x, &login, &err));
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(ask("/nonexistent", "x", out, sizeof(out)), -1);
	assert_int_equal(ask(x, "x", out, sizeof(out)), -1);
	assert_string_equal(out, "");
	free(x);
}

int
main(void)
{
#define BOTH(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_expected_prompts_are_known),
		cmocka_unit_test(other_prompts_get_nothing),
		cmocka_unit_test(without_a_key_file_there_is_no_passphrase),
		cmocka_unit_test(
		    a_long_path_is_cut_to_a_hundred_bytes_as_ssh_does),
		cmocka_unit_test(per_cent_signs_are_no_formats),
		BOTH(the_helper_prints_the_secret_as_a_line),
		BOTH(a_second_prompt_gets_nothing),
		BOTH(a_wrong_prompt_does_not_use_up_the_answer),
		BOTH(a_secret_that_is_not_there_is_not_given),
		BOTH(what_was_asked_in_vain_is_told),
		BOTH(a_prompt_told_in_vain_is_clean_text_of_a_bounded_length),
		BOTH(what_ssh_only_tells_needs_no_answer),
		BOTH(odd_clients_get_nothing_and_do_no_harm),
		BOTH(only_the_user_may_connect),
		BOTH(stopping_ends_it_and_removes_the_socket),
		BOTH(stopping_does_not_wait_for_a_silent_client),
		BOTH(two_logins_do_not_mix),
		cmocka_unit_test(without_a_place_for_its_socket_it_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
