//! What stands in a composer, with what was put aside, for each session and for the place before one.

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use tiller_protocol::{Message, SessionId};

use crate::error::Result;
use crate::open::Store;
use crate::write::ticket::Ticket;

/// A composer's content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Draft {
    pub message: Message,
    /// Byte offset in the text.
    pub cursor: usize,
    /// Drafts that were put aside, the latest last.
    pub aside: Vec<Message>,
}

impl Draft {
    /// Nothing in it.
    pub fn is_empty(&self) -> bool {
        self.message == Message::default() && self.aside.is_empty()
    }
}

fn key(session: Option<SessionId>) -> Vec<u8> {
    session.map_or_else(Vec::new, |s| s.0.as_bytes().to_vec())
}

impl Store {
    /// Saves a draft; an empty one is removed.
    pub fn save_draft(&self, project: &str, session: Option<SessionId>, draft: Draft) -> Ticket<()> {
        let project = project.to_owned();
        self.write(move |conn| {
            if draft.is_empty() {
                conn.prepare_cached("DELETE FROM drafts WHERE project = ?1 AND session = ?2")?
                    .execute(params![project, key(session)])?;
            } else {
                conn.prepare_cached(
                    "INSERT OR REPLACE INTO drafts(project, session, body) VALUES(?1, ?2, ?3)",
                )?
                .execute(params![project, key(session), serde_json::to_string(&draft)?])?;
            }
            Ok(())
        })
    }

    /// The draft; an empty one where there is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn draft(&self, project: &str, session: Option<SessionId>) -> Result<Draft> {
        let body: Option<String> = self.read(|conn| {
            Ok(conn
                .prepare_cached("SELECT body FROM drafts WHERE project = ?1 AND session = ?2")?
                .query_row(params![project, key(session)], |r| r.get(0))
                .optional()?)
        })?;
        body.map_or_else(|| Ok(Draft::default()), |body| Ok(serde_json::from_str(&body)?))
    }
}
