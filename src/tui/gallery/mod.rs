//! Every screen as a picture: scenes that the real drawing code draws, for people who change how it looks, for checks of
//! contrast, and for the pictures of the README. `cargo xtask gallery DIR` writes them as PNG.
//!
//! A scene is a function that plays protocol events and keys to a new screen, and a line in [`SCENES`]. The program
//! refers to nothing in this room, so the linker leaves it out.

mod answers;
mod contrast;
mod conversation;
mod crew;
#[cfg(test)]
mod cut_tests;
mod film;
mod look;
mod menus;
mod questions;
mod scene;
mod sessions;
mod stage;
mod states;
mod story;
#[cfg(test)]
mod tests;

use ratatui::buffer::Buffer;
use tiller_config::schema::Ui;

pub use contrast::{Contrast, contrasts};
pub use film::{Take, film};
pub use look::{Look, Rgb};
pub use scene::Scene;
pub use stage::Picture;
use stage::Stage;

/// Every scene, in the order of the page.
pub const SCENES: &[Scene] = &[
    states::START,
    states::START_SELECTED,
    states::START_FIRST,
    states::START_DIALOG,
    states::FIRST_RUN,
    conversation::TURN,
    conversation::FAILURE,
    conversation::STREAMING,
    conversation::DIFF,
    conversation::PICTURE,
    conversation::SCRIPT,
    conversation::SCRIPT_CALLS,
    conversation::FINISHED,
    questions::APPROVE_EDIT,
    questions::APPROVE_SHELL,
    questions::APPROVE_DESTRUCTIVE,
    questions::APPROVE_OUTSIDE,
    questions::APPROVE_ELSEWHERE,
    questions::APPROVE_SCRIPT,
    questions::APPROVE_CALLS,
    questions::CLARIFY,
    questions::PLAN,
    questions::TRUST,
    sessions::REVIEW,
    sessions::TREE,
    sessions::SEARCH,
    sessions::COMPARE,
    sessions::LIST,
    sessions::BRANCHES,
    sessions::RESTORE,
    crew::AGENTS,
    crew::AGENTS_FINISHED,
    crew::AGENTS_BESIDE,
    crew::TERMINAL,
    crew::AGENT,
    crew::WORKFLOW,
    menus::PALETTE,
    menus::WHICH_KEY,
    menus::HELP,
    menus::HELP_SEARCH,
    menus::CONTEXT,
    menus::COST,
    menus::HOOKS,
    menus::MEMORY,
    menus::NOTE,
    menus::SKILLS,
    menus::SANDBOX,
    menus::SANDBOX_MISSING,
    menus::KEYS,
    menus::NOTHING,
    menus::MODELS,
    menus::THEMES,
    menus::PROFILES,
    menus::SETTINGS,
    menus::MENTIONS,
    menus::COMMANDS,
    states::TODO,
    states::CHANGES,
    states::QUEUE,
    states::NOTICES,
    states::ERRORS,
    states::RETRY,
    states::EMPTY_AGENTS,
    states::EMPTY_SESSIONS,
    states::EMPTY_TODO,
    states::EMPTY_MODELS,
    states::ASCII,
    states::PLAIN,
];

/// Sizes that are looked at: columns and rows.
pub const SIZES: [(u16, u16); 4] = [(80, 24), (118, 32), (160, 45), (220, 60)];

/// Draws a scene.
///
/// # Errors
/// A sentence, when the scene does not fit the program any more: a key or an action of it does nothing.
pub fn draw(scene: &Scene, size: (u16, u16), look: &Look) -> Result<Picture, String> {
    let mut stage = play(scene, size, look)?;
    stage.coloured();
    Ok(stage.picture().clone())
}

/// Draws a scene in several looks, and hands each picture over. The scene is played once, unless it names the theme.
///
/// # Errors
/// As [`draw`].
pub fn draw_looks(
    scene: &Scene,
    size: (u16, u16),
    looks: &[Look],
    take: &mut dyn FnMut(&Look, &Picture),
) -> Result<(), String> {
    let Some(first) = looks.first() else { return Ok(()) };
    let mut stage = play(scene, size, first)?;
    for (n, look) in looks.iter().enumerate() {
        if scene.names_theme && n > 0 {
            stage = play(scene, size, look)?;
        }
        stage.look(look)?;
        stage.coloured();
        take(look, stage.picture());
    }
    Ok(())
}

/// Plays a scene to its end.
fn play(scene: &Scene, size: (u16, u16), look: &Look) -> Result<Stage, String> {
    play_with(scene, size, look, |_| {})
}

/// Plays a scene to its end, with more settings than its own.
fn play_with(scene: &Scene, size: (u16, u16), look: &Look, settings: fn(&mut Ui)) -> Result<Stage, String> {
    let mut ui = Ui::default();
    (scene.settings)(&mut ui);
    settings(&mut ui);
    let mut stage = Stage::new(size, ui, look)?;
    (scene.play)(&mut stage);
    match stage.mistakes() {
        [] => Ok(stage),
        [first, ..] => Err(format!("scene {} is out of date: {first}", scene.name)),
    }
}

/// The cells as lines of text without trailing spaces. The second cell of a wide character is left out.
pub fn text(cells: &Buffer) -> String {
    use unicode_width::UnicodeWidthStr;
    let area = cells.area;
    let mut out = String::new();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        let mut x = area.left();
        while x < area.right() {
            let symbol = cells.cell((x, y)).map_or(" ", |c| c.symbol());
            line.push_str(symbol);
            x += (symbol.width() as u16).max(1);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
