//! The list over the composer: commands after `/`, files and more after `@`, skills after `$`. One at a time.

use std::ops::Range;
use tiller_protocol::mcp::McpPromptView;
use tiller_protocol::skill::{SkillRow, SkillUse};
use tiller_protocol::view::MentionKind;

use tiller_protocol::view::Mention;

use tiller_protocol::{Effort, WorkflowFile};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::model::kinds::AgentKind;
use crate::panel::DrawCx;
use crate::slash::Commands;
use crate::text::paint::{self, PaintTarget};
use crate::text::wrap;
use crate::theme::Role;
use crate::widget::edit::Edit;
use crate::widget::table::{Cell, Column, Widths};
use crate::widget::{draw, surface};

/// Rows of the list at most.
pub(crate) const ROWS: usize = 8;

/// The kind of the list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PopupKind {
    Slash,
    Mention,
    /// Names of workflows, after their command.
    Workflow,
    /// Levels of effort, after their command.
    Effort,
    /// Skills, after `$`.
    Skill,
}

/// An open list.
#[derive(Clone, Debug)]
pub(crate) struct Popup {
    pub kind: PopupKind,
    /// The word that it completes, without its mark.
    pub word: String,
    /// Its bytes in the text, with the mark.
    pub range: Range<usize>,
    pub rows: Vec<PopupRow>,
    pub selected: usize,
    /// The person has gone to another row than the first.
    pub moved: bool,
}

/// One line of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PopupRow {
    pub name: String,
    pub detail: String,
    /// Size and tokens of a file.
    pub figures: [Cell; 2],
    pub preview: String,
    /// It is a kind of agent, not a file.
    pub agent: bool,
}

impl Popup {
    /// The list that fits where the caret stands, if any.
    pub(crate) fn at(buffer: &Edit, commands: Commands, prompts: &[McpPromptView]) -> Option<Self> {
        let head = &buffer.text()[..buffer.caret()];
        if let Some(word) = head.strip_prefix('/')
            && !word.contains(char::is_whitespace)
            && (!word.contains('/') || word.contains(':'))
        {
            let mut new = Self::new(PopupKind::Slash, word, 0..head.len());
            new.rows = commands
                .matching(word)
                .into_iter()
                .map(|c| PopupRow {
                    name: c.name().into(),
                    detail: c.help().into(),
                    preview: c.usage().into(),
                    ..PopupRow::default()
                })
                .collect();
            new.add_prompts(prompts);
            return (!new.rows.is_empty()).then_some(new);
        }
        if let Some(word) = head.strip_prefix("/workflow ")
            && !word.contains(char::is_whitespace)
        {
            return Some(Self::new(PopupKind::Workflow, word, "/workflow ".len()..head.len()));
        }
        if let Some(word) = head.strip_prefix("/effort ")
            && !word.contains(char::is_whitespace)
        {
            let mut new = Self::new(PopupKind::Effort, word, "/effort ".len()..head.len());
            let fits = Effort::ALL.into_iter().filter(|e| e.word().starts_with(word));
            new.rows = fits
                .map(|e| PopupRow { name: e.word().into(), detail: meaning(e).into(), ..PopupRow::default() })
                .collect();
            return (!new.rows.is_empty()).then_some(new);
        }
        let start = head
            .rfind(char::is_whitespace)
            .map_or(0, |i| i + head[i..].chars().next().map_or(1, char::len_utf8));
        if let Some(word) = head[start..].strip_prefix('$') {
            let plain = word.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
            return plain.then(|| Self::new(PopupKind::Skill, word, start..head.len()));
        }
        let word = head[start..].strip_prefix('@')?;
        // A line range is being typed: the name is settled. Other text behind a colon is the address of a resource.
        let range = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '-');
        let settled = word.split_once(':').is_some_and(|(_, rest)| range(rest));
        (!settled).then(|| Self::new(PopupKind::Mention, word, start..head.len()))
    }

    /// Adds the prompts of MCP servers that fit: behind the commands, those that begin with the word first.
    fn add_prompts(&mut self, prompts: &[McpPromptView]) {
        let mut fit: Vec<(bool, String, &McpPromptView)> = prompts
            .iter()
            .map(|prompt| (prompt.command(), prompt))
            .filter(|(command, _)| command.contains(&self.word))
            .map(|(command, prompt)| (!command.starts_with(&self.word), command, prompt))
            .collect();
        fit.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        self.rows.extend(fit.into_iter().map(|(_, command, prompt)| PopupRow {
            detail: match prompt.summary.as_str() {
                "" => format!("prompt of {}", prompt.server),
                summary => summary.to_owned(),
            },
            preview: prompt.usage(),
            name: command,
            ..PopupRow::default()
        }));
    }

    fn new(kind: PopupKind, word: &str, range: Range<usize>) -> Self {
        Self { kind, word: word.into(), range, rows: Vec::new(), selected: 0, moved: false }
    }

    /// Takes what the engine found, when it is still what is asked. At the beginning of a message an agent can be
    /// named, too.
    pub(crate) fn found(&mut self, text: &str, mentions: &[Mention], kinds: &[AgentKind]) {
        if self.kind != PopupKind::Mention || text != self.word {
            return;
        }
        let agent = |k: &&AgentKind| self.range.start == 0 && k.name.starts_with(text);
        let agents = kinds.iter().filter(agent).map(|k| PopupRow {
            name: k.name.clone(),
            detail: format!("agent  {}", k.about),
            preview: k.about.clone(),
            agent: true,
            ..PopupRow::default()
        });
        let agents: Vec<PopupRow> = agents.collect();
        self.rows = mentions
            .iter()
            .map(|m| {
                let kind = if m.kind == MentionKind::File { String::new() } else { m.kind.to_string() };
                PopupRow {
                    name: m.name.clone(),
                    detail: kind,
                    figures: [
                        m.size.map_or_else(Cell::default, size),
                        m.tokens.map_or_else(Cell::default, |t| Cell::number(format!("~{t}"), " tokens")),
                    ],
                    preview: m.preview.clone(),
                    agent: false,
                }
            })
            .collect();
        self.rows.splice(0..0, agents);
        self.selected = 0;
    }

    /// Takes the names of workflows; those that begin with the word come first.
    pub(crate) fn workflows(&mut self, files: &[WorkflowFile]) {
        let row = |f: &WorkflowFile| {
            let steps = if f.steps.len() == 1 { "1 step".into() } else { format!("{} steps", f.steps.len()) };
            let detail = if f.wrong.is_empty() {
                format!("{steps}  {}", f.description)
            } else {
                "has an error".into()
            };
            let preview = if f.wrong.is_empty() { f.steps.join("\n") } else { f.wrong.clone() };
            PopupRow { name: f.name.clone(), detail, preview, ..PopupRow::default() }
        };
        let at = |f: &&WorkflowFile| f.name.find(&self.word);
        // A name of several words cannot be given to the command.
        let one = |f: &&WorkflowFile| !f.name.contains(char::is_whitespace);
        let mut fit: Vec<&WorkflowFile> = files.iter().filter(|f| at(f).is_some()).filter(one).collect();
        fit.sort_by_key(|f| at(f) != Some(0));
        self.rows = fit.into_iter().map(row).collect();
    }

    /// Takes the skills; those that begin with the word come first.
    pub(crate) fn skills(&mut self, rows: &[SkillRow]) {
        let at = |r: &&SkillRow| r.name.find(&self.word);
        let used = |r: &&SkillRow| r.state == SkillUse::Used;
        let mut fit: Vec<&SkillRow> = rows.iter().filter(used).filter(|r| at(r).is_some()).collect();
        fit.sort_by_key(|r| at(r) != Some(0));
        let row = |r: &SkillRow| {
            let usage = format!("${} {}", r.name, r.arguments);
            PopupRow {
                name: r.name.clone(),
                detail: r.description.clone(),
                preview: format!("{}\n{}", usage.trim_end(), r.source),
                ..PopupRow::default()
            }
        };
        self.rows = fit.into_iter().map(row).collect();
    }

    pub(crate) fn step(&mut self, down: bool) {
        let n = self.rows.len();
        self.moved = true;
        if n > 0 {
            self.selected = if down { (self.selected + 1) % n } else { (self.selected + n - 1) % n };
        }
    }

    pub(crate) fn current(&self) -> Option<&PopupRow> {
        self.rows.get(self.selected)
    }

    /// The rows to show where there is room for so many, and which of them is selected: it is always among them.
    pub(crate) fn window(&self, room: usize) -> (&[PopupRow], usize) {
        let room = room.min(ROWS);
        if room == 0 {
            return (&[], 0);
        }
        let from = (self.selected + 1).saturating_sub(room);
        let to = (from + room).min(self.rows.len());
        (&self.rows[from..to], self.selected - from)
    }
}

/// Skills that a text names as `$name`.
#[derive(Default)]
pub(super) struct NamedSkills<'t> {
    pub(super) known: Vec<&'t str>,
    /// The first name that no skill has. A word at the caret is not complete yet.
    pub(super) unknown: Option<&'t str>,
}

/// Finds them as the engine does. Without a list of skills none is known or unknown.
pub(super) fn named_skills<'t>(edit: &'t Edit, rows: &[SkillRow]) -> NamedSkills<'t> {
    let mut found = NamedSkills::default();
    if rows.is_empty() {
        return found;
    }
    let (text, caret) = (edit.text(), edit.caret());
    for word in text.split_whitespace() {
        let Some(name) = word.trim_start_matches(['(', '[', '"', '\'']).strip_prefix('$') else { continue };
        let end = name.find(|c: char| !matches!(c, 'a'..='z' | '0'..='9' | '-')).unwrap_or(name.len());
        let (name, behind) = name.split_at(end);
        let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins || !behind.chars().all(|c| ",;!?)].:\"'".contains(c)) {
            continue;
        }
        let at_caret = name.as_ptr() as usize + name.len() == text.as_ptr() as usize + caret;
        match rows.iter().any(|r| r.name == name && r.state == SkillUse::Used) {
            true if !found.known.contains(&name) => found.known.push(name),
            false if !at_caret => found.unknown = found.unknown.or(Some(name)),
            _ => {}
        }
    }
    found
}

/// A level of effort in a few words.
fn meaning(effort: Effort) -> &'static str {
    match effort {
        Effort::Default => "the provider's default",
        Effort::Off => "no thinking, if the model allows it",
        Effort::Low => "fast and cheap",
        Effort::Medium => "balanced",
        Effort::High => "hard problems",
        Effort::Max => "the model's maximum; slow and expensive",
    }
}

/// Bytes in the unit that reads best.
fn size(bytes: u64) -> Cell {
    match bytes {
        0..1024 => Cell::number(bytes.to_string(), " B"),
        1024..1_048_576 => Cell::number(format!("{:.1}", bytes as f64 / 1024.0), " KB"),
        _ => Cell::number(format!("{:.1}", bytes as f64 / 1_048_576.0), " MB"),
    }
}

/// Columns from which on there is a preview.
const WIDE: u16 = 90;
/// Columns before a name: the bar of the selected row and a blank.
const INDENT: u16 = 2;

/// Names, what they are, and for files their size and tokens.
const NAMES: &[Column] =
    &[Column::path(""), Column::text("").grows(), Column::number("").rank(2), Column::number("").rank(1)];

/// The same for names that are typed: a name that is cut cannot be read.
const TYPED: &[Column] = &[Column::text("").keeps(40), Column::text("").grows()];

/// Draws it in `area`, which has a row for each row of the window.
pub(super) fn draw_list(popup: &Popup, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    let (rows, selected) = popup.window(usize::from(area.height));
    let previews = rows.iter().any(|r| !r.preview.is_empty());
    let left = match popup.kind {
        _ if !previews || area.width < WIDE => area.width,
        // A command's preview is its usage, which is short; the words beside its name need the room more.
        PopupKind::Slash | PopupKind::Skill => area.width / 4 * 3,
        _ => area.width / 2,
    };
    let cells: Vec<[Cell; 4]> = rows
        .iter()
        .map(|r| {
            let [size, tokens] = r.figures.clone();
            [Cell::new(r.name.as_str(), Role::Text), Cell::dim(r.detail.as_str()), size, tokens]
        })
        .collect();
    let widths = Widths::of(cells.iter().map(<[Cell; 4]>::as_slice));
    let columns = if popup.kind == PopupKind::Mention { NAMES } else { TYPED };
    let count = count(popup, area.height);
    let room = |last: bool| left.saturating_sub(INDENT + 1 + if last { count.len() as u16 } else { 0 });
    // The figures of all rows stand in the same columns; texts alone make way in the last row only.
    let figures = popup.kind == PopupKind::Mention;
    let fits = [room(figures), room(true)].map(|room| widths.fit(columns, usize::from(room)));
    for (i, cells) in cells.iter().enumerate() {
        let fit = &fits[usize::from(i + 1 == rows.len())];
        let line = Rect { y: area.y + i as u16, height: 1, width: left, ..area };
        let text = fit.row(cells);
        let place = PaintTarget { x: line.x + INDENT, y: line.y, columns: left.saturating_sub(INDENT) };
        let mut cut = Vec::new();
        wrap::wrap(&text, 0, usize::from(place.columns).max(1), &mut cut);
        if let Some(row) = cut.first() {
            paint::row(buf, place, &text, *row, cx.theme, &[]);
        }
        if i == selected {
            surface::selected(cx, line, buf);
        }
    }
    let width = (count.len() as u16).min(left);
    let spot = Rect { x: area.x + left - width, y: area.bottom().saturating_sub(1), width, height: 1 };
    draw::text(buf, spot, &count, cx.theme.style(Role::Dim));
    if left < area.width
        && let Some(row) = popup.current()
    {
        for (i, text) in row.preview.lines().take(usize::from(area.height)).enumerate() {
            let line =
                Rect { x: area.x + left + 2, y: area.y + i as u16, width: area.width - left - 2, height: 1 };
            draw::text(buf, line, text, cx.theme.style(Role::Dim));
        }
    }
}

/// `3 of 41`, for the end of the last row; empty when all rows are visible.
fn count(popup: &Popup, height: u16) -> String {
    let all = popup.rows.len();
    if all <= usize::from(height) || height == 0 {
        return String::new();
    }
    format!("  {} of {all}", popup.selected + 1)
}
