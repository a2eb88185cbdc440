"""remote-sandbox-mcp is a native program; this package only finds it."""
