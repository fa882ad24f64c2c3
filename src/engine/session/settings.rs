//! Settings that change while the engine runs. The composition root reads them; here they replace the old ones as a
//! whole, and a faulty file changes nothing.

use crate::session::manage;
use std::sync::{Arc, PoisonError};

use tiller_config::Config;
use tiller_protocol::{CommandId, Notice, NoticeKind};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::services::SettingsReport;
use crate::questions::msg::QuestionMsg;

/// The client of a reload that no client asked for; replies to it are dropped.
const NOBODY: ClientId = ClientId(u64::MAX);

/// Reads the settings again.
pub(crate) fn reload(core: &mut Core, asked: Option<(ClientId, CommandId)>) {
    let Some(settings) = core.services.user.settings.clone() else {
        if let Some((client, cause)) = asked {
            let notice = Notice::new(NoticeKind::User, "Settings cannot be reloaded here");
            core.refuse(client, cause, notice);
        }
        return;
    };
    let tx = core.tx.clone();
    core.spawn(async move {
        let result = tokio::task::spawn_blocking(move || (settings.read)()).await.unwrap_or_else(|e| {
            Err(Notice::new(NoticeKind::Internal, format!("the settings could not be read: {e}")))
        });
        // The engine may have ended.
        let _ = tx
            .send(Msg::Question(QuestionMsg::SettingsRead(Box::new(SettingsReport { asked, result }))))
            .await;
    });
}

pub(crate) fn settings_read(core: &mut Core, read: SettingsReport) {
    let fresh = match read.result {
        Ok(fresh) => fresh,
        Err(notice) => {
            if let Some((client, cause)) = read.asked {
                core.refuse(client, cause, notice);
            }
            return;
        }
    };
    let before = core.services.config();
    // A limit that the user raised stays, unless the configured limits changed.
    if before.budget != fresh.config.budget {
        core.money.limits = crate::money::budget::Limits::new(&fresh.config.budget);
        if let Some(limit) = core.money.max_cost {
            core.money.limits.set_session(limit);
        }
    }
    let mut changed = changed(&before, &fresh.config);
    // A model that was just chosen here, and stored as the default, is no news.
    if fresh.config.model.as_deref() == Some(core.session.model.0.as_str()) {
        changed.retain(|section| !section.starts_with("model "));
    }
    let profile = fresh.config.profile;
    if let Some(memory) = &core.services.user.memory {
        memory.set_settings(tiller_memory::MemorySettings::of(&fresh.config));
    }
    *core.services.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh.config);
    *core.services.models.providers.write().unwrap_or_else(PoisonError::into_inner) = fresh.providers;
    if !changed.is_empty() {
        let text = format!("Settings reloaded: {}", changed.join(", "));
        core.notice(Notice::new(NoticeKind::Info, text));
    }
    // A stricter profile holds at once; a looser one in sessions that begin later.
    if profile < before.profile && profile < core.session.profile {
        let (client, cause) = read.asked.unwrap_or((NOBODY, CommandId(0)));
        manage::set_profile(core, client, cause, profile);
    }
    // The limit of running agents may be higher now.
    core.with_crew(|crew, host| crew.settings_changed(host));
    let Some((client, cause)) = read.asked else { return };
    if core.session.model.0.is_empty() {
        let model = core.services.models.default_model();
        if !model.0.is_empty() {
            manage::set_model(core, client, cause, model);
        }
    }
    core.done(client, cause, "Settings reloaded".into());
}

/// The names of the sections that differ; the screen reports its own.
fn changed(before: &Config, after: &Config) -> Vec<String> {
    let plain = |c: &Config| serde_json::to_value(c).unwrap_or_default();
    let (before, after) = (plain(before), plain(after));
    let sections = after.as_object().into_iter().flatten();
    sections
        .filter(|(name, value)| name.as_str() != "ui" && before.get(name.as_str()) != Some(value))
        .map(|(name, _)| match name.as_str() {
            "model" | "profile" => format!("{name} (for new sessions)"),
            "watch" => format!("{name} (from the next start)"),
            _ => name.clone(),
        })
        .collect()
}
