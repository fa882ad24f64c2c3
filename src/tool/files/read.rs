//! `read_file`: pages of text, images, notebooks; other things are described.

use std::io::Read;
use std::path::Path;
use tiller_protocol::ToolVerb;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolOutcome, ToolSet, ToolSpec, Touch};

use crate::files::change::ledger;
use crate::files::content::encoding::{self, NotText, hide_strays};
use crate::files::content::image;
use crate::files::content::large;
use crate::files::content::notebook;
use crate::files::content::{self, Page, Range};
use crate::files::masks::MaskedText;
use crate::files::path::beneath::{self, OpenFile};
use crate::files::path::{Place, Zone, declare, resolve};
use crate::foreign::seen;
use crate::guard::blocking;
use crate::output::human;
use crate::pdf;
use crate::text::{clean, is_binary, kind};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Files up to this size are read whole (and then known to the ledger).
pub(in crate::files) const HELD: u64 = 16 << 20;

/// The tool.
pub struct ReadFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(alias = "file_path")]
    path: String,
    /// Line, from 1
    #[serde(alias = "offset")]
    start: Option<u64>,
    end: Option<u64>,
    /// Byte offset instead of a line
    byte: Option<u64>,
}

const INFO: ToolInfo = ToolInfo {
    name: "read_file",
    set: ToolSet::Read,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Read,
    rule: RuleArgument::ReadPath,
    aliases: &["read", "view", "cat", "open", "notebookread"],
    verb: ToolVerb::Read,
    target,
};

/// What its row shows.
fn target(args: &Value) -> String {
    let line = |key| args.get(key).and_then(Value::as_u64);
    let path = super::path_of(args);
    match (line("start"), line("end")) {
        (None, None) => path,
        (start, end) => {
            format!("{path}:{}-{}", start.unwrap_or(1), end.map(|e| e.to_string()).unwrap_or_default())
        }
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        super::spec::<Args>(self.name(), include_str!("read.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let place = resolve(&schema::read::<Args>(args)?.path, cx)?;
        declare(cx, &[&place]);
        Ok(vec![place.reads()])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let cx = cx.clone();
        blocking("read", move || {
            let place = resolve(&args.path, &cx)?;
            let range = Range { start: args.start, end: args.end, byte: args.byte };
            read(&place, range, &cx)
        })
        .await
    }
}

fn read(place: &Place, range: Range, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
    if !place.exists {
        return Err(ToolError::Tell(missing(place, cx)));
    }
    let mut opened = beneath::open_file(place, cx)?;
    let size = u64::try_from(opened.stat.st_size).unwrap_or(0);
    let mut head = Vec::new();
    let io = |e: std::io::Error| ToolError::Tell(format!("{}: {e}", place.name));
    (&mut opened.file).take(8192).read_to_end(&mut head).map_err(io)?;
    if size > HELD {
        return far(place, opened, size, &head, range, cx);
    }
    let mut bytes = head;
    bytes.extend(beneath::read_whole(&mut opened, &place.name, &cx.cancel)?);
    ledger::note(&cx.workspace, &place.path, &bytes);
    if let Some(kind) = image::media_type(&bytes) {
        let content = image::parts(&place.name, kind, &bytes);
        let show = Display::Measure { text: format!("image, {}", human(bytes.len() as u64)) };
        return Ok(ToolOutput { content, display: Some(show), outcome: ToolOutcome::Ok });
    }
    let is_notebook = extension(place).is_some_and(|e| e.eq_ignore_ascii_case("ipynb"));
    if is_notebook && let Some(text) = notebook::render(&bytes) {
        return finish(page(&place.name, &text, range, cx), place, "a notebook; edit its JSON");
    }
    if is_pdf(place, &bytes) && range.byte.is_none() {
        return match pdf::read(&bytes) {
            Ok(found) => finish(
                page(&place.name, &clean(found.text.as_bytes()), range, cx),
                place,
                &found.notes.join("; "),
            ),
            Err(why) => Ok(ToolOutput::text(format!("{}; {why}", describe(place, &bytes, size)))),
        };
    }
    let text = match ledger::decode(&cx.workspace, &place.path, &bytes) {
        Ok(text) => text,
        Err(NotText::Binary) => return Ok(ToolOutput::text(not_shown(place, &bytes, range, cx))),
        Err(why) => return Err(ToolError::Tell(format!("{}: not shown, because {why}", place.name))),
    };
    let notes = [text.label(), text.ends_label().to_owned()];
    let notes: Vec<String> = notes.into_iter().filter(|n| !n.is_empty()).collect();
    let mut shown = hide_strays(&text.text);
    if place.zone == Zone::Spill {
        // The rest of an output, as its begin was shown.
        shown = seen(&shown);
    }
    finish(page(&place.name, &shown, range, cx), place, &notes.join(", "))
}

/// True for a PDF file: it is named as one, or begins as one and has objects.
fn is_pdf(place: &Place, bytes: &[u8]) -> bool {
    let named = extension(place).is_some_and(|e| e.eq_ignore_ascii_case("pdf"));
    let begins = || bytes.starts_with(b"%PDF-") && memchr::memmem::find(bytes, b" obj").is_some();
    named && pdf::is_pdf(bytes) || begins()
}

fn extension(place: &Place) -> Option<&std::ffi::OsStr> {
    Path::new(&place.name).extension()
}

/// Masked as a whole: what stands around a page says what on it is secret.
fn page(name: &str, text: &str, range: Range, cx: &ToolCx) -> Result<Page, String> {
    content::of_text(&MaskedText::of_file(name, text, &cx.workspace.secrets), range, cx.limits.page_bytes)
}

/// Too large to be held.
fn far(
    place: &Place,
    opened: OpenFile,
    size: u64,
    head: &[u8],
    range: Range,
    cx: &ToolCx,
) -> Result<ToolOutput, ToolError> {
    use std::io::Seek;
    if is_pdf(place, head) {
        let more = format!("; it is larger than {}: `pdftotext` in the terminal reads it", human(HELD));
        return Ok(ToolOutput::text(describe(place, head, size) + &more));
    }
    // UTF-16 is not paged at this size.
    if is_binary(head) || head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return Ok(ToolOutput::text(describe(place, head, size)));
    }
    let mut file = opened.file;
    file.rewind().map_err(|e| ToolError::Tell(format!("{}: {e}", place.name)))?;
    let encoding = encoding::legacy_of(head);
    let page = large::page(file, size, range, cx.limits.page_bytes, encoding, &cx.cancel)?;
    finish(Ok(page), place, encoding.map_or("", |e| e.name()))
}

fn finish(page: Result<Page, String>, place: &Place, note: &str) -> Result<ToolOutput, ToolError> {
    let Page { mut text, lines } = page.map_err(|e| ToolError::Tell(format!("{}: {e}", place.name)))?;
    if !note.is_empty() {
        text.push_str(&format!("[{note}]\n"));
    }
    let words = if lines == 1 { "1 line".into() } else { format!("{lines} lines") };
    Ok(ToolOutput::text(text).show(Display::Measure { text: words }))
}

/// Bytes of a page in hexadecimal.
const HEX: usize = 4096;

/// Content that is no text: its bytes, when the call names the first one, else its kind.
fn not_shown(place: &Place, bytes: &[u8], range: Range, cx: &ToolCx) -> String {
    let Some(from) = range.byte else { return describe(place, bytes, bytes.len() as u64) };
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len());
    // A row has 16 bytes and 78 characters at most.
    let to = (from + HEX.min(cx.limits.page_bytes / 80 * 16).max(16)).min(bytes.len());
    let mut text = String::new();
    for (n, row) in bytes[from..to].chunks(16).enumerate() {
        let hex: Vec<String> = row.iter().map(|b| format!("{b:02x}")).collect();
        let ascii: String =
            row.iter().map(|b| if matches!(b, b' '..=b'~') { char::from(*b) } else { '.' }).collect();
        text.push_str(&format!("{:08x}  {:<47}  {ascii}\n", from + n * 16, hex.join(" ")));
    }
    let more = if to < bytes.len() { format!("next page: byte={to}") } else { "the end".into() };
    format!("{text}[bytes {from}-{to} of {}, {}; {more}]\n", bytes.len(), kind(bytes))
}

/// What a file is that is not shown.
fn describe(place: &Place, head: &[u8], size: u64) -> String {
    let first: Vec<String> = head.iter().take(16).map(|b| format!("{b:02x}")).collect();
    format!("{}: {}, {}; not shown. First bytes: {}", place.name, kind(head), human(size), first.join(" "))
}

/// A missing file, with names in its folder that are like it.
fn missing(place: &Place, cx: &ToolCx) -> String {
    let mut said = format!("{} does not exist{}", place.name, place.hidden_note());
    let Some(leaf) = place.path.file_name() else { return said };
    let leaf = leaf.to_string_lossy().to_lowercase();
    // Names outside of the workspace are shown only where reading is allowed.
    if place.zone == Zone::Inside && place.link.is_none() {
        let names = beneath::open_parent(place, cx).and_then(|dir| beneath::names(&dir, 2_000));
        let mut near: Vec<(f32, String)> = names
            .unwrap_or_default()
            .into_iter()
            .map(|n| n.to_string_lossy().into_owned())
            .map(|n| (similar::TextDiff::from_chars(n.to_lowercase().as_str(), leaf.as_str()).ratio(), n))
            .filter(|(ratio, _)| *ratio > 0.7)
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        let near: Vec<String> =
            near.into_iter().take(3).map(|(_, n)| crate::text::visible(&n).into_owned()).collect();
        if !near.is_empty() {
            said.push_str(&format!("; in the same folder: {}", near.join(", ")));
        }
    }
    said
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
