// An MCP server on the official TypeScript SDK whose tools fail as Node and its libraries fail. Speaks stdio.

import fs from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "recorded", version: "1.0.0" });
const text = (words) => ({ content: [{ type: "text", text: String(words) }] });
const address = { address: z.string() };

server.registerTool("load_with_fetch", { inputSchema: address }, async ({ address }) => {
  const answer = await fetch(address, { signal: AbortSignal.timeout(1000) });
  if (!answer.ok) throw new Error(`HTTP error! status: ${answer.status}`);
  return text(await answer.text());
});

server.registerTool("load_with_fetch_and_cause", { inputSchema: address }, async ({ address }) => {
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(1000) });
    const body = await answer.text();
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}: ${body}`);
    return text(body);
  } catch (error) {
    throw new Error(error.cause ? `${error.message}: ${error.cause.message || error.cause.code}` : error.message);
  }
});

server.registerTool("load_with_http", { inputSchema: address }, ({ address }) =>
  new Promise((resolve, reject) => {
    const request = (address.startsWith("https") ? https : http).get(address, { timeout: 1000 }, (answer) => {
      let body = "";
      answer.on("data", (chunk) => (body += chunk));
      answer.on("error", reject);
      answer.on("end", () =>
        answer.statusCode < 400 ? resolve(text(body)) : reject(new Error(`Request failed with status code ${answer.statusCode}`)),
      );
    });
    request.on("timeout", () => request.destroy(Object.assign(new Error("timeout of 1000ms exceeded"), { code: "ECONNABORTED" })));
    request.on("error", reject);
  }));

server.registerTool("read_note", { inputSchema: { path: z.string() } }, async ({ path }) => text(await fs.readFile(path, "utf8")));
server.registerTool("make_folder", { inputSchema: { path: z.string() } }, async ({ path }) => text(await fs.mkdir(path)));
server.registerTool("run_program", { inputSchema: { name: z.string() } }, async ({ name }) =>
  text((await promisify(execFile)(name)).stdout));
server.registerTool("parse_json", { inputSchema: { text: z.string() } }, async ({ text: said }) => text(JSON.parse(said)));
server.registerTool("match_pattern", { inputSchema: { pattern: z.string() } }, async ({ pattern }) => text(new RegExp(pattern)));
server.registerTool("needs_key", { inputSchema: {} }, async () => {
  if (!process.env.RECORDED_MAIL_API_KEY) throw new Error("RECORDED_MAIL_API_KEY environment variable is required");
  return text("sent");
});
server.registerTool(
  "list_items",
  { inputSchema: { limit: z.number().int().max(100), order: z.enum(["newest", "oldest"]).optional() } },
  async ({ limit }) => text(`${limit} items`),
);
server.registerTool(
  "count_rows",
  { inputSchema: {}, outputSchema: { rows: z.number() } },
  async () => ({ ...text("many"), structuredContent: { rows: "many" } }),
);
server.registerTool("count_rows_without", { inputSchema: {}, outputSchema: { rows: z.number() } }, async () => text("many"));
server.registerTool("page_about_errors", { inputSchema: {} }, async () =>
  text("Error 403 means forbidden; 429 means that the rate limit was exceeded and the token may have expired."));
server.registerTool("switched_off", { inputSchema: {} }, async () => text("on")).disable();

await server.connect(new StdioServerTransport());
