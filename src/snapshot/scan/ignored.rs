//! Ignored files: those that a snapshot keeps like others, those of which it only keeps a stamp, and build output.

/// Maximum size of an ignored file that is kept, in bytes. Of a larger one only the stamp is kept.
const KEPT_BYTES: u64 = 256 << 10;
/// Maximum bytes of all ignored files that are kept.
const ALL_BYTES: u64 = 32 << 20;
/// Maximum number of ignored files in folders that are not ignored.
const LOOSE: usize = 2_000;
/// Maximum number of names in one ignored folder, and below one. A larger folder counts as build output.
pub(crate) const FOLDER: usize = 500;
/// Maximum number of names in all ignored folders.
const FOLDERS: usize = 4_000;

/// Folders of files that a program makes or fetches again.
const OUTPUT: &[&str] = &[
    ".angular",
    ".aws-sam",
    ".build",
    ".bundle",
    ".bzr",
    ".cache",
    ".ccls-cache",
    ".dart_tool",
    ".direnv",
    ".docusaurus",
    ".eggs",
    ".git",
    ".gradle",
    ".hg",
    ".jj",
    ".m2",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".nyc_output",
    ".output",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".ruff_cache",
    ".serverless",
    ".stack-work",
    ".svelte-kit",
    ".svn",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".vercel",
    ".vite",
    ".yarn",
    ".zig-cache",
    "CMakeFiles",
    "DerivedData",
    "Pods",
    "__pycache__",
    "_build",
    "_site",
    "bin",
    "bower_components",
    "buck-out",
    "build",
    "cache",
    "coverage",
    "dist",
    "dist-newstyle",
    "elm-stuff",
    "htmlcov",
    "jspm_packages",
    "node_modules",
    "obj",
    "out",
    "target",
    "vendor",
    "venv",
    "zig-cache",
    "zig-out",
];
/// Beginnings and ends of the names of such folders.
const OUTPUT_STARTS: &[&str] = &["cmake-build-", "bazel-", ".Trash-"];
const OUTPUT_ENDS: &[&str] = &[".egg-info"];
/// Ends of the names of files that a compiler makes, and of temporary files.
const MADE: &[&str] = &[
    ".a",
    ".class",
    ".crdownload",
    ".d",
    ".dll",
    ".dylib",
    ".elc",
    ".exe",
    ".gcda",
    ".gcno",
    ".hi",
    ".ko",
    ".lib",
    ".lo",
    ".o",
    ".obj",
    ".pdb",
    ".pyc",
    ".pyo",
    ".rlib",
    ".rmeta",
    ".so",
    ".swo",
    ".swp",
    ".swx",
    ".temp",
    ".tmp",
    "~",
];

/// Whether an ignored name is build output: it is neither kept nor watched.
pub(crate) fn is_output(name: &[u8]) -> bool {
    let starts = |all: &[&str]| all.iter().any(|start| name.starts_with(start.as_bytes()));
    let ends = |all: &[&str]| all.iter().any(|end| name.ends_with(end.as_bytes()));
    OUTPUT.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok()
        || starts(OUTPUT_STARTS)
        || ends(OUTPUT_ENDS)
        || ends(MADE)
}

/// Whether an ignored file is a program's log: it is watched, but no person's work.
pub(crate) fn is_log(name: &[u8]) -> bool {
    name.ends_with(b".log") || name.ends_with(b".pid")
}

/// The number of ignored names that one scan has looked at.
#[derive(Debug, Default)]
pub(crate) struct IgnoredBudget {
    loose: usize,
    within: usize,
    /// Below the present ignored folder; beyond [`FOLDER`] that folder is left out.
    below: usize,
    bytes: u64,
}

impl IgnoredBudget {
    /// Counts a name. Returns whether it may be looked at.
    pub(crate) fn one(&mut self, within: bool) -> bool {
        if within {
            (self.within, self.below) = (self.within + 1, self.below + 1);
            return !self.exceeded();
        }
        self.loose += 1;
        self.loose <= LOOSE
    }

    /// Counts the bytes of a file. Returns whether it may be kept.
    pub(crate) fn keep(&mut self, size: u64) -> bool {
        let fits = size <= KEPT_BYTES && self.bytes + size <= ALL_BYTES;
        self.bytes += if fits { size } else { 0 };
        fits
    }

    /// An ignored folder begins; returns the bytes so far.
    pub(crate) fn enter(&mut self) -> u64 {
        self.below = 0;
        self.bytes
    }

    /// Whether the present ignored folder has too many names.
    pub(crate) fn exceeded(&self) -> bool {
        self.below > FOLDER || self.within > FOLDERS
    }

    /// The present ignored folder is left out.
    pub(crate) fn leave_out(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.within = self.within.saturating_sub(self.below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_output_is_known_by_its_name() {
        assert!(OUTPUT.is_sorted(), "it is searched");
        for name in
            ["target", "node_modules", ".venv", "dist", "__pycache__", "cmake-build-debug", "a.o", "x.pyc"]
        {
            assert!(is_output(name.as_bytes()), "{name}");
        }
        for name in
            [".env", ".env.local", "notes.local.md", "local.toml", "app.sqlite", ".idea", ".vscode", "tmp"]
        {
            assert!(!is_output(name.as_bytes()), "{name}");
        }
    }
}
