//! The question to the person: what is shown is what runs, and the answer is bound to it.

use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::ask::{OutsideAnswer, PermissionAsk};

use crate::decide::Verdict;

/// What the dialog is about.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub tool: &'a str,
    pub verb: &'a ToolVerb,
    /// The exact command, address or path.
    pub shown: &'a str,
    /// The arguments with which it will run.
    pub arguments: &'a Value,
    pub folder: &'a str,
    pub diff: Option<&'a str>,
    /// The model's reason.
    pub why: &'a str,
    /// Whether the text may be edited before it runs.
    pub editable: bool,
}

impl Call<'_> {
    /// BLAKE3 over everything that decides what runs, hex.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            // Lengths keep neighbours apart: "ab" + "c" is not "a" + "bc".
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        add(self.tool.as_bytes());
        add(self.shown.as_bytes());
        add(self.folder.as_bytes());
        add(canonical(self.arguments).as_bytes());
        hasher.finalize().to_hex().to_string()
    }

    /// The question, when the verdict asks.
    pub fn ask(&self, verdict: &Verdict) -> Option<PermissionAsk> {
        let Verdict::Ask { rule, risk, effects, always } = verdict else { return None };
        Some(PermissionAsk {
            tool: self.tool.to_owned(),
            verb: self.verb.clone(),
            shown: self.shown.to_owned(),
            hash: self.hash(),
            diff: self.diff.map(str::to_owned),
            folder: self.folder.to_owned(),
            why: self.why.to_owned(),
            rule: rule.clone(),
            effects: effects.clone(),
            risk: *risk,
            always: always.clone(),
            editable: self.editable,
            outside: OutsideAnswer::No,
            calls: Vec::new(),
            draft: None,
            source: None,
        })
    }

    /// True when an answer that carries `hash` is about this very call.
    pub fn is_answered_by(&self, hash: &str) -> bool {
        let own = self.hash();
        own.len() == hash.len() && own.bytes().zip(hash.bytes()).fold(0, |d, (a, b)| d | (a ^ b)) == 0
    }
}

/// JSON with sorted keys and no blanks: one text for one value.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            let items: Vec<String> = keys
                .into_iter()
                .filter_map(|k| map.get(k).map(|v| format!("{}:{}", Value::from(k.as_str()), canonical(v))))
                .collect();
            format!("{{{}}}", items.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
