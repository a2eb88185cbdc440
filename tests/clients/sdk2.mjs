// The official SDK, version 2, as a client of our server: both eras.
//
//   node sdk2.mjs legacy|auto|modern [--fixture] -- COMMAND ARGS...
//
// legacy opens with `initialize`; auto asks a first, short-lived server with
// `server/discover` which era to use, and must find the modern one; modern
// insists on it.  With --fixture the command is the fixture server, whose
// tools also show progress and cancellation.

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport, getDefaultEnvironment }
	from '@modelcontextprotocol/client/stdio';

import { clientInfo, main, readArguments } from './checks.mjs';

const LEGACY = { era: 'legacy', version: '2025-11-25' };
const MODERN = { era: 'modern', version: '2026-07-28' };
const MODES = {
	legacy: { negotiation: 'legacy', expected: LEGACY },
	auto: { negotiation: 'auto', expected: MODERN },
	modern: { negotiation: { pin: MODERN.version }, expected: MODERN },
};

function makeClient(server, negotiation) {
	const sdk = new Client(clientInfo,
		{ versionNegotiation: { mode: negotiation } });
	const transport = new StdioClientTransport(server);
	return {
		sdk,
		transport,
		connect: () => sdk.connect(transport),
		version: () => sdk.getNegotiatedProtocolVersion(),
		era: () => sdk.getProtocolEra(),
		call: (name, args, options) =>
			sdk.callTool({ name, arguments: args }, options),
	};
}

const usage = 'sdk2.mjs legacy|auto|modern [--fixture] -- COMMAND ARGS...';
const options = readArguments(usage);
const mode = MODES[options.mode];
if (mode === undefined) {
	console.error(`usage: ${usage}`);
	process.exit(2);
}
await main((server) => makeClient(server, mode.negotiation), mode.expected,
	options, getDefaultEnvironment());
