//! Which skills need which others. The graph is checked: it has no cycles, and a skill brings a bounded number of others.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::skill::Skill;

/// Skills that one brings at most, itself included.
const MOST: usize = 16;
/// Requirements below each other at most.
const DEPTH: usize = 8;

/// Requirements that cannot be met.
#[derive(Debug)]
pub(crate) struct Unmet {
    /// A sentence without a full stop that names the path.
    pub(crate) why: String,
    /// What the author can do.
    pub(crate) remedy: &'static str,
}

/// A skill and all that it needs, what is needed first. Each once.
///
/// # Errors
/// A cycle, a missing skill, or more than are allowed.
pub(crate) fn closure(all: &BTreeMap<String, Arc<Skill>>, name: &str) -> Result<Vec<Arc<Skill>>, Unmet> {
    let (mut path, mut out) = (Vec::new(), Vec::new());
    visit(all, name, &mut path, &mut out)?;
    Ok(out)
}

fn visit(
    all: &BTreeMap<String, Arc<Skill>>,
    name: &str,
    path: &mut Vec<String>,
    out: &mut Vec<Arc<Skill>>,
) -> Result<(), Unmet> {
    let too_many = |why: String| Unmet { why, remedy: "let it require fewer skills" };
    let shown = |path: &[String]| [path, &[name.to_owned()]].concat().join(" -> ");
    if let Some(at) = path.iter().position(|p| p == name) {
        let why = format!(
            "the skills require each other in a cycle: {}",
            shown(path.get(at..).unwrap_or_default())
        );
        return Err(Unmet { why, remedy: "remove one of them from the `requires` of another" });
    }
    if out.iter().any(|s| s.name == name) {
        return Ok(());
    }
    let Some(skill) = all.get(name) else {
        // It may exist and be left out for a fault of its own, be turned off, or wait for the user's yes.
        let why = format!("a required skill is not there or not in use: {}", shown(path));
        let remedy = "make, install, correct or turn on the last one, or remove it from `requires`";
        return Err(Unmet { why, remedy });
    };
    if path.len() >= DEPTH || out.len() >= MOST {
        let message = format!("it requires too many skills (at most {MOST}, {DEPTH} deep): {}", shown(path));
        return Err(too_many(message));
    }
    path.push(name.to_owned());
    for needed in &skill.requires {
        visit(all, needed, path, out)?;
    }
    path.pop();
    if out.len() >= MOST {
        return Err(too_many(format!("it requires too many skills (at most {MOST})")));
    }
    out.push(Arc::clone(skill));
    Ok(())
}
