//! Facts about a model: its server, prices, window and tier.

use crate::core::Core;
use crate::core::services::Human;
use std::sync::Arc;
use std::sync::PoisonError;
use tiller_config::agents::Tier;
use tiller_config::schema::ModelInfo;
use tiller_protocol::{ModelRef, Notice, NoticeKind};
use tiller_provider::{Provider, ProviderError, models};

pub(crate) fn provider(core: &Core, model: &ModelRef) -> Result<Arc<dyn Provider>, ProviderError> {
    core.services
        .models
        .providers
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .get(model.provider())
}

/// The model of the fast tier; the session's model where none is configured, or its provider is not known.
pub(crate) fn fast_or_session(core: &Core) -> ModelRef {
    let fast = core.services.config().tiers.fast.clone().map(ModelRef);
    fast.filter(|f| provider(core, f).is_ok()).unwrap_or_else(|| core.session.model.clone())
}

/// What the configuration and the built-in list state about a model.
pub(crate) fn stated_info(core: &Core, model: &ModelRef) -> ModelInfo {
    models::lookup(model.provider(), model.model(), &core.services.config())
}

/// Like [`stated_info`], with the window that its server stated.
pub(crate) fn model_info(core: &Core, model: &ModelRef) -> ModelInfo {
    let mut info = stated_info(core, model);
    info.window = core.services.models.windows.narrowed(model, info.window, core.services.clock.now());
    info
}

/// Whether it is the built-in demo model.
pub(crate) fn is_demo(core: &Core, model: &ModelRef) -> bool {
    match core.services.config().providers.get(model.provider()) {
        Some(p) => p.kind.0 == tiller_provider::demo::NAME,
        None => model.is_demo(),
    }
}

/// The tier that the session's model stands for.
pub(crate) fn tier(core: &Core) -> Tier {
    let config = core.services.config();
    let tiers = &config.tiers;
    let is = |t: &Option<String>| t.as_deref() == Some(core.session.model.0.as_str());
    if is(&tiers.main) {
        Tier::Main
    } else if is(&tiers.deep) {
        Tier::Deep
    } else if is(&tiers.fast) {
        Tier::Fast
    } else {
        Tier::Main
    }
}

/// The longest wait that a server may request, where no user can skip it.
pub(crate) fn longest_wait(core: &Core) -> Option<std::time::Duration> {
    let seconds = core.services.config().limits.longest_wait;
    (core.services.user.human == Human::Absent && seconds > 0)
        .then(|| std::time::Duration::from_secs(seconds))
}

pub(crate) fn window(core: &Core) -> Option<u64> {
    model_info(core, &core.session.model).window
}

/// The tier that a call on the side counts for.
pub(crate) fn tier_of(core: &Core, model: &ModelRef) -> Tier {
    if *model == core.session.model { tier(core) } else { Tier::Fast }
}

/// Allows requests to a local server that the user chose, in later sessions too.
pub(crate) fn accept_local(core: &mut Core, model: &ModelRef) {
    let local = tiller_provider::registry::LOCALS.into_iter().find(|l| l.name == model.provider());
    let Some(local) = local.filter(|_| provider(core, model).is_err()) else { return };
    core.services.models.providers.write().unwrap_or_else(PoisonError::into_inner).accept(&local);
    let Some(settings) = core.services.user.settings.clone() else { return };
    let (bus, scope) = (Arc::clone(&core.bus), core.scope());
    core.spawn(async move {
        let title = local.title;
        let kept = tokio::task::spawn_blocking(move || (settings.keep)(&local)).await;
        let Err(why) = kept.unwrap_or_else(|e| Err(e.to_string())) else { return };
        let notice = Notice::new(
            NoticeKind::Config,
            format!(
                "the approval of {title} could not be saved; it applies until this session \
                ends: {why}"
            ),
        )
        .hint("later sessions will ask again");
        let event = tiller_protocol::event::StateEvent::Notice { notice };
        bus.publish(&scope, tiller_protocol::EventBody::State(event));
    });
}
