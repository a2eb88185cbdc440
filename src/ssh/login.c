/* Logging in. */
#include "ssh/login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/self.h"
#include "base/str.h"
#include "config/dirs.h"
#include "ssh/agent.h"
#include "ssh/askpass.h"
#include "ssh/explain.h"
#include "ssh/hostkeys.h"
#include "ssh/knownhost.h"
#include "ssh/sshconf.h"
#include "ssh/sshrun.h"

#define SECRET_MAX 4096
#define SECRET_MS 30000
#define SAID_SHOWN 200
#define KEY_FILE_MAX 65536
#define WORDS_MAX ((size_t)128 << 10)

/* Key exchange and authentication come on top of connecting. */
#define LOGIN_EXTRA_MS 15000

/* How the sentences begin that are written here, but for the last, which is
 * explain_login()'s. */
enum login_trouble
login_trouble(const struct err *err)
{
	static const struct {
		const char *start, *within;
		enum login_trouble trouble;
	} known[] = {
		{ "password_command of ", "", LOGIN_COMMAND },
		{ "key_passphrase_command of ", "", LOGIN_COMMAND },
		{ "the key file ", " does not exist", LOGIN_KEY_MISSING },
		{ "the key file ", " has a passphrase",
		    LOGIN_PASSPHRASE_MISSING },
		{ "the passphrase of the key file ", "",
		    LOGIN_PASSPHRASE_WRONG },
		{ "ssh does not use the key file of ", "", LOGIN_KEY_OPEN },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (str_starts(err->msg, known[i].start) &&
		    strstr(err->msg, known[i].within) != NULL)
			return known[i].trouble;
	}
	return LOGIN_OTHER;
}

/* What a program said on stderr, without the end of its last line. */
static int
said_length(const struct buf *said)
{
	size_t len = said->len < SAID_SHOWN ? said->len : SAID_SHOWN;

	while (len > 0 && strchr(" \t\r\n", said->data[len - 1]) != NULL)
		len--;
	return (int)len;
}

/* What a secret's command printed: the first line. */
static int
take_printed(struct secret *out, const struct proc_result *res,
    const char *field, const struct sandbox *sb, struct err *err)
{
	size_t len = strcspn(res->out.data, "\r\n");
	int said = said_length(&res->err);

	if (res->signal != 0)
		return err_set(err, ERR_DENIED,
		    "%s of %s was ended by signal %d", field, sb->name,
		    res->signal);
	if (res->exit_code != 0)
		return err_set(err, ERR_DENIED,
		    "%s of %s ended with status %d%s%.*s", field, sb->name,
		    res->exit_code, said > 0 ? ": " : " and said nothing", said,
		    res->err.data);
	if (len == 0)
		return err_set(err, ERR_DENIED, "%s of %s printed nothing",
		    field, sb->name);
	secret_set(out, res->out.data, len);
	return 0;
}

/* The secret as it is, or as its command prints it. */
static int
get_secret(struct secret *out, const struct secret *given,
    const json_t *command, const char *field, const struct sandbox *sb,
    const struct until *until, struct err *err)
{
	struct until soon = until_within(until, SECRET_MS);
	struct proc_result res;
	int rc;

	if (secret_given(given)) {
		secret_set(out, given->data, given->len);
		return 0;
	}
	if (command == NULL)
		return 0;
	if (sshrun(command, NULL, false, &res, &soon, err) == -1)
		return err_wrap(err, "%s of %s", field, sb->name);
	rc = take_printed(out, &res, field, sb, err);
	secret_wipe(res.out.data, res.out.cap);
	proc_result_free(&res);
	return rc;
}

/* A known_hosts file that holds nothing but the pinned key, for any host. */
static char *
write_pin(const struct sandbox *sb, const char *runtime_dir, struct err *err)
{
	char *path = login_path(sb, runtime_dir, "pin");
	char *text = xasprintf("* %s\n", sb->host_key);

	if (fs_replace(path, text, strlen(text), 0600, err) == -1) {
		free(path);
		path = NULL;
	}
	free(text);
	return path;
}

/* The public half alone will do if an agent has the other. */
static int
check_key_file(const struct sandbox *sb, struct err *err)
{
	char *public;
	bool there;

	if (sb->key_file == NULL)
		return 0;
	public = xasprintf("%s.pub", sb->key_file);
	there = access(sb->key_file, F_OK) == 0 || access(public, F_OK) == 0;
	free(public);
	if (there)
		return 0;
	return err_set(err, ERR_NOT_FOUND,
	    "the key file %s of %s does not exist, or cannot be reached",
	    sb->key_file, sb->name);
}

/*
 * Is it a DSA key?  The name of its type stands in the file in base64, at one
 * of three alignments, or plainly in the older form.
 */
static bool
is_dsa_key(const char *path)
{
	static const char *const signs[] = { "BEGIN DSA PRIVATE KEY",
		"c3NoLWRzc", "NzaC1kc3", "zc2gtZHNz", NULL };
	struct buf text;
	struct err err;
	bool yes = false;
	size_t i;

	buf_init(&text, KEY_FILE_MAX);
	if (fs_read(path, &text, &err) == 0) {
		for (i = 0; signs[i] != NULL && !yes; i++)
			yes = strstr(text.data, signs[i]) != NULL;
	}
	secret_wipe(text.data, text.cap);
	buf_free(&text);
	return yes;
}

/* DSA is off by default in ssh, and gone from newer ones. */
static int
check_dsa(const struct sandbox *sb, bool *dsa, const struct until *until,
    struct err *err)
{
	struct proc_result res;
	json_t *query;
	int rc;

	*dsa = sb->key_file != NULL && is_dsa_key(sb->key_file);
	if (!*dsa)
		return 0;
	query = json_pack("[sss]", "ssh", "-Q", "key");
	rc = sshrun(query, NULL, false, &res, until, err);
	json_decref(query);
	if (rc == -1)
		return -1;
	if (strstr(res.out.data, "ssh-dss") == NULL)
		rc = err_set(err, ERR_DENIED,
		    "%s is a DSA key, and the ssh program here no longer "
		    "knows these; make an Ed25519 key with ssh-keygen and "
		    "install it on %s",
		    sb->key_file, sb->name);
	proc_result_free(&res);
	return rc;
}

/* Everything one login needs, let go together. */
struct attempt {
	const struct sandbox *sb;
	const char *runtime_dir;
	const char *socket;
	struct login_target target;
	struct secret password;
	struct secret passphrase;
	struct askpass *askpass;
	char *known_hosts;
	char *pin_file;
	char *pin_command;
	char *conf;
	bool dsa;
};

static void
attempt_free(struct attempt *a)
{
	askpass_stop(a->askpass);
	login_target_free(&a->target);
	secret_free(&a->password);
	secret_free(&a->passphrase);
	free(a->known_hosts);
	free(a->pin_file);
	free(a->pin_command);
	free(a->conf);
}

/* With a key file somebody answers even if there is no secret: to notice
 * that one is missing. */
static int
prepare_secrets(struct attempt *a, const struct until *until, struct err *err)
{
	const struct sandbox *sb = a->sb;
	struct askpass_login login = {
		.user = a->target.user != NULL ? a->target.user : "",
		.host = a->target.host != NULL ? a->target.host : "",
		.key_file = sb->key_file,
		.password = &a->password,
		.passphrase = &a->passphrase,
	};

	if (get_secret(&a->password, &sb->password, sb->password_command,
	        "password_command", sb, until, err) == -1 ||
	    get_secret(&a->passphrase, &sb->key_passphrase,
	        sb->key_passphrase_command, "key_passphrase_command", sb, until,
	        err) == -1)
		return -1;
	if (!secret_given(&a->password) && sb->key_file == NULL)
		return 0;
	a->askpass = askpass_start(a->runtime_dir, &login, err);
	return a->askpass == NULL ? -1 : 0;
}

/* A pinned key: a file that holds it, or us as the one who knows it. */
static int
prepare_pin(struct attempt *a, struct err *err)
{
	char *self;

	if (a->sb->host_key == NULL)
		return 0;
	if (!str_starts(a->sb->host_key, "SHA256:")) {
		a->pin_file = write_pin(a->sb, a->runtime_dir, err);
		return a->pin_file == NULL ? -1 : 0;
	}
	self = self_path();
	if (self == NULL)
		return err_set(err, ERR_NOT_FOUND,
		    "cannot find our own program, which checks the pinned "
		    "host key; pin the public key instead");
	a->pin_command = xasprintf("\"%s\" " KNOWNHOST_COMMAND " %s %%t %%K",
	    self, a->sb->host_key);
	free(self);
	return 0;
}

static int
prepare_conf(struct attempt *a, struct err *err)
{
	struct sshconf conf = { 0 };
	char *state = dirs_state(err);

	if (state == NULL)
		return -1;
	a->known_hosts = path_join(state, "known_hosts");
	free(state);
	if (prepare_pin(a, err) == -1)
		return -1;
	conf.known_hosts = a->known_hosts;
	conf.user_known_hosts = a->target.known_hosts;
	a->conf = login_write_conf(a->sb, a->runtime_dir, &conf, "conf", err);
	return a->conf == NULL ? -1 : 0;
}

/* A prompt that could not be answered ended the login. */
static int
explain_refusal(struct attempt *a, const struct askpass_refusal *r,
    struct err *err)
{
	const struct sandbox *sb = a->sb;

	if (r->which == 'k' && r->given)
		return err_set(err, ERR_DENIED,
		    "the passphrase of the key file %s of %s is wrong",
		    sb->key_file, sb->name);
	if (r->which == 'k')
		return err_set(err, ERR_DENIED,
		    "the key file %s of %s has a passphrase; give it as "
		    "key_passphrase or key_passphrase_command, or load the "
		    "key into your ssh agent and leave key_file out",
		    sb->key_file, sb->name);
	if (r->which == 'p' && r->given)
		return err_set(err, ERR_DENIED,
		    "%s refused the login%s%s: tried the password, which is "
		    "wrong; the server accepts more methods and asked for it "
		    "again (ssh: %s)",
		    sb->name, a->target.user != NULL ? " as " : "",
		    a->target.user != NULL ? a->target.user : "", r->prompt);
	return err_set(err, ERR_DENIED,
	    "the login to %s asks for something that cannot be answered here: "
	    "\"%s\". Use a key; or log in by hand with a ControlPath in your ssh "
	    "config, and name nothing but the host in the entry",
	    sb->name, r->prompt);
}

/* "Offending ED25519 key in FILE:LINE": which key was remembered? */
static void
offending_key(const char *text, struct buf *print, const struct until *until)
{
	const char *at = text, *key;
	char *path, *colon;

	/* In the middle of a line it is in somebody else's words. */
	while ((at = strstr(at, "Offending ")) != NULL && at > text &&
	    at[-1] != '\n')
		at++;
	key = at != NULL ? strstr(at, " key in ") : NULL;
	if (key == NULL)
		return;
	key += strlen(" key in ");
	path = xstrndup(key, strcspn(key, "\r\n"));
	colon = strrchr(path, ':');
	if (colon != NULL) {
		*colon = '\0';
		hostkeys_fingerprint(print, path, strtol(colon + 1, NULL, 10),
		    until);
	}
	free(path);
}

/* "... is marked as revoked": the line that says so, in any of our files. */
static void
revoked_key(struct attempt *a, struct buf *print, const struct until *until)
{
	char *files = xasprintf("%s %s", a->known_hosts,
	    a->target.known_hosts != NULL ? a->target.known_hosts : "");
	char *at = files, *path;

	while (print->len == 0 && (path = strsep(&at, " ")) != NULL)
		hostkeys_revoked(print, path, a->target.host, until);
	free(files);
}

/* What ssh does not say: the fingerprint of the key that it knows. */
static void
add_remembered(struct attempt *a, struct buf *text, const struct until *until)
{
	struct buf print;

	buf_init(&print, 128);
	if (strstr(text->data, "is marked as revoked") != NULL)
		revoked_key(a, &print, until);
	else
		offending_key(text->data, &print, until);
	if (print.len > 0)
		buf_addf(text, "\nremembered key is %s\n", print.data);
	buf_free(&print);
}

/* Nor that it has no agent, which many clients keep from the servers that they
 * start: what works in the user's shell fails here. */
static void
add_agent(const struct sandbox *sb, struct buf *text)
{
	if (sb->key_file == NULL && !secret_given(&sb->password) &&
	    sb->password_command == NULL && !agent_there() &&
	    strstr(text->data, "Permission denied (") != NULL)
		buf_adds(text,
		    "\nno ssh agent was found by SSH_AUTH_SOCK, "
		    "which some clients do not hand on\n");
}

/*
 * Run ssh, as a master or to learn why one failed, with its own words in a
 * file: what comes on stderr may as well be the server's banner.  Appends the
 * words to "said".  A proxy's are on stderr, and only there.
 */
static int
run_logged(struct attempt *a, json_t *argv, bool master,
    struct proc_result *res, struct buf *said, const struct until *until,
    struct err *err)
{
	char *path = login_path(a->sb, a->runtime_dir, "log");
	struct err ignored;
	int rc;

	unlink(path);
	json_array_insert_new(argv, 1, json_string("-E"));
	json_array_insert_new(argv, 2, json_string(path));
	rc = sshrun(argv, master ? a->askpass : NULL, master, res, until, err);
	if (rc == 0) {
		if (!master)
			buf_add(said, res->err.data, res->err.len);
		fs_read(path, said, &ignored);
		if (said->len == 0)
			buf_add(said, res->err.data, res->err.len);
	}
	unlink(path);
	free(path);
	return rc;
}

/*
 * Why the login failed.  Behind a proxy a master keeps the reason to itself,
 * so ssh is asked once more, without trying to log in.
 */
static int
explain_failure(struct attempt *a, struct buf *said, const struct until *until,
    struct err *err)
{
	struct sshconf_extra extra = {
		.pin_file = a->pin_file,
		.pin_command = a->pin_command,
	};
	struct proc_result res;
	json_t *argv;

	if (a->target.proxied &&
	    (strstr(said->data, "kex_exchange_identification") != NULL ||
	        strstr(said->data, "UNKNOWN port") != NULL)) {
		argv = sshconf_diagnose(a->sb, a->conf, &extra);
		buf_reset(said);
		if (run_logged(a, argv, false, &res, said, until, err) == 0)
			proc_result_free(&res);
		json_decref(argv);
	}
	add_remembered(a, said, until);
	add_agent(a->sb, said);
	explain_login(a->sb, said->data, err);
	if (login_trouble(err) == LOGIN_KEY_OPEN && a->sb->key_file != NULL &&
	    str_ends(a->sb->key_file, ".pub"))
		err_set(err, ERR_DENIED,
		    "key_file of %s, %s, is the public half of a key; name the "
		    "file without .pub",
		    a->sb->name, a->sb->key_file);
	return -1;
}

/* A login that ended without success. */
static int
explain_end(struct attempt *a, struct buf *said, const struct until *until,
    struct err *err)
{
	struct askpass_refusal refusal;

	askpass_refused(a->askpass, &refusal);
	if (refusal.prompt[0] != '\0')
		return explain_refusal(a, &refusal, err);
	/* ssh asks once, and goes on without the key. */
	if (refusal.gave_passphrase &&
	    strstr(said->data, "Permission denied (") != NULL)
		return err_set(err, ERR_DENIED,
		    "the passphrase of the key file %s of %s is wrong, or the "
		    "server does not accept this key",
		    a->sb->key_file, a->sb->name);
	return explain_failure(a, said, until, err);
}

/* One try, with these algorithms for the host key (NULL: as ssh likes). */
static int
try_login(struct attempt *a, const char *algorithms, const struct until *until,
    struct err *err)
{
	struct sshconf_extra extra = {
		.ask = a->askpass != NULL,
		.dsa = a->dsa,
		.pin_file = a->pin_file,
		.pin_command = a->pin_command,
		.host_key_algorithms = algorithms,
	};
	json_t *argv = sshconf_master(a->sb, a->conf, a->socket, &extra);
	int64_t began = clock_ms();
	struct proc_result res;
	struct buf said;
	int rc;

	buf_init(&said, WORDS_MAX);
	rc = run_logged(a, argv, true, &res, &said, until, err);
	json_decref(argv);
	if (rc == 0) {
		if (res.exit_code != 0)
			rc = explain_end(a, &said, until, err);
		proc_result_free(&res);
	} else if (err->code == ERR_TIMEOUT) {
		err_set(err, ERR_TIMEOUT,
		    "the login to %s did not end within %d seconds; "
		    "connect_timeout_s of its entry allows more",
		    a->sb->name, (int)((clock_ms() - began + 500) / 1000));
	}
	buf_free(&said);
	return rc;
}

/*
 * A server has several host keys and shows the one that ssh likes best; a
 * fingerprint may be that of another.  Nothing is sent before one fits.
 */
static int
try_logins(struct attempt *a, const struct until *until, struct err *err)
{
	static const char *const kinds[] = { "ssh-ed25519",
		"rsa-sha2-512,rsa-sha2-256",
		"ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521",
		NULL };
	int rc = try_login(a, NULL, until, err);
	struct err other;
	size_t i;

	for (i = 0; rc == -1 && a->pin_command != NULL && kinds[i] != NULL &&
	     strstr(err->msg, "(host_key)") != NULL;
	     i++) {
		rc = try_login(a, kinds[i], until, &other);
		if (rc == -1 && strstr(other.msg, "(host_key)") == NULL &&
		    strstr(other.msg, "share no algorithm") == NULL)
			*err = other;
	}
	return rc;
}

/* Log in, and see whether a host key was remembered on the way. */
static int
run_login(struct attempt *a, char *new_key, size_t size,
    const struct until *until, struct err *err)
{
	struct until limit = until_within(until,
	    (int64_t)a->sb->connect_timeout_s * 1000 + LOGIN_EXTRA_MS);
	struct buf before, after, lines, news;
	int rc;

	hostkeys_read(a->known_hosts, &before);
	rc = try_logins(a, &limit, err);
	hostkeys_read(a->known_hosts, &after);
	buf_init(&lines, 65536);
	buf_init(&news, size - 1);
	hostkeys_new(&lines, before.data, after.data,
	    a->target.proxied ? NULL : a->target.host);
	hostkeys_describe(&news, lines.data, a->sb->name, until);
	snprintf(new_key, size, "%s", news.data);
	buf_free(&before);
	buf_free(&after);
	buf_free(&lines);
	buf_free(&news);
	return rc;
}

/* What ssh would use tells its version as well; one that is too old may fail
 * over any option, and its age is the reason. */
static int
find_target(struct attempt *a, const struct until *until, struct err *err)
{
	struct err old;
	int rc = login_target(&a->target, a->sb, a->runtime_dir, until, err);

	if (sshrun_check(until, &old) == 0)
		return rc;
	*err = old;
	return -1;
}

int
login_start(const struct sandbox *sb, const char *runtime_dir,
    const char *socket, char *new_key, size_t new_key_size,
    const struct until *until, struct err *err)
{
	struct attempt a = {
		.sb = sb,
		.runtime_dir = runtime_dir,
		.socket = socket,
	};
	int rc;

	rc = check_key_file(sb, err);
	if (rc == 0)
		rc = check_dsa(sb, &a.dsa, until, err);
	if (rc == 0)
		rc = find_target(&a, until, err);
	if (rc == 0)
		rc = prepare_secrets(&a, until, err);
	if (rc == 0)
		rc = prepare_conf(&a, err);
	if (rc == 0)
		rc = run_login(&a, new_key, new_key_size, until, err);
	attempt_free(&a);
	return rc;
}

int
login_hello(const struct sandbox *sb, const char *runtime_dir, struct buf *said,
    const struct until *until, struct err *err)
{
	struct until limit = until_within(until,
	    (int64_t)sb->connect_timeout_s * 1000 + LOGIN_EXTRA_MS);
	struct attempt a = { .sb = sb, .runtime_dir = runtime_dir };
	struct proc_result res;
	json_t *argv;
	int rc = login_target(&a.target, sb, runtime_dir, &limit, err);

	if (rc == 0)
		rc = prepare_conf(&a, err);
	if (rc == 0) {
		struct sshconf_extra extra = {
			.pin_file = a.pin_file,
			.pin_command = a.pin_command,
		};

		argv = sshconf_diagnose(sb, a.conf, &extra);
		json_array_insert_new(argv, 1, json_string("-v"));
		rc = run_logged(&a, argv, false, &res, said, &limit, err);
		json_decref(argv);
	}
	if (rc == 0) {
		add_remembered(&a, said, until);
		proc_result_free(&res);
	}
	attempt_free(&a);
	return rc;
}
