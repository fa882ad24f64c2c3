//! Text that may not be kept in a learning: it could act as an instruction, hides something, or is too long.

use crate::screen::{FindSecret, FindingKind, find};

/// Bytes of a text.
const LONGEST: usize = 4_000;

/// Checks a text before it is kept, wherever it comes from.
///
/// # Errors
/// Why it may not be kept, as the end of a sentence.
pub(super) fn screen(text: &str, secret: &FindSecret) -> Result<(), String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let refused = [FindingKind::Hidden, FindingKind::Secret, FindingKind::Instruction];
    find(text, &refused, secret).map_or(Ok(()), |found| Err(format!("it {found}")))
}
