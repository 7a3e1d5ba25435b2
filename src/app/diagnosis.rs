//! Who diagnoses and who is notified, from the configuration to running tasks.

use std::sync::Arc;

use crate::clock::Clock;
use crate::config::{Config, EngineKind, Receiver, SecretSource};
use crate::diagnosis::notify::{Notifier, notify_forever};
use crate::diagnosis::{Client, Diagnosis, Engine, Llm, Parts, Queue, Signer, Webhook};
use crate::health::{Diagnoser, Prober, Registry};
use crate::proxy::Proxy;
use crate::store::Store;
use crate::telemetry::Telemetry;

/// Starts what the configuration asks for; `None` if nobody diagnoses.
///
/// # Errors
/// Which secret cannot be read, or why no client can be made.
pub(super) fn diagnose(
    config: &Arc<Config>,
    proxy: &Proxy,
    (clock, store): (&Arc<dyn Clock>, Option<&Arc<Store>>),
    (registry, telemetry): (&Arc<Registry>, &Arc<Telemetry>),
) -> Result<Option<Arc<Diagnosis>>, String> {
    let secret = |source: &Option<SecretSource>| match source {
        None => Ok(None),
        Some(source) => {
            source.read(&config.environment).map(Some).map_err(|why| format!("cannot read {source}: {why}"))
        }
    };
    let signer = |receiver: &Receiver| Ok::<_, String>(secret(&receiver.secret)?.as_deref().map(Signer::new));
    if let Some(receiver) = &config.notify {
        let (clock, telemetry) = (Arc::clone(clock), Arc::clone(telemetry));
        let url = receiver.url.to_string();
        let notifier = Notifier {
            url,
            signer: signer(receiver)?,
            client: Client::new()?,
            clock,
            from: telemetry.bus().latest(),
            telemetry,
            registry: Arc::clone(registry),
            store: store.cloned(),
        };
        tokio::spawn(notify_forever(notifier));
    }
    let engine = match &config.diagnosis.engine {
        EngineKind::Off => return Ok(None),
        EngineKind::External => Engine::External,
        EngineKind::Builtin => Engine::Builtin,
        EngineKind::Webhook(receiver) => {
            Engine::Webhook(Box::new(Webhook { url: receiver.url.to_string(), signer: signer(receiver)? }))
        }
        EngineKind::Llm(model) => {
            let (url, name) = (model.url.to_string(), model.model.to_string());
            Engine::Llm(Llm { url, model: name, key: secret(&model.key)? })
        }
    };
    let client = match engine {
        Engine::Webhook(_) | Engine::Llm(_) => Some(Client::new()?),
        Engine::Builtin | Engine::External => None,
    };
    let diagnosis = Arc::new(Diagnosis::new(Parts {
        queue: Queue::new(store.cloned(), Arc::clone(clock), config.diagnosis.queue),
        engine,
        client,
        widest: config.diagnosis.widest,
        registry: Arc::clone(registry),
        telemetry: Arc::clone(telemetry),
    }));
    let acting = proxy.clone();
    diagnosis.connect(Arc::new(proxy.clone()) as Arc<dyn Prober>, Arc::new(move |effects| acting.act(effects)));
    proxy.diagnose_with(Arc::clone(&diagnosis) as Arc<dyn Diagnoser>);
    tokio::spawn(Arc::clone(&diagnosis).work_forever());
    Ok(Some(diagnosis))
}
