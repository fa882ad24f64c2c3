//! Splits unified diffs into pairs of old and new text, one for each hunk, as clients show them.

/// One hunk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The path in the diff, without `a/` or `b/`; empty when there is none.
    pub(super) path: String,
    /// `None`: the file is new.
    pub(super) old: Option<String>,
    pub(super) new: String,
    /// First line of the new text, from 1.
    pub(super) line: u32,
}

/// Parses as much as possible; an incomplete hunk ends where the text does.
pub(super) fn read(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let (mut path, mut fresh) = (String::new(), false);
    // Remaining lines of the hunk, old and new.
    let mut left = (0u32, 0u32);
    let mut last = Side::Both;
    for line in diff.split_inclusive('\n') {
        if left == (0, 0) {
            if let Some(name) = line.strip_prefix("--- ") {
                fresh = name.trim_end() == "/dev/null";
                if !fresh {
                    path = plain(name, "a/");
                }
            } else if let Some(name) = line.strip_prefix("+++ ") {
                if name.trim_end() != "/dev/null" {
                    path = plain(name, "b/");
                }
            } else if let Some((old, new)) = line.strip_prefix("@@ -").and_then(header) {
                left = (old.1, new.1);
                let old = (!fresh).then(String::new);
                hunks.push(Hunk { path: path.clone(), old, new: String::new(), line: new.0.max(1) });
            } else if line.starts_with('\\')
                && let Some(hunk) = hunks.last_mut()
            {
                unended(hunk, last);
            }
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let side = match line.as_bytes().first() {
            Some(b'-') => Side::Old,
            Some(b'+') => Side::New,
            Some(b'\\') => {
                unended(hunk, last);
                continue;
            }
            _ => Side::Both,
        };
        let text = line.get(1..).unwrap_or("\n");
        if side != Side::New {
            left.0 = left.0.saturating_sub(1);
            if let Some(old) = &mut hunk.old {
                old.push_str(text);
            }
        }
        if side != Side::Old {
            left.1 = left.1.saturating_sub(1);
            hunk.new.push_str(text);
        }
        last = side;
    }
    hunks
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
    Both,
}

/// Handles a last line without a line end.
fn unended(hunk: &mut Hunk, side: Side) {
    if side != Side::New
        && let Some(old) = &mut hunk.old
        && old.ends_with('\n')
    {
        old.pop();
    }
    if side != Side::Old && hunk.new.ends_with('\n') {
        hunk.new.pop();
    }
}

fn plain(name: &str, prefix: &str) -> String {
    let name = name.trim_end_matches(['\n', '\r']);
    let name = name.split('\t').next().unwrap_or(name);
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

/// Start and length of both sides, from the text after `@@ -`.
fn header(text: &str) -> Option<((u32, u32), (u32, u32))> {
    let (old, rest) = text.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |r: &str| match r.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((r.parse().ok()?, 1)),
    };
    Some((range(old)?, range(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(path: &str, old: Option<&str>, new: &str, line: u32) -> Hunk {
        Hunk { path: path.into(), old: old.map(str::to_owned), new: new.into(), line }
    }

    #[test]
    fn each_hunk_is_a_pair_of_texts() {
        let diff = "--- a/src/x.rs\n+++ b/src/x.rs\n@@ -1,2 +1,2 @@\n a\n-b\n+--- c\n@@ -10 +10,2 @@ fn x\n-d\n+d\n+e\n\
                    --- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+only\n\\ No newline at end of file\n\
                    --- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        assert_eq!(
            read(diff),
            [
                hunk("src/x.rs", Some("a\nb\n"), "a\n--- c\n", 1),
                hunk("src/x.rs", Some("d\n"), "d\ne\n", 10),
                hunk("new.txt", None, "only", 1),
                hunk("gone", Some("x\n"), "", 1),
            ]
        );
    }

    #[test]
    fn what_is_cut_off_or_no_difference_is_read_as_far_as_it_goes() {
        assert_eq!(read("@@ -1,9 +1,9 @@\n a\n-b\n"), [hunk("", Some("a\nb\n"), "a\n", 1)]);
        assert_eq!(read("@@ -1,99999999999 +1 @@\n a\n"), []);
        assert_eq!(read("no difference at all\n\\ x\n"), []);
    }
}
