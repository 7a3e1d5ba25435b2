//! Connections as the operator sees them: metrics, and a log line for one that could not be opened.

use std::sync::Arc;

use super::net::Watch;
use crate::rules::TransportFault;
use crate::telemetry::events::ConnectFailed;
use crate::telemetry::{Connections, Telemetry};

/// Counts the connections of one group.
#[derive(Debug)]
pub struct Counted {
    telemetry: Arc<Telemetry>,
    connections: Connections,
    /// Whom we connect to; empty for a listener of ours.
    backend: Arc<str>,
}

impl Counted {
    /// Those to a backend.
    pub fn upstream(telemetry: &Arc<Telemetry>, backend: &Arc<str>) -> Arc<dyn Watch> {
        let connections = telemetry.backend(backend).connections().clone();
        Arc::new(Counted { telemetry: Arc::clone(telemetry), connections, backend: Arc::clone(backend) })
    }

    /// Those to a listener of ours: `proxy` or `admin`.
    pub fn downstream(telemetry: &Arc<Telemetry>, listener: &'static str) -> Arc<dyn Watch> {
        let connections = telemetry.listener(listener);
        Arc::new(Counted { telemetry: Arc::clone(telemetry), connections, backend: Arc::default() })
    }
}

impl Watch for Counted {
    fn opened(&self) {
        self.connections.opened.inc();
        self.connections.open.inc();
    }

    fn closed(&self) {
        self.connections.open.dec();
    }

    fn failed(&self, fault: TransportFault) {
        self.telemetry.emit(ConnectFailed { backend: &self.backend, fault });
    }
}
