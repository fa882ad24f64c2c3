//! The screen, and what happens to running work when it is left.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What Enter does while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnterWhileRunning {
    #[default]
    Steer,
    Queue,
}

/// Whether to summarize a branch when you switch to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BranchSummary {
    #[default]
    Ask,
    Never,
    Always,
}

/// How pictures are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Images {
    /// As the terminal's own graphics, where it has some.
    #[default]
    Auto,
    /// With the characters of the screen.
    Off,
}

/// The screen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ui {
    /// Theme name, or `auto` to use `theme_dark` or `theme_light` by the background that the terminal reports.
    pub theme: String,
    /// Theme for a dark terminal background.
    pub theme_dark: String,
    /// Theme for a light terminal background.
    pub theme_light: String,
    /// Keymap preset: default, vim, emacs.
    pub keymap: String,
    /// What Enter does while a turn is running: `steer` or `queue`.
    pub enter_while_running: EnterWhileRunning,
    /// Summarize a branch when you leave it: `ask`, `never`, `always`.
    pub branch_summary: BranchSummary,
    /// Linear text without redraws.
    pub plain: bool,
    /// Reduce motion.
    pub reduced_motion: bool,
    /// Draw signs and borders in plain ASCII.
    pub ascii: bool,
    /// Treat characters of ambiguous width as two columns wide.
    pub ambiguous_wide: bool,
    /// Scroll with the mouse wheel.
    pub mouse_wheel: bool,
    /// Select with a mouse click.
    pub mouse_click: bool,
    /// Select text by dragging.
    pub mouse_motion: bool,
    /// Milliseconds until the key box is shown.
    pub which_key_delay: u64,
    /// Milliseconds for which a new question ignores keys.
    pub approval_deaf: u64,
    /// Seconds after which an unanswered approval is denied; 0 for never.
    pub approval_timeout: u64,
    /// Command whose first output line is shown at the right of the header. It gets the state as JSON on
    /// standard input and must end within 300 milliseconds.
    pub statusline: Option<String>,
    /// Notify when the window is not in front.
    pub notifications: bool,
    /// Copy when a drag ends.
    pub copy_on_select: bool,
    /// Leave the last exchange in the scrollback at exit.
    pub leave_last: bool,
    /// Show pictures as the terminal's own graphics (Kitty, iTerm2, sixel): `auto`, where it has some, or `off`.
    pub images: Images,
    /// Maximum text width in columns.
    pub measure: u16,
}

impl Default for Ui {
    fn default() -> Self {
        Self {
            theme: "auto".into(),
            theme_dark: "tiller-dark".into(),
            theme_light: "tiller-light".into(),
            keymap: "default".into(),
            enter_while_running: EnterWhileRunning::Steer,
            branch_summary: BranchSummary::Ask,
            plain: false,
            reduced_motion: false,
            ascii: false,
            ambiguous_wide: false,
            mouse_wheel: true,
            mouse_click: true,
            mouse_motion: true,
            which_key_delay: 250,
            approval_deaf: 400,
            approval_timeout: 0,
            statusline: None,
            notifications: true,
            copy_on_select: true,
            leave_last: false,
            images: Images::Auto,
            measure: 100,
        }
    }
}

/// What happens to running work when the terminal is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnHangup {
    /// Running work continues; Tiller ends when it is done.
    #[default]
    Work,
    /// Running work is stopped and saved.
    End,
}

/// Detaching from running work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Detach {
    /// Allow detaching and reattaching.
    pub enabled: bool,
    /// When the window is closed or the connection is lost: `work` continues running work, `end` stops and saves it.
    pub on_hangup: OnHangup,
}

impl Default for Detach {
    fn default() -> Self {
        Self { enabled: true, on_hangup: OnHangup::Work }
    }
}
