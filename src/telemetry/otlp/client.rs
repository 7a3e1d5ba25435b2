//! The HTTP client that exports are sent with.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

/// How long one export may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Most of an answer that is read, in bytes: collectors say what they dropped in a sentence.
const ANSWER_MAX: usize = 64 * 1024;

/// Sends on a runtime of the process, whichever thread asks: the SDK's own threads have none.
#[derive(Clone, Debug)]
pub(super) struct Client {
    runtime: Handle,
    http: reqwest::Client,
}

impl Client {
    pub(super) fn new(runtime: Handle, headers: HeaderMap) -> Result<Client, reqwest::Error> {
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Client { runtime, http })
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let http = self.http.clone();
        self.runtime.spawn(async move { exchange(&http, request).await }).await?
    }
}

async fn exchange(http: &reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let mut answer = http.execute(request.try_into()?).await.map_err(reqwest::Error::without_url)?;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + piece.len() > ANSWER_MAX {
            break;
        }
        body.extend_from_slice(&piece);
    }
    *response.body_mut() = body.into();
    Ok(response)
}
