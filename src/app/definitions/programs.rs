//! Agent programs of other vendors, from the adapters, and whether a folder's own files may configure them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_engine::crew::Programs;
use tiller_engine::{TrustGrant, TrustOffer};
use tiller_external::{Adapter, Adapters};
use tiller_permit::trust::{
    Choice, TrustDecision, discover_for, programs_name, programs_never_name, undecided,
};
use tiller_protocol::ask::{TrustItem, TrustKind};
use tiller_store::{Store, TrustRow};
use tiller_tool::ChildEnv;
use tiller_tool::shell::Confiner;

use crate::app::Setup;
use crate::app::definitions::program_sandbox::ProgramSandbox;

/// The programs of other vendors that can work as agents. One is started in a folder of `project` only where the person
/// trusts the folder's files that configure it, in their present form.
pub(crate) fn programs(setup: &Setup, store: &Store) -> Programs {
    let (store, project) = (store.clone(), setup.project.clone());
    let home = (setup.env)("HOME").map(PathBuf::from);
    let children = setup.children();
    let adapters = adapters(setup);
    let sandbox = ProgramSandbox::new(setup, adapters.clone());
    Programs {
        adapters,
        host: tiller_tool::shell::Host::default()
            .confined(sandbox.map(|sandbox| Arc::new(sandbox) as Arc<dyn Confiner>)),
        lookup: Arc::new(|name: &str| std::env::var(name).ok()),
        trust: Arc::new(move |folder: &Path, adapter: &Adapter, rules: &[String]| {
            let places = Places { project: &project, home: home.as_deref(), folder };
            let mut beside = git_settings(folder, home.as_deref(), &children);
            beside.extend(unenforced(adapter, rules));
            untrusted(&store, &places, adapter.program.reads(), &beside)
        }),
    }
}

/// The adapters: built in, and the person's own.
pub(crate) fn adapters(setup: &Setup) -> Adapters {
    Adapters::new(&[setup.places.config.join("adapters")])
}

/// The folders in which a program starts.
struct Places<'a> {
    project: &'a Path,
    /// The person's home folder, whose files are their own.
    home: Option<&'a Path>,
    folder: &'a Path,
}

/// Settings of the folder's repository by which git runs programs, since each agent program starts git by itself. `env`
/// is the environment that it gets.
pub(crate) fn git_settings(folder: &Path, home: Option<&Path>, env: &ChildEnv) -> Vec<TrustItem> {
    // In the home folder they are the person's own.
    if crate::app::setup::repository(folder).is_some_and(|root| home == Some(root)) {
        return Vec::new();
    }
    let item = |(key, value): (String, String)| TrustItem {
        kind: TrustKind::ProgramSettings,
        change: None,
        path: format!(".git/config: {key}"),
        detail: format!("git runs {}", value.lines().next().unwrap_or_default()),
        hash: blake3::hash(value.as_bytes()).to_hex().to_string(),
    };
    match tiller_watch::steering(folder, &env.now()) {
        Ok(settings) => settings.into_iter().map(item).collect(),
        Err(why) => vec![TrustItem {
            kind: TrustKind::ProgramSettings,
            change: None,
            path: ".git/config".to_owned(),
            detail: format!("It could not be read: {why}"),
            hash: String::new(),
        }],
    }
}

/// Rules that the program cannot enforce, as trust items for the question to the person.
fn unenforced(adapter: &Adapter, rules: &[String]) -> Vec<TrustItem> {
    let item = |rule: &String| TrustItem {
        kind: TrustKind::UnenforcedRule,
        change: None,
        path: format!("{rule} ({})", adapter.title),
        detail: format!("{} reads files without asking and cannot enforce this rule.", adapter.title),
        hash: adapter.name.clone(),
    };
    rules.iter().map(item).collect()
}

/// The question about the first folder, from `folder` up to its repository's root, with files that the person has not
/// agreed to. In a copy of the project (an isolated agent's worktree) a file counts as agreed to by the decision about
/// the copy or by the one about the project; a yes there is stored for the copy and leaves the project's as it is.
///
/// `beside`: further items that are asked about together with the files of `folder`.
fn untrusted(
    store: &Store,
    places: &Places<'_>,
    reads: &[String],
    beside: &[TrustItem],
) -> Option<TrustOffer> {
    let Places { project, home, folder } = *places;
    let root = crate::app::setup::repository(folder).unwrap_or(folder);
    for at in folder.ancestors().take_while(|f| f.starts_with(root)) {
        // In the home folder they are the person's own.
        let reads: &[String] = if home == Some(at) { &[] } else { reads };
        let mut folder_config = discover_for(at, reads);
        if at == folder {
            folder_config.add(beside);
        }
        // An unreadable decision counts as none.
        let row = store.trust().get(&programs_name(at)).ok().flatten();
        let mut items = undecided(&folder_config, row.as_ref().map(stored).as_ref());
        if at == folder && at != project {
            let row = store.trust().get(&programs_name(project)).ok().flatten();
            let open = undecided(&folder_config, row.as_ref().map(stored).as_ref());
            items.retain(|i| open.contains(i));
        }
        if items.is_empty() && !folder_config.too_much {
            continue;
        }
        let earlier = refused(store, at);
        let mut never = earlier.clone();
        if at == folder && at != project {
            never.extend(refused(store, project));
        }
        let said_never = items.iter().any(|i| never.iter().any(|n| n.path == i.path));
        let before = row.filter(|r| r.trusted).map(|r| r.items).unwrap_or_default();
        let (store, shown, too_much, place) =
            (store.clone(), folder_config.items(), folder_config.too_much, at.to_owned());
        let open = items.clone();
        let fixed = folder_config.found.iter().all(|f| f.bytes.is_some());
        let decide = move |yes: bool| {
            if yes && too_much {
                return Err("it contains too many files to check".into());
            }
            if yes && !fixed {
                return Err("they include a link or a file larger than 256 KiB; replace it first".into());
            }
            let kept = match yes {
                true => agree(&store, &place, &before, &shown),
                // Only for the items that were asked about: a yes to other files of the folder stays.
                false => {
                    let mut all = earlier.clone();
                    all.extend(open.iter().filter(|o| !earlier.iter().any(|n| n.path == o.path)).cloned());
                    store.trust().set(&programs_never_name(&place), false, all).wait()
                }
            };
            kept.map(|()| TrustGrant::default()).map_err(|e| e.to_string())
        };
        let decide = Arc::new(decide);
        return Some(TrustOffer {
            folder: tiller_protocol::names::written(at),
            items,
            changed: false,
            never: said_never,
            decide,
        });
    }
    None
}

/// The files of `folder` that the person refused for good, whatever their content. An unreadable decision counts as
/// none.
pub(crate) fn refused(store: &Store, folder: &Path) -> Vec<TrustItem> {
    store.trust().get(&programs_never_name(folder)).ok().flatten().map(|r| r.items).unwrap_or_default()
}

/// A stored decision in the form for comparisons.
pub(crate) fn stored(row: &TrustRow) -> TrustDecision {
    TrustDecision {
        choice: if row.trusted { Choice::Trust } else { Choice::Never },
        items: row.items.iter().map(|i| (i.path.clone(), i.hash.clone())).collect(),
    }
}

/// Stores a yes about `folder`: to `shown`, and still to the items of `before`, which another program may read. A
/// "never" to the same files is removed.
pub(crate) fn agree(
    store: &Store,
    folder: &Path,
    before: &[TrustItem],
    shown: &[TrustItem],
) -> tiller_store::Result<()> {
    let kept = before.iter().filter(|b| !shown.iter().any(|s| s.path == b.path));
    let items = kept.chain(shown).cloned().collect();
    store.trust().set(&programs_name(folder), true, items).wait()?;
    let mut never = refused(store, folder);
    let all = never.len();
    never.retain(|n| !shown.iter().any(|s| s.path == n.path));
    let name = programs_never_name(folder);
    match never.len() {
        0 => store.trust().revoke(&name).wait().map(drop),
        left if left < all => store.trust().set(&name, false, never).wait(),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;
