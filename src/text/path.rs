//! Paths as rows and questions name them: relative to the workspace where they are in it.

/// A path below one of these folders without the folder; any other as it is.
pub fn below<'p>(folders: &[impl AsRef<str>], path: &'p str) -> &'p str {
    let rest = |folder: &str| path.strip_prefix(folder)?.strip_prefix('/').filter(|rest| is_clear(rest));
    folders.iter().find_map(|folder| rest(folder.as_ref())).unwrap_or(path)
}

/// True for the rest of a path that names the same file without the folder before it.
fn is_clear(rest: &str) -> bool {
    // `..` leads out again, and a name that begins with `~` would look like one of the home folder.
    !rest.is_empty() && !rest.starts_with(['~', '/']) && rest.split('/').all(|part| part != "..")
}

/// Words with each path below one of these folders without the folder, and a folder itself as `.`. A path begins behind a blank,
/// or with the words.
pub fn words_below(folders: &[String], words: &str) -> String {
    let mut words = words.to_owned();
    for folder in folders.iter().filter(|folder| folder.len() > 1) {
        let (mut out, mut rest) = (String::new(), words.as_str());
        while let Some(at) = rest.find(folder.as_str()) {
            let (before, after) = (&rest[..at], &rest[at + folder.len()..]);
            out.push_str(before);
            let begins = out.is_empty() || out.ends_with(' ');
            let path = after.split(' ').next().unwrap_or_default();
            if begins && path.strip_prefix('/').is_some_and(is_clear) {
                rest = &after[1..];
            } else if begins && matches!(path, "" | "/") {
                out.push('.');
                rest = &after[path.len()..];
            } else {
                out.push_str(folder);
                rest = after;
            }
        }
        out.push_str(rest);
        words = out;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_folder_is_named_without_it_and_any_other_in_full() {
        let folders = ["/w/my app".to_owned(), "/real".to_owned(), "/".to_owned(), String::new()];
        for (path, named) in [
            ("/w/my app/src/a.rs", "src/a.rs"),
            ("/w/my app/a b.rs", "a b.rs"),
            ("/w/my app/.", "."),
            ("/real/x:3-9", "x:3-9"),
            ("/w/my apple/x", "/w/my apple/x"),
            ("/w/my app/../x", "/w/my app/../x"),
            ("/w/my app/a/../../x", "/w/my app/a/../../x"),
            ("/w/my app/~/x", "/w/my app/~/x"),
            ("/w/my app//etc/x", "/w/my app//etc/x"),
            ("/etc/passwd", "/etc/passwd"),
            ("x/w/my app/y", "x/w/my app/y"),
            ("~/w", "~/w"),
            ("src/a.rs", "src/a.rs"),
            ("", ""),
            ("/real/w/a.rs", "w/a.rs"),
            ("/w", "/w"),
            ("/work/a.rs", "/work/a.rs"),
        ] {
            assert_eq!(words_below(&folders, path), named, "{path}");
            assert_eq!(below(&folders[..2], path), named, "{path}");
        }
        for (words, named) in [
            ("/w/my app", "."),
            ("/w/my app/", "."),
            ("/w/my app/a.rs and 2 more", "a.rs and 2 more"),
            ("one in /w/my app/src, /real/b", "one in src, b"),
            ("/w/my app/a /w/my app/../b", "a /w/my app/../b"),
            ("=/real/x", "=/real/x"),
        ] {
            assert_eq!(words_below(&folders, words), named, "{words}");
        }
    }
}
