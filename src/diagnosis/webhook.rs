//! An engine of somebody else, asked over HTTP. It answers at once with 200 and an answer, or with 202 and later through the
//! admin API (`POST /v1/diagnosis/jobs/{id}/complete`).

use super::answer::Answer;
use super::client::{CallError, Client, Signer, signed};
use super::job::Job;
use super::work::Found;
use crate::clock::Now;
use crate::rules::Scope;

/// Where jobs are posted.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// The address.
    pub url: String,
    /// What bodies are signed with, if they are.
    pub signer: Option<Signer>,
}

impl Webhook {
    pub(super) async fn diagnose(&self, job: &Job, client: &Client, (widest, now): (Scope, Now)) -> Found {
        let body = match serde_json::to_vec(job) {
            Ok(body) => body,
            Err(error) => return Found::Nothing(format!("the job cannot be written: {error}")),
        };
        let headers = signed(self.signer.as_ref(), &body, now.wall);
        match client.post(&self.url, headers, body).await {
            // Asked again it would say the same.
            Err(error @ CallError::TooLarge) => Found::Malformed(error.to_string()),
            Err(error) => Found::NotYet(error.to_string()),
            Ok((202 | 204, _)) => Found::Later,
            Ok((200..=299, body)) => match Answer::read(&body, widest, now) {
                Ok(answer) => Found::Answer(Box::new(answer)),
                Err(why) => Found::Malformed(why),
            },
            Ok((status, _)) => Found::NotYet(format!("the engine answered {status}")),
        }
    }
}
