//! The cases of a batch: a file with one JSON object per line.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use clap::ValueEnum;
use serde::Deserialize;
use tiller_protocol::{Cost, Profile};

use crate::commands::args::{Common, ProfileArg};

/// Longest identifier of a case, in bytes.
const ID: usize = 100;
/// Errors of one file that are shown.
const ERRORS: usize = 20;

/// One case. What it leaves open, the command line says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// Letters, digits, `.`, `_` and `-`; the number of the line by default.
    #[serde(default)]
    pub(super) id: String,
    pub(super) prompt: String,
    /// Folder of the case, below that of the batch unless it is absolute.
    #[serde(default)]
    dir: Option<PathBuf>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    profile: Option<String>,
    #[serde(default)]
    effort: Option<String>,
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    max_turns: Option<u32>,
    /// In US dollars.
    #[serde(default)]
    max_cost: Option<f64>,
    /// Tells whether the case is the same as one that has a result.
    #[serde(skip)]
    pub(super) hash: String,
}

impl Case {
    /// All cases of a text.
    ///
    /// # Errors
    /// Sentences with the numbers of the lines.
    pub(super) fn read(text: &str) -> Result<Vec<Self>, Vec<String>> {
        let (mut cases, mut wrong, mut ids) = (Vec::new(), Vec::new(), HashSet::new());
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let number = at + 1;
            let mut problem = |why: String| wrong.push(format!("line {number}: {why}"));
            let mut case: Self = match serde_json::from_str(line) {
                Ok(case) => case,
                Err(e) => {
                    // Each line is a text of its own for the reader: its own number says nothing.
                    let why = e.to_string();
                    problem(why.split(" at line ").next().unwrap_or(&why).to_owned());
                    continue;
                }
            };
            if case.id.is_empty() {
                case.id = number.to_string();
            }
            case.hash = blake3::hash(line.trim().as_bytes()).to_hex()[..16].to_owned();
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            if !case.id.chars().all(plain) || case.id.starts_with(['.', '-']) || case.id.len() > ID {
                problem(format!("the id {:?} may have letters, digits, `.`, `_` and `-` only", case.id));
            } else if !ids.insert(case.id.to_lowercase()) {
                problem(format!("the id {} is there twice", case.id));
            } else if case.prompt.trim().is_empty() {
                problem("the prompt is empty".into());
            } else if case.max_cost.is_some_and(|usd| !usd.is_finite() || usd < 0.0) {
                problem("max_cost is an amount in dollars of at least 0".into());
            }
            cases.push(case);
        }
        if wrong.is_empty() {
            return Ok(cases);
        }
        let more = wrong.len().saturating_sub(ERRORS);
        wrong.truncate(ERRORS);
        if more > 0 {
            wrong.push(format!("and {more} more"));
        }
        Err(wrong)
    }

    /// Its own limit.
    pub(super) fn limit(&self) -> Option<Cost> {
        self.max_cost.map(Cost::from_usd)
    }

    /// Its folder; `base`: that of the batch.
    pub(super) fn folder(&self, base: &Path) -> PathBuf {
        self.dir.as_ref().map_or_else(|| base.to_owned(), |dir| base.join(dir))
    }

    /// The fields by which it may do more than it could without them. `given`: the profile without its own. `base`: the folder
    /// of the batch; `None` on another machine, where a folder counts as it is spelled.
    pub(super) fn widens(&self, given: Profile, base: Option<&Path>) -> Vec<&'static str> {
        let inside = |dir: &PathBuf| {
            let spelled =
                dir.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            let leads_out = |base: &Path| {
                let real = base.join(dir).canonicalize().ok().zip(base.canonicalize().ok());
                // One that is missing is an error later.
                real.is_some_and(|(dir, base)| !dir.starts_with(base))
            };
            spelled && !base.is_some_and(leads_out)
        };
        let wider =
            |name: &String| ProfileArg::from_str(name, false).map_or(true, |own| Profile::from(own) > given);
        let fields = [
            ("profile", self.profile.as_ref().is_some_and(wider)),
            ("allow", !self.allow.is_empty()),
            ("dir", !self.dir.as_ref().is_none_or(inside)),
        ];
        fields.into_iter().filter(|(_, widens)| *widens).map(|(name, _)| name).collect()
    }

    /// Arguments of Tiller, which reads the prompt from standard input. `limit`: maximum cost.
    pub(super) fn arguments(&self, common: &Common, limit: Option<Cost>) -> Vec<String> {
        let mut args = vec!["exec".to_owned(), "--json".to_owned()];
        let mut put = |name: &str, value: Option<String>| {
            // In one word: a value may begin with a hyphen.
            args.extend(value.map(|value| format!("{name}={value}")));
        };
        put("--model", self.model.clone().or_else(|| common.model.clone()));
        put("--profile", self.profile.clone().or_else(|| common.profile.map(name_of)));
        put("--effort", self.effort.clone().or_else(|| common.effort.map(name_of)));
        put("--terminal", common.terminal.clone());
        self.allow.iter().for_each(|rule| put("--allow", Some(rule.clone())));
        self.deny.iter().for_each(|rule| put("--deny", Some(rule.clone())));
        put("--max-turns", self.max_turns.map(|n| n.to_string()));
        put("--max-cost", limit.map(|cost| format!("{:.6}", cost.usd())));
        args.push("-".into());
        args
    }
}

/// The name of a value on the command line.
fn name_of(value: impl clap::ValueEnum) -> String {
    value.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_line_is_named_and_the_right_ones_have_an_id() {
        let text = "{\"prompt\": \"a\"}\n\n{\"id\": \"b\", \"prompt\": \"b\"}\n";
        let cases = Case::read(text).unwrap();
        assert_eq!(cases.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(), ["1", "b"]);
        let wrong = "{\"prompt\": 1}\n{\"prompt\": \"a\", \"pormpt\": 1}\n{\"id\": \"../x\", \"prompt\": \"a\"}\n\
                     {\"id\": \"b\", \"prompt\": \"b\"}\n{\"id\": \"B\", \"prompt\": \"b\"}\n{\"prompt\": \" \"}\n\
                     {\"prompt\": \"a\", \"max_cost\": -1}\n[";
        let wrong = Case::read(wrong).unwrap_err();
        for (at, part) in [
            "line 1: invalid type",
            "line 2: unknown field `pormpt`",
            "line 3: the id \"../x\"",
            "line 5: the id B is there twice",
            "line 6: the prompt is empty",
            "line 7: max_cost",
            "line 8: ",
        ]
        .iter()
        .enumerate()
        {
            assert!(wrong[at].starts_with(part), "{part}: {wrong:?}");
        }
        assert_eq!(wrong.len(), 7);
        let many = "x\n".repeat(100);
        assert_eq!(Case::read(&many).unwrap_err().last().unwrap(), "and 80 more");
    }

    #[test]
    fn what_a_case_may_do_beyond_the_command_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("out")).unwrap();
        std::os::unix::fs::symlink("sub", folder.path().join("link")).unwrap();
        let here = Some(folder.path());
        for (fields, given, base, want) in [
            ("", Profile::Ask, here, &[][..]),
            ("\"profile\": \"plan\", \"dir\": \"a/b\", \"deny\": [\"x\"]", Profile::Ask, here, &[]),
            ("\"profile\": \"auto-edit\"", Profile::AutoEdit, here, &[]),
            ("\"profile\": \"auto-edit\"", Profile::Ask, here, &["profile"]),
            ("\"profile\": \"ask\"", Profile::Plan, here, &["profile"]),
            (
                "\"profile\": \"full\", \"allow\": [\"terminal\"], \"dir\": \"/etc\"",
                Profile::Ask,
                here,
                &["profile", "allow", "dir"],
            ),
            ("\"profile\": \"unheard of\"", Profile::Full, here, &["profile"]),
            ("\"dir\": \"a/../../b\"", Profile::Full, here, &["dir"]),
            ("\"dir\": \"sub\"", Profile::Ask, here, &[]),
            ("\"dir\": \"link\"", Profile::Ask, here, &[]),
            ("\"dir\": \"out\"", Profile::Full, here, &["dir"]),
            ("\"dir\": \"out/etc\"", Profile::Full, here, &["dir"]),
            ("\"dir\": \"out\"", Profile::Full, None, &[]),
        ] {
            let comma = if fields.is_empty() { "" } else { ", " };
            let case = Case::read(&format!("{{\"prompt\": \"a\"{comma}{fields}}}")).unwrap().remove(0);
            assert_eq!(case.widens(given, base), want, "{fields}");
        }
    }

    #[test]
    fn a_case_says_what_the_command_line_leaves_open_and_overrides_it() {
        let line = "{\"prompt\": \"a\", \"model\": \"demo/demo\", \"allow\": [\"-x\"], \"dir\": \"sub\"}";
        let case = Case::read(line).unwrap().remove(0);
        let common =
            Common { model: Some("x/y".into()), profile: Some(ProfileArg::AutoEdit), ..Common::default() };
        let args = case.arguments(&common, Some(Cost::from_usd(0.25)));
        let want = "exec --json --model=demo/demo --profile=auto-edit --allow=-x --max-cost=0.250000 -";
        assert_eq!(args.join(" "), want);
        assert_eq!(case.folder(Path::new("/base")), Path::new("/base/sub"));
    }
}
