//! Licences and duplicate versions of everything that the program links on this system.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Rules {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
struct Skip {
    name: String,
    reason: String,
}

/// The problems found, one line each.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let rules: Rules = toml::from_str(&std::fs::read_to_string(root.join(".config/deny.toml"))?)?;
    let mut problems = Vec::new();
    let meta = metadata(root)?;
    let linked = linked(root)?;
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for p in meta["packages"].as_array().context("cargo metadata has no packages")? {
        let (name, version) = (p["name"].as_str().unwrap_or(""), p["version"].as_str().unwrap_or(""));
        if !linked.contains(&(name.to_owned(), version.to_owned())) || p["source"].is_null() {
            continue;
        }
        versions.entry(name).or_default().insert(version);
        let licence = p["license"].as_str().unwrap_or("none given");
        if !allowed(licence, &rules.licenses.allow) {
            problems.push(format!("{name} {version}: licence '{licence}' is not on the list"));
        }
    }
    for (name, v) in &versions {
        let skipped = rules.bans.skip.iter().any(|s| s.name == *name && !s.reason.is_empty());
        if v.len() > 1 && !skipped {
            problems.push(format!(
                "{name}: {} versions: {}",
                v.len(),
                v.iter().copied().collect::<Vec<_>>().join(", ")
            ));
        }
    }
    for s in &rules.bans.skip {
        if versions.get(s.name.as_str()).is_none_or(|v| v.len() < 2) {
            problems.push(format!(
                "{} is skipped in deny.toml but has one version only: remove the line",
                s.name
            ));
        }
    }
    Ok(problems)
}

fn metadata(root: &Path) -> Result<Value> {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(root)
        .output()?;
    if !out.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}

/// Name and version of each package that is linked into the binary (build and test dependencies excluded).
fn linked(root: &Path) -> Result<BTreeSet<(String, String)>> {
    let out = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--package=tiller",
            "--edges=normal,no-proc-macro",
            "--prefix=none",
            "--format={p}",
        ])
        .current_dir(root)
        .output()?;
    if !out.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&out.stderr));
    }
    let text = String::from_utf8(out.stdout)?;
    Ok(text
        .lines()
        .filter_map(|l| {
            let mut words = l.split(' ');
            Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
        })
        .collect())
}

/// `A OR B` requires one, `A AND B` both. Parentheses bind as usual; `/` is the old spelling of OR.
fn allowed(expr: &str, list: &BTreeSet<String>) -> bool {
    let expr = expr.replace('/', " OR ");
    let split = |sep: &str| -> Option<Vec<String>> {
        let (mut depth, mut parts, mut from) = (0, Vec::new(), 0);
        for (i, c) in expr.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ if depth == 0 && i >= from && expr[i..].starts_with(sep) => {
                    parts.push(expr[from..i].trim().to_owned());
                    from = i + sep.len();
                }
                _ => {}
            }
        }
        parts.push(expr[from..].trim().to_owned());
        (parts.len() > 1).then_some(parts)
    };
    if let Some(parts) = split(" OR ") {
        return parts.iter().any(|p| allowed(p, list));
    }
    if let Some(parts) = split(" AND ") {
        return parts.iter().all(|p| allowed(p, list));
    }
    let one = expr.trim();
    match one.strip_prefix('(').and_then(|e| e.strip_suffix(')')) {
        Some(inner) => allowed(inner, list),
        None => list.contains(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expressions() {
        let list: BTreeSet<String> =
            ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(String::from).into();
        for ok in [
            "MIT",
            "GPL-3.0 OR MIT",
            "GPL-3.0/MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(allowed(ok, &list), "{ok}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(GPL-3.0 OR LGPL-3.0) AND MIT", "none given"] {
            assert!(!allowed(bad, &list), "{bad}");
        }
    }
}
