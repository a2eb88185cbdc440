/*
 * The command line: one file a command, one row each in the table.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>

/* Exit statuses of every command. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* it was understood and did not work */
	EXIT_USAGE = 2,  /* it was not understood */
};

struct tool;

struct command {
	const char *name;
	const char *usage;   /* what follows the name, "" if nothing */
	const char *summary; /* one line */
	const char *help;    /* the rest of what -h prints */
	bool hidden;         /* for the program itself, not for people */
	/* argv[0] is the program's name; what follows is the command's. */
	int (*run)(int argc, char **argv);
};

/* NULL-terminated, in the order that help shows. */
extern const struct command *const command_table[];

const struct command *command_find(const char *name);

/* Print the usage line on stderr; returns EXIT_USAGE. */
int command_usage(const struct command *c);
/* Print what -h shows on stdout; returns EXIT_OK. */
int command_help(const struct command *c);

/*
 * The next option of "-x" or "--word" form, by getopt_long with the given
 * tables; -h and --help are handled for every command.  Returns the option's
 * value, -1 at the end, or COMMAND_DONE with *status to return.
 */
struct option;
#define COMMAND_DONE (-2)
int command_option(const struct command *c, int argc, char **argv,
    const struct option *options, int *status);

/* The tool of this name, or NULL after saying on stderr that there is none. */
const struct tool *cli_tool(const char *name);

/* Serve on stdio; what happens without arguments. */
int cli_serve(const char *config_file, bool local);

/* A descriptor that becomes readable when SIGINT, SIGTERM or SIGHUP came. */
int cli_signal_fd(void);

#endif
