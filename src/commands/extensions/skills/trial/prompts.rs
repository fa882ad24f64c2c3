//! Past prompts, and which of them a skill should answer to.

use std::collections::{BTreeMap, BTreeSet};

use tiller_protocol::Notice;
use tiller_protocol::command::HistoryScope;
use tiller_store::{Filter, Store};

use crate::app::Setup;

/// Past prompts that are looked at.
const HISTORY: u32 = 3000;
/// Bytes of a prompt that is repeated.
const PROMPT: std::ops::RangeInclusive<usize> = 12..=8_000;

/// A past prompt, as it would be without `$NAME` of the skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PastPrompt {
    pub(super) text: String,
    /// It named the skill as `$NAME`: the skill should answer to it.
    pub(super) named: bool,
}

/// The user's prompts in this folder, newest first.
pub(super) fn past_prompts(setup: &Setup, store: &Store, skill: &str) -> Result<Vec<PastPrompt>, Notice> {
    let filter =
        Filter { project: Some(setup.project_name()), exec: true, archived: true, ..Filter::default() };
    let sessions = store.sessions().list(&filter).map_err(|e| e.notice())?;
    let Some(session) = sessions.first() else { return Ok(Vec::new()) };
    let all = store.prompts().list(session.id, HistoryScope::Project, "", HISTORY).map_err(|e| e.notice())?;
    let mut seen = BTreeSet::new();
    let all = all.iter().filter_map(|prompt| usable(prompt, skill));
    Ok(all.filter(|prompt| seen.insert(prompt.text.clone())).collect())
}

/// A prompt that can be tried; `None`: it is a command, a note, the text of `/init`, or it loads another skill.
fn usable(prompt: &str, skill: &str) -> Option<PastPrompt> {
    let text = unnamed(prompt, skill);
    let named = text != prompt;
    let begins = if named { text.trim_start() } else { prompt.trim_start() };
    let init = tiller_tui::slash::init_message("");
    let fits = PROMPT.contains(&prompt.trim().len())
        && !begins.starts_with(['/', '!', '#', '$'])
        && !begins.starts_with(init.as_str());
    fits.then_some(PastPrompt { text, named })
}

/// A prompt with the name of a skill in place of `$NAME`, which loads the skill: a trial compares whether its description
/// makes the agent load it, and a run without the skill has nothing to load.
fn unnamed(prompt: &str, skill: &str) -> String {
    let mark = format!("${skill}");
    let mut text = String::new();
    let mut rest = prompt;
    while let Some(at) = rest.find(&mark) {
        let behind = &rest[at + mark.len()..];
        let longer = behind.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/'));
        text.push_str(&rest[..at]);
        text.push_str(if longer { &mark } else { skill });
        rest = behind;
    }
    text + rest
}

/// Words that say something, in lower case, without endings.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    const COMMON: &str = "the and for with that this from when what use how you your are not all any can into its does before after then name description license mit skill task file agent metadata version please have has was will make";
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let words = words
        .filter(|word| word.chars().count() > 2 && !COMMON.split(' ').any(|common| common == word.as_str()));
    words
        .map(|word| {
            let stem = ["ing", "ed", "es", "s"].iter().find_map(|ending| word.strip_suffix(ending));
            stem.filter(|stem| stem.len() > 3).unwrap_or(&word).to_owned()
        })
        .collect()
}

/// The prompts that named the skill and then those that share most with its words, and those that share none, each newest first.
pub(super) fn choose(
    skill: &BTreeSet<String>,
    prompts: &[PastPrompt],
    meant: usize,
    others: usize,
) -> (Vec<String>, Vec<String>) {
    let of: Vec<BTreeSet<String>> = prompts.iter().map(|prompt| words(&prompt.text)).collect();
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
        .filter(|(at, score)| *score == 0.0 && !prompts[*at].named)
        .take(others)
        .map(|(at, _)| prompts[*at].text.clone())
        .collect();
    all.retain(|(at, score)| *score > 0.0 || prompts[*at].named);
    let named = |at: usize| prompts[at].named;
    all.sort_by(|a, b| named(b.0).cmp(&named(a.0)).then(b.1.total_cmp(&a.1)).then(a.0.cmp(&b.0)));
    (all.into_iter().take(meant).map(|(at, _)| prompts[at].text.clone()).collect(), apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_names_the_skill_is_tried_without_the_mark() {
        assert_eq!(unnamed("please $deploy it ($deploy).", "deploy"), "please deploy it (deploy).");
        assert_eq!(
            unnamed("echo $deploy_dir $deploy-all $deploy", "deploy"),
            "echo $deploy_dir $deploy-all deploy"
        );
    }

    #[test]
    fn prompts_that_name_the_skill_are_tried_and_generated_ones_are_not() {
        let named = usable("$deploy the service to staging", "deploy").unwrap();
        assert_eq!((named.text.as_str(), named.named), ("deploy the service to staging", true));
        let plain = usable("deploy the service to staging", "deploy").unwrap();
        assert!(!plain.named);
        for other in [
            "$notes about the parser",
            "$HOME is wrong here",
            "/goal ship the release",
            "# remember this one",
        ] {
            assert_eq!(usable(other, "deploy"), None, "{other}");
        }
        for wishes in ["", "Be brief, and name the tests."] {
            assert_eq!(usable(&tiller_tui::slash::init_message(wishes), "deploy"), None);
        }
    }

    #[test]
    fn prompts_are_chosen_by_the_words_of_the_skill() {
        let skill = words("deploy: Deploys the service to staging and production. Use it for releases.");
        let prompts: Vec<PastPrompt> = [
            "rename the field in the parser",
            "please deploy the new version to staging",
            "is the service deployed?",
            "write a test for the parser",
            "release the service: deploy it to production",
        ]
        .map(|text| PastPrompt { text: text.to_owned(), named: false })
        .into();
        let (meant, others) = choose(&skill, &prompts, 2, 5);
        let text = |at: usize| prompts[at].text.clone();
        assert_eq!(meant, [text(4), text(1)]);
        assert_eq!(others, [text(0), text(3)]);
        let mut prompts = prompts.clone();
        prompts[3].named = true;
        let (meant, others) = choose(&skill, &prompts, 2, 5);
        assert_eq!(meant, [text(3), text(4)], "one that named the skill goes first");
        assert_eq!(others, [text(0)]);
        assert_eq!(choose(&skill, &[], 3, 3), (Vec::new(), Vec::new()));
    }
}
