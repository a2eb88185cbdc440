"""python -m remote_sandbox_mcp"""

from remote_sandbox_mcp.server import main

main()
