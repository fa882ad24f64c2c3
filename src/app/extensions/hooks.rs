//! The hooks of a start: those of the user's settings, and those of a trusted project.

use std::path::Path;
use std::sync::Arc;

use tiller_config::schema;
use tiller_hooks::{HookSource, Hooks, HooksConfig, file};
use tiller_permit::trust::FolderConfig;
use tiller_plugins::Installed;
use tiller_protocol::{Notice, NoticeKind, ToolCatalog};
use tiller_tool::shell::Confiner;

use crate::app::Setup;
use crate::app::extensions::plugins;

/// All hooks, and the faults in their settings. `trusted`: those of the folder, too. `confiner`: what they run
/// in. `plugins`: those in use.
pub(crate) fn load(
    setup: &Setup,
    confiner: Option<Arc<dyn Confiner>>,
    trusted: bool,
    plugins: &[Installed],
) -> (Hooks, Vec<Notice>) {
    let tools = setup.tools.catalog();
    let hooks = Hooks::new(HooksConfig {
        folder: setup.project.clone(),
        env: setup.children(),
        confiner,
        tools: tools.clone(),
        clock: Arc::clone(&setup.clock),
    });
    let faults = hooks.set(&HookSource::User, &setup.config.config.hooks, None);
    let mut notices: Vec<Notice> =
        faults.iter().map(|fault| Notice::new(NoticeKind::Config, format!("{fault}."))).collect();
    for plugin in plugins {
        let Ok(manifest) = &plugin.manifest else { continue };
        let source = HookSource::Plugin(plugin.name.clone());
        let changed = plugins::changed(plugin);
        let faults = hooks.set_trusted(&source, &manifest.hooks, Some(plugin.folder.clone()), changed);
        notices.extend(
            faults
                .iter()
                .map(|fault| Notice::new(NoticeKind::Config, format!("plugin {}, {fault}.", plugin.name))),
        );
    }
    if setup.common.demo {
        // It is right: a driven test of the tour runs it.
        let _ = hooks.set(&HookSource::Demo, &demo(), None);
    }
    if trusted {
        notices.extend(load_project(&hooks, &setup.project, &setup.folder_config, &tools).1);
    }
    (hooks, notices)
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
    tools: &ToolCatalog,
) -> (usize, Vec<Notice>) {
    match read_project(folder_config) {
        Ok(None) => (0, Vec::new()),
        Ok(Some(read)) => {
            let changed = file::changed(project, folder_config, tools);
            let faults = hooks.set_trusted(&HookSource::Project, &read, None, changed);
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

/// The hooks in the folder's file, from the bytes that were hashed; `None`: there is no such file.
///
/// # Errors
/// The file and why, without a full stop.
pub(crate) fn read_project(folder_config: &FolderConfig) -> Result<Option<schema::Hooks>, String> {
    let Some(text) = folder_config.text(file::PROJECT)? else { return Ok(None) };
    file::read(&text).map(Some).map_err(|why| format!("{}, {why}", file::PROJECT))
}
