//! What came of the rules of memory files: shown, followed, violated, and made a permission rule or a hook.

use std::collections::HashMap;

use rusqlite::params;
use tiller_protocol::{PromotionKind, RuleReceipts};

use crate::error::Result;
use crate::handles::Receipts;
use crate::write::ticket::Ticket;

/// As the hook of a rule is stored.
const HOOK: &str = "hook";

/// Counts of a rule, and what the person made of it: the kind, and the text that was written.
pub type Receipt = (RuleReceipts, Option<(PromotionKind, String)>);

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

    /// Notes the text that was made of a rule, or that it was taken back.
    pub fn promote(&self, rule: &str, made: Option<(PromotionKind, String)>) -> Ticket<()> {
        let rule = rule.to_owned();
        let to = made.as_ref().filter(|(kind, _)| *kind == PromotionKind::Hook).map(|_| HOOK);
        let text = made.map(|(_, text)| text);
        self.store.write(move |conn| {
            conn.execute(
                "INSERT INTO rule_receipts(rule, promoted, promoted_to) VALUES(?1, ?2, ?3)
                 ON CONFLICT(rule) DO UPDATE SET promoted = ?2, promoted_to = ?3",
                params![rule, text, to],
            )?;
            Ok(())
        })
    }

    /// All of them, by the text of the rule.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn all(&self) -> Result<HashMap<String, Receipt>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT rule, shown, followed, violated, promoted, promoted_to FROM rule_receipts",
            )?;
            let rows = statement.query_map([], |r| {
                let counts = RuleReceipts { shown: r.get(1)?, followed: r.get(2)?, violated: r.get(3)? };
                let to: Option<String> = r.get(5)?;
                let kind = match to.as_deref() {
                    Some(HOOK) => PromotionKind::Hook,
                    _ => PromotionKind::Permission,
                };
                let text: Option<String> = r.get(4)?;
                Ok((r.get(0)?, (counts, text.map(|text| (kind, text)))))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
