//! A small MCP server to put behind toolvane: tools that work, are slow, flaky, broken, rate-limited or forbidden.
//!
//! It is built on the official Rust SDK and speaks both eras on `/mcp`: sessions (up to 2025-11-25) and the stateless
//! 2026-07-28. `tools.rs` holds the tools; `backstage.rs` counts what really arrives and lets a test or a curious person
//! make any tool fail through `/control/*`, which `wire.rs` then plays. Run it alone with
//! `cargo run --example demo_server -- --listen 127.0.0.1:9000`; `make run` puts toolvane in front of it.
#![expect(clippy::print_stderr, reason = "a demo program tells its address on stderr, as toolvane does")]

mod backstage;
mod sessions;
mod tools;
mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;
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
use tokio::signal::unix::{SignalKind, signal};

use crate::backstage::Backstage;
use crate::sessions::SessionFolder;
use crate::tools::DemoServer;

/// Time between keep-alive comments, and before a cut stream is resumed.
const TICK: Duration = Duration::from_millis(100);

/// Where the demo server listens, and what it remembers.
#[derive(Debug, Parser)]
#[command(about = "A small MCP server whose tools work, fail, dawdle and refuse, to see toolvane at work")]
struct Args {
    /// Address and port; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:9000")]
    listen: SocketAddr,
    /// Folder that keeps sessions across a restart; without it they end with the server.
    #[arg(long)]
    sessions: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let listener = TcpListener::bind(args.listen).await.with_context(|| format!("cannot listen on {}", args.listen))?;
    if let Some(folder) = &args.sessions {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    eprintln!("demo server on http://{}/mcp", listener.local_addr()?);
    // Open streams are cut at the end: a demo has nothing to drain.
    tokio::select! {
        served = axum::serve(listener, app(&args, Backstage::default())) => served?,
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// The whole server: the MCP endpoint behind the counters and switches, and the control paths beside it.
fn app(args: &Args, backstage: Backstage) -> Router {
    // A short keep-alive lets the server notice a client that left; a short retry makes resuming quick to watch.
    let mut config = StreamableHttpServerConfig::default()
        .with_sse_keep_alive(Some(TICK))
        .with_sse_retry(Some(TICK))
        .with_allowed_hosts(["localhost".to_owned(), "127.0.0.1".to_owned(), args.listen.ip().to_string()]);
    if let Some(folder) = &args.sessions {
        config.session_store = Some(Arc::new(SessionFolder(folder.clone())));
    }
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.sse_retry = Some(TICK);
    let tools = DemoServer::new(backstage.clone());
    let mcp = StreamableHttpService::new(move || Ok(tools.clone()), Arc::new(sessions), config);
    Router::new()
        .nest_service("/mcp", mcp)
        .layer(from_fn_with_state(backstage.clone(), wire::watch))
        .route("/control/stats", get(backstage::stats))
        .route("/control/fail", any(backstage::fail))
        .route("/control/reset", any(backstage::reset))
        .with_state(backstage)
}
