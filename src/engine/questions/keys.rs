//! API keys that the user enters. They are written to the key file and nowhere else: no event, entry or log contains
//! one.

use crate::session::manage;
use crate::session::model;
use std::sync::PoisonError;

use tiller_protocol::command::KeyText;
use tiller_protocol::{CommandId, ModelRef, Notice, NoticeKind};
use tiller_provider::registry::EnteredKey;
use tiller_provider::registry::key::{self, Secret};
use tiller_provider::{ProviderError, Providers, models};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::services::{KeyError, KeyReport, KeyStore};
use crate::questions::msg::QuestionMsg;

/// Longest key, in bytes.
const LONGEST: usize = 16 << 10;

pub(crate) fn store_key(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    provider: String,
    key: &KeyText,
) {
    let key = Secret::new(&key.0);
    let why = if core.services.user.keys.is_none() {
        "keys cannot be stored here"
    } else if !name_ok(&provider) {
        "a provider's name has letters, digits, - and _ only"
    } else if !key_ok(key.reveal()) {
        "this is not a key: it is empty, too long or contains spaces"
    } else {
        ""
    };
    let keys = match &core.services.user.keys {
        Some(keys) if why.is_empty() => keys.clone(),
        _ => return core.refuse(client, cause, Notice::new(NoticeKind::User, why)),
    };
    let over = match (keys.entered)(&provider) {
        EnteredKey::Used => None,
        EnteredKey::Over(variable) => Some(variable),
        EnteredKey::Unused(why) => {
            let notice = Notice::new(
                NoticeKind::Config,
                format!("this key would not be used, so it was not stored: {why}"),
            );
            return core.refuse(client, cause, notice);
        }
    };
    (keys.learn)(key.reveal());
    let tx = core.tx.clone();
    core.spawn(async move {
        let file = keys.file.clone();
        let (providers, result) = keep(keys, &provider, key).await;
        let tried = KeyReport { client, cause, provider, file, providers, over, result };
        // The engine may have ended; the key is stored or not regardless.
        let _ = tx.send(Msg::Question(QuestionMsg::KeyTried(Box::new(tried)))).await;
    });
}

pub(crate) fn key_tried(core: &mut Core, tried: KeyReport) {
    let KeyReport { client, cause, provider, file, providers, over, result } = tried;
    let shown = file.display();
    let over = over.map_or_else(String::new, |v| format!("; it is used instead of the one in {v}"));
    let notice = match result {
        Ok(()) => Notice::new(
            NoticeKind::Info,
            format!("the {provider} key works; it is stored in {shown} (only you can read it){over}"),
        ),
        Err(KeyError::Untested(e)) => Notice::new(
            NoticeKind::Network,
            format!("the {provider} key is stored in {shown}, but could not be tested: {e}{over}"),
        ),
        Err(KeyError::Refused(e)) => {
            let notice = Notice::new(
                NoticeKind::User,
                format!("{provider} did not accept this key, so it was not stored: {e}"),
            );
            return core.refuse(
                client,
                cause,
                notice.hint("check that the key was copied completely, and enter it again"),
            );
        }
        Err(KeyError::NotSaved(why)) => {
            return core.refuse(client, cause, Notice::new(NoticeKind::User, why));
        }
    };
    if let Some(fresh) = providers {
        take_over(core, &provider, &fresh);
    }
    let said = notice.message.clone();
    core.notice(notice);
    if (core.session.model.0.is_empty() || model::is_demo(core, &core.session.model))
        && let Some(model) = models::default_of(&provider)
    {
        manage::set_model(core, client, cause, ModelRef(format!("{provider}/{model}")));
    }
    core.done(client, cause, said);
}

/// Takes over the provider and all others that became ready by it (two names may share a key).
fn take_over(core: &Core, provider: &str, fresh: &Providers) {
    let mut all = core.services.models.providers.write().unwrap_or_else(PoisonError::into_inner);
    for name in fresh.names() {
        if let Ok(p) = fresh.get(name)
            && (name == provider || all.get(name).is_err())
        {
            all.insert(p);
        }
    }
}

fn name_ok(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(plain)
}

fn key_ok(key: &str) -> bool {
    !key.is_empty() && key.len() <= LONGEST && !key.chars().any(|c| c.is_control() || c.is_whitespace())
}

/// Saves the key, makes the provider, and tests it with a request that costs nothing.
async fn keep(keys: KeyStore, provider: &str, key: Secret) -> (Option<Providers>, Result<(), KeyError>) {
    let (file, name) = (keys.file.clone(), provider.to_owned());
    let saved = tokio::task::spawn_blocking(move || {
        let before = key::load(&file, &name)?;
        if let Some(folder) = file.parent() {
            private_folder(folder).map_err(|e| format!("{} cannot be created ({e}).", folder.display()))?;
        }
        key::save(&file, &name, &key)?;
        Ok((before, (keys.rebuild)()))
    });
    let (before, providers) = match saved.await.unwrap_or_else(|e| Err(e.to_string())) {
        Ok(saved) => saved,
        Err(why) => return (None, Err(KeyError::NotSaved(why))),
    };
    let tried = match providers.get(provider) {
        Ok(p) => p.check().await,
        Err(e) => Err(e),
    };
    let result = match tried {
        Ok(()) => Ok(()),
        Err(e @ ProviderError::Auth(_)) => {
            let (file, name) = (keys.file.clone(), provider.to_owned());
            let back = tokio::task::spawn_blocking(move || key::put_back(&file, &name, before.as_ref()));
            match back.await.unwrap_or_else(|e| Err(e.to_string())) {
                Ok(()) => Err(KeyError::Refused(e)),
                Err(why) => Err(KeyError::NotSaved(why)),
            }
        }
        Err(e) => Err(KeyError::Untested(e)),
    };
    (Some(providers), result)
}

fn private_folder(folder: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
