//! Images, speech, diagrams and documents, and several models at once.
//!
//! | file | tool |
//! | --- | --- |
//! | `vision.rs` | `vision_analyze`: a question about an image |
//! | `generate.rs` | `image_generate`: an image by a description |
//! | `speech.rs` | `text_to_speech`: a text as an audio file |
//! | `mixture.rs` | `mixture_of_agents`: several models answer, another one makes one answer of them |
//! | `diagram.rs` | `render_diagram`: Mermaid or Graphviz as a picture |
//! | `document.rs` | `make_document`: Markdown as PDF, DOCX, PPTX or HTML |
//!
//! The first four reach a server of the user's settings that speaks the format of OpenAI (`endpoint.rs`), asks the budget before
//! a request, and counts what it costs. A tool without a server is not offered. What a server sends is untrusted: text
//! is marked as such, images and audio are checked by their content before they are written (`saved.rs`), through the
//! same way as changes of `write_file`. The last two start installed programs (`program.rs`).

mod diagram;
pub(crate) mod document;
mod endpoint;
mod generate;
mod mixture;
mod program;
mod saved;
mod speech;
pub(crate) mod vision;

use std::time::Duration;

use tiller_protocol::{RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolVerb, Touch};

pub use endpoint::{Endpoint, MediaKey, Prices};
pub use program::Renderers;

use crate::{Tool, ToolCx, ToolError};

/// The servers of the settings; a tool without one is not offered.
#[derive(Clone, Debug, Default)]
pub struct MediaSettings {
    pub vision: Option<Endpoint>,
    pub image: Option<Endpoint>,
    pub speech: Option<Endpoint>,
    pub mixture: Option<Mixture>,
    /// Longest time of one request; `None`: [`TIME`].
    pub time: Option<Duration>,
}

/// Models that answer together.
#[derive(Clone, Debug)]
pub struct Mixture {
    /// They answer in parallel.
    pub models: Vec<Endpoint>,
    /// Makes one answer of theirs.
    pub synthesis: Endpoint,
}

/// Longest time of one request: images take minutes.
pub const TIME: Duration = Duration::from_secs(300);

impl MediaSettings {
    fn time(&self) -> Duration {
        self.time.unwrap_or(TIME)
    }
}

/// A tool over the settings, and whether its server is configured. They live as long as the process; the composition
/// root makes them once.
pub fn tools(settings: MediaSettings) -> [(&'static dyn Tool, bool); 4] {
    let settings: &'static MediaSettings = Box::leak(Box::new(settings));
    let vision: &'static dyn Tool = Box::leak(Box::new(vision::VisionAnalyze(settings)));
    let image: &'static dyn Tool = Box::leak(Box::new(generate::ImageGenerate(settings)));
    let speech: &'static dyn Tool = Box::leak(Box::new(speech::TextToSpeech(settings)));
    let mixture: &'static dyn Tool = Box::leak(Box::new(mixture::MixtureOfAgents(settings)));
    [
        (vision, settings.vision.is_some()),
        (image, settings.image.is_some()),
        (speech, settings.speech.is_some()),
        (mixture, settings.mixture.is_some()),
    ]
}

/// The tools that start renderers of this machine. They are always offered: without a renderer they say what to install.
pub fn local_tools(renderers: Renderers) -> [&'static dyn Tool; 2] {
    let renderers: &'static Renderers = Box::leak(Box::new(renderers));
    [
        Box::leak(Box::new(diagram::RenderDiagram(renderers))),
        Box::leak(Box::new(document::MakeDocument(renderers))),
    ]
}

/// What the tools that reach a server have in common.
const fn info(
    name: &'static str,
    verb: ToolVerb,
    touch: Touch,
    aliases: &'static [&'static str],
    target: fn(&serde_json::Value) -> String,
) -> ToolInfo {
    ToolInfo {
        name,
        set: ToolSet::Media,
        grant: ToolGrant::All,
        starts_agents: false,
        touch,
        rule: RuleArgument::Address,
        aliases,
        verb,
        target,
    }
}

/// The server of a tool. The tool is not offered without one; a session that was made elsewhere may still call it.
fn configured<'a>(endpoint: Option<&'a Endpoint>, section: &str) -> Result<&'a Endpoint, ToolError> {
    endpoint.ok_or_else(|| {
        ToolError::Tell(format!("there is no server for this. The user can set url and model under [media.{section}] in config.toml"))
    })
}

/// One line of at most `most` characters for the row of a call.
fn words(text: &str, most: usize) -> String {
    let line = crate::text::one_line(text);
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", line[..at].trim_end()),
        None => line,
    }
}

/// Refuses a text that is empty or too long for a server, before anything is asked or paid.
fn checked<'a>(text: &'a str, what: &str, most: usize) -> Result<&'a str, ToolError> {
    let text = text.trim();
    let long = text.chars().count();
    match long {
        0 => Err(ToolError::Tell(format!("{what} is empty"))),
        n if n > most => {
            Err(ToolError::Tell(format!("{what} has {n} characters; at most {most} are sent. Shorten it")))
        }
        _ => Ok(text),
    }
}

/// Reports how far a call is. Dropped where nothing reads it.
fn progress(cx: &ToolCx, words: String) {
    let _ = cx.progress.try_send(words);
}

#[cfg(test)]
mod tests;
