//! The stream of events of a running toolvane, event by event.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use super::ask::{Access, AskError, Refusal};

/// A stream that is being followed.
#[derive(Debug)]
pub(super) struct Followed {
    body: Incoming,
    text: String,
}

impl Access {
    /// Follows the events at this path.
    pub(super) async fn follow(&self, path: &str) -> Result<Followed, AskError> {
        let response = self.open("GET", path, None).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(Followed { body: response.into_body(), text: String::new() });
        }
        let bytes = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let problem = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Err(AskError::Refused(Refusal { status: status.as_u16(), problem }))
    }
}

impl Followed {
    /// The data of the next event; `None` once the stream has ended.
    pub(super) async fn next(&mut self) -> Option<String> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let data = block.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.text = rest.to_owned();
                if data.is_some() {
                    return data;
                }
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.text.push_str(&String::from_utf8_lossy(&data));
            }
        }
    }

    /// Passes over what has come already.
    pub(super) fn skip(&mut self) {
        if let Some((_, rest)) = self.text.rsplit_once("\n\n") {
            self.text = rest.to_owned();
        }
    }
}
