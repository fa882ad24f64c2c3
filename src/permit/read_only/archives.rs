//! Lists of archives: nothing is unpacked, and no option that runs a program is known here.

use std::path::PathBuf;

use super::inside;
use crate::paths::Roots;
use tiller_shell::Word;

/// Programs that these start.
pub(super) const HELPERS: &[(&str, &[&str])] =
    &[("tar", &["gzip", "bzip2", "xz", "zstd"]), ("zcat", &["gzip"]), ("gzcat", &["gzip"])];

/// `tar -tzf a.tgz`, `tar tvf a.tar name`: one word of letters that lists, then the archive, then names in it.
pub(super) fn tar(args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    let [letters, archive, names @ ..] = args else { return false };
    let text = letters.text.strip_prefix('-').unwrap_or(&letters.text);
    letters.plain()
        && text.contains('t')
        && text.ends_with('f')
        && text.chars().filter(|c| *c == 'f').count() == 1
        && text.chars().all(|c| "tvzjJf".contains(c))
        && file(archive, roots, folders)
        // A name in the archive; what begins with `-` is an option there, too.
        && names.iter().all(|w| w.plain() && !w.text.starts_with('-'))
}

/// `unzip -l a.zip`, `zipinfo a.zip`.
pub(super) fn zip(name: &str, args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    let rest = match args {
        [option, rest @ ..]
            if option.plain() && matches!(option.text.as_str(), "-l" | "-lv" | "-v" | "-Z1") =>
        {
            rest
        }
        rest if name == "zipinfo" => rest,
        _ => return false,
    };
    // Without its suffix it looks for other names.
    matches!(rest, [archive] if file(archive, roots, folders) && archive.text.ends_with(".zip"))
}

/// `zcat a.gz`. Without the suffix it looks for another name.
pub(super) fn zcat(args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    !args.is_empty() && args.iter().all(|w| file(w, roots, folders) && w.text.ends_with(".gz"))
}

/// A file of the workspace. A `:` would name another machine, and a pattern other files.
fn file(word: &Word, roots: &Roots, folders: &[PathBuf]) -> bool {
    word.plain()
        && !word.text.starts_with('-')
        && !word.text.contains([':', '*', '?', '[', '\\'])
        && inside(word, roots, folders)
}
