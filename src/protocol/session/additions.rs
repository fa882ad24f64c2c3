//! Parts of the content of a result that its tool did not say.

use serde::{Deserialize, Serialize};

use crate::session::message::Part;

/// What a part at the end of the content of a result is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addition {
    /// A rule that concerns the call: its text.
    Rule(String),
    /// What was learned from an earlier failure that the call is like.
    Learning,
    /// What a hook adds.
    Hook,
    /// A line about the todo list.
    Reminder,
    /// What happened since the last message.
    News,
}

/// The parts of the content of a result that stand around what its tool said. The model reads them; a screen shows first what
/// the tool said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Additions {
    /// How many parts stand before it: who changed the call, and to what.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub before: usize,
    /// The parts behind it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Addition>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Additions {
    /// Whether there are none, or the entry is of an earlier version.
    pub fn is_empty(&self) -> bool {
        self.before == 0 && self.after.is_empty()
    }

    /// The parts that the tool said.
    pub fn own<'a>(&self, content: &'a [Part]) -> &'a [Part] {
        let end = content.len().saturating_sub(self.after.len());
        content.get(self.before.min(end)..end).unwrap_or_default()
    }

    /// The texts behind what the tool said, each with what it is.
    pub fn behind<'a>(&'a self, content: &'a [Part]) -> impl Iterator<Item = (&'a Addition, &'a str)> {
        let from = content.len().saturating_sub(self.after.len());
        self.after.iter().zip(&content[from..]).filter_map(|(added, part)| match part {
            Part::Text { text } => Some((added, text.as_str())),
            Part::Image { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(texts: &[&str]) -> Vec<Part> {
        texts.iter().map(|text| Part::Text { text: (*text).into() }).collect()
    }

    #[test]
    fn what_a_tool_said_is_told_from_what_stands_around_it() {
        let added = Additions { before: 1, after: vec![Addition::Rule("Ask.".into()), Addition::Reminder] };
        let content = parts(&["[changed]", "a", "b", "[A rule: Ask.]", "[review the plan]"]);
        assert_eq!(added.own(&content), parts(&["a", "b"]));
        let behind: Vec<&str> = added.behind(&content).map(|(_, text)| text).collect();
        assert_eq!(behind, ["[A rule: Ask.]", "[review the plan]"]);
        // Numbers that do not fit the content take nothing that is not there.
        for content in [&content[..0], &content[..1], &content[..2], &content[..3]] {
            assert!(added.own(content).len() <= content.len());
            assert!(added.behind(content).count() <= content.len());
        }
        assert_eq!(Additions::default().own(&content), content);
    }

    #[test]
    fn its_form_is_short_and_empty_where_there_is_none() {
        let added = Additions { before: 0, after: vec![Addition::Rule("Ask.".into()), Addition::News] };
        let text = serde_json::to_string(&added).unwrap();
        assert_eq!(text, r#"{"after":[{"rule":"Ask."},"news"]}"#);
        assert_eq!(serde_json::from_str::<Additions>(&text).unwrap(), added);
        assert_eq!(serde_json::from_str::<Additions>("{}").unwrap(), Additions::default());
    }
}
