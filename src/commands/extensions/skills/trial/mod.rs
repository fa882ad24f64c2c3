//! `tiller skills try`: runs a skill on the user's own past prompts, with and without it, each run in a copy of the folder.
//! The folder itself is not changed.
//!
//! | file | contents |
//! | --- | --- |
//! | `prompts` | past prompts, and which of them the skill should answer to |
//! | `bench` | the runs |
//! | `frozen` | the files of the skill, for all runs |
//! | `report` | what they brought |

mod bench;
mod frozen;
mod prompts;
mod report;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use tiller_config::agents::Origin;
use tiller_protocol::Notice;
use tiller_protocol::notice::capital;
use tiller_protocol::skill::SkillTrial as Kept;
use tiller_store::Store;

use self::bench::Bench;
use self::frozen::FrozenSkill;
use self::prompts::{choose, past_prompts, words};
use self::report::{brief, report, report_json, sums};
use super::describe::count;
use super::fetch::{Interrupt, shown};
use super::{list, user};
use crate::app::Setup;
use crate::commands::args::SkillTrial;
use crate::commands::batch::results::CaseResult;
use crate::commands::extensions::consent::{agreed, before_screen};
use crate::commands::sessions::one_line;
use crate::commands::{Exit, fail, json_line, say};

/// The skill that is tried.
struct TrialSkill {
    name: String,
    /// Words that tell which prompts are about it.
    words: BTreeSet<String>,
    /// Its files where a copy of the workspace does not have it by itself: it is not in use yet, or the project's.
    files: Option<FrozenSkill>,
    /// BLAKE3 of its `SKILL.md`, hex.
    text: String,
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
    let done = compare(setup, trial, json);
    if !trial.pause {
        return done;
    }
    // The screen comes back and hides what was said.
    let exit = done.unwrap_or_else(|notice| fail(&notice));
    Ok(before_screen(exit))
}

fn compare(setup: &Setup, trial: &SkillTrial, json: bool) -> Result<Exit, Notice> {
    let store = setup.open_store()?;
    let tried = find(setup, &store, &trial.skill)?;
    let prompts = past_prompts(setup, &store, &tried.name)?;
    let (meant, others) = choose(&tried.words, &prompts, trial.prompts.into(), trial.others.into());
    if meant.is_empty() {
        return Err(user(format!(
            "None of your past prompts in this folder is like the skill {}.",
            tried.name
        ))
        .hint("It can be tried once you have worked on such a task here."));
    }
    let runs = meant.len() * 2 + others.len();
    if json && !trial.yes {
        say(&json_line(&json!({
            "skill": tried.name, "prompts": meant, "others": others, "runs": runs, "max_cost_usd": trial.max_cost,
        })))?;
    } else if !json {
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
    let without = user("Nothing was run: there is no terminal to ask on.").hint("Pass --yes if you agree.");
    if !agreed("Run them?", trial.yes, without)? {
        return say("Nothing was run.\n");
    }
    let stop = Interrupt::listen();
    let bench = Bench { setup, trial, skill: &tried, stop: &stop, budget: trial.max_cost, runs };
    let cases = bench.all(&meant, &others)?;
    if stop.hit() {
        return Ok(Exit::Interrupted);
    }
    let over = cases.len() < meant.len() + others.len();
    let [with, without, apart] = sums(&cases).map(|sum| sum.kept());
    let kept = Kept { time: setup.clock.now(), text: tried.text, with, without, others: apart, cut: over };
    store.skill_uses().add_trial(&tried.name, &kept).wait().map_err(|e| e.notice())?;
    say(&if json { report_json(&tried.name, &cases, over) } else { report(&tried.name, &cases, over) })?;
    Ok(if over { Exit::Limit } else { Exit::Done })
}

/// The skill of this name, or else in this folder: a folder of that name comes with whatever repository is open.
fn find(setup: &Setup, store: &Store, text: &str) -> Result<TrialSkill, Notice> {
    let folder = Path::new(text);
    let file = folder.join("SKILL.md");
    let all = list::skills(setup)?;
    let not_read = |why: String| user(format!("The skill cannot be read: {why}."));
    let (name, about, files, bytes) = if all.get(text).is_none() && file.is_file() {
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
        let files = FrozenSkill::of_folder(&name, &folder).map_err(not_read)?;
        if !tiller_skills::validate(files.folder()).is_empty() {
            return Err(not_read("it changed meanwhile".into()));
        }
        let bytes = std::fs::read(files.folder().join("SKILL.md")).unwrap_or_default();
        (name, String::from_utf8_lossy(&bytes).into_owned(), Some(files), bytes)
    } else {
        let skill = all.get(text).ok_or_else(|| user(format!("{}.", capital(&all.no_such(text)))))?;
        let bytes = skill.files.read("SKILL.md").unwrap_or_default();
        // A copy is another folder, whose skills are not used unless it is trusted; and git may ignore them.
        let file = setup.project.join(&skill.file);
        let folder = file.parent().filter(|_| skill.from == Origin::Project);
        let frozen = |folder| FrozenSkill::of_files(&skill.name, &skill.files, folder).map_err(not_read);
        let files = folder.map(frozen).transpose()?;
        (skill.name.clone(), format!("{} {}", skill.name, skill.description), files, bytes)
    };
    let text = blake3::hash(&bytes).to_hex().to_string();
    Ok(TrialSkill { words: words(&about), name, files, text })
}
