//! A dialog, a panel, a command and a theme that come in by their one line each work like those of the program.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::ManualClock;

use super::*;
use crate::app::effect::Effect;
use crate::keymap::action::Action;
use crate::keymap::{Chord, Lookup};
use crate::model::Model;
use crate::panel::{DrawCx, Hint, PanelEvent, PanelStatus, Reply};
use crate::slash::SlashCommand;
use crate::theme::{Depth, Role, Theme, Themes};

struct Dummy;

const ACTIONS: &[ActionSpec] = &[ActionSpec::new("dummy.run", "run", "Run the dummy")];

impl Panel for Dummy {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new("dummy")
    }

    fn title(&self, _model: &Model) -> String {
        "Dummy".into()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        if action == ACTIONS[0].action { Reply::with(Effect::Pop) } else { Reply::Ignored }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        vec![Hint::of("dummy.run")]
    }

    fn draw(&self, _cx: &DrawCx<'_>, _area: Rect, _buf: &mut Buffer) {}
}

const DIALOG: Dialog = Dialog {
    openers: &[Opener::new("dummy.open", "dummy", "Open the dummy", |_| Ok(Box::new(Dummy))).keys(&["f9"])],
    groups: &[("Dummy", ACTIONS)],
    scopes: &[Scope::new("dummy", Some("list"), "Dummy", false).keys(&[("f8", "dummy.run")])],
    samples: &[("dummy", || Box::new(Dummy))],
    ..Dialog::NONE
};

const PANEL: PanelEntry = PanelEntry {
    view: View::Diff,
    make: |_| Box::new(Dummy),
    reads: &[],
    groups: &[("Dummy view", &[ActionSpec::new("dummy.look", "look", "Look at the dummy")])],
    scopes: &[Scope::new("dummy_view", Some("list"), "Dummy view", false).keys(&[("f7", "dummy.look")])],
};

impl SlashCommand for Dummy {
    fn name(&self) -> &'static str {
        "dummy"
    }

    fn help(&self) -> &'static str {
        "Open the dummy"
    }

    fn run(&self, _args: &str, _model: &Model) -> Result<Vec<Effect>, String> {
        Ok(vec![Effect::Act(Action("dummy.open"))])
    }
}

/// The screen of the program with one line more in each list.
fn registry() -> &'static Registry {
    let own: &'static [Dialog] = Box::leak(Box::new([DIALOG]));
    let dialogs: Vec<&'static [Dialog]> = crate::dialog::DIALOGS.iter().copied().chain([own]).collect();
    let others = crate::panel::views::PANELS.iter().filter(|p| p.view != PANEL.view);
    let panels: Vec<PanelEntry> = others
        .map(|p| PanelEntry {
            view: p.view,
            make: p.make,
            reads: p.reads,
            groups: p.groups,
            scopes: p.scopes,
        })
        .chain([PANEL])
        .collect();
    let commands: Vec<&'static dyn SlashCommand> =
        crate::slash::COMMANDS.0.iter().copied().chain([&Dummy as &dyn SlashCommand]).collect();
    let commands = Commands(Box::leak(commands.into_boxed_slice()));
    Box::leak(Box::new(Registry::of(
        Box::leak(dialogs.into_boxed_slice()),
        Box::leak(panels.into_boxed_slice()),
        commands,
    )))
}

#[test]
fn one_line_each_adds_a_dialog_a_panel_and_a_command() {
    let all = registry();
    let map = crate::keymap::preset(all.words(), "default").unwrap();
    let key = |k: &str| [Chord::parse(k).unwrap()];
    let runs = |scope: &str, k: &str| map.lookup(&all.words().chain(scope), &key(k));
    assert_eq!(runs("composer", "f9"), Lookup::Actions(vec![Action("dummy.open")]));
    assert_eq!(runs("dummy", "f8"), Lookup::Actions(vec![Action("dummy.run")]));
    assert_eq!(runs("dummy_view", "f7"), Lookup::Actions(vec![Action("dummy.look")]));
    assert_eq!(all.words().chain("dummy"), ["dummy", "list", "global"]);
    assert!(
        map.table().iter().any(|row| row.action == Action("dummy.run")),
        "help and `tiller keys` show it"
    );
    assert!(all.samples().any(|(name, _)| *name == "dummy"), "the tests of all dialogs visit it");
    let theme = Theme::built_in("mono", Depth::True).unwrap();
    let clock = Arc::new(ManualClock::new(crate::testing::START));
    let mut app = App::new(Arc::default(), all, Arc::new(map), Themes::fixed(theme), clock);
    assert!(app.act(Action("dummy.open")));
    assert_eq!(app.layers.len(), 1);
    assert!(app.act(Action("dummy.run")));
    assert!(app.layers.is_empty());
    assert_eq!(all.panel(PANEL.view).title(&app.model), "Dummy");
    assert_eq!(all.commands().find("dummy").map(|c| c.help()), Some("Open the dummy"));
    assert!(matches!(all.commands().matching("dumm")[..], [c] if c.name() == "dummy"));
    let mut palette = crate::dialog::commands::palette::open(&app);
    let _ = palette.handle(PanelEvent::Opened, &app.model);
    let rows: Vec<&str> = palette.rows().iter().map(|i| i.id.as_str()).collect();
    assert!(rows.contains(&"action dummy.open") && rows.contains(&"action dummy.run"), "{rows:?}");
}

const THEMES: &[crate::theme::BuiltIn] =
    &[("mono", "[roles]\n"), ("dummy", "inherits = \"mono\"\n[roles]\nlink = \"default bold\"\n")];

#[test]
fn one_line_adds_a_theme() {
    let theme = Theme::built_in("mono", Depth::True).unwrap();
    let mut themes = Themes::fixed(theme).shipping(THEMES);
    assert_eq!(themes.names(), ["mono", "dummy"], "the picker and `tiller themes` list it");
    themes.show(Some("dummy"), true).unwrap();
    assert_eq!((themes.choice(), themes.current().name.as_str()), ("dummy", "dummy"));
    let look = themes.current().style(Role::Link);
    assert!(look.add_modifier.contains(ratatui::style::Modifier::BOLD), "{look:?}");
    assert!(themes.show(Some("dumy"), true).unwrap_err().contains("did you mean 'dummy'"));
}
