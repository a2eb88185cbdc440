// The official SDK, version 1, as a client of our server: the legacy era.
//
//   node sdk1.mjs [--fixture] -- COMMAND ARGS...
//
// With --fixture the command is the fixture server, whose tools also show
// progress and cancellation.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport, getDefaultEnvironment }
	from '@modelcontextprotocol/sdk/client/stdio.js';

import { clientInfo, main, readArguments } from './checks.mjs';

function makeClient(server) {
	const sdk = new Client(clientInfo);
	const transport = new StdioClientTransport(server);
	let version;
	// The client tells its transport what was negotiated, and nobody else.
	transport.setProtocolVersion = (negotiated) => {
		version = negotiated;
	};
	return {
		sdk,
		transport,
		connect: () => sdk.connect(transport),
		version: () => version,
		era: () => 'legacy',
		call: (name, args, options) =>
			sdk.callTool({ name, arguments: args }, undefined, options),
	};
}

const options = readArguments('sdk1.mjs [--fixture] -- COMMAND ARGS...');
await main(makeClient, { era: 'legacy', version: '2025-11-25' }, options,
	getDefaultEnvironment());
