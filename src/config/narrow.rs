//! What a project's file may set: stricter limits, colours and keys. It comes with a repository, so it can never name a
//! server, a key, a program or a model, and never loosen a limit.

use serde_json::{Map, Value};
use tiller_protocol::Profile;

use crate::check::join;
use crate::problem::Problem;
use crate::text::{Body, Node, Source};

/// Keys that are taken as they are.
const FREE: &[&str] = &["ui.theme", "ui.theme_dark", "ui.theme_light", "ui.keymap"];

/// Sections in which a number is taken when it is lower than what holds already.
const LOWER: &[&str] = &["budget", "limits"];

/// What can never stand in a project's file, known to us or not, and why.
const NEVER: &[(&str, &str)] = &[
    ("providers", "it could send your keys to another server"),
    ("model", "it could select a model that costs you money"),
    ("tiers", "it could select models that cost you money"),
    ("mcp", "it could start programs"),
    ("terminals", "it could run commands on your other machines"),
    ("sandbox", "it could let commands run outside the sandbox"),
    ("sandbox_caches", "it could let commands write files that run outside the sandbox later"),
    ("sandbox_network", "it could let commands send your files away"),
    ("web", "it could send your searches and keys to another server"),
    ("memory", "it could let text of others into your memory"),
    ("media", "it could send your files and keys to another server"),
    ("hooks", "hooks of a project belong in .tiller/hooks.toml"),
    ("browser", "it could start programs and use your logins"),
    ("commands", "it could start programs"),
    ("agents", "agents of a project belong in .tiller/agents"),
    ("skills", "skills of a project belong in .tiller/skills"),
    ("embeddings", "it could send your text to another server"),
    ("watch", "it could hide changes from you"),
    ("snapshots", "it could make changes to your files irreversible"),
    ("detach", "it could keep work running that you believe has ended"),
    ("context", "it could change the instructions of the model"),
    ("code", "it could start another program in place of Python"),
];

/// What is refused in a project's file.
pub(crate) fn refused(source: &Source<'_>, root: &Node) -> Vec<Problem> {
    let mut problems = Vec::new();
    let Body::Table(pairs) = &root.body else { return problems };
    for (name, node) in pairs {
        let mut refuse = |key: &str, at: &Node, why: &str| {
            let mut problem =
                source.problem(at.key.start, key, format!("a project file cannot set `{key}`: {why}"));
            problem.hint = Some("set it in your own config.toml".into());
            problems.push(problem);
        };
        if let Some((key, why)) = NEVER.iter().find(|(key, _)| key == name) {
            refuse(key, node, why);
        } else if name == "ui" {
            for (inner, child) in children(node) {
                let key = join(name, inner);
                let known = crate::check::known("ui", inner);
                if known && !FREE.contains(&key.as_str()) {
                    refuse(&key, child, "a project may only set theme and keymap");
                }
            }
        } else if name == "limits"
            && let Some((_, child)) = children(node).iter().find(|(k, _)| k == "fetch_private")
            && child.plain() == Value::Bool(true)
        {
            refuse("limits.fetch_private", child, "it would allow private addresses");
        }
    }
    problems
}

fn children(node: &Node) -> &[(String, Node)] {
    match &node.body {
        Body::Table(pairs) => pairs,
        _ => &[],
    }
}

/// A project's values that are stricter than those that hold already.
pub(crate) fn narrowed(project: &Value, holds: &Value) -> Value {
    let mut out = Map::new();
    let Some(pairs) = project.as_object() else { return Value::Object(out) };
    for (name, value) in pairs {
        let there = holds.get(name).unwrap_or(&Value::Null);
        if name == "profile" {
            let strictness = |v: &Value| v.as_str().and_then(|s| s.parse::<Profile>().ok());
            if strictness(value) < strictness(there) {
                out.insert(name.clone(), value.clone());
            }
        } else if LOWER.contains(&name.as_str()) {
            let lower = lower(value, there);
            if lower.as_object().is_some_and(|o| !o.is_empty()) {
                out.insert(name.clone(), lower);
            }
        } else {
            out.insert(name.clone(), value.clone());
        }
    }
    Value::Object(out)
}

/// Numbers that are lower than those of `there` (or where nothing is there), and `false`.
fn lower(value: &Value, there: &Value) -> Value {
    let mut out = Map::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let there = there.get(name).unwrap_or(&Value::Null);
        let stricter = match (value, there) {
            (Value::Object(_), _) => {
                out.insert(name.clone(), lower(value, there));
                false
            }
            (Value::Number(new), Value::Number(old)) => new.as_f64() < old.as_f64(),
            (Value::Number(_), Value::Null) | (Value::Bool(false), _) => true,
            _ => false,
        };
        if stricter {
            out.insert(name.clone(), value.clone());
        }
    }
    Value::Object(out)
}
