//! What an external agent sees of the environment: the common base, and of secrets only its own vendor's.

use super::adapter::Adapter;
use super::job::{Job, Lookup};

/// Endings of names that hold keys. Of these only the adapter's own pass.
const KEYS: &[&str] = &["_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN"];

fn is_key(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    KEYS.iter().any(|end| upper.ends_with(end))
}

/// The environment of the program; `more` is the transport's.
pub(crate) fn environment<'a>(
    job: &Job,
    more: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Vec<(String, String)> {
    let mut env = base(&job.adapter, &job.env, &job.lookup);
    let mut set = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
        for (name, value) in pairs {
            env.retain(|(n, _)| n != name);
            env.push((name.clone(), value.clone()));
        }
    };
    if !job.auto_approve {
        set(&mut job.adapter.env.careful.iter());
    }
    set(&mut more.into_iter());
    env
}

/// The part that a version check needs, too.
pub(crate) fn base(adapter: &Adapter, base: &[(String, String)], lookup: &Lookup) -> Vec<(String, String)> {
    let own = |name: &str| adapter.env.keys.iter().chain(&adapter.env.pass).any(|k| k == name);
    let mut env: Vec<(String, String)> =
        base.iter().filter(|(name, _)| !is_key(name) && !own(name)).cloned().collect();
    for name in adapter.env.keys.iter().chain(&adapter.env.pass) {
        if let Some(value) = lookup(name).filter(|v| !v.is_empty() && !v.contains('\0')) {
            env.push((name.clone(), value));
        }
    }
    let root = rustix::process::geteuid().is_root().then_some(&adapter.env.root);
    for (name, value) in adapter.env.set.iter().chain(root.into_iter().flatten()) {
        env.retain(|(n, _)| n != name);
        env.push((name.clone(), value.clone()));
    }
    env
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::external::adapter::Adapters;

    #[test]
    fn x8_each_sees_its_own_vendors_key_and_no_other() {
        let vendors =
            ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY", "GROQ_API_KEY"];
        let lookup: Lookup = Arc::new(|name| Some(format!("secret of {name}")));
        let given: Vec<(String, String)> = vendors
            .iter()
            .chain(&["PATH", "LC_ALL"])
            .map(|n| ((*n).to_owned(), format!("secret of {n}")))
            .collect();
        let all = Adapters::new(&[]);
        for (name, own) in [
            ("claude", Some("ANTHROPIC_API_KEY")),
            ("codex", Some("OPENAI_API_KEY")),
            ("gemini", Some("GEMINI_API_KEY")),
            ("aider", Some("OPENAI_API_KEY")),
            ("opencode", None),
            ("goose", None),
            ("droid", None),
        ] {
            let env = base(&all.get(name).unwrap(), &given, &lookup);
            let seen: Vec<&str> =
                vendors.iter().copied().filter(|v| env.iter().any(|(n, _)| n == v)).collect();
            assert_eq!(seen, own.into_iter().collect::<Vec<_>>(), "{name}");
            assert!(env.iter().any(|(n, _)| n == "PATH"));
            let mut names: Vec<_> = env.iter().map(|(n, _)| n).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), env.len(), "a name twice");
        }
    }
}
