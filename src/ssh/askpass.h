/*
 * Passwords and passphrases for ssh, without a terminal.
 *
 * ssh runs our own program as its askpass helper.  The helper knows no
 * secret: it asks the process that started the login, over a socket in our
 * private directory, and gets an answer only for the exact prompts expected.
 */
#ifndef SSH_ASKPASS_H
#define SSH_ASKPASS_H

#include <stdbool.h>

#include "base/err.h"
#include "config/sandbox.h"

/* Environment variable by which the helper finds the socket. */
#define ASKPASS_SOCKET_ENV "RSMCP_ASKPASS_SOCKET"

struct askpass;

/* Who logs in where, as prompts show it. */
struct askpass_login {
	const char *user;
	const char *host;              /* host name, or alias of the host key */
	const char *key_file;          /* or NULL */
	const struct secret *password; /* or none */
	const struct secret *passphrase; /* or none */
};

/*
 * Answer prompts until askpass_stop().  Each secret is given out once: a
 * second prompt for it means that it was wrong.  A prompt that gets no answer
 * ends the login at once (the helper ends the ssh that asked), so that no
 * empty password is sent in its place.
 */
struct askpass *askpass_start(const char *runtime_dir,
    const struct askpass_login *login, struct err *err);
const char *askpass_socket(const struct askpass *a);
void askpass_stop(struct askpass *a);

/* The prompt that ended the login, and which secret it was for; "" if none
 * did. */
struct askpass_refusal {
	char prompt[200];
	char which; /* as askpass_match() says */
	bool given; /* the secret had been given before: it is wrong */
	bool gave_passphrase; /* whether or not a prompt was refused */
};
void askpass_refused(struct askpass *a, struct askpass_refusal *out);

/*
 * Which secret does this prompt ask for?  Pure.  'p' the password, 'k' the
 * passphrase of the key file, 0 neither.
 */
char askpass_match(const struct askpass_login *login, const char *prompt);

/* The helper: write the answer to "prompt" to "out".  Exit status. */
int askpass_helper(const char *socket, const char *prompt, int out);

#endif
