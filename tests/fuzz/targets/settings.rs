//! Files that people and repositories write: settings, permission rules, workflows, agents, skills.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tiller_config::schema::ProviderKinds;
use tiller_config::{Config, Layer, Sources, load, problems_of, workflows};
use tiller_permit::{Effect, Source};

use super::texts;
use crate::{Outline, Target};

pub(super) const TARGET: Target =
    Target { name: "settings", words: &[super::words::JSON, WORDS], seeds, run };

const WORDS: &[&str] = &[
    " = ",
    "=",
    "[[",
    "]]",
    ".",
    ": ",
    "- ",
    "  ",
    "'",
    "\"\"\"",
    "'''",
    "#",
    "# comment\n",
    "---\n",
    "1",
    "inf",
    "nan",
    "1979-05-27",
    "0x10",
    "9223372036854775808",
    "~",
    "|\n",
    ">\n",
    "&a",
    "*a",
    "<<: *a",
    "!!binary",
    "? ",
    "model",
    "profile",
    "\"full\"",
    "\"ask\"",
    "\"read-only\"",
    "ui",
    "ui.theme",
    "theme",
    "\"tiller-dark\"",
    "mouse_wheel",
    "limits",
    "[limits]\n",
    "fetch_private",
    "turns",
    "budget",
    "session_hard",
    "providers",
    "[providers.x]\n",
    "base_url",
    "\"http://x\"",
    "api_key_env",
    "kind",
    "\"openai-chat\"",
    "headers",
    "tiers",
    "sandbox",
    "\"off\"",
    "\"workspace\"",
    "agents",
    "hooks",
    "snapshots",
    "watch",
    "detach",
    "context",
    "tools",
    "permissions",
    "allow",
    "ask",
    "deny",
    "rule",
    "match",
    "not",
    "terminal(git *)",
    "'terminal(rm *)'",
    "read_file(src/**)",
    "\"*\"",
    "web_fetch(domain:*.rs)",
    "name",
    "description",
    "steps",
    "task",
    "effort",
    "high",
    "skills",
    "cli",
    "may",
    "\\u202e",
    "\u{202e}",
    "\t",
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "model = \"openai/gpt-5\"\nprofile = \"ask\"\n\n[ui]\ntheme = \"tiller-dark\"\n\n[limits]\nturns = 20\n\n[budget]\nsession_hard = 2.5\n",
        "[providers.x]\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key_env = \"X\"\nheaders = { a = \"b\" }\n",
        "profile = \"full\"\n[limits]\nfetch_private = true\nsandbox = \"off\"\n",
        "allow:\n  - terminal(git status*)\n  - rule: terminal(cargo test*)\n    match: [cargo test -q]\n    not: [cargo publish]\nask:\n  - 'web_fetch(*)'\ndeny:\n  - terminal(rm *)\n",
        "---\nname: reviewer\ndescription: Reads a change\ntools: [read, run]\npermissions: { profile: ask, deny: [terminal(git push*)] }\nlimits: { turns: 30, cost: 0.50 }\n---\nYou review changes.\n",
        "name = \"w\"\ndescription = \"d\"\n[[steps]]\ntask = \"t\"\n",
        "name: w\nsteps:\n  - task: t\n    after: [a]\n",
    ])
}

static KINDS: LazyLock<ProviderKinds> = LazyLock::new(|| tiller_provider::ApiFormats::built_in().kinds());

fn run(data: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(data);
    let mut outline = Outline::default();
    let path = Path::new("/project/.tiller/config.toml");
    for layer in [Layer::User, Layer::Project] {
        let problems = problems_of(path, &text, layer, &KINDS);
        for problem in problems.iter().take(3) {
            outline.message(&problem.message);
            placed(&text, problem.at);
        }
        outline.size(problems.len());
    }
    project(data, &mut outline);
    match tiller_permit::rules::rulefile::load(&text, Source::Project, &super::permit::tools()) {
        Ok(file) => {
            outline.add((file.rules.len().min(4), file.problems.len().min(4)));
            // What is broken never allows more.
            assert!(file.rules.iter().filter(|r| r.effect == Effect::Allow).count() <= text.len());
        }
        Err(problem) => outline.message(&problem.text),
    }
    for name in ["w.toml", "w.yaml"] {
        match workflows::parse(Path::new(name), data) {
            Ok(file) => outline.size(file.steps.len()),
            Err(problem) => {
                outline.message(&problem.message);
                placed(&text, problem.at);
            }
        }
    }
    outline.end()
}

/// A place is one in the file, or just behind it.
fn placed(text: &str, at: Option<(usize, usize)>) {
    if let Some((line, column)) = at {
        assert!(
            line >= 1 && column >= 1 && line <= text.matches(['\n', '\r']).count() + 2,
            "{line}:{column} in {text:?}"
        );
    }
}

/// A project's file never loosens anything, and a file with a mistake changes nothing at all.
fn project(data: &[u8], outline: &mut Outline) {
    let sources = Sources {
        project: Some(PathBuf::from("/nonexistent/.tiller/config.toml")),
        trusted: true,
        project_text: Some(data.to_vec()),
        kinds: KINDS.clone(),
        ..Sources::default()
    };
    let (read, plain) = (load(&sources), Config::default());
    if !read.problems.is_empty() {
        assert_eq!(read.config, plain, "half of a file with mistakes is used: {:?}", read.problems);
        return;
    }
    outline.add(read.config == plain);
    let config = &read.config;
    assert!(config.profile <= plain.profile, "a wider profile");
    assert_eq!(config.providers, plain.providers, "servers");
    assert_eq!((&config.model, &config.sandbox), (&plain.model, &plain.sandbox), "model or sandbox");
    let rest = |c: &Config| {
        let mut value = serde_json::to_value(c).unwrap_or_default();
        let sections = ["ui", "limits", "budget", "profile"];
        if let Some(object) = value.as_object_mut() {
            sections.iter().for_each(|s| _ = object.remove(*s));
        }
        value
    };
    assert_eq!(rest(config), rest(&plain), "a section that a project may not set");
}
