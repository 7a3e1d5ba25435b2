//! A small MCP server to put behind toolvane: tools that work, are slow, flaky, broken, rate-limited or forbidden.
//!
//! It is built on the official Rust SDK and speaks both eras on `/mcp`: sessions (up to 2025-11-25) and the stateless
//! 2026-07-28. `tools.rs` holds the tools; `backstage.rs` counts what really arrives and lets a test or a curious person
//! make any tool fail through `/control/*`. Run it alone with
//! `cargo run --example demo_server -- --listen 127.0.0.1:9000`; `make run` puts toolvane in front of it.
#![expect(clippy::print_stderr, reason = "a demo program tells its address on stderr, as toolvane does")]

mod backstage;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get};
use clap::Parser;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::backstage::Backstage;
use crate::tools::DemoServer;

/// Where the demo server listens.
#[derive(Debug, Parser)]
#[command(about = "A small MCP server whose tools work, fail, dawdle and refuse, to see toolvane at work")]
struct Args {
    /// Address and port; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:9000")]
    listen: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let listener =
        TcpListener::bind(&args.listen).await.with_context(|| format!("cannot listen on {}", args.listen))?;
    eprintln!("demo server on http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, app(Backstage::default())).with_graceful_shutdown(stopped()).await?;
    Ok(())
}

/// The whole server: the MCP endpoint behind the counters and switches, and the control paths beside it.
fn app(backstage: Backstage) -> Router {
    // A short keep-alive lets the server notice a client that left; a short retry makes resuming quick to watch.
    let config = StreamableHttpServerConfig::default()
        .with_sse_keep_alive(Some(Duration::from_millis(100)))
        .with_sse_retry(Some(Duration::from_millis(100)));
    let tools = DemoServer::new(backstage.clone());
    let mcp = StreamableHttpService::new(move || Ok(tools.clone()), Arc::new(LocalSessionManager::default()), config);
    Router::new()
        .nest_service("/mcp", mcp)
        .layer(from_fn_with_state(backstage.clone(), backstage::watch))
        .route("/control/stats", get(backstage::stats))
        .route("/control/fail", any(backstage::fail))
        .route("/control/reset", any(backstage::reset))
        .with_state(backstage)
}

/// Ends at Ctrl-C or SIGTERM. Open streams are cut after this: a demo has nothing to drain.
async fn stopped() {
    let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(signal) => signal,
        Err(error) => {
            eprintln!("no SIGTERM handling: {error}");
            let _ = tokio::signal::ctrl_c().await;
            return;
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    std::process::exit(0);
}
