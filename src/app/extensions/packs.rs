//! The packs of skills of a start: those that are exactly as the user agreed to them.

use tiller_config::Places;
use tiller_config::agents::Origin;
use tiller_protocol::{Notice, NoticeKind};
use tiller_skills::packs::{Pack, PackState, Packs};
use tiller_skills::{PackSource, Withheld, WithheldFiles};

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

/// The packs of a start.
pub(crate) struct StartPacks {
    /// Those in use, by name.
    pub(crate) used: Vec<PackSource>,
    /// Those that are not as the user agreed to them.
    pub(crate) withheld: Vec<Withheld<'static>>,
}

/// The packs of this person. Reads and hashes their files; none where no pack is installed.
pub(crate) fn of_start(places: &Places) -> StartPacks {
    let home = of(places);
    let (used, others) = home.verified().unwrap_or_default();
    let withheld = |(pack, state): (Pack, PackState)| {
        Some(Withheld {
            files: WithheldFiles::Folder(home.folder(&pack)),
            why: state.why()?,
            remedy: state.remedy(&pack.name)?,
            pack: Some(pack.name),
            from: Origin::Plugin,
        })
    };
    StartPacks { used, withheld: others.into_iter().filter_map(withheld).collect() }
}

/// What is said of packs that are not used.
pub(crate) fn notices(places: &Places) -> Vec<Notice> {
    let others = match of(places).verified() {
        Ok((_, others)) => others,
        Err(why) => {
            return vec![Notice::new(NoticeKind::Config, format!("No pack of skills is used: {why}."))];
        }
    };
    let notice = |(pack, state): (Pack, PackState)| {
        let (name, why) = (&pack.name, state.why()?);
        let said = format!("The skills of the pack {name} are not used: {why}.");
        let hint = state.remedy(name).map(|remedy| format!("{remedy}.")).unwrap_or_default();
        Some(Notice::new(NoticeKind::Info, said).hint(hint))
    };
    others.into_iter().filter_map(notice).collect()
}
