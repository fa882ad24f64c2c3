//! The picture that the dialog on top shows, as the terminal's own graphics, where it has some. It is encoded on a thread
//! of its own; until then, and everywhere else, the cells show it.

use crate::app::inbox::Post;
use crate::app::msg::{Msg, OutputMsg};
use crate::output::Encoder;
use crate::output::graphics::{self, EncodedPicture, Frame, Protocol, Shown};

/// Pixels of a cell, where the terminal does not say: it scales the picture itself.
const CELL: (u16, u16) = (8, 16);

/// The graphics that the terminal can show, and those that it shows.
#[derive(Default)]
pub(crate) struct Pictures {
    /// Answered the question for Kitty's protocol.
    kitty: bool,
    sixel: bool,
    iterm: bool,
    /// Pixels of a cell, as the system knows them.
    cell: Option<(u16, u16)>,
    /// The picture on the screen as graphics.
    on_screen: Option<Shown>,
    /// The picture that is being encoded; one at a time.
    encoding: Option<Shown>,
    ready: Option<EncodedPicture>,
}

impl Pictures {
    /// Nothing is known yet of the terminal but what its environment says.
    pub(crate) fn of_env(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let is = |name: &str, value: &str| env(name).is_some_and(|v| v == value);
        let iterm = is("TERM_PROGRAM", "iTerm.app") || is("LC_TERMINAL", "iTerm2");
        Self { iterm: iterm && !inner(env), ..Self::default() }
    }

    /// The question for Kitty's protocol. A multiplexer would take it for a title, and the oldest terminals would show it.
    pub(crate) fn question(env: &dyn Fn(&str) -> Option<String>) -> &'static str {
        let term = env("TERM").unwrap_or_default();
        let old = matches!(term.as_str(), "" | "dumb" | "linux" | "vt100" | "vt220");
        let apple = env("TERM_PROGRAM").is_some_and(|v| v == "Apple_Terminal");
        if old || apple || inner(env) { "" } else { graphics::ASK_KITTY }
    }

    /// The terminal answered the question for Kitty's protocol.
    pub(crate) fn answered_kitty(&mut self) {
        self.kitty = true;
    }

    /// The terminal said what it is.
    pub(crate) fn answered_attributes(&mut self, sixel: bool) {
        self.sixel = sixel;
    }

    /// Pixels of a cell; sixels need them.
    pub(crate) fn set_cell(&mut self, cell: Option<(u16, u16)>) {
        self.cell = cell;
    }

    fn protocol(&self) -> Option<Protocol> {
        if self.kitty {
            Some(Protocol::Kitty)
        } else if self.iterm {
            Some(Protocol::Iterm)
        } else {
            (self.sixel && self.cell.is_some()).then_some(Protocol::Sixel)
        }
    }

    /// Pixels of a cell where pictures can be shown; `None`: in cells only.
    pub(crate) fn usable(&self) -> Option<(u16, u16)> {
        self.protocol().map(|_| self.cell.unwrap_or(CELL))
    }

    /// Before a frame: removes what is no longer wanted. The screen is drawn anew then.
    pub(crate) fn before(&mut self, wanted: Option<&Shown>, encoder: &mut Encoder, out: &mut String) {
        if encoder.repaints() && self.on_screen.take().is_some() {
            out.push_str(&self.protocol().map(graphics::remove).unwrap_or_default());
        }
        if self.on_screen.is_some() && self.on_screen.as_ref() != wanted {
            self.on_screen = None;
            out.push_str(&self.protocol().map(graphics::remove).unwrap_or_default());
            encoder.repaint();
        }
        if wanted.is_none() {
            self.ready = None;
        }
    }

    /// After a frame: shows what is wanted, or has it encoded. `ground`: colour of the screen.
    pub(crate) fn after(
        &mut self,
        wanted: Option<Shown>,
        ground: [u8; 3],
        (encoder, tx): (&mut Encoder, &Post),
        out: &mut String,
    ) {
        let (Some(wanted), Some(protocol)) = (wanted, self.protocol()) else { return };
        if self.on_screen.is_some() {
            return;
        }
        if let Some(EncodedPicture { bytes, .. }) = self.ready.as_ref().filter(|r| r.of == wanted) {
            if let Some(bytes) = bytes {
                encoder.graphics(wanted.place.x, wanted.place.y, bytes, out);
                self.on_screen = Some(wanted);
            }
            return;
        }
        if self.encoding.is_some() {
            return;
        }
        self.encoding = Some(wanted.clone());
        let frame =
            Frame { columns: wanted.place.width, rows: wanted.place.height, cell: self.cell.unwrap_or(CELL) };
        let tx = tx.clone();
        // The thread holds only its end of the channel, and ends by itself.
        let made = std::thread::Builder::new().name("tiller-picture".into()).spawn(move || {
            let bytes = graphics::encode(&wanted.image, frame, ground, protocol);
            let _ = tx.send(Msg::Output(OutputMsg::Picture(Box::new(EncodedPicture { of: wanted, bytes }))));
        });
        if let Err(error) = made {
            tracing::warn!(%error, "no thread for a picture");
            self.encoding = None;
        }
    }

    /// A picture was encoded.
    pub(crate) fn encoded(&mut self, picture: EncodedPicture) {
        self.encoding = None;
        self.ready = Some(picture);
    }
}

/// True when a multiplexer stands between: it shows no graphics but sixels, for which it speaks itself.
fn inner(env: &dyn Fn(&str) -> Option<String>) -> bool {
    let term = env("TERM").unwrap_or_default();
    env("TMUX").is_some_and(|v| !v.is_empty())
        || env("STY").is_some_and(|v| !v.is_empty())
        || term.starts_with("tmux")
        || term.starts_with("screen")
}
