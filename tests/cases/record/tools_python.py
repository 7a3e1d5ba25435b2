"""An MCP server on the official Python SDK (1.x or 2.x) whose tools fail as their libraries fail. Speaks stdio."""

import json
import os
import socket
import sqlite3
import subprocess
import urllib.request
from enum import Enum

from pydantic import BaseModel

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server

try:
    import httpx
except ImportError:
    import httpx2 as httpx

server = Server("recorded")
TIMEOUT = 1


class Order(str, Enum):
    NEWEST = "newest"
    OLDEST = "oldest"


class Report(BaseModel):
    rows: int


@server.tool()
def load_with_urllib(address: str) -> str:
    return urllib.request.urlopen(address, timeout=TIMEOUT).read().decode()


@server.tool()
def load_with_httpx(address: str) -> str:
    answer = httpx.get(address, timeout=TIMEOUT)
    answer.raise_for_status()
    return answer.text


@server.tool()
def load_with_socket(address: str) -> str:
    host, port = address.split("//")[1].split("/")[0].rsplit(":", 1) if address.count(":") > 1 else (address.split("/")[2], 80)
    with socket.create_connection((host, int(port)), timeout=TIMEOUT) as peer:
        peer.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return peer.recv(1000).decode()


@server.tool()
def list_items(limit: int, order: Order = Order.NEWEST) -> str:
    return f"{limit} items, {order.value} first"


@server.tool()
def read_note(path: str) -> str:
    with open(path) as file:
        return file.read()


@server.tool()
def query_rows(sql: str) -> str:
    with sqlite3.connect(":memory:") as db:
        db.execute("create table rows (id integer primary key, name text unique)")
        return json.dumps(db.execute(sql).fetchall())


@server.tool()
def query_locked(sql: str) -> str:
    path = os.path.join(os.environ["RECORD_FOLDER"], "locked.db")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("create table if not exists rows (id integer)")
    holder.execute("begin exclusive")
    other = sqlite3.connect(path, timeout=0.1)
    return str(other.execute(sql).fetchall())


@server.tool()
def run_program(name: str) -> str:
    return subprocess.run([name], capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout


@server.tool()
def parse_json(text: str) -> str:
    return str(json.loads(text))


@server.tool()
def needs_key(city: str) -> str:
    return os.environ["RECORDED_WEATHER_API_KEY"] + city


@server.tool()
def count_rows(broken: bool) -> Report:
    return {"rows": "many"} if broken else Report(rows=3)


@server.tool()
def page_about_errors() -> str:
    return "Error 403 means forbidden; 429 means that the rate limit was exceeded and the token may have expired."


if __name__ == "__main__":
    server.run()
