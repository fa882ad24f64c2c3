//! One public page: fetched with all checks, as readable text that is marked as untrusted.

use std::net::IpAddr;

use reqwest::Url;

use super::client::{Net, Reply, Resolver, Sent};
use super::{address, readable};
use crate::foreign::framed;
use crate::guard::blocking;
use crate::output::human;
use crate::pdf;
use crate::text::{clean, is_binary, kind, visible};
use crate::{Limits, ToolCx, ToolError};

/// A page as text.
pub(super) struct Page {
    /// Where it was found in the end.
    pub url: Url,
    /// `None`: it is no text, or has none.
    pub text: Option<String>,
    /// Parts of it that are not in the text, and how to get them: sentences without a full stop.
    notes: Vec<String>,
    /// The bytes that were fetched, for people.
    pub size: String,
    /// There are more.
    pub capped: bool,
    pub status: u16,
    mime: String,
}

impl Page {
    /// Fetches it. Redirects are followed by hand, and within the host only.
    ///
    /// # Errors
    /// What is wrong with the address or the answer, in words.
    pub(super) async fn fetch(url: Url, raw: bool, cx: &ToolCx) -> Result<Self, ToolError> {
        let limits = &cx.limits;
        let net = cx.state.web.net(limits).map_err(ToolError::Tell)?;
        let resolver = cx.state.web.resolver();
        let (url, reply) = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Interrupted(String::new())),
            done = follow(url, &*net, &*resolver, limits) => done.map_err(ToolError::Tell)?,
            () = tokio::time::sleep(limits.fetch_time) => {
                return Err(ToolError::TimedOut(format!("no complete answer within {} s", limits.fetch_time.as_secs())));
            }
        };
        let (mut page, scripts) = read(url, reply, raw).await?;
        if let Some(scripts) = scripts {
            page.notes.push(needs_browser(scripts, cx));
        }
        Ok(page)
    }

    /// The text within its marks, then the notes on it. `text` is its own or the begin of it; `note` goes with its address.
    pub(super) fn framed(&self, text: &str, note: &str) -> String {
        let mut all = framed(&self.url, text, note);
        for note in &self.notes {
            all.push_str(&format!("[{note}]\n"));
        }
        all
    }

    /// The words about a page that is no text.
    pub(super) fn is_no_text(&self) -> String {
        let Self { url, status, size, .. } = self;
        let mime = visible(&self.mime);
        let more = if self.capped { " or more" } else { "" };
        let why = if self.notes.is_empty() { "not text, not shown".into() } else { self.notes.join("; ") };
        format!("{url}: HTTP {status}, {mime}, {size}{more}; {why}")
    }
}

/// The words about a page whose text scripts make: what opens it here.
fn needs_browser(scripts: readable::ByScripts, cx: &ToolCx) -> String {
    let tools = cx.ports.scripts().map(|scripts| scripts.tools()).unwrap_or_default();
    let sure = match scripts {
        readable::ByScripts::Surely => "is",
        readable::ByScripts::Perhaps => "may be",
    };
    let why = format!("the text of this page {sure} made by scripts, which web_fetch does not run");
    if tools.iter().any(|tool| tool.name() == "browser_navigate") {
        return format!("{why}: browser_navigate opens it");
    }
    format!(
        "{why}. A browser would, but this agent has no browser tool: they come with an installed Chromium, or with \
         browser.program or browser.url in config.toml, unless browser.enabled is false"
    )
}

/// The bytes at `url`, at most `cap` of them, which a server of the settings named. `own`: it is that server's own address,
/// which may be one of a private network; any other must be public.
///
/// # Errors
/// What is wrong with the address or the answer, in words.
pub(crate) async fn download(url: Url, own: bool, cap: u64, cx: &ToolCx) -> Result<Vec<u8>, ToolError> {
    let limits = Limits { fetch_bytes: cap, fetch_private: own, ..(*cx.limits).clone() };
    let net = cx.state.web.net(&limits).map_err(ToolError::Tell)?;
    let resolver = cx.state.web.resolver();
    let host = url.host_str().unwrap_or_default().to_owned();
    let (_, reply) = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Err(ToolError::Interrupted(String::new())),
        done = follow(url, &*net, &*resolver, &limits) => done.map_err(ToolError::Tell)?,
        () = tokio::time::sleep(limits.fetch_time) => {
            return Err(ToolError::TimedOut(format!("no complete answer within {} s", limits.fetch_time.as_secs())));
        }
    };
    match reply.status {
        200..=299 if !reply.capped => Ok(reply.body),
        200..=299 => Err(ToolError::Tell(format!("{host}: it is larger than {}", human(cap)))),
        status => Err(ToolError::Tell(format!("{host}: it answered with HTTP {status}"))),
    }
}

/// Fetches, following redirects by hand: each hop is checked as the first was. A redirect to another host is
/// not followed, since that host was not judged; it is reported instead.
async fn follow(
    mut url: Url,
    net: &dyn Net,
    resolver: &dyn Resolver,
    limits: &Limits,
) -> Result<(Url, Reply), String> {
    for _ in 0..=limits.fetch_redirects {
        address::check_url(&url, limits.fetch_private)?;
        let addresses = addresses(&url, resolver, limits).await?;
        let reply = net.send(&Sent::get(url.clone()), &addresses, limits.fetch_bytes).await?;
        let Some(location) =
            reply.location.as_deref().filter(|_| matches!(reply.status, 301 | 302 | 303 | 307 | 308))
        else {
            return Ok((url, reply));
        };
        let next = url.join(location).map_err(|e| format!("a redirect to an invalid URL: {e}"))?;
        address::check_url(&next, limits.fetch_private).map_err(|e| format!("a redirect: {e}"))?;
        if url.scheme() == "https" && next.scheme() == "http" {
            return Err(format!(
                "it redirects from https to http: {next}; fetch that address if you want it"
            ));
        }
        if bare(&url) != bare(&next)
            || next.port_or_known_default() != url.port_or_known_default() && next.scheme() == url.scheme()
        {
            return Err(format!("it redirects to another host: {next}; fetch that address if you want it"));
        }
        url = next;
    }
    Err(format!("more than {} redirects", limits.fetch_redirects))
}

/// The host without `www.`.
fn bare(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    host.strip_prefix("www.").unwrap_or(host)
}

/// The addresses to connect to; all of them must be public.
async fn addresses(url: &Url, resolver: &dyn Resolver, limits: &Limits) -> Result<Vec<IpAddr>, String> {
    let host = url.host_str().unwrap_or_default();
    if let Some(ip) = address::literal(url) {
        return Ok(vec![ip]);
    }
    let found = match resolver.resolve(host).await {
        Ok(found) => found,
        // Behind a proxy there is often no resolver for the outside.
        Err(_) if limits.fetch_proxy => return Ok(Vec::new()),
        Err(e) => return Err(format!("{host} was not found: {e}")),
    };
    if found.is_empty() {
        return Err(format!("{host} has no address"));
    }
    if !limits.fetch_private {
        for ip in &found {
            address::check(*ip).map_err(|what| address::refusal(&format!("{host} ({ip})"), what))?;
        }
    }
    Ok(found)
}

/// The page, and how sure it is that scripts make its text.
async fn read(url: Url, reply: Reply, raw: bool) -> Result<(Page, Option<readable::ByScripts>), ToolError> {
    let content_type = reply.content_type.clone().unwrap_or_default().to_ascii_lowercase();
    let mime = content_type.split(';').next().unwrap_or_default().trim().to_owned();
    let size = human(reply.body.len() as u64);
    let (status, capped, mut body) = (reply.status, reply.capped, reply.body);
    let mut page = Page { url, text: None, notes: Vec::new(), size, capped, status, mime };
    if is_pdf(&page.mime, &body) {
        "application/pdf".clone_into(&mut page.mime);
        page.of_pdf(body).await?;
        return Ok((page, None));
    }
    let is_html = !raw
        && (page.mime == "text/html"
            || page.mime == "application/xhtml+xml"
            || page.mime.is_empty() && looks_like_html(&body));
    if !is_html && !is_text(&page.mime, &body) {
        if matches!(page.mime.as_str(), "" | "application/octet-stream" | "binary/octet-stream") {
            page.mime = kind(&body).to_owned();
        }
        return Ok((page, None));
    }
    let address = page.url.clone();
    let (text, notes, scripts) = blocking("fetch", move || {
        let text = decode(std::mem::take(&mut body), &content_type);
        if !is_html {
            return Ok((clean(text.as_bytes()), Vec::new(), None));
        }
        let readable = readable::read(&text, &address);
        Ok((clean(readable.text.as_bytes()), readable.notes, readable.scripts))
    })
    .await?;
    page.notes = notes;
    if status >= 400 {
        let head: String = text.chars().take(1_000).collect();
        return Err(ToolError::Tell(format!(
            "{}: HTTP {status}. {}",
            page.url,
            framed(&page.url, &head, "")
        )));
    }
    page.text = Some(if text.trim().is_empty() { "(no text)\n".into() } else { text });
    Ok((page, scripts))
}

impl Page {
    /// Takes the text of a PDF file, or why there is none.
    async fn of_pdf(&mut self, body: Vec<u8>) -> Result<(), ToolError> {
        match blocking("fetch", move || Ok(pdf::read(&body))).await? {
            Ok(found) => {
                self.text = Some(clean(found.text.as_bytes()));
                self.notes = found.notes;
            }
            Err(why) => {
                self.notes = vec![why.to_string()];
                if self.capped {
                    self.notes.push(format!("only its first {} were fetched", self.size));
                }
            }
        }
        if self.status >= 400 {
            return Err(ToolError::Tell(format!("{}: HTTP {}, with a PDF", self.url, self.status)));
        }
        Ok(())
    }
}

/// True for a PDF file: bytes may stand before its mark where its type does not say otherwise, but a page may write of it.
fn is_pdf(mime: &str, body: &[u8]) -> bool {
    let open =
        ["", "application/pdf", "application/x-pdf", "application/octet-stream", "binary/octet-stream"];
    !is_other(mime)
        && (body.starts_with(b"%PDF-") || open.contains(&mime) && pdf::is_pdf(body) && !looks_like_html(body))
}

/// True for a type that surely is no PDF, whatever its text begins with.
fn is_other(mime: &str) -> bool {
    mime.starts_with("text/") && mime != "text/html"
        || ["image/", "audio/", "video/", "font/"].iter().any(|kind| mime.starts_with(kind))
        || mime.ends_with("json")
}

fn is_text(mime: &str, body: &[u8]) -> bool {
    let named = mime.starts_with("text/")
        || mime.ends_with("+json")
        || mime.ends_with("+xml")
        || [
            "json",
            "xml",
            "javascript",
            "ecmascript",
            "yaml",
            "x-yaml",
            "toml",
            "x-sh",
            "x-ndjson",
            "sql",
            "graphql",
        ]
        .iter()
        .any(|t| mime.strip_prefix("application/") == Some(t));
    let open = mime.is_empty() || mime == "application/octet-stream" || mime == "binary/octet-stream";
    (named || open) && !is_binary(&body[..body.len().min(8192)])
}

fn looks_like_html(body: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&body[..body.len().min(512)]).trim_start().to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

/// Text by the charset of the header, of the page, or UTF-8.
fn decode(body: Vec<u8>, kind: &str) -> String {
    let named = |s: &str| {
        let after = s.split("charset=").nth(1)?;
        let name: String = after
            .trim_start_matches(['"', '\''])
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "-_:.".contains(*c))
            .collect();
        encoding_rs::Encoding::for_label(name.as_bytes())
    };
    let head = String::from_utf8_lossy(&body[..body.len().min(2048)]).to_ascii_lowercase();
    let encoding = named(kind).or_else(|| named(&head)).unwrap_or(encoding_rs::UTF_8);
    encoding.decode(&body).0.into_owned()
}
