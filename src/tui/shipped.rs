//! The screen of this program: the registry of all dialogs, panels and commands that come with it.

use std::sync::LazyLock;

use crate::dialog::DIALOGS;
use crate::panel::views::PANELS;
use crate::registry::Registry;
use crate::slash::COMMANDS;

/// The registry, made once.
pub fn registry() -> &'static Registry {
    static SHIPPED: LazyLock<Registry> = LazyLock::new(|| Registry::of(DIALOGS, PANELS, COMMANDS));
    &SHIPPED
}
