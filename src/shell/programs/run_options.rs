//! Options by which programs run other programs.

use crate::command::Part;

/// Options by which a program runs another, or code: `(program, options)`. A letter stands for its
/// joined form too.
const RUN_OPTIONS: &[(&str, &[&str])] = &[
    (
        "tar",
        &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "-I",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "-F",
        ],
    ),
    ("gtar", &["--checkpoint-action", "--to-command", "--use-compress-program", "-I", "--info-script", "-F"]),
    ("bsdtar", &["--use-compress-program"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S", "-o", "-F"]),
    ("sftp", &["-S", "-o", "-F"]),
    ("ssh", &["-o", "-F"]),
    ("rg", &["--pre", "--hostname-bin", "--search-zip", "-z"]),
    ("ag", &["--pager"]),
    ("man", &["-P", "--pager", "-H", "--html", "-C"]),
    ("less", &["-k", "--lesskey-file", "--lesskey-src", "+"]),
    ("more", &["+"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("zip", &["-TT", "--unzip-command", "-T"]),
    ("unzip", &[]),
    ("vim", &["-c", "--cmd", "-S", "-s", "-u", "+"]),
    ("vi", &["-c", "--cmd", "-S", "-u", "+"]),
    ("nvim", &["-c", "--cmd", "-S", "-l", "-u", "+"]),
    ("view", &["-c", "--cmd", "+"]),
    ("ex", &["-c", "+"]),
    ("emacs", &["--eval", "-eval", "-l", "--load", "-f", "--funcall", "--script"]),
    ("sed", &[]),
    ("wget", &["--use-askpass", "-e", "--execute", "--config"]),
    ("curl", &["-K", "--config"]),
    (
        "git",
        &[
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--ext-diff",
            "--textconv",
            "--open-files-in-pager",
            "-O",
            "--upload-archive",
            "--config-env",
        ],
    ),
    ("make", &["--eval", "-f", "--file", "--makefile"]),
    ("gcc", &["-wrapper"]),
    ("gdb", &["-ex", "--ex", "-x", "--command", "-iex"]),
    ("docker", &[]),
    ("nmap", &["--script"]),
    ("tcpdump", &["-z"]),
    ("mail", &["-S"]),
    ("pip", &["--global-option", "--install-option"]),
    ("cargo", &["--config"]),
    ("npm", &["--script-shell", "--node-options"]),
    ("node", &["-r", "--require", "--import", "-e", "--eval", "-p", "--print", "--loader"]),
    ("bat", &["--pager"]),
    ("delta", &["--pager"]),
    ("jq", &["-f", "--from-file", "-L"]),
    ("date", &[]),
    ("column", &[]),
    ("ctags", &["--options"]),
    ("ps", &[]),
    ("mysql", &["-e", "--execute", "--pager"]),
    ("psql", &["-c", "--command", "-f"]),
    ("sqlite3", &["-cmd", "-init"]),
    ("env", &["-S"]),
    ("shuf", &[]),
    ("pg_dump", &[]),
    ("systemctl", &[]),
    ("aria2c", &["--on-download-complete", "--on-download-error"]),
    ("youtube-dl", &["--exec"]),
    ("yt-dlp", &["--exec"]),
    ("ffmpeg", &[]),
    ("ip", &["-batch", "-b", "-force"]),
    ("openssl", &["-engine", "-provider-path"]),
    ("exiftool", &["-if", "-config"]),
    ("pandoc", &["--filter", "--lua-filter", "-F", "-L", "--pdf-engine"]),
];

/// The option by which `part` makes its program run something else.
pub fn runs_other(part: &Part) -> Option<String> {
    let base = part.base();
    let (_, options) = RUN_OPTIONS.iter().find(|(name, _)| *name == base)?;
    part.args().iter().find_map(|w| {
        let text = w.text.as_str();
        options
            .iter()
            .find(|o| {
                if **o == "+" {
                    // `less +10` begins at a line.
                    text.strip_prefix('+').is_some_and(|rest| rest.bytes().any(|b| !b.is_ascii_digit()))
                } else if o.starts_with("--") {
                    let name = text.split('=').next().unwrap_or(text);
                    // Long options may be shortened.
                    name == **o || (name.len() > 4 && o.starts_with(name))
                } else {
                    text.starts_with(**o) && !text.starts_with("--")
                }
            })
            .map(|_| text.split('=').next().unwrap_or(text).to_owned())
    })
}
