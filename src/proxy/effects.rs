//! Acting on what a step of the health machine did: count and log it, confirm a doubt, tell clients that the list changed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::confirm;
use super::notify::Word;
use super::shared::Shared;
use crate::health::Effect;
use crate::mcp::reply;

/// Acts on everything that happened.
pub(super) fn act(shared: &Arc<Shared>, effects: Vec<Effect>) {
    if effects.is_empty() {
        return;
    }
    for effect in effects {
        match effect {
            Effect::ConfirmBackend { backend } => confirm::start(shared, &backend),
            Effect::Transition(transition) => {
                for backend in &shared.backends {
                    let named = transition.key.backend == *backend.name;
                    if named || transition.key.backend == crate::health::document::ANY_BACKEND {
                        list_changed(shared, &backend.name);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The list of a backend reads differently: its clients are told, now or at the end of the interval.
pub(super) fn list_changed(shared: &Arc<Shared>, backend: &Arc<str>) {
    match shared.notifier.changed(backend, shared.clock.now().tick) {
        Word::Now => tell(shared, backend),
        Word::Pending => {}
        Word::After(wait) => {
            let (shared, backend) = (Arc::clone(shared), Arc::clone(backend));
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                shared.notifier.caught_up(&backend, shared.clock.now().tick);
                tell(&shared, &backend);
            });
        }
    }
}

fn tell(shared: &Shared, backend: &str) {
    let announces = shared.backends.iter().find(|known| &*known.name == backend);
    if announces.is_some_and(|known| known.announces_tools.load(Ordering::Relaxed)) {
        shared.streams.tell(backend, |listener| reply::tools_changed(listener.subscription.as_deref()));
    }
}
