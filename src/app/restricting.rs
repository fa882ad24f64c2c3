//! Files besides the rules that restrict: hooks and settings of the folder, settings and memory of the person.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tiller_config::schema::ProviderKinds;
use tiller_config::{Layer, Problem};
use tiller_permit::trust::{FolderConfig, Status};
use tiller_permit::{RuleSet, Source};
use tiller_protocol::Notice;

use crate::app::Setup;
use crate::app::extensions::hook_files;
use crate::app::rules::{self, BadFile, OtherFaults, PROJECT};

/// Files of a trusted folder, besides its rules, that restrict and cannot be used, and what no other reader says of them.
pub(super) fn bad_of_folder(
    folder_config: &FolderConfig,
    kinds: &ProviderKinds,
) -> (Vec<BadFile>, Vec<Notice>) {
    let (mut bad, mut notices) = (Vec::new(), Vec::new());
    if let Err(why) = hook_files::read_project(folder_config) {
        bad.push(BadFile::new(Source::Project, why));
    }
    let path = Path::new(tiller_config::PROJECT);
    match folder_config.text(tiller_config::PROJECT) {
        Ok(None) => {}
        Ok(Some(text)) => {
            let wrong = tiller_config::problems_of(path, &text, Layer::Project, kinds).into_iter().next();
            let why = |p: Problem| p.to_string().trim_end_matches('.').to_owned();
            bad.extend(wrong.map(|p| BadFile::new(Source::Project, why(p))));
        }
        Err(why) => {
            let file = BadFile::new(Source::Project, why);
            // The bytes of a file that was taken are read, and reported, as settings.
            if folder_config.bytes(tiller_config::PROJECT).is_none() {
                notices.push(file.notice());
            }
            bad.push(file);
        }
    }
    (bad, notices)
}

/// The person's files that restrict, besides the rules, and cannot be used: settings and memory. A file that was usable
/// at the start stays out: what was read of it stays in use.
pub(super) fn others(
    settings: impl Fn() -> Option<String> + Send + Sync + 'static,
    memory: &Arc<tiller_memory::Memory>,
) -> OtherFaults {
    let memory = Arc::clone(memory);
    let unread = Mutex::new(memory.unreadable_rules());
    Arc::new(move || {
        let mut unread = unread.lock().unwrap_or_else(PoisonError::into_inner);
        if !unread.is_empty() {
            let now = memory.unreadable_rules();
            *unread = now.into_iter().filter(|(path, _)| unread.iter().any(|(p, _)| p == path)).collect();
        }
        let memory = unread.iter().map(|(_, why)| why.clone());
        settings().into_iter().chain(memory).map(|why| BadFile::new(Source::User, why)).collect()
    })
}

/// Errors in the files that restrict: the rules of the person and the folder, hooks of the folder, rules of memory.
pub(crate) fn problems(setup: &Setup) -> Vec<Notice> {
    let (user, tools, mut notices) = (rules::file(&setup.places.config), setup.tools.catalog(), Vec::new());
    let mut all = RuleSet::default();
    rules::add(&mut all, rules::read(&user), Source::User, &user, &tools, &mut notices);
    // Nothing is said of the files of a folder that the user never agreed to.
    let agreed = |store| matches!(setup.trust(&store), Status::Trusted | Status::Changed(_));
    let mut bad = Vec::new();
    if setup.open_store().is_ok_and(agreed) {
        let text = rules::read_project(setup);
        rules::add(&mut all, text, Source::Project, Path::new(PROJECT), &tools, &mut notices);
        bad = bad_of_folder(&setup.folder_config, &setup.formats.kinds()).0;
    }
    let unread = setup.services.memory.unreadable_rules();
    let memory = unread.into_iter().map(|(_, why)| BadFile::new(Source::User, why));
    notices.extend(bad.into_iter().chain(memory).map(|bad| bad.notice()));
    notices
}
