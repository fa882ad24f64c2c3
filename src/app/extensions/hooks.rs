//! The hooks of a start: those of the user's settings, and those of a trusted project.

use std::path::Path;
use std::sync::Arc;

use tiller_config::schema;
use tiller_hooks::{CheckHook, HookSource, Hooks, HooksConfig, file};
use tiller_permit::pin::Held;
use tiller_permit::trust::FolderConfig;
use tiller_plugins::{Installed, PluginState};
use tiller_protocol::{HookEvent, Notice, NoticeKind, TrustKind};
use tiller_store::{Store, TrustRow};
use tiller_tool::shell::Confiner;

use crate::app::Setup;
use crate::app::extensions::{hook_files, plugins};

/// All hooks, and the faults in their settings. `trusted`: those of the folder, too. `confiner`: what they run
/// in. `plugins`: those in use. Hooks that the user agreed to in another form are there as well: they are not run, and
/// what they would decide about asks, or is denied by those that are blocking.
pub(crate) fn load(
    setup: &Setup,
    store: &Store,
    confiner: Option<Arc<dyn Confiner>>,
    trusted: bool,
    plugins: &[Installed],
) -> (Hooks, Vec<Notice>) {
    let hooks = Hooks::new(HooksConfig {
        folder: setup.project.clone(),
        env: setup.children(),
        confiner,
        tools: setup.tools.catalog(),
        clock: Arc::clone(&setup.clock),
    });
    let faults = hooks.set(&HookSource::User, &setup.config.config.hooks, None);
    let mut notices: Vec<Notice> =
        faults.iter().map(|fault| Notice::new(NoticeKind::Config, format!("{fault}."))).collect();
    for plugin in plugins {
        let Ok(manifest) = &plugin.manifest else { continue };
        let source = HookSource::Plugin(plugin.name.clone());
        let changed = plugins::changed(plugin);
        let folder = plugin.folder.clone();
        let check: CheckHook = Arc::new(move |_, hook| match changed() {
            None => Ok(Held::of_command(&folder, &hook.command)),
            Some(file) => Err(file),
        });
        let faults = hooks.set_trusted(&source, &manifest.hooks, Some(plugin.folder.clone()), check);
        notices.extend(
            faults
                .iter()
                .map(|fault| Notice::new(NoticeKind::Config, format!("plugin {}, {fault}.", plugin.name))),
        );
    }
    for plugin in plugins::changed_since(setup, store) {
        let mut all = plugin.manifest.as_ref().map(|manifest| manifest.hooks.clone()).unwrap_or_default();
        // Without the manifest that was agreed to, its guards are not known.
        if all.before_tool_call.is_empty() && !plugins::has_agreed_manifest(&plugin, store) {
            all.before_tool_call.push(stand_in(&format!("plugin {}", plugin.name)));
        }
        let file = match &plugin.state {
            PluginState::Changed(file) => file.clone(),
            _ => "one of its files".to_owned(),
        };
        let check: CheckHook = Arc::new(move |_, _| Err(file.clone()));
        // The start says that the plugin is not used.
        let source = HookSource::Plugin(plugin.name.clone());
        let _ = hooks.set_trusted(&source, &all, Some(plugin.folder.clone()), check);
    }
    if setup.common.demo {
        // It is right: a driven test of the tour runs it.
        let _ = hooks.set(&HookSource::Demo, &demo(), None);
    }
    if trusted {
        notices.extend(load_project(&hooks, &setup.project, &setup.folder_config).1);
    } else if let Ok(Some(agreed)) = store.trust().get(&setup.project_name())
        && agreed.trusted
    {
        keep_guards(&hooks, setup, &agreed);
    }
    (hooks, notices)
}

/// Sets the hooks of a folder of which something changed since the user's yes. Those whose own files are as they were run;
/// the others are not run and pass no call.
fn keep_guards(hooks: &Hooks, setup: &Setup, agreed: &TrustRow) {
    let Some(before) = agreed.items.iter().find(|item| item.kind == TrustKind::Hooks) else { return };
    let now = setup.folder_config.found.iter().find(|found| found.item.kind == TrustKind::Hooks);
    let text = setup.folder_config.bytes(file::PROJECT).map(String::from_utf8_lossy).unwrap_or_default();
    let mut all = file::read(&text).unwrap_or_default();
    let same = now.is_some_and(|now| now.item.hash == before.hash);
    let check: CheckHook = match same {
        true => file::check(&setup.project, &all, &agreed.items),
        // Which of its hooks were agreed to is not known any more.
        false => Arc::new(|_, _| Err(file::PROJECT.to_owned())),
    };
    if !same && all.before_tool_call.is_empty() && before.detail.contains(HookEvent::BeforeToolCall.name()) {
        all.before_tool_call.push(stand_in(file::PROJECT));
    }
    // `tiller trust` shows the faults of the present file.
    let _ = hooks.set_trusted(&HookSource::Project, &all, None, check);
}

/// Stands for hooks that are not known any more; its check fails, so that each call asks.
fn stand_in(name: &str) -> schema::Hook {
    schema::Hook {
        command: String::new(),
        name: Some(name.to_owned()),
        matches: None,
        timeout: 30,
        blocking: false,
        format: schema::HookFormat::Tiller,
    }
}

/// The hook of the demo: it denies what the demo could not do anyway.
fn demo() -> schema::Hooks {
    let hook = schema::Hook {
        command: "echo 'the demo pushes nothing' >&2; exit 2".into(),
        name: Some("no push".into()),
        matches: Some("terminal(git push*)".into()),
        timeout: 30,
        blocking: true,
        format: schema::HookFormat::Tiller,
    };
    schema::Hooks { before_tool_call: vec![hook], ..schema::Hooks::default() }
}

/// Adds the hooks of a trusted folder, from the bytes that were hashed. Their number, and the faults in the file.
pub(crate) fn load_project(
    hooks: &Hooks,
    project: &Path,
    folder_config: &FolderConfig,
) -> (usize, Vec<Notice>) {
    match hook_files::read_project(folder_config) {
        Ok(None) => (0, Vec::new()),
        Ok(Some(read)) => {
            let check = file::check(project, &read, &folder_config.items());
            let faults = hooks.set_trusted(&HookSource::Project, &read, None, check);
            let notice = |fault: &_| Notice::new(NoticeKind::Config, format!("{}, {fault}.", file::PROJECT));
            let rows = hooks.rows().into_iter().filter(|row| row.source == HookSource::Project.words());
            (rows.count(), faults.iter().map(notice).collect())
        }
        Err(why) => {
            let notice = Notice::new(NoticeKind::Config, format!("{why}."))
                .hint("Until it is corrected, none of the project's hooks run, and every call asks.");
            (0, vec![notice])
        }
    }
}
