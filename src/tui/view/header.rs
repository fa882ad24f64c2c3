//! The first line: project, branch, model, permission mode, cost, and what needs the person.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::{Effort, Profile};
use unicode_width::UnicodeWidthStr;

use crate::panel::{Attention, DrawCx, View};
use crate::theme::Role;
use crate::view::layout::SizeClass;
use crate::view::notice_bar::LOW;
use crate::view::words::{goal, money, needs_you, short};
use crate::widget::draw;

/// A piece with its importance (0 is kept longest).
struct Piece {
    text: String,
    /// What is said where there is less room.
    brief: String,
    role: Role,
    rank: u8,
}

/// Pieces from this rank on are shown only where everything else has its full words.
const NICE: u8 = 6;

/// What the header knows besides the model.
#[derive(Clone, Debug, Default)]
pub struct HeaderFacts {
    /// Views that have no part of their own.
    pub badges: Vec<Badge>,
    /// Lasting states: errors not yet looked at.
    pub errors: usize,
}

/// A view that is not on the screen: `2:Todo 3/7`.
#[derive(Clone, Debug)]
pub struct Badge {
    pub view: View,
    pub title: String,
    pub attention: Attention,
}

/// Draws. At XS the pieces share the status line with the footer.
pub fn draw(cx: &DrawCx<'_>, facts: &HeaderFacts, class: SizeClass, area: Rect, buf: &mut Buffer) {
    draw::clear(buf, area, cx.theme.style(Role::Ground));
    let (mut left, mut right) = pieces(cx, facts, class);
    // Where every column counts one space is enough between words.
    let gap: u16 = if class.wide() { 2 } else { 1 };
    let room = usize::from(area.width).saturating_sub(1);
    let wide = |p: &Piece| p.text.width() + usize::from(gap);
    let fits = |l: &[Piece], r: &[Piece]| l.iter().chain(r).map(wide).sum::<usize>() <= room;
    // What is only nice to have goes first; then it is said in fewer words, the least important first;
    // then the least important is left out.
    while !fits(&left, &right) {
        if drop_worst(&mut left, &mut right, NICE) || shorten_worst(&mut left, &mut right) {
            continue;
        }
        if !drop_worst(&mut left, &mut right, 1) {
            break;
        }
    }
    let bar = cx.theme.style(Role::Ground);
    let mut x = area.x + 1;
    for p in &left {
        let room = Rect { x, width: area.right().saturating_sub(x), ..area };
        x += draw::text(buf, room, &p.text, bar.patch(cx.theme.style(p.role))) + gap;
    }
    let need: usize = right.iter().map(wide).sum();
    let mut x = x.max((area.right() as usize).saturating_sub(need) as u16);
    for p in &right {
        let room = Rect { x, width: area.right().saturating_sub(x), ..area };
        x += draw::text(buf, room, &p.text, bar.patch(cx.theme.style(p.role))) + gap;
    }
}

fn drop_worst(left: &mut Vec<Piece>, right: &mut Vec<Piece>, least: u8) -> bool {
    let Some(worst) = left.iter().chain(&*right).map(|p| p.rank).max().filter(|r| *r >= least) else {
        return false;
    };
    for side in [right, left] {
        if let Some(i) = side.iter().rposition(|p| p.rank == worst) {
            side.remove(i);
            return true;
        }
    }
    false
}

/// Shortens the least important piece that has a short form; `false` when there is none.
fn shorten_worst(left: &mut [Piece], right: &mut [Piece]) -> bool {
    let long = left.iter_mut().chain(right).filter(|p| p.brief != p.text).max_by_key(|p| p.rank);
    long.map(|p| p.text.clone_from(&p.brief)).is_some()
}

fn pieces(cx: &DrawCx<'_>, facts: &HeaderFacts, class: SizeClass) -> (Vec<Piece>, Vec<Piece>) {
    let m = cx.model;
    let s = &m.agent.session;
    let mut left = Vec::new();
    let mut put = |text: String, brief: String, role: Role, rank: u8| {
        if !text.is_empty() {
            left.push(Piece { text, brief, role, rank });
        }
    };
    if let Some(agent) = &*m.shown {
        let said = |n| format!("> {}", draw::cut_middle(&m.path_of(agent), n));
        put(said(40), said(16), Role::Accent, 0);
    }
    if let Some(sum) = &s.summary {
        let name = sum.project.rsplit('/').find(|p| !p.is_empty()).unwrap_or("/");
        put(draw::cut_middle(name, 24), draw::cut_middle(name, 12), Role::Strong, 2);
    }
    if let Some(g) = &s.git {
        let way = if g.under_way.is_none() { String::new() } else { format!(" {}", g.under_way) };
        let changed = if g.changed > 0 { format!("*{}", g.changed) } else { String::new() };
        let said = |n| format!("{}{changed}{way}", draw::cut_middle(&g.branch, n));
        put(said(24), said(10), Role::Dim, 4);
    }
    // A session without branches shows no branch.
    if !s.branch.is_empty() && s.branch.word() != tiller_protocol::BranchName::MAIN {
        let word = crate::text::clean::plain(s.branch.word());
        let said = |n| format!("on {}", draw::cut_middle(&word, n));
        put(said(24), said(10), Role::Accent, 4);
    }
    if s.model.is_demo() {
        put("demo".into(), "demo".into(), Role::Demo, 1);
    } else {
        let said = |n| draw::cut_middle(s.model.model(), n);
        put(said(28), said(12), Role::Text, 3);
    }
    let used = s.effort.used;
    if used != Effort::Default {
        put(format!("effort {}", used.word()), used.word().into(), Role::Dim, 4);
    }
    let mut add = |text: String, role: Role, rank: u8| put(text.clone(), text, role, rank);
    add(s.profile.word().into(), profile_role(s.profile), 0);
    if s.read_only {
        add("read-only".into(), Role::Waiting, 1);
    }
    if let Some(g) = &s.goal {
        let (text, role) = goal(g);
        add(text, role, 2);
    }
    if m.environment.restricted {
        // Nothing that the folder brings is in use.
        add("untrusted".into(), Role::Waiting, 2);
    }
    add(context(cx, class), Role::Dim, 3);
    if class.wide() && s.usage != Default::default() {
        add(format!("in {} out {}", short(s.usage.context()), short(s.usage.output)), Role::Dim, 6);
    }
    if let Some((cost, whole)) = m.spent() {
        let more = if whole { "" } else { "+?" };
        add(format!("{}{more}", money(cost.usd())), Role::Text, 4);
    }
    let mut right = Vec::new();
    let mut put = |text: String, brief: String, role: Role, rank: u8| {
        right.push(Piece { text, brief, role, rank });
    };
    for b in &facts.badges {
        let digit = b.view.digit();
        // Without its name, when there is something else in the title: the digit is the key.
        let brief = b.title.split_once(' ').map_or(b.title.as_str(), |(_, state)| state);
        // The session tree has no state.
        let rank = if b.view == View::Sessions { 7 } else { 3 };
        let role = if b.attention == Attention::Waiting { Role::Waiting } else { Role::Dim };
        put(format!("{digit}:{}", b.title), format!("{digit}:{brief}"), role, rank);
    }
    if !m.environment.status_line.is_empty() {
        put(m.environment.status_line.clone(), draw::cut(&m.environment.status_line, 20), Role::Dim, 5);
    }
    if m.engine.not_saving.is_some() {
        put("NOT SAVING".into(), "NOT SAVING".into(), Role::Error, 0);
    }
    if facts.errors > 0 {
        let text = format!("x {} {}", facts.errors, cx.key("errors.open"));
        put(text, format!("x {}", facts.errors), Role::Error, 2);
    }
    let queued = m.agent.waiting().count();
    if queued > 0 && m.window.screen.1 < LOW {
        put(format!("queue {queued}"), format!("q{queued}"), Role::Text, 1);
    }
    let needs = needs_you(m);
    if needs > 0 {
        let brief = format!("!{needs}");
        let text = if class.wide() { format!("! {needs} needs you") } else { brief.clone() };
        put(text, brief, Role::Waiting, 0);
    }
    (left, right)
}

/// The look of the permission mode.
pub fn profile_role(p: Profile) -> Role {
    match p {
        Profile::ReadOnly | Profile::Plan => Role::ModeRead,
        Profile::Ask => Role::ModeAsk,
        Profile::AutoEdit => Role::ModeEdit,
        Profile::Full => Role::ModeAuto,
    }
}

fn context(cx: &DrawCx<'_>, class: SizeClass) -> String {
    let s = &cx.model.agent.session;
    match s.window {
        Some(window) if window > 0 => {
            let part = (s.context.saturating_mul(100) / window).min(100);
            if !class.wide() {
                return format!("{part}%");
            }
            let full = (part as usize).div_ceil(10);
            format!("ctx {part}% [{}{}]", "#".repeat(full), ".".repeat(10 - full))
        }
        _ if s.context > 0 => short(s.context),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Robot;

    #[test]
    fn small_costs_are_not_nothing() {
        let said: Vec<String> = [0.0, 0.0001, 0.004, 0.0994, 0.0996, 0.83, 12.0].map(money).to_vec();
        assert_eq!(said, ["$0.00", "<$0.001", "$0.004", "$0.099", "$0.10", "$0.83", "$12.00"]);
    }

    #[test]
    fn a_folder_that_is_not_trusted_is_marked() {
        for (width, height) in [(80, 24), (118, 25)] {
            let mut r = Robot::new(width, height);
            r.run("wait 0");
            assert!(!r.screen().contains("untrusted"));
            r.app.model.environment.restricted = true;
            r.run("wait 0");
            assert!(r.screen().lines().next().is_some_and(|l| l.contains("untrusted")), "{}", r.screen());
        }
    }

    #[test]
    fn the_branch_is_named_as_soon_as_there_is_another_than_the_first() {
        use tiller_protocol::event::StateEvent;
        use tiller_protocol::{BranchName, EventBody};
        for (width, height) in [(80, 24), (118, 25)] {
            let mut r = Robot::new(width, height);
            let moved = |head: &str| {
                let branch = BranchName { head: head.into(), label: String::new() };
                EventBody::State(StateEvent::HeadMoved { head: None, draft: None, branch })
            };
            let first = |r: &Robot| r.screen().lines().next().unwrap_or_default().to_owned();
            r.event(moved("main"));
            assert!(!first(&r).contains("on main"), "{}", first(&r));
            r.event(moved("branch-1f"));
            assert!(first(&r).contains("on branch-1f"), "{}", first(&r));
            let branch = BranchName { head: "branch-1f".into(), label: "try\u{1b} b".into() };
            r.event(EventBody::State(StateEvent::BranchNamed { branch }));
            assert!(first(&r).contains("on try") && !first(&r).contains('\u{1b}'), "{}", first(&r));
        }
    }
}
