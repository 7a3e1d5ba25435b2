#!/usr/bin/env bash
# Calls one tool with curl, as a client of 2026-07-28 does: call.sh TOOL [ARGUMENTS] [USER], or call.sh --list.
# TOOLVANE says where (default http://127.0.0.1:8080/mcp). Prints the HTTP status, toolvane's mark if any, and the answer.
set -euo pipefail
url=${TOOLVANE:-http://127.0.0.1:8080/mcp}
tool=${1:?usage: call.sh TOOL [ARGUMENTS] [USER] | call.sh --list}
arguments=${2:-"{}"}
user=${3:-somebody}
meta='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
headers=(-H 'content-type: application/json' -H 'accept: application/json, text/event-stream'
    -H 'mcp-protocol-version: 2026-07-28' -H "x-user-id: $user")
if [[ $tool == --list ]]; then
    body="{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{$meta}}"
    headers+=(-H 'mcp-method: tools/list')
else
    body="{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"$tool\",\"arguments\":$arguments,$meta}}"
    headers+=(-H 'mcp-method: tools/call' -H "mcp-name: $tool")
fi
curl -sS -w '\nHTTP %{http_code} %header{x-toolvane}\n' "${headers[@]}" "$url" -d "$body" | sed 's/^data: //; /^: *$/d; /^$/d'
