"""A FastMCP proxy in front of the backend's MCP endpoint."""
import sys

from fastmcp.server import create_proxy

backend, port = sys.argv[1:]
create_proxy(f"http://{backend}/mcp").run(
    transport="http", host="127.0.0.1", port=int(port), show_banner=False, log_level="error"
)
