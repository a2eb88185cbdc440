/*
 * setup: a sandbox into the configuration, and this server into the clients.
 */
#include "cli/setup.h"

#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/clients.h"
#include "cli/command.h"

extern const struct command command_setup;

char *
setup_ask(const struct setup *s, const char *prompt)
{
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };
	char *line = NULL;
	struct err err;
	size_t size = 0;
	ssize_t n = -1;

	printf("%s", prompt);
	fflush(stdout);
	/* A signal ends the waiting; a line is then read to its end. */
	if (until_poll(&s->until, &in, 1, &err) == 1)
		n = getline(&line, &size, stdin);
	if (n == -1) {
		putchar('\n');
		free(line);
		return NULL;
	}
	while (n > 0 && strchr("\r\n", line[n - 1]) != NULL)
		line[--n] = '\0';
	return line;
}

bool
setup_yes(const struct setup *s, const char *prompt, bool dflt)
{
	char *whole = xasprintf("%s [%s] ", prompt, dflt ? "Y/n" : "y/N");
	char *line = setup_ask(s, whole);
	bool yes = dflt;

	/* At the end of input nobody has agreed to anything. */
	if (line == NULL || (!str_blank(line) && str_to_bool(line, &yes) == -1))
		yes = false;
	free(line);
	free(whole);
	return yes;
}

int
setup_change(const struct setup *s, const struct change *c, const char *what,
    struct err *err)
{
	char *backup;

	if (!change_needed(c)) {
		printf("%s: %s is as it should be.\n", what, c->path);
		return 0;
	}
	if (s->dry_run || s->ask)
		change_show(c);
	if (s->dry_run)
		return 0;
	if (s->ask && !setup_yes(s, "Make this change?", true)) {
		printf("%s: nothing was changed.\n", what);
		return 0;
	}
	if (change_make(c, &backup, err) == -1)
		return -1;
	printf("%s: %s %s%s%s.\n", what, s->remove ? "removed from" : "in",
	    c->path, backup != NULL ? "; what was there is in " : "",
	    backup != NULL ? backup : "");
	free(backup);
	return 0;
}

/* --- what was asked for ---------------------------------------------------
 */

static int
add_client(struct setup *s, const char *name)
{
	const struct client *c;

	if (s->clients == NULL)
		s->clients = json_array();
	if (strcmp(name, "none") == 0)
		return 0;
	s->no_client = strcmp(name, "all") == 0;
	for (c = client_table; c->name != NULL; c++) {
		if (strcmp(name, c->name) == 0 ||
		    (strcmp(name, "all") == 0 && client_there(c, s->home))) {
			json_array_append_new(s->clients, json_string(c->name));
			s->no_client = false;
		}
	}
	if (strcmp(name, "all") == 0 || client_find(name) != NULL)
		return 0;
	fprintf(stderr, "remote-sandbox-mcp: no client '%s'; there are", name);
	for (c = client_table; c->name != NULL; c++)
		fprintf(stderr, " %s,", c->name);
	fprintf(stderr, " all and none\n");
	return -1;
}

/* Fields of the entry, as options give them. */
struct fields {
	const char *host, *name, *user, *port, *key_file, *workdir;
	const char *password_command;
};

static void
set(json_t *entry, const char *field, const char *value)
{
	if (value != NULL)
		json_object_set_new(entry, field, json_string(value));
}

/* Servers are started in other directories than this one. */
static void
set_key_file(json_t *entry, const char *path)
{
	char *whole;

	if (path == NULL)
		return;
	whole = path_is_home(path) ? xstrdup(path) : setup_whole_path(path);
	set(entry, "key_file", whole);
	free(whole);
}

static int
make_entry(struct setup *s, const struct fields *f, struct err *err)
{
	json_t *given;
	int64_t port;

	if (f->host == NULL)
		return 0;
	given = setup_parse_host(f->host, err);
	if (given == NULL)
		return -1;
	s->entry = json_object();
	set(s->entry, "name", f->name);
	json_object_update(s->entry, given);
	json_decref(given);
	set(s->entry, "user", f->user);
	if (f->port != NULL) {
		if (str_to_int(f->port, 1, 65535, &port) == -1)
			return err_set(err, ERR_INVALID,
			    "--port must be a number from 1 to 65535");
		json_object_set_new(s->entry, "port", json_integer(port));
	}
	set_key_file(s->entry, f->key_file);
	set(s->entry, "workdir", f->workdir);
	if (f->password_command != NULL)
		json_object_set_new(s->entry, "password_command",
		    json_pack("[sss]", "sh", "-c", f->password_command));
	return 0;
}

/* --- doing it -------------------------------------------------------------
 */

static int
take_out(struct setup *s, struct err *err)
{
	if (s->sandbox != NULL && setup_forget_sandbox(s, err) == -1)
		return -1;
	if (s->clients == NULL && s->sandbox == NULL) {
		if (s->ask)
			setup_choose_clients(s);
		else
			add_client(s, "all");
	}
	return s->clients == NULL ? 0 : setup_clients(s, err);
}

static int
put_in(struct setup *s, struct err *err)
{
	bool nothing = s->entry == NULL && s->clients == NULL;

	if (nothing && s->ask &&
	    (setup_look_at_config(s, err) == -1 ||
	        setup_choose_sandbox(s, err) == -1))
		return -1;
	if (s->entry != NULL && setup_sandbox(s, err) == -1)
		return -1;
	if (s->clients == NULL && s->ask)
		setup_choose_clients(s);
	if (s->clients != NULL && setup_clients(s, err) == -1)
		return -1;
	if (!s->dry_run && until_check(&s->until, err) == 0)
		printf("'remote-sandbox-mcp doctor' looks whether all is "
		       "well.\n");
	return 0;
}

static int
do_setup(struct setup *s, const struct fields *f)
{
	struct err err = ERR_INIT;
	int rc;

	s->home = getenv("HOME");
	if (str_blank(s->home)) {
		fprintf(stderr, "remote-sandbox-mcp: HOME is not set\n");
		return EXIT_FAILED;
	}
	s->until = until_never();
	s->until.cancel_fd = cli_signal_fd();
	setvbuf(stdin, NULL, _IONBF, 0); /* what is read is what poll saw */
	rc = make_entry(s, f, &err);
	if (rc == 0)
		rc = s->remove ? take_out(s, &err) : put_in(s, &err);
	if (rc == 0)
		rc = until_check(&s->until, &err);
	if (rc == -1)
		fprintf(stderr, "remote-sandbox-mcp: %s\n", err.msg);
	return rc == 0 ? EXIT_OK : EXIT_FAILED;
}

static const struct option options[] = {
	{ "host", required_argument, NULL, 'H' },
	{ "name", required_argument, NULL, 'n' },
	{ "user", required_argument, NULL, 'u' },
	{ "port", required_argument, NULL, 'p' },
	{ "key-file", required_argument, NULL, 'k' },
	{ "workdir", required_argument, NULL, 'w' },
	{ "password-command", required_argument, NULL, 'P' },
	{ "client", required_argument, NULL, 'c' },
	{ "server-name", required_argument, NULL, 'N' },
	{ "command", required_argument, NULL, 'C' },
	{ "config", required_argument, NULL, 'f' },
	{ "sandbox", required_argument, NULL, 's' },
	{ "no-test", no_argument, NULL, 't' },
	{ "dry-run", no_argument, NULL, 'd' },
	{ "remove", no_argument, NULL, 'r' },
	{ "yes", no_argument, NULL, 'y' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* An option with a text. */
static const char **
text_option(int o, struct setup *s, struct fields *f)
{
	switch (o) {
	case 'H':
		return &f->host;
	case 'n':
		return &f->name;
	case 'u':
		return &f->user;
	case 'p':
		return &f->port;
	case 'k':
		return &f->key_file;
	case 'w':
		return &f->workdir;
	case 'P':
		return &f->password_command;
	case 'N':
		return &s->server_name;
	case 'C':
		return &s->command;
	case 'f':
		return &s->config_file;
	case 's':
		return &s->sandbox;
	default:
		return NULL;
	}
}

/* What was said must go together. */
static const char *
contradiction(const struct setup *s, const struct fields *f)
{
	bool fields = f->name != NULL || f->user != NULL || f->port != NULL ||
	    f->key_file != NULL || f->workdir != NULL ||
	    f->password_command != NULL;

	if (s->remove && f->host != NULL)
		return "--host adds a sandbox; --sandbox NAME names the one "
		       "to remove";
	if (!s->remove && s->sandbox != NULL)
		return "--sandbox goes with --remove; --host adds one";
	if (f->host == NULL && fields)
		return "these options describe a sandbox; name its --host too";
	if (!s->ask && !s->remove && f->host == NULL && s->clients == NULL)
		return "there is nobody to ask; say what to do by --host and "
		       "--client";
	if (s->command != NULL && s->command[0] != '/')
		return "--command must be a whole path, as clients have a "
		       "PATH of their own";
	return NULL;
}

static int
run(int argc, char **argv)
{
	struct setup s = { .server_name = "remote-sandbox" };
	struct fields f = { 0 };
	int o, status = EXIT_USAGE;
	const char *why, **text;

	s.home = getenv("HOME") != NULL ? getenv("HOME") : "/";
	s.ask = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	while ((o = command_option(&command_setup, argc, argv, options,
	            &status)) != -1) {
		if (o == COMMAND_DONE)
			goto out;
		text = text_option(o, &s, &f);
		if (text != NULL)
			*text = optarg;
		if (o == 'c' && add_client(&s, optarg) == -1)
			goto out;
		s.no_test |= o == 't';
		s.dry_run |= o == 'd';
		s.remove |= o == 'r';
		s.ask = s.ask && o != 'y';
	}
	why = argc != optind ? "it takes options only" : contradiction(&s, &f);
	if (why != NULL) {
		fprintf(stderr, "remote-sandbox-mcp: %s\n", why);
		status = command_usage(&command_setup);
	} else {
		status = do_setup(&s, &f);
	}
out:
	json_decref(s.entry);
	json_decref(s.clients);
	return status;
}

const struct command command_setup = {
	.name = "setup",
	.usage = "[--host HOST] [--client CLIENT] [--remove] [--dry-run] "
	         "[OPTION ...]",
	.summary = "Add a sandbox, and register this server with clients",
	.help =
	    "Without options it asks. The sandbox is tried before it is "
	    "added; files\n"
	    "are changed in place, with a copy of what was there beside "
	    "them.\n\n"
	    "  --host HOST        the machine: a name of your ssh "
	    "configuration, or\n"
	    "                     user@host:port\n"
	    "  --name NAME        what agents call it, if not HOST\n"
	    "  --user USER, --port PORT, --key-file FILE, --workdir DIR\n"
	    "                     as in its entry; ssh decides what is left "
	    "out\n"
	    "  --password-command TEXT\n"
	    "                     a shell command that prints the password\n"
	    "  --no-test          add it without logging in\n"
	    "  --client CLIENT    register with claude-code, codex, gemini, "
	    "vscode or\n"
	    "                     cursor, with all that are here, or none; may "
	    "be repeated\n"
	    "  --server-name NAME what clients call the server "
	    "(remote-sandbox)\n"
	    "  --command FILE     what clients start, if not this program\n"
	    "  --config FILE      the configuration file, if not the usual "
	    "one\n"
	    "  --remove           take the server out of --client, or of all "
	    "clients\n"
	    "  --sandbox SANDBOX  with --remove: take this one out of the "
	    "configuration\n"
	    "  --dry-run          only show what would change\n"
	    "  --yes              ask nothing\n\n"
	    "  remote-sandbox-mcp setup --host gpu1 --client all\n",
	.run = run,
};
