//! Sessions that outlive a restart: one small file each, in a folder given by `--sessions`.
//!
//! With it the demo server can be killed and started again without its clients noticing more than a pause.

use std::io::ErrorKind;
use std::path::PathBuf;

use async_trait::async_trait;
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};

/// A folder of `<session>.json` files.
#[derive(Debug)]
pub(crate) struct SessionFolder(pub(crate) PathBuf);

impl SessionFolder {
    /// The file of a session; none for an id that this server never gave out, which may be a path to somewhere else.
    fn file(&self, session: &str) -> Option<PathBuf> {
        let known = !session.is_empty() && session.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        known.then(|| self.0.join(format!("{session}.json")))
    }
}

#[async_trait]
impl SessionStore for SessionFolder {
    async fn load(&self, session: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let Some(file) = self.file(session) else { return Ok(None) };
        match tokio::fs::read(file).await {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn store(&self, session: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        if let Some(file) = self.file(session) {
            tokio::fs::write(file, serde_json::to_vec(state)?).await?;
        }
        Ok(())
    }

    async fn delete(&self, session: &str) -> Result<(), SessionStoreError> {
        match self.file(session) {
            Some(file) => Ok(tokio::fs::remove_file(file).await?),
            None => Ok(()),
        }
    }
}
