/*
 * The prompts of this program: the ways of working that the skill
 * (skills/remote-sandbox-script-exec) tells at length, for clients without
 * skills.
 */
#include "tools/prompt.h"

#define ARG_SANDBOX                                                            \
	{                                                                      \
		"sandbox", "Name of the sandbox; the most idle one if empty.", \
		    "the most idle one (select_sandbox with \"auto\")"         \
	}

#define ARG_PATH                                                       \
	{                                                              \
		"path",                                                \
		    "Local directory of the project; the current one " \
		    "if empty.",                                       \
		    "the current project"                              \
	}

static const struct prompt_arg run_args[] = {
	{ "task", "What to run, or what to find out.", NULL },
	ARG_SANDBOX,
	ARG_PATH,
	{ 0 },
};

static const char run_text[] =
    "Do this on a remote machine, with the tools of remote-sandbox:\n"
    "\n"
    "{task}\n"
    "\n"
    "Sandbox: {sandbox}. Local directory: {path}.\n"
    "\n"
    "1. Pick the sandbox and see that it answers (get_active_sandbox). If it "
    "does not, report what the tool says and stop.\n"
    "2. Use one remote directory for the project, ~/sandboxes/PROJECT, and "
    "give it as cwd. Files are edited here and synced, never edited there.\n"
    "3. Bring the code with sync_local_to_remote; leave out what is large and "
    "not needed (.git, .venv, node_modules, data) by excludes.\n"
    "4. Prepare the runtime by commands that can be repeated; for Python use "
    "uv (uv venv, uv pip install). If a command of this step fails, stop and "
    "report it with its stderr.\n"
    "5. Run: exec_bash for what ends within two minutes, else "
    "exec_bash_background and check_background_task with since_offset and "
    "wait_s. Do other work between two looks.\n"
    "6. Bring results back with sync_remote_to_local.\n"
    "7. Report the exit code and what came out; if it failed, the exit code "
    "and the part of the output that says why.\n";

static const struct prompt_arg train_args[] = {
	{ "command", "The command that trains, as run in the project.", NULL },
	{ "run_id", "Name of the run, also of its job, log and checkpoint.",
	    "PROJECT-YYYYMMDD-HHMM, with what is true" },
	{ "resume_command",
	    "How to go on from a checkpoint; found out if "
	    "empty.",
	    "to be found out; if there is no way, say so before you start" },
	ARG_SANDBOX,
	ARG_PATH,
	{ 0 },
};

static const char train_text[] =
    "Start a long run on a remote machine and look after it, with the tools "
    "of remote-sandbox:\n"
    "\n"
    "{command}\n"
    "\n"
    "Sandbox: {sandbox}. Local directory: {path}. Run id: {run_id}. To "
    "resume: {resume_command}.\n"
    "\n"
    "1. list_sandboxes with check_resources: enough free GPU memory, disk and "
    "memory for this? Then get_active_sandbox: it must answer.\n"
    "2. Sync the code to ~/sandboxes/PROJECT and prepare the runtime (uv), "
    "as repeatable commands. If that fails, stop and report command and "
    "stderr.\n"
    "3. Write scripts/run_RUNID.sh and scripts/resume_RUNID.sh here and sync "
    "them. Both write checkpoints/RUNID.json (step, time, path of the newest "
    "checkpoint), under a temporary name that is then renamed; the second "
    "reads it and goes on from there.\n"
    "4. Try the run script for a minute or a few steps with exec_bash.\n"
    "5. exec_bash_background with session_name RUNID, log_file "
    "logs/RUNID.log, idempotency_key RUNID, watch true, checkpoint_path, and "
    "with a resume script auto_resume true and resume_command. Keep watch_id "
    "and tell it.\n"
    "6. Do not wait for it. Look with check_background_task (since_offset, "
    "grep, wait_s at most 50) until it runs well, then tell how it can be "
    "followed and end your turn, or go on with other work.\n"
    "7. At the end: exit_code 0, then sync_remote_to_local the results; "
    "else report the exit code and the failing part of the log. A state "
    "\"unknown\" says nothing about the job, only that the host was not "
    "reached.\n";

static const struct prompt_arg diagnose_args[] = {
	{ "sandbox", "Name of the sandbox; all if empty.", "all of them" },
	{ "problem", "What was seen.", "not told" },
	{ 0 },
};

static const char diagnose_text[] =
    "Find out what is wrong with a remote machine, with the tools of "
    "remote-sandbox, and change nothing on it.\n"
    "\n"
    "Sandbox: {sandbox}. What was seen: {problem}.\n"
    "\n"
    "1. get_server_info: the local side, ssh included. list_sandboxes with "
    "check_resources: does it answer, and how busy is it? What it says about "
    "a failed login is exact; repeat it.\n"
    "2. If it answers, look by exec_bash at: uptime; df -h and df -i of home "
    "and /tmp; free -m; nvidia-smi if there is one; the five processes that "
    "use most memory and most CPU; dmesg or journalctl for the OOM killer, if "
    "readable; ulimit -a; which of tmux, tar, git, uv, python3 are there.\n"
    "3. list_background_tasks: jobs that are lost or left orphans, and the "
    "end of their logs.\n"
    "4. Report in three parts: what is wrong, how you know (command and "
    "output), what to do, in order. Ask before you stop, remove or restart "
    "anything.\n";

const struct prompt prompt_table[] = {
	{ "run_on_sandbox", "Run on a sandbox",
	    "Bring a project to a remote machine, run something there, bring "
	    "back what came out.",
	    run_args, run_text },
	{ "long_training_run", "Long training run",
	    "Start a run of hours or days that survives everything, with "
	    "checkpoints and resume.",
	    train_args, train_text },
	{ "diagnose_sandbox", "Diagnose a sandbox",
	    "Find out why a remote machine does not answer, is slow or loses "
	    "jobs.",
	    diagnose_args, diagnose_text },
	{ 0 },
};
