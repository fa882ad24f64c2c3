//! Sending after reading: the hosts that a call may reach unasked, by what the agents of a session have read.
//!
//! A mode or a wide rule that allows requests does not know what an address carries. After private text was read, only the hosts
//! that the user or the settings name are reached unasked. After foreign text alone, an address that stands word for word in a
//! message of the user or in what was read passes as well; one that was put together asks once for each host.
//!
//! In the sandbox commands reach the hosts that the settings name, and no other. Without one the addresses in their words count.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::path::{Component, Path};

use tiller_protocol::{Access, Risk, ToolSet};
use tiller_shell::analyse;

use super::{Policy, Request, Verdict, folders};
use crate::paths::{normal, touched};
use crate::rules::{Effect, PathUse};

/// Addresses of one session that are kept; what comes after them counts as put together.
const KEPT: usize = 50_000;
/// Addresses that a question names.
const SHOWN: usize = 5;
/// What every user of the machine has, and no one else's words.
const PUBLIC: [&str; 13] = [
    "/Applications",
    "/Library",
    "/System",
    "/bin",
    "/dev",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/opt",
    "/sbin",
    "/sys",
    "/usr",
];
/// Folders of packages in the home folder.
const PACKAGES: [&str; 20] = [
    ".bun/install",
    ".cache/go-build",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/uv",
    ".cache/yarn",
    ".cargo/git",
    ".cargo/registry",
    ".gem",
    ".gradle/caches",
    ".local/lib",
    ".local/pipx",
    ".local/share/uv",
    ".m2/repository",
    ".npm",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    "go/pkg",
];
/// Folders of packages anywhere.
const PACKAGE_FOLDERS: [&str; 3] = ["dist-packages", "node_modules", "site-packages"];
/// Endings of files that are also those of hosts: without a scheme such a word is a file.
const FILES: [&str; 14] =
    ["app", "cc", "mm", "md", "ml", "mov", "pl", "pm", "ps", "py", "rs", "sh", "tf", "zip"];
/// Schemes of addresses that lead to a host.
const SCHEMES: [&str; 28] = [
    "https", "http", "wss", "ws", "ftp", "ftps", "sftp", "ssh", "scp", "git", "svn", "rsync", "gopher",
    "telnet", "tcp", "udp", "tftp", "ldap", "ldaps", "smtp", "smtps", "imap", "mqtt", "amqp", "redis", "irc",
    "rtsp", "webdav",
];
/// Words in the names of arguments whose value is an address or a host, also without a scheme.
const PLACES: [&str; 11] =
    ["url", "uri", "href", "host", "domain", "address", "endpoint", "server", "site", "origin", "webhook"];
/// Endings of files that are never those of hosts.
const DOCUMENTS: [&str; 12] =
    ["css", "csv", "html", "js", "json", "pdf", "png", "toml", "ts", "txt", "xml", "yaml"];

/// The texts that the agents of a session have read and were told, as far as they decide about sending.
#[derive(Debug, Default)]
pub struct Heard {
    private: Option<String>,
    foreign: Option<String>,
    /// Hosts that the user wrote.
    hosts: HashSet<String>,
    /// Hosts that the user agreed to once.
    agreed: HashSet<String>,
    /// Addresses that stand in a message of the user or in a result.
    addresses: HashSet<String>,
}

impl Heard {
    /// Takes in words of the user: the hosts and addresses in them are theirs.
    pub fn user(&mut self, text: &str) {
        self.text(text);
        self.hosts.extend(addresses(text).filter_map(host_of));
        self.hosts.extend(bare_hosts(text));
    }

    /// Takes in a text that was read: the addresses in it stand there word for word.
    pub fn text(&mut self, text: &str) {
        for address in addresses(text) {
            if self.addresses.len() < KEPT {
                self.addresses.insert(plain(address));
            }
        }
    }

    /// Notes that private text was read: `place` for people.
    pub fn private(&mut self, place: impl Into<String>) {
        self.private.get_or_insert_with(|| place.into());
    }

    /// Notes that text of strangers was read: `source` for people.
    pub fn foreign(&mut self, source: impl Into<String>) {
        self.foreign.get_or_insert_with(|| source.into());
    }

    /// Notes that the user has agreed to the call.
    pub fn agreed(&mut self, policy: &Policy, request: &Request<'_>) {
        self.agreed.extend(sent(policy, request).into_iter().map(|(_, host)| host));
    }

    /// Takes in what a call of `tool` reads, as far as its access and its words show it.
    pub fn reads(&mut self, policy: &Policy, tool: &str, access: &[Access]) {
        let media = is_media(policy, tool);
        for access in access {
            match access {
                Access::Net { host, .. } if !media => self.foreign(host.clone()),
                Access::Mcp { server, .. } => self.foreign(format!("the MCP server {server}")),
                Access::Read { path, inside } => self.path(policy, Path::new(path), *inside),
                Access::Run { command, folder, .. } => self.command(policy, command, Path::new(folder)),
                Access::Input { text, folder, .. } => self.command(policy, text, Path::new(folder)),
                Access::Script { code } => self.code(policy, code),
                _ => {}
            }
        }
    }

    fn command(&mut self, policy: &Policy, command: &str, folder: &Path) {
        let analysis = analyse(command);
        let places = folders(&policy.roots, &analysis, folder);
        for (how, path) in touched::reached(&policy.roots, &analysis, &places) {
            if how == PathUse::Read {
                self.path(policy, &path, false);
            }
        }
    }

    /// The paths in its texts. Those that it puts together are not seen.
    fn code(&mut self, policy: &Policy, code: &str) {
        for word in code.split(['"', '\'', '`', '\n']) {
            match word.strip_prefix("~/").zip(policy.roots.home.as_ref()) {
                Some((rest, home)) => self.path(policy, &home.join(rest), false),
                None if word.starts_with('/') && !word.starts_with("//")
                    || word.starts_with("../")
                    || word.starts_with(".env") =>
                {
                    self.path(policy, &policy.roots.workspace.join(word), false);
                }
                None => {}
            }
        }
        if ["expanduser", "Path.home", "os.environ", "getenv"].iter().any(|word| code.contains(word)) {
            self.private("what a script finds in the home folder or the environment");
        }
    }

    /// `inside`: the tool says so, of a path that it has judged.
    fn path(&mut self, policy: &Policy, path: &Path, inside: bool) {
        let lexical = normal(path);
        let real = policy.roots.real(&lexical);
        let either = |test: &dyn Fn(&Path) -> bool| test(&lexical) || test(&real);
        let variables = |p: &Path| {
            p.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(".env"))
        };
        if policy.roots.secret(&lexical).is_some() || either(&variables) {
            return self.private(path.display().to_string());
        }
        let folder = |c: Component<'_>| matches!(c, Component::Normal(name) if PACKAGE_FOLDERS.iter().any(|folder| name == *folder));
        let packages = |p: &Path| {
            let home = policy.roots.home.as_ref();
            p.components().any(folder)
                || home.is_some_and(|home| PACKAGES.iter().any(|name| p.starts_with(home.join(name))))
        };
        if either(&packages) {
            return self.foreign(path.display().to_string());
        }
        let spilled = policy.roots.own.iter().any(|own| real.starts_with(own.join("spill")));
        if !(inside || spilled || is_public(&real) || policy.roots.inside(&lexical)) {
            self.private(path.display().to_string());
        }
    }

    fn names(&self, host: &str) -> bool {
        let bare = host.strip_prefix("www.").unwrap_or(host);
        self.hosts.contains(bare) || self.hosts.contains(&format!("www.{bare}"))
    }
}

/// The verdict about a call, with the question that what was read demands.
pub fn sending(policy: &Policy, request: &Request<'_>, heard: &Heard, verdict: Verdict) -> Verdict {
    let Some(read) = heard.private.as_ref().or(heard.foreign.as_ref()) else { return verdict };
    let mut open = sent(policy, request);
    open.retain(|(_, host)| !heard.names(host) && !named(policy, host));
    let why = if heard.private.is_some() {
        format!("private text was read ({read}), and neither you nor the settings name")
    } else {
        open.retain(|(url, host)| !heard.addresses.contains(&plain(url)) && !heard.agreed.contains(host));
        format!("text of others was read ({read}), and the address was put together for")
    };
    let Some((_, first)) = open.first().cloned() else { return verdict };
    let one = open.iter().all(|(_, host)| *host == first);
    let hosts = if one { first.clone() } else { format!("{first} and other hosts") };
    let reason = format!("{why} {hosts}");
    let mut effects: Vec<String> = open.iter().take(SHOWN).map(|(url, _)| format!("sends {url}")).collect();
    if open.len() > SHOWN {
        effects.push(format!("and {} addresses more", open.len() - SHOWN));
    }
    match verdict {
        Verdict::Allow { .. } => {
            let net = request.access.iter().all(|access| matches!(access, Access::Net { .. }));
            let always = (one && net && policy.tools.contains(request.tool) && is_plain(&first))
                .then(|| format!("{}(domain:{first})", request.tool));
            Verdict::Ask { rule: reason.into(), risk: Risk::High, effects, always }
        }
        Verdict::Ask { rule, effects: mut own, always, .. } => {
            own.push(reason);
            own.extend(effects);
            Verdict::Ask { rule, risk: Risk::High, effects: own, always }
        }
        denied @ Verdict::Deny { .. } => denied,
    }
}

/// True for a path of the system, which every user of the machine has.
pub(crate) fn is_public(path: &Path) -> bool {
    PUBLIC.iter().any(|folder| path.starts_with(folder))
}

/// True for a host that a rule can name as it is.
pub(crate) fn is_plain(host: &str) -> bool {
    !host.is_empty()
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        && !host.ends_with('.')
        && (host.contains('.') || host == "localhost")
}

/// True if the settings name the host: as one that commands or servers may reach, or in a rule that allows.
fn named(policy: &Policy, host: &str) -> bool {
    let of_settings = policy.hosts.iter().any(|name| match name.strip_prefix("*.") {
        Some(below) => host.strip_suffix(below).is_some_and(|rest| rest.ends_with('.')),
        None => name == host,
    });
    of_settings
        || policy.rules.rules().iter().any(|rule| rule.effect == Effect::Allow && rule.names_host(host))
}

/// The addresses that a call sends, with the host of each. The words of a search go to the engine that the settings name, those
/// for media to their server.
fn sent(policy: &Policy, request: &Request<'_>) -> Vec<(String, String)> {
    let media = is_media(policy, request.tool);
    let all = match request.access {
        [] => in_arguments(request.raw),
        all => all
            .iter()
            .flat_map(|access| match access {
                Access::Net { url, host, .. } if !media => {
                    let host = host.trim_end_matches('.').to_ascii_lowercase();
                    let address = host_of(url).filter(|of_url| *of_url == host);
                    address.map(|host| (url.clone(), host)).into_iter().collect()
                }
                Access::Mcp { arguments, .. } => in_arguments(arguments),
                Access::Run { command, .. } if !(policy.sandboxed)() => within(command),
                _ => Vec::new(),
            })
            .collect(),
    };
    // A server of this machine has a question of its own.
    let local = |host: &str| {
        let is_loopback = host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback());
        is_loopback || host == "localhost" || host.ends_with(".localhost") || host == "[::1]"
    };
    all.into_iter().filter(|(_, host)| !local(host)).collect()
}

/// The addresses in a text, with the host of each.
fn within(text: &str) -> Vec<(String, String)> {
    addresses(text).filter_map(|address| Some((address.to_owned(), host_of(address)?))).collect()
}

/// The addresses in the arguments of a call of a server, however the server may read them: as they stand, without blanks that
/// clients leave out, with one slash or none, and without a scheme where the argument's name is that of an address.
fn in_arguments(arguments: &str) -> Vec<(String, String)> {
    let Ok(value) = serde_json::from_str(arguments) else { return within(arguments) };
    let mut all = Vec::new();
    texts(&value, "", &mut |name, text| {
        let found = within(text);
        let bare: String = text.trim().chars().filter(|c| !c.is_control()).collect();
        let whole = loose(&bare, name).filter(|(_, host)| !found.iter().any(|(_, known)| known == host));
        all.extend(found);
        all.extend(whole);
    });
    all
}

/// Calls `take` with each text and the name of its argument.
fn texts(value: &serde_json::Value, name: &str, take: &mut impl FnMut(&str, &str)) {
    match value {
        serde_json::Value::String(text) => take(name, text),
        serde_json::Value::Array(all) => all.iter().for_each(|value| texts(value, name, take)),
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                // A name can carry an address, too.
                take("", name);
                texts(value, name, take);
            }
        }
        _ => {}
    }
}

/// The address that a whole text is to clients that are lenient: `https:/x.org`, `HTTPS:\\x.org`, `//x.org`, and in an argument
/// of such a `name` `x.org/a`.
fn loose(text: &str, name: &str) -> Option<(String, String)> {
    let special = &SCHEMES[..5];
    let scheme = text
        .split_once(':')
        .filter(|(scheme, _)| special.iter().any(|known| known.eq_ignore_ascii_case(scheme)));
    let name = name.to_ascii_lowercase();
    let named = || PLACES.iter().any(|place| name.contains(place));
    let rest = match scheme {
        Some((_, rest)) => rest,
        None if text.starts_with("//") || named() => text,
        None => return None,
    };
    let rest = rest.trim_start_matches(['/', '\\']);
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let host = host_of(&format!("x://{}", &rest[..end]))?;
    let file = scheme.is_none()
        && end == rest.len()
        && host.rsplit_once('.').is_some_and(|(_, end)| FILES.contains(&end) || DOCUMENTS.contains(&end));
    // `http:/134744072` is an address of four numbers.
    let number = scheme.is_some() && host.starts_with(|c: char| c.is_ascii_digit());
    let is_host = !file
        && !host.contains(char::is_whitespace)
        && (number || host.contains('.') || host.starts_with('['));
    is_host.then(|| (text.to_owned(), host))
}

/// True for a tool whose server the settings name: what it gives is no text of strangers.
fn is_media(policy: &Policy, tool: &str) -> bool {
    policy.tools.get(tool).is_some_and(|tool| tool.set == ToolSet::Media)
}

/// The addresses in a text.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("://").filter_map(|(at, _)| {
        let before = text.as_bytes().get(..at)?;
        let scheme = SCHEMES.iter().find(|scheme| {
            let start = before.len().checked_sub(scheme.len());
            start.is_some_and(|start| {
                before[start..].eq_ignore_ascii_case(scheme.as_bytes())
                    && !before[..start].last().is_some_and(u8::is_ascii_alphanumeric)
            })
        })?;
        let rest = &text[at - scheme.len()..];
        let end = rest.find(|c: char| c.is_whitespace() || c.is_control() || "\"'<>`{}|\\^".contains(c));
        Some(
            rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '*']),
        )
    })
}

/// The host of an address, in lower case, without user, port and a trailing dot.
pub(crate) fn host_of(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.find(']') {
        Some(end) => &host[..=end],
        None => host.split(':').next()?,
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty()).then_some(host)
}

/// Hosts without a scheme in the words of a person: `docs.example.com`, and `docs.rs/x`, which is no file.
fn bare_hosts(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().filter_map(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let (host, path) = word.split_at(word.find('/').unwrap_or(word.len()));
        let (_, ending) = host.rsplit_once('.')?;
        let file = path.is_empty() && FILES.contains(&ending.to_ascii_lowercase().as_str());
        let letters = ending.len() > 1 && ending.chars().all(|c| c.is_ascii_alphabetic());
        (letters && !file && is_plain(host)).then(|| host.to_ascii_lowercase())
    })
}

/// The form in which addresses are compared: scheme and host in lower case, without fragment and a slash at the end.
fn plain(address: &str) -> String {
    let address = address.split('#').next().unwrap_or_default();
    let start = address.find("://").map_or(0, |at| at + 3);
    let host = address[start..].find(['/', '?']).map_or(address.len(), |at| start + at);
    let (head, rest) = address.split_at(host);
    format!("{}{rest}", head.to_ascii_lowercase()).trim_end_matches('/').to_owned()
}

#[cfg(test)]
#[path = "sending_tests.rs"]
mod tests;
