//! Unified differences, read back into hunks.

use tiller_protocol::ChangeKind;

/// The kind of a line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Context,
    Added,
    Removed,
    /// `\ No newline at end of file`.
    Remark,
}

/// One line of a hunk, without its sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: LineKind,
    /// Line numbers (1-based) in the old and the new file, where it stands in them.
    pub old: Option<u32>,
    pub new: Option<u32>,
    pub text: String,
}

/// One hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The whole `@@` line.
    pub header: String,
    pub old_start: u32,
    pub new_start: u32,
    pub lines: Vec<DiffLine>,
}

/// Lines of the file header, and the hunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    pub header: Vec<String>,
    pub hunks: Vec<Hunk>,
}

impl Patch {
    /// Reads a unified difference of one file. What is not understood is left out.
    pub fn read(text: &str) -> Self {
        let mut patch = Self::default();
        let (mut old, mut new) = (0, 0);
        let (mut old_left, mut new_left) = (0, 0);
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            if let Some((a, b)) = header(line).filter(|_| old_left == 0 && new_left == 0) {
                (old, new) = (a.0, b.0);
                (old_left, new_left) = (a.1, b.1);
                patch.hunks.push(Hunk {
                    header: line.to_owned(),
                    old_start: old,
                    new_start: new,
                    lines: Vec::new(),
                });
                continue;
            }
            let Some(hunk) = patch.hunks.last_mut() else {
                patch.header.push(line.to_owned());
                continue;
            };
            let (kind, rest) = match line.as_bytes().first() {
                Some(b'+') => (LineKind::Added, &line[1..]),
                Some(b'-') => (LineKind::Removed, &line[1..]),
                Some(b' ') => (LineKind::Context, &line[1..]),
                Some(b'\\') => (LineKind::Remark, line),
                None if old_left > 0 => (LineKind::Context, line), // mail programs cut the blank
                _ => continue,
            };
            if kind != LineKind::Remark && old_left == 0 && new_left == 0 {
                continue;
            }
            let is_old = matches!(kind, LineKind::Removed | LineKind::Context);
            let is_new = matches!(kind, LineKind::Added | LineKind::Context);
            hunk.lines.push(DiffLine {
                kind,
                old: is_old.then_some(old),
                new: is_new.then_some(new),
                text: rest.to_owned(),
            });
            old += u32::from(is_old);
            new += u32::from(is_new);
            old_left = old_left.saturating_sub(u32::from(is_old));
            new_left = new_left.saturating_sub(u32::from(is_new));
        }
        patch
    }
}

impl Hunk {
    /// It has as many lines as its header says.
    pub fn is_whole(&self) -> bool {
        let of =
            |unused| self.lines.iter().filter(|l| l.kind != LineKind::Remark && l.kind != unused).count();
        let counts = header(&self.header).map(|((_, old), (_, new))| (old as usize, new as usize));
        counts == Some((of(LineKind::Added), of(LineKind::Removed)))
    }

    /// Lines added and removed.
    pub fn count(&self) -> (usize, usize) {
        let of = |kind| self.lines.iter().filter(|l| l.kind == kind).count();
        (of(LineKind::Added), of(LineKind::Removed))
    }

    /// This hunk alone as a unified difference of `path`. `kind`: whether the file came or went by it, so that
    /// its reverse takes the file away or brings it back.
    pub fn to_patch(&self, path: &str, kind: ChangeKind) -> String {
        self.keep(path, kind, |_| true)
    }

    /// Only the changes among lines `from..=to` (indices into `lines`), so that its reverse takes away
    /// exactly those: other additions stay in both files, other removals in neither.
    pub fn part(&self, path: &str, kind: ChangeKind, from: usize, to: usize) -> String {
        self.keep(path, kind, |n| (from..=to).contains(&n))
    }

    fn keep(&self, path: &str, kind: ChangeKind, chosen: impl Fn(usize) -> bool) -> String {
        let mut body = String::new();
        let (mut old, mut new) = (0, 0);
        let mut said = false; // whether the last line was written: a remark belongs to it
        for (n, line) in self.lines.iter().enumerate() {
            let sign = match line.kind {
                LineKind::Context => ' ',
                LineKind::Added if chosen(n) => '+',
                LineKind::Removed if chosen(n) => '-',
                LineKind::Added => ' ',
                LineKind::Removed => {
                    said = false;
                    continue;
                }
                LineKind::Remark => {
                    if said {
                        body.push_str(&line.text);
                        body.push('\n');
                    }
                    continue;
                }
            };
            said = true;
            old += u32::from(sign != '+');
            new += u32::from(sign != '-');
            body.push(sign);
            body.push_str(&line.text);
            body.push('\n');
        }
        let header = format!("@@ -{},{old} +{},{new} @@", self.old_start, self.new_start);
        let none = || "/dev/null".to_owned();
        let a = if kind == ChangeKind::Added { none() } else { format!("a/{path}") };
        let b = if kind == ChangeKind::Deleted { none() } else { format!("b/{path}") };
        format!("--- {a}\n+++ {b}\n{header}\n{body}")
    }
}

/// Starts and counts of `@@ -a,b +c,d @@`.
fn header(line: &str) -> Option<((u32, u32), (u32, u32))> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |s: &str| -> Option<(u32, u32)> {
        match s.split_once(',') {
            Some((a, n)) => Some((a.parse().ok()?, n.parse().ok()?)),
            None => Some((s.parse().ok()?, 1)),
        }
    };
    Some((range(old)?, range(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) const DIFF: &str = "--- a/src/client.rs\n+++ b/src/client.rs\n@@ -40,4 +40,5 @@ fn retry()\n \
        let a = 1;\n-    sleep(wait)\n+    sleep(wait.min(limit))\n+    log(\"capped\")\n }\n --- not a header\n@@ -80 +81 @@\n-x\n+y\n\\ No newline at end of file\n";

    #[test]
    fn hunks_and_numbers() {
        let p = Patch::read(DIFF);
        assert_eq!(p.hunks.len(), 2);
        assert_eq!(p.hunks[0].count(), (2, 1));
        assert_eq!(p.hunks[0].lines[1].old, Some(41));
        assert_eq!(p.hunks[0].lines[2].new, Some(41));
        assert_eq!(p.hunks[0].lines[5].text, "--- not a header");
        assert_eq!(p.hunks[1].lines.last().unwrap().kind, LineKind::Remark);
    }

    #[test]
    fn a_hunk_alone_is_a_patch_again() {
        let p = Patch::read(DIFF);
        let again = Patch::read(&p.hunks[0].to_patch("src/client.rs", ChangeKind::Modified));
        assert_eq!(again.hunks[0].lines, p.hunks[0].lines);
    }

    #[test]
    fn a_file_that_came_or_went_is_named_so() {
        let p = Patch::read("--- a/n\n+++ b/n\n@@ -0,0 +1,2 @@\n+one\n+two\n");
        let text = p.hunks[0].to_patch("n", ChangeKind::Added);
        assert!(text.starts_with("--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n"), "{text}");
        let text = p.hunks[0].to_patch("n", ChangeKind::Deleted);
        assert!(text.starts_with("--- a/n\n+++ /dev/null\n"), "{text}");
    }

    #[test]
    fn a_part_keeps_other_changes_as_they_are() {
        let p = Patch::read(DIFF);
        let part = Patch::read(&p.hunks[0].part("f", ChangeKind::Modified, 3, 3));
        let signs: String = part.hunks[0]
            .lines
            .iter()
            .map(|l| match l.kind {
                LineKind::Added => '+',
                LineKind::Removed => '-',
                _ => ' ',
            })
            .collect();
        // The other addition is context, the other removal is gone: only the log line is taken back.
        assert_eq!(signs, "  +  ");
    }
}
