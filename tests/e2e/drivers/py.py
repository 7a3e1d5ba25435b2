"""Drives an official Python SDK client by JSON lines: one order a line on stdin, one answer a line on stdout.

Works with mcp 1.x and 2.x, whichever is installed where it runs. The orders are the methods of `Orders`; ts.mjs understands
the same.
"""

import asyncio
import importlib.metadata
import json
import sys

from mcp import ClientSession, types

V2 = importlib.metadata.version("mcp").startswith("2.")


class Seen:
    def __init__(self):
        self.asked = 0
        self.list_changed = 0

    async def answer_question(self, *_):
        self.asked += 1
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def message(self, message):
        notification = getattr(message, "root", message)
        if isinstance(notification, types.ToolListChangedNotification):
            self.list_changed += 1


async def open_v1(url, headers, seen, use):
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url, headers=headers) as (read, write, session_id):
        callbacks = {"elicitation_callback": seen.answer_question, "message_handler": seen.message}
        async with ClientSession(read, write, **callbacks) as session:
            made = await session.initialize()
            await use(session, made.protocolVersion, made.serverInfo.name, session_id())


async def open_old(url, headers, seen, use):
    from mcp.client.sse import sse_client

    async with sse_client(url, headers=headers) as (read, write):
        callbacks = {"elicitation_callback": seen.answer_question, "message_handler": seen.message}
        async with ClientSession(read, write, **callbacks) as session:
            made = await session.initialize()
            await use(session, made.protocolVersion, made.serverInfo.name, None)


async def open_v2(url, headers, seen, use, era):
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=300)) as http_client:
        transport = streamable_http_client(url, http_client=http_client)
        callbacks = {"elicitation_callback": seen.answer_question, "message_handler": seen.message}
        mode = "auto" if era == "modern" else "legacy"
        async with Client(transport, mode=mode, cache=None, **callbacks) as client:
            name = client.server_info.name if client.server_info else None
            await use(client, client.protocol_version, name, None)


class Orders:
    def __init__(self):
        self.seen_ = Seen()
        self.running = {}
        self.client = None
        self.leave = asyncio.Event()
        self.connection = None

    async def connect(self, url, era, headers=None):
        """Opens the connection in a task of its own: the SDK wants its contexts left where they were entered."""
        ready = asyncio.get_running_loop().create_future()

        async def use(client, version, server, session):
            self.client = client
            ready.set_result({"version": version, "server": server, "session": session})
            await self.leave.wait()

        async def live():
            try:
                if era == "old":
                    await open_old(url, headers or {}, self.seen_, use)
                elif V2:
                    await open_v2(url, headers or {}, self.seen_, use, era)
                else:
                    await open_v1(url, headers or {}, self.seen_, use)
            except BaseException as error:
                if not ready.done():
                    ready.set_exception(RuntimeError(f"cannot connect: {flat(error)}"))
                elif not isinstance(error, asyncio.CancelledError):
                    print(f"the connection died: {flat(error)}", file=sys.stderr, flush=True)

        self.connection = asyncio.create_task(live())
        return await ready

    async def list(self):
        tools, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor if V2 else page.nextCursor
            if cursor is None:
                break
        schema = (lambda tool: tool.input_schema) if V2 else (lambda tool: tool.inputSchema)
        return {"tools": [{"name": t.name, "description": t.description, "inputSchema": schema(t)} for t in tools]}

    async def call(self, name, arguments=None, tag=None, timeout=20_000):
        progress = []

        async def note(done, *_):
            progress.append(done)

        call = asyncio.create_task(self.client.call_tool(name, arguments or {}, progress_callback=note))
        if tag is not None:
            self.running[tag] = call
        result = await asyncio.wait_for(call, timeout / 1000)
        text = "\n".join(getattr(block, "text", f"<{block.type}>") for block in result.content)
        failed = result.is_error if V2 else result.isError
        return {"isError": bool(failed), "text": text, "meta": result.meta, "progress": progress}

    async def cancel(self, tag):
        self.running[tag].cancel()
        if not V2:
            # 1.x tells the server nothing when a call is given up: a host has to, and ids count up from 0.
            last = self.client._request_id - 1
            params = types.CancelledNotificationParams(requestId=last, reason="the user changed their mind")
            note = types.CancelledNotification(method="notifications/cancelled", params=params)
            await self.client.send_notification(types.ClientNotification(note))
        return {}

    async def ping(self):
        await self.client.send_ping()
        return {}

    async def seen(self):
        return {"asked": self.seen_.asked, "listChanged": self.seen_.list_changed}

    async def close(self):
        self.leave.set()
        await self.connection
        return {}


def flat(error):
    """Names what is inside nested exception groups."""
    inner = getattr(error, "exceptions", None)
    return "; ".join(map(flat, inner)) if inner else f"{type(error).__name__}: {error}"


async def obey(orders, line):
    order = json.loads(line)
    n, name = order.pop("n"), order.pop("order")
    try:
        answer = await getattr(orders, name)(**order)
    except (Exception, asyncio.CancelledError) as error:
        code = getattr(getattr(error, "error", None), "code", None)
        answer = {"failed": {"type": type(error).__name__, "code": code, "message": flat(error)}}
    print(json.dumps({"n": n, **answer}), flush=True)


async def main():
    orders, tasks = Orders(), set()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(obey(orders, line))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


if __name__ == "__main__":
    asyncio.run(main())
