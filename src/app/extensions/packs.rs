//! The packs of skills of a start: those that are exactly as the user agreed to them.

use std::path::PathBuf;

use tiller_config::Places;
use tiller_protocol::{Notice, NoticeKind};
use tiller_skills::packs::{PackState, Packs};

use crate::app::Setup;

/// The installed packs.
pub(crate) fn home(setup: &Setup) -> Packs {
    let packs = of(&setup.places);
    // For tests of builds for tests: the process ends at this write.
    let step = (setup.env)("TILLER_TEST_PACK_STEP").filter(|_| cfg!(debug_assertions));
    match step.and_then(|n| n.parse::<usize>().ok()) {
        Some(last) => {
            let steps = std::sync::atomic::AtomicUsize::new(0);
            packs.with_steps(std::sync::Arc::new(move || {
                if steps.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1 == last {
                    let _ = rustix::process::kill_process(
                        rustix::process::getpid(),
                        rustix::process::Signal::KILL,
                    );
                }
            }))
        }
        None => packs,
    }
}

fn of(places: &Places) -> Packs {
    Packs::new(places.pack_folder(), places.data.join("skill-packs.json"))
}

/// Seconds since 1970.
pub(crate) fn now(setup: &Setup) -> i64 {
    setup.clock.now().0 / 1000
}

/// The folders of the packs in use. Reads and hashes their files; none where no pack is installed.
pub(crate) fn folders(places: &Places) -> Vec<PathBuf> {
    of(places).verified().map(|(used, _)| used).unwrap_or_default()
}

/// What is said of packs that are not used.
pub(crate) fn notices(places: &Places) -> Vec<Notice> {
    let others = match of(places).verified() {
        Ok((_, others)) => others,
        Err(why) => {
            return vec![Notice::new(NoticeKind::Config, format!("No pack of skills is used: {why}."))];
        }
    };
    let notice = |(pack, state)| {
        let tiller_skills::packs::Pack { name, .. } = pack;
        let (why, hint) = match state {
            PackState::Changed(files) => {
                let first = files.first().map(|file| file.escape_debug().to_string()).unwrap_or_default();
                let more =
                    if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
                (
                    format!("{first}{more} changed since you agreed to it"),
                    format!(
                        "`tiller skills trust {name}` shows it and asks; `tiller skills update {name}` fetches it again."
                    ),
                )
            }
            PackState::Broken(why) => (why, format!("`tiller skills update {name}` fetches it again.")),
            PackState::Used => return None,
        };
        Some(
            Notice::new(NoticeKind::Info, format!("The skills of the pack {name} are not used: {why}."))
                .hint(hint),
        )
    };
    others.into_iter().filter_map(notice).collect()
}
