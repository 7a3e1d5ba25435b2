//! The JSON Schema of a format, drawn by the reader of that format itself.

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::{Value, json};

use super::at::At;
use super::sheet::Sheet;
use super::source::Source;

/// The JSON Schema (2020-12) of what `reader` reads.
pub fn schema<T>(title: &str, id: &str, reader: impl FnOnce(At<'_>) -> Option<T>) -> Value {
    let sheet = Sheet::new(&Arc::new(Source::new(title, "")));
    let sketch = Sketch::default();
    reader(At::drawing(&sheet, &sketch));
    let mut drawn = sketch.take();
    if let Some(object) = drawn.as_object_mut() {
        object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        object.insert("$id".to_owned(), json!(id));
        object.insert("title".to_owned(), json!(title));
    }
    drawn
}

/// The schema of one value, while it is drawn.
#[derive(Debug, Default)]
pub(super) struct Sketch {
    drawn: RefCell<Value>,
}

impl Sketch {
    /// Replaces what was drawn; the outermost reader draws last and says the most.
    pub(super) fn draw(&self, schema: Value) {
        let mut drawn = self.drawn.borrow_mut();
        if drawn.is_null() {
            *drawn = schema;
        }
    }

    pub(super) fn take(&self) -> Value {
        let drawn = self.drawn.take();
        if drawn.is_null() { json!({}) } else { drawn }
    }

    pub(super) fn within(&self) -> Sketch {
        Sketch::default()
    }
}

pub(super) fn duration() -> Value {
    let human = "[0-9]+(ms|s|m|h|d)";
    let number = "[0-9]+(\\.[0-9]{1,9})?";
    let (hours, minutes, seconds) = (format!("{number}H"), format!("{number}M"), format!("{number}S"));
    let time = format!("T({hours}({minutes})?({seconds})?|{minutes}({seconds})?|{seconds})");
    let iso = format!("P({number}D({time})?|{time})");
    json!({"type": "string", "pattern": format!("^({human}( ?{human})*|{iso})$")})
}

pub(super) fn size() -> Value {
    json!({"anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": "^[0-9]+ ?(B|kB|MB|GB|KiB|MiB|GiB)?$"},
    ]})
}
