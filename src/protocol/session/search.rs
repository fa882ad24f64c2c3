//! Full-text search in the entries of all sessions: the query, and a page of hits.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::{AgentId, EntryId, SessionId};

/// A query. Words within `"` `"` are required and adjacent; `-word` must be absent. Of the other words any are enough,
/// and more of them rank higher; with [`SearchOrder::Newest`] all are required. The last word may be a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchQuery {
    pub text: String,
    /// `None`: everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Only entries of these authors; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<SearchRole>,
    /// Only entries of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only entries on the path of a branch of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// From this moment on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Before this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    #[serde(skip_serializing_if = "SearchOrder::is_best")]
    pub order: SearchOrder,
    /// Hits in a page.
    pub limit: u32,
    /// Number of hits to skip: the pages before.
    pub offset: u32,
}

/// The order of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchOrder {
    /// Best first.
    #[default]
    Best,
    /// Newest first; every word is required.
    Newest,
}

impl SearchOrder {
    fn is_best(&self) -> bool {
        *self == Self::Best
    }
}

/// Author of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchRole {
    User,
    Assistant,
    Tool,
    /// Summaries: of compactions, and of other branches.
    Summary,
    /// Checkpoints and notes.
    Note,
}

impl SearchRole {
    /// Every role.
    pub const ALL: [Self; 5] = [Self::User, Self::Assistant, Self::Tool, Self::Summary, Self::Note];

    /// As people and models write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Summary => "summary",
            Self::Note => "note",
        }
    }

    /// The role with this name.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        Self::ALL.into_iter().find(|r| r.name() == name || (name == "tool_result" && *r == Self::Tool))
    }

    /// The role of an entry, by its [`crate::EntryBody::kind`].
    pub fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            "user" => Some(Self::User),
            "assistant" => Some(Self::Assistant),
            "tool_result" | "inner_call" => Some(Self::Tool),
            "compaction" | "branch_summary" => Some(Self::Summary),
            "checkpoint" | "note" => Some(Self::Note),
            _ => None,
        }
    }
}

/// Stands at the ends of a preview where the text goes on.
pub const CUT: char = '…';

/// One entry that holds the words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    pub session: SessionId,
    pub title: String,
    pub project: String,
    pub entry: EntryId,
    pub role: SearchRole,
    pub agent: AgentId,
    pub time: Time,
    /// Text around the first match, in one line, from word to word, with [`CUT`] where it goes on.
    pub preview: String,
    /// The match in `preview`: start and end in bytes; equal when the text of the match is spelled differently there.
    pub mark: (usize, usize),
}

/// A page of hits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchPage {
    pub hits: Vec<SearchHit>,
    /// There are more after these.
    pub more: bool,
    /// Entries that are not indexed yet, and were not searched.
    pub behind: u64,
    /// The query in the spelling of the sessions, when a word was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The query that the hits are for, where nothing was found for the one that was asked: with the spelling of the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// What fits besides sessions, best first; with the first page only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<DocumentHit>,
    #[serde(default, skip_serializing_if = "SearchMeaning::is_keywords")]
    pub meaning: SearchMeaning,
    /// A later search of the same client took the place of this one: the page is empty and says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

impl SearchPage {
    /// Returns the page for a program, which reads rows and not what is said beside them: without hits of other words than those
    /// that were asked for, which are left as the suggestion.
    #[must_use]
    pub fn as_asked(self) -> Self {
        match self.instead {
            Some(near) => {
                Self { suggestion: Some(near), behind: self.behind, meaning: self.meaning, ..Self::default() }
            }
            None => self,
        }
    }
}

/// What a hit is that is no entry of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    Memory,
    Learning,
    Skill,
}

impl DocumentKind {
    /// As people and models read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Learning => "learning",
            Self::Skill => "skill",
        }
    }
}

/// A memory entry, learning or skill that fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentHit {
    pub kind: DocumentKind,
    /// What its part of the program knows it by: the id of an entry, the name of a skill.
    pub key: String,
    pub title: String,
    /// Text around the first match, in one line, from word to word, with [`CUT`] where it goes on.
    pub preview: String,
    /// The match in `preview`, as in [`SearchHit::mark`].
    pub mark: (usize, usize),
    /// The session that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The entry that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
}

/// Whether a search looked for the meaning, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum SearchMeaning {
    /// By keywords only: no model for vectors is configured, or it knows none of the words.
    #[default]
    Keywords,
    /// By vectors, too.
    Used,
    /// By keywords only: the model cannot be reached or failed.
    Failed { why: String },
}

impl SearchMeaning {
    fn is_keywords(&self) -> bool {
        *self == Self::Keywords
    }
}

/// Parses a time as people and models write it: RFC 3339, a day (its start in `zone`), or an age before `now` (`30m`,
/// `12h`, `3d`, `2w`). `None`: not a time.
pub fn parse_time(text: &str, now: Time, zone: &jiff::tz::TimeZone) -> Option<Time> {
    let text = text.trim();
    if let Ok(time) = Time::parse(text) {
        return Some(time);
    }
    if let Ok(day) = text.parse::<jiff::civil::Date>() {
        return Some(Time(day.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond()));
    }
    let unit = text.chars().last()?;
    let number: i64 = text[..text.len() - unit.len_utf8()].trim().parse().ok().filter(|n| *n >= 0)?;
    let minutes = match unit {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        'w' => 7 * 24 * 60,
        _ => return None,
    };
    Some(Time(now.millis().checked_sub(number.checked_mul(minutes * 60_000)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_people_write_them() {
        let now = Time::parse("2026-11-21T20:00:00Z").unwrap();
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
        let at = |text: &str| parse_time(text, now, &zone).map(Time::to_rfc3339);
        let is = |text: &str| Some(format!("2026-11-{text}.000Z"));
        assert_eq!(at("2026-11-20T10:00:00Z"), is("20T10:00:00"));
        assert_eq!(at("2026-11-20"), is("19T22:00:00"));
        assert_eq!(at(" 3d "), is("18T20:00:00"));
        assert_eq!(at("30m"), is("21T19:30:00"));
        for wrong in ["", "d", "-3d", "3", "yesterday", "2026-13-01", "9999999999999999w"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
