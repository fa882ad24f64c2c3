//! The environment of child processes: an allow-list of names.

/// Names that programs need and that hold no secrets.
const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "USER",
    "LOGNAME",
    "SHELL",
    "TZ",
    "TMPDIR",
    "HOSTNAME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_DIRS",
    "XDG_CONFIG_DIRS",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "XAUTHORITY",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_TARGET_DIR",
    "RUST_BACKTRACE",
    "NVM_DIR",
    "NVM_BIN",
    "VOLTA_HOME",
    "FNM_DIR",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "JAVA_HOME",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "GRADLE_USER_HOME",
    "MAVEN_HOME",
    "M2_HOME",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOCACHE",
    "VIRTUAL_ENV",
    "PYENV_ROOT",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "NIX_PATH",
    "NIX_PROFILES",
    "LIBRARY_PATH",
    "CPATH",
    "PKG_CONFIG_PATH",
    "CMAKE_PREFIX_PATH",
    "CC",
    "CXX",
    "MAKEFLAGS",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "WSL_DISTRO_NAME",
    "HOMEBREW_PREFIX",
    "HOMEBREW_CELLAR",
    "DEVELOPER_DIR",
    "SDKROOT",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "CI",
    "COLUMNS",
    "LINES",
];

/// Most bytes of one value.
const MAX_VALUE: usize = 64 * 1024;

/// The environment of a child: listed names, `LC_*`, and `extra` names that the person configured.
/// A value that looks like a key is left out unless its name is in `extra`, and Tiller's own keys
/// (`known`) are left out in any case but that.
pub fn child_env(
    all: impl IntoIterator<Item = (String, String)>,
    extra: &[String],
    known: &[String],
) -> Vec<(String, String)> {
    let redactor = crate::redact::Redactor::new(known.iter().cloned());
    let mut out: Vec<(String, String)> = all
        .into_iter()
        .filter(|(name, value)| {
            if extra.iter().any(|e| e == name) {
                return true;
            }
            let listed = NAMES.contains(&name.as_str()) || (name.starts_with("LC_") && name.len() <= 20);
            listed
                && value.len() <= MAX_VALUE
                && !value.contains('\0')
                && !redactor.finds(&format!("{name}={value}"))
        })
        .collect();
    out.sort();
    out.dedup_by(|a, b| a.0 == b.0);
    out
}

#[cfg(test)]
#[path = "child_env_tests.rs"]
mod tests;
