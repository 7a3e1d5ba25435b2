"""The server that the official conformance suite runs against: its fixtures on the official Python SDK, both eras on one URL.

The suite calls tools, prompts and resources by fixed names and expects fixed answers; they stand here as data, and the few
that do something (log, report progress, ask the client) as short functions. Prints its URL on stderr once it listens.
"""

import argparse
import asyncio
import json
import socket
import sys
import warnings

import mcp_types as types
import uvicorn
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged, PromptsListChanged
from mcp.shared.exceptions import MCPError

warnings.simplefilter("ignore")  # sampling, roots and logging are deprecated, and exactly what the suite asks for

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
STEP_SECONDS = 0.05
bus = InMemorySubscriptionBus()


def text(words):
    return {"type": "text", "text": words}


def says(*blocks):
    return {"content": [text(block) if isinstance(block, str) else block for block in blocks]}


def resource(uri, mime, words):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": words}}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}

CONSTANT_TOOLS = {
    "test_simple_text": says("This is a simple text response for testing."),
    "test_image_content": says(IMAGE),
    "test_audio_content": says({"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
    "test_embedded_resource": says(
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": says(
        "Multiple content types test:",
        IMAGE,
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
    "test_error_handling": {**says("This tool intentionally returns an error for testing"), "isError": True},
    "json_schema_2020_12_tool": says("ok"),
}

ARGUMENTS = {
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["address"]}]}],
        "if": {"required": ["address"]},
        "then": {"properties": {"name": {"minLength": 1}}},
        "else": {},
        "additionalProperties": False,
    },
}


def form(message, **properties):
    return message, {"type": "object", "properties": properties, "required": list(properties)}


USER_FORM = {"username": {"type": "string"}, "email": {"type": "string"}}
DEFAULTS_FORM = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
TITLED = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]
ENUMS_FORM = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


async def log_three_times(ctx, _):
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)
        await asyncio.sleep(STEP_SECONDS)
    return says("logged three times")


async def report_progress(ctx, _):
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await asyncio.sleep(STEP_SECONDS)
    return says("progress reported")


async def sample(ctx, arguments):
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=arguments["prompt"]))
    answer = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return says(f"LLM response: {answer.content.text}")


def elicit(make):
    async def ask(ctx, arguments):
        message, schema = make(arguments)
        answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
        return says(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")

    return ask


async def reconnect(ctx, _):
    if ctx.close_sse_stream:
        await ctx.close_sse_stream()
    await asyncio.sleep(4 * STEP_SECONDS)
    return says("Reconnection test completed")


async def fail_inside(*_):
    """Not part of the suite: one tool of the backend that is DOWN while the suite runs."""
    raise MCPError(-32603, "the index is corrupt")


async def needs_sampling(ctx, _):
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        raise MCPError(-32021, "sampling is required", {"requiredCapabilities": {"sampling": {}}})
    return says("sampling is declared")


def publish(event):
    async def change(*_):
        await bus.publish(event())
        return says("changed")

    return change


def ask_form(message, **properties):
    message, schema = form(message, **properties)
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def ask_model(words, tokens):
    content = {"role": "user", "content": text(words)}
    return {"method": "sampling/createMessage", "params": {"messages": [content], "maxTokens": tokens}}


ASK_NAME = ask_form("What is your name?", name={"type": "string"})
ASK_ROOTS = {"method": "roots/list", "params": {}}
ASK_OK = ask_form("Please confirm", ok={"type": "boolean"})

# Tools of the multi-round trips: for each round what is asked and the state that travels; after the last, the answer.
ROUNDS = {
    "test_input_required_result_elicitation": ([({"user_name": ASK_NAME}, None)], "Hello, {}!"),
    "test_input_required_result_sampling": (
        [({"capital_question": ask_model("What is the capital of France?", 100)}, None)],
        "the model said {}",
    ),
    "test_input_required_result_list_roots": ([({"client_roots": ASK_ROOTS}, None)], "roots: {}"),
    "test_input_required_result_request_state": ([({"confirm": ASK_OK}, "one")], "state-ok {}"),
    "test_input_required_result_tampered_state": ([({"confirm": ASK_OK}, "one")], "state-ok {}"),
    "test_input_required_result_multiple_inputs": (
        [
            (
                {"user_name": ASK_NAME, "greeting": ask_model("Generate a greeting", 50), "client_roots": ASK_ROOTS},
                "one",
            )
        ],
        "all answered: {}",
    ),
    "test_input_required_result_multi_round": (
        [
            ({"step1": ask_form("Step 1: What is your name?", name={"type": "string"})}, "one"),
            ({"step2": ask_form("Step 2: What is your favorite color?", color={"type": "string"})}, "two"),
        ],
        "both steps done: {}",
    ),
    "test_input_required_result_capabilities": (
        [({"user_name": ASK_NAME, "greeting": ask_model("Generate a greeting", 50)}, None)],
        "answered: {}",
    ),
    "test_streaming_elicitation": ([({"user_name": ASK_NAME}, None)], "Hello, {}!"),
}
PROMPT_ROUND = {"user_context": ask_form("What context should the prompt use?", context={"type": "string"})}
NEEDED = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def declared_only(ctx, requests):
    """Leaves out what the client cannot answer: a server must not ask for it."""
    capabilities = ctx.session.client_capabilities
    return {key: ask for key, ask in requests.items() if getattr(capabilities, NEEDED[ask["method"]], None) is not None}


def dumped(answer):
    return answer if isinstance(answer, dict) else answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def is_an_answer(answer):
    return any(key in dumped(answer) for key in ("action", "content", "roots", "role"))


def play_round(ctx, params, rounds, finish):
    answers = params.input_responses or {}
    state = params.request_state
    at = next((index for index, (_, sent) in enumerate(rounds) if sent == state), 0)
    requests, _ = rounds[at]
    wanted = declared_only(ctx, requests)
    if all(key in answers and is_an_answer(answers[key]) for key in wanted) and (answers or state):
        at += 1
        if at == len(rounds):
            return says(finish.format(json.dumps({key: dumped(answers[key]) for key in wanted})))
        requests, _ = rounds[at]
        wanted = declared_only(ctx, requests)
    asked = {"resultType": "input_required", "inputRequests": wanted}
    if rounds[at][1] is not None:
        asked["requestState"] = rounds[at][1]
    return asked


ACTIVE_TOOLS = {
    "test_tool_with_logging": log_three_times,
    "test_logging_tool": log_three_times,
    "test_tool_with_progress": report_progress,
    "test_sampling": sample,
    "test_elicitation": elicit(lambda arguments: form(arguments["message"], **USER_FORM)),
    "test_elicitation_sep1034_defaults": elicit(lambda _: form("Check the defaults", **DEFAULTS_FORM)),
    "test_elicitation_sep1330_enums": elicit(lambda _: form("Choose", **ENUMS_FORM)),
    "test_reconnection": reconnect,
    "test_missing_capability": needs_sampling,
    "unused_and_broken": fail_inside,
    "test_trigger_tool_change": publish(ToolsListChanged),
    "test_trigger_prompt_change": publish(PromptsListChanged),
}


async def list_tools(_, __):
    names = [*CONSTANT_TOOLS, *ACTIVE_TOOLS, *ROUNDS]
    described = [
        {"name": name, "description": f"Fixture {name}", "inputSchema": ARGUMENTS.get(name, {"type": "object"})}
        for name in names
    ]
    return {"tools": described}


async def call_tool(ctx, params):
    if params.name in CONSTANT_TOOLS:
        return CONSTANT_TOOLS[params.name]
    if params.name in ROUNDS:
        return play_round(ctx, params, *ROUNDS[params.name])
    if params.name in ACTIVE_TOOLS:
        return await ACTIVE_TOOLS[params.name](ctx, params.arguments or {})
    raise MCPError(-32602, f"Unknown tool: {params.name}")


def user(content):
    return {"role": "user", "content": content}


PROMPTS = {
    "test_simple_prompt": ([], lambda _: [user(text("This is a simple prompt for testing."))]),
    "test_prompt_with_arguments": (
        ["arg1", "arg2"],
        lambda given: [user(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))],
    ),
    "test_prompt_with_embedded_resource": (
        ["resourceUri"],
        lambda given: [
            user(resource(given["resourceUri"], "text/plain", "Embedded resource content for testing.")),
            user(text("Please process the embedded resource above.")),
        ],
    ),
    "test_prompt_with_image": ([], lambda _: [user(IMAGE), user(text("Please analyze the image above."))]),
    "test_input_required_result_prompt": ([], lambda _: [user(text("Context received."))]),
}


async def list_prompts(_, __):
    described = [
        {
            "name": name,
            "description": f"Fixture {name}",
            "arguments": [{"name": argument, "required": True} for argument in arguments],
        }
        for name, (arguments, _) in PROMPTS.items()
    ]
    return {"prompts": described}


async def get_prompt(_, params):
    if params.name not in PROMPTS:
        raise MCPError(-32602, f"Unknown prompt: {params.name}")
    if params.name == "test_input_required_result_prompt" and "user_context" not in (params.input_responses or {}):
        return {"resultType": "input_required", "inputRequests": PROMPT_ROUND}
    return {"messages": PROMPTS[params.name][1](params.arguments or {})}


RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content"},
}
TEMPLATE = ("test://template/", "/data")


async def list_resources(_, __):
    described = [
        {"uri": uri, "name": uri.split("//")[1], "description": f"Fixture {uri}", "mimeType": contents["mimeType"]}
        for uri, contents in RESOURCES.items()
    ]
    return {"resources": described}


async def list_templates(_, __):
    template = {"uriTemplate": "{id}".join(TEMPLATE), "name": "template", "mimeType": "application/json"}
    return {"resourceTemplates": [template]}


async def read_resource(_, params):
    uri = str(params.uri)
    if uri in RESOURCES:
        return {"contents": [{"uri": uri, **RESOURCES[uri]}]}
    if uri.startswith(TEMPLATE[0]) and uri.endswith(TEMPLATE[1]):
        given = uri.removeprefix(TEMPLATE[0]).removesuffix(TEMPLATE[1])
        body = json.dumps({"id": given, "templateTest": True, "data": f"Data for ID: {given}"})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": body}]}
    raise MCPError(-32602, "Resource not found", {"uri": uri})


async def nothing(_, __):
    return {}


async def complete(_, __):
    return {"completion": {"values": [], "total": 0, "hasMore": False}}


class Memory(EventStore):
    """Events of all streams in the order they were sent, so that a client can resume after any of them."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        at = int(last_event_id)
        if not 0 < at <= len(self.events):
            return None
        stream = self.events[at - 1][0]
        for index, (stream_id, message) in enumerate(self.events[at:], at + 1):
            if stream_id == stream and message is not None:
                await send_callback(EventMessage(message, str(index)))
        return stream


def typed(handler, model):
    """Turns the plain answer of a handler into the SDK's own type, which knows what each era adds to it."""

    async def handle(ctx, params):
        answer = await handler(ctx, params)
        kind = types.InputRequiredResult if answer.get("resultType") == "input_required" else model
        return kind.model_validate(answer)

    return handle


def server():
    hint = CacheHint(ttl_ms=1000, scope="public")
    cached = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
    made = Server(
        "toolvane-conformance",
        version="1",
        cache_hints={method: hint for method in cached},
        on_list_tools=typed(list_tools, types.ListToolsResult),
        on_call_tool=typed(call_tool, types.CallToolResult),
        on_list_prompts=typed(list_prompts, types.ListPromptsResult),
        on_get_prompt=typed(get_prompt, types.GetPromptResult),
        on_list_resources=typed(list_resources, types.ListResourcesResult),
        on_list_resource_templates=typed(list_templates, types.ListResourceTemplatesResult),
        on_read_resource=typed(read_resource, types.ReadResourceResult),
        on_subscribe_resource=typed(nothing, types.EmptyResult),
        on_unsubscribe_resource=typed(nothing, types.EmptyResult),
        on_set_logging_level=typed(nothing, types.EmptyResult),
        on_completion=typed(complete, types.CompleteResult),
        on_subscriptions_listen=ListenHandler(bus),
    )
    made.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=None))
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:0")
    host, port = parser.parse_args().listen.rsplit(":", 1)
    bound = socket.create_server((host, int(port)))
    app = server().streamable_http_app(event_store=Memory(), retry_interval=100)
    print(f"conformance server on http://{host}:{bound.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[bound])


if __name__ == "__main__":
    main()
