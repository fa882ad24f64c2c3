//! Judging a shell command.

use std::path::{Path, PathBuf};

use tiller_protocol::{AskReason, Profile, Risk};

use crate::decide::{Need, Policy, ReadOnlyRun, Request, folders, instructions, narrowed_reads, read_only};
use crate::paths::Roots;
use crate::paths::touched::{self, PathMatch};
use crate::read_only::{
    Requirement, RunContext, inside, loops_inside, part_requirements, requirements, written_out,
};
use crate::rules::{Certainty, Effect, PathUse, Rule, RuleSet, Source, Spellings, Subject};
use crate::surroundings::ShellState;
use crate::{danger, decide::always, decide::describe, paths::respell};
use tiller_shell::{Analysis, Part, Redirect, Role, analyse, code_reads, crude_pieces, most_code_pieces};

/// The rule that allows a read-only command, in words.
pub(crate) const LOOKS: &str = "built in: read-only command";

/// Judges `text`, run in `folder` by `shell`.
pub(crate) fn judge(
    policy: &Policy,
    request: &Request<'_>,
    text: &str,
    folder: &Path,
    background: bool,
    shell: Option<&ShellState>,
) -> Need {
    let need = by_words(policy, request, text, folder, background, shell);
    instructions::beside(need, || {
        let analysis = analyse(text);
        let places = folders(&policy.roots, &analysis, folder);
        instructions::question(policy, &instructions::written_by(policy, request, &analysis, &places))
    })
}

fn by_words(
    policy: &Policy,
    request: &Request<'_>,
    text: &str,
    folder: &Path,
    background: bool,
    shell: Option<&ShellState>,
) -> Need {
    let analysis = analyse(text);
    let places = folders(&policy.roots, &analysis, folder);
    if let Some(reason) = policy.protected.check_command(&policy.roots, &analysis, folder) {
        return Need::No { rule: "protected name".into(), reason };
    }
    let denying = denying(policy, request.agent, request.tool, &analysis, &places);
    if let Some((rule, Certainty::Sure)) = denying {
        return Need::No { rule: rule.words(), reason: format!("denied by the rule {}", rule.words()) };
    }
    let (no, by_path) = by_path(policy, request.agent, &analysis, &places);
    if let Some(no) = no {
        return no;
    }
    if request.profile.only_looks() {
        return read_only(request.profile);
    }
    let confined = request.profile == Profile::Full
        && shell.is_some_and(|shell| shell.confined)
        // A command that reaches every host can hand out everything.
        && !policy.hosts.iter().any(|host| host == "*")
        && outside(policy, request, text, folder, shell).is_none();
    let dangers = danger::dangers(&analysis, &policy.roots, &places, confined);
    let (effects, risk) = describe::command(&analysis, &dangers, &policy.roots, &places, background);
    let ask =
        |rule: AskReason, always: Option<String>| Need::Ask { rule, risk, effects: effects.clone(), always };

    let known = !places.is_empty() && places.iter().all(|place| policy.roots.inside(place));
    let likely = if known { places.clone() } else { policy.roots.likely_folders(&analysis, folder) };
    // What is not clear counts for what the kernel does not hold.
    let held = match request.profile {
        // What it comes to may also be sent to hosts that are open, and then a danger goes unseen.
        Profile::Full => confined && policy.hosts.is_empty() && !restricts(policy, request),
        _ => {
            let looks = || requirements(&analysis, &policy.roots, &likely, known).is_some();
            !background
                && shell.is_some()
                && (policy.sandboxed)()
                && looks()
                && !concerns(policy, request, &analysis)
        }
    };
    if let Some(why) = analysis.unclear.as_ref().filter(|_| !held) {
        return ask(format!("not certain: {why}").into(), None);
    }
    if let Some(rule) = asked(policy, request.agent, request.tool, &analysis, &places) {
        return ask(rule.words().into(), None);
    }
    if let Some((rule, _)) = denying {
        return ask(perhaps(rule).into(), None);
    }
    if let Some(rule) = by_path {
        return ask(rule.into(), None);
    }
    // No rule speaks of a repository that an agent may have made.
    let planted = || planted(policy, &analysis, &places);
    let exact = exactly_allowed(policy, request, &analysis);
    if !dangers.is_empty() {
        return match exact.filter(|_| planted().is_none()) {
            Some(rule) => Need::Ok(rule.words()),
            None => ask(format!("dangerous: {}", dangers.join("; ")).into(), None),
        };
    }
    if request.profile == Profile::Full {
        return Need::Ok("full mode".into());
    }
    // Why a command whose words only look may do more here.
    let mut steered = None;
    if !background
        && let Some(needs) = requirements(&analysis, &policy.roots, &likely, known)
        && clear_when_written_out(policy, request, &analysis, folder)
    {
        match place(policy, &likely, shell).check(&needs, false) {
            Ok(variables) => {
                let needs_sandbox = needs.contains(&Requirement::Sandbox);
                let is_unknown = analysis.parts.iter().any(has_unknown_words);
                if needs_sandbox && is_unknown && concerns(policy, request, &analysis) {
                    return ask(
                        "not certain: a rule may be about words that are known only at run time".into(),
                        None,
                    );
                }
                if let Some(rule) = narrowed_reads(policy, request.agent).filter(|_| needs_sandbox) {
                    return ask(format!("{}: the command could read these files", rule.words()).into(), None);
                }
                return Need::ReadOnly(ReadOnlyRun { variables, needs_sandbox });
            }
            Err(why) => steered = Some(why),
        }
    }
    if let Some(why) = planted() {
        return ask(format!("not certain: {why}, and an agent can write its configuration").into(), None);
    }
    if let Some(rule) = exact {
        return Need::Ok(rule.words());
    }
    let open = open_parts(policy, request.agent, request.tool, &analysis, &places, shell);
    let writes = open_writes(policy, request, &analysis, &places);
    let loops = loops_inside(&analysis, &policy.roots, &places);
    if analysis.loose.is_none() && open.is_empty() && !writes && loops && !analysis.parts.is_empty() {
        return Need::Ok(allow_words(policy, request, &analysis));
    }
    let offered = match writes {
        true => Err("it writes or reads what no rule allows"),
        false => offer(policy, &analysis, &places, &open),
    };
    let rule = match &analysis.loose {
        // Every part is covered by a rule, and still the command may do more than its words say.
        Some(why) if open.is_empty() => format!("no permission rule matches for certain: {why}").into(),
        _ => AskReason::NoRule,
    };
    let (rule, mut effects) = match steered {
        Some(why) => {
            let more = std::iter::once("may run more than it shows".to_owned());
            (format!("{rule}: {why}").into(), more.chain(effects.clone()).collect())
        }
        None => (rule, effects.clone()),
    };
    if let Err(why) = offered {
        effects.push(format!("no rule for it is offered: {why}"));
    }
    Need::Ask { rule, risk, effects, always: offered.ok() }
}

/// Why a command asks that a deny rule perhaps forbids.
pub(crate) fn perhaps(rule: &Rule) -> String {
    format!("not certain: the command may be one that the rule {} forbids", rule.words())
}

/// Returns true if a rule asks about, or forbids, what some command or path of this agent may come to.
fn restricts(policy: &Policy, request: &Request<'_>) -> bool {
    let about_paths =
        |rule: &Rule| [PathUse::Read, PathUse::Write].into_iter().any(|how| rule.narrows_paths(how));
    restricting(policy, request.agent).any(|rule| rule.is_for_tool(request.tool) || about_paths(rule))
}

/// Programs that run others which their words name, or write files that these name.
const RUN_BY_WORDS: &[&str] = &["find", "awk", "gawk", "mawk", "nawk", "sed", "xargs", "rg", "sort", "tar"];

/// Returns true if such a rule may be about commands here, by the names of their programs. Rules about paths are compared with
/// paths.
fn concerns(policy: &Policy, request: &Request<'_>, analysis: &Analysis) -> bool {
    let rules = restricting(policy, request.agent).filter(|rule| rule.is_for_tool(request.tool));
    let mut arguments = rules.map(|rule| {
        let argument = rule.text().split_once('(').map_or("", |(_, argument)| argument);
        argument.trim_end_matches(')').to_owned()
    });
    let names = |program: &str| RUN_BY_WORDS.iter().any(|name| program.eq_ignore_ascii_case(name));
    let runs_any = analysis.parts.iter().any(|part| has_unknown_words(part) && names(&part.base()));
    arguments.any(|argument| {
        let program = argument.split_whitespace().next().unwrap_or("*");
        runs_any
            || argument.contains(['=', ';', '&', '|', '$', '"', '\''])
            || program.contains(['*', '?', '[', '{', '/'])
            || analysis.parts.iter().any(|part| part.base().eq_ignore_ascii_case(program))
    })
}

fn has_unknown_words(part: &Part) -> bool {
    part.argv.iter().any(|word| word.dynamic)
}

fn restricting<'a>(policy: &'a Policy, agent: &'a str) -> impl Iterator<Item = &'a Rule> {
    let restricts = |rule: &&Rule| matches!(rule.effect, Effect::Deny | Effect::Ask);
    policy.rules.rules().iter().filter(restricts).filter(move |rule| rule.is_for(agent))
}

/// Whether no rule, no protected name and no danger stands against the words that the variables of loops stand for.
fn clear_when_written_out(
    policy: &Policy,
    request: &Request<'_>,
    analysis: &Analysis,
    folder: &Path,
) -> bool {
    let places = &folders(&policy.roots, analysis, folder);
    written_out(analysis).is_none_or(|written| {
        policy.protected.check_command(&policy.roots, &written, folder).is_none()
            && denying(policy, request.agent, request.tool, &written, places).is_none()
            && asked(policy, request.agent, request.tool, &written, places).is_none()
            && matches!(by_path(policy, request.agent, &written, places), (None, None))
            && danger::dangers(&written, &policy.roots, places, false).is_empty()
    })
}

/// Why a git of the command would obey configuration that an agent can write. A rule for git is about what the
/// person's own repository makes git run.
fn planted(policy: &Policy, analysis: &Analysis, places: &[PathBuf]) -> Option<String> {
    let around = policy.around.as_deref()?;
    let mut seen: Vec<PathBuf> = Vec::new();
    for part in analysis.parts.iter().filter(|p| p.base() == "git") {
        for folder in danger::git_folders(part.args(), places) {
            if seen.contains(&folder) || !policy.roots.inside(&folder) {
                continue;
            }
            if let Some(why) = around.planted(&folder, &policy.roots.workspace) {
                return Some(why);
            }
            seen.push(folder);
        }
    }
    None
}

fn place<'a>(policy: &'a Policy, folders: &'a [PathBuf], shell: Option<&'a ShellState>) -> RunContext<'a> {
    let (around, sandboxed) = (policy.around.as_deref(), policy.sandboxed);
    RunContext { roots: &policy.roots, folders, around, shell, sandboxed }
}

/// What forbids or endangers in a text that may be a command: `judge` without what only asks for want of certainty.
pub(crate) fn suspected(policy: &Policy, request: &Request<'_>, text: &str, folder: &Path) -> Option<Need> {
    let analysis = analyse(text);
    let places = folders(&policy.roots, &analysis, folder);
    // Of words that are no command a protected name is no more than a name.
    let denying = denying(policy, request.agent, "terminal", &analysis, &places);
    if let Some((rule, Certainty::Sure)) = denying {
        return Some(Need::No {
            rule: rule.words(),
            reason: format!("the rule {} forbids it", rule.words()),
        });
    }
    if let (Some(no), _) = by_path(policy, request.agent, &analysis, &places) {
        return Some(no);
    }
    let dangers = danger::dangers(&analysis, &policy.roots, &places, false);
    let rule = match denying {
        Some((rule, _)) => perhaps(rule),
        None if dangers.is_empty() => return None,
        None => format!("dangerous: {}", dangers.join("; ")),
    };
    let (effects, risk) = describe::command(&analysis, &dangers, &policy.roots, &places, false);
    Some(Need::Ask { rule: rule.into(), risk, effects, always: None })
}

/// The verdict of the rules about commands, and about reading files, on a script that may start programs or open files by
/// itself.
pub(crate) fn of_code(policy: &Policy, request: &Request<'_>, code: &str) -> Option<Need> {
    const TOOL: &str = "terminal";
    /// More pieces of one kind are not compared: the script asks.
    const PIECES: usize = 4_000;
    const STARTS: [&str; 15] = [
        "subprocess",
        "import os",
        "from os",
        "os.",
        "posix",
        "system(",
        ".system",
        "popen",
        "exec",
        "spawn",
        "pty",
        "ctypes",
        "eval",
        "__import__",
        "importlib",
    ];
    let ask = |rule: String| Need::Ask { rule: rule.into(), risk: Risk::High, effects: vec![], always: None };
    if STARTS.iter().any(|word| code.contains(word)) {
        let (pieces, more) = most_code_pieces(code, PIECES);
        let pieces = Spellings::of_texts(pieces).and_more(more);
        let subject = Subject::Command(&pieces);
        let denying = policy.rules.denying(request.agent, TOOL, &subject, &policy.roots);
        if let Some((rule, Certainty::Sure)) = denying {
            let reason = format!("denied by the rule {}: its code runs such a command", rule.words());
            return Some(Need::No { rule: rule.words(), reason });
        }
        if let Some(rule) = policy.rules.asked(request.agent, TOOL, &subject, &policy.roots) {
            return Some(ask(format!("{}: its code runs such a command", rule.words())));
        }
        if let Some((rule, _)) = denying {
            return Some(ask(perhaps(rule)));
        }
    }
    // The calls that it makes are judged one by one.
    let own = code.replace("read_file", "");
    let rule = narrowed_reads(policy, request.agent).filter(|_| code_reads("python3", &own))?;
    Some(ask(format!("{}: a script could read these files", rule.words())))
}

/// Whether the words of a command, run in `folder`, only read the workspace, with or without a sandbox.
pub(crate) fn is_read_only(policy: &Policy, text: &str, folder: &Path) -> bool {
    let analysis = analyse(text);
    let places = folders(&policy.roots, &analysis, folder);
    analysis.unclear.is_none()
        && danger::dangers(&analysis, &policy.roots, &places, false).is_empty()
        && requirements(&analysis, &policy.roots, &places, true)
            .is_some_and(|needs| !needs.contains(&Requirement::Sandbox))
}

/// The rules by which the whole command runs outside the sandbox, in words; `None`: it runs inside. As under an `allow`
/// rule, each part must match one, or only read, and what the command writes must be allowed too.
pub(crate) fn outside(
    policy: &Policy,
    request: &Request<'_>,
    text: &str,
    folder: &Path,
    shell: Option<&ShellState>,
) -> Option<String> {
    let rules = policy.rules.rules().iter().filter(|r| r.effect == Effect::Outside);
    let rules: Vec<Rule> = rules.map(|r| r.with_effect(Effect::Allow)).collect();
    if rules.is_empty() {
        return None;
    }
    let analysis = analyse(text);
    let places = folders(&policy.roots, &analysis, folder);
    // Nothing is harmless because of a sandbox there.
    let mut own = Policy { sandboxed: || false, ..policy.clone() };
    own.rules = RuleSet::default();
    own.rules.add(rules, false);
    let clear = analysis.unclear.is_none() && analysis.loose.is_none() && !analysis.parts.is_empty();
    let covered = clear
        && open_parts(&own, request.agent, request.tool, &analysis, &places, shell).is_empty()
        && !open_writes(&own, request, &analysis, &places)
        && loops_inside(&analysis, &own.roots, &places);
    let words = covered.then(|| allow_words(&own, request, &analysis))?;
    // A command of which no part needs a rule runs as it would without them.
    (words != LOOKS).then(|| words.replace(": allow ", ": outside "))
}

/// The deny rule that the command meets, on the raw text, on crude pieces of it, and on every spelling of every part; or one
/// that perhaps forbids it, by what an option takes, or by what a program runs that no table knows.
pub(crate) fn denying<'a>(
    policy: &'a Policy,
    agent: &str,
    tool: &str,
    analysis: &Analysis,
    places: &[PathBuf],
) -> Option<(&'a Rule, Certainty)> {
    if !is_any_for(policy, Effect::Deny, agent, tool) {
        return None;
    }
    let all = readings(&policy.roots, analysis, places);
    policy.rules.denying(agent, tool, &Subject::Command(&all), &policy.roots)
}

/// Returns true if some rule with this effect may be for commands that this tool runs.
fn is_any_for(policy: &Policy, effect: Effect, agent: &str, tool: &str) -> bool {
    policy.rules.rules().iter().any(|r| r.effect == effect && r.is_for(agent) && r.is_for_tool(tool))
}

/// Each form of a command that deny rules are compared with: the raw text, crude pieces of it, and every spelling of every
/// part.
pub(crate) fn readings(roots: &Roots, analysis: &Analysis, places: &[PathBuf]) -> Spellings {
    let mut all = Spellings::of_text(analysis.raw.trim());
    // Quotes may hide a separator from the crude look, never the other way round; only what cannot be
    // parsed for certain is looked at crudely, or a quoted text would be taken for a command.
    if analysis.unclear.is_some() {
        all.extend(Spellings::of_texts(crude_pieces(&analysis.raw)));
    }
    let written = written_out(analysis);
    for part in analysis.parts.iter().chain(written.iter().flat_map(|written| &written.parts)) {
        all.extend(respell::spellings(part, roots, places));
    }
    all
}

/// What the rules that name a path say about a command: a refusal, or that it must be asked about.
pub(crate) fn by_path(
    policy: &Policy,
    agent: &str,
    analysis: &Analysis,
    places: &[PathBuf],
) -> (Option<Need>, Option<String>) {
    let mut asks = None;
    match touched::met(policy, agent, Effect::Deny, analysis, places) {
        Some(PathMatch::Path(rule, path)) => {
            let reason =
                format!("denied by the rule {}; the command touches {}", rule.words(), path.display());
            return (Some(Need::No { rule: rule.words(), reason }), None);
        }
        Some(PathMatch::Perhaps(rule, why)) => asks = Some(format!("{}: {why}", rule.words())),
        None => {}
    }
    if asks.is_none() {
        asks = touched::met(policy, agent, Effect::Ask, analysis, places).map(|met| match met {
            PathMatch::Path(rule, path) => format!("{}: it touches {}", rule.words(), path.display()),
            PathMatch::Perhaps(rule, why) => format!("{}: {why}", rule.words()),
        });
    }
    (None, asks)
}

/// The ask rule that some part meets.
pub(crate) fn asked<'a>(
    policy: &'a Policy,
    agent: &str,
    tool: &str,
    analysis: &Analysis,
    places: &[PathBuf],
) -> Option<&'a Rule> {
    if !is_any_for(policy, Effect::Ask, agent, tool) {
        return None;
    }
    let raw = Spellings::of_text(analysis.raw.trim());
    let written = written_out(analysis);
    let parts = analysis.parts.iter().chain(written.iter().flat_map(|written| &written.parts));
    let parts = parts.map(|p| respell::spellings(p, &policy.roots, places));
    std::iter::once(raw)
        .chain(parts)
        .find_map(|spellings| policy.rules.asked(agent, tool, &Subject::Command(&spellings), &policy.roots))
}

/// A rule of the person's that names this command and nothing else. Only such a rule may allow what is
/// dangerous, and only when it is all there is to the command.
fn exactly_allowed<'a>(policy: &'a Policy, request: &Request<'_>, analysis: &Analysis) -> Option<&'a Rule> {
    let [part] = analysis.parts.as_slice() else { return None };
    if analysis.all_redirects().any(Redirect::writes) || !analysis.is_plain() || part.stdin.is_some() {
        return None;
    }
    let text = Spellings::of_text(part.text());
    policy.rules.rules().iter().find(|r| {
        r.effect == Effect::Allow
            && matches!(r.source, Source::User | Source::Session)
            && r.is_exact()
            && r.matches(request.agent, request.tool, &Subject::Command(&text), &policy.roots)
    })
}

/// The parts that no rule allows and that do not only look.
pub(crate) fn open_parts<'a>(
    policy: &Policy,
    agent: &str,
    tool: &str,
    analysis: &'a Analysis,
    places: &[PathBuf],
    shell: Option<&ShellState>,
) -> Vec<&'a Part> {
    // Where the folder is not known, or lies outside, nothing is known to only look at the workspace.
    let inside = !places.is_empty() && places.iter().all(|f| policy.roots.inside(f));
    // As written, and as its paths lead.
    let allowed = |p: &Part| {
        respell::all(p, &policy.roots, places).into_iter().all(|text| {
            policy
                .rules
                .matching(agent, tool, &Subject::Command(&Spellings::of_text(text)), &policy.roots)
                .allow
                .is_some()
        })
    };
    // Beside what a rule allows no variables can be set: nothing may be configured at all.
    let read_only = |p: &Part| {
        part_requirements(p, &policy.roots, places)
            .is_some_and(|needs| place(policy, places, shell).check(&needs, true).is_ok())
    };
    // A rule need not name a wrapper around what it allows; around what only looks it must be known.
    let wrapped = || analysis.parts.iter().filter(|p| p.role == Role::Transparent).all(read_only);
    let inside = inside && wrapped();
    let of_its_own = |p: &&Part| !matches!(p.role, Role::Transparent | Role::Guess);
    analysis.parts.iter().filter(of_its_own).filter(|p| !(allowed(p) || inside && read_only(p))).collect()
}

/// The pattern that would allow these parts.
///
/// # Errors
/// Why there is none, as the end of a sentence.
pub(crate) fn offer(
    policy: &Policy,
    analysis: &Analysis,
    places: &[PathBuf],
    open: &[&Part],
) -> Result<String, &'static str> {
    const TOOL: &str = "terminal";
    let text = always::pattern(analysis, open)?;
    let mut rules = RuleSet::default();
    for one in always::split(&text) {
        let rule = Rule::parse(Effect::Allow, Source::User, one, &policy.tools);
        rules.push(rule.map_err(|_| "its words are no rule")?);
    }
    let allowed = |text: String| {
        rules.matching("", TOOL, &Subject::Command(&Spellings::of_text(text)), &policy.roots).allow.is_some()
    };
    let covered = |part: &&Part| respell::all(part, &policy.roots, places).into_iter().all(allowed);
    let leads_elsewhere = "a path in it leads elsewhere than it says";
    open.iter().all(covered).then_some(text).ok_or(leads_elsewhere)
}

/// True when a redirection writes, or reads, what is not allowed to be.
fn open_writes(policy: &Policy, request: &Request<'_>, analysis: &Analysis, places: &[PathBuf]) -> bool {
    analysis.all_redirects().any(|r| {
        if !r.writes() {
            return r.kind == tiller_shell::RedirectKind::Read && !inside(&r.target, &policy.roots, places);
        }
        let Some(paths) = policy.roots.candidates(&r.target, places) else { return true };
        let edits = request.profile == Profile::AutoEdit;
        !paths.iter().all(|p| {
            let free = edits && policy.roots.inside(p);
            let said = policy.rules.matching(
                request.agent,
                "write_file",
                &Subject::Path(p, PathUse::Write),
                &policy.roots,
            );
            said.deny.is_none() && said.ask.is_none() && (free || said.allow.is_some())
        }) || paths.is_empty()
    })
}

fn allow_words(policy: &Policy, request: &Request<'_>, analysis: &Analysis) -> String {
    let mut words: Vec<String> = Vec::new();
    for part in &analysis.parts {
        let text = Spellings::of_text(part.text());
        let said =
            policy.rules.matching(request.agent, request.tool, &Subject::Command(&text), &policy.roots);
        if let Some(rule) = said.allow {
            let rule = rule.words();
            if !words.contains(&rule) {
                words.push(rule);
            }
        }
    }
    if words.is_empty() { LOOKS.into() } else { words.join("; ") }
}
