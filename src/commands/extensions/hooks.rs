//! `tiller hooks`: lists hooks, runs them with a made-up input, imports those of Claude Code.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tiller_config::ConfigError;
use tiller_hooks::claude::{self, Imported};
use tiller_hooks::{HookAnswer, HookScene, HookSource, Hooks, file};
use tiller_permit::{Human, Policy, Request, Roots, Rule, Verdict};
use tiller_plugins::PluginState;
use tiller_protocol::notice::sentence;
use tiller_protocol::{
    Access, AgentId, HookEvent, HookRow, Notice, NoticeKind, Profile, RuleArgument, SessionId, Touch,
};
use tokio_util::sync::CancellationToken;

use crate::app::{Setup, extensions, sandbox};
use crate::commands::args::HooksCommand;
use crate::commands::extensions::consent::agreed;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say};

pub(in crate::commands) fn run(setup: &Setup, what: &HooksCommand) -> Result<Exit, Notice> {
    match what {
        HooksCommand::List { json } => list(setup, *json),
        HooksCommand::Test { event, tool, args, text } => test(setup, event, (tool, args), text),
        HooksCommand::Import { user, yes } => import(setup, *user, *yes),
    }
}

/// The hooks that a session here would have, and the faults in their settings.
fn load(setup: &Setup) -> Result<(Hooks, Vec<Notice>), Notice> {
    let store = setup.open_store()?;
    let mut plugins = extensions::plugins::installed(setup, &store);
    plugins.retain(|plugin| plugin.state == PluginState::Trusted);
    let confiner = sandbox::program_confiner(setup, &sandbox::confiners(setup));
    Ok(extensions::hooks::load(setup, &store, confiner, setup.trust(&store).may_load(), &plugins))
}

/// Lists hooks. Faults of settings go to standard error and make the exit code 2.
fn list(setup: &Setup, json: bool) -> Result<Exit, Notice> {
    let trusted = setup.trust(&setup.open_store()?).may_load();
    let (hooks, faults) = load(setup)?;
    let rows = hooks.rows();
    let line = |row: &HookRow| if json { json_line(row) } else { line(row) };
    let mut text: String = rows.iter().map(line).collect();
    let are_there = rows.iter().any(|row| row.source == HookSource::Project.words());
    if !trusted && !are_there && setup.folder_config.bytes(file::PROJECT).is_some() && !json {
        text.push_str("The hooks of this folder are not loaded: `tiller trust` shows them.\n");
    }
    if rows.is_empty() && text.is_empty() && !json {
        text.push_str("No hooks. They are commands of [hooks] in config.toml, or in .tiller/hooks.toml.\n");
    }
    let said = say(&text)?;
    for fault in &faults {
        // Standard error may be closed.
        let _ = writeln!(std::io::stderr().lock(), "tiller: {}", one_line(&fault.message));
    }
    Ok(if faults.is_empty() { said } else { Exit::Usage })
}

fn line(row: &HookRow) -> String {
    let matches = if row.matches.is_empty() { "everything" } else { &row.matches };
    let blocking = if row.blocking { "blocking" } else { "" };
    let line = format!(
        "{:17} {:24} {:8} {:9} {}",
        row.event.name(),
        one_line(matches),
        row.source,
        blocking,
        one_line(&row.name)
    );
    format!("{}\n", line.trim_end())
}

/// Runs the hooks of an event.
fn test(setup: &Setup, event: &str, (tool, args): (&str, &str), text: &str) -> Result<Exit, Notice> {
    let user = |why: String| Notice::new(NoticeKind::User, why);
    let event = HookEvent::of(event).ok_or_else(|| {
        let names: Vec<&str> = HookEvent::ALL.iter().map(|e| e.name()).collect();
        user(format!("There is no event {event}.")).hint(format!("Events are {}.", names.join(", ")))
    })?;
    let args: Value = serde_json::from_str(args).map_err(|e| user(format!("--args is not JSON: {e}.")))?;
    let (hooks, _) = load(setup)?;
    if !hooks.any(event) {
        return say(&format!("No hook runs for {}.\n", event.name()));
    }
    let (id, agent) = (SessionId::fresh(&*setup.ids, setup.clock.now()), AgentId::main());
    let scene = HookScene { event, session: id, agent: &agent, folder: &setup.project, profile: None };
    let about = about(event, (tool, &args), text);
    let home = (setup.env)("HOME").map(PathBuf::from);
    let policy = Policy::new(Roots::new(&setup.project, home, Vec::new()), setup.tools.catalog());
    let matches = |rule: &Rule, args: &Value| is_for(&policy, &setup.project, tool, rule, args);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Notice::new(NoticeKind::Internal, format!("No runtime: {e}.")))?;
    let cancel = CancellationToken::new();
    let answer = runtime.block_on(async {
        match event {
            HookEvent::BeforeToolCall => hooks.before_call(scene, about, &matches, &cancel).await,
            HookEvent::AfterToolCall => hooks.after_call(scene, about, &matches, &cancel).await,
            _ => hooks.fire(scene, about, &cancel).await,
        }
    });
    let rows: Vec<HookRow> = hooks.rows().into_iter().filter(|row| row.event == event).collect();
    let denied = answer.deny.is_some();
    say(&report(&rows, &answer))?;
    Ok(if denied { Exit::Refused } else { Exit::Done })
}

/// The made-up input.
fn about(event: HookEvent, (tool, args): (&str, &Value), text: &str) -> Map<String, Value> {
    let call = json!({ "id": "test", "tool": tool, "target": "", "arguments": args });
    let about = match event {
        HookEvent::BeforeToolCall => json!({ "call": call }),
        HookEvent::AfterToolCall => json!({ "call": call, "result": text, "outcome": "ok", "seconds": 0.1 }),
        HookEvent::UserPrompt => json!({ "prompt": text }),
        HookEvent::BeforeResponse => json!({ "answer": text, "again": false }),
        HookEvent::ContextCompact => json!({ "trigger": "user", "focus": text }),
        HookEvent::AgentStart => json!({ "task": text }),
        HookEvent::AgentEnd => {
            json!({ "ended": "main/a1", "label": "test", "status": "done", "answer": text })
        }
        HookEvent::FileChanged => json!({ "changes": [{ "path": text, "kind": "modified", "who": "you" }] }),
        HookEvent::Notification => json!({ "kind": "question", "message": text }),
        HookEvent::SessionStart => json!({ "source": "new" }),
        HookEvent::SessionEnd => json!({ "reason": "quit" }),
    };
    if let Value::Object(fields) = about { fields } else { Map::new() }
}

/// Whether a hook's rule is for the made-up call.
fn is_for(policy: &Policy, folder: &Path, tool: &str, rule: &Rule, args: &Value) -> bool {
    let mut policy = policy.clone();
    policy.rules.push(rule.clone());
    let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let path = || folder.join(text("path")).display().to_string();
    let access = match policy.tools.get(tool).map(|t| t.rule) {
        Some(RuleArgument::Command) => {
            let folder = folder.display().to_string();
            vec![Access::Run { command: text("command"), folder, background: false }]
        }
        Some(RuleArgument::ReadPath) => vec![Access::Read { path: path(), inside: true }],
        Some(rule) if rule.changes_path() => vec![Access::Write { path: path(), inside: true }],
        _ => Vec::new(),
    };
    let raw = args.to_string();
    let request = Request {
        profile: Profile::Full,
        human: Human::Present,
        agent: "main",
        tool,
        touch: Touch::Execute,
        access: &access,
        raw: &raw,
    };
    matches!(tiller_permit::decide(&policy, &request), Verdict::Deny { .. })
        || tiller_permit::reach(&policy, &request).may_meet(rule)
}

/// What the hooks decided, for people.
fn report(rows: &[HookRow], answer: &HookAnswer) -> String {
    let mut text = String::new();
    for row in rows {
        let said = match &row.last {
            None => "did not run: its match is not for this".to_owned(),
            Some(run) => {
                let word = serde_json::to_value(run.outcome).unwrap_or_default();
                let why =
                    if run.why.is_empty() { String::new() } else { format!(": {}", one_line(&run.why)) };
                format!("{} in {:.2} s{why}", word.as_str().unwrap_or_default(), run.seconds)
            }
        };
        text.push_str(&format!("{}  {said}\n", one_line(&row.name)));
    }
    let denied = answer.deny.as_ref().map(|d| format!("{}\n", one_line(&sentence(&d.words()))));
    let asks = answer.ask.as_ref().map(|why| format!("The call asks: {}\n", one_line(&sentence(why))));
    let arguments = answer.arguments.as_ref().map(|a| format!("Arguments: {}\n", one_line(&a.to_string())));
    let result = answer.result.as_ref().map(|r| format!("Result: {}\n", one_line(r)));
    text.extend([denied, asks, arguments, result].into_iter().flatten());
    text.extend(answer.add.iter().map(|(hook, t)| format!("Added by {}: {}\n", one_line(hook), one_line(t))));
    text
}

/// Imports hooks of Claude Code.
fn import(setup: &Setup, user: bool, yes: bool) -> Result<Exit, Notice> {
    let refused = |why: String| Notice::new(NoticeKind::User, why);
    let home = (setup.env)("HOME").map(PathBuf::from);
    let (from, to, section) = if user {
        let home = home.ok_or_else(|| refused("The home folder is unknown.".into()))?;
        (home, setup.places.config.join(tiller_config::FILE), "hooks.")
    } else {
        (setup.project.clone(), setup.project.join(file::PROJECT), "")
    };
    let mut all = Imported::default();
    let mut text = String::new();
    for (name, found) in claude::find(&from) {
        match found {
            Ok(found) => {
                text.push_str(&format!("{}: {} hooks\n", from.join(name).display(), found.taken));
                all.left_out.extend(found.left_out);
                all.widened.extend(found.widened);
                all.taken += found.taken;
                text.push_str(&claude::as_toml(&found.hooks, section));
            }
            Err(why) => return Err(refused(format!("{} cannot be read: {why}.", from.join(name).display()))),
        }
    }
    text.extend(all.left_out.iter().map(|out| format!("Left out: {}\n", one_line(out))));
    text.extend(all.widened.iter().map(|why| format!("Runs more often: {}\n", one_line(why))));
    if all.taken == 0 {
        return say(&format!("{text}No hooks of Claude Code to import in {}.\n", from.display()));
    }
    let shown: Vec<String> = text.lines().map(one_line).collect();
    say(&format!("{}\n", shown.join("\n")))?;
    let without = refused("Nothing was imported: no one can agree.".into()).hint("Use --yes.");
    if !agreed(&format!("Add these hooks to {}?", to.display()), yes, without)? {
        return say("Nothing was imported.\n");
    }
    append(setup, &from, &to, section).map_err(refused)?;
    let then =
        if user { "They run from the next start on." } else { "`tiller trust` shows and trusts them." };
    say(&format!("Added to {}. {then}\n", to.display()))
}

/// Adds the hooks to the end of the file.
fn append(setup: &Setup, from: &Path, to: &Path, section: &str) -> Result<(), String> {
    if !section.is_empty() {
        let changed = tiller_config::change_private(to, |old| {
            with_imported(setup, from, to, section, old).map(Some).map_err(ConfigError::Refused)
        });
        return changed.map_err(|e| e.to_string());
    }
    // No file of a lock is left in a project.
    let old = match std::fs::read_to_string(to) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(format!("{} cannot be read: {e}.", to.display())),
    };
    let new = with_imported(setup, from, to, section, &old)?;
    tiller_config::write_private(to, &new).map_err(|e| e.to_string())
}

/// The text of the file `to`, which is `old` now, with the hooks at its end.
fn with_imported(setup: &Setup, from: &Path, to: &Path, section: &str, old: &str) -> Result<String, String> {
    let added = claude::find(from).into_iter().filter_map(|(_, found)| found.ok());
    let added: String = added.map(|found| claude::as_toml(&found.hooks, section)).collect();
    let new = format!("{}{}{added}", old.trim_end(), if old.trim().is_empty() { "" } else { "\n" });
    let new = new.trim_start();
    if section.is_empty() {
        file::read(new).map_err(|why| format!("{}, {why}.", to.display()))?;
    } else {
        let kinds = setup.formats.kinds();
        let wrong = tiller_config::problems_of(to, new, tiller_config::Layer::User, &kinds);
        if let Some(wrong) = wrong.first() {
            return Err(format!("{wrong}."));
        }
    }
    Ok(new.to_owned())
}
