//! The kind of a successful answer's body: a stream, one JSON document, a web page, or other text.
//!
//! Servers and proxies answer a streaming request in all of these ways, and not always with the right content type; the
//! first byte that is not blank decides.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::ProviderError;
use crate::transport::fault;

/// Maximum bytes of a web page that are read.
const PAGE_LIMIT: usize = 16 * 1024;
/// Bytes kept of text that may turn out not to be a stream.
const HEAD_LIMIT: usize = 2 * 1024;
/// Maximum characters of an answer that are quoted.
const QUOTE: usize = 200;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BodyKind {
    /// Only blanks so far.
    #[default]
    Unknown,
    Stream,
    Json,
    Page,
}

/// The detector's state between two reads.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    kind: BodyKind,
    /// Bytes of a byte order mark so far; it may come in pieces.
    mark: usize,
    body: Vec<u8>,
    events: bool,
}

/// The collected body.
#[derive(Debug)]
pub(crate) enum Document {
    /// It is a stream.
    None,
    /// One or more documents.
    Json(Vec<String>),
    Wrong(ProviderError),
}

impl Answer {
    /// Processes the next bytes. True: they are not a stream, and are kept here.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> bool {
        if self.kind == BodyKind::Unknown {
            self.kind = self.detect(bytes);
        }
        match self.kind {
            BodyKind::Json | BodyKind::Page => self.body.extend_from_slice(bytes),
            BodyKind::Stream | BodyKind::Unknown if !self.events && self.body.len() < HEAD_LIMIT => {
                let room = HEAD_LIMIT - self.body.len();
                self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            BodyKind::Stream | BodyKind::Unknown => {}
        }
        matches!(self.kind, BodyKind::Json | BodyKind::Page)
    }

    /// The kind by the first byte that is neither blank nor part of a byte order mark at the beginning.
    fn detect(&mut self, bytes: &[u8]) -> BodyKind {
        for byte in bytes {
            match byte {
                _ if BYTE_ORDER_MARK.get(self.mark) == Some(byte) => self.mark += 1,
                // A part of a mark is none.
                _ if (1..BYTE_ORDER_MARK.len()).contains(&self.mark) => return BodyKind::Stream,
                b if b.is_ascii_whitespace() => self.mark = BYTE_ORDER_MARK.len(),
                b'{' | b'[' => return BodyKind::Json,
                b'<' => return BodyKind::Page,
                _ => return BodyKind::Stream,
            }
        }
        BodyKind::Unknown
    }

    /// Records that an event of a stream was decoded.
    pub(crate) fn event(&mut self) {
        self.events = true;
    }

    /// Whether enough was read to report the answer.
    pub(crate) fn enough(&self) -> bool {
        self.kind == BodyKind::Page && self.body.len() >= PAGE_LIMIT
    }

    /// The body at its end.
    pub(crate) fn document(&mut self, provider: &str) -> Document {
        let body = match self.kind {
            BodyKind::Json | BodyKind::Page => std::mem::take(&mut self.body),
            BodyKind::Stream | BodyKind::Unknown => return Document::None,
        };
        // Kept for a quotation.
        self.body.extend_from_slice(&body[..body.len().min(HEAD_LIMIT)]);
        let text = String::from_utf8_lossy(&body);
        let text = text.trim_start_matches('\u{feff}');
        if self.kind == BodyKind::Page {
            return Document::Wrong(page(provider, text, None));
        }
        let mut parts = Vec::new();
        for part in serde_json::Deserializer::from_str(text).into_iter::<Box<RawValue>>() {
            match part {
                // Gemini sends a list of pieces unless events are requested.
                Ok(raw) if raw.get().starts_with('[') => {
                    let list: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).unwrap_or_default();
                    parts.extend(list.into_iter().map(|r| r.get().to_owned()));
                }
                Ok(raw) => parts.push(raw.get().to_owned()),
                Err(e) if e.is_eof() => return Document::Wrong(fault::cut(provider)),
                Err(_) => return Document::Wrong(no_reply(provider, text)),
            }
        }
        match parts.as_slice() {
            [one] => match failure(provider, one) {
                Some(error) => Document::Wrong(error),
                None => Document::Json(parts),
            },
            _ => Document::Json(parts),
        }
    }

    /// When the decoder found no reply: an error with the reason, if the answer was unreadable.
    pub(crate) fn unread(&self, provider: &str) -> Option<ProviderError> {
        let text = String::from_utf8_lossy(&self.body);
        match self.kind {
            BodyKind::Json => Some(no_reply(provider, &text)),
            BodyKind::Stream if !self.events && !field(&self.body) => Some(no_reply(provider, &text)),
            _ => None,
        }
    }
}

/// Whether a stream can begin like this. A stream may be cut within its first field.
fn field(body: &[u8]) -> bool {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body).trim_ascii_start();
    [&b":"[..], b"data:", b"event:", b"id:", b"retry:"]
        .iter()
        .any(|f| body.starts_with(f) || f.starts_with(body))
}

/// An error that was sent with a success status.
fn failure(provider: &str, text: &str) -> Option<ProviderError> {
    let value: Value = serde_json::from_str(text).ok()?;
    let bare = value.get("object").is_some_and(|kind| kind == "error");
    (bare || value.get("error").is_some_and(|error| !error.is_null())).then(|| fault::stated(provider, text))
}

/// The title of a web page.
pub(crate) fn title(text: &str) -> Option<String> {
    element(text, "title")
}

/// The text of the first element of this name, which is in lower case.
pub(crate) fn element(text: &str, name: &str) -> Option<String> {
    let low = text.to_ascii_lowercase();
    let begin = format!("<{name}");
    let ends = |at: usize| low[at + begin.len()..].starts_with(['>', '/', ' ', '\t', '\n', '\r']);
    let at = low.match_indices(&begin).map(|(at, _)| at).find(|at| ends(*at))?;
    let from = at + text[at..].find('>')? + 1;
    let within = fault::clip(text[from..from + text[from..].find('<')?].trim());
    (!within.is_empty()).then_some(within)
}

/// The error for a web page as an answer. `status` when it is not a success.
pub(crate) fn page(provider: &str, text: &str, status: Option<u16>) -> ProviderError {
    let title = title(text).map(|t| format!(" (\"{t}\")")).unwrap_or_default();
    let status = status.map(|s| format!(" ({s})")).unwrap_or_default();
    ProviderError::Rejected(format!(
        "{provider} answered with a web page{title}{status} instead of a reply. Check the base URL; a proxy \
        or a login page may intercept the request."
    ))
}

fn no_reply(provider: &str, text: &str) -> ProviderError {
    let short: String = text.trim().chars().take(QUOTE).collect();
    ProviderError::Rejected(format!(
        "{provider} answered with something that is not a model reply: {}. Check the base URL \
            and the provider's kind.",
        fault::clip(&short).trim_end_matches('.')
    ))
}
