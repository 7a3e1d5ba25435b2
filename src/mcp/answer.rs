//! What a server sends, read along while it streams by: [`Reader`] turns a response body into what was [`Seen`] in it.
//!
//! One reader serves all bodies: a JSON answer (a message or a batch), an event stream that answers a POST, the long
//! streams of a session, the stream of the old HTTP+SSE transport, and bodies that are no MCP at all. Its memory does not
//! depend on the size of a message, and what it sees does not depend on the chunking. It sees what a client would: an
//! event counts once its blank line has arrived, a JSON body once it is complete.

mod apart;
mod draft;
mod glance;
mod reader;
mod tree;

use super::excerpt::Excerpt;

pub use apart::Apart;
pub use glance::{Glance, IsPlain, Success, glance};
pub use reader::{EXCERPT_LIMIT, Reader};

/// Something in a response body that matters.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// A JSON-RPC response.
    Answer(Box<Answer>),
    /// A response that is a plain success, with its id as a raw JSON token; from a reader that [glances](Reader::glancing).
    Success(String),
    /// A request of the server to the client.
    Request(ServerRequest),
    /// A notification of the server.
    Notification(Box<Notification>),
    /// An event set this id (at most 1,024 bytes of it): the stream can be resumed from here. Comes before what the event
    /// itself holds.
    EventId(String),
    /// An event named `error`: clients do not take it for a message, but it may say why none will come. At most the
    /// excerpt limit of its text.
    ErrorEvent(Excerpt),
    /// The old transport says where to post, as it is written: relative or absolute.
    Endpoint(String),
    /// Something that is no MCP message, in place of one.
    Trouble(Trouble),
}

/// A JSON-RPC response.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The id as a raw JSON token; `None` if it is absent or longer than 1,024 bytes.
    pub id: Option<String>,
    /// What it says.
    pub kind: Kind,
    /// The raw text of the message.
    pub text: Excerpt,
}

/// What a response says.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A result.
    Result(Outcome),
    /// An error.
    Error(RpcError),
}

/// The parts of a result that matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// `isError` is `true`.
    pub is_error: bool,
    /// `resultType`.
    pub result_type: ResultType,
    /// The task that it creates or reports on.
    pub task: Option<Task>,
    /// `protocolVersion`, in the answer to an `initialize`.
    pub protocol_version: Option<String>,
    /// `capabilities.tools.listChanged` is `true`: the server may announce that its tools changed.
    pub tools_list_changed: bool,
}

/// `resultType` of a result. Legacy servers send none, which means complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResultType {
    /// Not there.
    #[default]
    Absent,
    /// `complete`.
    Complete,
    /// `input_required`: the call goes on in another request.
    InputRequired,
    /// `task`: the call goes on as a task.
    Task,
    /// A type that is not known here.
    Other,
}

/// A task in a result or notification: `result.task` of 2025-11-25, or the flat shapes of `tasks/get`, of
/// `notifications/tasks/status` and of the tasks extension.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// `taskId`, at most 1,024 bytes of it as raw JSON.
    pub id: String,
    /// `status`.
    pub status: TaskStatus,
    /// Whether this answer brings the task into being (else it reports on one).
    pub created: bool,
    /// How it ended, where the task carries its end along (the tasks extension does).
    pub end: Option<TaskEnd>,
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskStatus {
    /// `working`.
    Working,
    /// `input_required`.
    InputRequired,
    /// `completed`: there is a result, which may be an error of the tool.
    Completed,
    /// `failed`.
    Failed,
    /// `cancelled`.
    Cancelled,
    /// A status that is not known here, or none.
    Other,
}

impl TaskStatus {
    /// Whether the task has come to its end.
    pub fn is_terminal(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskEnd {
    /// With a result of the original request.
    Result {
        /// Its `isError` is `true`.
        is_error: bool,
    },
    /// With a JSON-RPC error.
    Error(RpcError),
}

/// A JSON-RPC error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RpcError {
    /// The code, if it is an integer.
    pub code: Option<i64>,
    /// The message, at most 4 KiB of it; empty if there is none.
    pub message: String,
}

/// A request of the server to the client; its id counts in the server's direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRequest {
    /// The id as a raw JSON token; `None` if it is longer than 1,024 bytes.
    pub id: Option<String>,
    /// The method, at most 256 bytes of it.
    pub method: String,
}

/// A notification of the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notification {
    /// The method, at most 256 bytes of it.
    pub method: String,
    /// `requestId` as a raw token (of `notifications/cancelled`).
    pub request_id: Option<String>,
    /// `progressToken` as a raw token (of `notifications/progress`).
    pub progress_token: Option<String>,
    /// The task whose state it tells (`notifications/tasks/status`, `notifications/tasks`).
    pub task: Option<Task>,
    /// `level` (of `notifications/message`).
    pub level: Option<String>,
    /// `data` (of `notifications/message`) as raw JSON, at most 4 KiB of it.
    pub data: Option<String>,
    /// The listen request it belongs to, as a raw token (2026-07-28).
    pub subscription: Option<String>,
}

impl Notification {
    /// What the server logged at level `error` or above, as raw JSON.
    pub fn logged_error(&self) -> Option<&str> {
        let serious = matches!(self.level.as_deref(), Some("error" | "critical" | "alert" | "emergency"));
        self.data.as_deref().filter(|_| serious && self.method == "notifications/message")
    }
}

/// Something that is no MCP message, in place of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// What is wrong.
    pub kind: TroubleKind,
    /// The raw text of the body or event, for rules to match and people to read.
    pub text: Excerpt,
}

/// What is wrong with a body or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TroubleKind {
    /// The content type is neither JSON nor an event stream.
    ContentType,
    /// The body is empty.
    Empty,
    /// Not JSON.
    NotJson,
    /// JSON that breaks off.
    Truncated,
    /// JSON, but no JSON-RPC message: an error document of something else.
    NotJsonRpc,
}

#[cfg(test)]
mod glance_tests;
#[cfg(test)]
mod tests;
