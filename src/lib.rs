//! toolvane: a sidecar reverse proxy that knows which tools of an LLM agent are usable, for whom, and until when.
//!
//! `ARCHITECTURE.md` tells the life of a call and which module does what. A module may use those before it in this list
//! only: `clock`, `fetch`, `glob`, `json` ← `yaml` ← `mcp`, `http` ← `rules` ← `health` ← `config`, `store` ← `telemetry` ← `diagnosis`, `proxy`, `readiness` ← `admin` ← `app` ← `cli`.

pub mod admin;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod diagnosis;
pub mod fetch;
pub mod glob;
pub mod health;
pub mod http;
pub mod json;
pub mod mcp;
pub mod proxy;
pub mod readiness;
pub mod rules;
pub mod store;
pub mod telemetry;
pub mod yaml;
