//! Both directions of the terminal: the reader with its decoder, the writer with its encoder, and the modes that are
//! set while the screen is shown.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tiller_config::schema::Images;
use tiller_protocol::Clock;

use crate::app::inbox::Post;
use crate::app::run::pictures::Pictures;
use crate::app::ui::{UiError, UiOptions, escape_wait};
use crate::input::burst::Bursts;
use crate::input::reader::Reader;
use crate::output::Encoder;
use crate::output::writer::Writer;
use crate::terminal::Terminal;
use crate::terminal::notify::TerminalWindow;
use crate::terminal::signals::Signals;
use crate::theme::Depth;

/// How long pending output may take before the screen is left without it.
pub(crate) const SETTLE: Duration = Duration::from_millis(500);

/// Wait for the rest of a lone Escape on a local line; see [`escape_wait`].
const ESCAPE_WAIT: Duration = Duration::from_millis(25);

/// The terminal that shows the screen, with its reader and writer.
pub(crate) struct TerminalIo {
    /// `None`: tests, and while no terminal is attached.
    pub(crate) terminal: Option<Terminal>,
    clock: Arc<dyn Clock>,
    /// `None`: while the screen is left.
    pub(crate) reader: Option<Reader>,
    pub(crate) signals: Option<Signals>,
    /// Number of SIGCONT received when the screen was set up last.
    pub(crate) resumed: u32,
    pub(crate) writer: Writer,
    pub(crate) encoder: Encoder,
    /// The pictures that the terminal shows as graphics.
    pub(crate) pictures: Pictures,
    /// The question for Kitty's protocol; empty: not to be asked.
    ask_pictures: &'static str,
    /// Title and notifications of the terminal's window.
    pub(crate) window: TerminalWindow,
    /// How long a lone Escape waits for the rest of a sequence.
    pub(crate) escape_wait: Duration,
    /// Pastes that the terminal does not mark.
    pub(crate) bursts: Bursts,
}

impl TerminalIo {
    /// With the bytes going to `out`.
    pub(crate) fn new(
        terminal: Option<Terminal>,
        out: Box<dyn Write + Send>,
        tx: Post,
        o: &UiOptions,
    ) -> Result<Self, UiError> {
        let env = &o.env;
        Ok(Self {
            clock: Arc::clone(&o.clock),
            terminal,
            reader: None,
            signals: None,
            resumed: 0,
            writer: Writer::start(out, tx)?,
            encoder: Encoder::default(),
            pictures: Pictures::of_env(&**env),
            ask_pictures: Pictures::question(&**env),
            window: TerminalWindow::of_env(&**env),
            escape_wait: ESCAPE_WAIT,
            bursts: Bursts::default(),
        })
    }

    /// Takes what the environment says about the terminal.
    pub(crate) fn read_environment(&mut self, env: &crate::app::ui::Env) {
        self.pictures = Pictures::of_env(&**env);
        self.ask_pictures = Pictures::question(&**env);
        self.window = TerminalWindow::of_env(&**env);
        self.escape_wait = escape_wait(env);
        self.encoder.erases = Depth::erases(&**env);
    }

    /// Columns and rows; `None`: no terminal.
    pub(crate) fn size(&self) -> Option<(u16, u16)> {
        self.terminal.as_ref().map(Terminal::size)
    }

    /// The question for Kitty's protocol.
    pub(crate) fn ask_pictures(&self) -> &'static str {
        self.ask_pictures
    }

    /// Pixels of a cell where pictures are shown as graphics; `None`: in cells.
    pub(crate) fn picture_cells(&mut self, images: Images) -> Option<(u16, u16)> {
        if images == Images::Off {
            return None;
        }
        // The system may learn it late, and it changes with the font.
        self.pictures.set_cell(self.terminal.as_ref().and_then(Terminal::cell));
        self.pictures.usable()
    }

    /// Sets raw mode and starts the reader; returns the bytes that switch the modes on, which are to be written first.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub(crate) fn enter(&mut self) -> Result<String, UiError> {
        let Some(t) = &self.terminal else { return Ok(String::new()) };
        let bytes = t.enter()?;
        self.reader = Some(Reader::new(t.input()?, self.escape_wait, Arc::clone(&self.clock)));
        Ok(bytes)
    }

    /// Gives the terminal back. A second call does nothing.
    pub(crate) fn leave(&mut self) {
        self.reader = None;
        self.writer.settle(SETTLE);
        if let Some(t) = &self.terminal {
            t.leave();
        }
        if let Some(s) = &self.signals {
            s.away(true);
        }
    }

    /// Sets every mode again: a shell has used the terminal in between.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub(crate) fn restore_modes(&mut self) -> std::io::Result<()> {
        if let Some(t) = &self.terminal {
            let bytes = t.again()?;
            self.writer.write(bytes);
        }
        Ok(())
    }
}
