//! The models that can be chosen, for the picker.

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::services::Services;
use std::sync::Arc;
use tiller_protocol::CommandId;
use tiller_protocol::ModelRef;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::view::ModelChoice;
use tiller_protocol::view::ModelSource;
use tiller_provider::models;
use tiller_provider::registry::{self, Local};

/// How long a local server may take to accept a connection.
const PROBE: std::time::Duration = std::time::Duration::from_millis(200);

/// The known models, and those that their servers offer.
pub(crate) fn models(core: &mut Core, client: ClientId, cause: CommandId) {
    let (services, bus, scope) =
        (Arc::clone(&core.services), Arc::clone(&core.bus), core.scope_of(Some(cause)));
    let current = core.session.model.clone();
    core.spawn(async move {
        let models = choices(&services, &current).await;
        bus.reply(client, &scope, ReplyEvent::ModelsReply { models });
    });
}

pub(crate) async fn choices(services: &Services, current: &ModelRef) -> Vec<ModelChoice> {
    let mut listed = Vec::new();
    let mut ready = Vec::new();
    {
        let providers = services.models.providers.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        for l in providers.list() {
            let name = || ModelRef(format!("{}/", l.name));
            match (providers.get(&l.name), &l.unavailable) {
                (Ok(p), _) => ready.push(p),
                (Err(_), Some(why)) => listed.push((name(), Some(why.clone()))),
                (Err(e), None) => listed.push((name(), Some(e.to_string()))),
            }
        }
    }
    // Only opens a connection: no request is sent before the user's consent.
    let names: Vec<String> = ready.iter().map(|p| p.name().to_owned()).collect();
    let unknown: Vec<Local> =
        registry::LOCALS.iter().filter(|l| !names.iter().any(|n| n == l.name)).cloned().collect();
    let found = registry::probe_ports(&unknown, PROBE).await;
    listed.retain(|(m, _)| !found.iter().any(|l| l.name == m.provider()));
    let locals: Vec<ModelChoice> = found
        .iter()
        .map(|l| ModelChoice {
            model: ModelRef(format!("{}/", l.name)),
            window: None,
            price: None,
            long: Vec::new(),
            source: ModelSource::Local { port: l.port },
            unavailable: None,
        })
        .collect();
    let asks = ready.iter().map(|p| async move { (p.name().to_owned(), p.models().await) });
    for (name, models) in futures_util::future::join_all(asks).await {
        match models {
            Ok(models) => {
                listed.extend(models.into_iter().map(|m| (ModelRef(format!("{name}/{m}")), None)));
            }
            Err(e) => listed.push((ModelRef(format!("{name}/")), Some(e.to_string()))),
        }
    }
    let config = services.config();
    let configured = [&config.model, &config.tiers.fast, &config.tiers.main, &config.tiers.deep];
    let mut named: Vec<ModelRef> = configured.into_iter().flatten().map(|m| ModelRef(m.clone())).collect();
    named.push(current.clone());
    named.retain(|m| !m.0.is_empty() && !listed.iter().any(|(l, _)| l == m));
    named.dedup();
    listed.extend(named.into_iter().map(|m| (m, None)));
    let known = listed.into_iter().map(|(model, unavailable)| {
        let info = models::lookup(model.provider(), model.model(), &config);
        let source = if config.providers.contains_key(model.provider()) {
            ModelSource::Config
        } else {
            ModelSource::BuiltIn
        };
        ModelChoice {
            window: info.window,
            price: info.input.zip(info.output),
            long: info.long.iter().map(|l| (l.over, l.input, l.output)).collect(),
            source,
            unavailable,
            model,
        }
    });
    known.chain(locals).collect()
}
