/*
 * The main loop: reads the client, watches for signals, ends in time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "mcp/server.h"

#define DEFAULT_CALLS 64
#define DEFAULT_QUEUED 1024

#define READ_SIZE ((size_t)64 << 10)

/* Ending takes a second at most: calls that are nearly done may finish, the
 * others are cancelled and clean up, the client gets what is queued. */
#define END_FINISH_MS 300
#define END_CANCEL_MS 400
#define END_WRITE_MS 200

enum turn { TURN_GO_ON, TURN_END_OF_INPUT, TURN_STOP };

static json_t *
info_json(const struct mcp_def *def)
{
	json_t *o = json_object();

	json_object_set_new(o, "name", json_string(def->name));
	json_object_set_new(o, "title", json_string(def->title));
	json_object_set_new(o, "version", json_string(def->version));
	return o;
}

static json_t *
capabilities_json(const struct mcp_def *def)
{
	json_t *o = json_object();
	json_t *more;

	json_object_set_new(o, "tools", json_object());
	if (def->prompts != NULL)
		json_object_set_new(o, "prompts", json_object());
	if (def->resources != NULL)
		json_object_set_new(o, "resources", json_object());
	if (def->candidates != NULL)
		json_object_set_new(o, "completions", json_object());
	if (def->capabilities != NULL) {
		more = json_loads(def->capabilities, 0, NULL);
		json_object_update(o, more);
		json_decref(more);
	}
	return o;
}

static void
server_free(struct server *s)
{
	frame_in_free(&s->in);
	json_decref(s->tool_list);
	json_decref(s->info);
	json_decref(s->capabilities);
	json_decref(s->session_caps);
	if (s->wake[0] != -1) {
		close(s->wake[0]);
		close(s->wake[1]);
	}
}

static int
server_init(struct server *s, const struct mcp_def *def, struct err *err)
{
	memset(s, 0, sizeof(*s));
	s->def = def;
	s->wake[0] = s->wake[1] = -1;
	/* Before there are threads: jansson seeds its hashes lazily. */
	json_object_seed(0);
	frame_in_init(&s->in);
	s->tool_list = tools_list_json(def);
	s->info = info_json(def);
	s->capabilities = capabilities_json(def);
	if (fs_pipe(s->wake, err) == -1)
		return -1;
	s->calls =
	    calls_new(def->max_calls > 0 ? def->max_calls : DEFAULT_CALLS,
	        def->max_queued > 0 ? def->max_queued : DEFAULT_QUEUED,
	        &server_calls_ops, err);
	return s->calls == NULL ? -1 : 0;
}

static void
too_long(struct server *s)
{
	struct rpc_fault fault;

	rpc_fail(&fault, RPC_INVALID_REQUEST,
	    "message is longer than %zu bytes", FRAME_MAX);
	server_fault(s, NULL, &fault);
}

static bool
blank(const char *line, size_t len)
{
	return strspn(line, " \t\r") >= len;
}

/* Whole lines that have arrived, as long as the client takes the replies. */
static void
take_lines(struct server *s)
{
	const char *line;
	size_t len;

	while (!(s->lines_wait = frame_out_full(s->out))) {
		switch (frame_in_next(&s->in, &line, &len)) {
		case FRAME_NONE:
			return;
		case FRAME_TOO_LONG:
			too_long(s);
			break;
		case FRAME_LINE:
			if (!blank(line, len))
				server_take_line(s, line, len);
			break;
		}
	}
}

/* A message without a newline at the end of input still counts, if it is
 * one; half a message is nobody's fault but the line's. */
static void
take_rest(struct server *s)
{
	const char *line;
	size_t len;
	struct rpc_msg msg;
	struct rpc_fault fault;

	if (frame_in_rest(&s->in, &line, &len) != FRAME_LINE ||
	    blank(line, len))
		return;
	if (rpc_parse(line, len, &msg, &fault) == 0)
		server_take_line(s, line, len);
	else
		log_warn("input ended in the middle of a message");
	rpc_msg_free(&msg);
}

static enum turn
read_input(struct server *s)
{
	static char chunk[READ_SIZE];
	ssize_t n = read(s->in_fd, chunk, sizeof(chunk));

	if (n > 0) {
		frame_in_add(&s->in, chunk, (size_t)n);
		take_lines(s);
		return TURN_GO_ON;
	}
	if (n == -1 && (errno == EINTR || errno == EAGAIN))
		return TURN_GO_ON;
	if (n == -1)
		log_error("cannot read from the client: %s", strerror(errno));
	take_rest(s);
	return TURN_END_OF_INPUT;
}

static enum turn
turn(struct server *s)
{
	enum { IN, SIGNAL, WAKE, COUNT };
	bool full = frame_out_full(s->out);
	struct pollfd fds[COUNT] = {
		/* A client that does not read gets no further requests taken,
		 * but its end is still noticed (POLLHUP needs no asking). */
		[IN] = { .fd = s->in_fd, .events = full ? 0 : POLLIN },
		[SIGNAL] = { .fd = s->signal_fd, .events = POLLIN },
		[WAKE] = { .fd = s->wake[0], .events = POLLIN },
	};
	char bytes[64];

	if (!full && s->lines_wait) {
		take_lines(s);
		return TURN_GO_ON;
	}
	if (poll(fds, COUNT, -1) == -1)
		return errno == EINTR ? TURN_GO_ON : TURN_STOP;
	if (fds[WAKE].revents != 0) {
		(void)!read(s->wake[0], bytes, sizeof(bytes));
		if (frame_out_broken(s->out)) {
			log_info("the client closed its end");
			return TURN_STOP;
		}
	}
	if (fds[SIGNAL].revents != 0)
		return TURN_STOP;
	if (full)
		return fds[IN].revents != 0 ? TURN_STOP : TURN_GO_ON;
	return fds[IN].revents != 0 ? read_input(s) : TURN_GO_ON;
}

/*
 * Let go of everything, in bounded time.  A call that does not end, or a
 * client that does not read, cannot be waited for: the process exits then.
 */
static void
end(struct server *s, enum turn how)
{
	bool stuck = false;

	if (how == TURN_STOP || calls_wait(s->calls, END_FINISH_MS) == -1) {
		calls_cancel_all(s->calls);
		stuck = calls_wait(s->calls, END_CANCEL_MS) == -1;
	}
	if (stuck)
		log_info("a call did not end when told to");
	if (frame_out_close(s->out, END_WRITE_MS) == -1 || stuck)
		_exit(0);
	calls_free(s->calls);
	server_free(s);
}

int
mcp_serve(const struct mcp_def *def, int in, int out, int signal_fd,
    struct err *err)
{
	struct server s;
	enum turn t;

	if (server_init(&s, def, err) == -1) {
		server_free(&s);
		return -1;
	}
	s.in_fd = in;
	s.signal_fd = signal_fd;
	s.out = frame_out_new(out, s.wake[1], err);
	if (s.out == NULL) {
		calls_free(s.calls);
		server_free(&s);
		return -1;
	}
	do
		t = turn(&s);
	while (t == TURN_GO_ON);
	end(&s, t);
	return 0;
}
