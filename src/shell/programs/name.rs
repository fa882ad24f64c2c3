//! Names of programs.

/// The last component, lower case (some file systems do not tell case apart), without `.exe`.
pub fn base_name(program: &str) -> String {
    let last = program.rsplit('/').next().unwrap_or(program);
    let lower = last.to_lowercase();
    lower.strip_suffix(".exe").map_or(lower.clone(), str::to_owned)
}

/// The bare name when the program is written bare or in one of the system's own folders; `None` when
/// it is a file somewhere else, which may be anything.
pub fn program_name(program: &str) -> Option<&str> {
    match program.rsplit_once('/') {
        None => Some(program),
        Some((
            "/bin" | "/usr/bin" | "/sbin" | "/usr/sbin" | "/usr/local/bin" | "/opt/homebrew/bin",
            name,
        )) => Some(name),
        Some(_) => None,
    }
}
