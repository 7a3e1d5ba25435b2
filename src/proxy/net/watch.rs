//! Who is told of connections: how many there are, and which could not be opened.

use std::fmt;
use std::sync::Arc;

use crate::rules::TransportFault;

/// Counts the connections of one listener or one backend. Must not wait.
pub trait Watch: fmt::Debug + Send + Sync {
    /// There is one more.
    fn opened(&self);
    /// There is one less.
    fn closed(&self);
    /// One could not be opened.
    fn failed(&self, fault: TransportFault);
}

/// An open connection, for as long as this value lives.
#[derive(Debug)]
#[must_use = "the connection counts as closed when this is dropped"]
pub struct Open(Option<Arc<dyn Watch>>);

impl Open {
    /// One more; `None` counts nothing.
    pub fn of(watch: Option<&Arc<dyn Watch>>) -> Open {
        if let Some(watch) = watch {
            watch.opened();
        }
        Open(watch.cloned())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(watch) = &self.0 {
            watch.closed();
        }
    }
}
