//! Help: the keys that a newcomer needs, in three columns; everything else is found by typing. Made from the keymap and
//! the list of actions, so it is never out of date. Choosing an entry does it.

mod essentials;
mod everything;

use crossterm::event::{MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use self::essentials::{Does, ESSENTIALS, Essential, essential};
use self::everything::{Everything, everything};
use crate::app::App;
use crate::app::effect::{ComposerInput, Effect};
use crate::dialog::picker::Picker;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::{
    Availability, DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View,
};
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::{draw, surface};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("help.open", "help", "Search keys and commands", |app| Ok(Box::new(open(app))))
        .menu(Menu::Go)
        .keys(&["f1", "leader f1"])],
    scopes: &[Scope::new("help", Some("picker"), "Help", true)],
    ..Dialog::NONE
};

/// Rows of the longest column.
const ROWS: u16 = 8;
/// Columns between two columns of entries, at most.
const MOST_GAP: u16 = 8;

/// The dialog: the page of essentials while nothing is typed, and a list of everything.
pub(crate) struct Help {
    list: Picker,
    columns: Vec<(&'static str, Vec<Essential>)>,
    /// The chosen entry: its column and its row.
    at: (usize, usize),
    /// It was opened over a dialog with keys of its own: the list, which begins with them, is shown in place of the page.
    of_dialog: bool,
}

/// Makes it for the panel that has the focus now.
pub(crate) fn open(app: &App) -> Help {
    let columns =
        ESSENTIALS.map(|(title, list)| (title, list.iter().map(|(d, l)| essential(app, *d, l)).collect()));
    let list = Picker::new(Everything { words: app.registry.words(), items: everything(app) });
    let own = |scope: &&str| app.keys.map.table().iter().any(|row| row.scope == *scope);
    let of_dialog = !app.layers.is_empty() && app.scopes().first().is_some_and(own);
    // Not on what sends, and not on what stops something.
    Help { list, columns: columns.into(), at: (1, 0), of_dialog }
}

/// Columns for the keys of a column, with what follows them.
fn keys(list: &[Essential]) -> u16 {
    list.iter().map(|e| crate::text::width(&e.key)).max().unwrap_or(0) as u16 + 2
}

/// Columns for the words of a column.
fn labels(list: &[Essential]) -> u16 {
    list.iter().map(|e| crate::text::width(e.label)).max().unwrap_or(0) as u16
}

impl Help {
    /// The page of essentials is shown.
    fn page(&self) -> bool {
        self.list.is_unfiltered() && !self.of_dialog
    }

    fn chosen(&self) -> Option<&Essential> {
        self.columns.get(self.at.0)?.1.get(self.at.1)
    }

    /// Moves on the page; `false`: the action is another one.
    fn walk(&mut self, id: &str) -> bool {
        let last = |c: usize| self.columns.get(c).map_or(0, |(_, l)| l.len().saturating_sub(1));
        let (column, row) = self.at;
        self.at = match id {
            "picker.down" if row < last(column) => (column, row + 1),
            "picker.down" => ((column + 1) % self.columns.len(), 0),
            "picker.up" if row > 0 => (column, row - 1),
            "picker.up" => {
                let column = (column + self.columns.len() - 1) % self.columns.len();
                (column, last(column))
            }
            "edit.left" => (column.saturating_sub(1), row.min(last(column.saturating_sub(1)))),
            "edit.right" => {
                let column = (column + 1).min(self.columns.len() - 1);
                (column, row.min(last(column)))
            }
            "picker.first" => (0, 0),
            "picker.last" => (self.columns.len() - 1, last(self.columns.len() - 1)),
            _ => return false,
        };
        true
    }

    fn choose(&self) -> Reply {
        use tiller_protocol::{Notice, NoticeKind};
        let Some(entry) = self.chosen() else { return Reply::done() };
        if let Some(why) = &entry.disabled {
            return Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, why.clone())));
        }
        Reply::Done(match entry.does {
            Does::Act(id) | Does::Draft(id) => vec![Effect::Pop, Effect::Act(Action(id))],
            Does::Type(text) => {
                let text = ComposerInput::Text { text: text.into(), replace: false };
                vec![Effect::Pop, Effect::Focus(View::Composer), Effect::Compose(text)]
            }
        })
    }

    /// Where the columns lie, and where each entry of them.
    fn spots(&self, area: Rect) -> Vec<(Rect, Vec<Rect>)> {
        // Each as wide as its entries; what is left stands between them.
        let widths: Vec<u16> =
            self.columns.iter().map(|(_, list)| keys(list) + 2 + labels(list) + 1).collect();
        let gaps = self.columns.len().saturating_sub(1).max(1) as u16;
        let left = area.width.saturating_sub(widths.iter().sum());
        let gap = (left / gaps).clamp(1, MOST_GAP);
        let mut x = area.x;
        let column = |((_, list), width): (&(&str, Vec<Essential>), u16)| {
            let whole = Rect {
                x,
                y: (area.y + 2).min(area.bottom()),
                width: width.min(area.right().saturating_sub(x)),
                height: area.height.saturating_sub(2),
            };
            x += width + gap;
            let entry = |r: usize| {
                let y = whole.y + 1 + r as u16;
                Rect { y, height: u16::from(y < whole.bottom()), ..whole }
            };
            (whole, (0..list.len()).map(entry).collect())
        };
        self.columns.iter().zip(widths).map(column).collect()
    }

    fn draw_page(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        for (c, ((whole, spots), (title, list))) in
            self.spots(area).into_iter().zip(&self.columns).enumerate()
        {
            if whole.height == 0 {
                continue;
            }
            let head = Rect {
                x: whole.x + 2.min(whole.width),
                width: whole.width.saturating_sub(2),
                height: 1,
                ..whole
            };
            draw::text(buf, head, title, cx.theme.style(Role::Strong));
            let keys = keys(list);
            for (r, (entry, spot)) in list.iter().zip(spots).enumerate() {
                let line =
                    Rect { x: spot.x + 2.min(spot.width), width: spot.width.saturating_sub(2), ..spot };
                draw::text(buf, line, &entry.key, cx.theme.style(Role::Accent));
                let rest = Rect { x: line.x + keys, width: line.width.saturating_sub(keys), ..line };
                let off = entry.disabled.is_some() && !matches!(entry.does, Does::Draft(_));
                draw::text(buf, rest, entry.label, cx.theme.style(if off { Role::Dim } else { Role::Text }));
                if (c, r) == self.at && spot.height > 0 {
                    surface::selected(cx, spot, buf);
                }
            }
        }
    }
}

impl Panel for Help {
    fn status(&self, model: &Model) -> PanelStatus {
        self.list.status(model)
    }

    fn title(&self, model: &Model) -> String {
        self.list.title(model)
    }

    fn actions(&self) -> &'static [ActionSpec] {
        self.list.actions()
    }

    fn placement(&self, _columns: u16, model: &Model) -> Placement {
        let height = (ROWS + 7).max(model.window.screen.1 / 3);
        Placement::Center { width: 96, height }
    }

    fn availability(&self, action: Action, model: &Model) -> Availability {
        let decides = action.0 == "picker.choose" && self.chosen().is_some_and(|e| e.ends);
        match self.page() {
            true if decides => Availability::Decides,
            true => Availability::Available,
            false => self.list.availability(action, model),
        }
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        if self.page() {
            if action.0 == "picker.choose" {
                return self.choose();
            }
            if self.walk(action.0) {
                return Reply::done();
            }
        }
        self.list.act(action, model)
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Mouse(event, area) if self.page() => self.on_mouse(event, area),
            input => self.list.input(input, model),
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        self.list.handle(event, model)
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        if !self.page() {
            return self.list.hints(model);
        }
        let possible = self.chosen().is_some_and(|e| e.disabled.is_none());
        possible.then(|| Hint::as_("picker.choose", "do it")).into_iter().collect()
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        self.list.measure(area, cx)
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        if self.page() {
            self.list.draw_field(cx, area, buf);
            self.draw_page(cx, area, buf);
        } else {
            self.list.draw(cx, area, buf);
        }
    }

    fn cursor(&self, area: Rect, model: &Model) -> Option<Position> {
        self.list.cursor(area, model)
    }
}

impl Help {
    fn on_mouse(&mut self, event: &MouseEvent, area: Rect) -> Reply {
        if !matches!(event.kind, MouseEventKind::Down(_)) {
            return Reply::Ignored;
        }
        let here = Position::new(event.column, event.row);
        let spots = self.spots(area);
        let hit = spots
            .iter()
            .enumerate()
            .find_map(|(c, (_, list))| list.iter().position(|s| s.contains(here)).map(|r| (c, r)));
        match hit {
            Some(at) if at == self.at => Reply::with(Effect::Act(Action("picker.choose"))),
            Some(at) => {
                self.at = at;
                Reply::done()
            }
            None => Reply::done(),
        }
    }
}

#[cfg(test)]
mod tests;
