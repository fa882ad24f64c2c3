//! Another machine, over the person's `ssh` with the person's own settings for the host.

use async_trait::async_trait;
use tiller_tool::shell::Launch;

use super::{Failure, Kind, Setting, last_lines};
use crate::quote;

/// Set over the person's settings and those of the terminal: what stands first holds. Nothing is asked, no host key is
/// accepted, and nothing of this machine is reachable from there.
const FIXED: &[&str] = &[
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "ControlMaster=no",
    "ControlPath=none",
    "SendEnv=-*",
    "ConnectTimeout=15",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
];

#[derive(Debug)]
pub(super) struct Ssh {
    base: Launch,
    host: String,
    folder: String,
}

impl Ssh {
    pub(super) fn new(setting: &Setting<'_>) -> Result<Self, String> {
        let it = setting.terminal;
        let host = it.host.clone().unwrap_or_default();
        if host.is_empty() || host.starts_with('-') {
            return Err(format!("set terminals.{}.host, for instance \"me@build\"", setting.name));
        }
        let mut base = setting.launch("ssh")?;
        for option in FIXED {
            base.args.extend(["-o".into(), (*option).into()]);
        }
        for option in &it.options {
            base.args.extend(["-o".into(), option.clone()]);
        }
        let name = setting.root.file_name().map_or("work".into(), |n| n.to_string_lossy().into_owned());
        let folder = it.folder.clone().unwrap_or_else(|| format!("~/tiller/{name}"));
        Ok(Self { base, host, folder })
    }
}

#[async_trait]
impl Kind for Ssh {
    fn connect(&self, script: &str, terminal: bool) -> Launch {
        let mut launch = self.base.clone();
        launch.args.push(if terminal { "-tt" } else { "-T" }.into());
        launch.args.extend(["--".into(), self.host.clone(), format!("exec sh -c {}", quote(script))]);
        launch
    }

    fn explain(&self, errors: &str) -> Failure {
        let host = &self.host;
        if errors.contains("REMOTE HOST IDENTIFICATION HAS CHANGED") {
            return Failure::Refused(format!(
                "the key of {host} is not the one that you accepted: it may be another machine. Nothing was sent. \
                 Check the key, then remove the old one with `ssh-keygen -R` and connect once yourself with ssh"
            ));
        }
        if errors.contains("Host key verification failed") {
            return Failure::Refused(format!(
                "the key of {host} is not known here, and only you can accept it: connect once yourself with ssh"
            ));
        }
        if errors.contains("Permission denied (") {
            return Failure::Refused(format!(
                "{host} accepts none of your keys without asking: add the key to your agent, or set the identity of \
                 the host in ~/.ssh/config"
            ));
        }
        if errors.contains("Could not resolve hostname") {
            return Failure::Refused(last_lines(errors));
        }
        Failure::Broken(last_lines(errors))
    }

    fn folder(&self) -> &str {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh() -> Ssh {
        let base = Launch { program: "ssh".into(), args: Vec::new(), env: Vec::new(), folder: "/".into() };
        Ssh { base, host: "build".into(), folder: "~/x".into() }
    }

    #[test]
    fn errors_that_only_the_person_can_mend_are_not_tried_again() {
        let changed = "@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@\nHost key verification failed.";
        for (said, part) in [
            (changed, "another machine"),
            (
                "No ED25519 host key is known for [::1]:22 and you have requested strict checking.\nHost key verification failed.",
                "connect once yourself",
            ),
            ("me@build: Permission denied (publickey).", "accepts none of your keys"),
        ] {
            let Failure::Refused(why) = ssh().explain(said) else { panic!("{said}") };
            assert!(why.contains(part), "{why}");
        }
        let broken = Failure::Broken("ssh: connect to host build port 22: Connection refused".into());
        assert_eq!(ssh().explain("ssh: connect to host build port 22: Connection refused\r\n"), broken);
    }

    #[test]
    fn a_script_reaches_the_shell_there_as_it_is() {
        let launch = ssh().connect("echo 'a b' $HOME", false);
        assert_eq!(launch.args[1..], ["--", "build", r"exec sh -c 'echo '\''a b'\'' $HOME'"]);
    }
}
