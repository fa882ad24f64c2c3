//! What `exec` looks at before anything runs: the prompt, the model, the session.

use std::io::Read as _;

use base64::Engine as _;
use tiller_engine::Open;
use tiller_protocol::{Attachment, Message, Notice, NoticeKind};
use tiller_store::Store;

use crate::cli::Exec;
use crate::wire::Setup;

/// The process that has the session open by now, if any.
pub(super) fn holder(setup: &Setup, store: &Store, open: Open) -> Option<String> {
    let id = match open {
        Open::New => return None,
        Open::Session(id) => id,
        Open::Last => setup.find_session(store, "last").ok()?,
    };
    store.session(id).ok()?.summary.open_in
}

/// A model that cannot be used is a mistake of the configuration, told before anything is stored.
pub(super) fn check_model(setup: &Setup, new: bool) -> Result<(), Notice> {
    let asked = setup.sources.flags.model.is_some() || setup.sources.model.is_some();
    if !new && !asked {
        // The session says which.
        return Ok(());
    }
    let env = std::sync::Arc::clone(&setup.env);
    let all = tiller_provider::build(&setup.config.config, &|n| env(n), Some(&setup.key_file()));
    let model = all.default_model().filter(|m| !m.0.is_empty()).ok_or_else(|| {
        Notice::new(NoticeKind::Config, "No model is configured.").hint(
            "Set ANTHROPIC_API_KEY (or another vendor's), or model in config.toml, or try -m demo/demo.",
        )
    })?;
    all.get(model.provider()).map(drop).map_err(|e| {
        let why = e.to_string();
        Notice::new(NoticeKind::Config, format!("{model} cannot be used: {}.", why.trim_end_matches('.')))
            .hint("`tiller doctor` says which providers are ready.")
    })
}

/// The prompt with its images.
pub(super) fn message(exec: &Exec) -> Result<Message, Notice> {
    let mut text = exec.prompt.clone();
    if text == "-" {
        text.clear();
        std::io::stdin().lock().read_to_string(&mut text).map_err(|e| {
            Notice::new(NoticeKind::User, format!("The prompt could not be read from standard input: {e}."))
                .hint("It must be UTF-8 text.")
        })?;
    }
    if text.trim().is_empty() {
        return Err(Notice::new(NoticeKind::Config, "The prompt is empty.")
            .hint("Write it behind exec, or pipe it in with -."));
    }
    let mut message = Message::text(text);
    for path in &exec.image {
        let bytes = std::fs::read(path).map_err(|e| {
            Notice::new(NoticeKind::Config, format!("{} could not be read: {e}.", path.display()))
                .hint("Name an image file that you can read.")
        })?;
        let (media_type, width, height) = tiller_tool::image_info(&bytes).ok_or_else(|| {
            Notice::new(NoticeKind::Config, format!("{} is not an image that models take.", path.display()))
                .hint("Use PNG, JPEG, GIF or WebP.")
        })?;
        let label = format!("[image {}: {width}x{height}]", message.attachments.len() + 1);
        message.text.push_str(&format!("\n{label}"));
        let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
        message.attachments.push(Attachment::Image {
            label,
            media_type: media_type.into(),
            data,
            width,
            height,
        });
    }
    Ok(message)
}
