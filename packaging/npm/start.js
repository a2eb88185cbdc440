#!/usr/bin/env node
// Starts the native program, which is in a package of its own per platform.
'use strict';
const { spawn } = require('node:child_process');
const { accessSync, constants, realpathSync } = require('node:fs');
const { delimiter, join } = require('node:path');

const name = 'remote-sandbox-mcp';
const platform = `${name}-${process.platform}-${process.arch}`;

function usable(path) {
	try {
		accessSync(path, constants.X_OK);
		return path;
	} catch {
		return undefined;
	}
}

function fromPackage() {
	try {
		return usable(require.resolve(`${platform}/bin/${name}`));
	} catch {
		return undefined;
	}
}

// One that is a script is this file, by way of npm's link to it.
function fromPath() {
	return (process.env.PATH || '').split(delimiter)
		.map((folder) => usable(join(folder || '.', name)))
		.find((path) => path && !realpathSync(path).endsWith('.js'));
}

// A child that shares our streams; signals go on to it, its end is ours.  They
// are caught before it starts: it may answer before spawn() returns.
function run(path, args) {
	let child;
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
		process.on(signal, () => child.kill(signal));
	child = spawn(path, args, { stdio: 'inherit' });
	child.on('error', (error) => {
		console.error(`${name}: cannot start ${path}: ${error.message}`);
		process.exit(1);
	});
	child.on('exit', (code, signal) => {
		if (signal === null)
			process.exit(code);
		process.removeAllListeners(signal);
		process.kill(process.pid, signal);
	});
}

const args = process.argv.slice(2);
const path = fromPackage() || fromPath();
if (path === undefined) {
	console.error(`${name}: there is no package ${platform} here and no ` +
		`${name} in PATH. If npm left it out (a lock file made on another ` +
		'platform does that), remove the lock file and node_modules and ' +
		`install again, or run: npm install ${platform}`);
	process.exit(1);
}
if (typeof process.execve === 'function') {
	// Newer versions of Node can get out of the way altogether.
	process.removeAllListeners('warning');
	process.execve(path, [path, ...args], process.env);
} else {
	run(path, args);
}
