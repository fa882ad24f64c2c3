//! Help: the keys that a newcomer needs, in three columns; everything else is found by typing. Made from the keymap and
//! the list of actions, so it is never out of date. Choosing an entry does it.

use crossterm::event::{MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::app::App;
use crate::app::effect::{ComposerInput, Effect};
use crate::dialog::picker::{Item, ListSpec, Picker, Source};
use crate::keymap::KeyRow;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::keymap::show;
use crate::keymap::vocabulary::Vocabulary;
use crate::model::Model;
use crate::panel::{
    Availability, DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View,
};
use crate::registry::{Dialog, Opener};
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::table::{Cell, Column};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("help.open", "help", "Search keys and commands", |app| Ok(Box::new(open(app))))
        .menu(Menu::Go)
        .keys(&["f1", "leader f1"])],
    scopes: &[Scope::new("help", Some("picker"), "Help", true)],
    ..Dialog::NONE
};

/// What choosing an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// An action, by its id.
    Act(&'static str),
    /// An action of the composer that concerns the draft, which help hides: it is pressed there.
    Draft(&'static str),
    /// A character in the composer that opens a list or begins a command.
    Type(&'static str),
}

/// What a person needs first, by subject: the words are a newcomer's.
const ESSENTIALS: [(&str, &[(Does, &str)]); 3] = [
    (
        "Write",
        &[
            (Does::Draft("composer.send"), "send"),
            (Does::Draft("composer.newline"), "new line"),
            (Does::Draft("composer.queue"), "send later"),
            (Does::Type("@"), "add a file"),
            (Does::Type("/"), "commands"),
            (Does::Type("!"), "run in shell"),
            (Does::Act("history.open"), "past prompts"),
        ],
    ),
    (
        "Look",
        &[
            (Does::Act("conversation.page_up"), "scroll up"),
            (Does::Act("conversation.unfold"), "full output"),
            (Does::Act("conversation.search"), "search"),
            (Does::Act("view.todo"), "todo list"),
            (Does::Act("view.agents"), "agents"),
            (Does::Act("review.open"), "changes"),
            (Does::Act("sessions.open"), "sessions"),
            (Does::Act("tree.open"), "session tree"),
        ],
    ),
    (
        "Control",
        &[
            (Does::Act("palette.open"), "all actions"),
            (Does::Act("global.answer"), "answer"),
            (Does::Act("global.profile"), "change mode"),
            (Does::Act("model.open"), "model"),
            (Does::Act("global.escape"), "back, stop"),
            (Does::Act("session.undo"), "undo"),
            (Does::Act("errors.open"), "errors"),
            (Does::Act("global.quit"), "quit"),
        ],
    ),
];

/// Rows of the longest column.
const ROWS: u16 = 8;
/// Columns between two columns of entries, at most.
const MOST_GAP: u16 = 8;

/// One entry of the page of essentials.
struct Essential {
    key: String,
    label: &'static str,
    does: Does,
    /// Why it cannot be done now.
    disabled: Option<String>,
    /// It stops, ends or clears something.
    ends: bool,
}

/// The dialog: the page of essentials while nothing is typed, and a list of everything.
pub(crate) struct Help {
    list: Picker,
    columns: Vec<(&'static str, Vec<Essential>)>,
    /// The chosen entry: its column and its row.
    at: (usize, usize),
}

/// Makes it for the panel that has the focus now.
pub(crate) fn open(app: &App) -> Help {
    let columns =
        ESSENTIALS.map(|(title, list)| (title, list.iter().map(|(d, l)| essential(app, *d, l)).collect()));
    let list = Picker::new(Everything { words: app.registry.words(), items: everything(app) });
    // Not on what sends, and not on what stops something.
    Help { list, columns: columns.into(), at: (1, 0) }
}

fn essential(app: &App, does: Does, label: &'static str) -> Essential {
    let words = app.registry.words();
    let (key, id) = match does {
        Does::Type(key) => (key.to_owned(), ""),
        Does::Act(id) | Does::Draft(id) => {
            // Essentials are the same in every place: the keys are those of the composer.
            let key = app.keys.map.describe(Action(id), &words.chain("composer"));
            (key.or_else(|| app.keys.map.anywhere(Action(id)).map(|(_, k)| k)).unwrap_or_default(), id)
        }
    };
    let disabled = match does {
        Does::Draft(_) => Some(DRAFT.into()),
        Does::Act(id) => app.disabled(Action(id)),
        Does::Type(_) => None,
    };
    Essential { key, label, does, disabled, ends: words.find(id).is_some_and(|s| s.ends) }
}

const DRAFT: &str = "Press it in the composer";

/// Every action with its keys, those of this place first, then every action without a key. An action stands once: with
/// the keys of the nearest place that has some.
fn everything(app: &App) -> Vec<Item> {
    let words = app.registry.words();
    let here = app.scopes();
    let near = |scope: &str| here.iter().position(|s| *s == scope).unwrap_or(usize::MAX);
    let mut table = app.keys.map.table();
    table.sort_by_key(|row| near(row.scope));
    let mut rows: Vec<(&'static str, Item)> = Vec::new();
    for row in &table {
        match rows.iter_mut().find(|(_, i)| i.id == row.action.0) {
            Some((scope, item)) if *scope == row.scope => add_key(item, show(&row.keys)),
            Some(_) => {}
            None => rows.push((row.scope, keyed(words, row, near(row.scope) < usize::MAX))),
        }
    }
    let mut rows: Vec<Item> = rows.into_iter().map(|(_, item)| item).collect();
    for (group, s) in words.actions().filter(|(_, s)| s.palette && app.keys.map.anywhere(s.action).is_none())
    {
        let mut item = Item::new(s.action.0, s.help).detail("").cell(Cell::dim("no key"));
        item.more = format!("{} {} {group}", s.action.0, s.label);
        item.decides = s.ends;
        rows.push(item);
    }
    rows
}

/// Keys of an action that are shown.
const KEYS: usize = 2;

/// Adds a further key to a row; all can be searched for.
fn add_key(item: &mut Item, key: String) {
    item.more = format!("{} {key}", item.more);
    if let Some(cell) = item.cells.last_mut().filter(|c| c.text.split(", ").count() < KEYS) {
        cell.text = format!("{}, {key}", cell.text);
    }
}

/// A row of an action with its first key. `here`: the place of the key is the one from which help was opened.
fn keyed(words: &Vocabulary, row: &KeyRow, here: bool) -> Item {
    let (key, place) = (show(&row.keys), words.scope(row.scope).map_or(row.scope, |s| s.title));
    let spec = words.find(row.action.0);
    let mut item = Item::new(row.action.0, row.help).detail(if here { "" } else { place });
    // A key of another place does nothing here; what has a name in the palette can be done all the same.
    item.disabled = (!here && !spec.is_some_and(|s| s.palette)).then(|| format!("{key} in {place}"));
    if matches!(row.action.0, "composer.send" | "composer.queue" | "composer.now" | "composer.take") {
        item.disabled = Some(format!("{key}: {}", lower(DRAFT)));
    }
    item.more = format!("{} {} {key} {place}", row.action.0, spec.map_or("", |s| s.label));
    item.decides = spec.is_some_and(|s| s.ends);
    item.cell(Cell::new(key, Role::Accent))
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}

/// What it does, where, and its key.
const COLUMNS: &[Column] = &[Column::text("").grows(), Column::right("").rank(1), Column::key("")];

/// The list of everything.
struct Everything {
    words: &'static Vocabulary,
    items: Vec<Item>,
}

impl Source for Everything {
    fn title(&self) -> String {
        "Help".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            scope: "help",
            columns: COLUMNS,
            verb: "do it",
            prompt: "Type to search all keys and commands",
            ..ListSpec::default()
        }
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        self.items.clone()
    }

    fn choose(&mut self, item: &Item, _model: &Model) -> Vec<Effect> {
        self.words.find(&item.id).map(|s| Effect::Act(s.action)).into_iter().collect()
    }
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
        self.list.is_unfiltered()
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
                    draw::paint(buf, spot, cx.theme.style(Role::Selection));
                    draw::put(buf, spot.x, spot.y, draw::bar(cx.ascii), cx.theme.style(Role::Accent));
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
mod tests {
    use super::*;
    use crate::testing::Robot;

    #[test]
    fn the_essentials_are_the_same_wherever_it_is_opened() {
        let count: usize = ESSENTIALS.iter().map(|(_, list)| list.len()).sum();
        assert_eq!(count, 23);
        let page = |before: &str| {
            let mut r = Robot::new(80, 24);
            r.run(before);
            r.run("f1");
            r.screen()
        };
        let first = page("wait 0");
        for (title, list) in ESSENTIALS {
            assert!(first.contains(title), "{title}: {first}");
            assert!(list.iter().all(|(_, label)| first.contains(label)), "{title}: {first}");
        }
        insta::assert_snapshot!("help_80x24", first);
        for before in ["alt-3", "alt-6"] {
            for (_, label) in ESSENTIALS.iter().flat_map(|(_, list)| *list) {
                assert!(page(before).contains(label), "{label} from {before}");
            }
        }
    }

    #[test]
    fn every_essential_exists_and_has_a_key() {
        let r = Robot::new(80, 24);
        let help = open(&r.app);
        for entry in help.columns.iter().flat_map(|(_, list)| list) {
            assert!(!entry.key.is_empty(), "{:?}", entry.does);
            if let Does::Act(id) | Does::Draft(id) = entry.does {
                assert!(r.app.registry.words().find(id).is_some(), "{id}");
            }
        }
    }

    #[test]
    fn arrows_go_through_the_columns_and_enter_does_the_entry() {
        let mut r = Robot::new(118, 32);
        r.run("f1; down; down; down; down; down; down; enter");
        assert!(r.screen().contains("Sessions"), "the seventh of the second column: {}", r.screen());
        let mut r = Robot::new(118, 32);
        r.run("f1; left; down; down; down; enter");
        assert!(r.screen().contains("@") && r.app.layers.is_empty(), "{}", r.screen());
    }

    #[test]
    fn typing_finds_everything_else() {
        let mut r = Robot::new(118, 32);
        r.run("f1; type next hunk");
        assert!(r.screen().contains("in Diff review"), "{}", r.screen());
        r.run("backspace; backspace; backspace; backspace; backspace; backspace; backspace; backspace; backspace");
        assert!(r.screen().contains("Control"), "the page again: {}", r.screen());
    }

    #[test]
    fn choosing_an_entry_sends_no_draft_and_ends_nothing_unseen() {
        use crate::app::effect::Task;
        use crate::app::msg::Msg;
        use crate::input::Input;
        use crate::keymap::Chord;
        let bad = |r: &mut Robot| {
            let ends = |t: &Task| match t {
                Task::Quit => true,
                Task::Send(c) => !matches!(c.body, tiller_protocol::CommandBody::Query(_)),
                _ => false,
            };
            r.app.take_tasks().iter().any(ends)
        };
        // As fast as a hand can be: no frame is drawn between the keys.
        let press = |r: &mut Robot, key: &str| {
            r.app.update(Msg::Input(Input::Key(Chord::parse(key).unwrap().event())))
        };
        let mut r = Robot::new(118, 25);
        r.run("type half a thought");
        assert!(!bad(&mut r));
        r.run("f1; left; wait 500; enter");
        assert!(!bad(&mut r) && r.screen().contains("Press it in the composer"), "{}", r.screen());
        r.run("esc");
        assert!(r.screen().contains("half a thought"), "{}", r.screen());
        let keys = [
            "f1 right down down down down down down down enter",
            "f1 s a v e space a n d space q u i t enter",
        ];
        for keys in keys {
            let mut r = Robot::new(118, 25);
            for key in keys.split(' ') {
                press(&mut r, key);
                assert!(!bad(&mut r), "{key}");
            }
            r.run("wait 500");
            press(&mut r, "enter");
            assert!(bad(&mut r), "once it was in sight, it is done: {}", r.screen());
        }
    }
}
