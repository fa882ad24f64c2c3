//! Agent programs of other vendors, from the adapters, and whether a folder's own files may steer them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_engine::crew::Programs;
use tiller_engine::{Agreed, TrustOffer};
use tiller_external::{Adapter, Adapters};
use tiller_permit::trust::{Choice, Stored, discover_for, programs_name, undecided};
use tiller_protocol::ask::TrustItem;
use tiller_store::{Store, TrustRow};

use crate::app::Setup;

/// The programs of other vendors that can work as agents. One is started in a folder of `project` only where the person
/// trusts the folder's files that steer it, in the form that they have now.
pub(crate) fn programs(setup: &Setup, store: &Store) -> Programs {
    let (store, project) = (store.clone(), setup.project.clone());
    let home = (setup.env)("HOME").map(PathBuf::from);
    Programs {
        adapters: adapters(setup),
        host: tiller_tool::shell::Host::default(),
        lookup: Arc::new(|name: &str| std::env::var(name).ok()),
        trust: Arc::new(move |folder: &Path, adapter: &Adapter| {
            let home = home.as_deref();
            untrusted(&store, &project, home, folder, adapter.program.reads())
        }),
    }
}

/// The adapters: built in, and the person's own.
pub(crate) fn adapters(setup: &Setup) -> Adapters {
    Adapters::new(&[setup.places.config.join("adapters")])
}

/// The question about the first folder, from `folder` up to its repository's root, that holds files which the person
/// has not agreed to. In a copy of the project (an isolated agent's worktree) a file counts as agreed to by the decision
/// about the copy or by the one about the project; a yes there is stored for the copy and leaves the project's as it is.
fn untrusted(
    store: &Store,
    project: &Path,
    home: Option<&Path>,
    folder: &Path,
    reads: &[String],
) -> Option<TrustOffer> {
    let root = crate::app::setup::repository(folder).unwrap_or(folder);
    for at in folder.ancestors().take_while(|f| f.starts_with(root)) {
        // There they are the person's own.
        if home == Some(at) {
            continue;
        }
        let name = programs_name(at);
        let brings = discover_for(at, reads);
        // A decision that cannot be read is none.
        let row = store.trust(&name).ok().flatten();
        let mut items = undecided(&brings, row.as_ref().map(stored).as_ref());
        if at == folder && at != project {
            let row = store.trust(&programs_name(project)).ok().flatten();
            let open = undecided(&brings, row.as_ref().map(stored).as_ref());
            items.retain(|i| open.contains(i));
        }
        if items.is_empty() && !brings.too_much {
            continue;
        }
        let before = row.filter(|r| r.trusted).map(|r| r.items).unwrap_or_default();
        let (store, shown, too_much) = (store.clone(), brings.items(), brings.too_much);
        let fixed = brings.found.iter().all(|f| f.bytes.is_some());
        let decide = move |yes: bool| {
            if yes && too_much {
                return Err("it contains too many files to check".into());
            }
            if yes && !fixed {
                return Err("a link or a file above 256 KiB is among them; replace it first".into());
            }
            // A no is not stored: the question comes again with the next start.
            if yes {
                agree(&store, &name, &before, &shown).map_err(|e| e.to_string())?;
            }
            Ok(Agreed::default())
        };
        let decide = Arc::new(decide);
        return Some(TrustOffer { folder: at.display().to_string(), items, changed: false, decide });
    }
    None
}

/// A stored decision in the form that is compared.
pub(crate) fn stored(row: &TrustRow) -> Stored {
    Stored {
        choice: if row.trusted { Choice::Trust } else { Choice::Never },
        items: row.items.iter().map(|i| (i.path.clone(), i.hash.clone())).collect(),
    }
}

/// Stores a yes under `name`: to `shown`, and still to what was agreed to `before`, which another program may read.
pub(crate) fn agree(
    store: &Store,
    name: &str,
    before: &[TrustItem],
    shown: &[TrustItem],
) -> tiller_store::Result<()> {
    let kept = before.iter().filter(|b| !shown.iter().any(|s| s.path == b.path));
    let items = kept.chain(shown).cloned().collect();
    store.set_trust(name, true, items).wait()
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;
