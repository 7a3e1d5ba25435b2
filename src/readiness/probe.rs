//! One question to the service behind an integration. Whatever it answers, and whatever goes wrong, ends in a [`Finding`] in
//! our own words: neither credentials nor anything that the service said get further than this file.

use std::sync::Arc;

use http::header::{HeaderMap, HeaderValue};
use reqwest::{Client, Response};
use serde_json::Value;

use super::client::client;
use super::meaning::{Reply, judge, reads_body};
use super::secret::{Missing, Secret, Values, fill, value};
use super::verdict::Finding;
use crate::config::{Environment, Oauth, Probe, ProbeFault, ProbeRequest};
use crate::telemetry::ProbeResult;

/// Bytes of an answer that are read; a longer one is no JSON to us.
const BODY_MAX: usize = 64 * 1024;

/// What a token endpoint says of credentials that are no longer good (RFC 6749, 5.2).
const REFUSED: [&str; 4] = ["invalid_grant", "invalid_client", "unauthorized_client", "access_denied"];

/// Asks the service.
pub(super) async fn ask(probe: &Arc<Probe>, environment: &Environment) -> Finding {
    let asked = async {
        let (own, environment) = (Arc::clone(probe), environment.clone());
        let prepared = tokio::task::spawn_blocking(move || prepare(&own, &environment)).await;
        let (client, values) = prepared.unwrap_or_else(|_| Err(error("the probe broke off")))?;
        let asking = Asking { client: &client, values: &values };
        asking.ask(probe).await
    };
    match tokio::time::timeout(probe.timeout, asked).await {
        Ok(Ok(finding) | Err(finding)) => finding,
        Err(_) => judge(&probe.meaning, &Reply::Fault(ProbeFault::Timeout)),
    }
}

fn error(words: &'static str) -> Finding {
    Finding::new(ProbeResult::Error, words)
}

/// Everything that has to be read from disk.
fn prepare(probe: &Probe, environment: &Environment) -> Result<(Client, Values), Finding> {
    let mut values = Values::new();
    for place in probe.credentials() {
        let found = value(environment, place).map_err(|missing| match missing {
            Missing::Absent(place) => Finding::new(ProbeResult::Unconfigured, format!("{place} is missing")),
            Missing::Unreadable(place) => Finding::new(ProbeResult::Error, format!("{place} cannot be read")),
            Missing::NotText(place) => {
                Finding::new(ProbeResult::Error, format!("{place} is not UTF-8 text; write the credential as text"))
            }
        })?;
        values.insert(place.clone(), found);
    }
    let proxy = probe.proxy.as_ref().map(|proxy| fill(proxy, &values, None));
    let urls = probe.request.iter().map(|request| &request.url).chain(probe.oauth.iter().map(|oauth| &oauth.token_url));
    let mut urls = urls.chain(&probe.proxy).map(|url| fill(url, &values, None));
    let speaks_tls = urls.any(|url| !url.reveal().starts_with("http://"));
    let client = client(&probe.tls, proxy.as_ref(), speaks_tls).map_err(error)?;
    Ok((client, values))
}

struct Asking<'a> {
    client: &'a Client,
    values: &'a Values,
}

impl Asking<'_> {
    async fn ask(&self, probe: &Probe) -> Result<Finding, Finding> {
        let token = match &probe.oauth {
            Some(oauth) => Some(self.exchange(oauth, probe).await?),
            None => None,
        };
        let Some(request) = &probe.request else { return Ok(Finding::new(ProbeResult::Ok, "the token was exchanged")) };
        let reply = match self.send(request, token.as_ref()).await? {
            Ok(response) if reads_body(&probe.meaning) => answer(response).await,
            Ok(response) => Reply::Answer(response.status().as_u16(), None),
            Err(fault) => Reply::Fault(fault),
        };
        Ok(judge(&probe.meaning, &reply))
    }

    async fn send(
        &self,
        request: &ProbeRequest,
        token: Option<&Secret>,
    ) -> Result<Result<Response, ProbeFault>, Finding> {
        let filled = |template| fill(template, self.values, token);
        let mut headers = HeaderMap::new();
        for (name, template) in &request.headers {
            let mut value = HeaderValue::from_str(filled(template).reveal())
                .map_err(|_| Finding::new(ProbeResult::Error, format!("the value of header {name} is not valid")))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let mut building = self.client.request(request.method.clone(), filled(&request.url).reveal()).headers(headers);
        if let Some(body) = &request.body {
            building = building.body(filled(body).reveal().to_owned());
        }
        sent(building.send().await)
    }

    /// Exchanges the refresh token for an access token.
    async fn exchange(&self, oauth: &Oauth, probe: &Probe) -> Result<Secret, Finding> {
        let filled = |template| fill(template, self.values, None);
        let (id, refresh) = (filled(&oauth.client_id), filled(&oauth.refresh_token));
        let secret = oauth.client_secret.as_ref().map(filled);
        let mut form =
            vec![("grant_type", "refresh_token"), ("refresh_token", refresh.reveal()), ("client_id", id.reveal())];
        form.extend(secret.as_ref().map(|secret| ("client_secret", secret.reveal())));
        form.extend(oauth.scope.as_deref().map(|scope| ("scope", scope)));
        let sending = self.client.post(filled(&oauth.token_url).reveal()).form(&form).send();
        let reply = match sent(sending.await)? {
            Ok(response) => answer(response).await,
            Err(fault) => Reply::Fault(fault),
        };
        let Reply::Answer(status, body) = &reply else { return Err(at_token_endpoint(&judge(&probe.meaning, &reply))) };
        let text = |name: &str| body.as_ref().and_then(|body| body.get(name)).and_then(Value::as_str);
        if (200..300).contains(status)
            && let Some(token) = text("access_token")
        {
            return Ok(Secret::new(token.to_owned()));
        }
        if let Some(code) = REFUSED.into_iter().find(|code| text("error") == Some(code)) {
            return Err(Finding::new(ProbeResult::AuthFailed, format!("token endpoint: HTTP {status}, {code}")));
        }
        let judged = match status {
            401 | 403 => Finding::new(ProbeResult::AuthFailed, format!("HTTP {status}")),
            408 | 425 | 429 | 500..=599 => Finding::new(ProbeResult::Transient, format!("HTTP {status}")),
            _ => Finding::new(ProbeResult::Error, format!("HTTP {status} without an access token")),
        };
        Err(at_token_endpoint(&judged))
    }
}

fn at_token_endpoint(finding: &Finding) -> Finding {
    Finding::new(finding.result, format!("token endpoint: {}", finding.detail))
}

fn sent(sent: reqwest::Result<Response>) -> Result<Result<Response, ProbeFault>, Finding> {
    match sent {
        Ok(response) => Ok(Ok(response)),
        Err(fault) if fault.is_builder() => Err(error("the URL is not valid")),
        Err(fault) if fault.is_timeout() => Ok(Err(ProbeFault::Timeout)),
        Err(_) => Ok(Err(ProbeFault::Connect)),
    }
}

/// The answer with its body, if that is JSON of a reasonable size.
async fn answer(mut response: Response) -> Reply {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= BODY_MAX => body.extend_from_slice(&chunk),
            Ok(Some(_)) => return Reply::Answer(status, None),
            Ok(None) => return Reply::Answer(status, serde_json::from_slice(&body).ok()),
            Err(_) => return Reply::Fault(ProbeFault::Connect),
        }
    }
}
