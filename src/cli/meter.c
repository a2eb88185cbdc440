#include "cli/meter.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

#include "ssh/clean.h"

#define BAR 20
#define TERMINAL_MS 100
#define LINES_MS 5000
#define RATE_AFTER_MS 500 /* before that it is a guess */

void
meter_init(struct meter *m, FILE *out, bool terminal)
{
	memset(m, 0, sizeof(*m));
	m->out = out;
	m->terminal = terminal;
}

void
meter_bytes(struct buf *out, int64_t n)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB" };
	double v = (double)n / 1000;
	size_t i = 0;

	if (n < 1000) {
		buf_addf(out, "%" PRId64 " B", n);
		return;
	}
	while (v >= 999.5 && i < 4) {
		v /= 1000;
		i++;
	}
	buf_addf(out, "%.*f %s", v < 99.95 ? 1 : 0, v, units[i]);
}

void
meter_time(struct buf *out, int64_t seconds)
{
	if (seconds >= 3600)
		buf_addf(out, "%" PRId64 ":%02d:", seconds / 3600,
		    (int)(seconds / 60 % 60));
	else
		buf_addf(out, "%d:", (int)(seconds / 60));
	buf_addf(out, "%02d", (int)(seconds % 60));
}

/* Bytes tell most; of empty files only their number does. */
static double
share(const struct sync_progress *p)
{
	double total = (double)p->bytes_total, done = (double)p->bytes_done;

	if (p->bytes_total == 0) {
		total = (double)p->files_total;
		done = (double)p->files_done;
	}
	if (total <= 0)
		return 0;
	return done < total ? done / total : 1;
}

static void
add_rate(struct buf *out, const struct sync_progress *p)
{
	double rate;

	if (p->elapsed_ms < RATE_AFTER_MS || p->bytes_done <= 0)
		return;
	rate = (double)p->bytes_done * 1000 / (double)p->elapsed_ms;
	buf_adds(out, "  ");
	meter_bytes(out, (int64_t)rate);
	buf_adds(out, "/s");
	if (p->bytes_done >= p->bytes_total)
		return;
	buf_adds(out, "  ETA ");
	meter_time(out,
	    (int64_t)((double)(p->bytes_total - p->bytes_done) / rate));
}

/* File names come from anywhere: nothing in them reaches the terminal as a
 * control sequence, and a newline is a blank. */
static void
add_path(struct buf *out, const char *path, size_t width)
{
	struct buf clean;
	size_t i, n = 0;

	if (path[0] == '\0')
		return;
	buf_init(&clean, 4096);
	clean_text(&clean, path, strlen(path));
	buf_adds(out, "  ");
	for (i = 0; i < out->len; i++)
		n += ((unsigned char)out->data[i] & 0xc0) != 0x80;
	for (i = 0; i < clean.len; i++) {
		char c = clean.data[i];

		n += ((unsigned char)c & 0xc0) != 0x80;
		if (n > width)
			break;
		if (c == '\n' || c == '\t')
			c = ' ';
		buf_addc(out, c);
	}
	buf_free(&clean);
}

void
meter_line(struct buf *out, const struct sync_progress *p, size_t width)
{
	double part = share(p);
	int i;

	if (p->files_total == 0 && p->bytes_total == 0) {
		buf_addf(out, "%s", p->phase);
		add_path(out, p->path, width);
		return;
	}
	buf_addc(out, '[');
	for (i = 0; i < BAR; i++)
		buf_addc(out, i < (int)(part * BAR) ? '#' : '.');
	buf_addf(out, "] %3d%%  %" PRId64 "/%" PRId64 " files  ",
	    (int)(part * 100), p->files_done, p->files_total);
	meter_bytes(out, p->bytes_done);
	buf_adds(out, "/");
	meter_bytes(out, p->bytes_total);
	add_rate(out, p);
	if (out->len > width) { /* it is ASCII up to here */
		out->len = width;
		out->data[width] = '\0';
		return;
	}
	add_path(out, p->path, width);
}

static size_t
columns(FILE *out)
{
	struct winsize ws;

	if (ioctl(fileno(out), TIOCGWINSZ, &ws) == -1 || ws.ws_col < 20)
		return 79;
	return ws.ws_col - 1u;
}

void
meter_show(struct meter *m, const struct sync_progress *p)
{
	size_t width = m->terminal ? columns(m->out) : 1000;
	bool news = strcmp(m->phase, p->phase) != 0;
	struct buf line;

	if (!news && p->elapsed_ms < m->next_ms)
		return;
	m->next_ms = p->elapsed_ms + (m->terminal ? TERMINAL_MS : LINES_MS);
	snprintf(m->phase, sizeof(m->phase), "%s", p->phase);
	buf_init(&line, 8192);
	meter_line(&line, p, width);
	if (m->terminal)
		fprintf(m->out, "\r\x1b[K%s", line.data);
	else
		fprintf(m->out, "%s\n", line.data);
	fflush(m->out);
	m->drawn = m->terminal;
	buf_free(&line);
}

void
meter_end(struct meter *m)
{
	if (m->drawn)
		fputs("\r\x1b[K", m->out);
	fflush(m->out);
	m->drawn = false;
}
