//! A build without the feature `otel` exports nothing; its configuration cannot ask for it.

use std::sync::Arc;

use crate::admin::Admin;
use crate::config::Config;
use crate::telemetry::Telemetry;

/// Nothing.
#[derive(Clone, Debug)]
pub(super) struct Export;

impl Export {
    pub(super) fn start(_: &Config, _: &Arc<Telemetry>) -> Result<Export, String> {
        Ok(Export)
    }

    pub(super) fn metrics(&self, _: &Arc<Admin>) {}

    pub(super) async fn finish(&self) {}
}
