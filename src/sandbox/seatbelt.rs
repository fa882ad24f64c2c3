//! The profile of Seatbelt, which confines on macOS through `sandbox-exec`. Nothing here was tried on a Mac yet.
//!
//! A later rule wins over an earlier one. So everything is denied, then what is seen and the writable folders are permitted,
//! then what is protected and hidden is denied.
//!
//! Paths are parameters of the profile and not part of its text: whatever a folder is called, it cannot add a rule. Only
//! the patterns for protected names are made of paths, with a wildcard in place of every unusual character.

use std::path::{Path, PathBuf};

use tiller_tool::shell::Launch;

use crate::policy::{Network, Policy, Profile};

/// Where macOS has it.
pub(crate) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// What programs need to start and to run others of their own.
const BASE: &str = "\
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow pseudo-tty)
(allow ipc-posix-sem ipc-posix-shm)
(allow mach-lookup
  (global-name \"com.apple.system.opendirectoryd.libinfo\")
  (global-name \"com.apple.system.notification_center\")
  (global-name \"com.apple.logd\"))
(allow file-write-data
  (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\") (literal \"/dev/ptmx\")
  (regex #\"^/dev/ttys[0-9]+$\"))
(allow file-ioctl (literal \"/dev/tty\") (literal \"/dev/ptmx\") (regex #\"^/dev/ttys[0-9]+$\"))
";

/// For the whole network. Sockets in the file system stay closed, but for the one that finds names.
const WHOLE_NETWORK: &str = "\
(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name \"com.apple.SystemConfiguration.configd\")
  (global-name \"com.apple.trustd.agent\"))
(deny network-outbound (subpath \"/\"))
(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))
";

/// For servers on loopback. A connection to one could be told neither from one to another program of the person's.
const SERVERS: &str = "\
(allow network-bind (local ip \"localhost:*\"))
(allow network-inbound (local ip \"localhost:*\"))
";

/// The text, and the parameters that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeatbeltProfile {
    pub(crate) text: String,
    pub(crate) parameters: Vec<(String, String)>,
}

impl SeatbeltProfile {
    /// The profile of a policy. `None`: one of its paths is no text, so that it cannot be named.
    pub(crate) fn new(policy: &Policy) -> Option<Self> {
        let mut profile = Self { text: "(version 1)\n".into(), parameters: Vec::new() };
        let writable = policy.writable_folders();
        match policy.profile {
            Profile::Floor | Profile::Off => profile.text.push_str("(allow default)\n"),
            Profile::Read | Profile::Workspace => {
                profile.text.push_str("(deny default)\n");
                profile.text.push_str(BASE);
                profile.read(policy)?;
                for folder in &writable {
                    profile.rule("allow file-write*", "subpath", folder)?;
                }
                profile.network(policy);
            }
        }
        if policy.profile != Profile::Off {
            let protected = [policy.protected_paths(), policy.own_folders()].concat();
            profile.protect(&protected, &writable)?;
        }
        if matches!(policy.profile, Profile::Read | Profile::Workspace) {
            for path in policy.hidden_paths() {
                profile.rule("deny file-read* file-write*", "subpath", &path)?;
            }
        }
        Some(profile)
    }

    /// What is seen. The attributes of files, without which no path is resolved, and the names in `/` always are.
    fn read(&mut self, policy: &Policy) -> Option<()> {
        let sight = policy.sight();
        if sight.closed.is_empty() && sight.open == [PathBuf::from("/")] {
            self.text.push_str("(allow file-read*)\n");
            return Some(());
        }
        self.text
            .push_str("(allow file-read-metadata)\n(allow file-read* (literal \"/\") (subpath \"/dev\"))\n");
        let mut all: Vec<(&PathBuf, &str)> =
            sight.open.iter().map(|path| (path, "allow file-read*")).collect();
        all.extend(sight.closed.iter().map(|path| (path, "deny file-read-data file-read-xattr")));
        // From the outside to the inside.
        all.sort();
        all.into_iter().try_for_each(|(path, what)| self.rule(what, "subpath", path))
    }

    fn network(&mut self, policy: &Policy) {
        match policy.network {
            Network::Off => {}
            Network::Loopback => self.text.push_str(SERVERS),
            Network::Domains => {
                self.text.push_str(SERVERS);
                if let Some(proxy) = policy.proxy_port {
                    let rule = format!("(allow network-outbound (remote ip \"localhost:{}\"))\n", proxy.port);
                    self.text.push_str(&rule);
                }
            }
            Network::All => self.text.push_str(WHOLE_NETWORK),
        }
    }

    /// Keeps these paths, and the folders that lead to them, as they are.
    fn protect(&mut self, paths: &[PathBuf], writable: &[PathBuf]) -> Option<()> {
        let mut above: Vec<&Path> = Vec::new();
        for path in paths {
            self.rule("deny file-write*", "subpath", path)?;
            // The file system of a Mac usually takes names that differ in case for the same.
            self.text
                .push_str(&format!("(deny file-write* (regex #\"^{}(/|$)\"))\n", pattern(path.to_str()?)));
            let folders = path.ancestors().skip(1);
            above.extend(folders.take_while(|folder| writable.iter().any(|w| folder.starts_with(w))));
        }
        above.sort();
        above.dedup();
        for folder in above.into_iter().filter(|folder| folder.parent().is_some()) {
            self.rule("deny file-write-unlink", "literal", folder)?;
        }
        Some(())
    }

    fn rule(&mut self, what: &str, how: &str, path: &Path) -> Option<()> {
        let path = path.to_str()?.to_owned();
        let found = self.parameters.iter().find(|(_, known)| *known == path).map(|(name, _)| name.clone());
        let name = found.unwrap_or_else(|| {
            let name = format!("P{}", self.parameters.len());
            self.parameters.push((name.clone(), path));
            name
        });
        self.text.push_str(&format!("({what} ({how} (param \"{name}\")))\n"));
        Some(())
    }
}

/// A pattern of the same path in any case. What is no letter, digit, or usual sign matches anything but a separator.
fn pattern(path: &str) -> String {
    let mut pattern = String::new();
    for c in path.chars() {
        match c {
            'a'..='z' | 'A'..='Z' => {
                pattern.extend(['[', c.to_ascii_lowercase(), c.to_ascii_uppercase(), ']']);
            }
            '0'..='9' | '/' | '-' | '_' => pattern.push(c),
            '.' => pattern.push_str("\\."),
            _ if pattern.ends_with("[^/]*") => {}
            _ => pattern.push_str("[^/]*"),
        }
    }
    pattern
}

/// The launch under this policy; `None`: as [`SeatbeltProfile::new`].
pub(crate) fn confined(policy: &Policy, launch: &Launch) -> Option<Launch> {
    let SeatbeltProfile { text, parameters } = SeatbeltProfile::new(policy)?;
    let mut args = vec!["-p".to_owned(), text];
    for (name, path) in parameters {
        args.extend(["-D".to_owned(), format!("{name}={path}")]);
    }
    args.push(launch.program.to_str()?.to_owned());
    args.extend(launch.args.iter().cloned());
    Some(Launch { program: PROGRAM.into(), args, env: launch.env.clone(), folder: launch.folder.clone() })
}

#[cfg(test)]
#[path = "seatbelt_tests.rs"]
mod tests;
