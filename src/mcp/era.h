/*
 * Versions of the protocol and how a request chooses one.
 *
 * Legacy clients agree on a version once, by "initialize".  Modern ones send
 * it with every request, in "_meta", and nothing is remembered.  One process
 * serves both at the same time.
 */
#ifndef MCP_ERA_H
#define MCP_ERA_H

#include <jansson.h>
#include <stdbool.h>

#include "mcp/rpc.h"

/* Oldest first, so that versions compare. */
enum version {
	V_NONE,
	V_2024_11_05,
	V_2025_03_26,
	V_2025_06_18,
	V_2025_11_25,
	V_2026_07_28,
	V_LEGACY_FIRST = V_2024_11_05,
	V_LEGACY_LAST = V_2025_11_25,
	V_MODERN_FIRST = V_2026_07_28,
	V_LAST = V_2026_07_28,
};

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CLIENT_CAPS "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER_INFO "io.modelcontextprotocol/serverInfo"

const char *version_name(enum version v);
bool version_modern(enum version v);

/* What to answer to "initialize" with this version: the same one if it is a
 * legacy version we know, else the newest legacy one. */
enum version version_for_initialize(const char *name);

/* Names of the modern versions, newest first. */
json_t *versions_modern(void);

/*
 * The version a request is in.  "session" is what "initialize" agreed on, or
 * V_NONE.  Returns V_NONE and the fault if the request cannot be served.
 */
enum version era_of(const char *method, const json_t *params,
    enum version session, struct rpc_fault *fault);

#endif
