// What sdk1.mjs and sdk2.mjs check alike, whichever client they hand in.
//
// A client is given as an object with the few things the two SDKs do
// differently hidden behind one form:
//
//   connect()                  start the server and shake hands
//   version(), era()           what was negotiated
//   call(name, args, options)  call a tool
//   sdk                        the SDK's own client, for all that is the same
//   transport                  its transport

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const LIMIT_MS = 60000;
const CLOSE_MS = 1000;
const INVALID_PARAMS = -32602;
const SANDBOXES = '[{"name":"gpu 1","host":"192.0.2.1"}]';
const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint',
	'openWorldHint'];

export const clientInfo = { name: 'remote-sandbox-tests', version: '1.0.0' };

// [OPTIONS] -- COMMAND ARGS...
export function readArguments(usage) {
	const args = process.argv.slice(2);
	const split = args.indexOf('--');
	if (split === -1 || split === args.length - 1) {
		console.error(`usage: ${usage}`);
		process.exit(2);
	}
	const options = args.slice(0, split);
	const fixture = options.includes('--fixture');
	const [command, ...rest] = args.slice(split + 1);
	return {
		mode: options.find((option) => option !== '--fixture'),
		fixture,
		server: { command, args: rest },
	};
}

// The environment the SDKs give a server, with a home of its own, a sandbox
// that nobody reaches, and what recorders and sanitizers need to know.
function environment(defaults, home) {
	const env = { ...defaults, HOME: home, REMOTE_SANDBOX_LIST: SANDBOXES };
	for (const [name, value] of Object.entries(process.env))
		if (/^RSMCP_|SAN_OPTIONS$/.test(name))
			env[name] = value;
	return env;
}

function ok(text) {
	console.log(`ok ${text}`);
}

async function checkConnect(client, expected) {
	const begun = performance.now();
	await client.connect();
	const took = Math.round(performance.now() - begun);
	assert.equal(client.version(), expected.version);
	assert.equal(client.era(), expected.era);
	ok(`connect: ${expected.era}, ${expected.version}, ${took} ms`);
}

function checkIdentity(client) {
	const info = client.sdk.getServerVersion();
	assert.equal(info?.name, 'remote-sandbox');
	assert.match(info.version, /^\d+\.\d+/);
	assert.ok(client.sdk.getInstructions()?.trim(), 'no instructions');
	ok(`server is ${info.name} ${info.version}, with instructions`);
}

async function checkList(client, { fixture }) {
	const { tools } = await client.sdk.listTools();
	assert.ok(tools.length > 0, 'no tools');
	for (const tool of tools) {
		assert.ok(tool.description?.trim(), `${tool.name}: no description`);
		assert.equal(tool.inputSchema.type, 'object', tool.name);
		// The fixture's tools are there for the protocol, not for agents.
		for (const hint of fixture ? [] : HINTS)
			assert.equal(typeof tool.annotations?.[hint], 'boolean',
				`${tool.name}: ${hint} is not set`);
	}
	ok(`list: ${tools.length} tools`);
}

function checkServerInfo(result) {
	assert.ok(!result.isError, JSON.stringify(result));
	assert.equal(typeof result.structuredContent?.version, 'string');
	assert.equal(result.content.length, 1);
	assert.equal(result.content[0].type, 'text');
	assert.deepEqual(JSON.parse(result.content[0].text),
		result.structuredContent);
}

async function checkCall(client) {
	checkServerInfo(await client.call('get_server_info'));
	checkServerInfo(await client.call('get_server_info', {}));
	ok('call: get_server_info, text is the same as structuredContent');
	checkServerInfo(await client.call('get_server_info',
		{ surprise: true, more: { of: ['it'] } }));
	ok('call: arguments nobody knows do no harm');
}

async function rejects(promise, code) {
	const error = await promise.then(
		(result) => assert.fail(`a result came: ${JSON.stringify(result)}`),
		(reason) => reason);
	assert.equal(error.code, code, String(error));
}

async function checkUnknownTool(client) {
	await rejects(client.call('no_such_tool', {}), INVALID_PARAMS);
	ok(`unknown tool: error ${INVALID_PARAMS}`);
}

async function checkPrompts({ sdk }) {
	const { prompts } = await sdk.listPrompts();
	assert.deepEqual(prompts.map((prompt) => prompt.name),
		['run_on_sandbox', 'long_training_run', 'diagnose_sandbox']);
	const { messages: [message] } = await sdk.getPrompt(
		{ name: 'diagnose_sandbox', arguments: { sandbox: 'gpu 1' } });
	assert.equal(message.role, 'user');
	assert.match(message.content.text, /^Sandbox: gpu 1\./m);
	await rejects(sdk.getPrompt({ name: 'run_on_sandbox' }), INVALID_PARAMS);
	const { completion } = await sdk.complete({
		ref: { type: 'ref/prompt', name: 'run_on_sandbox' },
		argument: { name: 'sandbox', value: 'g' } });
	assert.deepEqual(completion.values, ['gpu 1']);
	ok(`prompts: ${prompts.length}, one got, a sandbox's name completed`);
}

async function checkResources({ sdk }) {
	const { resources } = await sdk.listResources();
	assert.deepEqual(resources.map((resource) => resource.uri),
		['sandbox://gpu%201/jobs']);
	const { resourceTemplates } = await sdk.listResourceTemplates();
	assert.equal(resourceTemplates.length, 4);
	// One of the clients makes one code of both eras'.
	await assert.rejects(sdk.readResource({ uri: 'sandbox://gpu2/jobs' }),
		/unknown sandbox 'gpu2'; available: gpu 1/);
	ok(`resources: ${resourceTemplates.length} templates`);
}

async function checkPing(client) {
	await client.sdk.ping();
	ok('ping');
}

async function checkProgress(client) {
	const seen = [];
	const result = await client.call('test_tool_with_progress', {},
		{ onprogress: ({ progress }) => seen.push(progress) });
	assert.ok(!result.isError, JSON.stringify(result));
	// Not all three: the SDKs lose one that comes right before the result.
	assert.ok(seen.length >= 2, `progress was ${seen}`);
	for (let i = 1; i < seen.length; i++)
		assert.ok(seen[i] > seen[i - 1], `progress was ${seen}`);
	ok(`progress: ${seen.join(', ')}`);
}

async function checkCancel(client) {
	const stop = new AbortController();
	const slow = client.call('test_slow', { seconds: 30 },
		{ signal: stop.signal });
	slow.catch(() => {});		// looked at below
	await sleep(200);
	stop.abort('the test says so');
	await assert.rejects(slow);
	const begun = performance.now();
	const result = await client.call('test_simple_text', {});
	const took = Math.round(performance.now() - begun);
	assert.ok(!result.isError, JSON.stringify(result));
	assert.ok(took < 1000, `the next call took ${took} ms`);
	ok(`cancel: the next call took ${took} ms`);
}

function isRunning(pid) {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}

async function checkClose(client) {
	const { pid } = client.transport;
	assert.ok(isRunning(pid), 'the server has gone already');
	const begun = performance.now();
	await client.sdk.close();
	while (isRunning(pid) && performance.now() - begun < CLOSE_MS)
		await sleep(5);
	const took = Math.round(performance.now() - begun);
	assert.ok(!isRunning(pid), `process ${pid} still runs`);
	assert.ok(took < CLOSE_MS, `closing took ${took} ms`);
	ok(`close: the server is gone after ${took} ms`);
}

async function runAll(client, expected, options) {
	await checkConnect(client, expected);
	if (!options.fixture)
		checkIdentity(client);
	await checkList(client, options);
	if (!options.fixture) {
		await checkCall(client);
		await checkPrompts(client);
		await checkResources(client);
	}
	await checkUnknownTool(client);
	if (expected.era === 'legacy')
		await checkPing(client);
	if (options.fixture) {
		await checkProgress(client);
		await checkCancel(client);
	}
	await checkClose(client);
}

// makeClient is given the server's parameters and returns a client as above.
export async function main(makeClient, expected, options, defaults) {
	const home = mkdtempSync(join(tmpdir(), 'rsmcp-'));
	const removeHome = () => rmSync(home, { recursive: true, force: true });
	process.on('exit', removeHome);
	setTimeout(() => {
		console.error(`FAIL not done after ${LIMIT_MS} ms`);
		process.exit(1);
	}, LIMIT_MS).unref();

	const client = makeClient(
		{ ...options.server, env: environment(defaults, home) });
	try {
		await runAll(client, expected, options);
	} catch (error) {
		const where = error.stack.match(/at (check\w+)/)?.[1] ?? 'setup';
		console.error(`FAIL ${where}: ${error.message.replace(/\s+/g, ' ')}`);
		await client.sdk.close().catch(() => {});
		process.exitCode = 1;
	}
}
