/*
 * The server as a whole: lines in, lines out.
 *
 * The input is cut at newlines and each line is given to the server.  What it
 * sends must be messages as the protocol has them, and each request must get
 * one answer, unless it is cancelled.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "every.h"
#include "mcp/server.h"
#include "tools/prompt.h"
#include "tools/resource.h"
#include "tools/resource_uri.h"

#define OUTPUT_MAX ((size_t)64 << 20)
#define END_MS 20000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Made once: where the server writes, its news, and a pipe with a byte in it
 * while there are no further lines. */
static FILE *client;
static int wake[2];
static int over[2];

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static int
run_echo(struct call *call, const void *args, json_t **result, struct err *err)
{
	const struct every *a = args;

	(void)call;
	(void)err;
	*result = json_object();
	json_object_set_new(*result, "port", json_integer(a->port));
	if (a->text != NULL)
		json_object_set_new(*result, "text", json_string(a->text));
	return 0;
}

static int
run_text(struct call *call, const void *args, json_t **result, struct err *err)
{
	const struct every *a = args;

	(void)call;
	(void)err;
	*result = utf8_json(a->greeting, strlen(a->greeting));
	return 0;
}

static int
run_fail(struct call *call, const void *args, json_t **result, struct err *err)
{
	const struct every *a = args;

	(void)call;
	*result = json_object();
	json_object_set_new(*result, "error", json_string("hidden"));
	json_object_set_new(*result, "count", json_integer(a->count));
	return err_set(err, ERR_IO, "cannot: %s",
	    a->text != NULL ? a->text : "no text");
}

static int
run_raw(struct call *call, const void *args, json_t **result, struct err *err)
{
	struct request *rq = request_of(call);

	(void)args;
	(void)err;
	if (json_object_size(rq->client_caps) == 0) {
		rpc_fail(rq->fault, RPC_MISSING_CAPABILITY, "needs something");
		return -1;
	}
	*result = json_pack("{s:[]}", "content");
	return 0;
}

/* Tells of progress and waits to be cancelled, or for the input to end. */
static int
run_wait(struct call *call, const void *args, json_t **result, struct err *err)
{
	struct pollfd ended = { .fd = over[0], .events = POLLIN };
	const struct every *a = args;

	call_progress(call, (double)a->count, a->any, a->text);
	call_progress(call, (double)a->port, a->any, "\xff");
	if (until_poll(&call->until, &ended, 1, err) == -1)
		return -1;
	*result = json_object();
	json_object_set_new(*result, "port", json_integer(1));
	return 0;
}

static const struct out outputs[] = {
	{ "port", OUT_INT, "A port.", .always = true },
	{ "text", OUT_STRING, "A text." },
	{ 0 },
};

#define TAKES_EVERY .args = every_args, .args_size = sizeof(struct every)

static const struct tool tool_echo = { .name = "echo",
	.title = "Echo",
	.description = "Echoes.",
	.outputs = outputs,
	.run = run_echo,
	TAKES_EVERY };
static const struct tool tool_text = { .name = "text",
	.title = "Text",
	.description = "Text.",
	.flags = TOOL_TEXT,
	.run = run_text,
	TAKES_EVERY };
static const struct tool tool_fail = { .name = "fail",
	.title = "Fail",
	.description = "Fails.",
	.outputs = outputs,
	.run = run_fail,
	TAKES_EVERY };
static const struct tool tool_raw = { .name = "raw",
	.title = "Raw",
	.description = "Raw.",
	.flags = TOOL_RAW | TOOL_ADVANCED,
	.schema = "{\"type\":\"object\"}",
	.run = run_raw };
static const struct tool tool_wait = { .name = "wait",
	.title = "Wait",
	.description = "Waits.",
	.outputs = outputs,
	.run = run_wait,
	TAKES_EVERY };

static const struct tool *const tools[] = { &tool_echo, &tool_text, &tool_fail,
	&tool_raw, &tool_wait, NULL };

static const struct prompt_arg prompt_args[] = {
	{ "task", "What.", NULL },
	{ "sandbox", "Where.", "here" },
	{ 0 },
};

static const struct prompt prompts[] = {
	{ "ask", "Ask", "Asks.", prompt_args, "{task} {sandbox} {" },
	{ 0 },
};

static json_t *
list_resources(struct call *call)
{
	(void)call;
	return json_pack("[{s:s,s:s}]", "uri", "sandbox://a/jobs", "name", "a");
}

static json_t *
templates(void)
{
	return json_pack("[{s:s,s:s}]", "uriTemplate",
	    "sandbox://{sandbox}/jobs/{job}", "name", "a");
}

static json_t *
read_resource(struct call *call, const char *uri, struct err *err)
{
	struct resource_uri u;
	json_t *o = NULL;

	(void)call;
	if (resource_uri_parse(uri, &u, err) == 0)
		o = json_pack("{s:s}", "text", u.sandbox);
	resource_uri_free(&u);
	return o;
}

static const struct resources resources = { list_resources, templates,
	read_resource };

static json_t *
candidates(struct call *call, const char *name, const json_t *others)
{
	(void)call;
	(void)others;
	return json_pack("[s,s]", "gpu1", name);
}

static void
on_response(void *data, const struct rpc_msg *msg)
{
	(void)data;
	must(msg->kind == RPC_RESPONSE);
}

static const struct mcp_def def = {
	.name = "fuzz",
	.title = "Fuzz",
	.version = "0",
	.instructions = "None.",
	.tools = tools,
	.prompts = prompts,
	.resources = &resources,
	.candidates = candidates,
	.on_response = on_response,
	.max_calls = 4,
	.max_queued = 2,
};

/* What does not change from input to input; starting threads takes long. */
static void
prepare(struct server *s)
{
	struct err err;

	client = tmpfile();
	must(client != NULL);
	must(fs_pipe(wake, &err) == 0);
	must(fs_pipe(over, &err) == 0);
	json_object_seed(1);
	s->def = &def;
	s->tool_list = tools_list_json(&def);
	s->info = json_pack("{s:s,s:s}", "name", "fuzz", "version", "0");
	s->capabilities = json_pack("{s:{}}", "tools");
	s->calls =
	    calls_new(def.max_calls, def.max_queued, &server_calls_ops, &err);
	must(s->calls != NULL);
}

static void
begin(struct server *s)
{
	struct err err;

	s->session = V_NONE;
	must(ftruncate(fileno(client), 0) == 0);
	must(lseek(fileno(client), 0, SEEK_SET) == 0);
	s->out = frame_out_new(fileno(client), wake[1], &err);
	must(s->out != NULL);
}

/* Waits for the end of the calls; "sent" is all the server wrote. */
static void
end(struct server *s, struct buf *sent)
{
	char news[64], *space;
	size_t room;
	ssize_t n;

	must(write(over[1], "o", 1) == 1);
	must(calls_wait(s->calls, END_MS) == 0);
	must(read(over[0], news, 1) == 1);
	must(frame_out_close(s->out, END_MS) == 0);
	must(read(wake[0], news, sizeof(news)) > 0);
	json_decref(s->session_caps);
	s->session_caps = NULL;

	must(lseek(fileno(client), 0, SEEK_SET) == 0);
	do {
		space = buf_space(sent, 65536, &room);
		must(room > 0);
		n = read(fileno(client), space, room);
		must(n >= 0);
		buf_grew(sent, (size_t)n);
	} while (n > 0);
}

/* A result twice, as text and as it is, says the same. */
static void
check_result(const json_t *result)
{
	const json_t *data = json_object_get(result, "structuredContent");
	const json_t *content = json_object_get(result, "content");
	const json_t *block;
	json_t *again;

	must(json_is_object(result));
	if (content == NULL)
		return;
	must(json_is_array(content));
	block = json_array_get(content, 0);
	must(block == NULL || json_is_string(json_object_get(block, "text")));
	if (data == NULL)
		return;
	must(json_is_integer(json_object_get(data, "port")));
	again = json_loads(json_string_value(json_object_get(block, "text")), 0,
	    NULL);
	must(json_equal(again, data));
	json_decref(again);
}

static void
check_error(const json_t *error)
{
	const char *message =
	    json_string_value(json_object_get(error, "message"));

	must(json_integer_value(json_object_get(error, "code")) < -32000);
	must(message != NULL && message[0] != '\0');
}

static void
check_progress(const json_t *m)
{
	const json_t *params = json_object_get(m, "params");
	const char *method = json_string_value(json_object_get(m, "method"));

	must(method != NULL && strcmp(method, "notifications/progress") == 0);
	must(json_object_get(params, "progressToken") != NULL);
	must(json_is_number(json_object_get(params, "progress")));
}

/* Returns whether it is an answer. */
static bool
check_message(const char *line, size_t len)
{
	json_t *m = json_loadb(line, len,
	    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	const json_t *id = json_object_get(m, "id");
	const json_t *result = json_object_get(m, "result");
	const json_t *error = json_object_get(m, "error");
	const char *jsonrpc = json_string_value(json_object_get(m, "jsonrpc"));
	bool is_answer = result != NULL || error != NULL;

	must(m != NULL);
	must(len < FRAME_MAX);
	must(utf8_valid(line, len));
	must(jsonrpc != NULL && strcmp(jsonrpc, "2.0") == 0);
	must(id == NULL || json_is_string(id) || json_is_integer(id));
	must(result == NULL || error == NULL);
	if (result != NULL)
		check_result(result);
	else if (error != NULL)
		check_error(error);
	else
		check_progress(m);
	json_decref(m);
	return is_answer;
}

static size_t
answers_in(const struct buf *sent)
{
	const char *at = sent->data, *end = sent->data + sent->len;
	size_t answers = 0;

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));

		must(nl != NULL);
		answers += check_message(at, (size_t)(nl - at));
		at = nl + 1;
	}
	return answers;
}

/* How many answers a line should get; *cancels if it may take one away. */
static size_t
wanted_by(const char *line, size_t len, bool *cancels)
{
	struct rpc_fault fault;
	struct rpc_msg msg;
	size_t wanted;

	if (rpc_parse(line, len, &msg, &fault) == -1) {
		wanted = msg.method == NULL || msg.id != NULL;
	} else {
		wanted = msg.kind == RPC_REQUEST;
		if (msg.kind == RPC_NOTIFICATION)
			*cancels = true;
	}
	rpc_msg_free(&msg);
	return wanted;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data;
	size_t wanted = 0, answers, len;
	bool cancels = false;
	static struct server s;
	struct buf sent;

	if (client == NULL)
		prepare(&s);
	begin(&s);
	while (size > 0) {
		const char *nl = memchr(at, '\n', size);

		len = nl != NULL ? (size_t)(nl - at) : size;
		wanted += wanted_by(at, len, &cancels);
		server_take_line(&s, at, len);
		len += nl != NULL;
		at += len;
		size -= len;
	}
	buf_init(&sent, OUTPUT_MAX);
	end(&s, &sent);
	answers = answers_in(&sent);
	must(answers <= wanted);
	must(answers == wanted || cancels);
	buf_free(&sent);
	return 0;
}
