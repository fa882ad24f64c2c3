//! Copies text by the best route that can be reported truthfully, and reads images from the clipboard.
//!
//! The order: OSC 52 to the terminal (works over ssh; inside tmux wrapped for the outer terminal, and handed to tmux
//! itself as well), then the display's own clipboard. OSC 52 is never answered, so the toast says "sent, cannot be
//! confirmed".

use std::io::{Cursor, Write as _};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Bytes of text that terminals take by OSC 52. Some cut at 100,000 bytes of base64, so this is safe.
pub const OSC52_MAX: usize = 74_000;
/// Pixels of an image that may be pasted.
const PIXELS: usize = 64 << 20;

/// The surroundings of the program; taken from the environment by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClipboardContext {
    /// `TMUX` is set.
    pub tmux: bool,
    /// A display (`DISPLAY`, `WAYLAND_DISPLAY`, or macOS) is there, and not at the other end of ssh.
    pub display: bool,
}

impl ClipboardContext {
    /// From variables; `get` looks one up. `macos`: the display needs no variable there.
    pub fn read(get: impl Fn(&str) -> Option<String>, macos: bool) -> Self {
        let set = |name: &str| get(name).is_some_and(|v| !v.is_empty());
        let remote = set("SSH_CONNECTION") || set("SSH_TTY");
        Self { tmux: set("TMUX"), display: !remote && (macos || set("DISPLAY") || set("WAYLAND_DISPLAY")) }
    }
}

/// The steps for one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPlan {
    /// Bytes for the terminal.
    pub osc52: Option<Vec<u8>>,
    /// Call [`to_tmux`] off the UI thread: as it comes, tmux passes no OSC 52 on.
    pub tmux: bool,
    /// Call [`to_display`] off the UI thread.
    pub display: bool,
}

impl CopyPlan {
    /// The toast once the copy is done. `display`: the result of [`to_display`], if it was called.
    pub fn toast_text(&self, what: &str, bytes: usize, display: Option<&Result<(), String>>) -> String {
        let size =
            if bytes < 1000 { format!("{bytes} bytes") } else { format!("{} kB", bytes.div_ceil(1000)) };
        let mut routes = Vec::new();
        if let Some(Ok(())) = display {
            routes.push("the clipboard");
        }
        if self.tmux {
            routes.push("the tmux buffer");
        }
        let sent = self.osc52.is_some();
        match (routes.is_empty(), sent) {
            (true, true) => {
                format!("{what} ({size}) sent to the terminal by OSC 52, which cannot be confirmed")
            }
            (false, true) => {
                format!(
                    "{what} ({size}) copied to {}; also sent by OSC 52 (unconfirmed)",
                    routes.join(" and ")
                )
            }
            (false, false) => format!("{what} ({size}) copied to {}", routes.join(" and ")),
            (true, false) => {
                let why = match display {
                    Some(Err(e)) => format!("; the clipboard reported: {}", crate::text::clean::plain(e)),
                    _ => "; no display is available".into(),
                };
                format!(
                    "{what} ({size}) not copied: too long for OSC 52 (at most {} kB){why}. \
                     Open it in the editor instead",
                    OSC52_MAX / 1000
                )
            }
        }
    }
}

/// Chooses the routes for `text`.
pub fn plan(text: &str, around: ClipboardContext) -> CopyPlan {
    let osc52 = (text.len() <= OSC52_MAX).then(|| osc52(text, around.tmux));
    CopyPlan { osc52, tmux: around.tmux, display: around.display }
}

/// The escape sequence that sets the terminal's clipboard. Its content is base64, so nothing of the
/// text can end it early.
pub fn osc52(text: &str, tmux: bool) -> Vec<u8> {
    let sequence = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
    if tmux {
        // Through tmux to the terminal outside: every escape doubled.
        format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")).into_bytes()
    } else {
        sequence.into_bytes()
    }
}

/// Puts `text` into the buffer of the tmux that `variable` (the value of `TMUX`) names, which hands it to the
/// terminal outside where that takes it. Blocks: call it from a job.
///
/// # Errors
/// When there is no such tmux, in words.
pub fn to_tmux(text: &str, variable: &str) -> Result<(), String> {
    // Older ones know no `-w`.
    load(text, variable, &["load-buffer", "-w", "-"]).or_else(|_| load(text, variable, &["load-buffer", "-"]))
}

fn load(text: &str, variable: &str, args: &[&str]) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut child = Command::new("tmux")
        .args(args)
        .env_clear()
        .env("PATH", path)
        .env("TMUX", variable)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("tmux: {e}"))?;
    let written = child.stdin.take().map_or(Ok(()), |mut i| i.write_all(text.as_bytes()));
    let ended = child.wait().map_err(|e| format!("tmux: {e}"))?;
    written.map_err(|e| format!("tmux: {e}"))?;
    if ended.success() { Ok(()) } else { Err(format!("tmux: {ended}")) }
}

/// Puts `text` on the display's clipboard. Blocks: call it from a job. On X11 the text lives as long as
/// this process.
///
/// # Errors
/// When there is no clipboard, in its words.
pub fn to_display(text: String) -> Result<(), String> {
    with_clipboard(|c| c.set_text(text))
}

/// The clipboard's text. Blocks.
///
/// # Errors
/// When there is none, in words.
pub fn text_from_display() -> Result<String, String> {
    with_clipboard(arboard::Clipboard::get_text)
}

/// Keeps one connection: on X11 the owner of a selection has to stay to hand it out.
fn with_clipboard<T>(
    f: impl FnOnce(&mut arboard::Clipboard) -> Result<T, arboard::Error>,
) -> Result<T, String> {
    use std::sync::Mutex;
    static CLIPBOARD: Mutex<Option<arboard::Clipboard>> = Mutex::new(None);
    let mut slot = CLIPBOARD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if slot.is_none() {
        *slot = Some(arboard::Clipboard::new().map_err(|e| e.to_string())?);
    }
    let Some(clipboard) = slot.as_mut() else { return Err("No clipboard is available".into()) };
    f(clipboard).map_err(|e| e.to_string())
}

/// An image as the composer attaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastedImage {
    /// PNG, base64.
    pub data: String,
    pub width: u32,
    pub height: u32,
}

/// The clipboard's image as PNG. Blocks: call it from a job.
///
/// # Errors
/// When there is none, or it is too large, in words.
pub fn image_from_display() -> Result<PastedImage, String> {
    let image = with_clipboard(arboard::Clipboard::get_image)?;
    png(image.width, image.height, image.bytes.into_owned())
}

/// Raw RGBA pixels to PNG.
fn png(width: usize, height: usize, rgba: Vec<u8>) -> Result<PastedImage, String> {
    if width.saturating_mul(height) > PIXELS {
        return Err(format!("The image is too large: {width}x{height} pixels"));
    }
    let (w, h) = (u32::try_from(width).unwrap_or(0), u32::try_from(height).unwrap_or(0));
    let buffer = image::RgbaImage::from_raw(w, h, rgba).ok_or("The image in the clipboard is damaged")?;
    let mut out = Cursor::new(Vec::new());
    buffer.write_to(&mut out, image::ImageFormat::Png).map_err(|e| e.to_string())?;
    Ok(PastedImage { data: STANDARD.encode(out.into_inner()), width: w, height: h })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn osc52_is_wrapped_for_tmux_and_cannot_be_ended_by_the_text() {
        let bytes = osc52("a\x07\x1b\\b", false);
        assert_eq!(bytes.iter().filter(|b| **b == 0x07).count(), 1);
        assert_eq!(bytes.iter().filter(|b| **b == 0x1b).count(), 1);
        let wrapped = osc52("x", true);
        assert!(wrapped.starts_with(b"\x1bPtmux;\x1b\x1b]52;c;") && wrapped.ends_with(b"\x07\x1b\\"));
    }

    #[test]
    fn routes_are_named_honestly() {
        let tmux = ClipboardContext { tmux: true, display: false };
        let p = plan("hi", tmux);
        assert!(p.toast_text("reply", 2, None).contains("tmux buffer; also sent by OSC 52"));
        let ssh = plan("hi", ClipboardContext::default());
        assert!(ssh.toast_text("reply", 2, None).contains("cannot be confirmed"));
        let long = "x".repeat(OSC52_MAX + 1);
        let p = plan(&long, ClipboardContext::default());
        assert_eq!(p.osc52, None);
        assert!(p.toast_text("reply", long.len(), None).contains("not copied: too long for OSC 52"));
        let p = plan(&long, ClipboardContext { tmux: false, display: true });
        assert_eq!(p.toast_text("reply", 75_000, Some(&Ok(()))), "reply (75 kB) copied to the clipboard");
    }

    #[test]
    fn a_display_over_ssh_is_the_wrong_machine() {
        let vars = |names: &'static [&'static str]| move |n: &str| names.contains(&n).then(|| "1".to_owned());
        assert!(ClipboardContext::read(vars(&["DISPLAY"]), false).display);
        assert!(!ClipboardContext::read(vars(&["DISPLAY", "SSH_TTY"]), false).display);
        assert!(ClipboardContext::read(vars(&["TMUX"]), true).tmux);
    }

    #[test]
    fn pixels_become_png() {
        let image = png(2, 1, vec![255, 0, 0, 255, 0, 0, 255, 255]).unwrap();
        assert_eq!((image.width, image.height), (2, 1));
        assert!(STANDARD.decode(image.data).unwrap().starts_with(b"\x89PNG"));
        assert!(png(2, 1, vec![0; 3]).is_err());
        assert!(png(1 << 20, 1 << 20, Vec::new()).is_err());
    }
}
