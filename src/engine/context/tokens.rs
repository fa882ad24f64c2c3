//! Counts tokens: by the provider's own count where there is one, else by an estimate.

use std::sync::Arc;

use tiller_protocol::{Block, Entry, EntryBody, Part, StopReason, ToolSpec, Usage};

/// Assumed size of an image whose header cannot be read, in tokens.
const IMAGE: u64 = 1_500;

/// Longer side to which providers scale an image down before they count it, in pixels.
const SIDE: u64 = 1_568;

/// Tokens of an image at most.
const LARGEST: u64 = 1_640;

/// Pixels of an image for each token.
const PIXELS: u64 = 750;

/// Estimated tokens of a text: about 2.5 characters each.
pub fn of_text(text: &str) -> u64 {
    // Counts bytes, not characters: the same for ASCII, and scripts with longer characters have more tokens for each.
    of_bytes(text.len() as u64)
}

/// Estimated tokens of a text of this many bytes.
pub fn of_bytes(bytes: u64) -> u64 {
    bytes.saturating_mul(2).div_ceil(5)
}

/// Bytes of a text of this many estimated tokens.
pub fn bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(5) / 2).unwrap_or(usize::MAX)
}

/// Estimated tokens of an image by its size in pixels, as providers count it: scaled down to their longest side.
pub fn of_pixels(width: u32, height: u32) -> u64 {
    let (width, height) = (u64::from(width), u64::from(height));
    let long = width.max(height).max(SIDE);
    (width * SIDE / long * (height * SIDE / long)).div_ceil(PIXELS).clamp(1, LARGEST)
}

/// Estimated tokens of an image: its bytes in base64, which may be cut behind its header.
pub fn of_image(data: &str) -> u64 {
    tiller_provider::picture_size(data).map_or(IMAGE, |(width, height)| of_pixels(width, height))
}

/// Estimated tokens of the parts of a message or result.
pub fn of_parts(parts: &[Part]) -> u64 {
    parts
        .iter()
        .map(|p| match p {
            Part::Text { text } => of_text(text),
            Part::Image { data, .. } => of_image(data),
        })
        .sum()
}

/// Tokens that a request read and wrote.
pub fn of_usage(usage: &Usage) -> u64 {
    usage.context().saturating_add(usage.output)
}

/// Estimated tokens of the tool list.
pub fn of_tools(tools: &[ToolSpec]) -> u64 {
    tools.iter().map(|t| of_text(&t.name) + of_text(&t.description) + of_text(&t.schema.to_string())).sum()
}

/// Estimated tokens of a reply.
pub fn of_blocks(blocks: &[Block]) -> u64 {
    blocks
        .iter()
        .map(|b| match b {
            Block::Text { text } | Block::Thinking { text, .. } => of_text(text),
            Block::Redacted { data } => of_text(data),
            Block::ToolCall(c) => of_text(&c.name) + of_text(&c.arguments.to_string()),
            Block::Unknown { raw, .. } => of_text(&raw.to_string()),
        })
        .sum()
}

/// Estimated tokens that an entry adds to a request; notes and the like add nothing.
pub fn of_entry(entry: &Entry) -> u64 {
    match &entry.body {
        EntryBody::Prefix { system, tools, .. } => of_text(system) + of_tools(tools),
        EntryBody::User { content, .. } | EntryBody::ToolResult { content, .. } => of_parts(content),
        EntryBody::Assistant { blocks, .. } => of_blocks(blocks),
        EntryBody::Compaction { summary, carried, .. } => {
            let words = carried.words().map(|m| of_parts(&m.content)).sum::<u64>();
            of_text(summary).saturating_add(words)
        }
        EntryBody::BranchSummary { summary, .. } => of_text(summary),
        EntryBody::InnerCall { .. } | EntryBody::Checkpoint { .. } | EntryBody::Note { .. } => 0,
    }
}

/// Scales an estimate by the ratio of the server's count to our estimate `guessed`, within bounds: a count that is far
/// off says more of the server than of the text.
fn scaled(estimate: u64, counted: u64, guessed: u64) -> u64 {
    if guessed == 0 {
        return estimate;
    }
    let (least, most) = (estimate / 3, estimate.saturating_mul(3));
    let right = u128::from(estimate) * u128::from(counted) / u128::from(guessed);
    u64::try_from(right).unwrap_or(u64::MAX).clamp(least, most)
}

/// Tokens of the next request along `path`, and whether the greater part is the provider's own count.
/// `path` is as [`super::request::live`] gives it.
pub fn of_path(path: &[Arc<Entry>]) -> (u64, bool) {
    match last_counted(path) {
        Some((i, usage)) => {
            let tokens = of_usage(&usage);
            let guess = |part: &[Arc<Entry>]| part.iter().map(|e| of_entry(e)).sum::<u64>();
            let rest = scaled(guess(&path[i + 1..]), tokens, guess(&path[..=i]));
            (tokens.saturating_add(rest), true)
        }
        None => (path.iter().map(|e| of_entry(e)).sum(), false),
    }
}

/// The last complete reply of the path with the server's own count, and its index.
fn last_counted(path: &[Arc<Entry>]) -> Option<(usize, Usage)> {
    let found = path.iter().enumerate().rev().find_map(|(i, e)| match &e.body {
        // The count of a reply that was cut short is not reliable.
        EntryBody::Assistant { usage, stop, .. }
            if usage.context() > 0
                && !usage.estimated
                && !matches!(stop, StopReason::Interrupted | StopReason::Cut(_)) =>
        {
            Some(Some((i, *usage)))
        }
        // Counts before a compaction belong to another path.
        EntryBody::Compaction { .. } => Some(None),
        _ => None,
    });
    found.flatten()
}

/// Estimated usage of the input when the path is sent now. Where the last reply used the provider's cache, its input
/// is assumed to be read from the cache again.
pub fn next_request(path: &[Arc<Entry>]) -> Usage {
    let (all, _) = of_path(path);
    let mut usage = Usage { estimated: true, ..Usage::default() };
    match last_counted(path) {
        Some((_, last)) if last.cache_read.saturating_add(last.cache_write) > 0 => {
            usage.cache_read = last.context().min(all);
            let new = all - usage.cache_read;
            *(if last.cache_write > 0 { &mut usage.cache_write } else { &mut usage.input }) = new;
        }
        _ => usage.input = all,
    }
    usage
}

/// Relation of a server's counts to our estimates, measured on the last complete reply of a path: for input and for
/// output. Zeros where nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calibration {
    read: (u64, u64),
    written: (u64, u64),
}

impl Calibration {
    /// Measured on `path`, which is as [`super::request::live`] gives it.
    pub fn of(path: &[Arc<Entry>]) -> Self {
        let Some((i, usage)) = last_counted(path) else { return Self::default() };
        let EntryBody::Assistant { blocks, .. } = &path[i].body else { return Self::default() };
        let sent = path[..i].iter().map(|e| of_entry(e)).sum();
        Self { read: (usage.context(), sent), written: (usage.output, of_blocks(blocks)) }
    }

    /// `estimate` tokens of input, as the server would count them.
    pub fn read(&self, estimate: u64) -> u64 {
        scaled(estimate, self.read.0, self.read.1)
    }

    /// `estimate` tokens of output, as the server would count them.
    pub fn written(&self, estimate: u64) -> u64 {
        scaled(estimate, self.written.0, self.written.1)
    }
}

/// The counts of a server, with estimates where it did not count. `whole`: the reply came to its end. `request` is
/// what was sent and `output` what arrived.
pub fn completed(counted: Usage, whole: bool, request: Usage, output: u64) -> Usage {
    let mut usage = counted;
    if usage.context() == 0 {
        usage = Usage { output: counted.output, reasoning: counted.reasoning, ..request };
        usage.estimated = true;
    }
    // The count of a reply that was cut off covers its beginning at best.
    if usage.output < output && (!whole || usage.output == 0) {
        usage.output = output;
        usage.estimated = true;
    }
    usage
}
