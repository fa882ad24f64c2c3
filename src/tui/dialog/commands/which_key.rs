//! The box that shows what can follow the keys pressed so far. Not a layer: it takes no keys.
//!
//! After the leader key it shows five groups ([`Menu`]): what has a key of its own, arrows and digits are left out, since
//! they are found faster without it. Help lists everything.

use crossterm::event::KeyCode;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::keymap::action::{Action, Menu};
use crate::keymap::{Chord, show};
use crate::panel::{DrawCx, Hint};
use crate::theme::Role;
use crate::view::layout::Areas;
use crate::widget::draw;

/// Columns between two groups, at least and at most.
const GAP: u16 = 3;
const WIDE_GAP: u16 = 10;

/// A key and what it does.
struct Entry {
    key: String,
    label: &'static str,
}

/// A title, and the entries below it.
struct Group {
    title: &'static str,
    entries: Vec<Entry>,
}

impl Group {
    fn key_width(&self) -> u16 {
        self.entries.iter().map(|e| e.key.width()).max().unwrap_or(0) as u16
    }

    fn width(&self) -> u16 {
        let label = self.entries.iter().map(|e| e.label.width()).max().unwrap_or(0) as u16;
        (self.key_width() + 1 + label).max(self.title.width() as u16)
    }

    /// With the title.
    fn height(&self) -> u16 {
        self.entries.len() as u16 + u16::from(!self.title.is_empty())
    }
}

/// Draws it above the footer, over the whole width. Returns the cells that it fills. `refused`: what the dialog on top cannot
/// do now. `hints`: how it calls its actions now, as in the footer.
pub(crate) fn draw(
    cx: &DrawCx<'_>,
    pending: &[Chord],
    refused: &dyn Fn(Action) -> bool,
    hints: &[Hint],
    areas: &Areas,
    buf: &mut Buffer,
) -> Rect {
    let groups = groups(cx, pending, refused, hints);
    let screen = buf.area;
    let room = screen.width.saturating_sub(4);
    let bottom = if areas.footer.area() > 0 { areas.footer.y } else { screen.bottom() };
    let (rows, hidden) = arrange(groups, room, bottom.saturating_sub(4));
    if rows.is_empty() {
        return Rect::ZERO;
    }
    let height: u16 = rows.iter().map(|r| row_height(r)).sum::<u16>() + rows.len() as u16 - 1;
    let area =
        Rect { x: screen.x, y: bottom.saturating_sub(height + 3), width: screen.width, height: height + 3 };
    draw::clear(buf, area, cx.theme.style(Role::Band));
    let title = Rect { x: area.x + 2, width: room, height: 1, ..area };
    let used = draw::text(buf, title, &show(pending), cx.theme.style(Role::Accent));
    let after = Rect { x: title.x + used + 2, width: title.width.saturating_sub(used + 2), ..title };
    let words = match hidden {
        0 => "then".to_owned(),
        n => format!("then  (+{n} in {})", cx.key("help.open")),
    };
    draw::text(buf, after, &words, cx.theme.style(Role::Dim));
    let mut y = area.y + 2;
    for row in rows {
        let mut x = title.x;
        let step = row_height(&row);
        let used: u16 = row.iter().map(|g| g.width()).sum();
        let gaps = row.len().saturating_sub(1).max(1) as u16;
        let gap = (room.saturating_sub(used) / gaps).clamp(GAP, WIDE_GAP);
        for group in row {
            let spot = Rect { x, y, width: group.width().min(title.right().saturating_sub(x)), height: step };
            x += group.width() + gap;
            draw_group(cx, &group, spot, buf);
        }
        y += step + 1;
    }
    area
}

fn draw_group(cx: &DrawCx<'_>, group: &Group, spot: Rect, buf: &mut Buffer) {
    let mut line = Rect { height: 1, ..spot };
    if !group.title.is_empty() {
        draw::text(buf, line, group.title, cx.theme.style(Role::Strong));
        line.y += 1;
    }
    let keys = group.key_width() + 1;
    for entry in &group.entries {
        draw::text(buf, line, &entry.key, cx.theme.style(Role::Accent));
        let rest = Rect { x: line.x + keys, width: line.width.saturating_sub(keys), ..line };
        draw::text(buf, rest, entry.label, cx.theme.style(Role::Text));
        line.y += 1;
    }
}

/// Returns what follows the keys, in groups.
fn groups(
    cx: &DrawCx<'_>,
    pending: &[Chord],
    refused: &dyn Fn(Action) -> bool,
    hints: &[Hint],
) -> Vec<Group> {
    let leader = pending == [cx.keys.leader];
    let mut here = Vec::new();
    let mut menus: Vec<(Menu, Vec<Entry>)> = Menu::ALL.iter().map(|m| (*m, Vec::new())).collect();
    for (key, action) in cx.keys.following(cx.scopes, pending) {
        let spec = action.and_then(|a| cx.keys.words().find(a.0));
        let hint = hints.iter().find(|hint| Some(hint.action) == action).and_then(|hint| hint.label);
        let label = hint.unwrap_or_else(|| spec.map_or("more", |s| s.label));
        let entry = Entry { key: key.shown(), label };
        let menu = spec.and_then(|s| s.menu);
        match menu.and_then(|m| menus.iter_mut().find(|(of, _)| *of == m)) {
            _ if action.is_some_and(refused) => {}
            _ if leader && (moves(key) || action.is_some_and(|a| direct(cx, a))) => {}
            // The first of several keys is enough.
            Some((_, list)) if leader && list.iter().all(|e| e.label != entry.label) => list.push(entry),
            Some(_) if leader => {}
            // What only the focused panel or dialog has; an action of everywhere without a menu is found in help.
            _ if !leader || action.is_some_and(|a| local(cx, pending, key, a)) => here.push(entry),
            _ => {}
        }
    }
    here.sort_by(|a, b| a.key.cmp(&b.key));
    let mut all = vec![Group { title: if leader { "Here" } else { "" }, entries: here }];
    all.extend(menus.into_iter().map(|(menu, entries)| Group { title: menu.title(), entries }));
    all.retain(|g| !g.entries.is_empty());
    all
}

/// Arrows, digits and other keys that move.
fn moves(key: Chord) -> bool {
    !matches!(key.code, KeyCode::Char(c) if !c.is_ascii_digit())
}

/// True when a single key does it here.
fn direct(cx: &DrawCx<'_>, action: Action) -> bool {
    cx.keys.keys_of(action, cx.scopes).is_some_and(|keys| keys.len() == 1)
}

/// True when an inner section of the key file has this key.
fn local(cx: &DrawCx<'_>, pending: &[Chord], key: Chord, action: Action) -> bool {
    cx.scopes.iter().filter(|s| **s != "global").any(|scope| {
        cx.keys.following(&[scope], pending).iter().any(|(k, a)| *k == key && *a == Some(action))
    })
}

fn row_height(row: &[Group]) -> u16 {
    row.iter().map(Group::height).max().unwrap_or(0)
}

/// Puts the groups side by side, in further rows where there is no room; what does not fit below `height` is counted.
/// A single group without a title is spread over columns.
fn arrange(groups: Vec<Group>, room: u16, height: u16) -> (Vec<Vec<Group>>, usize) {
    let groups = if groups.len() == 1 { spread(groups, room) } else { groups };
    let mut rows: Vec<Vec<Group>> = Vec::new();
    let mut used = 0;
    for group in groups {
        let need = group.width() + GAP;
        match rows.last_mut().filter(|_| used + need <= room + GAP) {
            Some(row) => {
                used += need;
                row.push(group);
            }
            None => {
                used = need;
                rows.push(vec![group]);
            }
        }
    }
    let (mut hidden, mut left) = (0, height);
    for row in &mut rows {
        for group in row.iter_mut() {
            let title = u16::from(!group.title.is_empty());
            let fits = usize::from(left.saturating_sub(title));
            hidden += group.entries.len().saturating_sub(fits);
            group.entries.truncate(fits);
        }
        left = left.saturating_sub(row_height(row) + 1);
        row.retain(|g| !g.entries.is_empty());
    }
    rows.retain(|r| !r.is_empty());
    (rows, hidden)
}

/// One long group as columns of equal height.
fn spread(groups: Vec<Group>, room: u16) -> Vec<Group> {
    let mut out = Vec::new();
    for group in groups {
        let columns = (room / (group.width() + GAP)).clamp(1, 4);
        let most = (group.entries.len() as u16).div_ceil(columns).max(1);
        let mut title = group.title;
        let mut entries = group.entries.into_iter().peekable();
        while entries.peek().is_some() {
            out.push(Group { title, entries: entries.by_ref().take(usize::from(most)).collect() });
            // Columns without a title begin in the row of the first title, so they get a blank one.
            title = if title.is_empty() { "" } else { " " };
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::testing::Robot;

    fn opened(columns: u16, rows: u16) -> String {
        let mut r = Robot::new(columns, rows);
        r.run("ctrl-x; wait 400");
        r.screen()
    }

    #[test]
    fn five_groups_fit_a_small_screen_and_nothing_is_hidden() {
        let screen = opened(80, 24);
        let titles = screen.lines().find(|l| l.contains("Agents") && l.contains("Write")).unwrap_or_default();
        for title in ["Go", "Session", "Agents", "View", "Write"] {
            assert!(titles.contains(title), "{title}: {screen}");
        }
        assert!(!screen.contains("(+"), "{screen}");
        insta::assert_snapshot!("which_key_80x24", screen);
    }

    #[test]
    fn what_has_a_key_of_its_own_is_left_out_and_no_digit_or_arrow_stands_there() {
        let screen = opened(118, 32);
        for label in ["todo", "agents\n", "Left", "Down", "suspend", "Alt-"] {
            assert!(!screen.contains(&format!(" {label} ")), "{label}: {screen}");
        }
        assert!(screen.contains("q quit") && screen.contains("e errors"), "{screen}");
    }

    #[test]
    fn keys_of_the_dialog_on_top_stand_first() {
        let mut r = Robot::new(118, 32);
        r.run("ctrl-x s; wait 500; ctrl-x; wait 400");
        let screen = r.screen();
        assert!(screen.contains("Here") && screen.contains("r rename"), "{screen}");
    }
}
