// Runs the MCP project's own conformance suite against a stdio server, through
// the bridge beside this file.
//
//   node conformance.mjs --version 2025-06-18|2025-11-25|2026-07-28
//        [--scenario NAME] -- SERVER ARGS...
//
// Every server scenario of that version runs, extensions apart; those marked
// "required" stand in the suite's frozen list for the version (2025-06-18 has
// none).  What cannot pass over stdio stands in conformance-baseline-VERSION.yml
// with its reason; so does, under "untested", a scenario that looks at nothing
// here.  Ends with 0 only if all came out as expected: nothing fails and nothing
// passes untested that the file does not name, and it names nothing in vain.

import { spawn, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const suite = path.join(here, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const VERSIONS = ['2025-06-18', '2025-11-25', '2026-07-28'];

function parseArgs(argv) {
	const end = argv.indexOf('--');
	const options = {};
	for (let i = 0; i < end; i += 2)
		options[argv[i].replace(/^--/, '')] = argv[i + 1];
	if (end === -1 || end === argv.length - 1 || !VERSIONS.includes(options.version)) {
		console.error(`usage: conformance.mjs --version ${VERSIONS.join('|')} [--scenario NAME] -- SERVER ARGS...`);
		process.exit(2);
	}
	return { ...options, command: argv.slice(end + 1) };
}

// The names in a listing of the suite, up to its client section.
function listed(...args) {
	const text = execFileSync(process.execPath, [suite, 'list', ...args], { encoding: 'utf8' });
	return text.split(/^Client scenarios/m)[0].split('\n').map((line) => /^  - (\S+)(?: \[(.*)\])?/.exec(line))
		.filter(Boolean).map(([, name, versions]) => ({ name, versions: versions?.split(',') ?? [] }));
}

function chooseScenarios(version) {
	const all = listed('--server').filter((s) => s.versions.includes(version)).map((s) => s.name);
	const required = version === '2025-06-18' ? [] : listed('--requirements', version).map((s) => s.name);
	return { names: [...new Set([...required, ...all])], required: new Set(required) };
}

// The suite itself reads only the list "server" of this file.
function readBaseline(file) {
	const entries = { server: new Set(), untested: new Set() };
	let list;
	for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
		const [, entry, reason] = /^\s*- (\S+)\s*(#.*)?$/.exec(line) ?? [];
		list = /^(\w+):/.exec(line)?.[1] ?? list;
		if (entry && !reason)
			throw new Error(`${file}: ${entry} has no reason beside it`);
		if (entry)
			entries[list].add(entry);
	}
	return entries;
}

async function startBridge({ version, command }) {
	const pin = version === '2026-07-28' ? [] : ['--legacy', version];
	const bridge = spawn(process.execPath, [path.join(here, 'bridge.mjs'), ...pin, '--', ...command],
		{ stdio: ['pipe', 'pipe', 'inherit'] });
	const ended = new Promise((done) => bridge.on('close', done));
	for await (const line of readline.createInterface({ input: bridge.stdout })) {
		const url = line.replace(/^listening /, '');
		return { url, stop: () => { bridge.stdin.end(); return ended; } };
	}
	throw new Error('the bridge did not start');
}

function runSuite(url, { version, scenario }, baseline, dir) {
	const which = scenario ? ['--scenario', scenario] : ['--suite', 'all'];
	const run = spawn(process.execPath, [suite, 'server', '--url', url, ...which, '--spec-version', version,
		'--expected-failures', baseline, '-o', dir], { stdio: ['ignore', 'pipe', 'pipe'] });
	let output = '';
	run.stdout.on('data', (data) => { output += data; });
	run.stderr.on('data', (data) => { output += data; });
	return new Promise((done) => run.on('close', (status) => done({ status, output })));
}

// The suite leaves one folder a scenario: server-NAME-TIME.
function readChecks(dir, name) {
	const escaped = name.replace(/[^A-Za-z0-9-]/g, '.');
	const folder = fs.readdirSync(dir).find((d) => new RegExp(`^server-${escaped}-\\d{4}-\\d\\d-\\d\\dT`).test(d));
	const file = folder && path.join(dir, folder, 'checks.json');
	return file && fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : null;
}

// A success that only shows an error, such as "no such tool", is none.
function hollow(check) {
	return check.status === 'SUCCESS' && check.id !== 'tools-call-error' && check.details?.result?.isError === true;
}

function judge(name, checks, baseline, used) {
	if (checks === null)
		return { state: 'NOT RUN', bad: [] };
	const bad = checks.filter((c) => c.status === 'FAILURE' || c.status === 'WARNING' || hollow(c));
	const excused = bad.filter((c) => [name, `${name}:${c.id}`].some((e) => baseline.server.has(e) && used.add(e)));
	if (bad.length > excused.length)
		return { state: 'FAIL', bad: bad.filter((c) => !excused.includes(c)) };
	if (excused.length > 0)
		return { state: 'in baseline', bad: [] };
	if (checks.some((c) => c.status === 'SUCCESS' && c.id !== 'wire-schema-valid'))
		return { state: 'pass', bad: [] };
	return { state: baseline.untested.has(name) && used.add(name) ? 'untested' : 'UNTESTED', bad: [] };
}

function count(checks, ...states) {
	return (checks ?? []).filter((c) => states.includes(c.status)).length;
}

// Prints the table; returns whether every scenario came out as expected.
function report(options, { names, required }, baseline, dir) {
	const used = new Set();
	const totals = {};
	let passed = 0, failed = 0;
	console.log(`${'scenario'.padEnd(47)} ${'list'.padEnd(8)} ok bad  -  verdict`);
	for (const name of names) {
		const checks = readChecks(dir, name);
		const { state, bad } = judge(name, checks, baseline, used);
		const ok = count(checks, 'SUCCESS'), not = count(checks, 'FAILURE', 'WARNING');
		console.log(`${name.padEnd(47)} ${(required.has(name) ? 'required' : '').padEnd(8)} ` +
			`${String(ok).padStart(2)} ${String(not).padStart(3)} ${String(count(checks, 'SKIPPED', 'INFO')).padStart(2)}  ${state}`);
		for (const c of bad)
			console.log(`    ${hollow(c) ? 'HOLLOW' : c.status} ${c.id}: ${c.errorMessage ?? JSON.stringify(c.details)?.slice(0, 600)}`);
		totals[state] = (totals[state] ?? 0) + 1;
		passed += ok;
		failed += not;
	}
	const idle = options.scenario ? [] : [...baseline.server, ...baseline.untested].filter((entry) => !used.has(entry));
	for (const entry of idle)
		console.log(`the baseline names ${entry} in vain`);
	console.log(`${options.version}: ${names.length} scenarios: ` +
		Object.entries(totals).map(([state, n]) => `${n} ${state}`).join(', ') +
		`; checks: ${passed} passed, ${failed} not`);
	return !totals.FAIL && !totals['NOT RUN'] && !totals.UNTESTED && idle.length === 0;
}

async function main() {
	const options = parseArgs(process.argv.slice(2));
	const file = path.join(here, `conformance-baseline-${options.version}.yml`);
	const baseline = readBaseline(file);
	const chosen = chooseScenarios(options.version);
	if (options.scenario)
		chosen.names = [options.scenario];
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'conformance-'));
	try {
		const bridge = await startBridge(options);
		const { status, output } = await runSuite(bridge.url, options, file, dir);
		await bridge.stop();
		const good = report(options, chosen, baseline, dir);
		if (good && status !== 0 || chosen.names.some((name) => readChecks(dir, name) === null))
			console.log(`the suite ended with ${status}:\n${output.split('\n').slice(-15).join('\n')}`);
		return good && status === 0 ? 0 : 1;
	} finally {
		fs.rmSync(dir, { recursive: true });
	}
}

process.exitCode = await main();
