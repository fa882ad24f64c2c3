//! The plugins of a start: those that are exactly as the user agreed to them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::PluginPlace;
use tiller_hooks::ChangedFile;
use tiller_mcp::{Origin, ServerSettings, StartCheck, Started};
use tiller_permit::trust::{Choice, TrustDecision};
use tiller_plugins::{Installed, PluginState, ToolServices};
use tiller_protocol::{Notice, NoticeKind, TrustKind};
use tiller_skills::{Withheld, WithheldFiles};
use tiller_store::Store;
use tiller_tool::shell::Confiner;
use tiller_tui::slash::PromptCommand;

use crate::app::Setup;
use crate::app::definitions::programs::stored;
use crate::app::definitions::{self, mcp::McpSetup};

/// All installed plugins.
pub(crate) fn installed(setup: &Setup, store: &Store) -> Vec<Installed> {
    tiller_plugins::all(&setup.places.plugin_folder(), &|name| decision(store, name))
}

/// The user's decision of this name.
pub(crate) fn decision(store: &Store, name: &str) -> Option<TrustDecision> {
    store.trust().get(name).ok().flatten().as_ref().map(stored)
}

/// Takes the plugins into use that the user agreed to: their folders are added to the places, their tools to the list of
/// tools, their MCP servers to the others. The others are named. Reads their files.
pub(crate) fn load(
    setup: &mut Setup,
    confiner: Option<&Arc<dyn Confiner>>,
    store: &Store,
) -> (Vec<Installed>, Vec<Notice>) {
    let mut notices = Vec::new();
    let mut used = Vec::new();
    for plugin in installed(setup, store) {
        let Some(why) = why_not(&plugin) else {
            used.push(plugin);
            continue;
        };
        let text = format!("The plugin {} is not used: {why}.", plugin.name);
        let hint = format!("Run `tiller plugin trust {}` to see it and decide.", plugin.name);
        notices.push(Notice::new(NoticeKind::Info, text).hint(hint));
    }
    for plugin in &used {
        let Ok(manifest) = &plugin.manifest else { continue };
        let services = ToolServices { confiner: confiner.cloned(), changed: changed(plugin) };
        for tool in tiller_plugins::tools(&plugin.folder, manifest, &services) {
            if setup.tools.find(tool.name()).is_some() {
                let text =
                    format!("The plugin {} has no tool {}: the name is taken.", plugin.name, tool.name());
                notices.push(Notice::new(NoticeKind::Config, text));
            } else {
                setup.tools.push(tool);
            }
        }
    }
    let (servers, wrong) = servers(setup, &used);
    notices.extend(wrong);
    for name in McpSetup::bring(setup, servers) {
        let text = format!("The MCP server {name} of a plugin is left out: the name is taken.");
        notices.push(Notice::new(NoticeKind::Config, text));
    }
    setup.places.plugins = used.iter().map(Installed::in_use).collect();
    (used, notices)
}

/// Why a plugin is not used, without a full stop; `None`: it is used.
fn why_not(plugin: &Installed) -> Option<String> {
    match (&plugin.manifest, &plugin.state) {
        (Err(why), _) => Some(why.clone()),
        (Ok(_), PluginState::Trusted) => None,
        (Ok(_), PluginState::New) => Some("you have not agreed to it".into()),
        (Ok(_), PluginState::Changed(file)) => Some(format!("{file} has changed since you agreed to it")),
        (Ok(_), PluginState::Refused(why)) => Some(why.clone()),
    }
}

/// Those of these plugins that are as the user agreed to them, and what the others would bring. Reads their files.
pub(crate) fn unchanged(
    plugins: &[PluginPlace],
    store: &Store,
) -> (Vec<PluginPlace>, Vec<Withheld<'static>>) {
    let (mut used, mut others) = (Vec::new(), Vec::new());
    for plugin in plugins {
        let plugin = tiller_plugins::look(&plugin.folder, &|name| decision(store, name));
        match why_not(&plugin) {
            None => used.push(plugin.in_use()),
            Some(why) => others.push(Withheld {
                pack: None,
                from: tiller_config::agents::Origin::Plugin,
                files: WithheldFiles::Folder(plugin.folder),
                why,
                remedy: format!("`tiller plugin trust {}` shows it and asks", plugin.name),
            }),
        }
    }
    (used, others)
}

/// The MCP servers of plugins, and what is wrong with others. Relative paths are those of the plugin's folder; a server
/// starts only while the files of its plugin are those that the user agreed to.
pub(crate) fn servers(setup: &Setup, used: &[Installed]) -> (Vec<ServerSettings>, Vec<Notice>) {
    let (mut servers, mut notices) = (Vec::new(), Vec::new());
    for plugin in used {
        let Ok(manifest) = &plugin.manifest else { continue };
        if manifest.mcp.is_empty() {
            continue;
        }
        let folder = plugin.folder.display().to_string();
        // The user saw the names of these variables and agreed.
        let lookup = |name: &str| match name {
            "TILLER_PLUGIN_DIR" => Some(folder.clone()),
            _ => (setup.env)(name),
        };
        let unchanged = changed(plugin);
        let unchanged = move || match unchanged() {
            None => Ok(()),
            Some(file) => Err(format!("{file} of its plugin has changed since you agreed to it")),
        };
        let check = StartCheck(Arc::new(move || {
            unchanged()?;
            let again = unchanged.clone();
            Ok(Box::new(again) as Started)
        }));
        for (name, server) in &manifest.mcp {
            let mut server = server.clone();
            server.folder = Some(plugin.folder.join(server.folder.unwrap_or_default()).display().to_string());
            server.command = server.command.map(|command| match command.contains('/') {
                true => plugin.folder.join(command).display().to_string(),
                false => command,
            });
            match ServerSettings::new(name, Origin::Plugin, &server, &lookup) {
                Ok(settings) => servers.push(ServerSettings { check: Some(check.clone()), ..settings }),
                Err(why) => {
                    let text = format!("The plugin {}, [mcp.{}]: {why}.", plugin.name, name.escape_default());
                    notices.push(Notice::new(NoticeKind::Config, text));
                }
            }
        }
    }
    (servers, notices)
}

/// The plugins in use.
pub(crate) fn used(setup: &Setup, store: &Store) -> Vec<Installed> {
    let all = installed(setup, store).into_iter();
    all.filter(|p| p.state == PluginState::Trusted && p.manifest.is_ok()).collect()
}

/// The plugins that the user agreed to in another form than they have now.
pub(crate) fn changed_since(setup: &Setup, store: &Store) -> Vec<Installed> {
    let agreed = |plugin: &Installed| {
        let stored = decision(store, &tiller_plugins::decision_name(&plugin.folder));
        stored.is_some_and(|stored| stored.choice == Choice::Trust)
    };
    let mut all = installed(setup, store);
    all.retain(|plugin| match plugin.state {
        PluginState::Changed(_) => true,
        PluginState::Refused(_) => agreed(plugin),
        PluginState::Trusted | PluginState::New => false,
    });
    all
}

/// Returns true if its manifest can be read and is the one that the user agreed to.
pub(crate) fn has_agreed_manifest(plugin: &Installed, store: &Store) -> bool {
    let stored = decision(store, &tiller_plugins::decision_name(&plugin.folder));
    let manifest = Path::new(tiller_plugins::MANIFEST);
    let now = plugin.files.found.iter().find(|file| Path::new(&file.item.path) == manifest);
    let agreed = stored.as_ref().and_then(|stored| stored.items.get(tiller_plugins::MANIFEST));
    plugin.manifest.is_ok() && now.map(|file| &file.item.hash) == agreed
}

/// The plugins in use, for loaders of their files. Empty at once where none is installed.
pub(crate) fn in_use(setup: &Setup) -> Vec<PluginPlace> {
    if !setup.places.plugin_folder().is_dir() {
        return Vec::new();
    }
    let Ok(store) = setup.open_store() else { return Vec::new() };
    used(setup, &store).iter().map(Installed::in_use).collect()
}

/// The folders of the plugins in use. Empty at once where none is installed.
pub(crate) fn folders(setup: &Setup) -> Vec<PathBuf> {
    in_use(setup).into_iter().map(|plugin| plugin.folder).collect()
}

/// `/` commands from files: the user's, those of these plugins, and the folder's while it is trusted.
pub(crate) fn commands(setup: &Setup, plugins: Vec<PluginPlace>) -> Vec<PromptCommand> {
    let places = tiller_config::Places { plugins, ..setup.places.clone() };
    let brings = setup.folder_config.found.iter().any(|f| f.item.kind == TrustKind::Command);
    let trusted = brings && setup.open_store().is_ok_and(|store| setup.trust(&store).may_load());
    let (skills, _) = definitions::skills::read(&places, &setup.folder_config, trusted, &[]);
    let of = |c: &Arc<tiller_skills::OwnCommand>| PromptCommand {
        name: c.name.clone(),
        about: c.description.clone(),
        usage: c.hint.clone(),
    };
    skills.commands().map(of).collect()
}

/// Tells, before each run, whether a plugin is still as it was loaded.
pub(crate) fn changed(plugin: &Installed) -> ChangedFile {
    let (folder, decision) = (plugin.folder.clone(), plugin.files.decision(Choice::Trust));
    Arc::new(move || match tiller_plugins::look(&folder, &|_| Some(decision.clone())).state {
        PluginState::Trusted => None,
        PluginState::Changed(file) => Some(file),
        PluginState::New | PluginState::Refused(_) => Some("one of its files".into()),
    })
}
