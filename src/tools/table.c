/* The tools of this program, in the order in which clients see them. */
#include "tools/tool.h"

extern const struct tool tool_cancel_background_watch;
extern const struct tool tool_cancel_file_transfer_task;
extern const struct tool tool_check_background_task;
extern const struct tool tool_check_file_transfer_task;
extern const struct tool tool_exec_bash;
extern const struct tool tool_exec_bash_background;
extern const struct tool tool_exec_bash_background_watch;
extern const struct tool tool_get_active_sandbox;
extern const struct tool tool_get_background_watch;
extern const struct tool tool_get_background_watch_progress;
extern const struct tool tool_get_server_info;
extern const struct tool tool_get_watchdog_status;
extern const struct tool tool_install_macos_watchdog;
extern const struct tool tool_install_watchdog;
extern const struct tool tool_list_background_tasks;
extern const struct tool tool_list_background_watch_events;
extern const struct tool tool_list_background_watches;
extern const struct tool tool_list_remote_files;
extern const struct tool tool_list_sandboxes;
extern const struct tool tool_read_background_watch_checkpoint;
extern const struct tool tool_read_background_watch_log;
extern const struct tool tool_read_remote_file;
extern const struct tool tool_remote_bash;
extern const struct tool tool_remote_bash_output;
extern const struct tool tool_remote_file_read;
extern const struct tool tool_select_sandbox;
extern const struct tool tool_stop_background_task;
extern const struct tool tool_sync_local_to_remote;
extern const struct tool tool_sync_local_to_remote_background;
extern const struct tool tool_sync_remote_to_local;
extern const struct tool tool_uninstall_macos_watchdog;
extern const struct tool tool_uninstall_watchdog;
extern const struct tool tool_wait_for_events;
extern const struct tool tool_watch_background_task;

const struct tool *const tool_table[] = {
	&tool_list_sandboxes,
	&tool_select_sandbox,
	&tool_get_active_sandbox,
	&tool_exec_bash,
	&tool_exec_bash_background,
	&tool_check_background_task,
	&tool_stop_background_task,
	&tool_list_background_tasks,
	&tool_list_remote_files,
	&tool_read_remote_file,
	&tool_sync_local_to_remote,
	&tool_sync_remote_to_local,
	&tool_sync_local_to_remote_background,
	&tool_check_file_transfer_task,
	&tool_cancel_file_transfer_task,
	&tool_get_server_info,
	&tool_install_watchdog,
	&tool_uninstall_watchdog,
	&tool_install_macos_watchdog,
	&tool_uninstall_macos_watchdog,
	&tool_watch_background_task,
	&tool_exec_bash_background_watch,
	&tool_list_background_watches,
	&tool_get_background_watch,
	&tool_get_background_watch_progress,
	&tool_read_background_watch_log,
	&tool_read_background_watch_checkpoint,
	&tool_cancel_background_watch,
	&tool_list_background_watch_events,
	&tool_wait_for_events,
	&tool_get_watchdog_status,
	&tool_remote_bash,
	&tool_remote_bash_output,
	&tool_remote_file_read,
	NULL,
};
