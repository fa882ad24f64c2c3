//! What holds for every skill that ships, and one test for each that tries it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use regex::Regex;

use super::case::{Case, all, play, root};

/// Folders of all skills that ship.
fn shipped() -> Vec<PathBuf> {
    let mut all = Vec::new();
    let skills = root().join("skills");
    let mut places = vec![skills.clone()];
    for group in [skills.clone(), skills.join("packs")] {
        places.extend(std::fs::read_dir(group).unwrap().map(|e| e.unwrap().path().join("skills")));
    }
    for place in places.iter().filter(|p| p.is_dir()) {
        all.extend(std::fs::read_dir(place).unwrap().map(|e| e.unwrap().path()));
    }
    all.retain(|folder| folder.join("SKILL.md").is_file());
    all.sort();
    all
}

fn name(folder: &std::path::Path) -> String {
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Whether it needs a service, so that its pack has a test of its own.
fn needs_a_service(name: &str) -> bool {
    // Tried against a server with the interface of Home Assistant in `tests/it/extensions/packs.rs`.
    name == "home-assistant"
}

#[test]
fn every_shipped_skill_is_valid_short_enough_and_tried() {
    let tried: BTreeSet<String> = all().into_iter().map(|(name, _)| name).collect();
    let shipped = shipped();
    assert_eq!(shipped.len(), 26, "15 built in, 10 in packs, and one of a plugin");
    for folder in &shipped {
        let name = name(folder);
        assert_eq!(tiller_skills::validate(folder), [], "{name}");
        let text = std::fs::read_to_string(folder.join("SKILL.md")).unwrap();
        if needs_a_service(&name) {
            continue;
        }
        assert!(tried.contains(&name), "{name} has no case");
        let description = text.lines().find_map(|l| l.strip_prefix("description: ")).unwrap();
        // Those that are built in are listed in every session.
        let built_in =
            folder.parent().is_some_and(|above| above.ends_with("skills") && above.parent() == Some(&root()));
        let most = if built_in { 82 } else { 110 };
        assert!(description.chars().count() <= most, "{name}: the description has at most {most} characters");
        assert!(built_in || description.contains("Use "), "{name}: the description says when to use it");
        assert!(text.contains("\nlicense: MIT\n"), "{name}");
        let lines = text.lines().count();
        assert!((60..=150).contains(&lines), "{name} has {lines} lines");
        assert!(text.contains("\n## Done when\n\n- [ ] "), "{name} says when it is done");
        for file in ["scripts", "references"] {
            for entry in std::fs::read_dir(folder.join(file)).into_iter().flatten() {
                let file = format!("{file}/{}", entry.unwrap().file_name().to_str().unwrap());
                assert!(text.contains(&file), "{name} does not name its file {file}");
            }
        }
    }
}

#[test]
fn what_skills_name_exists() {
    let catalog = tiller_tool::Registry::built_in().catalog();
    let all: BTreeSet<String> = shipped().iter().map(|f| name(f)).collect();
    let tool = Regex::new(r"`([a-z]+(?:_[a-z]+)+)`").unwrap();
    let skill = Regex::new(r"skills? `([a-z0-9-]+)`").unwrap();
    // Tools that the program adds to the built-in ones.
    let others = ["skill_view", "render_diagram", "tool_search", "mcp_call"];
    // Names of other things: arguments, settings of databases, the kernel's.
    let words = [
        "depends_on",
        "is_valid",
        "node_modules",
        "lock_timeout",
        "work_mem",
        "pg_locks",
        "pg_stat_activity",
        "perf_event_paranoid",
    ];
    let mut unknown = Vec::new();
    for folder in shipped() {
        let text = std::fs::read_to_string(folder.join("SKILL.md")).unwrap();
        for found in tool.captures_iter(&text) {
            let word = &found[1];
            let known = catalog.get(word).is_some() || others.contains(&word) || words.contains(&word);
            if !known && !word.starts_with("test_") && !word.starts_with("an_") {
                unknown.push(format!("{}: {word}", name(&folder)));
            }
        }
        for found in skill.captures_iter(&text) {
            if !all.contains(&found[1]) {
                unknown.push(format!("{}: skill {}", name(&folder), &found[1]));
            }
        }
    }
    assert_eq!(unknown, [] as [String; 0]);
}

#[test]
fn every_case_has_its_test_and_tries_the_skills_own_commands() {
    let here = include_str!("shipped.rs");
    for (name, file) in all() {
        let case = Case::read(&root().join("tests/engine/skills/cases").join(&file));
        assert!(case.skill(&name).join("SKILL.md").is_file(), "{file} has no skill");
        assert_eq!(case.pack.is_some(), file.starts_with("packs/"), "{file}");
        assert!(here.contains(&format!("\"{file}\"")), "{file} has no test");
        assert!(case.steps.iter().any(|s| s.run.is_some() || s.says.is_some()), "{file} tries nothing");
    }
}

macro_rules! cases {
    ($($test:ident: $name:literal, $file:literal;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                play($name, $file).await;
            }
        )*
    };
}

cases! {
    code_review: "code-review", "code-review.toml";
    compare_branches: "compare-branches", "compare-branches.toml";
    data_migration: "data-migration", "data-migration.toml";
    debug_by_bisection: "debug-by-bisection", "debug-by-bisection.toml";
    dependency_upgrade: "dependency-upgrade", "dependency-upgrade.toml";
    drive_external_agents: "drive-external-agents", "drive-external-agents.toml";
    git_history_surgery: "git-history-surgery", "git-history-surgery.toml";
    incident_log_reading: "incident-log-reading", "incident-log-reading.toml";
    performance_profiling: "performance-profiling", "performance-profiling.toml";
    read_unknown_code: "read-unknown-code", "read-unknown-code.toml";
    refactor_in_small_steps: "refactor-in-small-steps", "refactor-in-small-steps.toml";
    release_notes: "release-notes", "release-notes.toml";
    security_review_of_a_change: "security-review-of-a-change", "security-review-of-a-change.toml";
    write_agents_md: "write-agents-md", "write-agents-md.toml";
    writing_tests: "writing-tests", "writing-tests.toml";
    ci_pipeline_repair: "ci-pipeline-repair", "packs/ci-pipeline-repair.toml";
    container_images: "container-images", "packs/container-images.toml";
    hostile_input_tests: "hostile-input-tests", "packs/hostile-input-tests.toml";
    kubernetes_debugging: "kubernetes-debugging", "packs/kubernetes-debugging.toml";
    pipeline_checks: "pipeline-checks", "packs/pipeline-checks.toml";
    profile_a_dataset: "profile-a-dataset", "packs/profile-a-dataset.toml";
    safe_rollout: "safe-rollout", "packs/safe-rollout.toml";
    secrets_in_history: "secrets-in-history", "packs/secrets-in-history.toml";
    threat_model_a_feature: "threat-model-a-feature", "packs/threat-model-a-feature.toml";
    tune_a_sql_query: "tune-a-sql-query", "packs/tune-a-sql-query.toml";
}
