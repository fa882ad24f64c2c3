//! `tiller skills try`: runs a skill on the user's own past prompts, with and without it, each run in a copy of the folder.
//! The folder itself is not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiller_engine::compare::scratch::{Scratch, ScratchLimits, lay_out};
use tiller_protocol::Notice;
use tiller_protocol::command::HistoryScope;
use tiller_store::{Filter, SkillUse, SkillUseKind, Store};

use super::fetch::{Interrupt, shown};
use super::install::count;
use super::{list, user};
use crate::app::{Setup, files};
use crate::commands::args::SkillTrial;
use crate::commands::batch::results::CaseResult;
use crate::commands::sessions::one_line;
use crate::commands::{Exit, json_line, say, say_beside};

/// Time limit of one run.
const RUN: Duration = Duration::from_secs(15 * 60);
const LOOK: Duration = Duration::from_millis(50);
/// Past prompts that are looked at.
const HISTORY: u32 = 3000;
/// Bytes of a prompt that is repeated.
const PROMPT: std::ops::RangeInclusive<usize> = 12..=8_000;
/// Bytes of the events of a run at most.
const EVENTS: u64 = 64 << 20;

/// The skill that is tried.
struct Tried {
    name: String,
    /// Words that tell which prompts are about it.
    words: BTreeSet<String>,
    /// Its folder where it is not in use yet.
    folder: Option<PathBuf>,
}

/// How one run ended.
#[derive(Clone, Debug, Default)]
struct Run {
    /// The agent loaded the skill.
    used: bool,
    result: CaseResult,
    /// Its check succeeded; `None`: there was none.
    checked: Option<bool>,
}

/// A prompt with its runs.
struct Case {
    prompt: String,
    /// The skill should answer to it.
    meant: bool,
    with: Run,
    /// Only of prompts that it should answer to.
    without: Option<Run>,
}

pub(super) fn run(setup: &Setup, trial: &SkillTrial, json: bool) -> Result<Exit, Notice> {
    let store = setup.open_store()?;
    let tried = find(setup, &store, &trial.skill)?;
    let prompts = past_prompts(setup, &store)?;
    let (meant, others) = choose(&tried.words, &prompts, trial.prompts.into(), trial.others.into());
    if meant.is_empty() {
        return Err(user(format!(
            "None of your past prompts in this folder is like the skill {}.",
            tried.name
        ))
        .hint("It can be tried once you have worked on such a task here."));
    }
    let runs = meant.len() * 2 + others.len();
    if !json {
        let mut text = format!("Prompts that {} should answer to\n", tried.name);
        meant.iter().for_each(|prompt| text.push_str(&format!("  {}\n", brief(prompt, 90))));
        if !others.is_empty() {
            text.push_str("Prompts that it should not answer to\n");
            others.iter().for_each(|prompt| text.push_str(&format!("  {}\n", brief(prompt, 90))));
        }
        text.push_str(&format!(
            "{} in copies of this folder, at most ${:.2} in all; what they do elsewhere is judged as usual.\n",
            count(runs, "run"),
            trial.max_cost
        ));
        say(&text)?;
    }
    if !agreed(trial)? {
        return say("Nothing was run.\n");
    }
    let stop = Interrupt::listen();
    let bench = Bench { setup, trial, tried: &tried, stop: &stop, budget: trial.max_cost, runs };
    let cases = bench.all(&meant, &others)?;
    if stop.hit() {
        return Ok(Exit::Interrupted);
    }
    keep(&store, &tried.name, &cases)?;
    let over = cases.len() < meant.len() + others.len();
    say(&if json { report_json(&tried.name, &cases, over) } else { report(&tried.name, &cases, over) })?;
    Ok(if over { Exit::Limit } else { Exit::Done })
}

/// The skill of this name, or in this folder.
fn find(setup: &Setup, store: &Store, text: &str) -> Result<Tried, Notice> {
    let folder = Path::new(text);
    let file = folder.join("SKILL.md");
    let (name, about, folder) = if file.is_file() {
        if !setup.trust(store).may_load() {
            return Err(user("A skill that is not in use yet is tried in a copy of a trusted folder only.")
                .hint("`tiller trust` shows what this folder brings, and asks."));
        }
        if let Some(problem) = tiller_skills::validate(folder).first() {
            return Err(user(format!("The skill is not valid: {}.", one_line(&problem.to_string())))
                .hint("`tiller skills validate` names every problem."));
        }
        let folder =
            folder.canonicalize().map_err(|e| user(format!("{} cannot be read: {e}.", shown(text))))?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        (name, text, Some(folder))
    } else {
        let all = list::skills(setup)?;
        let skill = all.get(text).ok_or_else(|| user(format!("{}.", list::capital(&all.no_such(text)))))?;
        (skill.name.clone(), format!("{} {}", skill.name, skill.description), None)
    };
    Ok(Tried { words: words(&about), name, folder })
}

/// The user's prompts in this folder, newest first.
fn past_prompts(setup: &Setup, store: &Store) -> Result<Vec<String>, Notice> {
    let filter =
        Filter { project: Some(setup.project_name()), exec: true, archived: true, ..Filter::default() };
    let sessions = store.sessions().list(&filter).map_err(|e| e.notice())?;
    let Some(session) = sessions.first() else { return Ok(Vec::new()) };
    let all = store.prompts().list(session.id, HistoryScope::Project, "", HISTORY).map_err(|e| e.notice())?;
    let fits = |prompt: &String| {
        PROMPT.contains(&prompt.trim().len()) && !prompt.trim_start().starts_with(['/', '!', '#', '$'])
    };
    Ok(all.into_iter().filter(fits).collect())
}

/// Words that say something, in lower case, without endings.
fn words(text: &str) -> BTreeSet<String> {
    const COMMON: &[&str] = &[
        "the",
        "and",
        "for",
        "with",
        "that",
        "this",
        "from",
        "when",
        "what",
        "use",
        "how",
        "you",
        "your",
        "are",
        "not",
        "all",
        "any",
        "can",
        "into",
        "its",
        "does",
        "before",
        "after",
        "then",
        "name",
        "description",
        "license",
        "mit",
        "skill",
        "task",
        "file",
        "agent",
        "metadata",
        "version",
        "please",
        "have",
        "has",
        "was",
        "will",
        "make",
    ];
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let words = words.filter(|word| word.chars().count() > 2 && !COMMON.contains(&word.as_str()));
    words
        .map(|word| {
            let stem = ["ing", "ed", "es", "s"].iter().find_map(|ending| word.strip_suffix(ending));
            stem.filter(|stem| stem.len() > 3).unwrap_or(&word).to_owned()
        })
        .collect()
}

/// The prompts that share most with the skill's words, and those that share none, each newest first.
fn choose(
    skill: &BTreeSet<String>,
    prompts: &[String],
    meant: usize,
    others: usize,
) -> (Vec<String>, Vec<String>) {
    let of: Vec<BTreeSet<String>> = prompts.iter().map(|prompt| words(prompt)).collect();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for word in of.iter().flatten() {
        *known.entry(word).or_default() += 1;
    }
    // A rare word says more than one that is in every prompt.
    let weight =
        |word: &String| (1.0 + prompts.len() as f64 / *known.get(word.as_str()).unwrap_or(&1) as f64).ln();
    let score = |at: usize| of[at].intersection(skill).map(weight).sum::<f64>();
    let mut all: Vec<(usize, f64)> = (0..prompts.len()).map(|at| (at, score(at))).collect();
    let apart = all
        .iter()
        .filter(|(_, score)| *score == 0.0)
        .take(others)
        .map(|(at, _)| prompts[*at].clone())
        .collect();
    all.retain(|(_, score)| *score > 0.0);
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    (all.into_iter().take(meant).map(|(at, _)| prompts[at].clone()).collect(), apart)
}

fn agreed(trial: &SkillTrial) -> Result<bool, Notice> {
    if trial.yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(user("Nothing was run: there is no terminal to ask on.").hint("Pass --yes if you agree."));
    }
    // Without a visible question there is no consent.
    let _ = write!(std::io::stderr(), "Run them? Type yes: ");
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    Ok(read.is_ok() && line.trim() == "yes")
}

/// What all runs share.
struct Bench<'a> {
    setup: &'a Setup,
    trial: &'a SkillTrial,
    tried: &'a Tried,
    stop: &'a Interrupt,
    /// Dollars of all runs.
    budget: f64,
    runs: usize,
}

impl Bench<'_> {
    /// Runs all prompts until the money is used up.
    fn all(&self, meant: &[String], others: &[String]) -> Result<Vec<Case>, Notice> {
        let mut cases = Vec::new();
        let (mut spent, mut ran) = (0.0, 0);
        let both =
            meant.iter().map(|prompt| (prompt, true)).chain(others.iter().map(|prompt| (prompt, false)));
        for (prompt, meant) in both {
            let wanted = if meant { 2 } else { 1 };
            let left = self.budget - spent;
            if left <= 0.0 || self.stop.hit() {
                break;
            }
            // What a run leaves over is for the later ones.
            let limit = left / (self.runs - ran) as f64;
            let with = self.one(prompt, true, limit)?;
            let without =
                if meant && !self.stop.hit() { Some(self.one(prompt, false, limit)?) } else { None };
            spent += [Some(&with), without.as_ref()]
                .into_iter()
                .flatten()
                .filter_map(|run| run.result.cost_usd)
                .sum::<f64>();
            ran += wanted;
            say_beside(&format!("{ran} of {} runs", self.runs));
            cases.push(Case { prompt: prompt.clone(), meant, with, without });
        }
        Ok(cases)
    }

    /// One run in a copy of the folder.
    fn one(&self, prompt: &str, with: bool, limit: f64) -> Result<Run, Notice> {
        let tmp = tempfile::Builder::new().prefix("tiller-try-").tempdir();
        let tmp = tmp.map_err(|e| user(format!("There is no room for temporary files: {e}.")))?;
        // Programs and rules see the real path.
        let root = tmp.path().canonicalize().map_err(|e| user(format!("{}: {e}.", tmp.path().display())))?;
        let copy =
            Scratch::new(root.join("folder")).map_err(|e| user(format!("The copy cannot be made: {e}.")))?;
        self.copy(copy.path())?;
        let mut args: Vec<String> = ["exec", "--json", "--ephemeral"].map(str::to_owned).into();
        args.push(format!("--max-cost={limit:.6}"));
        let common = &self.trial.common;
        args.extend(common.model.iter().map(|model| format!("--model={model}")));
        let profile = common.profile.and_then(|profile| clap::ValueEnum::to_possible_value(&profile));
        args.push(format!(
            "--profile={}",
            profile.as_ref().map_or("auto-edit", |profile| profile.get_name())
        ));
        if !with {
            args.push(format!("--without-skill={}", self.tried.name));
        } else if let Some(folder) = &self.tried.folder {
            let into = copy.path().join(".tiller/skills").join(&self.tried.name);
            let made = std::fs::create_dir_all(&into).map_err(|e| e.to_string());
            made.and_then(|()| tiller_fs::archive::copy(folder, &into, tiller_skills::packs::LIMITS))
                .map_err(|why| user(format!("The skill cannot be copied: {why}.")))?;
        }
        if self.tried.folder.is_some() {
            // It was trusted, and the copy is the same but for the skill.
            args.push("--trust".into());
        }
        args.push("-".into());
        let events = self.start(&args, copy.path(), &root, prompt)?;
        let used = loads(&events, &self.tried.name);
        let mut result = CaseResult::read(&events).unwrap_or_default();
        if result.status.is_empty() {
            result.status = "failed".into();
        }
        let checked = match &self.trial.check {
            Some(check) if !self.stop.hit() => Some(self.check(check, copy.path(), &root)?),
            _ => None,
        };
        Ok(Run { used, result, checked })
    }

    /// Copies the files that snapshots hold: without what git ignores.
    fn copy(&self, into: &Path) -> Result<(), Notice> {
        let Some(keeper) = files::keeper(self.setup) else {
            return Err(user("A trial needs snapshots of this folder, which the settings turn off.")
                .hint("Set enabled = true in [snapshots] of config.toml."));
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| user(format!("The copy cannot be made: {e}.")))?;
        runtime.block_on(async {
            let state = keeper.run(|shadow| shadow.snapshot()).await.map_err(|e| e.notice())?.id;
            lay_out(&keeper, state, into, ScratchLimits::default()).await
        })
    }

    /// Runs Tiller. Returns its events.
    fn start(&self, args: &[String], folder: &Path, root: &Path, prompt: &str) -> Result<String, Notice> {
        let failed = |e: std::io::Error| user(format!("The run cannot be started: {e}."));
        let (ask, out) = (root.join("prompt"), root.join("events"));
        std::fs::write(&ask, prompt).map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(args).current_dir(folder);
        command.stdin(std::fs::File::open(&ask).map_err(failed)?).stderr(Stdio::null());
        command.stdout(std::fs::File::create(&out).map_err(failed)?);
        let mut child = command.spawn().map_err(failed)?;
        self.wait(&mut child).map_err(failed)?;
        let mut events = String::new();
        std::fs::File::open(&out)
            .and_then(|file| file.take(EVENTS).read_to_string(&mut events))
            .map_err(|e| user(format!("The events of a run cannot be read: {e}.")))?;
        Ok(events)
    }

    /// Runs the user's check on the files that a run left, in the sandbox.
    fn check(&self, check: &str, folder: &Path, root: &Path) -> Result<bool, Notice> {
        let failed = |e: std::io::Error| user(format!("The check cannot be started: {e}."));
        let program = std::env::current_exe().map_err(failed)?;
        let out = std::fs::File::create(root.join("check")).map_err(failed)?;
        let errors = out.try_clone().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["sandbox", "run", "--", "/bin/sh", "-c", check])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .spawn()
            .map_err(failed)?;
        Ok(self.wait(&mut child).map_err(failed)?.is_some_and(|status| status.success()))
    }

    /// Waits for the end of a process; `None`: it took too long and was ended.
    fn wait(&self, child: &mut Child) -> std::io::Result<Option<std::process::ExitStatus>> {
        let until = Instant::now() + RUN;
        let mut asked = None;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            let now = Instant::now();
            if asked.is_none() && (self.stop.hit() || now >= until) {
                // It ends what it has started.
                let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
                if let Some(pid) = pid {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                }
                asked = Some(now);
            }
            if asked.is_some_and(|at| now > at + Duration::from_secs(20)) {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            std::thread::park_timeout(LOOK);
        }
    }
}

/// Whether the agent loaded the skill.
fn loads(events: &str, name: &str) -> bool {
    events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).any(|event| {
        event["type"] == "tool_finished"
            && event["name"] == "skill_view"
            && event["ok"] == true
            && event["arguments"]["name"] == name
    })
}

/// Stores what the runs brought.
fn keep(store: &Store, skill: &str, cases: &[Case]) -> Result<(), Notice> {
    let row = |run: &Run, kind| SkillUse {
        skill: skill.to_owned(),
        session: None,
        kind,
        done: run.result.is_done(),
        checked: run.checked,
        cost: run.result.cost_usd.map(tiller_protocol::Cost::from_usd),
        tokens: run.result.usage.context().saturating_add(run.result.usage.output),
    };
    let with = cases.iter().filter(|case| case.meant).map(|case| row(&case.with, SkillUseKind::With));
    let without = cases.iter().filter_map(|case| case.without.as_ref());
    let rows = with.chain(without.map(|run| row(run, SkillUseKind::Without))).collect();
    store.skill_uses().add(rows).wait().map_err(|e| e.notice())
}

fn brief(text: &str, most: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(most).collect();
    one_line(&line)
}

/// Sums of runs.
#[derive(Default)]
struct Sum {
    runs: usize,
    used: usize,
    done: usize,
    checked: usize,
    passed: usize,
    cost: f64,
    tokens: u64,
    seconds: f64,
}

impl Sum {
    fn of<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        runs.fold(Self::default(), |sum, run| Self {
            runs: sum.runs + 1,
            used: sum.used + usize::from(run.used),
            done: sum.done + usize::from(run.result.is_done()),
            checked: sum.checked + usize::from(run.checked.is_some()),
            passed: sum.passed + usize::from(run.checked == Some(true)),
            cost: sum.cost + run.result.cost_usd.unwrap_or_default(),
            tokens: sum.tokens + run.result.usage.context() + run.result.usage.output,
            seconds: sum.seconds + run.result.seconds,
        })
    }

    fn row(&self, what: &str, used: bool) -> String {
        let of = |n: usize, all: usize| if all == 0 { "-".to_owned() } else { format!("{n} of {all}") };
        let used = if used { of(self.used, self.runs) } else { "-".into() };
        format!(
            "{what:24} {used:>8} {:>8} {:>8} {:>9} {:>9} {:>7.0} s\n",
            of(self.done, self.runs),
            of(self.passed, self.checked),
            format!("${:.4}", self.cost),
            self.tokens,
            self.seconds
        )
    }

    fn json(&self) -> Value {
        json!({
            "runs": self.runs, "used": self.used, "done": self.done, "checked": self.checked, "passed": self.passed,
            "cost_usd": self.cost, "tokens": self.tokens, "seconds": self.seconds,
        })
    }
}

/// The three sums of a trial: with and without the skill, and prompts that it should not answer to.
fn sums(cases: &[Case]) -> [Sum; 3] {
    let meant = || cases.iter().filter(|case| case.meant);
    [
        Sum::of(meant().map(|case| &case.with)),
        Sum::of(meant().filter_map(|case| case.without.as_ref())),
        Sum::of(cases.iter().filter(|case| !case.meant).map(|case| &case.with)),
    ]
}

fn report(name: &str, cases: &[Case], over: bool) -> String {
    let mut text = String::from("\n");
    for case in cases {
        let run = |run: &Run| {
            let check =
                run.checked.map_or("", |passed| if passed { ", check passed" } else { ", check failed" });
            format!("{}{check}", one_line(&run.result.status))
        };
        let used = if case.with.used { "used" } else { "not used" };
        let without =
            case.without.as_ref().map(|case| format!("; without: {}", run(case))).unwrap_or_default();
        text.push_str(&format!(
            "{}\n    with: {used}, {}{without}\n",
            brief(&case.prompt, 76),
            run(&case.with)
        ));
    }
    let [with, without, others] = sums(cases);
    text.push_str(&format!(
        "\n{:24} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9}\n",
        name.chars().take(24).collect::<String>(),
        "used",
        "done",
        "check",
        "cost",
        "tokens",
        "time"
    ));
    text.push_str(&with.row("With it", true));
    text.push_str(&without.row("Without it", false));
    if others.runs > 0 {
        text.push_str(&others.row("Should not be used", true));
    }
    if over {
        text.push_str("The budget is used up; a larger --max-cost runs the other prompts, too.\n");
    }
    text
}

fn report_json(name: &str, cases: &[Case], over: bool) -> String {
    let run = |run: &Run| {
        json!({
            "used": run.used, "status": run.result.status, "checked": run.checked, "cost_usd": run.result.cost_usd,
            "tokens": run.result.usage.context() + run.result.usage.output, "seconds": run.result.seconds,
        })
    };
    let mut text = String::new();
    for case in cases {
        text.push_str(&json_line(&json!({
            "prompt": case.prompt, "meant": case.meant, "with": run(&case.with),
            "without": case.without.as_ref().map(run),
        })));
    }
    let [with, without, others] = sums(cases);
    text.push_str(&json_line(&json!({
        "skill": name, "with": with.json(), "without": without.json(), "others": others.json(), "budget_used_up": over,
    })));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_chosen_by_the_words_of_the_skill() {
        let skill = words("deploy: Deploys the service to staging and production. Use it for releases.");
        let prompts: Vec<String> = [
            "rename the field in the parser",
            "please deploy the new version to staging",
            "is the service deployed?",
            "write a test for the parser",
            "release the service: deploy it to production",
        ]
        .map(str::to_owned)
        .into();
        let (meant, others) = choose(&skill, &prompts, 2, 5);
        assert_eq!(meant, [prompts[4].clone(), prompts[1].clone()]);
        assert_eq!(others, [prompts[0].clone(), prompts[3].clone()]);
        assert_eq!(choose(&skill, &[], 3, 3), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_load_of_this_very_skill_counts() {
        let event = |name: &str, ok: bool| {
            json!({"type": "tool_finished", "name": "skill_view", "ok": ok, "arguments": {"name": name}})
                .to_string()
        };
        let loaded = format!("{}\nnoise\n{}\n", event("other", true), event("deploy", true));
        assert!(loads(&loaded, "deploy") && loads(&loaded, "other"));
        assert!(!loads(&event("deploy", false), "deploy") && !loads("", "deploy"));
    }
}
