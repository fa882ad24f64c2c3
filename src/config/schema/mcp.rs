//! MCP servers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An MCP server: a program that is started here (`command`), or an address (`url`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpServer {
    /// The program to start. It speaks MCP on standard input and output.
    pub command: Option<String>,
    /// Its arguments. `${NAME}` is replaced by a variable of your environment, `${NAME:-text}` by `text` where it is not set.
    pub args: Vec<String>,
    /// Variables for it, in addition to the usual ones without secrets. `${NAME}` as in `args`.
    pub env: BTreeMap<String, String>,
    /// The folder that it starts in; the project's by default.
    pub folder: Option<String>,
    /// The address of a server that runs elsewhere.
    pub url: Option<String>,
    /// Headers of each request to it. `${NAME}` as in `args`.
    pub headers: BTreeMap<String, String>,
    /// How the address is spoken to: `http` (streamable HTTP), or `sse` for old servers. Found out by default.
    pub transport: Option<McpTransport>,
    /// Id that the server's operator gave you for logging in, where a client cannot register itself.
    pub client_id: Option<String>,
    /// The secret that belongs to `client_id`. `${NAME}` as in `args`; it is never shown.
    pub client_secret: Option<String>,
    /// How to log in without a browser: for CI, services, and companies that manage access.
    pub login: Option<McpLogin>,
    /// Never start it, and offer none of its tools.
    pub disabled: bool,
    /// Seconds to wait for the start, and for the list of its tools.
    pub start_timeout: Option<u64>,
    /// Seconds without progress after which a call fails.
    pub timeout: Option<u64>,
    /// Domains that the program may connect to, as in `sandbox_network`; `*` is the whole network. Empty: what
    /// `sandbox_network` lists.
    pub network: Vec<String>,
    /// Folders outside the project that the program may write.
    pub writable: Vec<String>,
    /// Start the program outside the sandbox.
    pub unconfined: bool,
    /// Tools that change its state for all agents, such as the open project: only the main agent may call them. `name*` is
    /// every name that begins so. Usual names (activate_project, reindex, ...) are known.
    pub shared_state: Vec<String>,
}

/// How an address is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpTransport {
    /// Streamable HTTP.
    Http,
    /// HTTP with server-sent events, as servers spoke it until 2025.
    Sse,
}

/// A login without a browser. Secrets are named, not written here: `${NAME}` is a variable of your environment, and a file is
/// read at each login.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpLogin {
    /// The identity that logs in: `client`, `workload` or `enterprise`.
    pub kind: McpLoginKind,
    /// The only login server that gets the secrets, such as `https://login.example.com`. The one that the MCP server names by
    /// default.
    pub issuer: Option<String>,
    /// Rights to ask for. Those that the server says it wants by default.
    pub scopes: Vec<String>,
    /// For `client`: the private key that signs in place of a `client_secret`, as PEM (PKCS #8). `${NAME}` as in `args`.
    pub key: Option<String>,
    /// The same, in a file.
    pub key_file: Option<String>,
    /// The name that the login server has for that key, where it wants one.
    pub key_id: Option<String>,
    /// For `workload`: the token of the platform that Tiller runs on. For `enterprise`: your id token of the company's login.
    /// `${NAME}` as in `args`.
    pub token: Option<String>,
    /// The same, in a file; platforms renew it there.
    pub token_file: Option<String>,
    /// For `enterprise`: the company's login.
    pub company: Option<McpCompany>,
}

/// The login of a company, which decides who may use a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpCompany {
    /// Its address, such as `https://login.example.com`.
    pub issuer: String,
    /// The client id of Tiller there.
    pub client_id: String,
    /// The secret of that client, if it has one. `${NAME}` as in `args`.
    pub client_secret: Option<String>,
}

/// The identity that logs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpLoginKind {
    /// Tiller itself, with `client_id` and a secret or a key (client credentials).
    #[default]
    Client,
    /// The machine or job that it runs on, with a token of its platform (workload identity).
    Workload,
    /// You, by the id token of your company's login (enterprise-managed authorization).
    Enterprise,
}
