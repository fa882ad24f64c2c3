//! Which skills need which others. The graph is checked: it has no cycles, and a skill brings a bounded number of others.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::skill::Skill;

/// Skills that one brings at most, itself included.
const MOST: usize = 16;
/// Requirements below each other at most.
const DEPTH: usize = 8;

/// A skill and all that it needs, what is needed first. Each once.
///
/// # Errors
/// A sentence that names the path: a cycle, a missing skill, or more than are allowed.
pub(crate) fn closure(all: &BTreeMap<String, Arc<Skill>>, name: &str) -> Result<Vec<Arc<Skill>>, String> {
    let (mut path, mut out) = (Vec::new(), Vec::new());
    visit(all, name, &mut path, &mut out)?;
    Ok(out)
}

fn visit(
    all: &BTreeMap<String, Arc<Skill>>,
    name: &str,
    path: &mut Vec<String>,
    out: &mut Vec<Arc<Skill>>,
) -> Result<(), String> {
    let shown = |path: &[String]| [path, &[name.to_owned()]].concat().join(" -> ");
    if let Some(at) = path.iter().position(|p| p == name) {
        return Err(format!(
            "the skills require each other in a cycle: {}",
            shown(path.get(at..).unwrap_or_default())
        ));
    }
    if out.iter().any(|s| s.name == name) {
        return Ok(());
    }
    let Some(skill) = all.get(name) else {
        return Err(format!("a required skill does not exist: {}", shown(path)));
    };
    if path.len() >= DEPTH || out.len() >= MOST {
        let message = format!("it requires too many skills (at most {MOST}, {DEPTH} deep): {}", shown(path));
        return Err(message);
    }
    path.push(name.to_owned());
    for needed in &skill.requires {
        visit(all, needed, path, out)?;
    }
    path.pop();
    if out.len() >= MOST {
        return Err(format!("it requires too many skills (at most {MOST})"));
    }
    out.push(Arc::clone(skill));
    Ok(())
}
