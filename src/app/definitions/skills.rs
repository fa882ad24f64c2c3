//! Skills from all places.

use std::collections::BTreeSet;

use tiller_config::Problem;
use tiller_config::agents::ProjectFile;
use tiller_permit::trust::FolderConfig;
use tiller_protocol::{Notice, TrustKind};
use tiller_skills::{Skills, Sources};

use tiller_config::Places;

/// Reads them: built in, of plugins and packs in use, the person's. Those of the folder only when it is trusted, in the form that was shown. `disabled`: names that the settings
/// turn off. Blocks.
pub(crate) fn read(
    places: &Places,
    folder_config: &FolderConfig,
    trusted: bool,
    disabled: &[String],
) -> (Skills, Vec<Problem>) {
    let of_skill = |f: &&tiller_permit::trust::FoundFile| {
        let ours = matches!(f.item.kind, TrustKind::Skill | TrustKind::Command | TrustKind::Style);
        trusted && !folder_config.too_much && ours
    };
    let project = folder_config.found.iter().filter(of_skill);
    let packs = places.plugins.iter().cloned().chain(crate::app::extensions::packs::folders(places));
    Skills::load(&Sources {
        built_in: true,
        packs: packs.collect(),
        config: Some(places.config.clone()),
        project: project.map(|f| ProjectFile { path: &f.item.path, bytes: f.bytes.as_deref() }).collect(),
        disabled: disabled.iter().cloned().collect::<BTreeSet<_>>(),
    })
}

/// The skills that are left out, for the person.
pub(crate) fn problem_notice(problems: &[Problem]) -> Option<Notice> {
    let mut notice = Problem::notice(problems)?;
    notice.hints = vec!["A skill that cannot be used is left out; `/skills` shows all of them.".into()];
    Some(notice)
}
