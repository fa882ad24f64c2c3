//! Places of the system without personal data: their content is the same on every machine of one kind.

use crate::paths::Roots;
use tiller_shell::Word;

const FILES: &[&str] = &[
    "/etc/os-release",
    "/usr/lib/os-release",
    "/etc/debian_version",
    "/etc/lsb-release",
    "/etc/issue",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/version",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/filesystems",
];

const FOLDERS: &[&str] = &["/usr/include", "/usr/share/doc"];

/// Whether a word names such a place, as it is spelled and as its links lead.
pub(super) fn is_public(word: &Word, roots: &Roots) -> bool {
    let text = word.text.trim_end_matches('/');
    if !word.plain() || text.split('/').any(|part| part == "..") || !text.starts_with('/') {
        return false;
    }
    let public = |path: &std::path::Path| {
        FILES.iter().any(|f| path == std::path::Path::new(f)) || FOLDERS.iter().any(|f| path.starts_with(f))
    };
    let path = std::path::Path::new(text);
    public(path) && public(&roots.real(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_without_anything_personal() {
        let roots = Roots::new("/nowhere/work", None, vec![]);
        for good in
            ["/etc/os-release", "/proc/cpuinfo", "/usr/include", "/usr/include/stdio.h", "/usr/include/"]
        {
            assert!(is_public(&Word::fixed(good), &roots), "{good}");
        }
        for bad in [
            "/etc/passwd",
            "/etc",
            "/",
            "/usr/include/../../etc/passwd",
            "/usr/includes",
            "/proc/1/environ",
            "/proc/self/environ",
            "/root",
            "etc/os-release",
            "",
        ] {
            assert!(!is_public(&Word::fixed(bad), &roots), "{bad}");
        }
        let glob = Word { glob: true, ..Word::fixed("/usr/include/*") };
        assert!(!is_public(&glob, &roots));
    }
}
