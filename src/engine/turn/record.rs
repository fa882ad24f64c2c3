//! What a turn did, for what follows from its end.

use serde_json::Value;

/// Skills of one turn that are counted.
pub(crate) const SKILLS: usize = 20;
/// The tools that load a skill, and write one.
const VIEW: &str = "skill_view";
const WRITE: &str = "skill_manage";

/// What a turn did, for its skills.
#[derive(Default)]
pub(crate) struct TurnRecord {
    /// Calls that succeeded.
    pub(crate) calls: u32,
    /// Names of skills that were loaded.
    pub(crate) skills: Vec<String>,
    /// A skill was written.
    pub(crate) wrote: bool,
}

impl TurnRecord {
    /// Notes a call that has ended.
    pub(crate) fn call_ended(&mut self, name: &str, arguments: &Value, ok: bool) {
        if !ok {
            return;
        }
        self.calls = self.calls.saturating_add(1);
        self.wrote |= name == WRITE;
        let skill = arguments.get("name").and_then(Value::as_str).filter(|_| name == VIEW);
        if let Some(skill) = skill
            && self.skills.len() < SKILLS
            && !self.skills.iter().any(|known| known == skill)
        {
            self.skills.push(skill.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_and_loaded_skills_are_noted_once() {
        let mut record = TurnRecord::default();
        record.call_ended(VIEW, &json!({"name": "a"}), true);
        record.call_ended(VIEW, &json!({"name": "a"}), true);
        record.call_ended(VIEW, &json!({"name": "b"}), false);
        record.call_ended("read_file", &json!({"name": "c"}), true);
        record.call_ended(VIEW, &json!({"name": 1}), true);
        assert_eq!((record.calls, record.skills, record.wrote), (4, vec!["a".to_owned()], false));
        for n in 0..50 {
            let mut record = TurnRecord::default();
            (0..n).for_each(|n| record.call_ended(VIEW, &json!({"name": format!("s{n}")}), true));
            assert!(record.skills.len() <= SKILLS);
        }
    }
}
