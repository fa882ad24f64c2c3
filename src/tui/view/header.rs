//! The first line: project, branch, model, permission mode, cost, and what needs the person.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use tiller_protocol::{Effort, Profile, SandboxScope, SandboxState, TerminalLimits, TerminalPlace};
use unicode_width::UnicodeWidthStr;

use crate::panel::{DrawCx, View};
use crate::text::clean;
use crate::theme::Role;
use crate::view::layout::SizeClass;
use crate::view::notice_bar::LOW;
use crate::view::words::{goal, money, needs_you, short};
use crate::widget::{draw, sign};

/// Words with their looks.
type Spans = Vec<(String, Role)>;

/// A piece with its importance (0 is kept longest).
#[derive(Clone)]
struct Piece {
    spans: Spans,
    /// The words where there is less room; once it is said, the full words.
    brief: Spans,
    /// The brief words are said.
    short: bool,
    rank: u8,
    /// Pieces of one group stand close together.
    group: Group,
    /// The action of a click on it.
    act: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Place,
    Agent,
    Model,
    Mode,
    State,
    Use,
    /// Each piece for itself.
    Right,
}

impl Piece {
    fn swap(&mut self) {
        std::mem::swap(&mut self.spans, &mut self.brief);
        self.short = !self.short;
    }

    fn width(&self) -> usize {
        self.spans.iter().map(|(t, _)| t.width()).sum()
    }
}

/// Pieces from this rank on are shown only where everything else has its full words.
const NICE: u8 = 6;

/// Opens what the sandbox holds and what not.
const SANDBOX: &str = "sandbox.open";

/// Rank of what the sandbox does not hold, where that is no danger.
const GAPS: u8 = 3;

/// Columns before the first piece and behind the last one.
const MARGIN: u16 = 2;

/// The action of a click on these columns of the header.
pub(crate) type HeaderClick = (std::ops::Range<u16>, &'static str);

/// The facts of the header besides the model.
#[derive(Clone, Debug, Default)]
pub struct HeaderFacts {
    /// Views that have no part of their own.
    pub badges: Vec<Badge>,
    /// Lasting states: errors not yet looked at.
    pub errors: usize,
    /// The start screen is shown, which says below the composer which model is ready.
    pub start: bool,
}

/// A view that is not on the screen: `2:Todo 3/7`.
#[derive(Clone, Debug)]
pub struct Badge {
    pub view: View,
    pub title: String,
}

/// Returns what stands between two pieces: a dot between groups, where there is room.
fn gap(a: &Piece, b: &Piece, class: SizeClass, cx: &DrawCx<'_>) -> String {
    let chip = a.group == Group::Mode || b.group == Group::Mode;
    match () {
        () if a.group == b.group && a.group != Group::Right => " ".into(),
        () if class.wide() && !chip && a.group != Group::Right => {
            format!(" {} ", sign::DOT.text(cx.ascii))
        }
        () if class >= SizeClass::M => "  ".into(),
        () => " ".into(),
    }
}

/// Draws; gives what a click does. At XS the pieces share the status line with the footer.
pub(crate) fn draw(
    cx: &DrawCx<'_>,
    facts: &HeaderFacts,
    class: SizeClass,
    area: Rect,
    buf: &mut Buffer,
) -> Vec<HeaderClick> {
    draw::clear(buf, area, cx.theme.style(Role::Ground));
    let (mut left, mut right) = pieces(cx, facts, class);
    let margin = if class > SizeClass::Xs { MARGIN } else { 1 };
    let room = usize::from(area.width.saturating_sub(if class > SizeClass::Xs { 2 * margin } else { 1 }));
    let wide = |l: &[Piece]| -> usize {
        let gaps = l.windows(2).map(|p| gap(&p[0], &p[1], class, cx).width());
        l.iter().map(Piece::width).chain(gaps).sum()
    };
    let fits = |l: &[Piece], r: &[Piece]| wide(l) + wide(r) + 2 * usize::from(!r.is_empty()) <= room;
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
    keep_key(&left, &mut right, fits);
    lengthen(&mut left, &mut right, fits);
    let end = area.right().saturating_sub(if class > SizeClass::Xs { margin } else { 0 });
    let mut clicks = Vec::new();
    let mut row = |pieces: &[Piece], from: u16| -> u16 {
        let mut x = from;
        for (i, p) in pieces.iter().enumerate() {
            if let Some(before) = i.checked_sub(1).and_then(|i| pieces.get(i)) {
                let room = Rect { x, width: end.saturating_sub(x), ..area };
                x += draw::text(buf, room, &gap(before, p, class, cx), cx.theme.style(Role::Dim));
            }
            let start = x;
            for (text, role) in &p.spans {
                let room = Rect { x, width: end.saturating_sub(x), ..area };
                let mut look = cx.theme.style(*role);
                if p.group == Group::Mode {
                    look = chip(cx, *role);
                }
                x += draw::text(buf, room, text, look);
            }
            clicks.extend(p.act.map(|act| (start..x, act)));
        }
        x
    };
    let after = row(&left, area.x + margin);
    let need = wide(&right) as u16;
    row(&right, after.max(end.saturating_sub(need)));
    clicks
}

/// The look of the permission mode: a chip in its tone; the mode that does everything without asking is inverse.
fn chip(cx: &DrawCx<'_>, tone: Role) -> Style {
    let look = cx.theme.style(Role::Raised).patch(cx.theme.style(tone)).add_modifier(Modifier::BOLD);
    if tone == profile_role(Profile::Full) { look.add_modifier(Modifier::REVERSED) } else { look }
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
    let long = left.iter_mut().chain(right).filter(|p| !p.short && p.brief != p.spans).max_by_key(|p| p.rank);
    long.map(Piece::swap).is_some()
}

/// Gives the full words back where what was left out since has made room for them, to the most important piece first.
fn lengthen(left: &mut [Piece], right: &mut [Piece], fits: impl Fn(&[Piece], &[Piece]) -> bool) {
    let split = left.len();
    let mut order: Vec<usize> = (0..split + right.len()).collect();
    let swap = |n: usize, left: &mut [Piece], right: &mut [Piece]| {
        let piece = if n < split { left.get_mut(n) } else { right.get_mut(n - split) };
        piece.map(Piece::swap);
    };
    order.retain(|n| left.iter().chain(&*right).nth(*n).is_some_and(|p| p.short));
    order.sort_by_key(|n| left.iter().chain(&*right).nth(*n).map(|p| p.rank));
    for n in order {
        swap(n, left, right);
        if !fits(left, right) {
            swap(n, left, right);
        }
    }
}

/// Keeps the key of the question that waits, where what the sandbox does not hold gives way to it: its dialog says that, too.
fn keep_key(left: &[Piece], right: &mut Vec<Piece>, fits: impl Fn(&[Piece], &[Piece]) -> bool) {
    let mut tried = right.clone();
    let Some(question) = tried.iter_mut().find(|p| p.rank == 0 && p.short) else { return };
    question.swap();
    tried.retain(|p| p.act != Some(SANDBOX) || p.rank < GAPS);
    if fits(left, &tried) {
        *right = tried;
    }
}

fn pieces(cx: &DrawCx<'_>, facts: &HeaderFacts, class: SizeClass) -> (Vec<Piece>, Vec<Piece>) {
    let m = cx.model;
    let s = &m.agent.session;
    let mut left = Vec::new();
    let mut put = |group: Group, text: String, brief: String, role: Role, rank: u8| {
        if !text.is_empty() {
            let (spans, brief) = (vec![(text, role)], vec![(brief, role)]);
            left.push(Piece { spans, brief, rank, short: false, group, act: None });
        }
    };
    if let Some(sum) = &s.summary {
        let name = sum.project.rsplit('/').find(|p| !p.is_empty()).unwrap_or("/");
        put(Group::Place, draw::cut_middle(name, 24), draw::cut_middle(name, 12), Role::Strong, 2);
    }
    if let Some(g) = &s.git {
        let way = if g.under_way.is_none() { String::new() } else { format!(" {}", g.under_way) };
        let changed = if g.changed > 0 { format!("*{}", g.changed) } else { String::new() };
        let said = |n| format!("{}{changed}{way}", draw::cut_middle(&g.branch, n));
        put(Group::Place, said(24), said(10), Role::Dim, 4);
    }
    // A session without branches shows no branch.
    if !s.branch.is_empty() && s.branch.word() != tiller_protocol::BranchName::MAIN {
        let word = crate::text::clean::plain(s.branch.word());
        let said = |n| format!("on {}", draw::cut_middle(&word, n));
        put(Group::Place, said(24), said(10), Role::Text, 4);
    }
    if let Some(agent) = &*m.shown {
        let said = |n| format!("> {}", draw::cut_middle(&m.path_of(agent), n));
        put(Group::Agent, said(40), said(16), Role::Agent, 0);
    }
    if s.model.is_demo() {
        put(Group::Model, "demo".into(), "demo".into(), Role::Demo, 1);
    } else if !facts.start {
        let said = |n| draw::cut_middle(s.model.model(), n);
        put(Group::Model, said(28), said(12), Role::Text, 3);
    }
    let used = s.effort.used;
    if used != Effort::Default && !s.model.0.is_empty() && !facts.start {
        put(Group::Model, used.word().into(), used.word().into(), Role::Dim, 4);
    }
    let space = if class > SizeClass::Xs { " " } else { "" };
    let mode = format!("{space}{}{space}", s.profile.word());
    put(Group::Mode, mode.clone(), mode, profile_role(s.profile), 0);
    let mut add = |text: String, role: Role, rank: u8| put(Group::State, text.clone(), text, role, rank);
    if s.read_only {
        add("read-only".into(), Role::Strong, 1);
    }
    if let Some(g) = &s.goal {
        let (text, role) = goal(g);
        add(text, role, 2);
    }
    if m.environment.restricted {
        // Nothing that the folder brings is in use.
        add("untrusted".into(), Role::Error, 2);
    }
    left.extend(usage(cx, class));
    (left, right_pieces(cx, facts, class))
}

/// The context in use, tokens and cost.
fn usage(cx: &DrawCx<'_>, class: SizeClass) -> Vec<Piece> {
    let s = &cx.model.agent.session;
    let mut out = Vec::new();
    let mut put = |spans: Spans, brief: Spans, rank: u8| {
        out.push(Piece { spans, brief, rank, short: false, group: Group::Use, act: None });
    };
    match s.window {
        Some(window) if window > 0 => {
            let part = format!("{}%", (s.context.saturating_mul(100) / window).min(100));
            let brief = vec![(part.clone(), Role::Dim)];
            let gauge = sign::gauge(s.context, window, 5, cx.ascii);
            let whole =
                vec![("ctx ".to_owned(), Role::Dim), (format!("{gauge} "), Role::Dim), (part, Role::Text)];
            put(if class.wide() { whole } else { brief.clone() }, brief, 3);
        }
        _ if s.context > 0 => {
            let said = vec![(short(s.context), Role::Dim)];
            put(said.clone(), said, 3);
        }
        _ => {}
    }
    if class.wide() && s.usage != Default::default() {
        let (up, down) = (sign::UP.text(cx.ascii), sign::DOWN.text(cx.ascii));
        let said = format!(" {up}{} {down}{}", short(s.usage.context()), short(s.usage.output));
        let said = vec![(said, Role::Dim)];
        put(said.clone(), said, 6);
    }
    if let Some((cost, whole)) = cx.model.spent() {
        let more = if whole { "" } else { "+?" };
        let space = if class.wide() { " " } else { "" };
        let said = vec![(format!("{space}{}{more}", money(cost.usd())), Role::Text)];
        put(said.clone(), said, 4);
    }
    out
}

/// Returns what stands on the right only when it is so: news of hidden panels, errors, and what needs the person.
fn right_pieces(cx: &DrawCx<'_>, facts: &HeaderFacts, class: SizeClass) -> Vec<Piece> {
    let m = cx.model;
    let mut right = Vec::new();
    let mut put = |spans: Spans, brief: Spans, rank: u8, act: Option<&'static str>| {
        right.push(Piece { spans, brief, rank, short: false, group: Group::Right, act });
    };
    for b in &facts.badges {
        let digit = (format!("{}:", b.view.digit()), Role::Accent);
        // Without its name, when there is something else in the title: the digit is the key.
        let brief = b.title.split_once(' ').map_or(b.title.as_str(), |(_, state)| state);
        let words = |text: &str| vec![digit.clone(), (text.to_owned(), Role::Dim)];
        put(words(&b.title), words(brief), 3, Some(b.view.action()));
    }
    if !m.environment.status_line.is_empty() {
        let line = &m.environment.status_line;
        put(vec![(line.clone(), Role::Dim)], vec![(draw::cut(line, 20), Role::Dim)], 5, None);
    }
    let with_key = |words: String, role: Role, id: &'static str| -> Spans {
        let dot = format!(" {} ", sign::DOT.text(cx.ascii));
        vec![(words, role), (dot, Role::Dim), (cx.key(id), Role::Accent)]
    };
    if facts.errors > 0 {
        let (n, sign) = (facts.errors, sign::FAILED.text(cx.ascii));
        let plural = if n == 1 { "" } else { "s" };
        let whole = with_key(format!("{sign} {n} error{plural}"), Role::Error, "errors.open");
        put(whole, vec![(format!("{sign} {n}"), Role::Error)], 2, Some("errors.open"));
    }
    let confined = match m.terminal_of(&m.shown_agent()) {
        Some(place) => Some(elsewhere(place, m.agent.session.profile)),
        None => m.engine.sandbox.as_deref().and_then(|s| sandbox(s, m.agent.session.profile)),
    };
    if let Some((words, brief, role)) = confined {
        let rank = if role == Role::Error { 1 } else { GAPS };
        put(vec![(words, role)], vec![(brief, role)], rank, Some(SANDBOX));
    }
    let queued = m.agent.waiting().count();
    if queued > 0 && m.window.screen.1 < LOW {
        let (whole, brief) = (format!("queue {queued}"), format!("q{queued}"));
        put(vec![(whole, Role::Text)], vec![(brief, Role::Text)], 1, None);
    }
    let needs = needs_you(m);
    if needs > 0 {
        let sign = sign::ATTENTION.text(cx.ascii);
        let verb = if needs == 1 { "needs" } else { "need" };
        let brief = vec![(format!("{sign} {needs}"), Role::Waiting)];
        let whole = with_key(format!("{sign} {needs} {verb} you"), Role::Waiting, "global.answer");
        put(if class >= SizeClass::M { whole } else { brief.clone() }, brief, 0, Some("global.answer"));
    }
    right
}

/// True when commands run in this mode.
pub(crate) fn runs_commands(profile: Profile) -> bool {
    matches!(profile, Profile::Ask | Profile::AutoEdit | Profile::Full)
}

/// Returns what the sandbox does not hold, in the modes in which commands run: in full, in brief, and its tone. `None`: it
/// holds everything that could be tested.
pub(crate) fn sandbox(s: &SandboxState, profile: Profile) -> Option<(String, String, Role)> {
    /// Names of what is open that are shown.
    const NAMED: usize = 2;
    let tone = if profile == Profile::Full { Role::Error } else { Role::Dim };
    if !runs_commands(profile) {
        return None;
    }
    if s.is_missing() {
        return Some(("no sandbox".into(), "no sandbox".into(), Role::Error));
    }
    if s.scope == SandboxScope::Off {
        return Some(("sandbox off".into(), "sandbox off".into(), tone));
    }
    let open: Vec<_> = s.open().map(|c| clean::plain(&c.short)).collect();
    let mut named = open.iter().take(NAMED).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match open.len() {
        0 => return None,
        n if n > NAMED => named.push_str(&format!(" +{}", n - NAMED)),
        _ => {}
    }
    let brief = match open.as_slice() {
        [first] => first.to_string(),
        all => {
            format!("{} +{}", all.first().map(AsRef::as_ref).unwrap_or_default(), all.len().saturating_sub(1))
        }
    };
    Some((format!("sandbox: {named} open"), format!("{brief} open"), tone))
}

/// Where commands run that run elsewhere, and whether nothing confines them there: in full, in brief, and its tone.
fn elsewhere(place: &TerminalPlace, profile: Profile) -> (String, String, Role) {
    let (name, kind) = (clean::plain(&place.name), clean::plain(&place.kind));
    let brief = format!("@{}", draw::cut_middle(&name, 12));
    match place.limits {
        TerminalLimits::Container => (format!("@{name} {kind}"), brief, Role::Dim),
        TerminalLimits::Account => {
            let tone = if profile == Profile::Full { Role::Error } else { Role::Text };
            (format!("@{name} {kind}: not confined"), brief, tone)
        }
    }
}

/// The tone of the permission mode.
pub fn profile_role(p: Profile) -> Role {
    match p {
        Profile::ReadOnly | Profile::Plan => Role::ModeRead,
        Profile::Ask => Role::ModeAsk,
        Profile::AutoEdit => Role::ModeEdit,
        Profile::Full => Role::ModeAuto,
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
    fn full_words_come_back_where_there_is_room_for_them() {
        let piece = |words: &str, brief: &str, rank: u8| {
            let spans = |text: &str| vec![(text.to_owned(), Role::Text)];
            let mut piece = Piece {
                spans: spans(words),
                brief: spans(brief),
                short: false,
                rank,
                group: Group::Place,
                act: None,
            };
            piece.swap();
            piece
        };
        for (room, want) in
            [(6, ["ab", "cd", "ef"]), (8, ["ab", "cdcd", "ef"]), (12, ["abab", "cdcd", "efef"])]
        {
            let mut left = vec![piece("abab", "ab", 3), piece("cdcd", "cd", 1)];
            let mut right = vec![piece("efef", "ef", 2)];
            let wide = |l: &[Piece]| l.iter().map(Piece::width).sum::<usize>();
            lengthen(&mut left, &mut right, |l, r| wide(l) + wide(r) <= room);
            let said: Vec<_> = left.iter().chain(&right).map(|p| p.spans[0].0.as_str()).collect();
            assert_eq!(said, want, "{room}");
        }
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
