//! Where in a message of a server the members stand that matter.

use super::super::scan::Node;

/// Bound of ids, tokens and other short values, in bytes of raw JSON.
const SHORT: usize = 1_024;
/// Bound of a method, with its quotes.
const METHOD: usize = 258;
/// Bound of texts that people read.
const LONG: usize = 4_096;
/// Bound of values that are compared with fixed words.
const WORD: usize = 64;

/// A member that matters. `Task…` is where the members of a task stand in a message: in the result, in `result.task`, or
/// in the params of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Message,
    JsonRpc,
    Id,
    Method,
    Error,
    ErrorCode,
    ErrorMessage,
    Result,
    IsError,
    ResultType,
    ProtocolVersion,
    Capabilities,
    CapabilitiesTools,
    ToolsListChanged,
    Params,
    RequestId,
    ProgressToken,
    Level,
    Data,
    Meta,
    Subscription,
    Created,
    CreatedTaskId,
    CreatedStatus,
    TaskId,
    TaskStatus,
    TaskResult,
    TaskIsError,
    TaskError,
    TaskErrorCode,
    TaskErrorMessage,
}

const fn value(key: &'static str, field: Field, keep: usize) -> Node<Field> {
    Node { key, field, keep, inside: &[] }
}

/// An object that is looked into; a bare string in its place is kept up to the length of a text.
const fn object(key: &'static str, field: Field, inside: &'static [Node<Field>]) -> Node<Field> {
    Node { key, field, keep: LONG, inside }
}

/// A message, as far as it matters.
pub(super) static MESSAGE: Node<Field> = object(
    "",
    Field::Message,
    &[
        value("jsonrpc", Field::JsonRpc, WORD),
        value("id", Field::Id, SHORT),
        value("method", Field::Method, METHOD),
        object("result", Field::Result, RESULT),
        object(
            "error",
            Field::Error,
            &[value("code", Field::ErrorCode, WORD), value("message", Field::ErrorMessage, LONG)],
        ),
        object("params", Field::Params, PARAMS),
    ],
);

const RESULT: &[Node<Field>] = &[
    value("isError", Field::IsError, WORD),
    value("resultType", Field::ResultType, WORD),
    value("protocolVersion", Field::ProtocolVersion, WORD),
    object(
        "capabilities",
        Field::Capabilities,
        &[object("tools", Field::CapabilitiesTools, &[value("listChanged", Field::ToolsListChanged, WORD)])],
    ),
    object(
        "task",
        Field::Created,
        &[value("taskId", Field::CreatedTaskId, SHORT), value("status", Field::CreatedStatus, WORD)],
    ),
    TASK_ID,
    TASK_STATUS,
    TASK_RESULT,
    TASK_ERROR,
];

const PARAMS: &[Node<Field>] = &[
    value("requestId", Field::RequestId, SHORT),
    value("progressToken", Field::ProgressToken, SHORT),
    value("level", Field::Level, WORD),
    value("data", Field::Data, LONG),
    object("_meta", Field::Meta, &[value("io.modelcontextprotocol/subscriptionId", Field::Subscription, SHORT)]),
    TASK_ID,
    TASK_STATUS,
    TASK_RESULT,
    TASK_ERROR,
];

const TASK_ID: Node<Field> = value("taskId", Field::TaskId, SHORT);
const TASK_STATUS: Node<Field> = value("status", Field::TaskStatus, WORD);
const TASK_RESULT: Node<Field> = object("result", Field::TaskResult, &[value("isError", Field::TaskIsError, WORD)]);
const TASK_ERROR: Node<Field> = object(
    "error",
    Field::TaskError,
    &[value("code", Field::TaskErrorCode, WORD), value("message", Field::TaskErrorMessage, LONG)],
);
