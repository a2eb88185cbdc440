#include "cli/clients.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/proc.h"
#include "base/quote.h"
#include "base/str.h"
#include "config/jsonc.h"
#include "config/toml.h"

#define COMMAND_MS 60000
#define TOML_SECTION "mcp_servers"
#define AGENT "SSH_AUTH_SOCK"

/* --- where things are -----------------------------------------------------
 */

/* A file in the home directory, or by its name alone in the directory that a
 * variable tells. */
static char *
moved(const char *variable, const char *home, const char *path)
{
	const char *dir = getenv(variable);
	const char *name = strrchr(path, '/');

	if (str_blank(dir))
		return path_join(home, path);
	return path_join(dir, name != NULL ? name + 1 : path);
}

static char *
claude_file(const char *home)
{
	return moved("CLAUDE_CONFIG_DIR", home, ".claude.json");
}

static char *
codex_file(const char *home)
{
	return moved("CODEX_HOME", home, ".codex/config.toml");
}

static char *
gemini_file(const char *home)
{
	return path_join(home, ".gemini/settings.json");
}

#ifdef __APPLE__
#define VSCODE_DIR "Library/Application Support/Code/User"
#else
#define VSCODE_DIR ".config/Code/User"
#endif

static char *
vscode_file(const char *home)
{
	return path_join(home, VSCODE_DIR "/mcp.json");
}

static char *
cursor_file(const char *home)
{
	return path_join(home, ".cursor/mcp.json");
}

const struct client client_table[] = {
	{ "claude-code", "Claude Code", "claude", ".claude.json", claude_file,
	    "mcpServers", .typed = true, .own_command = true,
	    .then = "'claude mcp list' shows it; sessions that run now must be "
	            "started anew" },
	{ "codex", "Codex", "codex", ".codex", codex_file, .no_agent = true,
	    .then = "'codex mcp list' shows it" },
	{ "gemini", "Gemini CLI", "gemini", ".gemini", gemini_file,
	    "mcpServers", .no_agent = true,
	    .then = "'gemini mcp list' shows it" },
	{ "vscode", "VS Code", "code", VSCODE_DIR, vscode_file, "servers",
	    .typed = true,
	    .then = "'MCP: List Servers' in its command palette shows it" },
	{ "cursor", "Cursor", "cursor", ".cursor", cursor_file, "mcpServers",
	    .then = "start Cursor anew; its settings show it" },
	{ 0 },
};

const struct client *
client_find(const char *name)
{
	const struct client *c;

	for (c = client_table; c->name != NULL; c++) {
		if (strcmp(c->name, name) == 0)
			return c;
	}
	return NULL;
}

char *
client_which(const char *program)
{
	const char *path = getenv("PATH"), *end;
	char *dir, *whole;

	while (path != NULL && *path != '\0') {
		end = path + strcspn(path, ":");
		dir = xstrndup(path, (size_t)(end - path));
		whole = path_join(dir, program);
		free(dir);
		if (whole[0] == '/' && access(whole, X_OK) == 0)
			return whole;
		free(whole);
		path = *end == ':' ? end + 1 : end;
	}
	return NULL;
}

bool
client_there(const struct client *c, const char *home)
{
	char *program = client_which(c->program), *dir, *file;
	bool there = program != NULL;

	free(program);
	dir = path_join(home, c->dir);
	file = c->file(home);
	there = there || access(dir, F_OK) == 0 || access(file, F_OK) == 0;
	free(dir);
	free(file);
	return there;
}

/* --- files ----------------------------------------------------------------
 */

/* The lists of arguments are equal; none is an empty one. */
static bool
same_args(const json_t *a, const json_t *b)
{
	if (json_array_size(a) == 0 && json_array_size(b) == 0)
		return a == NULL || json_is_array(a);
	return json_equal(a, b);
}

/* The user has an agent that this client keeps from us. */
static bool
lacks_agent(const struct client *c)
{
	return c->no_agent && !str_blank(getenv(AGENT));
}

static json_t *
whole_entry(const struct client *c, const struct server_entry *e)
{
	json_t *o = json_object();

	if (c->typed)
		json_object_set_new(o, "type", json_string("stdio"));
	json_object_set_new(o, "command", json_string(e->command));
	if (json_array_size(e->args) > 0)
		json_object_set(o, "args", e->args);
	if (lacks_agent(c))
		json_object_set_new(o, "env",
		    json_pack("{s:s}", AGENT, "$" AGENT));
	return o;
}

/* Give an entry that is there our command; what else it has is the user's. */
static int
renew_json(const struct client *c, const struct server_entry *e,
    const json_t *old, struct change *ch, struct err *err)
{
	const char *const command[] = { c->section, e->name, "command", NULL };
	const char *const args[] = { c->section, e->name, "args", NULL };
	json_t *value = json_string(e->command);
	struct buf half;
	int rc;

	buf_init(&half, SIZE_MAX);
	rc = jsonc_set(&half, ch->before.data, ch->before.len, command, value,
	    err);
	if (rc == 0 && same_args(json_object_get(old, "args"), e->args))
		buf_add(&ch->after, half.data, half.len);
	else if (rc == 0)
		rc = jsonc_set(&ch->after, half.data, half.len, args, e->args,
		    err);
	buf_free(&half);
	json_decref(value);
	return rc;
}

static int
change_json(const struct client *c, const struct server_entry *e, bool forget,
    struct change *ch, struct err *err)
{
	const char *const path[] = { c->section, e->name, NULL };
	const struct buf *before = &ch->before;
	json_t *root = jsonc_decode(before->data, before->len, err);
	const json_t *old;
	json_t *whole;
	int rc = 0;

	if (root == NULL)
		return -1;
	old = json_object_get(json_object_get(root, c->section), e->name);
	if (forget) {
		rc = old == NULL
		    ? (buf_add(&ch->after, before->data, before->len), 0)
		    : jsonc_remove(&ch->after, before->data, before->len, path,
		          err);
	} else if (json_is_object(old) &&
	    json_object_get(old, "command") != NULL) {
		rc = renew_json(c, e, old, ch, err);
	} else {
		whole = whole_entry(c, e);
		rc = jsonc_set(&ch->after, before->data, before->len, path,
		    whole, err);
		json_decref(whole);
	}
	json_decref(root);
	return rc;
}

static int
change_toml(const struct client *c, const struct server_entry *e, bool forget,
    struct change *ch, struct err *err)
{
	const char *const table[] = { TOML_SECTION, e->name, NULL };
	const char *const args[] = { TOML_SECTION, e->name, "args", NULL };
	const struct buf *before = &ch->before;
	json_t *values;
	bool known, has;
	int rc;

	if (forget)
		return toml_remove(&ch->after, before->data, before->len, table,
		    err);
	if (toml_has(before->data, before->len, table, &known, err) == -1 ||
	    toml_has(before->data, before->len, args, &has, err) == -1)
		return -1;
	values = json_object();
	json_object_set_new(values, "command", json_string(e->command));
	if (has || json_array_size(e->args) > 0)
		json_object_set(values, "args", e->args);
	if (!known && lacks_agent(c))
		json_object_set_new(values, "env_vars",
		    json_pack("[s]", AGENT));
	rc =
	    toml_set(&ch->after, before->data, before->len, table, values, err);
	json_decref(values);
	return rc;
}

int
client_change(const struct client *c, const char *home,
    const struct server_entry *e, bool forget, struct change *out,
    struct err *err)
{
	char *path = c->file(home);
	int rc = change_init(out, path, err);

	free(path);
	if (rc == -1)
		return -1;
	rc = c->section != NULL ? change_json(c, e, forget, out, err)
	                        : change_toml(c, e, forget, out, err);
	return rc == -1 ? err_wrap(err, "%s", out->path) : 0;
}

bool
client_knows(const struct client *c, const struct server_entry *e,
    const struct change *ch)
{
	const char *const table[] = { TOML_SECTION, e->name, NULL };
	bool has = false;
	struct err err;
	json_t *root;

	if (c->section == NULL) {
		toml_has(ch->before.data, ch->before.len, table, &has, &err);
		return has;
	}
	root = jsonc_decode(ch->before.data, ch->before.len, &err);
	has =
	    json_object_get(json_object_get(root, c->section), e->name) != NULL;
	json_decref(root);
	return has;
}

/* --- commands -------------------------------------------------------------
 */

static json_t *
command_words(const struct client *c, const struct server_entry *e, bool forget)
{
	json_t *argv = json_pack("[sssss]", c->program, "mcp",
	    forget ? "remove" : "add", "--scope", "user");

	json_array_append_new(argv, json_string(e->name));
	if (!forget) {
		json_array_append_new(argv, json_string("--"));
		json_array_append_new(argv, json_string(e->command));
		json_array_extend(argv, e->args);
	}
	return argv;
}

char *
client_command_line(const struct client *c, const struct server_entry *e,
    bool forget)
{
	json_t *argv = command_words(c, e, forget);
	const json_t *word;
	struct buf b;
	size_t i;

	buf_init(&b, SIZE_MAX);
	json_array_foreach (argv, i, word) {
		if (i > 0)
			buf_addc(&b, ' ');
		quote_sh(&b, json_string_value(word));
	}
	json_decref(argv);
	return buf_take(&b);
}

int
client_command(const struct client *c, const struct server_entry *e,
    bool forget, const struct until *until, struct err *err)
{
	struct until limit = until_within(until, COMMAND_MS);
	json_t *list = command_words(c, e, forget);
	size_t n = json_array_size(list), i;
	const char **argv = xcalloc(n + 1, sizeof(*argv));
	struct proc_request req = { .argv = argv, .max_output = 8192 };
	struct proc_result res;
	int rc;

	for (i = 0; i < n; i++)
		argv[i] = json_string_value(json_array_get(list, i));
	rc = proc_run(&req, &res, &limit, err);
	if (rc == 0) {
		if (res.exit_code != 0)
			rc = err_set(err, ERR_IO,
			    "'%s mcp %s' ended with status %d: %.300s%.300s",
			    c->program, argv[2], res.exit_code, res.err.data,
			    res.out.data);
		proc_result_free(&res);
	}
	free(argv);
	json_decref(list);
	return rc;
}
