//! Commands that send files, or the output of other commands, to other machines.

use super::location::Location;
use tiller_shell::{Analysis, Part, RedirectKind, Word};

/// Why a command that sends data asks; `None`: it sends none.
pub(super) fn upload(analysis: &Analysis, part: &Part, location: Location<'_>) -> Option<String> {
    let base = part.base();
    let args = part.args();
    let file = |what: &str| Some(format!("{base} sends {what} to another machine"));
    let piped = || part.piped_from.is_some();
    let fed = || {
        part.redirects.iter().any(|r| {
            matches!(r.kind, RedirectKind::Read | RedirectKind::ReadWrite) && r.target.text != "/dev/null"
        })
    };
    match base.as_str() {
        "curl"
            if args.iter().any(|w| w.text.contains("telnet://"))
                && (fed() || piped() || part.stdin.is_some()) =>
        {
            file("its input")
        }
        "curl" => curl(args, substitutes(analysis)),
        "wget" | "wget2" => args
            .iter()
            .any(|w| {
                ["--post-file", "--body-file", "--post-f", "--body-f"].iter().any(|o| w.text.starts_with(o))
            })
            .then(|| "wget sends a file to another machine".to_owned())
            .or_else(|| secret_words(args, "wget"))
            .or_else(|| {
                let value =
                    |p: &[Word]| p[0].text.starts_with('-') && p[1].dynamic && !p[1].text.starts_with('-');
                (substitutes(analysis) && args.windows(2).any(value)).then(|| RUN_TIME.replace("{}", "wget"))
            }),
        "http" | "https" | "xh" | "xhs" | "httpie" => {
            let sent = args
                .iter()
                .any(|w| w.text.contains('@') && !w.text.contains("://") && !w.text.starts_with('-'));
            if sent || fed() || piped() { file("a file") } else { secret_words(args, &base) }
        }
        "nc" | "ncat" | "netcat" | "socat" | "telnet" | "openssl"
            if base != "openssl" || args.first().is_some_and(|w| w.text == "s_client") =>
        {
            let named = args.iter().any(|w| {
                let t = w.text.to_lowercase();
                t.starts_with("file:") || t.starts_with("open:") || t.starts_with("gopen:")
            });
            if fed() || piped() || named || part.stdin.is_some() { file("its input") } else { None }
        }
        "scp" | "sftp" | "rsync" | "rcp" | "unison" | "pscp" | "psftp" => {
            let operands: Vec<&Word> = args.iter().filter(|w| !w.text.starts_with('-')).collect();
            let batch = base == "sftp"
                && (args.iter().any(|w| w.text.starts_with("-b")) || part.stdin.is_some() || fed());
            if operands.last().is_some_and(|w| remote(&w.text)) && operands.len() > 1 || batch {
                file("files")
            } else {
                None
            }
        }
        "rclone" => args
            .first()
            .filter(|w| {
                matches!(w.text.as_str(), "copy" | "copyto" | "sync" | "move" | "moveto" | "bisync" | "rcat")
            })
            .and_then(|_| file("files")),
        "ssh" | "mosh" | "plink" => {
            if fed() || piped() {
                file("its input")
            } else if substitutes(analysis) && args.iter().any(|w| w.dynamic) {
                Some(RUN_TIME.replace("{}", &base))
            } else {
                None
            }
        }
        "redis-cli" | "mosquitto_pub" | "logger" | "ab" | "grpcurl" | "tailscale" | "ipfs" => {
            by_option(&base, args).then(|| file("a file")).flatten()
        }
        "mail" | "mailx" | "mutt" | "sendmail" | "msmtp" | "swaks" | "ftp" | "lftp" | "tftp" | "ncftpput"
        | "smbclient" | "curlftpfs" | "croc" | "wormhole" | "magic-wormhole" | "pastebinit" | "transfer"
        | "gist" | "wgetpaste" | "termbin" | "ngrok" | "cloudflared" | "localtunnel" | "bore" | "s3cmd"
        | "gsutil" | "mc" | "s5cmd" | "b2" | "davix-put" | "dput" | "websocat" | "wscat" | "restic"
        | "borg" | "duplicity" | "duplicacy" | "kopia" => file("its input"),
        "dig" | "nslookup" | "host" | "ping" | "drill" | "whois" | "lynx" | "links" | "w3m" | "aria2c" => {
            secret_words(args, &base)
        }
        "git" => super::git::pushes(args),
        _ => None,
    }
    .or_else(|| device_file(analysis, part, location))
}

const RUN_TIME: &str = "{} sends data that is known only at run time to another machine";

/// Whether some word of the command is the output of another: `$(cat key)`, also by way of a variable.
fn substitutes(analysis: &Analysis) -> bool {
    analysis.raw.contains("$(") || analysis.raw.contains('`')
}

/// Options by which these programs send a file.
fn by_option(base: &str, args: &[Word]) -> bool {
    let any = |f: &dyn Fn(&str) -> bool| args.iter().any(|w| f(&w.text));
    let short = |letter: char| any(&|t| t.starts_with('-') && !t.starts_with("--") && t.contains(letter));
    match base {
        "redis-cli" => short('x'),
        "mosquitto_pub" => {
            short('f') || short('s') || short('l') || any(&|t| t == "--file" || t.starts_with("--stdin"))
        }
        "logger" => {
            (short('n') || any(&|t| t.starts_with("--serv")))
                && (short('f') || any(&|t| t.starts_with("--file")))
        }
        "ab" => short('p') || short('u'),
        "grpcurl" => any(&|t| t.contains('@')),
        "tailscale" => {
            any(&|t| t == "file") && any(&|t| t == "cp") || any(&|t| matches!(t, "serve" | "funnel"))
        }
        "ipfs" => any(&|t| t == "add"),
        _ => false,
    }
}

/// Servers that hand out a folder, to more than this machine.
pub(super) fn hands_out(part: &Part) -> Option<String> {
    let (base, args) = (part.base(), part.args());
    let has = |text: &str| args.iter().any(|w| w.text == text);
    let serves = match base.as_str() {
        b if b.starts_with("python") => {
            ["http.server", "-mhttp.server", "SimpleHTTPServer"].into_iter().any(has)
        }
        "php" => args.iter().any(|w| w.text.starts_with("-S")),
        "ruby" => has("-run"),
        "httpd" | "http-server" | "serve" | "miniserve" | "darkhttpd" | "webfsd" => true,
        "caddy" => has("file-server"),
        _ => false,
    };
    let local = args.iter().any(|w| {
        let t = w.text.strip_prefix("-S").unwrap_or(&w.text);
        let t = t.split_once('=').map_or(t, |(_, v)| v);
        ["127.0.0.1", "localhost", "::1", "[::1]"]
            .iter()
            .any(|h| t.strip_prefix(h).is_some_and(|port| port.is_empty() || port.starts_with(':')))
    });
    (serves && !local).then(|| format!("{base} shares a folder with other machines"))
}

/// A file of the workspace or of elsewhere handed to a socket that the shell opens is unclear already; here
/// stands only what a word tells.
fn device_file(_: &Analysis, part: &Part, _: Location<'_>) -> Option<String> {
    part.redirects
        .iter()
        .any(|r| r.target.text.starts_with("/dev/tcp/") || r.target.text.starts_with("/dev/udp/"))
        .then(|| "it opens a network connection".to_owned())
}

/// `host:path`, `user@host:path`, `rsync://host/path`.
fn remote(text: &str) -> bool {
    if text.contains("://") {
        return true;
    }
    text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

/// Words of which only the shell knows what they hold, given to what goes into the network.
fn secret_words(args: &[Word], base: &str) -> Option<String> {
    args.iter()
        .any(|w| w.dynamic && w.text.chars().any(|c| c == tiller_shell::HOLE) && substituted(w))
        .then(|| format!("{base} sends data that is known only at run time to another machine"))
}

/// Only part of it is the shell's: `https://h/$(cat key)`.
fn substituted(word: &Word) -> bool {
    word.text.contains("://") || word.text.contains('.') || word.text.contains('=') || word.text.contains('@')
}

fn curl(args: &[Word], substitutes: bool) -> Option<String> {
    const FILES: &str = "curl sends a file to another machine";
    /// Letters with a value.
    const VALUED: &str = "AbcCdDeEFhHKmoPQrtTuUwxXyYz";
    let data = |v: &str, form: bool| {
        if form {
            v.contains("=@") || v.contains("=<") || v.contains(";@")
        } else {
            v.starts_with('@')
                || v.split_once('@').is_some_and(|(name, _)| !name.contains(['=', '&', '{', '"', ' ', ':']))
        }
    };
    for (i, w) in args.iter().enumerate() {
        let t = w.text.as_str();
        let next = || args.get(i + 1).map_or("", |w| w.text.as_str());
        if let Some(long) = t.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, next()), |(n, v)| (n, v));
            let is = |full: &str, least: usize| name.len() >= least && full.starts_with(name);
            if is("upload-file", 2) || is("variable", 3) && value.contains('@') {
                return Some(FILES.into());
            }
            let sends = name.starts_with("data")
                || name.starts_with("dat")
                || is("json", 2)
                || is("header", 4)
                || is("proxy-header", 7)
                || is("url-query", 5)
                || is("cookie", 6);
            let sends_file = if name == "data-raw" || name == "form-string" {
                false
            } else if is("form", 4) {
                data(value, true)
            } else {
                sends && data(value, false)
            };
            if sends_file {
                return Some(FILES.into());
            }
        } else if t.starts_with('-') && t.len() > 1 {
            for (at, c) in t.char_indices().skip(1) {
                if !VALUED.contains(c) {
                    continue;
                }
                let joined = &t[at + c.len_utf8()..];
                let value = if joined.is_empty() { next() } else { joined };
                let sent = match c {
                    'T' => true,
                    'd' | 'H' => data(value, false),
                    'F' => data(value, true),
                    // A name without `=` is a file of cookies.
                    'b' => !value.contains('=') && !value.is_empty(),
                    _ => false,
                };
                if sent {
                    return Some(FILES.into());
                }
                break;
            }
        }
    }
    // `-d "$(cat key)"`, `-u "$(cat key)"`, `https://h/?k=$(cat key)`. A variable alone in a header is how keys are
    // handed to a program.
    let data = |option: &str| {
        option.starts_with("-d")
            || option.starts_with("--data")
            || option.starts_with("-F")
            || option == "--json"
    };
    let valued = |option: &str| {
        const PLACES: &[&str] =
            &["-o", "-O", "-w", "-m", "--output", "--write-out", "--max-time", "--output-dir"];
        !PLACES.contains(&option)
            && (option.starts_with("--")
                || option.starts_with('-') && option.ends_with(|c| VALUED.contains(c)))
    };
    let pair = |p: &[Word]| {
        let option = p[0].text.as_str();
        p[1].dynamic && (data(option) || substitutes && valued(option))
    };
    let joined = |w: &Word| w.dynamic && substitutes && w.text.len() > 2 && w.text.starts_with('-');
    (args.windows(2).any(pair) || args.iter().any(joined))
        .then(|| "curl sends data that is known only at run time to another machine".to_owned())
        .or_else(|| secret_words(args, "curl"))
}
