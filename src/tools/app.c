/* What tools share. */
#include "tools/app.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct app *
app_from(const struct config_sources *src, bool brief)
{
	struct app *app = xcalloc(1, sizeof(*app));

	config_load(&app->config, src);
	app->links = links_new(brief);
	pthread_mutex_init(&app->lock, NULL);
	if (app->config.count > 0 && app->config.no_default == NULL)
		app->active = &app->config.sandboxes[0];
	return app;
}

struct app *
app_new(const char *config_file, const json_t *first, bool brief)
{
	struct config_sources src;
	struct sshhost ssh;
	struct app *app;
	char *path;

	config_sources(&src, config_file, &path);
	sshhost_read(&ssh, ".");
	src.first = first;
	src.ssh = &ssh;
	app = app_from(&src, brief);
	sshhost_free(&ssh);
	free(path);
	config_forget_env();
	return app;
}

struct app *
app_new_only(const json_t *entry)
{
	struct config_sources src = {
		.first = entry,
		.home = getenv("HOME"), /* of a key file */
	};

	return app_from(&src, false);
}

void
app_free(struct app *app)
{
	if (app == NULL)
		return;
	links_free(app->links);
	config_free(&app->config);
	pthread_mutex_destroy(&app->lock);
	free(app);
}

bool
app_has_cluster(const struct app *app)
{
	size_t i;

	for (i = 0; i < app->config.count; i++) {
		if (app->config.sandboxes[i].slurm)
			return true;
	}
	return false;
}

const struct sandbox *
app_active(struct app *app)
{
	const struct sandbox *sb;

	pthread_mutex_lock(&app->lock);
	sb = app->active;
	pthread_mutex_unlock(&app->lock);
	return sb;
}

void
app_select(struct app *app, const struct sandbox *sb)
{
	pthread_mutex_lock(&app->lock);
	app->active = sb;
	pthread_mutex_unlock(&app->lock);
}

const struct sandbox *
app_sandbox(struct app *app, const char *name, struct err *err)
{
	const struct sandbox *active = app_active(app);

	return config_pick(&app->config, name,
	    active != NULL ? active->name : "", err);
}

const struct sandbox *
app_ssh_host(struct app *app, struct err *err)
{
	const struct sandbox *active = app_active(app);

	return config_pick_ssh_host(&app->config,
	    active != NULL ? active->name : "", err);
}
