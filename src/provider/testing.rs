//! For tests that read replies without a connection. Behind the feature `testing`.

use std::collections::VecDeque;

use crate::codec::{Decoder, Flow};
use crate::transport::answer::{Answer, Document};
use crate::transport::sse::SseDecoder;
use crate::{Assembled, Assembler, ProviderError};

/// The formats whose replies come over HTTP, by the names of [`read_reply`].
pub const FORMATS: [&str; 4] = ["anthropic", "openai-chat", "openai-responses", "gemini"];

fn decoder(format: &str) -> Box<dyn Decoder> {
    match format {
        "anthropic" => Box::new(crate::anthropic::reply::AnthropicReply::new("p")),
        "openai-chat" => Box::new(crate::openai::chat_reply::ChatReply::new("p")),
        "openai-responses" => Box::new(crate::openai::responses_reply::ResponsesReply::new("p")),
        _ => Box::new(crate::gemini::reply::GeminiReply::new("p")),
    }
}

/// Reads the pieces of a body as a connection would: a stream of events, a document, or neither.
pub fn read_reply(format: &str, pieces: &[&[u8]]) -> (Assembled, Option<ProviderError>) {
    let (mut sse, mut decoder, mut answer) = (SseDecoder::default(), decoder(format), Answer::default());
    let mut queue = VecDeque::new();
    let mut error = None;
    let mut over = false;
    for piece in pieces {
        if over || error.is_some() {
            break;
        }
        if answer.take(piece) {
            over = answer.enough();
            continue;
        }
        let fed = sse.feed(piece, |event| {
            if over || error.is_some() {
                return;
            }
            answer.event();
            match decoder.event(&event.name, &event.data, &mut queue) {
                Ok(flow) => over = flow == Flow::Over,
                Err(e) => error = Some(e),
            }
        });
        if fed.is_err() {
            error.get_or_insert(ProviderError::Rejected("too large".into()));
        }
    }
    if error.is_none() {
        error = match answer.document("p") {
            Document::Wrong(error) => Some(error),
            Document::Json(parts) => parts.iter().find_map(|p| decoder.document(p, &mut queue).err()),
            Document::None => None,
        };
    }
    if error.is_none() {
        error = decoder.end(&mut queue).err().map(|e| answer.unread("p").unwrap_or(e));
    }
    let mut assembler = Assembler::new("p", "1", []);
    queue.into_iter().for_each(|c| assembler.push(c));
    (assembler.finish(), error)
}
