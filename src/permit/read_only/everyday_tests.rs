//! How often people are asked about what only looks; and that the commands of the exploit corpus cover the table.

use std::sync::Arc;

use tiller_protocol::{Access, Profile, ShellState, Touch};

use super::table::{PROGRAMS, VERSIONS};
use super::*;
use crate::decide::{Human, Policy, Request, Verdict, decide_in};
use crate::surroundings::testing::Calm;

const EVERYDAY: &str = include_str!("everyday.txt");
const ROWS: &str = include_str!("rows.txt");

fn commands(text: &'static str) -> Vec<&'static str> {
    text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect()
}

fn asks(policy: &Policy, command: &str) -> bool {
    let folder = policy.roots.workspace.display().to_string();
    let access = [Access::Run { command: command.into(), folder, background: false }];
    let request = Request {
        profile: Profile::Ask,
        human: Human::Present,
        agent: "main",
        tool: "terminal",
        touch: Touch::Execute,
        access: &access,
        raw: "",
    };
    !matches!(decide_in(policy, &request, Some(&ShellState::default())), Verdict::Allow { .. })
}

#[test]
fn everyday_commands_that_only_look_seldom_ask() {
    let tmp = tempfile::tempdir().unwrap();
    let work = tmp.path().canonicalize().unwrap().join("work");
    for folder in ["src", "a"] {
        std::fs::create_dir_all(work.join(folder)).unwrap();
    }
    for file in ["README.md", "data.json", "src/main.rs", "src/lib.rs", "a/b.rs", "a/c.rs"] {
        std::fs::write(work.join(file), "x\n").unwrap();
    }
    let policy = Policy::new(Roots::new(&work, None, vec![]), crate::testing::tools()).within(Arc::new(Calm));
    let all = commands(EVERYDAY);
    assert!(all.len() >= 150, "{}", all.len());
    let asking: Vec<&str> = all.iter().copied().filter(|c| asks(&policy, c)).collect();
    println!(
        "{} of {} everyday commands that only look still ask ({:.1} %):\n{}",
        asking.len(),
        all.len(),
        100.0 * asking.len() as f64 / all.len() as f64,
        asking.join("\n")
    );
    assert!(asking.len() * 100 <= all.len() * 8, "{} of {}: {asking:?}", asking.len(), all.len());
}

/// The corpus is driven against hostile repositories elsewhere; here it is shown to leave out no row.
#[test]
fn every_row_of_the_table_is_in_the_corpus() {
    let rows = commands(ROWS);
    let used = |name: &str| {
        rows.iter()
            .any(|row| row.split(['|', '&', ';']).any(|part| part.split_whitespace().next() == Some(name)))
    };
    let special = ["git", "find", "sed", "awk", "jq", "command"];
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .map(|l| l.name)
        .chain(VERSIONS.iter().copied())
        .chain(special)
        .filter(|name| !used(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let subs = git::SUBCOMMANDS.iter().map(|(name, _)| name);
    let subs = subs.filter(|s| !rows.iter().any(|row| row.contains(&format!("git {s}"))));
    assert_eq!(subs.collect::<Vec<_>>(), Vec::<&&str>::new());
    let wrappers = WRAPPERS.iter().filter(|w| !rows.iter().any(|row| row.contains(&format!("{w} "))));
    assert_eq!(wrappers.collect::<Vec<_>>(), Vec::<&&str>::new());
}
