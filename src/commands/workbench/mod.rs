//! The full-screen workbench: the screen is drawn first, the engine starts in the background.

pub(crate) mod connect;
pub(crate) mod keyboard;
pub(crate) mod session_link;
pub(crate) mod slow_start;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use tiller_config::Flags;
use tiller_protocol::{Notice, NoticeKind};
use tiller_tui::app::effect::SettingEdit;
use tiller_tui::{Ui, UiOptions};

use crate::app::Setup;
use crate::app::extensions::plugins;
use crate::app::screen::{editor, statusline};
use crate::app::settings::{self, SharedSettings};
use crate::commands::args::{self, Common};
use crate::commands::workbench::connect::Connector;
use crate::commands::workbench::session_link::SessionLink;
use crate::commands::{Exit, fail};
use crate::detach::{self, DetachHost, Fork};

/// `tiller [PROMPT]`.
pub(crate) fn run(open: args::Open) -> Result<Exit, Notice> {
    let flags = Flags { plain: open.plain, no_mouse: open.no_mouse, ..Flags::default() };
    let setup = Setup::read(&open.common, flags)?;
    if let Some(exit) = crate::commands::detach::reattach(&setup, &open) {
        return exit;
    }
    run_in_host(setup, open, None)
}

/// `tiller resume`: the last session; the list of the others is one key away.
pub(crate) fn resume(common: Common) -> Result<Exit, Notice> {
    let setup = Setup::read(&common, Flags::default())?;
    run_in_host(setup, args::Open { cont: true, common, ..args::Open::default() }, Some("sessions.open"))
}

/// `tiller demo`: the sample project in a temporary folder, the demo model, the tour.
pub(crate) fn demo(demo: args::Demo) -> Result<Exit, Notice> {
    let scratch = match demo.at {
        Some(dir) => dir,
        None => new_folder(&tempfile::env::temp_dir(), std::process::id())
            .map_err(|e| unwritable(&tempfile::env::temp_dir(), &e))?,
    };
    lay_out(&scratch)?;
    let model = Some("demo/demo".into());
    let common = Common { model, dir: Some(scratch), demo: true, ..Common::default() };
    let flags = Flags { plain: demo.plain, no_mouse: demo.no_mouse, ..Flags::default() };
    let setup = Setup::read(&common, flags)?;
    let open = args::Open { plain: demo.plain, no_mouse: demo.no_mouse, common, ..args::Open::default() };
    run_in_host(setup, open, (!demo.no_tour).then_some("tour.open"))
}

/// A new folder for the sample project, that only this user can enter. What exists is never taken: it may be the
/// project of an earlier process with this id, or another user's.
fn new_folder(parent: &std::path::Path, pid: u32) -> std::io::Result<std::path::PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let mut n = 1;
    loop {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        let folder = parent.join(format!("tiller-demo-{pid}{suffix}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && n < 1000 => n += 1,
            Err(e) => return Err(e),
        }
    }
}

fn unwritable(folder: &std::path::Path, e: &std::io::Error) -> Notice {
    let text = format!("The sample project could not be written to {}: {e}.", folder.display());
    Notice::new(NoticeKind::User, text).hint("Name another folder with --at.")
}

/// Time limit for the sample project's repository.
const LAY_OUT: std::time::Duration = std::time::Duration::from_secs(20);

/// Writes the sample project. A folder that is not empty is left alone.
fn lay_out(folder: &std::path::Path) -> Result<(), Notice> {
    let wrong = |e: std::io::Error| unwritable(folder, &e);
    std::fs::create_dir_all(folder).map_err(wrong)?;
    if std::fs::read_dir(folder).map_err(wrong)?.next().is_some() {
        return Err(Notice::new(
            NoticeKind::User,
            format!("{} is not empty, so the sample project was not written there.", folder.display()),
        )
        .hint("Name an empty or new folder with --at."));
    }
    for (path, bytes, executable) in tiller_provider::demo::sample() {
        use std::os::unix::fs::PermissionsExt;
        let file = folder.join(path);
        if let Some(dir) = file.parent() {
            std::fs::create_dir_all(dir).map_err(wrong)?;
        }
        std::fs::write(&file, bytes).map_err(wrong)?;
        let mode = if *executable { 0o755 } else { 0o644 };
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).map_err(wrong)?;
    }
    // With git, the feed and the header have content; everything works without it.
    let _ = tiller_watch::git::Repository::create(folder, "Sample project", LAY_OUT);
    Ok(())
}

/// Runs the workbench in a host process of its own, so that its terminal can be detached. Where that is not possible or
/// not wanted, in this process.
fn run_in_host(setup: Setup, open: args::Open, first: Option<&'static str>) -> Result<Exit, Notice> {
    use std::io::IsTerminal;
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let plain =
        tiller_tui::app::ui::plain_because(open.plain, &setup.config.config.ui, &*setup.env).is_some();
    if !terminal || plain || !setup.config.config.detach.enabled {
        return show(setup, open, first, None);
    }
    match detach::split(open.inline, &setup.places.state) {
        Fork::Client(ended) => Ok(crate::commands::ended(ended)),
        Fork::Alone(why) => {
            tracing::debug!(why, "one process only");
            show(setup, open, first, None)
        }
        Fork::Host(line) => {
            let (env, clock) = (Arc::clone(&setup.env), Arc::clone(&setup.clock));
            let host = DetachHost::new(line, setup.project.clone(), env, clock);
            let exit = show(setup, open, first, Some(&host)).unwrap_or_else(|n| fail(&n));
            host.close(exit.code());
            Ok(exit)
        }
    }
}

/// Draws the screen, starts the engine in the background, and waits for the end.
pub(crate) fn show(
    mut setup: Setup,
    open: args::Open,
    first: Option<&'static str>,
    host: Option<&Arc<DetachHost>>,
) -> Result<Exit, Notice> {
    // Settings of a trusted folder apply from the first frame on. Few folders have any.
    if setup.folder_config.bytes(settings::PROJECT).is_some()
        && setup.open_store().is_ok_and(|store| setup.trust(&store).may_load())
    {
        setup.trust_project();
    }
    // Without the user's agreement the screen shows the folder as restricted.
    let restricted = !setup.folder_config.found.is_empty()
        && !setup.open_store().is_ok_and(|store| setup.trust(&store).may_load());
    let restricted = Arc::new(AtomicBool::new(restricted));
    let shared = SharedSettings::new(&setup);
    // Variables of the attached terminal, which may be another one later.
    let env = match host.cloned() {
        Some(host) => Arc::new(move |name: &str| host.var(name)),
        None => Arc::clone(&setup.env),
    };
    let ui_env = Arc::clone(&env);
    let mut options = UiOptions::new(ui_env);
    options.config = setup.config.config.ui.clone();
    options.folders.config = Some(setup.places.config.clone());
    options.folders.data = Some(setup.places.data.clone());
    let in_use = plugins::in_use(&setup);
    options.folders.plugins = in_use.iter().map(|plugin| plugin.folder.clone()).collect();
    options.commands = plugins::commands(&setup, in_use);
    options.folders.state = Some(setup.places.state.clone());
    options.folders.draft = Some(setup.drafts());
    options.folders.scratch = setup.places.cache.join("editor");
    options.folders.workspace = Some(setup.project.clone());
    options.tools = setup.tools.catalog();
    options.mode.inline = open.inline;
    options.mode.plain = open.plain;
    options.mode.no_mouse = open.no_mouse;
    options.clock = Arc::clone(&setup.clock);
    let front = host.cloned();
    let run: Arc<dyn Fn(Vec<OsString>) -> Result<i32, String> + Send + Sync> =
        Arc::new(move |words: Vec<OsString>| {
            let bytes = |w: Vec<OsString>| w.into_iter().map(OsStringExt::into_vec).collect();
            match &front {
                Some(host) => host.run(bytes(words)),
                None => editor::here(words),
            }
        });
    let foreground = Arc::clone(&run);
    options.hooks.editor =
        Some(Box::new(move |file, line| editor::open(&|name| env(name), &*foreground, file, line)));
    let folder = setup.project.clone().into_os_string();
    let program = || std::env::current_exe().map_err(|e| format!("Tiller cannot be started again: {e}"));
    let (asks, here) = (Arc::clone(&run), folder.clone());
    options.hooks.trust = Some(Box::new(move |pack| {
        let mut words = vec![program()?.into_os_string()];
        match pack {
            Some(pack) => words.extend(["skills", "trust", "--", pack].map(OsString::from)),
            None => words.extend([OsString::from("trust"), OsString::from("--"), here.clone()]),
        }
        asks(words).map(drop)
    }));
    options.hooks.trial = Some(Box::new(move |skill| {
        let program = program()?;
        // The process of the terminal may be in another folder.
        let mut words = vec![program.into_os_string()];
        words.extend(["skills", "try", "--pause", "--dir"].map(OsString::from));
        words.push(folder.clone());
        words.extend(["--", skill].map(OsString::from));
        // How it ended stands on the terminal.
        run(words).map(drop)
    }));
    options.host = host.and_then(|host| {
        let (may, left) = (Arc::clone(host), Arc::clone(host));
        Some(tiller_tui::terminal::terminal_owner::DetachHooks {
            owner: host.first()?,
            on_hangup: setup.config.config.detach.on_hangup,
            may_leave: Arc::new(move || may.may_leave()),
            left: Arc::new(move |how| left.left(how)),
        })
    });
    let (state, project) = (setup.places.state.clone(), setup.project.clone());
    let children = setup.children();
    options.hooks.statusline =
        Some(Arc::new(move |command, state| statusline::run(command, state, &children.now())));
    if let Some(host) = host {
        host.on_attach(Box::new(setup.brought()));
    }
    options.start.prompt = open.prompt.clone();
    options.start.action = first;
    let again = Arc::clone(&shared);
    options.hooks.settings = Some(Box::new(move || again.read().map(|config| config.ui)));
    let file = setup.places.config.join(tiller_config::FILE);
    let (own, kinds) = (file.clone(), setup.formats.kinds());
    options.hooks.save_setting = Some(Box::new(move |key, value| {
        match value {
            SettingEdit::Value(value) => tiller_config::set_value(&own, key, value, &kinds),
            SettingEdit::Member { name, present } => {
                tiller_config::set_member(&own, key, name, *present, &kinds)
            }
        }
        .map_err(|e| e.to_string())
    }));
    options.restricted = Arc::clone(&restricted);
    let link = Arc::new(SessionLink::new(restricted));
    let connector = Connector { shared: Arc::clone(&shared), link: Arc::clone(&link), file };
    options.hooks.connect = Some(Arc::new(move |what| connector.connect(what)));
    options.found.keys = shared.found_keys();
    let agents = crate::app::agents::found((setup.env)("PATH").as_deref().unwrap_or_default());
    options.found.agents = agents.iter().map(|a| a.name.to_owned()).collect();
    // The setup of a model is offered when the session has no real model, unless the user chose the demo. In the
    // settings the demo is an earlier choice.
    let demo = |m: &Option<String>| m.as_deref() == Some("demo/demo");
    options.start.first_run =
        first.is_none() && !demo(&setup.common.model) && !demo(&setup.config.config.model);
    options.start.tour = tiller_provider::demo::tour()
        .iter()
        .map(|s| (s.title.clone(), s.text.clone(), s.key_hint.clone()))
        .collect();
    let (ui, sender) = Ui::new(options);
    let no_thread = |e| Notice::new(NoticeKind::Internal, format!("No thread could be started: {e}."));
    if let Some(host) = host {
        host.open(state.clone(), sender.clone()).map_err(no_thread)?;
    }
    let told = sender.clone();
    // Other workbenches are queried, which may take seconds. The thread ends by itself.
    thread::Builder::new()
        .name("news".into())
        .spawn(move || {
            crate::commands::detach::news(&state, &project).into_iter().for_each(|n| told.notice(n))
        })
        .map_err(no_thread)?;
    let engine = {
        let link = Arc::clone(&link);
        thread::Builder::new()
            .name("session".into())
            .spawn(move || link.run(setup, &shared, &open, &sender))
            .map_err(no_thread)?
    };
    let taken = Arc::clone(&link);
    let exit = ui.run(Box::new(move |command| taken.send(command))).map_err(|e| {
        Notice::new(NoticeKind::User, format!("{e}."))
            .hint("In a script, use `tiller exec`; `tiller --help` lists all commands.")
    });
    link.end();
    // The engine has saved everything and ended its children when the thread ends.
    let stopped = engine.join().unwrap_or_else(|_| Err(crate::commands::workbench::session_link::broken()));
    let exit = match exit? {
        tiller_tui::Exit::Quit => Exit::Done,
        tiller_tui::Exit::Signal(n) => Exit::Signal(u8::try_from(n).unwrap_or(1)),
    };
    Ok(match stopped {
        Ok(()) => exit,
        // A signal may arrive while the session opens, which then fails: the signal is why the program ends.
        Err(notice) => match (fail(&notice), exit) {
            (_, Exit::Signal(n)) => Exit::Signal(n),
            (failed, _) => failed,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::new_folder;

    #[test]
    fn the_sample_project_gets_a_folder_that_did_not_exist() {
        use std::os::unix::fs::PermissionsExt;
        let tmp = tempfile::tempdir().unwrap();
        let first = new_folder(tmp.path(), 7).unwrap();
        assert_eq!(first, tmp.path().join("tiller-demo-7"));
        assert_eq!(first.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        // A link that another user left there is not followed.
        std::os::unix::fs::symlink(&first, tmp.path().join("tiller-demo-7-2")).unwrap();
        assert_eq!(new_folder(tmp.path(), 7).unwrap(), tmp.path().join("tiller-demo-7-3"));
        assert!(new_folder(&tmp.path().join("missing"), 7).is_err());
    }
}
