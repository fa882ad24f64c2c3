//! What came of the rules of memory files: shown, followed, violated, and made a permission rule.

use std::collections::HashMap;

use rusqlite::params;
use tiller_protocol::RuleReceipts;

use crate::error::Result;
use crate::handles::Receipts;
use crate::write::ticket::Ticket;

impl Receipts<'_> {
    /// Adds to the counts of rules, by their text.
    pub fn count(&self, rules: Vec<(String, RuleReceipts)>) -> Ticket<()> {
        self.store.write(move |conn| {
            for (rule, more) in &rules {
                conn.prepare_cached(
                    "INSERT INTO rule_receipts(rule, shown, followed, violated) VALUES(?1, ?2, ?3, ?4)
                     ON CONFLICT(rule) DO UPDATE SET shown = shown + ?2, followed = followed + ?3, violated = violated + ?4",
                )?
                .execute(params![rule, more.shown, more.followed, more.violated])?;
            }
            Ok(())
        })
    }

    /// Notes the line that was made of a rule, or that it was taken back.
    pub fn promote(&self, rule: &str, line: Option<String>) -> Ticket<()> {
        let rule = rule.to_owned();
        self.store.write(move |conn| {
            conn.execute(
                "INSERT INTO rule_receipts(rule, promoted) VALUES(?1, ?2) ON CONFLICT(rule) DO UPDATE SET promoted = ?2",
                params![rule, line],
            )?;
            Ok(())
        })
    }

    /// All of them, by the text of the rule.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn all(&self) -> Result<HashMap<String, (RuleReceipts, Option<String>)>> {
        self.store.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT rule, shown, followed, violated, promoted FROM rule_receipts")?;
            let rows = statement.query_map([], |r| {
                let counts = RuleReceipts { shown: r.get(1)?, followed: r.get(2)?, violated: r.get(3)? };
                Ok((r.get(0)?, (counts, r.get(4)?)))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
