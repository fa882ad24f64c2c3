//! The question about the folder's files, which the engine asks, and the check whether the user still trusts them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tiller_config::Places;
use tiller_config::agents::Origin;
use tiller_config::schema::ProviderKinds;
use tiller_engine::{TrustCheck, TrustGrant, TrustLoss, TrustOffer};
use tiller_hooks::{HookSource, Hooks};
use tiller_permit::Source;
use tiller_permit::trust::{Change, FolderConfig, Status};
use tiller_protocol::ToolCatalog;
use tiller_protocol::ask::{TrustChange, TrustItem, TrustKind};
use tiller_skills::Library;
use tiller_store::Store;

use crate::app::definitions::mcp::McpSetup;
use crate::app::rules::PROJECT;
use crate::app::settings::SharedSettings;
use crate::app::{definitions, definitions::workflows, extensions};

/// Called after a yes: the screen reads its settings again.
pub(crate) type OnTrust = Arc<dyn Fn() + Send + Sync>;

/// Effects of a yes in addition to rules.
#[derive(Clone)]
pub(super) struct TrustEffects {
    pub(super) shared: Arc<SharedSettings>,
    /// Read by every loader of the folder's files afterwards.
    pub(super) trusted: Arc<AtomicBool>,
    /// The person's folders.
    pub(super) places: Places,
    /// The tools that rules and agent definitions may name.
    pub(super) tools: ToolCatalog,
    /// Reads the folder's skills, too, once [`Self::trusted`] is set.
    pub(super) skills: Library,
    pub(super) hooks: Hooks,
    /// The folder.
    pub(super) project: PathBuf,
    /// Takes the folder's servers.
    pub(super) mcp: McpSetup,
    /// Uses the folder's own files.
    pub(super) memory: Arc<tiller_memory::Memory>,
    pub(super) then: Option<OnTrust>,
}

/// The question, if it is needed: never asked, or files changed since the yes.
pub(super) fn offer(
    folder: &str,
    folder_config: &FolderConfig,
    store: &Store,
    status: &Status,
    after: TrustEffects,
) -> Option<TrustOffer> {
    let changes = match status {
        Status::New => &[][..],
        Status::Changed(changes) => changes,
        Status::Nothing | Status::Trusted | Status::Never => return None,
    };
    let (changed, items) = (!changes.is_empty(), marked(folder_config.items(), changes));
    let (store, folder_config, name) = (store.clone(), folder_config.clone(), folder.to_owned());
    let decide = move |yes: bool| {
        if yes && folder_config.too_much {
            return Err("it contains too many files to check".into());
        }
        store.trust().set(&name, yes, folder_config.items()).wait().map_err(|e| e.to_string())?;
        if !yes {
            // Those of an earlier yes no longer ask.
            after.hooks.remove(&HookSource::Project);
            return Ok(TrustGrant::default());
        }
        let mut agreed = rules(&folder_config, &after.tools, &after.shared.kinds())?;
        if let Some(wrong) = after.shared.trust(&folder_config) {
            agreed.settings = true;
            agreed.faults.extend(wrong);
        }
        let (roles, wrong) = definitions::read(&after.places, &folder_config, true, &after.tools);
        agreed.agents = roles.iter().filter(|r| r.from == Origin::Project).count();
        agreed.roles = (agreed.agents > 0).then_some(roles);
        agreed.faults.extend(definitions::problem_notice(&wrong));
        after.trusted.store(true, Ordering::Relaxed);
        let skills = after.skills.reload();
        agreed.skills = skills.iter().filter(|s| s.from == Origin::Project).count();
        let left_out = skills.flaws().iter().filter(|f| f.skipped && f.problem.source.is_relative());
        let left_out: Vec<_> = left_out.map(|f| f.problem.clone()).collect();
        agreed.faults.extend(definitions::skills::problem_notice(&left_out));
        agreed.workflows = workflows::of_project(&folder_config).count();
        let (hooks, wrong) = extensions::hooks::load_project(&after.hooks, &after.project, &folder_config);
        agreed.hooks = hooks;
        agreed.faults.extend(wrong);
        agreed.faults.extend(after.mcp.trust(&folder_config));
        crate::app::tools::memory::trust(&after.memory, &folder_config);
        if let Some(then) = &after.then {
            then();
        }
        Ok(agreed)
    };
    Some(TrustOffer { folder: folder.to_owned(), items, changed, never: false, decide: Arc::new(decide) })
}

/// Looks before each message and each call whether the user has taken the yes back, for example with `tiller trust --revoke` in
/// another process. What is used without a stored yes stays in use.
pub(super) fn check(folder: &str, store: &Store, effects: TrustEffects) -> TrustCheck {
    let (store, name) = (store.clone(), folder.to_owned());
    let stored = move || store.trust().get(&name).map(|row| row.is_some_and(|row| row.trusted));
    let used = effects.trusted.load(Ordering::Relaxed);
    let without_yes = AtomicBool::new(used && matches!(stored(), Ok(false)));
    Arc::new(move || {
        // Looked at before the store is read: a yes is stored before it counts here, so a yes that is given meanwhile is no loss.
        if !effects.trusted.load(Ordering::Relaxed) {
            return None;
        }
        match stored() {
            // What cannot be read takes nothing back.
            Err(_) => None,
            Ok(true) => {
                without_yes.store(false, Ordering::Relaxed);
                None
            }
            Ok(false) if without_yes.load(Ordering::Relaxed) => None,
            Ok(false) => effects.trusted.swap(false, Ordering::Relaxed).then(|| effects.take_back()),
        }
    })
}

impl TrustEffects {
    /// Stops to use what the folder brought.
    fn take_back(&self) -> TrustLoss {
        self.mcp.distrust();
        self.hooks.remove(&HookSource::Project);
        self.memory.distrust_project();
        self.skills.reload();
        let settings = self.shared.distrust();
        let nothing = FolderConfig::default();
        let (roles, _) = definitions::read(&self.places, &nothing, false, &self.tools);
        if let Some(then) = &self.then {
            then();
        }
        TrustLoss { settings, roles }
    }
}

/// Items that changed since the yes are marked, and come first.
fn marked(items: Vec<TrustItem>, changes: &[Change]) -> Vec<TrustItem> {
    let change = |path: &str| {
        changes.iter().find_map(|c| match c {
            Change::Added(p) if p == path => Some(TrustChange::New),
            Change::Changed(p) if p == path => Some(TrustChange::Changed),
            _ => None,
        })
    };
    let gone = changes.iter().filter_map(|c| match c {
        Change::Removed(path) => Some(TrustItem {
            kind: TrustKind::Removed,
            change: None,
            path: path.clone(),
            detail: String::new(),
            hash: String::new(),
        }),
        _ => None,
    });
    let (mut first, rest): (Vec<_>, Vec<_>) = items.into_iter().partition(|i| change(&i.path).is_some());
    for item in &mut first {
        item.change = change(&item.path);
    }
    first.into_iter().chain(gone).chain(rest).collect()
}

/// The project's rules, from the bytes that the person agreed to, and the errors in them.
fn rules(
    folder_config: &FolderConfig,
    tools: &ToolCatalog,
    kinds: &ProviderKinds,
) -> Result<TrustGrant, String> {
    let (mut rules, mut faults) = (tiller_permit::RuleSet::default(), Vec::new());
    let text = folder_config.text(PROJECT);
    crate::app::rules::add(&mut rules, text, Source::Project, Path::new(PROJECT), tools, &mut faults);
    let (bad, wrong) = crate::app::restricting::bad_of_folder(folder_config, kinds);
    faults.extend(wrong);
    for bad in bad {
        rules.push(bad.rule(tools).map_err(|notice| notice.message)?);
    }
    Ok(TrustGrant { faults, rules: rules.rules().to_vec(), ..TrustGrant::default() })
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
