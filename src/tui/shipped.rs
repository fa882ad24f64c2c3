//! The screen of this program: the registry of all dialogs, panels and commands that come with it.

use std::sync::LazyLock;

use crate::dialog::DIALOGS;
use crate::panel::views::PANELS;
use crate::registry::Registry;
use crate::slash::{COMMANDS, PromptCommand};

/// The registry, made once.
pub fn registry() -> &'static Registry {
    static SHIPPED: LazyLock<Registry> = LazyLock::new(|| Registry::of(DIALOGS, PANELS, COMMANDS));
    &SHIPPED
}

/// The registry with commands from files. It lives as long as the process, which makes one screen.
pub(crate) fn registry_with(commands: &[PromptCommand]) -> &'static Registry {
    if commands.is_empty() {
        return registry();
    }
    Box::leak(Box::new(Registry::of(DIALOGS, PANELS, COMMANDS.with(commands))))
}

#[cfg(test)]
#[path = "shipped_tests.rs"]
mod tests;
