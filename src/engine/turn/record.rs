//! What a turn did, for what follows from its end.

use serde_json::Value;

/// Skills of one turn that are counted.
pub(crate) const SKILLS: usize = 20;
/// The tools that load a skill, and write one.
const VIEW: &str = "skill_view";
const WRITE: &str = "skill_manage";
/// The tool that runs commands.
const COMMAND: &str = "terminal";
/// Beginnings of commands that check what was done.
const CHECKS: &[&str] = &[
    "cargo test",
    "cargo nextest",
    "cargo clippy",
    "cargo check",
    "make test",
    "make check",
    "just test",
    "npm test",
    "npm run test",
    "npm run lint",
    "pnpm test",
    "yarn test",
    "npx jest",
    "npx vitest",
    "pytest",
    "python -m pytest",
    "python3 -m pytest",
    "python -m unittest",
    "python3 -m unittest",
    "tox",
    "nox",
    "go test",
    "go vet",
    "mvn test",
    "mvn verify",
    "gradle test",
    "./gradlew test",
    "dotnet test",
    "bundle exec rspec",
    "rspec",
    "mix test",
    "ctest",
    "swift test",
    "./test.sh",
    "sh test.sh",
    "bash test.sh",
];

/// What a turn did, for its skills.
#[derive(Default)]
pub(crate) struct TurnRecord {
    /// Calls that succeeded.
    pub(crate) calls: u32,
    /// Names of skills that were loaded.
    pub(crate) skills: Vec<String>,
    /// A skill was written.
    pub(crate) wrote: bool,
    /// How the last command ended that checks what was done; `None`: there was none.
    pub(crate) checked: Option<bool>,
}

impl TurnRecord {
    /// Notes a call that has ended.
    pub(crate) fn call_ended(&mut self, name: &str, arguments: &Value, ok: bool) {
        let command = arguments.get("command").and_then(Value::as_str).filter(|_| name == COMMAND);
        if command.is_some_and(is_check) {
            self.checked = Some(ok);
        }
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

/// The skill that a call loads.
pub(crate) fn loaded<'a>(name: &str, arguments: &'a Value) -> Option<&'a str> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    text("name").map(str::trim).filter(|skill| name == VIEW && !skill.is_empty() && text("file").is_none())
}

/// Whether a part of a command line checks what was done.
fn is_check(command: &str) -> bool {
    let mut parts = command.split(['\n', ';', '&', '|']).map(str::trim);
    let begins = |part: &str, check: &str| {
        part.strip_prefix(check).is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    };
    parts.any(|part| CHECKS.iter().any(|check| begins(part, check)))
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
        assert_eq!((record.calls, record.skills.clone(), record.wrote), (4, vec!["a".to_owned()], false));
        for (command, check) in [
            ("cargo test -p x", true),
            ("cd a && pytest -q | tail", true),
            ("cargo tests", false),
            ("echo cargo test", false),
            ("ls", false),
        ] {
            assert_eq!(is_check(command), check, "{command}");
        }
        record.call_ended("terminal", &json!({"command": "cargo test"}), true);
        assert_eq!(record.checked, Some(true));
        record.call_ended("terminal", &json!({"command": "cargo test"}), false);
        record.call_ended("terminal", &json!({"command": "ls"}), true);
        assert_eq!(record.checked, Some(false), "the last check counts");
        for n in 0..50 {
            let mut record = TurnRecord::default();
            (0..n).for_each(|n| record.call_ended(VIEW, &json!({"name": format!("s{n}")}), true));
            assert!(record.skills.len() <= SKILLS);
        }
    }
}
