/*
 * What to do about a login that failed.  Only one that the server refused is
 * mended there; whatever else was wrong is mended here.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/quote.h"
#include "cli/doctor_inside.h"
#include "ssh/explain.h"

/* Where the entry is. */
static const char *
place(const struct sandbox *sb)
{
	return sb->source != NULL ? sb->source : "its place";
}

/* A command with the name of the key file behind it. */
static char *
on_key(const struct visit *v, const char *words)
{
	struct buf b;

	buf_init(&b, 8192);
	buf_adds(&b, words);
	quote_sh(&b, v->sb->key_file);
	return buf_take(&b);
}

static char *
copy_key(const struct visit *v)
{
	char *program = on_key(v, "ssh-copy-id -i ");
	char *line = visit_line(v, program, "");
	char *todo = xasprintf("let the machine know this key: %s", line);

	free(program);
	free(line);
	return todo;
}

/* The key file and what opens it. */
static char *
key_todo(const struct visit *v, enum login_trouble trouble)
{
	char *todo, *more, *line;

	switch (trouble) {
	case LOGIN_KEY_OPEN:
		return on_key(v, "chmod 600 ");
	case LOGIN_KEY_MISSING:
		line = on_key(v, "ssh-keygen -t ed25519 -f ");
		todo = xasprintf("correct \"key_file\" of the entry (%s), or "
		                 "make a key there: %s",
		    place(v->sb), line);
		break;
	case LOGIN_PASSPHRASE_MISSING:
		line = on_key(v, "ssh-add ");
		todo = xasprintf("add \"key_passphrase_command\" to the entry "
		                 "(%s); or leave \"key_file\" out of it, and "
		                 "give the key to your agent: %s",
		    place(v->sb), line);
		break;
	default:
		line = on_key(v, "ssh-keygen -y -f ");
		more = copy_key(v);
		todo = xasprintf("see which passphrase opens it (%s), and "
		                 "correct that of the entry (%s); if it was "
		                 "right, %s",
		    line, place(v->sb), more);
		free(more);
	}
	free(line);
	return todo;
}

static char *
refused_todo(const struct visit *v)
{
	const struct sandbox *sb = v->sb;
	char *line, *todo;

	if (secret_given(&sb->password) || sb->password_command != NULL)
		return xasprintf(
		    "correct the password of the entry (%s), or use a key",
		    place(sb));
	if (sb->key_file != NULL)
		return copy_key(v);
	line = visit_line(v, "ssh", "");
	todo = xasprintf("make this work by hand first: %s; ssh-add -l shows "
	                 "the keys of your agent",
	    line);
	free(line);
	return todo;
}

/* The sentence names what is in the way. */
static char *
other_todo(const struct visit *v)
{
	char *program = v->sb->key_file != NULL ? on_key(v, "ssh -v -i ")
	                                        : xstrdup("ssh -v");
	char *line = visit_line(v, program, "");
	char *todo = xasprintf("do what it says; more is said by: %s", line);

	free(program);
	free(line);
	return todo;
}

char *
visit_login_todo(const struct visit *v, const struct err *why)
{
	enum login_trouble trouble = login_trouble(why);

	if (trouble == LOGIN_COMMAND)
		return xasprintf("run that command of the entry (%s) by hand: "
		                 "its first line must be the secret, and its "
		                 "status 0",
		    place(v->sb));
	if (trouble != LOGIN_OTHER && v->sb->key_file != NULL)
		return key_todo(v, trouble);
	return explain_refused(why) ? refused_todo(v) : other_todo(v);
}
