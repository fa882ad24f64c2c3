//! What a command that runs without a question reads beside the workspace: the system, and of the home folder tool chains,
//! fonts and git's configuration. No credentials stand in these places; what of them does is on the list of secret paths.
//!
//! The places are those that the documentation of each tool names (read on 2026-11-29), with the variable that moves them.

use std::path::{Path, PathBuf};

/// Reads an environment variable.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Folders and files of the system: the file system hierarchy of Linux without what belongs to people and services, NixOS,
/// Guix, Homebrew, and macOS.
pub(super) const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/etc",
    "/opt",
    "/proc",
    "/sys",
    "/nix",
    "/gnu",
    "/snap",
    "/home/linuxbrew/.linuxbrew",
    "/var/lib/apt",
    "/var/lib/dpkg",
    "/var/lib/flatpak",
    "/var/lib/gems",
    "/var/lib/ghc",
    "/var/lib/pacman",
    "/var/lib/rpm",
    "/var/lib/snapd",
    "/var/lib/texmf",
    "/var/cache/fontconfig",
    "/var/cache/man",
    "/var/db",
    "/var/select",
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
    "/run/wrappers",
    "/run/systemd/resolve",
    "/System",
    "/Library",
    "/Applications",
];

/// A place below the home folder.
struct Place {
    /// The variable that names another one.
    variable: &'static str,
    home: &'static str,
    /// What of it is read; empty: all.
    parts: &'static [&'static str],
}

const fn place(variable: &'static str, home: &'static str, parts: &'static [&'static str]) -> Place {
    Place { variable, home, parts }
}

const PLACES: &[Place] = &[
    // Git, without its stores of credentials.
    place("GIT_CONFIG_GLOBAL", ".gitconfig", &[]),
    place("", ".config/git", &["config", "ignore", "attributes"]),
    place("", ".gitignore", &[]),
    place("", ".gitignore_global", &[]),
    place("", ".gitattributes", &[]),
    // Rust.
    place(
        "CARGO_HOME",
        ".cargo",
        &["bin", "config", "config.toml", "env", "git", "registry", ".package-cache", ".global-cache"],
    ),
    place("RUSTUP_HOME", ".rustup", &[]),
    // Python.
    place("PYENV_ROOT", ".pyenv", &[]),
    place("VIRTUAL_ENV", "", &[]),
    place("WORKON_HOME", ".virtualenvs", &[]),
    place("CONDA_PREFIX", "miniconda3", &[]),
    place("MAMBA_ROOT_PREFIX", "micromamba", &[]),
    place("", "anaconda3", &[]),
    place("", "miniforge3", &[]),
    place("", ".local/share/uv", &[]),
    place("UV_CACHE_DIR", ".cache/uv", &[]),
    place("PIPX_HOME", ".local/share/pipx", &[]),
    place("", ".local/share/virtualenvs", &[]),
    place("", ".cache/pypoetry/virtualenvs", &[]),
    place("PIP_CACHE_DIR", ".cache/pip", &[]),
    // JavaScript.
    place("NVM_DIR", ".nvm", &[]),
    place("VOLTA_HOME", ".volta", &[]),
    place("FNM_DIR", ".local/share/fnm", &[]),
    place("N_PREFIX", "n", &["bin", "include", "lib", "n", "share/man"]),
    place("PNPM_HOME", ".local/share/pnpm", &[]),
    place("BUN_INSTALL", ".bun", &[]),
    place("DENO_INSTALL", ".deno", &["bin"]),
    place("DENO_DIR", ".cache/deno", &[]),
    place("", ".npm-global", &[]),
    place("", ".npm/_cacache", &[]),
    place("", ".yarn", &["berry", "bin", "releases"]),
    place("YARN_CACHE_FOLDER", ".cache/yarn", &[]),
    place("COREPACK_HOME", ".cache/node", &[]),
    place("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright", &[]),
    place("PUPPETEER_CACHE_DIR", ".cache/puppeteer", &[]),
    // Go.
    place("GOPATH", "go", &["bin", "pkg"]),
    place("GOMODCACHE", "", &[]),
    place("GOCACHE", ".cache/go-build", &[]),
    place("GOROOT", "sdk", &[]),
    place("", ".config/go/env", &[]),
    place("GOENV_ROOT", ".goenv", &[]),
    // Java and Android.
    place("JAVA_HOME", ".jdks", &[]),
    place("SDKMAN_DIR", ".sdkman", &[]),
    place("GRADLE_USER_HOME", ".gradle", &["caches", "jdks", "wrapper"]),
    place("", ".m2", &["repository", "wrapper"]),
    place("ANDROID_HOME", "Android/Sdk", &[]),
    // Ruby, PHP, Perl.
    place("RBENV_ROOT", ".rbenv", &[]),
    place("", ".rvm", &[]),
    place("", ".gem", &["ruby"]),
    place("", ".local/share/gem", &[]),
    place("", ".config/composer", &["vendor"]),
    place("", ".composer", &["vendor"]),
    place("", "perl5", &[]),
    // Others.
    place("ASDF_DATA_DIR", ".asdf", &[]),
    place("MISE_DATA_DIR", ".local/share/mise", &[]),
    place("", ".config/mise", &["conf.d", "config.toml"]),
    place("", ".tool-versions", &[]),
    place("", ".asdfrc", &[]),
    place("", ".ghcup", &[]),
    place("", ".cabal", &["bin", "packages", "store"]),
    place("STACK_ROOT", ".stack", &["programs", "snapshots"]),
    place("OPAMROOT", ".opam", &[]),
    place("", ".julia", &["artifacts", "compiled", "environments", "juliaup", "packages", "registries"]),
    place("", ".juliaup", &[]),
    place("DOTNET_ROOT", ".dotnet", &[]),
    place("NUGET_PACKAGES", ".nuget/packages", &[]),
    place("PUB_CACHE", ".pub-cache", &["bin", "git", "global_packages", "hosted"]),
    place("", ".swiftly", &[]),
    place("ELAN_HOME", ".elan", &[]),
    place("", ".nix-profile", &[]),
    place("", ".local/state/nix/profiles", &[]),
    place("", ".guix-profile", &[]),
    place("", ".linuxbrew", &[]),
    // Programs, fonts, terminals.
    place("", "bin", &[]),
    place("", ".local/bin", &[]),
    place("", ".local/lib", &[]),
    place("", ".local/include", &[]),
    place("", ".fonts", &[]),
    place("", ".local/share/fonts", &[]),
    place("", ".config/fontconfig", &[]),
    place("", ".cache/fontconfig", &[]),
    place("", "Library/Fonts", &[]),
    place("", "texmf", &[]),
    place("", ".cache/Tectonic", &[]),
    place("", ".cache/typst", &[]),
    place("", ".local/share/typst", &[]),
    place("", ".local/share/pandoc", &[]),
    place("", ".terminfo", &[]),
];

/// Folders that have a variable of their own.
const BASES: &[(&str, &str)] = &[
    (".config", "XDG_CONFIG_HOME"),
    (".local/share", "XDG_DATA_HOME"),
    (".local/state", "XDG_STATE_HOME"),
    (".cache", "XDG_CACHE_HOME"),
];

/// What stands beside the folder of the programs of an installation, and belongs to it.
const BESIDE_PROGRAMS: &[&str] = &[
    "conf",
    "etc",
    "go.env",
    "include",
    "jmods",
    "lib",
    "lib64",
    "libexec",
    "pkg",
    "plugins",
    "pyvenv.cfg",
    "release",
    "share",
    "VERSION",
    "versions",
];

/// The tool chains of this home folder, where they are usually, and where these variables say; and the programs of `PATH`.
pub(super) fn of(home: Option<&Path>, variables: Variables<'_>) -> Vec<PathBuf> {
    let set = |name: &str| {
        let value = (!name.is_empty()).then(|| variables(name)).flatten().map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let mut all = Vec::new();
    for place in PLACES {
        let at_home = home.filter(|_| !place.home.is_empty()).map(|home| home.join(place.home));
        let based = BASES.iter().find_map(|(base, variable)| {
            let below = Path::new(place.home).strip_prefix(base).ok()?;
            Some(set(variable)?.join(below))
        });
        for folder in [set(place.variable), at_home, based].into_iter().flatten() {
            match place.parts {
                [] => all.push(folder),
                parts => all.extend(parts.iter().map(|part| folder.join(part))),
            }
        }
    }
    let path = variables("PATH").unwrap_or_default();
    all.extend(std::env::split_paths(&path).flat_map(|folder| programs(folder, home)));
    all.sort();
    all.dedup();
    all
}

/// A folder of `PATH`, and what its programs need.
fn programs(folder: PathBuf, home: Option<&Path>) -> Vec<PathBuf> {
    if !folder.is_absolute() || SYSTEM.iter().any(|system| folder.starts_with(system)) {
        return Vec::new();
    }
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // The folders beside `~/bin` and `~/.local/bin` belong to no installation.
    let own = |above: &&Path| Some(*above) != home && !above.ends_with(".local");
    let mut all: Vec<PathBuf> = match (folder.parent().filter(own), name) {
        (Some(installation), "bin" | "sbin" | "shims") => {
            BESIDE_PROGRAMS.iter().map(|part| installation.join(part)).collect()
        }
        // Of packages of Node.
        (Some(packages), ".bin") => vec![packages.to_owned()],
        _ => Vec::new(),
    };
    all.push(folder);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Vec<PathBuf> {
        of(Some(Path::new("/home/p")), &|name| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn tool_chains_are_found_at_home_and_by_their_variables() {
        let at_home = found(&[]);
        for path in [".cargo/registry", ".pyenv", ".gitconfig", ".config/git/config", ".local/bin"] {
            assert!(at_home.contains(&Path::new("/home/p").join(path)), "{path}");
        }
        for path in [".cargo", ".cargo/credentials.toml", ".config/git", ".m2", ".local/share", ""] {
            assert!(!at_home.contains(&Path::new("/home/p").join(path)), "{path}");
        }
        let moved = found(&[
            ("CARGO_HOME", "/srv/cargo"),
            ("XDG_CONFIG_HOME", "/srv/config"),
            ("GOPATH", "relative"),
        ]);
        for path in ["/srv/cargo/bin", "/srv/config/git/ignore"] {
            assert!(moved.contains(&PathBuf::from(path)), "{path}");
        }
        assert!(moved.iter().all(|path| path.is_absolute()));
    }

    #[test]
    fn programs_bring_their_installation_and_no_more() {
        let all = found(&[(
            "PATH",
            "/usr/bin:/home/p/bin:/home/p/.local/bin:/srv/node/bin:/w/node_modules/.bin:rel",
        )]);
        for path in ["/srv/node/bin", "/srv/node/lib", "/w/node_modules", "/home/p/bin"] {
            assert!(all.contains(&PathBuf::from(path)), "{path}");
        }
        for path in ["/srv/node", "/home/p", "/home/p/lib", "/home/p/.local/share", "/usr/bin"] {
            assert!(!all.contains(&PathBuf::from(path)), "{path}");
        }
    }
}
