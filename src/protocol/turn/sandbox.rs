//! What confines commands on this machine, as the sandbox's self-test found it.

use serde::{Deserialize, Serialize};

use crate::base::word::word_enum;

word_enum! {
    /// Which commands are confined.
    #[derive(Default)]
    pub enum SandboxScope {
        /// All.
        #[default]
        Auto = "auto",
        /// Those that run without asking because they only read.
        Read = "read",
        /// None.
        Off = "off",
    }
}

/// What confined commands may reach over the network, beside servers that they start themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reach", rename_all = "snake_case")]
pub enum SandboxNetwork {
    #[default]
    Nothing,
    /// These domains, through a proxy of this program.
    Domains {
        domains: Vec<String>,
    },
    /// Domains are listed, and this machine cannot limit commands to them: they reach nothing.
    DomainsUnavailable {
        domains: Vec<String>,
        why: String,
    },
    Everything,
}

/// What limits commands at a terminal elsewhere, where the sandbox of this machine does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalLimits {
    /// A container that was started for them.
    Container,
    /// The rights of the account there, and nothing else.
    Account,
}

/// A terminal elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalPlace {
    /// Its name in the settings.
    pub name: String,
    /// Its kind, for people: `ssh`.
    pub kind: String,
    pub limits: TerminalLimits,
}

impl TerminalPlace {
    /// Name and kind, for people: `build (ssh)`.
    pub fn title(&self) -> String {
        format!("{} ({})", self.name, self.kind)
    }

    /// What confines a command there, as the beginning of a sentence.
    pub fn words(&self) -> String {
        match self.limits {
            TerminalLimits::Container => format!("confined only by the container of {}", self.title()),
            TerminalLimits::Account => {
                format!("not confined: only the rights of the account at {} limit it", self.title())
            }
        }
    }
}

/// The sandbox of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxState {
    pub scope: SandboxScope,
    /// Where the setting comes from, for people: `user (/home/me/.config/tiller/config.toml:3)`.
    pub origin: String,
    /// How commands are confined, for people; `None`: this machine cannot confine them.
    pub method: Option<String>,
    /// What this machine lacks, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    pub network: SandboxNetwork,
    /// What the self-test tried. Empty where nothing confines commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<SandboxCapability>,
    /// The terminals of the settings, by name. It does not reach there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<TerminalPlace>,
    /// Name of the main agent's terminal, if that is one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// The folder that commands see as `/tmp`, or by `TMPDIR` where nothing is mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tmp: Option<String>,
}

impl SandboxState {
    /// The folder that commands and file tools of the main agent see as `/tmp`. `None`: they see that of the machine where
    /// they run.
    pub fn own_tmp(&self) -> Option<&str> {
        self.tmp.as_deref().filter(|_| self.mounts() && self.main.is_none())
    }

    /// True when commands are confined by mounts.
    pub fn mounts(&self) -> bool {
        self.method.as_deref().is_some_and(|method| method.contains("bubblewrap"))
    }
}

/// One thing that the sandbox has to stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxCapability {
    /// What is stopped, for people: `write outside the workspace`.
    pub name: String,
    /// The same in one or two words, for the header: `outside writes`.
    pub short: String,
    pub held: CapabilityState,
}

/// Result of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CapabilityState {
    /// The sandbox stopped it.
    Stopped,
    /// It was possible; what the probe could do.
    Open { why: String },
    /// The probe could not run.
    Unknown { why: String },
}

impl SandboxState {
    /// Commands are to be confined, and this machine cannot.
    pub fn is_missing(&self) -> bool {
        self.scope != SandboxScope::Off && self.method.is_none()
    }

    /// What the sandbox does not stop, in the order of the probes.
    pub fn open(&self) -> impl Iterator<Item = &SandboxCapability> {
        self.capabilities.iter().filter(|c| matches!(c.held, CapabilityState::Open { .. }))
    }

    /// What could not be tested, in the order of the probes.
    pub fn unknown(&self) -> impl Iterator<Item = &SandboxCapability> {
        self.capabilities.iter().filter(|c| matches!(c.held, CapabilityState::Unknown { .. }))
    }
}
