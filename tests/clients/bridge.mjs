// Speaks MCP's Streamable HTTP on a loopback port and hands every message to a
// stdio server, so that test suites that know only HTTP can test it.
//
//   node bridge.mjs [--legacy VERSION] -- SERVER ARGS...
//
// prints "listening http://127.0.0.1:PORT/mcp" and serves until its stdin ends
// or it gets SIGTERM.  Requests of the modern era (2026-07-28) share one child;
// each legacy session has a child of its own.  Request ids and progress tokens
// are replaced on the way in and restored on the way out.
//
// --legacy makes each handshake ask the server for VERSION, because the suite's
// client always asks for the newest one it knows.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const NAMESPACE = 'io.modelcontextprotocol/';
const LOCAL = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;
// Where each method keeps the value that Mcp-Name repeats.
const NAMED = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' };

const args = process.argv.slice(2);
const command = args.slice(args.indexOf('--') + 1);
const legacyVersion = args[0] === '--legacy' ? args[1] : undefined;
const children = new Set();
const sessions = new Map();
const headerParams = new Map(); // tool -> [[parameter, header], ...]
let shared = null;

// One HTTP request whose answer is still to come from a child.
class Call {
	constructor(msg, res, modern, headers = {}) {
		const meta = msg.params?._meta ?? {};
		Object.assign(this, { id: msg.id, method: msg.method, token: meta.progressToken, res, modern, headers });
		this.complete = NAMESPACE + 'protocolVersion' in meta && NAMESPACE + 'clientCapabilities' in meta;
		this.logs = !modern || NAMESPACE + 'logLevel' in meta;
	}

	event(msg) {
		if (!this.res.headersSent)
			this.res.writeHead(200, { ...this.headers, 'Content-Type': 'text/event-stream',
				'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no' }).flushHeaders();
		if (msg !== undefined)
			this.res.write(`data: ${JSON.stringify(msg)}\n\n`);
	}

	finish(msg) {
		if (this.res.headersSent) {
			this.event(msg);
			this.res.end();
		} else {
			reply(this.res, this.status(msg.error?.code), msg, this.headers);
		}
	}

	status(code) {
		if (!this.modern || code === undefined)
			return 200;
		if (code === -32601)
			return 404;
		return code <= -32020 && code >= -32022 || code === -32602 && !this.complete ? 400 : 200;
	}
}

// A running server and the calls it has not answered yet, by the id it knows.
class Child {
	constructor(onEnd) {
		const dir = process.env.RSMCP_WIRE_DIR;
		const tap = dir ? ['python3', fileURLToPath(new URL('../wire/tap.py', import.meta.url)), '--dir', dir, '--'] : [];
		const [program, ...rest] = [...tap, ...command];
		this.calls = new Map();
		this.next = 1;
		this.stream = null; // the open GET of a legacy client
		this.process = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
		this.process.stdin.on('error', () => {});
		children.add(this);
		this.ended = new Promise((done) => {
			this.process.on('error', (e) => { console.error(`bridge: cannot start ${program}: ${e.message}`); done(); });
			this.process.on('close', done);
		}).then(() => this.end(onEnd));
		readline.createInterface({ input: this.process.stdout }).on('line', (line) => this.read(line));
	}

	read(line) {
		let msg;
		try {
			msg = JSON.parse(line);
		} catch {
			console.error(`bridge: the server wrote a line that is not JSON: ${line}`);
			return this.close();
		}
		return msg.method === undefined ? this.answer(msg) : this.receive(msg);
	}

	// Ask the server to end, and make it end if it does not.
	close() {
		this.process.stdin.end();
		setTimeout(() => this.process.kill('SIGTERM'), 2000).unref();
		return this.ended;
	}

	end(onEnd) {
		onEnd();
		children.delete(this);
		this.stream?.end();
		for (const call of this.calls.values())
			call.finish({ jsonrpc: '2.0', id: call.id, error: { code: -32603, message: 'the server ended before it answered' } });
		this.calls.clear();
	}

	send(msg) {
		this.process.stdin.write(JSON.stringify(msg) + '\n');
	}

	start(msg, call) {
		const id = this.next++;
		const params = msg.params && { ...msg.params };
		if (call.token !== undefined)
			params._meta = { ...params._meta, progressToken: id };
		if (msg.method === 'initialize' && !call.modern && legacyVersion)
			params.protocolVersion = legacyVersion;
		this.calls.set(id, call);
		this.send({ ...msg, id, params });
		// In the modern era leaving is cancelling; a legacy client must say it.
		if (call.modern)
			call.res.on('close', () => this.calls.delete(id) &&
				this.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'the stream was closed' } }));
	}

	// A legacy client's notification; the id in it is the client's.
	notify(msg) {
		if (msg.method === 'notifications/cancelled') {
			const [id, call] = [...this.calls].find(([, c]) => c.id === msg.params?.requestId) ?? [];
			if (!call)
				return;
			this.calls.delete(id);
			call.event();
			call.res.end();
			msg = { ...msg, params: { ...msg.params, requestId: id } };
		}
		this.send(msg);
	}

	receive(msg) {
		const call = this.owner(msg);
		const meta = msg.params?._meta;
		if (meta && NAMESPACE + 'subscriptionId' in meta && call)
			meta[NAMESPACE + 'subscriptionId'] = call.id;
		if (msg.params?.progressToken !== undefined && call)
			msg.params.progressToken = call.token;
		if (call)
			call.event(msg);
		else if (this.stream)
			this.stream.write(`data: ${JSON.stringify(msg)}\n\n`);
		else if (msg.id !== undefined)
			this.send({ jsonrpc: '2.0', id: msg.id, error: { code: -32603, message: 'no stream leads to the client' } });
	}

	answer(msg) {
		const call = this.calls.get(msg.id);
		if (!this.calls.delete(msg.id))
			return console.error(`bridge: an answer nobody waits for: ${JSON.stringify(msg)}`);
		if (call.method === 'tools/list')
			learnHeaders(msg.result?.tools ?? []);
		if (msg.result?._meta && NAMESPACE + 'subscriptionId' in msg.result._meta)
			msg.result._meta[NAMESPACE + 'subscriptionId'] = call.id;
		call.finish({ ...msg, id: call.id });
	}

	// The call that a message of the server belongs to.  Nothing on stdio says
	// it for log messages and questions: they go to the newest call that can
	// have caused them.  Changes of a list are nobody's.
	owner(msg) {
		const { progressToken, _meta } = msg.params ?? {};
		const id = progressToken ?? _meta?.[NAMESPACE + 'subscriptionId'];
		if (id !== undefined)
			return this.calls.get(id);
		if (msg.id === undefined && msg.method !== 'notifications/message')
			return undefined;
		const calls = [...this.calls.values()];
		return calls.filter((c) => c.method in NAMED && c.logs).pop() ?? calls.pop();
	}
}

function reply(res, status, body, headers = {}) {
	const text = body === undefined ? '' : JSON.stringify(body);
	res.writeHead(status, { ...headers, ...(text && { 'Content-Type': 'application/json' }) }).end(text);
}

function refuse(res, status, code, message, id) {
	reply(res, status, { jsonrpc: '2.0', ...(id !== undefined && { id }), error: { code, message } });
}

function learnHeaders(tools) {
	for (const tool of tools)
		headerParams.set(tool.name, Object.entries(tool.inputSchema?.properties ?? {})
			.filter(([, p]) => p['x-mcp-header']).map(([name, p]) => [name, p['x-mcp-header']]));
}

// The text of a header, or NaN (equal to nothing) for bad Base64.
function decode(value) {
	const [, text] = /^=\?base64\?(.*)\?=$/.exec(value ?? '') ?? [];
	if (text === undefined)
		return value;
	const bytes = Buffer.from(text, 'base64');
	return bytes.toString('base64') === text ? bytes.toString() : NaN;
}

// Says which header of a modern request contradicts its body, if one does.
function contradiction({ method, params }, headers) {
	const version = params?._meta?.[NAMESPACE + 'protocolVersion'];
	const name = params?.[NAMED[method]];
	const given = headers['mcp-protocol-version'];
	if (given === undefined || version !== undefined && version !== given)
		return 'MCP-Protocol-Version';
	if (headers['mcp-method'] !== method)
		return 'Mcp-Method';
	if (name !== undefined && decode(headers['mcp-name']) !== name)
		return 'Mcp-Name';
	for (const [param, header] of method === 'tools/call' && headerParams.get(name) || []) {
		const value = params.arguments?.[param];
		if (decode(headers[`mcp-param-${header.toLowerCase()}`]) !== (value == null ? undefined : String(value)))
			return `Mcp-Param-${header}`;
	}
	return undefined;
}

function isModern(msg, headers) {
	const meta = msg.params?._meta ?? {};
	if (NAMESPACE + 'protocolVersion' in meta || NAMESPACE + 'clientCapabilities' in meta)
		return true;
	return msg.method !== 'initialize' && headers['mcp-protocol-version'] !== undefined &&
		!LEGACY.includes(headers['mcp-protocol-version']) && !sessions.has(headers['mcp-session-id']);
}

function postModern(msg, req, res) {
	const header = contradiction(msg, req.headers);
	if (header)
		return refuse(res, 400, -32020, `the header ${header} is missing or differs from the body`, msg.id);
	shared ??= new Child(() => { shared = null; });
	if (msg.id !== undefined)
		return shared.start(msg, new Call(msg, res, true));
	if (msg.method !== 'notifications/cancelled') // its id would be another client's
		shared.send(msg);
	reply(res, 202);
}

function postLegacy(msg, req, res) {
	const version = req.headers['mcp-protocol-version'];
	let id = req.headers['mcp-session-id'];
	if (msg.method === 'initialize') {
		id = randomUUID();
		sessions.set(id, new Child(() => sessions.delete(id)));
		return sessions.get(id).start(msg, new Call(msg, res, false, { 'MCP-Session-Id': id }));
	}
	const child = sessions.get(id);
	if (!child)
		return refuse(res, id ? 404 : 400, -32600, id ? 'unknown session' : 'MCP-Session-Id is missing', msg.id);
	if (version !== undefined && !LEGACY.includes(version))
		return refuse(res, 400, -32600, `unknown protocol version ${version}`, msg.id);
	if (msg.id !== undefined && msg.method !== undefined)
		return child.start(msg, new Call(msg, res, false));
	if (msg.method !== undefined)
		child.notify(msg);
	else
		child.send(msg); // the client's answer to a question of the server
	reply(res, 202);
}

async function handle(req, res) {
	const { host, origin } = req.headers;
	if (!LOCAL.test(host ?? '') || origin !== undefined && !LOCAL.test(origin.replace(/^https?:\/\//, '')))
		return refuse(res, 403, -32600, 'only local hosts and origins are served');
	if (req.url !== '/mcp')
		return refuse(res, 404, -32600, 'the endpoint is /mcp');
	const version = req.headers['mcp-protocol-version'];
	const id = req.headers['mcp-session-id'];
	const child = sessions.get(id);
	if (req.method !== 'POST' && (!id || version !== undefined && !LEGACY.includes(version)))
		return reply(res, 405, undefined, { Allow: 'POST' });
	if (req.method !== 'POST' && !child)
		return refuse(res, 404, -32600, 'unknown session');
	if (req.method === 'DELETE') {
		sessions.delete(id);
		child.close();
		return reply(res, 200);
	}
	if (req.method === 'GET') {
		child.stream = res;
		res.on('close', () => { child.stream = child.stream === res ? null : child.stream; });
		return new Call({}, res, false).event();
	}
	let msg;
	try {
		msg = JSON.parse(Buffer.concat(await req.toArray()).toString());
	} catch {
		return refuse(res, 400, -32700, 'the body is not JSON');
	}
	if (msg === null || typeof msg !== 'object' || Array.isArray(msg))
		return refuse(res, 400, -32600, 'the body is not one JSON-RPC message');
	return isModern(msg, req.headers) ? postModern(msg, req, res) : postLegacy(msg, req, res);
}

const server = http.createServer((req, res) => handle(req, res).catch((e) => {
	console.error('bridge:', e);
	res.headersSent ? res.end() : refuse(res, 500, -32603, 'the bridge failed');
}));

async function stop() {
	server.close();
	server.closeAllConnections();
	await Promise.all([...children].map((child) => child.close()));
	process.exit(0);
}

server.listen(0, '127.0.0.1', () => console.log(`listening http://127.0.0.1:${server.address().port}/mcp`));
process.on('SIGTERM', stop);
process.stdin.on('end', stop).resume();
