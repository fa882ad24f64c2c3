//! Questions that a command asks before it changes or runs something.

use std::io::{IsTerminal, Write};

use tiller_protocol::Notice;

use crate::commands::Exit;

/// Asks for the word yes, unless the user agreed by an option.
///
/// # Errors
/// `without`, where there is no terminal to ask on.
pub(in crate::commands) fn agreed(question: &str, yes: bool, without: Notice) -> Result<bool, Notice> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(without);
    }
    // Without a visible question there is no consent.
    let _ = write!(std::io::stderr(), "{question} Type yes: ");
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    Ok(read.is_ok() && line.trim() == "yes")
}

/// Waits for Enter where the screen comes back and hides what was said.
pub(in crate::commands) fn before_screen(exit: Exit) -> Exit {
    let _ = write!(std::io::stderr(), "\n-- Press Enter to return to Tiller --");
    let _ = std::io::stdin().read_line(&mut String::new());
    exit
}
