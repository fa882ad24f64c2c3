//! The rules of memory files with what came of them, and what the person makes of one: a permission rule or a hook.

use tiller_memory::Learnings;
use tiller_memory::rules::{BookRule, Promotions};
use tiller_protocol::{Notice, NoticeKind, PromotionKind, RulePromotion, RuleView};
use tiller_store::StoreError;

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
    match rule.promoted.as_ref().map(|made| made.kind) {
        Some(PromotionKind::Permission) => return Err(user("this is a permission rule already")),
        Some(PromotionKind::Hook) => return Err(user("this is a hook already")),
        None => {}
    }
    let offer = rule.offers.iter().find(|offer| offer.kind == kind).ok_or_else(|| match kind {
        PromotionKind::Permission => user("the rule forbids nothing").hint("Add [never: ...] to it."),
        PromotionKind::Hook => user("the rule forbids nothing and names no command")
            .hint("Add [never: ...] to it, or name one command in backquotes."),
    })?;
    if !rule.may_be_promoted() {
        let twice = if rule.never.is_empty() { "shown twice" } else { "violated twice" };
        return Err(user(format!("the rule was not {twice} yet")));
    }
    if offer.text != shown {
        return Err(user("the rule has changed since it was shown"));
    }
    promotions.write(kind, shown).map_err(user)?;
    let made = Some((kind, shown.to_owned()));
    learnings.store().receipts().promote(text, made).wait().map_err(|e| e.notice())?;
    Ok(format!("Written to {}: {}", offer.file, words(kind, shown)))
}

/// Takes out what was written last for this rule.
pub(super) fn demote(learnings: &Learnings, text: &str) -> Result<String, Notice> {
    let promotions = promotions(learnings)?;
    let counts = learnings.store().receipts().all().map_err(|e| e.notice())?;
    let made = counts.get(text).and_then(|(_, made)| made.clone());
    let (kind, written) = made.ok_or_else(|| user("nothing was made of this rule"))?;
    promotions.take_out(kind, &written).map_err(user)?;
    learnings.store().receipts().promote(text, None).wait().map_err(|e| e.notice())?;
    Ok(format!("Taken out of {}: {}", promotions.file(kind).file, words(kind, &written)))
}

/// What was written, in a line.
fn words(kind: PromotionKind, text: &str) -> String {
    match kind {
        PromotionKind::Permission => format!("deny {text}"),
        PromotionKind::Hook => text.lines().next().unwrap_or_default().to_owned(),
    }
}
