//! Code that calls tools: one Python script makes many calls, and the model reads only what it prints.
//!
//! | file | its job |
//! | --- | --- |
//! | `execute_code` | the tool |
//! | `stub` | `tiller_tools.py`, made from the specs of the tools that a script may call |
//! | `stub.py`, `driver.py` | its fixed part; the program that runs scripts |
//! | `rpc` | one message a line, of bounded length, between script and tool |
//! | `child` | the process: starting it in the sandbox, its output, its end |
//! | `run` | one run: the script's calls, the time, the limits |
//! | `inner` | what the engine is asked for: one call for a script |
//! | `approval` | one approval for a whole script: what was recorded, and what the user said yes to |
//! | `sessions` | processes that keep variables between runs |
//! | `report` | the result, for the model and for the screen |
//!
//! The process has no network and cannot make sockets. It gets one end of a connected pair as its standard input.

mod approval;
mod child;
mod execute_code;
mod inner;
mod report;
mod rpc;
mod run;
mod sessions;
mod stub;

pub use approval::ScriptApproval;
pub use execute_code::{ExecuteCode, find_python};
pub use inner::{CallConsent, CallForScript, InnerReply, InnerResult, ScriptPorts, WaitingCall};
pub use sessions::CodeSessions;

use std::time::Duration;

/// Limits of scripts.
#[derive(Clone, Debug)]
pub struct CodeLimits {
    /// The interpreter: a name, or an absolute path.
    pub python: String,
    /// Longest run.
    pub time: Duration,
    /// Calls of one run.
    pub calls: u32,
    /// Bytes of standard output and of standard error that the model sees.
    pub output_bytes: usize,
    pub error_bytes: usize,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self {
            python: "python3".into(),
            time: Duration::from_secs(120),
            calls: 50,
            output_bytes: 50_000,
            error_bytes: 10_000,
        }
    }
}

#[cfg(test)]
mod tests;
