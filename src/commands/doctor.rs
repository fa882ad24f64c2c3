//! `tiller doctor`: checks this machine and the setup, and says what to correct. Prints no secrets.

use std::sync::Arc;

use serde::Serialize;
use tiller_external::{Adapters, Checker, Lookup, Ready};
use tiller_protocol::{Notice, SandboxNetwork};
use tiller_sandbox::Confinement;
use tiller_snapshot::Shadow;

use crate::app::setup::repository;
use crate::app::{Setup, agents, definitions, files, restricting, settings};
use crate::commands::workbench::keyboard::{self, Keyboard};
use crate::commands::{Exit, json_line, sandbox, say, show};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Ok,
    Warn,
    Fail,
}

/// One check.
#[derive(Debug, Serialize)]
struct Check {
    group: &'static str,
    id: &'static str,
    status: Health,
    summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// Duration in milliseconds.
    ms: u128,
}

/// Result, finding, and remedy.
type Finding = (Health, String, Option<String>);

/// Group, id, and function.
type DoctorCheck = (&'static str, &'static str, fn(&Setup) -> Finding);

/// Every check, in the order in which they are printed.
const CHECKS: &[DoctorCheck] = &[
    ("terminal", "size", |_| match screen_size() {
        Some((w, h)) if w >= 30 && h >= 8 => (Health::Ok, format!("{w}x{h}"), None),
        Some((w, h)) => (Health::Warn, format!("{w}x{h} is small"), Some("Use at least 80x24.".into())),
        None => (Health::Warn, "standard output is not a terminal".into(), None),
    }),
    ("terminal", "colours", |s| {
        let term = (s.env)("TERM");
        let colour = match ((s.env)("NO_COLOR"), (s.env)("COLORTERM")) {
            (Some(_), _) => "none (NO_COLOR)".to_owned(),
            (_, Some(c)) => c,
            _ if term.as_deref().is_some_and(|t| t.contains("256")) => "256".into(),
            _ => "16".into(),
        };
        let ok = term.as_deref().is_some_and(|t| t != "dumb");
        let term = term.unwrap_or_else(|| "not set".into());
        let remedy =
            (!ok).then(|| "Set TERM to your terminal's type; until then Tiller shows plain text.".into());
        (if ok { Health::Ok } else { Health::Warn }, format!("TERM {term}, colours {colour}"), remedy)
    }),
    ("terminal", "tmux", |s| match (s.env)("TMUX") {
        None => (Health::Ok, "not in tmux".into(), None),
        Some(_) => {
            let told =
                "in tmux; copies go to its buffer and, unless set-clipboard is off, to the outer terminal";
            (Health::Ok, told.into(), None)
        }
    }),
    ("terminal", "locale", |s| {
        let lang = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|v| (s.env)(v))
            .unwrap_or_else(|| "not set".into());
        let utf8 = lang.to_lowercase().replace('-', "").contains("utf8");
        let remedy =
            (!utf8).then(|| "Use a UTF-8 locale, for example LANG=C.UTF-8, or set ui.ascii = true.".into());
        (if utf8 { Health::Ok } else { Health::Warn }, lang, remedy)
    }),
    ("terminal", "clipboard", |s| {
        let route = match (
            (s.env)("TMUX"),
            (s.env)("SSH_CONNECTION"),
            (s.env)("WAYLAND_DISPLAY").or((s.env)("DISPLAY")),
        ) {
            (Some(_), ..) => "tmux's buffer, and OSC 52 through tmux",
            (None, Some(_), _) => "OSC 52, if your terminal allows it; it cannot be confirmed",
            (None, None, Some(_)) => "the display's clipboard, and OSC 52",
            (None, None, None) => "OSC 52, if your terminal allows it; it cannot be confirmed",
        };
        (Health::Ok, route.into(), None)
    }),
    ("terminal", "keyboard", |_| match keyboard::ask() {
        Keyboard::Enhanced => (Health::Ok, "all keys can be distinguished (kitty protocol)".into(), None),
        Keyboard::Legacy => {
            (Health::Ok, "Shift-Enter and Ctrl-Enter arrive as Enter; use Ctrl-J for a new line".into(), None)
        }
        Keyboard::Silent => (
            Health::Warn,
            "the terminal does not answer queries".into(),
            Some("Check TERM; on a slow connection this result can be wrong.".into()),
        ),
        Keyboard::NotAsked => (Health::Ok, "not queried: standard output is not a terminal".into(), None),
    }),
    ("terminal", "ambiguous", |s| {
        let columns = if s.config.config.ui.ambiguous_wide { 2 } else { 1 };
        (
            Health::Ok,
            format!("characters of ambiguous width take {columns} column(s) (ui.ambiguous_wide)"),
            None,
        )
    }),
    ("terminal", "detach", |s| {
        if !s.config.config.detach.enabled {
            return (Health::Ok, "turned off (detach.enabled)".into(), None);
        }
        if std::fs::symlink_metadata(s.places.state.join("hosts")).is_err() {
            return (Health::Ok, "workbenches can be detached; none is running".into(), None);
        }
        match crate::detach::Folder::open(&s.places.state) {
            Ok(folder) => {
                let n = crate::detach::connection::all(&folder, None).len();
                (Health::Ok, format!("workbenches can be detached; {n} running now (`tiller ps`)"), None)
            }
            Err(n) => (Health::Warn, n.message, n.hints.into_iter().next()),
        }
    }),
    ("settings", "config", |s| {
        let all: Vec<String> = s.config.problems.iter().map(ToString::to_string).collect();
        let mend = "Correct the file; a file with an error is ignored as a whole.";
        wrong(all, mend).unwrap_or_else(|| (Health::Ok, s.places.config.display().to_string(), None))
    }),
    ("settings", "rules", |s| {
        let all = restricting::problems(s).into_iter().map(|n| n.message).collect();
        wrong(
            all,
            "Until it is corrected, calls that it may cover ask, or are denied where no one can answer.",
        )
        .unwrap_or_else(|| (Health::Ok, "permissions.yaml has no errors".into(), None))
    }),
    ("settings", "agents", |s| {
        let trusted = s.open_store().is_ok_and(|store| s.trust(&store).may_load());
        let (all, wrong_ones) = definitions::read(&s.places, &s.folder_config, trusted, &s.tools.catalog());
        let told = wrong_ones.iter().map(ToString::to_string).collect();
        wrong(told, "A file with an error is ignored as a whole.")
            .unwrap_or_else(|| (Health::Ok, format!("{} kinds of agents", all.iter().count()), None))
    }),
    ("settings", "keys", |s| match show::key_table(s) {
        Ok(map) => (Health::Ok, format!("preset {}", map.preset), None),
        Err(n) => (Health::Fail, n.message, n.hints.into_iter().next()),
    }),
    ("settings", "themes", |s| {
        let (themes, bad) = show::all_themes(s);
        wrong(bad, "Until it is corrected, the theme ansi is used instead.").unwrap_or_else(|| {
            (Health::Ok, format!("{}; {} to choose from", themes.choice(), themes.names().len()), None)
        })
    }),
    ("models", "providers", |s| {
        let env = std::sync::Arc::clone(&s.env);
        let all = tiller_provider::build(
            &s.config.config,
            &s.formats,
            &|n| env(n),
            Some(&s.key_file()),
            &s.redact(),
        );
        let ready: Vec<&str> = all.names().collect();
        match all.default_model() {
            Some(m) => (Health::Ok, format!("{} ready; model {m}", ready.join(", ")), None),
            None => (
                Health::Warn,
                format!("{} ready; no model is configured", ready.join(", ")),
                Some(
                    "Set ANTHROPIC_API_KEY (or another), or model in config.toml. `tiller demo` needs none."
                        .into(),
                ),
            ),
        }
    }),
    ("models", "credentials", |s| {
        let file = tiller_config::KeyFile::usual(&s.places);
        let path = file.path().display();
        match file.names() {
            Err(e) => (
                Health::Fail,
                e.to_string(),
                Some(format!("Correct {path}, or move it away and enter the keys again.")),
            ),
            Ok(names) => match settings::doubled(s).into_iter().next() {
                Some(both) => (Health::Warn, both.message, both.hints.into_iter().next()),
                None if names.is_empty() => (Health::Ok, "no keys are stored".into(), None),
                None => (Health::Ok, format!("{path} contains keys for {}", names.join(", ")), None),
            },
        }
    }),
    ("store", "database", |s| {
        match s.open_store().and_then(|store| store.doctor().map_err(|e| e.notice())) {
            Ok(d) => {
                let sum = format!(
                    "{}: {} sessions, {} entries, {} KB, SQLite {}",
                    d.path,
                    d.sessions,
                    d.entries,
                    d.bytes / 1024,
                    d.sqlite
                );
                match d.problems.first() {
                    None if d.damaged_entries == 0 && d.search_problems.is_empty() => (Health::Ok, sum, None),
                    None if d.damaged_entries == 0 => (
                        Health::Warn,
                        format!("the search index was damaged ({})", d.search_problems.join("; ")),
                        Some("It was removed; the next search makes it again.".into()),
                    ),
                    Some(first) => (
                        Health::Fail,
                        format!("{}: {first}", d.path),
                        Some(
                            "Close Tiller everywhere and start it again: it makes indexes again, recovers what is \
                            readable, and keeps the damaged file. If this stays, export your sessions (`tiller sessions \
                            export`) and move the file away."
                                .into(),
                        ),
                    ),
                    None => (
                        Health::Fail,
                        format!("{} entries are damaged", d.damaged_entries),
                        Some(
                            "Export your sessions (`tiller sessions export`), then move the file away."
                                .into(),
                        ),
                    ),
                }
            }
            Err(n) => (Health::Fail, n.message, n.hints.into_iter().next()),
        }
    }),
    ("store", "snapshots", |s| {
        let Some(place) = files::place(s) else {
            return (Health::Ok, "turned off (snapshots.enabled)".into(), None);
        };
        if !place.store.exists() {
            return (Health::Ok, "there are no snapshots of this folder yet".into(), None);
        }
        let looked = Shadow::open(&place.workspace, &place.store, place.limits, Arc::clone(&s.clock))
            .and_then(|shadow| shadow.verify());
        match looked {
            Ok(v) if v.problems.is_empty() => {
                (Health::Ok, format!("{} objects, {} KB, all intact", v.objects, v.bytes / 1024), None)
            }
            Ok(v) => (
                Health::Fail,
                v.problems.join("; "),
                Some(
                    "Damaged states cannot be restored; all others can. Your next message creates a \
                    new snapshot."
                        .into(),
                ),
            ),
            Err(e) => {
                let notice = e.notice();
                (Health::Fail, notice.message, notice.hints.into_iter().next())
            }
        }
    }),
    ("project", "git", |s| match repository(&s.project) {
        Some(root) => (Health::Ok, format!("repository at {}", root.display()), None),
        None => (Health::Ok, "not in a git repository (not required)".into(), None),
    }),
    ("project", "trust", |s| {
        let n = s.folder_config.items().len();
        (
            Health::Ok,
            if n == 0 {
                "this folder has no settings, rules or memory of its own".into()
            } else {
                format!("this folder contains {n} file(s) with settings, rules or memory; see `tiller trust`")
            },
            None,
        )
    }),
    ("project", "watcher", |_| {
        let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches")
            .ok()
            .and_then(|t| t.trim().parse::<u64>().ok());
        match limit {
            Some(n) if n < 8192 => (
                Health::Warn,
                format!("{n} file watches allowed"),
                Some("Large projects are polled instead. Raise fs.inotify.max_user_watches.".into()),
            ),
            Some(n) => (Health::Ok, format!("{n} file watches allowed"), None),
            None => (Health::Ok, "system default".into(), None),
        }
    }),
    ("tools", "shell", |s| {
        let path = (s.env)("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|d| d.join("bash")).find(|p| p.is_file());
        match found {
            Some(p) => (Health::Ok, p.display().to_string(), None),
            None => (
                Health::Warn,
                "no bash on PATH; sh is used".into(),
                Some("Install bash to get a full persistent shell.".into()),
            ),
        }
    }),
    ("tools", "python", |s| match s.python() {
        Some(python) => (Health::Ok, format!("{} runs scripts that call tools", python.display()), None),
        None => (
            Health::Warn,
            format!("{} was not found: agents have no execute_code", s.config.config.code.python),
            Some("Install Python 3, or set code.python to its path.".into()),
        ),
    }),
    ("tools", "agents", |s| {
        let found = agents::found(&(s.env)("PATH").unwrap_or_default());
        if found.is_empty() {
            return (Health::Ok, "no external agent program is on PATH".into(), None);
        }
        let said = agents::versions(&found, &crate::app::child_env(s), VERSIONS);
        let each = found.iter().zip(said).map(|(agent, version)| match version {
            Some(version) => format!("{} {version}", agent.name),
            None => format!("{} (version unknown)", agent.name),
        });
        (Health::Ok, each.collect::<Vec<_>>().join(", "), None)
    }),
    ("tools", "browser", |s| {
        let config = &s.config.config.browser;
        let profiles = s.places.data.join("browser");
        let found =
            crate::app::tools::browser::settings(config, &profiles, &(s.env)("PATH").unwrap_or_default());
        if !config.enabled {
            return (Health::Ok, "off by browser.enabled".into(), None);
        }
        match (found.remote, found.program) {
            // It may hold a token.
            (Some(_), _) => (Health::Ok, "at browser.url".into(), None),
            (None, Some(program)) if program.is_file() => (Health::Ok, program.display().to_string(), None),
            (None, Some(program)) => (
                Health::Warn,
                format!("browser.program is missing: {}", program.display()),
                Some("Correct it, or remove it to use the first browser on PATH.".into()),
            ),
            (None, None) => (
                Health::Ok,
                "no Chromium is on PATH; agents have no browser tools".into(),
                Some("Install Chromium, or set browser.url.".into()),
            ),
        }
    }),
    ("tools", "adapters", adapters),
    ("tools", "sandbox", |s| {
        let found = Confinement::find();
        if !found.available() {
            let remedy = "Commands are checked by rules only. Use ask mode in folders that you do not trust.";
            let lacks = found.lacks().join("\n");
            return (Health::Warn, found.words(), Some(format!("{lacks}\n{remedy}")));
        }
        let mut gaps = sandbox::gaps();
        let settings = crate::app::sandbox::SandboxSettings::of(s);
        if let SandboxNetwork::DomainsUnavailable { why, .. } = settings.state(found, Vec::new).network {
            gaps.push(format!("{why}: commands reach none of them"));
        }
        gaps.extend(found.lacks());
        if gaps.is_empty() {
            return (Health::Ok, format!("{}; every probe was stopped", found.words()), None);
        }
        (Health::Warn, found.words(), Some(gaps.join("\n")))
    }),
];

/// Time limit for an agent program to print its version.
const VERSIONS: std::time::Duration = std::time::Duration::from_secs(3);

/// Which agent programs of other vendors are ready, and what the others lack.
fn adapters(s: &Setup) -> Finding {
    let all = Adapters::new(&[s.places.config.join("adapters")]);
    let (env, lookup) = (crate::app::child_env(s), Arc::clone(&s.env));
    let lookup: Lookup = Arc::new(move |name| lookup(name));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let told = match runtime {
        Ok(runtime) => runtime.block_on(Checker::default().check_all(all.iter(), &env, &lookup, PREFLIGHT)),
        Err(e) => return (Health::Fail, format!("the async runtime could not be started: {e}"), None),
    };
    let (missing, there): (Vec<_>, Vec<_>) =
        told.iter().partition(|(_, ready)| matches!(ready, Ready::Missing { .. }));
    let mut said: Vec<String> =
        there.iter().map(|(name, ready)| format!("{name} {}", ready.words())).collect();
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
        said.push(format!("not installed: {}", names.join(", ")));
    }
    let mut fixes: Vec<String> = all.problems().iter().map(ToString::to_string).collect();
    fixes.extend(there.iter().filter_map(|(name, ready)| Some(format!("{name}: {}", ready.fix()?))));
    let status = if fixes.is_empty() { Health::Ok } else { Health::Warn };
    (status, said.join("; "), (!fixes.is_empty()).then(|| fixes.join("\n")))
}

/// Time limit for the version in a preflight check; programs are queried concurrently.
const PREFLIGHT: std::time::Duration = std::time::Duration::from_secs(5);

/// A failed check of files: every error, then the remedy. `None`: there are no errors.
fn wrong(mut all: Vec<String>, remedy: &str) -> Option<Finding> {
    if all.is_empty() {
        return None;
    }
    let first = all.remove(0);
    all.push(remedy.to_owned());
    Some((Health::Fail, first, Some(all.join("\n"))))
}

fn screen_size() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some((size.ws_col, size.ws_row))
}

/// Prints the checks; the exit code is 0 unless one failed.
pub(super) fn run(setup: &Setup, json: bool) -> Result<Exit, Notice> {
    let mut worst = Health::Ok;
    let mut text = String::new();
    let mut group = "";
    for (of, id, check) in CHECKS {
        let begun = setup.clock.mono();
        let (status, summary, remedy) = check(setup);
        let summary = setup.redactor.redact(&crate::commands::sessions::one_line(&summary)).into_owned();
        let row = Check {
            group: of,
            id,
            status,
            summary,
            remedy,
            ms: setup.clock.mono().saturating_sub(begun).as_millis(),
        };
        worst = worst.max(status);
        if json {
            text.push_str(&json_line(&row));
            continue;
        }
        if *of != group {
            group = of;
            text.push_str(&format!("{of}\n"));
        }
        let mark = match row.status {
            Health::Ok => "ok  ",
            Health::Warn => "warn",
            Health::Fail => "FAIL",
        };
        text.push_str(&format!("  {mark} {:10} {}\n", row.id, row.summary));
        for line in row.remedy.iter().flat_map(|r| r.lines()) {
            text.push_str(&format!("                  {}\n", crate::commands::sessions::one_line(line)));
        }
    }
    say(&text)?;
    Ok(if worst == Health::Fail { Exit::Usage } else { Exit::Done })
}
