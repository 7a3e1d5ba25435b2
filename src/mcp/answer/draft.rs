//! A message of a server in the making: what the scanner found so far, and what it amounts to in the end.

use super::super::excerpt::Excerpt;
use super::super::json::string;
use super::tree::Field;
use super::{
    Answer, Kind, Notification, Outcome, ResultType, RpcError, Seen, ServerRequest, Task, TaskEnd, TaskStatus, Trouble,
    TroubleKind,
};

/// What was found of one message. Of a member that occurs twice the last one counts, with all that is in it.
#[derive(Debug, Default)]
pub(super) struct Draft {
    is_jsonrpc: bool,
    id: Option<String>,
    has_id: bool,
    method: Option<String>,
    error: Option<RpcError>,
    result: Option<Outcome>,
    params: Notification,
    created: Option<Progress>,
    result_task: Progress,
    params_task: Progress,
    /// The members of a task that come are those of the params.
    in_params: bool,
}

/// A task as found so far.
#[derive(Debug, Default)]
struct Progress {
    id: Option<String>,
    status: Option<TaskStatus>,
    end: Option<TaskEnd>,
}

impl Draft {
    /// An object that is looked into begins.
    pub(super) fn entered(&mut self, field: Field) {
        match field {
            Field::Result => self.result_begins(),
            Field::Params => self.params_begin(),
            Field::Error => self.error = Some(RpcError::default()),
            Field::Created => self.created = Some(Progress::default()),
            Field::Capabilities | Field::CapabilitiesTools => self.outcome().tools_list_changed = false,
            Field::Meta => self.params.subscription = None,
            Field::TaskResult => self.task().end = Some(TaskEnd::Result { is_error: false }),
            Field::TaskError => self.task().end = Some(TaskEnd::Error(RpcError::default())),
            _ => {}
        }
    }

    /// A value was found; `raw` is its token, cut if not `whole`.
    pub(super) fn value(&mut self, field: Field, raw: &[u8], whole: bool) {
        match field {
            Field::JsonRpc => self.is_jsonrpc = raw == b"\"2.0\"",
            Field::Id => (self.has_id, self.id) = (true, token(raw, whole)),
            Field::Method => self.method = text(raw),
            Field::Error if raw == b"null" => self.error = None,
            Field::Error | Field::ErrorCode | Field::ErrorMessage => {
                read_error(self.error.get_or_insert_default(), field, raw);
            }
            Field::Result => self.result_begins(),
            Field::Params => self.params_begin(),
            Field::IsError => self.outcome().is_error = raw == b"true",
            Field::ResultType => self.outcome().result_type = result_type(raw),
            Field::ProtocolVersion => self.outcome().protocol_version = text(raw),
            Field::ToolsListChanged => self.outcome().tools_list_changed = raw == b"true",
            Field::RequestId => self.params.request_id = token(raw, whole),
            Field::ProgressToken => self.params.progress_token = token(raw, whole),
            Field::Subscription => self.params.subscription = token(raw, whole),
            Field::Level => self.params.level = text(raw),
            Field::Data => self.params.data = Some(String::from_utf8_lossy(raw).into_owned()),
            Field::Created => self.created = None,
            Field::CreatedTaskId => self.created.get_or_insert_default().id = text(raw),
            Field::CreatedStatus => self.created.get_or_insert_default().status = Some(task_status(raw)),
            Field::TaskId | Field::TaskStatus | Field::TaskResult | Field::TaskIsError => self.task().value(field, raw),
            Field::TaskError | Field::TaskErrorCode | Field::TaskErrorMessage => self.task().value(field, raw),
            Field::Meta => self.params.subscription = None,
            Field::Message | Field::Capabilities | Field::CapabilitiesTools => {}
        }
    }

    fn result_begins(&mut self) {
        self.result = Some(Outcome::default());
        (self.created, self.result_task, self.in_params) = (None, Progress::default(), false);
    }

    fn params_begin(&mut self) {
        self.params = Notification::default();
        (self.params_task, self.in_params) = (Progress::default(), true);
    }

    fn task(&mut self) -> &mut Progress {
        if self.in_params { &mut self.params_task } else { &mut self.result_task }
    }

    fn outcome(&mut self) -> &mut Outcome {
        self.result.get_or_insert_default()
    }

    /// The message is complete.
    pub(super) fn finish(self, text: Excerpt) -> Seen {
        if !self.is_jsonrpc {
            return Seen::Trouble(Trouble { kind: TroubleKind::NotJsonRpc, text });
        }
        match (self.method, self.error, self.result) {
            (Some(method), ..) if self.has_id => Seen::Request(ServerRequest { id: self.id, method }),
            (Some(method), ..) => {
                let task = self.params_task.finish(false);
                Seen::Notification(Box::new(Notification { method, task, ..self.params }))
            }
            (None, Some(error), _) => Seen::Answer(Box::new(Answer { id: self.id, kind: Kind::Error(error), text })),
            (None, None, Some(mut outcome)) => {
                let created = self.created.and_then(|task| task.finish(true));
                outcome.task = created.or_else(|| self.result_task.finish(outcome.result_type == ResultType::Task));
                Seen::Answer(Box::new(Answer { id: self.id, kind: Kind::Result(outcome), text }))
            }
            (None, None, None) => Seen::Trouble(Trouble { kind: TroubleKind::NotJsonRpc, text }),
        }
    }
}

impl Progress {
    fn value(&mut self, field: Field, raw: &[u8]) {
        match field {
            Field::TaskId => self.id = text(raw),
            Field::TaskStatus => self.status = Some(task_status(raw)),
            Field::TaskIsError => self.end = Some(TaskEnd::Result { is_error: raw == b"true" }),
            Field::TaskResult => self.end = None,
            Field::TaskError if raw == b"null" => self.end = None,
            _ => {
                let mut error = match self.end.take() {
                    Some(TaskEnd::Error(error)) => error,
                    _ => RpcError::default(),
                };
                read_error(&mut error, field, raw);
                self.end = Some(TaskEnd::Error(error));
            }
        }
    }

    /// The task, if it has an id and a status: a stray `status` in a result makes none.
    fn finish(self, created: bool) -> Option<Task> {
        Some(Task { id: self.id?, status: self.status?, created, end: self.end })
    }
}

/// Takes up a part of an error, or an error that is a bare value.
fn read_error(error: &mut RpcError, field: Field, raw: &[u8]) {
    match field {
        Field::ErrorCode | Field::TaskErrorCode => error.code = integer(raw),
        Field::ErrorMessage | Field::TaskErrorMessage => error.message = text(raw).unwrap_or_default(),
        _ => *error = RpcError { code: None, message: text(raw).unwrap_or_default() },
    }
}

/// The code as an integer, also when it is spelled as `-32603.0` or `-3.2603e4`.
fn integer(raw: &[u8]) -> Option<i64> {
    let number = std::str::from_utf8(raw).ok()?;
    number.parse().ok().or_else(|| {
        let number = number.parse::<f64>().ok().filter(|number| number.fract() == 0.0)?;
        format!("{number:.0}").parse().ok()
    })
}

fn token(raw: &[u8], whole: bool) -> Option<String> {
    if whole { String::from_utf8(raw.to_vec()).ok() } else { None }
}

fn text(raw: &[u8]) -> Option<String> {
    string(raw).map(|string| string.text.into_owned())
}

fn result_type(raw: &[u8]) -> ResultType {
    match text(raw).as_deref() {
        Some("complete") => ResultType::Complete,
        Some("input_required") => ResultType::InputRequired,
        Some("task") => ResultType::Task,
        _ => ResultType::Other,
    }
}

fn task_status(raw: &[u8]) -> TaskStatus {
    match text(raw).as_deref() {
        Some("working") => TaskStatus::Working,
        Some("input_required") => TaskStatus::InputRequired,
        Some("completed") => TaskStatus::Completed,
        Some("failed") => TaskStatus::Failed,
        Some("cancelled") => TaskStatus::Cancelled,
        _ => TaskStatus::Other,
    }
}
