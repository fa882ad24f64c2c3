//! The patch text: `*** Begin Patch`, sections by file, `*** End Patch`.

use tiller_protocol::mask::has_mask;

/// One section.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, to: Option<String>, hunks: Vec<Hunk> },
}

impl Section {
    /// The path that it is about.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path } | Self::Update { path, .. } => path,
        }
    }
}

/// One place of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// Text after `@@`: a line to look for first; empty when none.
    pub anchor: String,
    /// 1-based line that the text after `@@` names, when it has the form `-12,3 +12,4 @@`.
    pub near: Option<usize>,
    pub lines: Vec<Line>,
    /// It ends with the file.
    pub at_end: bool,
    /// Where it stands in the patch (1-based line).
    pub at: usize,
}

impl Hunk {
    /// Whether a mask of a secret stands anywhere in it.
    pub(crate) fn has_mask(&self) -> bool {
        has_mask(&self.anchor)
            || self.lines.iter().any(|l| match l {
                Line::Keep(text) | Line::Cut(text) | Line::Put(text) => has_mask(text),
            })
    }
}

/// One line of a hunk, without its line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Keep(String),
    Cut(String),
    Put(String),
}

/// Reads a patch.
///
/// # Errors
/// What is wrong, with the line of the patch.
pub(crate) fn parse(text: &str) -> Result<Vec<Section>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut first = lines.iter().position(|l| !l.trim().is_empty()).unwrap_or(0);
    let mut last = lines.iter().rposition(|l| !l.trim().is_empty()).unwrap_or(0);
    // Some models put it into a fence of Markdown.
    let fence = |at: usize| lines.get(at).is_some_and(|l| l.trim_start().starts_with("```"));
    if fence(first) && fence(last) && first + 1 < last {
        (first, last) = (first + 1, last - 1);
    }
    if lines.get(first).is_some_and(|l| l.starts_with("--- ") || l.starts_with("diff --git ")) {
        return Err(
            "this is a unified diff; a patch begins with a line '*** Begin Patch', and each file with \
                    '*** Update File: NAME'"
                .into(),
        );
    }
    if lines.get(first).map(|l| l.trim()) != Some("*** Begin Patch") {
        return Err("a patch begins with a line '*** Begin Patch'".into());
    }
    if last == first || lines.get(last).map(|l| l.trim()) != Some("*** End Patch") {
        return Err("a patch ends with a line '*** End Patch'".into());
    }
    let mut reader = Reader { lines: &lines[..last], at: first + 1 };
    let mut sections = Vec::new();
    while let Some(section) = reader.section()? {
        sections.push(section);
    }
    if sections.is_empty() {
        return Err("the patch is empty".into());
    }
    Ok(sections)
}

struct Reader<'a> {
    lines: &'a [&'a str],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn header(line: &str) -> bool {
        ["*** Add File:", "*** Delete File:", "*** Update File:"].iter().any(|h| line.starts_with(h))
    }

    fn section(&mut self) -> Result<Option<Section>, String> {
        while self.peek().is_some_and(|l| l.trim().is_empty()) {
            self.at += 1;
        }
        let Some(line) = self.peek() else { return Ok(None) };
        self.at += 1;
        let path = |rest: &str| match rest.trim() {
            "" => Err(format!("line {}: the path is missing", self.at)),
            path => Ok(path.to_owned()),
        };
        if let Some(rest) = line.strip_prefix("*** Add File:") {
            return Ok(Some(Section::Add { path: path(rest)?, content: self.added()? }));
        }
        if let Some(rest) = line.strip_prefix("*** Delete File:") {
            return Ok(Some(Section::Delete { path: path(rest)? }));
        }
        if let Some(rest) = line.strip_prefix("*** Update File:") {
            let path = path(rest)?;
            return self.update(path).map(Some);
        }
        Err(format!(
            "line {}: expected '*** Add File: path', '*** Update File: path' or '*** Delete File: path', found {line:?}",
            self.at
        ))
    }

    fn added(&mut self) -> Result<String, String> {
        let mut content = String::new();
        while let Some(line) = self.peek().filter(|l| !Self::header(l)) {
            self.at += 1;
            match line.strip_prefix('+') {
                Some(text) => {
                    content.push_str(text);
                    content.push('\n');
                }
                None if line.trim().is_empty() && self.peek().is_none_or(Self::header) => {}
                None => return Err(format!("line {}: each line of a new file begins with '+'", self.at)),
            }
        }
        Ok(content)
    }

    fn update(&mut self, path: String) -> Result<Section, String> {
        let to = self.peek().and_then(|l| l.strip_prefix("*** Move to:")).map(|to| to.trim().to_owned());
        if to.is_some() {
            self.at += 1;
        }
        let mut hunks: Vec<Hunk> = Vec::new();
        while let Some(line) = self.peek().filter(|l| !Self::header(l)) {
            self.at += 1;
            if let Some(rest) = line.strip_prefix("@@") {
                let (near, anchor) = anchor(rest);
                hunks.push(Hunk { anchor, near, at: self.at, ..Hunk::default() });
                continue;
            }
            if line.trim_end() == "*** End of File" {
                let hunk = hunks.last_mut().ok_or_else(|| format!("line {}: no hunk before it", self.at))?;
                hunk.at_end = true;
                continue;
            }
            if hunks.last().is_none_or(|h| h.at_end) {
                hunks.push(Hunk { at: self.at, ..Hunk::default() });
            }
            let parsed = self.line(line)?;
            if let (Some(hunk), Some(line)) = (hunks.last_mut(), parsed) {
                hunk.lines.push(line);
            }
        }
        hunks.retain(|h| !h.lines.is_empty());
        if hunks.is_empty() && to.is_none() {
            return Err(format!("*** Update File: {path}: it changes nothing"));
        }
        if let Some(idle) = hunks.iter().find(|h| h.lines.iter().all(|l| matches!(l, Line::Keep(_)))) {
            return Err(format!("line {}: the hunk has no '-' or '+' line", idle.at));
        }
        Ok(Section::Update { path, to, hunks })
    }

    fn line(&self, line: &str) -> Result<Option<Line>, String> {
        let mut chars = line.chars();
        Ok(Some(match chars.next() {
            Some(' ') => Line::Keep(chars.as_str().to_owned()),
            Some('-') => Line::Cut(chars.as_str().to_owned()),
            Some('+') => Line::Put(chars.as_str().to_owned()),
            // "\ No newline at end of file", as diff writes it.
            Some('\\') => return Ok(None),
            // An empty line lost its space; at the end of a section it only parts it from the next.
            None if self.peek().is_none_or(Self::header) => return Ok(None),
            None => Line::Keep(String::new()),
            Some(_) => {
                return Err(format!(
                    "line {}: lines of a hunk begin with ' ', '-' or '+', found {line:?}",
                    self.at
                ));
            }
        }))
    }
}

/// What stands after `@@`: nothing, a line to find, or numbers as in a unified difference.
fn anchor(rest: &str) -> (Option<usize>, String) {
    let rest = rest.trim();
    if let Some(numbers) = rest.strip_prefix('-')
        && let Some((numbers, after)) = numbers.split_once("@@")
        && numbers.contains('+')
    {
        let first: String = numbers.chars().take_while(char::is_ascii_digit).collect();
        // What follows the numbers is a hint for people.
        let _ = after;
        return (first.parse().ok(), String::new());
    }
    (None, rest.trim_end_matches("@@").trim_end().to_owned())
}
