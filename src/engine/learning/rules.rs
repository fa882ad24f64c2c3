//! The rules of memory files with what came of them, and what the person makes of one: a permission rule or a hook.

use std::collections::HashMap;

use tiller_memory::Learnings;
use tiller_memory::rules::{BookRule, Promotions};
use tiller_protocol::{Notice, NoticeKind, PromotionKind, RulePromotion, RuleView};
use tiller_store::{Receipt, StoreError};

/// Rules with their counts, and what the person can make of each.
pub(super) fn rules(learnings: &Learnings) -> Result<Vec<RuleView>, StoreError> {
    let Some(book) = learnings.rules() else { return Ok(Vec::new()) };
    let promotions = learnings.promotions();
    let made = |made: Option<(PromotionKind, String)>| {
        let (kind, text) = made?;
        let file = promotions.map(|p| p.file(kind).file.clone()).unwrap_or_default();
        Some(RulePromotion { kind, file, text })
    };
    let mut counts = learnings.store().receipts().all()?;
    let view = |rule: BookRule| {
        let (receipts, promoted) = counts.remove(&rule.rule.text).unwrap_or_default();
        let offers = promotions.map(|p| p.offers(&rule.rule, book.tools())).unwrap_or_default();
        let (text, when, never) = (rule.rule.text, rule.rule.when, rule.rule.never);
        RuleView { text, when, never, origin: rule.origin, receipts, offers, promoted: made(promoted) }
    };
    let mut rules: Vec<RuleView> = book.rules(learnings.store()).into_iter().map(view).collect();
    // Rules whose text is gone, but whose permission rule or hook is still in force.
    rules.extend(counts.into_iter().filter_map(|(text, (receipts, promoted))| {
        let promoted = Some(made(promoted)?);
        Some(RuleView { text, receipts, promoted, ..RuleView::default() })
    }));
    rules.sort_by_key(|r| std::cmp::Reverse((r.receipts.violated, r.receipts.shown)));
    Ok(rules)
}

fn user(why: impl Into<String>) -> Notice {
    Notice::new(NoticeKind::User, why)
}

fn promotions(learnings: &Learnings) -> Result<&Promotions, Notice> {
    learnings.promotions().ok_or_else(|| user("there is no file that rules are written to"))
}

/// Writes what was shown to the person (`shown`), and nothing else.
pub(super) fn promote(
    learnings: &Learnings,
    text: &str,
    kind: PromotionKind,
    shown: &str,
) -> Result<String, Notice> {
    let promotions = promotions(learnings)?;
    let rules = rules(learnings).map_err(|e| e.notice())?;
    let rule = rules.iter().find(|r| r.text == text).ok_or_else(|| user("there is no such rule any more"))?;
    if let Some(why) = rule.refusal(kind) {
        return Err(user(why));
    }
    let offer = rule.offers.iter().find(|offer| offer.kind == kind && offer.text == shown);
    let offer = offer.ok_or_else(|| user("the rule has changed since it was shown"))?;
    let receipts = learnings.store().receipts();
    let counts = receipts.all().map_err(|e| e.notice())?;
    // First the record: a process that ends before the file is written leaves something that can be taken back and made again.
    let made = Some((kind, shown.to_owned()));
    receipts.promote(text, made).wait().map_err(|e| e.notice())?;
    if let Err(why) = promotions.write(kind, shown, &made_of_others(&counts, text, kind)) {
        receipts.promote(text, None).wait().map_err(|e| e.notice())?;
        return Err(user(why));
    }
    Ok(format!("Written to {}: {}", offer.file, words(offer)))
}

/// Takes out what was written last for this rule.
pub(super) fn demote(learnings: &Learnings, text: &str) -> Result<String, Notice> {
    let promotions = promotions(learnings)?;
    let counts = learnings.store().receipts().all().map_err(|e| e.notice())?;
    let made = counts.get(text).and_then(|(_, made)| made.clone());
    let (kind, written) = made.ok_or_else(|| user("nothing was made of this rule"))?;
    promotions.take_out(kind, &written, &made_of_others(&counts, text, kind)).map_err(user)?;
    learnings.store().receipts().promote(text, None).wait().map_err(|e| e.notice())?;
    let made = RulePromotion { kind, file: promotions.file(kind).file.clone(), text: written };
    Ok(format!("Taken out of {}: {}", made.file, words(&made)))
}

/// What was made of other rules than the one with this text.
fn made_of_others<'a>(counts: &'a HashMap<String, Receipt>, text: &str, kind: PromotionKind) -> Vec<&'a str> {
    let others = counts.iter().filter(|(rule, _)| *rule != text).filter_map(|(_, (_, made))| made.as_ref());
    others.filter(|(of, _)| *of == kind).map(|(_, written)| written.as_str()).collect()
}

/// What was written, in a line.
fn words(made: &RulePromotion) -> String {
    match made.kind {
        PromotionKind::Permission => made.shown().replace('\n', ", "),
        PromotionKind::Hook => made.text.lines().next().unwrap_or_default().to_owned(),
    }
}
