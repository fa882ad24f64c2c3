//! `search`: content by regular expression, files by glob, with ripgrep's own crates.

use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use tiller_protocol::ToolVerb;

use async_trait::async_trait;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::{DirEntry, WalkBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::tool::Display;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::hits::{Hits, MatchSink};
use crate::files::content::encoding::Text;
use crate::files::drafts::Drafted;
use crate::files::path::beneath;
use crate::files::path::{Place, declare, resolve, show};
use crate::files::read::HELD;
use crate::guard::blocking;
use crate::output::bound;
use crate::text::{is_binary, visible};
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema};

/// Files that a glob may list, and files that are looked at.
const FILES: usize = 1_000;
const WALK: usize = 1_000_000;
/// A line may be this long before its file is passed over.
const LINE_BYTES: usize = 4 << 20;

/// The tool.
pub struct Search;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    pattern: Option<String>,
    #[serde(default)]
    path: Option<String>,
    /// E.g. **/*.rs
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    context: Option<usize>,
    #[serde(default)]
    ignore_case: bool,
    /// Include ignored files
    #[serde(default)]
    all: bool,
}

impl Args {
    fn path(&self) -> &str {
        self.path.as_deref().filter(|p| !p.is_empty()).unwrap_or(".")
    }
}

const INFO: ToolInfo = ToolInfo {
    name: "search",
    set: ToolSet::Read,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Read,
    rule: RuleArgument::ReadPath,
    aliases: &["grep", "glob", "find"],
    verb: ToolVerb::Search,
    target,
};

/// What its row shows.
fn target(args: &Value) -> String {
    let word = |key| args.get(key).and_then(Value::as_str).filter(|s| !s.is_empty());
    let what = word("pattern").or(word("glob")).unwrap_or_default();
    word("path").map_or(what.to_owned(), |path| format!("{what} in {path}"))
}

#[async_trait]
impl Tool for Search {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        super::spec::<Args>(self.name(), include_str!("search.md"))
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let place = resolve(schema::read::<Args>(args)?.path(), cx)?;
        declare(cx, &[&place]);
        Ok(vec![place.reads()])
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let args: Args = schema::read(&args)?;
        let cx = cx.clone();
        blocking("search", move || {
            let place = resolve(args.path(), &cx)?;
            search(&args, &place, &cx)
        })
        .await
    }
}

fn search(args: &Args, place: &Place, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
    let wanted = args.glob.as_deref().filter(|g| !g.is_empty()).map(glob).transpose()?;
    let pattern = args.pattern.as_deref().filter(|p| !p.is_empty());
    if pattern.is_none() && wanted.is_none() {
        return Err(ToolError::Tell("give a pattern, a glob, or both".into()));
    }
    if !place.exists {
        return Err(ToolError::Tell(format!("{} does not exist{}", place.name, place.hidden_note())));
    }
    let walk = SearchWalk { place, wanted, all: args.all, cx, denied: std::cell::Cell::new(0) };
    match pattern {
        Some(pattern) => grep(pattern, args, &walk),
        None => list(&walk),
    }
}

fn glob(glob: &str) -> Result<GlobSet, ToolError> {
    // As in .gitignore: without a slash it is for names at any depth.
    let anywhere =
        if glob.contains('/') { glob.trim_start_matches('/').to_owned() } else { format!("**/{glob}") };
    let tell = |why: String| ToolError::Tell(format!("invalid glob: {why}"));
    let mut forms = GlobSetBuilder::new();
    for form in tiller_protocol::names::pattern_forms(&anywhere).map_err(tell)? {
        let glob = GlobBuilder::new(&form).literal_separator(true).build();
        forms.add(glob.map_err(|e| tell(e.to_string()))?);
    }
    forms.build().map_err(|e| tell(e.to_string()))
}

/// The files that a search looks at.
struct SearchWalk<'a> {
    place: &'a Place,
    wanted: Option<GlobSet>,
    all: bool,
    cx: &'a ToolCx,
    /// Files that a rule forbids to read, so far.
    denied: std::cell::Cell<usize>,
}

impl SearchWalk<'_> {
    /// Calls `each` with the path relative to the searched place and the name to show, in order of names,
    /// until it says `false`.
    fn each(&self, mut each: impl FnMut(&Path, &str) -> bool) -> Result<(), ToolError> {
        let root = &self.place.path;
        let mut builder = WalkBuilder::new(root);
        builder
            .hidden(false)
            .require_git(false)
            .follow_links(false)
            .standard_filters(!self.all)
            .hidden(false)
            .filter_entry(|e| e.file_name() != ".git" || e.depth() == 0)
            .sort_by_file_name(Ord::cmp);
        for entry in builder.build().flatten().take(WALK) {
            if self.cx.cancel.is_cancelled() {
                return Err(ToolError::Interrupted(String::new()));
            }
            let Some((rel, name)) = self.wants(&entry, root) else { continue };
            if !each(&rel, &name) {
                break;
            }
        }
        Ok(())
    }

    /// Says that something was skipped, so that its absence is not taken for proof that there is nothing.
    fn passed_over(&self) -> String {
        match self.denied.get() {
            0 => String::new(),
            1 => "[1 file was skipped: a rule denies reading it]\n".into(),
            n => format!("[{n} files were skipped: a rule denies reading them]\n"),
        }
    }

    fn wants(&self, entry: &DirEntry, root: &Path) -> Option<(PathBuf, String)> {
        if !entry.file_type().is_some_and(|t| t.is_file()) {
            return None;
        }
        let rel = entry.path().strip_prefix(root).ok()?.to_owned();
        let named = match rel.as_os_str().is_empty() {
            true => self.place.named.clone(),
            false => self.place.named.join(&rel),
        };
        // As a script would have written it, it is looked at after this walk.
        let drafts = self.cx.run.drafts.as_ref();
        if drafts.is_some_and(|drafts| drafts.seen(&named) != Drafted::Same) {
            return None;
        }
        let name = self.wants_named(&named)?;
        if self.cx.workspace.skipped(entry.path(), root).is_some() {
            self.denied.set(self.denied.get() + 1);
            return None;
        }
        Some((rel, name))
    }

    /// The name to show of a file (absolute, as commands know it), if the glob is for it.
    fn wants_named(&self, named: &Path) -> Option<String> {
        let rel = named.strip_prefix(&self.place.named).ok()?;
        let shown = named.strip_prefix(&self.cx.workspace.root).unwrap_or(named);
        // A glob is meant from the searched folder or from the workspace.
        let hit = |g: &GlobSet| {
            g.is_match(rel)
                || g.is_match(shown)
                || (rel.as_os_str().is_empty() && named.file_name().is_some_and(|name| g.is_match(name)))
        };
        if self.wanted.as_ref().is_some_and(|g| !hit(g)) {
            return None;
        }
        Some(visible(&show(shown)).replace('\n', "\u{240a}"))
    }

    /// Calls `each` with the files that a script would have written below the searched place: their content, and the name to
    /// show.
    fn each_draft(&self, mut each: impl FnMut(PathBuf, &str) -> bool) {
        let Some(drafts) = &self.cx.run.drafts else { return };
        for named in drafts.below(&self.place.named) {
            let Some(name) = self.wants_named(&named) else { continue };
            if self.cx.workspace.skipped(&named, &self.place.named).is_some() {
                self.denied.set(self.denied.get() + 1);
                continue;
            }
            let Drafted::File(content) = drafts.seen(&named) else { continue };
            if !each(content, &name) {
                return;
            }
        }
    }

    /// Whether a script would have made the searched folder.
    fn is_drafted(&self) -> bool {
        let drafts = self.cx.run.drafts.as_ref();
        drafts.is_some_and(|drafts| drafts.seen(&self.place.named) == Drafted::Folder)
    }
}

fn grep(pattern: &str, args: &Args, walk: &SearchWalk<'_>) -> Result<ToolOutput, ToolError> {
    let cx = walk.cx;
    let matcher = matcher(pattern, args.ignore_case)?;
    let mut searcher = searcher(args.context.unwrap_or(0).min(20));
    let mut hits = Hits::new(cx.limits.output_bytes);
    if walk.place.path.is_dir() || walk.is_drafted() {
        if walk.place.path.is_dir() {
            let dir = beneath::open_dir(walk.place, cx)?;
            walk.each(|rel, name| {
                // A file that cannot be opened (gone, not ours, swapped for a link) is passed over.
                if let Ok(opened) = beneath::open_regular(dir.as_fd(), rel, name) {
                    one(&mut searcher, &matcher, opened.file, name, &mut hits, cx);
                }
                !hits.full()
            })?;
        }
        walk.each_draft(|content, name| {
            if let Ok(file) = std::fs::File::open(content) {
                one(&mut searcher, &matcher, file, name, &mut hits, cx);
            }
            !hits.full()
        });
    } else {
        let opened = beneath::open_file(walk.place, cx)?;
        let name = &walk.place.name;
        if !one(&mut searcher, &matcher, opened.file, name, &mut hits, cx) {
            hits.skipped(name);
        }
    }
    if cx.cancel.is_cancelled() {
        return Err(ToolError::Interrupted(hits.finish().0));
    }
    let (mut text, words) = hits.finish();
    text.push_str(&walk.passed_over());
    Ok(ToolOutput::text(text).show(Display::Measure { text: words }))
}

/// Searches a file; `false`: it is no text.
fn one(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    file: std::fs::File,
    name: &str,
    hits: &mut Hits,
    cx: &ToolCx,
) -> bool {
    hits.file(name);
    // Errors: a line beyond the limit, or the file went bad while it was read.
    look(searcher, matcher, file, MatchSink { hits, matcher, cx }).unwrap_or_else(|_| {
        hits.skipped(name);
        true
    })
}

/// Searches the text of a file; `false`: it is none. A file that is not held whole is searched as UTF-8, or as
/// UTF-16 when it has its mark.
fn look(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    mut file: std::fs::File,
    sink: MatchSink<'_>,
) -> std::io::Result<bool> {
    let mut bytes = Vec::new();
    (&mut file).take(HELD + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= HELD {
        return match Text::decode(&bytes) {
            Ok(text) => searcher.search_slice(matcher, text.text.as_bytes(), sink).map(|()| true),
            Err(_) => Ok(false),
        };
    }
    if is_binary(&bytes[..8192]) {
        return Ok(false);
    }
    drop(bytes);
    file.rewind()?;
    searcher.search_file(matcher, &file, sink).map(|()| true)
}

fn matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(ignore_case).line_terminator(Some(b'\n')).size_limit(10 << 20);
    builder.build(pattern).map_err(|e| {
        ToolError::Tell(format!(
            "invalid pattern: {e}. It is a Rust regex over single lines; escape literal ( [ {{ . * + ? |"
        ))
    })
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::none())
        .heap_limit(Some(LINE_BYTES))
        .build()
}

fn list(walk: &SearchWalk<'_>) -> Result<ToolOutput, ToolError> {
    let mut names = Vec::new();
    let mut more = false;
    let is_folder = walk.place.path.is_dir();
    let dir = if is_folder {
        Some(beneath::open_dir(walk.place, walk.cx)?)
    } else {
        if !walk.is_drafted() {
            // Refuses what is no file, and what was not judged.
            beneath::open_file(walk.place, walk.cx)?;
        }
        None
    };
    let mut add = |name: &str| {
        more = names.len() == FILES;
        if !more {
            names.push(name.to_owned());
        }
        !more
    };
    if is_folder || !walk.is_drafted() {
        walk.each(|rel, name| {
            // The walk goes by names; what is shown must really lie beneath the folder.
            let there = dir.as_ref().is_none_or(|d| beneath::is_there(d, rel));
            !there || add(name)
        })?;
    }
    walk.each_draft(|_, name| add(name));
    let words = match names.len() {
        0 => "no file".into(),
        1 => "1 file".into(),
        n => format!("{n}{} files", if more { "+" } else { "" }),
    };
    let mut text = names.join("\n");
    let passed = walk.passed_over();
    if names.is_empty() {
        text = "no file name matches".into();
    } else if more {
        text.push_str(&format!("\n[only the first {FILES}; narrow the glob or the path]"));
    }
    if !passed.is_empty() {
        text.push('\n');
        text.push_str(&passed);
    }
    Ok(ToolOutput::text(bound(text, walk.cx)).show(Display::Measure { text: words }))
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
