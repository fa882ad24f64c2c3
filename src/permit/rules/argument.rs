//! The part of a rule in brackets: as text, as the words of a command, as a host and as a path.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobMatcher};
use unicode_normalization::UnicodeNormalization as _;

use crate::paths::{Roots, normal};
use crate::rules::pattern::Pattern;
use crate::rules::spellings::Spellings;
use crate::rules::words::{Certainty, Words, spaced};

/// The argument of a rule, in each of its readings.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub(super) text: Pattern,
    /// The text with one space around each operator of the shell, where it has some.
    spaced: Option<Pattern>,
    words: Option<Words>,
    pub(super) host: Option<Pattern>,
    pub(super) path: Option<PathGlob>,
}

impl Argument {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let host = text.strip_prefix("domain:").map(|host| Pattern::new(&plain_host(host))).transpose()?;
        let spaced = spaced(text).map(|text| Pattern::new(&text)).transpose()?;
        Ok(Self {
            text: Pattern::new(text)?,
            spaced,
            words: Words::new(text),
            host,
            path: PathGlob::new(text)?,
        })
    }

    /// How certain it is that a rule which restricts is for a command.
    pub(super) fn restricts(&self, command: &Spellings) -> Certainty {
        let as_text = |text: &str| {
            self.text.matches_any_case(text)
                || self
                    .spaced
                    .as_ref()
                    .is_some_and(|p| spaced(text).is_some_and(|text| p.matches_any_case(&text)))
        };
        if command.texts.iter().any(|text| as_text(text)) {
            return Certainty::Sure;
        }
        let as_words =
            |words: &[String]| self.words.as_ref().map_or(Certainty::No, |own| own.certainty(words));
        let sure = command.words().map(as_words).max().unwrap_or(Certainty::No);
        let perhaps = || {
            command.has_more()
                || command.launched().any(|(text, words)| as_text(text) || as_words(words) > Certainty::No)
        };
        if sure == Certainty::No && perhaps() { Certainty::Perhaps } else { sure }
    }

    /// Returns true if a rule which restricts is for this address: `domain:` stands for the domain and all below it.
    pub(super) fn restricts_address(&self, url: &str, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        if let Some(pattern) = &self.host {
            let below = host.match_indices('.').map(|(at, _)| &host[at + 1..]);
            return std::iter::once(host).chain(below).any(|name| pattern.matches_any_case(name));
        }
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let after_dot = rest.strip_prefix(host).and_then(|rest| rest.strip_prefix('.'));
        let rest = after_dot.map_or_else(|| rest.to_owned(), |after| format!("{host}{after}"));
        [scheme, "https", "http"]
            .iter()
            .any(|scheme| self.text.matches_any_case(&format!("{scheme}://{rest}")))
            || self.text.matches_any_case(url)
    }
}

/// The name of a host as addresses have it: in ASCII, without a dot at the end.
fn plain_host(name: &str) -> String {
    let name = name.trim().trim_end_matches('.');
    let name = name.strip_prefix('.').map_or_else(|| name.to_owned(), |name| format!("*.{name}"));
    let (wild, bare) = name.strip_prefix("*.").map_or(("", name.as_str()), |bare| ("*.", bare));
    match idna::domain_to_ascii(bare) {
        Ok(ascii) if !name.is_ascii() => format!("{wild}{ascii}"),
        _ => name,
    }
}

/// A pattern of paths.
#[derive(Clone, Debug)]
pub(super) struct PathGlob {
    text: String,
}

impl PathGlob {
    fn new(text: &str) -> Result<Option<Self>, String> {
        // Not every text is a pattern of paths; commands need not be.
        if tiller_protocol::names::pattern_forms(text).is_err() {
            return Ok(None);
        }
        // `//etc` is `/etc`.
        let bare = text.trim_start_matches('/');
        let text = if text.len() > bare.len() { format!("/{bare}") } else { text.to_owned() };
        Ok(parsed(&text, true).is_some().then_some(Self { text }))
    }

    /// As written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// A rule that loosens must hold for the path as spelled and for what it leads to; a rule that
    /// narrows, for either, at any depth, in any case, and for everything below.
    pub(super) fn matches(&self, path: &Path, strict: bool, roots: &Roots) -> bool {
        let lexical = normal(path);
        let real = roots.real(&lexical);
        if strict {
            [lexical, real].iter().any(|p| self.strict_one(p, roots))
        } else {
            [lexical, real].iter().all(|p| self.loose_one(p, roots))
        }
    }

    fn loose_one(&self, path: &Path, roots: &Roots) -> bool {
        let text = match self.text.as_str() {
            "*" => "**",
            t => t,
        };
        test(text, path, false, roots)
    }

    fn strict_one(&self, path: &Path, roots: &Roots) -> bool {
        let written = [Some(self.text.clone()), without_classes(&self.text)];
        written
            .into_iter()
            .flatten()
            .any(|text| strict_forms(&text).iter().any(|f| test(f, path, true, roots)))
    }
}

/// The path, what lies below it, and, as a bare name, each file of that name.
fn strict_forms(text: &str) -> Vec<String> {
    let bare = text.trim_end_matches('/').trim_end_matches("/**");
    let bare = if bare.is_empty() { "/" } else { bare };
    let below = format!("{}/**", bare.trim_end_matches('/'));
    let mut forms = vec![text.to_owned(), bare.to_owned(), below.clone()];
    if !bare.contains('/') {
        forms.extend([format!("**/{bare}"), format!("**/{below}")]);
    }
    if text == "*" {
        forms.push("/**".into());
    }
    forms
}

/// The pattern with brackets that stand for themselves, as in `app/[id]/page.tsx`: a name may have them.
fn without_classes(text: &str) -> Option<String> {
    (text.contains('[') && !text.contains('\\')).then(|| text.replace('[', "\\[").replace(']', "\\]"))
}

fn test(text: &str, path: &Path, strict: bool, roots: &Roots) -> bool {
    let is_match = |text: &str, p: &Path| {
        // A pattern with too many forms is refused when it is read.
        let forms = tiller_protocol::names::pattern_forms(text).unwrap_or_default();
        forms.iter().any(|form| {
            glob(form, strict).is_some_and(|g| g.is_match(p)) || strict && is_match_folded(form, p)
        })
    };
    if let Some(rest) = text.strip_prefix("~/") {
        return roots.home.as_ref().is_some_and(|h| path.strip_prefix(h).is_ok_and(|p| is_match(rest, p)));
    }
    if text.starts_with('/') {
        return is_match(text, path);
    }
    let text = text.strip_prefix("./").unwrap_or(text);
    let root = roots.real(&roots.workspace);
    [roots.workspace.as_path(), root.as_path()]
        .iter()
        .any(|r| path.strip_prefix(r).is_ok_and(|p| is_match(text, p)))
}

/// The same for names with letters beyond ASCII: in any case, and in each form of their accents, since some file systems do not
/// tell these apart.
fn is_match_folded(form: &str, path: &Path) -> bool {
    let Some(path) = path.to_str().filter(|path| !path.is_ascii() && !form.is_ascii()) else { return false };
    let folded = |text: &str| text.nfc().flat_map(char::to_lowercase).collect::<String>();
    glob(&folded(form), false).is_some_and(|g| g.is_match(folded(path)))
}

fn parsed(text: &str, any_case: bool) -> Option<Glob> {
    GlobBuilder::new(text).literal_separator(true).case_insensitive(any_case).build().ok()
}

fn glob(text: &str, any_case: bool) -> Option<GlobMatcher> {
    parsed(text, any_case).map(|g| g.compile_matcher())
}
