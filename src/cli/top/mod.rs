//! `toolvane top`: every tool of a running toolvane in a terminal, live.
//!
//! - `row`: what the admin surface says of a tool. `state`: what a key does; it knows no terminal.
//! - `view`: what a state looks like; it draws and decides nothing.
//!
//! Here is the rest: the terminal, the thread that reads its keys, and asking when something has happened or time has passed.

mod row;
mod state;
mod view;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::ask::{self, Access, AskError, escaped};
use super::{BAD, FINE, USAGE};
use state::{Detail, State, Step};

/// How often everything is asked anew even if nothing happened: rates change without an event.
const PERIOD: Duration = Duration::from_secs(2);
/// How soon after an event; what comes meanwhile is seen with it.
const SOON: Duration = Duration::from_millis(200);
/// How long to wait before the stream of events is opened again.
const AGAIN: Duration = Duration::from_secs(2);

/// `toolvane top`.
#[derive(Debug, Args)]
pub struct Top {
    /// Where to ask.
    #[command(flatten)]
    pub access: Access,
}

/// What wakes the loop.
enum Woken {
    Key(event::KeyEvent),
    /// The terminal has another size.
    Redraw,
    /// Time to ask.
    Ask,
    Leave,
}

/// Runs until somebody quits; gives the exit code.
pub(super) fn top(args: &Top, colours: bool, words: &mut impl Write) -> u8 {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let _ = writeln!(words, "error: `toolvane top` needs a terminal; `toolvane status` prints the same once");
        return USAGE;
    }
    ask::run(words, async {
        // Whoever is not there, or says no, is told of in plain words, before the screen is taken.
        let first = overview(&args.access).await?;
        let mut state = State::new(args.access.admin.clone());
        state.take(&first);
        let Ok(mut terminal) = ratatui::try_init() else { return Ok(BAD) };
        let ended = run(&args.access, &mut state, &mut terminal, colours).await;
        ratatui::restore();
        Ok(if ended.is_ok() { FINE } else { BAD })
    })
}

async fn overview(access: &Access) -> Result<Value, AskError> {
    access.ask("GET", "/v1/overview", None).await
}

async fn run(access: &Access, state: &mut State, terminal: &mut DefaultTerminal, colours: bool) -> io::Result<()> {
    let (wake, mut woken) = mpsc::channel(64);
    read_keys(wake.clone());
    let following = tokio::spawn(follow(access.clone(), wake));
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut ticks = tokio::time::interval(PERIOD);
    loop {
        terminal.draw(|frame| view::draw(frame, state, colours))?;
        let what = tokio::select! {
            biased;
            _ = terminate.recv() => Woken::Leave,
            _ = hangup.recv() => Woken::Leave,
            what = woken.recv() => what.unwrap_or(Woken::Leave),
            _ = ticks.tick() => Woken::Ask,
        };
        let step = match what {
            Woken::Leave => Step::Quit,
            Woken::Redraw => Step::Stay,
            Woken::Ask => Step::Ask,
            Woken::Key(key) => state.key(key),
        };
        match step {
            Step::Quit => break,
            Step::Stay => {}
            Step::Ask => look(access, state).await,
        }
    }
    following.abort();
    Ok(())
}

/// Asks for everything, and for the tool whose details are open.
async fn look(access: &Access, state: &mut State) {
    match overview(access).await {
        Ok(answer) => state.take(&answer),
        Err(error) => return state.lost(error.to_string()),
    }
    let Some((backend, tool)) = state.wants_detail() else { return };
    let path = format!("/v1/health?backend={}&tool={}&limit=100", escaped(&backend), escaped(&tool));
    if let Ok(answer) = access.ask("GET", &path, None).await {
        state.detail(Detail::read((backend, tool), &answer));
    }
}

/// Keys come from a thread of their own: the terminal can only be waited for by blocking.
fn read_keys(wake: mpsc::Sender<Woken>) {
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            let what = match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => Woken::Key(key),
                Event::Resize(..) => Woken::Redraw,
                _ => continue,
            };
            if wake.blocking_send(what).is_err() {
                return;
            }
        }
        let _ = wake.blocking_send(Woken::Leave);
    });
}

/// Wakes whenever something has happened, for as long as somebody listens.
async fn follow(access: Access, wake: mpsc::Sender<Woken>) {
    loop {
        if let Ok(mut followed) = access.follow("/v1/events").await {
            while followed.next().await.is_some() {
                tokio::time::sleep(SOON).await;
                followed.skip();
                if wake.send(Woken::Ask).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}
