//! Judging a shell command.

use std::path::{Path, PathBuf};

use tiller_protocol::Profile;

use crate::decide::{Need, Policy, Request, folders, instructions, read_only};
use crate::harmless::{harmless, inside, part_is_harmless};
use crate::rules::{Effect, Rule, Source, Subject};
use crate::shell::{Analysis, HOLE, Part, Redirect, Role, Word, analyse, crude_pieces, takes_code};
use crate::targets::{quoted, written};
use crate::{always, danger, describe};

/// Judges `text`, run in `folder`.
pub(crate) fn judge(
    policy: &Policy,
    request: &Request<'_>,
    text: &str,
    folder: &Path,
    background: bool,
) -> Need {
    let analysis = analyse(text);
    let places = folders(&policy.roots, &analysis, folder);
    if let Some(reason) = policy.protected.check_command(&policy.roots, &analysis, folder) {
        return Need::No { rule: "protected name".into(), reason };
    }
    if let Some(rule) = denied(policy, request, &analysis, &places) {
        return Need::No { rule: rule.words(), reason: format!("the rule {} forbids it", rule.words()) };
    }
    if request.profile.only_looks() {
        return read_only(request.profile);
    }
    let dangers = danger::dangers(&analysis);
    let (effects, risk) = describe::command(&analysis, &dangers, &policy.roots, &places, background);
    let ask =
        |rule: String, always: Option<String>| Need::Ask { rule, risk, effects: effects.clone(), always };

    if let Some(why) = &analysis.unclear {
        return ask(format!("not certain: {why}"), None);
    }
    if let Some(rule) = asked(policy, request, &analysis) {
        return ask(rule.words(), None);
    }
    let exact = exactly_allowed(policy, request, &analysis);
    if !dangers.is_empty() {
        return match exact {
            Some(rule) => Need::Ok(rule.words()),
            None => ask(format!("dangerous: {}", dangers.join("; ")), None),
        };
    }
    if request.profile == Profile::Full {
        return Need::Ok("profile full".into());
    }
    if harmless(&analysis, &policy.roots, &places) && !background {
        return Need::Ok("built in: it only looks".into());
    }
    if let Some(rule) = exact {
        return Need::Ok(rule.words());
    }
    let open = open_parts(policy, request.agent, request.tool, &analysis, &places);
    let writes = open_writes(policy, request, &analysis, &places);
    if analysis.loose.is_none() && open.is_empty() && !writes && !analysis.parts.is_empty() {
        return Need::Ok(allow_words(policy, request, &analysis));
    }
    let always = if writes { None } else { always::pattern(&analysis, &open) };
    ask("none matches".into(), always)
}

/// Whether a command, run in `folder`, is known to only look at the workspace.
pub(crate) fn looks(policy: &Policy, text: &str, folder: &Path) -> bool {
    let analysis = analyse(text);
    let places = folders(&policy.roots, &analysis, folder);
    analysis.unclear.is_none()
        && danger::dangers(&analysis).is_empty()
        && harmless(&analysis, &policy.roots, &places)
}

/// The deny rule that the command meets: on the raw text, on crude pieces of it, on every spelling of
/// every part, and on the files it reads or writes.
fn denied<'a>(
    policy: &'a Policy,
    request: &Request<'_>,
    analysis: &Analysis,
    places: &[PathBuf],
) -> Option<&'a Rule> {
    let rules = &policy.rules;
    if !rules.rules().iter().any(|r| r.effect == Effect::Deny) {
        return None;
    }
    let mut texts = vec![analysis.raw.trim().to_owned()];
    // Quotes may hide a separator from the crude look, never the other way round; only what cannot be
    // parsed for certain is looked at crudely, or a quoted text would be taken for a command.
    if analysis.unclear.is_some() {
        texts.extend(crude_pieces(&analysis.raw));
    }
    texts.extend(analysis.parts.iter().flat_map(Part::spellings));
    if let Some(rule) = rules.denied(request.agent, request.tool, &Subject::Command(&texts), &policy.roots) {
        return Some(rule);
    }
    let touched = |redirect: &Redirect| (redirect.writes(), redirect.target.clone());
    let words = analysis
        .all_redirects()
        .map(touched)
        .chain(analysis.parts.iter().flat_map(|p| written(p).into_iter().map(|w| (true, w))))
        .chain(analysis.parts.iter().flat_map(named).map(|w| (false, w)));
    let known = if places.is_empty() { std::slice::from_ref(&policy.roots.workspace) } else { places };
    for (writes, word) in words {
        for path in paths(policy, &word, known) {
            let tools: &[&str] = if writes { &["write_file", "edit_file", "patch"] } else { &["read_file"] };
            for tool in tools {
                if let Some(rule) = rules.denied(request.agent, tool, &Subject::Path(&path), &policy.roots) {
                    // `deny write_file` without an argument is about the tool, not about every path.
                    if rule.text().contains('(') {
                        return Some(rule);
                    }
                }
            }
        }
    }
    None
}

/// The words of a part that may name a file which it reads, also inside options and code.
fn named(part: &Part) -> Vec<Word> {
    let mut out = part.args().to_vec();
    for word in part.args() {
        // `if=file`, `--file=file`, `-d @file`, `HEAD:file`
        let values = [word.text.split_once('=').map(|(_, v)| v), Some(word.text.as_str())];
        for value in values.into_iter().flatten() {
            let ends = [Some(value.trim_start_matches('@')), value.split_once(':').map(|(_, v)| v)];
            out.extend(
                ends.into_iter()
                    .flatten()
                    .filter(|v| *v != word.text)
                    .map(|v| Word { text: v.to_owned(), ..word.clone() }),
            );
        }
    }
    let code = part.args().iter().chain(&part.stdin).filter(|_| takes_code(&part.base()));
    out.extend(code.flat_map(|w| quoted(&w.text)).map(Word::fixed));
    if part.wrappers.iter().any(|w| w == "xargs") {
        out.extend(part.stdin.iter().flat_map(|w| w.text.split_whitespace()).map(Word::fixed));
    }
    out
}

/// The paths that a word may stand for, where deny rules are concerned: what is known of it, and for
/// a pattern of names the names in the rules that it may hit.
fn paths(policy: &Policy, word: &Word, places: &[PathBuf]) -> Vec<PathBuf> {
    let known = if word.dynamic {
        // The known end of a name is enough: `$PWD/secrets/key`.
        let end = word.text.rsplit(HOLE).next().unwrap_or_default().trim_start_matches('/');
        let end = Word { text: end.to_owned(), dynamic: false, tilde: false, ..word.clone() };
        if end.text.is_empty() || !word.text.contains('/') {
            vec![]
        } else {
            policy.roots.candidates(&end, places).unwrap_or_default()
        }
    } else {
        policy.roots.candidates(word, places).unwrap_or_default()
    };
    if !word.glob {
        return known;
    }
    let ruled: Vec<PathBuf> = policy
        .rules
        .rules()
        .iter()
        .filter(|r| r.effect == Effect::Deny)
        .filter_map(|r| r.plain_path().map(|p| policy.roots.workspace.join(p)))
        .collect();
    known
        .iter()
        .flat_map(|path| std::iter::once(path.clone()).chain(ruled.iter().filter_map(|rule| hit(path, rule))))
        .collect()
}

/// `path` with the names of `rule` in the place of patterns that may stand for them.
fn hit(path: &Path, rule: &Path) -> Option<PathBuf> {
    let names: Vec<_> = rule.components().collect();
    let parts: Vec<_> = path.components().collect();
    if parts.len() < names.len() {
        return None;
    }
    let mut out = PathBuf::new();
    for (at, part) in parts.iter().enumerate() {
        let text = part.as_os_str().to_string_lossy();
        let name = names.get(at).map(|n| n.as_os_str());
        match name {
            Some(name) if text.contains(['*', '?', '[']) => {
                let pattern = globset::GlobBuilder::new(&text).case_insensitive(true).build().ok()?;
                if !pattern.compile_matcher().is_match(Path::new(name)) {
                    return None;
                }
                out.push(name);
            }
            _ => out.push(part),
        }
    }
    Some(out)
}

/// The ask rule that some part meets.
fn asked<'a>(policy: &'a Policy, request: &Request<'_>, analysis: &Analysis) -> Option<&'a Rule> {
    let raw = vec![analysis.raw.trim().to_owned()];
    std::iter::once(raw).chain(analysis.parts.iter().map(Part::spellings)).find_map(|spellings| {
        policy.rules.said(request.agent, request.tool, &Subject::Command(&spellings), &policy.roots).ask
    })
}

/// A rule of the person's that names this command and nothing else. Only such a rule may allow what is
/// dangerous, and only when it is all there is to the command.
fn exactly_allowed<'a>(policy: &'a Policy, request: &Request<'_>, analysis: &Analysis) -> Option<&'a Rule> {
    let [part] = analysis.parts.as_slice() else { return None };
    if analysis.all_redirects().any(Redirect::writes) || !analysis.is_plain() || part.stdin.is_some() {
        return None;
    }
    let text = [part.text()];
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
) -> Vec<&'a Part> {
    analysis
        .parts
        .iter()
        .filter(|p| !matches!(p.role, Role::Transparent | Role::Guess))
        .filter(|p| {
            let text = [p.text()];
            let allowed =
                policy.rules.said(agent, tool, &Subject::Command(&text), &policy.roots).allow.is_some();
            // Where the folder is not known, nothing is known to only look at the workspace.
            !allowed && (places.is_empty() || !part_is_harmless(p, &policy.roots, places))
        })
        .collect()
}

/// True when a redirection writes, or reads, what is not allowed to be.
fn open_writes(policy: &Policy, request: &Request<'_>, analysis: &Analysis, places: &[PathBuf]) -> bool {
    analysis.all_redirects().any(|r| {
        if !r.writes() {
            return r.kind == crate::shell::RedirectKind::Read && !inside(&r.target, &policy.roots, places);
        }
        let Some(paths) = policy.roots.candidates(&r.target, places) else { return true };
        let edits = request.profile == Profile::AutoEdit;
        !paths.iter().all(|p| {
            let free = edits && policy.roots.inside(p) && !instructions(p);
            let said = policy.rules.said(request.agent, "write_file", &Subject::Path(p), &policy.roots);
            said.deny.is_none() && said.ask.is_none() && (free || said.allow.is_some())
        }) || paths.is_empty()
    })
}

fn allow_words(policy: &Policy, request: &Request<'_>, analysis: &Analysis) -> String {
    let mut words: Vec<String> = Vec::new();
    for part in &analysis.parts {
        let text = [part.text()];
        let said = policy.rules.said(request.agent, request.tool, &Subject::Command(&text), &policy.roots);
        if let Some(rule) = said.allow {
            let rule = rule.words();
            if !words.contains(&rule) {
                words.push(rule);
            }
        }
    }
    if words.is_empty() { "built in: it only looks".into() } else { words.join("; ") }
}
