// What the browser tests and the screenshots share: programs of ours with their ends, a scripted MCP server, and chromium.
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const REPO = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const installed = createRequire(path.join(REPO, ".cache/browser/package.json"));
const { chromium } = installed("playwright-core");
export const AXE = fs.readFileSync(installed.resolve("axe-core/axe.min.js"), "utf8");

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const PATIENCE = 60_000;
/** Where the programs are. */
const BIN = process.env.BIN ?? path.join(REPO, "target/debug");

/** A folder that goes with whoever asked for it. */
export const scratch = () => fs.mkdtempSync(path.join(os.tmpdir(), "toolvane-browser-"));

/** Starts a program and waits until its log says `words`; gives the first match. */
export const start = (program, args, words) =>
  new Promise((resolve, reject) => {
    const child = spawn(path.join(BIN, program), args, { stdio: ["ignore", "ignore", "pipe"] });
    let log = "";
    const timer = setTimeout(() => reject(new Error(`${program} did not say ${words}: ${log}`)), PATIENCE);
    child.stderr.on("data", (data) => {
      log += data;
      const found = log.match(words);
      if (found) {
        clearTimeout(timer);
        resolve({ found, stop: () => ended(child) });
      }
    });
    child.on("exit", (code) => reject(new Error(`${program} ended with ${code}: ${log}`)));
    child.on("error", reject);
  });

const ended = (child) =>
  new Promise((resolve) => {
    if (child.exitCode !== null) return resolve();
    child.removeAllListeners("exit");
    child.on("exit", resolve);
    child.kill("SIGINT");
  });

/** Runs a program to its end. */
export const run = (program, args) =>
  new Promise((resolve, reject) => {
    const child = spawn(path.join(BIN, program), args, { stdio: ["ignore", "ignore", "inherit"] });
    child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`${program} ended with ${code}`))));
    child.on("error", reject);
  });

/** toolvane before a backend; gives the addresses of its proxy and of its admin surface. */
export const toolvane = async (home, backend, more = "", env = {}) => {
  const file = path.join(home, "toolvane.yaml");
  fs.writeFileSync(
    file,
    `listen: 127.0.0.1:0\nadmin: {listen: "127.0.0.1:0", local_writes: loopback}\n` +
      `backends: [{name: demo, kind: mcp, url: "${backend}"}]\nstore: {path: "${home}/toolvane.redb"}\n` +
      `drain_announce: 0s\nlog: {format: text}\n${more}`,
  );
  Object.assign(process.env, env);
  const { found, stop } = await start("toolvane", ["run", "-c", file], /listening on (http:\S+)\n[^]*admin on (http:\S+)\n/);
  return { admin: found[2], proxy: found[1], stop };
};

/** An MCP server with `count` tools that work while it is there; `stop` and `back` take it away and bring it back. */
export const server = async (count) => {
  const tools = Array.from({ length: count }, (_, number) => ({
    name: `tool_${String(number).padStart(3, "0")}`,
    inputSchema: { type: "object" },
  }));
  const answer = ({ id, method }) => {
    if (method === "tools/list") return { id, result: { resultType: "complete", tools } };
    return { id, result: { resultType: "complete", content: [{ type: "text", text: "fine" }] } };
  };
  const listen = (port) =>
    new Promise((resolve) => {
      const made = http.createServer(async (request, response) => {
        let body = "";
        for await (const part of request) body += part;
        const message = body ? JSON.parse(body) : {};
        if (message.id === undefined) return response.writeHead(202).end();
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ jsonrpc: "2.0", ...answer(message) }));
      });
      made.listen(port, "127.0.0.1", () => resolve(made));
    });
  let listening = await listen(0);
  const { port } = listening.address();
  const stop = () =>
    new Promise((resolve) => {
      listening.close(resolve);
      listening.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}/mcp`, stop, back: async () => { listening = await listen(port); } };
};

const META = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };

/** One message to an MCP server, as a dispatcher of 2026-07-28 sends it. */
export const ask = async (url, method, params = {}, user = "alice") => {
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(params.name ? { "mcp-name": params.name } : {}),
      "x-user-id": user,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } }),
  });
  return answer.text();
};

/** All pages of the tool list: what a caller was shown is known by name from then on. */
export const list = async (url) => {
  let cursor;
  do {
    const text = await ask(url, "tools/list", cursor ? { cursor } : {});
    const json = text.startsWith("{") ? text : text.match(/^data: (\{.*)$/m)[1];
    cursor = JSON.parse(json).result.nextCursor;
  } while (cursor);
};

export const call = (url, name, args = {}, user = "alice") => ask(url, "tools/call", { name, arguments: args }, user);

/** Chromium with a profile of its own. */
export const browser = () => chromium.launch({ executablePath: "/usr/bin/chromium", headless: true, args: FLAGS });

