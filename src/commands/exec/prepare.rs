//! Checks of `exec` before anything runs: the prompt, the model, the session.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::Path;

use base64::Engine as _;
use tiller_engine::Open;
use tiller_engine::context::mentions::mentioned;
use tiller_protocol::{Attachment, Message, Notice, NoticeKind};
use tiller_store::Store;

use crate::app::Setup;
use crate::commands::args::Exec;

/// The process that has the session open, if any.
pub(crate) fn holder(setup: &Setup, store: &Store, open: Open) -> Option<String> {
    let id = match open {
        Open::New => return None,
        Open::Session(id) => id,
        Open::Last => setup.find_session(store, "last").ok()?,
    };
    store.sessions().get(id).ok()?.summary.open_in
}

/// A model that cannot be used is a configuration error, reported before anything is stored.
pub(crate) fn check_model(setup: &Setup, new: bool) -> Result<(), Notice> {
    let asked = setup.sources.flags.model.is_some() || setup.sources.model.is_some();
    if !new && !asked {
        // The session has a model.
        return Ok(());
    }
    let env = std::sync::Arc::clone(&setup.env);
    let all = tiller_provider::build(
        &setup.config.config,
        &setup.formats,
        &|n| env(n),
        Some(&setup.key_file()),
        &setup.redact(),
    );
    let model = all.default_model().filter(|m| !m.0.is_empty()).ok_or_else(|| {
        Notice::new(NoticeKind::Config, "No model is configured.").hint(
            "Set ANTHROPIC_API_KEY (or the key of another provider), set model in config.toml, \
                or try -m demo/demo.",
        )
    })?;
    all.get(model.provider()).map(drop).map_err(|e| {
        let why = e.to_string();
        Notice::new(NoticeKind::Config, format!("{model} cannot be used: {}.", why.trim_end_matches('.')))
            .hint("`tiller doctor` lists the providers that are ready.")
    })
}

/// Paths of a prompt that are said not to be attached.
const NAMED: usize = 5;

/// Maximum bytes of standard input that are added to a prompt.
const PIPED: u64 = 10 << 20;
/// How long a pipe without data is waited for: the parent process may have left it open.
const SILENT: std::time::Duration = std::time::Duration::from_secs(3);

fn read_stdin() -> Result<String, Notice> {
    let mut text = String::new();
    std::io::stdin().lock().take(PIPED + 1).read_to_string(&mut text).map_err(|e| {
        Notice::new(NoticeKind::User, format!("Standard input could not be read: {e}."))
            .hint("It must be UTF-8 text.")
    })?;
    if text.len() as u64 > PIPED {
        let notice = format!("Standard input is longer than {} MB.", PIPED >> 20);
        return Err(Notice::new(NoticeKind::User, notice).hint("Name the file in the prompt instead."));
    }
    Ok(text)
}

/// Standard input in addition to the prompt: a file, or a pipe with data. `None`: there is none.
fn piped() -> Result<Option<String>, Notice> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::FileType;
    let stdin = std::io::stdin();
    let Ok(stat) = rustix::fs::fstat(&stdin) else { return Ok(None) };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Fifo | FileType::Socket => {
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            let wait = rustix::event::Timespec { tv_sec: SILENT.as_secs().cast_signed(), tv_nsec: 0 };
            let mut noted = false;
            while poll(&mut fds, Some(&wait)).is_ok_and(|n| n == 0) {
                // A command of the same pipeline starts slowly; its output belongs to the prompt.
                if super::feeder::waits(stdin.as_fd()) {
                    if !std::mem::replace(&mut noted, true) {
                        let said = "waiting for the command that writes to standard input";
                        let notice = Notice::new(NoticeKind::Info, said);
                        crate::commands::fail(&notice.hint("Press Ctrl-C to stop waiting."));
                    }
                    continue;
                }
                let said = format!(
                    "standard input was silent for {} s: the prompt is sent without it",
                    SILENT.as_secs()
                );
                let notice = Notice::new(NoticeKind::Info, said);
                crate::commands::fail(&notice.hint("Use < /dev/null to skip waiting."));
                return Ok(None);
            }
        }
        // A terminal, /dev/null, or closed.
        _ => return Ok(None),
    }
    Ok(Some(read_stdin()?).filter(|text| !text.trim().is_empty()))
}

/// Says of each path behind an `@` that leads out of the folder that it is not attached.
pub(crate) fn say_unattached(text: &str, project: &Path) {
    let mut said = BTreeSet::new();
    for name in mentioned(text) {
        let path = match name.strip_prefix("~/").zip(std::env::home_dir()) {
            Some((rest, home)) => home.join(rest),
            None => project.join(name),
        };
        let inside = path.starts_with(project) && !name.split('/').any(|part| part == "..");
        if !inside && path.exists() && said.len() < NAMED && said.insert(name.to_owned()) {
            let text = format!("@{name} is outside this folder, so nothing is attached.");
            crate::commands::fail(&Notice::new(NoticeKind::User, text).hint(
                "Copy it into the folder, or give it on standard input (< FILE); --image attaches a picture.",
            ));
        }
    }
}

/// The prompt with piped input, and its images.
pub(crate) fn message(exec: &Exec) -> Result<Message, Notice> {
    let (text, more) =
        if exec.prompt == "-" { (read_stdin()?, None) } else { (exec.prompt.clone(), piped()?) };
    if text.trim().is_empty() {
        return Err(Notice::new(NoticeKind::Config, "The prompt is empty.")
            .hint("Write it after `exec`, or pipe it in with -."));
    }
    let text = match text.trim().strip_prefix("/init") {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => {
            tiller_tui::slash::init_message(rest)
        }
        _ => text,
    };
    let mut message = Message::text(text);
    if let Some(text) = more {
        let lines = text.lines().count();
        let s = if lines == 1 { "" } else { "s" };
        let label = format!("[standard input: {lines} line{s}]");
        message.text.push_str(&format!("\n\n{label}"));
        message.attachments.push(Attachment::Paste { label, text: text.into() });
    }
    for path in &exec.image {
        let bytes = std::fs::read(path).map_err(|e| {
            Notice::new(NoticeKind::Config, format!("{} could not be read: {e}.", path.display()))
                .hint("Name an image file that you can read.")
        })?;
        let (media_type, width, height) = tiller_tool::image_info(&bytes).ok_or_else(|| {
            Notice::new(
                NoticeKind::Config,
                format!("{} is not an image format that models accept.", path.display()),
            )
            .hint("Use PNG, JPEG, GIF or WebP.")
        })?;
        let label = format!("[image {}: {width}x{height}]", message.attachments.len() + 1);
        message.text.push_str(&format!("\n{label}"));
        let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
        message.attachments.push(Attachment::Image {
            label,
            media_type: media_type.into(),
            data: data.into(),
            width,
            height,
        });
    }
    Ok(message)
}
