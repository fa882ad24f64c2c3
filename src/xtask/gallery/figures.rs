//! The contrast of all scenes as a table.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use tiller_tui::gallery::{self, Contrast, Look};
use tiller_tui::theme::Depth;

/// Every role on every background that it is drawn on, in each look and, where the look has more, in its 256-colour form.
///
/// # Errors
/// When a scene cannot be drawn.
pub(crate) fn table(looks: &[Look]) -> Result<String> {
    let mut out = String::new();
    for look in looks {
        let fewer = (look.depth == Depth::True).then(|| look.at(Depth::TwoFiftySix));
        for (form, look) in [("", Some(look.clone())), (", 256 colours", fewer)] {
            let Some(look) = look.filter(|l| l.depth != Depth::Mono) else { continue };
            let all = gallery::contrasts(&look).map_err(|why| anyhow!(why))?;
            let low = all.iter().filter(|c| c.ratio < c.least).count();
            writeln!(out, "{}{form}: {} pairs, {low} too low", look.name, all.len())?;
            for c in &all {
                line(&mut out, c)?;
            }
        }
    }
    Ok(out)
}

fn line(out: &mut String, c: &Contrast) -> Result<()> {
    let hex = |(r, g, b): gallery::Rgb| format!("#{r:02x}{g:02x}{b:02x}");
    let mark = if c.ratio < c.least { "<" } else { " " };
    writeln!(
        out,
        "  {mark} {:5.2} of {:.1}  {:28} {} on {}  {:36} {:6} cells, {}",
        c.ratio,
        c.least,
        c.text,
        hex(c.colours.0),
        hex(c.colours.1),
        c.ground,
        c.cells,
        c.scene,
    )?;
    Ok(())
}
