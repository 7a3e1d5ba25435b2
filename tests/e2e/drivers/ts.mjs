// Drives an official TypeScript SDK client by JSON lines: one order a line on stdin, one answer a line on stdout.
//
// `node ts.mjs v1` uses @modelcontextprotocol/sdk 1.x, `node ts.mjs v2` uses @modelcontextprotocol/client 2.x. The orders
// are the methods of `orders` below; py.py understands the same. It runs in the folder that holds node_modules.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.cwd()}/`);
const load = name => import(pathToFileURL(require.resolve(name)));

const [, , generation] = process.argv;
const info = { name: `toolvane-e2e-ts-${generation}`, version: '1' };
const seen = { asked: 0, listChanged: 0 };
const answerQuestion = async () => {
    seen.asked += 1;
    return { action: 'accept', content: { name: 'Ada' } };
};
const countListChange = async () => {
    seen.listChanged += 1;
};

async function v1() {
    const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const { SSEClientTransport } = await load('@modelcontextprotocol/sdk/client/sse.js');
    const types = await load('@modelcontextprotocol/sdk/types.js');
    return {
        Transport: StreamableHTTPClientTransport,
        OldTransport: SSEClientTransport,
        make: () => {
            const client = new Client(info, { capabilities: { elicitation: {} } });
            client.setRequestHandler(types.ElicitRequestSchema, answerQuestion);
            client.setNotificationHandler(types.ToolListChangedNotificationSchema, countListChange);
            return client;
        },
        call: (client, params, options) => client.callTool(params, undefined, options),
        list: async client => {
            const tools = [];
            let cursor;
            do {
                const page = await client.listTools(cursor === undefined ? {} : { cursor });
                tools.push(...page.tools);
                cursor = page.nextCursor;
            } while (cursor !== undefined);
            return tools;
        }
    };
}

async function v2() {
    const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
    return {
        Transport: StreamableHTTPClientTransport,
        make: era => {
            const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
            // In the stateless era this opens a subscription; with sessions it listens on their stream.
            const tools = { autoRefresh: false, debounceMs: 0, onChanged: countListChange };
            const options = { capabilities: { elicitation: {} }, versionNegotiation: { mode }, listChanged: { tools } };
            const client = new Client(info, options);
            client.setRequestHandler('elicitation/create', answerQuestion);
            return client;
        },
        call: (client, params, options) => client.callTool(params, options),
        // This SDK walks the pages by itself, and would answer from its cache for the ttl that the server allows.
        list: async client => (await client.listTools(undefined, { cacheMode: 'refresh' })).tools
    };
}

const sdk = await (generation === 'v2' ? v2() : v1());
const running = new Map();
let client;
let transport;

const orders = {
    async connect({ url, era, headers }) {
        client = sdk.make(era);
        const Transport = era === 'old' ? sdk.OldTransport : sdk.Transport;
        transport = new Transport(new URL(url), { requestInit: { headers: headers ?? {} } });
        await client.connect(transport);
        const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
        return { version, server: client.getServerVersion()?.name, session: transport.sessionId ?? null };
    },
    async list() {
        const tools = await sdk.list(client);
        return { tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })) };
    },
    async call({ name, arguments: given, tag, timeout }) {
        const abort = new AbortController();
        if (tag !== undefined) running.set(tag, abort);
        const progress = [];
        const options = { signal: abort.signal, timeout: timeout ?? 20_000 };
        options.onprogress = note => progress.push(note.progress);
        const result = await sdk.call(client, { name, arguments: given ?? {} }, options);
        const text = (result.content ?? []).map(block => block.text ?? `<${block.type}>`).join('\n');
        return { isError: result.isError ?? false, text, meta: result._meta ?? null, progress };
    },
    async cancel({ tag }) {
        running.get(tag).abort('the user changed their mind');
        return {};
    },
    async ping() {
        await client.ping();
        return {};
    },
    async seen() {
        return seen;
    },
    async close() {
        if (transport.sessionId !== undefined) await transport.terminateSession();
        await client.close();
        return {};
    }
};

createInterface({ input: process.stdin }).on('line', async line => {
    const { n, order, ...rest } = JSON.parse(line);
    let answer;
    try {
        answer = await orders[order](rest);
    } catch (error) {
        answer = { failed: { type: error.constructor.name, code: error.code ?? null, message: String(error.message) } };
    }
    process.stdout.write(`${JSON.stringify({ n, ...answer })}\n`);
}).on('close', () => process.exit(0));
