//! `tiller mcp`.

use clap::{Args, Subcommand};

/// `tiller mcp`.
#[derive(Debug, Subcommand)]
pub enum Mcp {
    /// List MCP servers, with what is known of their tools
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Add an MCP server to config.toml
    Add(McpAdd),
    /// Remove an MCP server from config.toml, and what is kept of it
    Remove {
        /// Name of the server
        name: String,
    },
    /// Start an MCP server and list its tools
    Test {
        /// Name of a server, or its address; with --command, a command line in quotes
        server: String,
        /// Run SERVER, which is a command line
        #[arg(long)]
        command: bool,
        /// Show what changed since it was approved, and approve the server and its tools as they are now
        #[arg(long)]
        approve: bool,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        limits: McpLimits,
    },
    /// Log in at an MCP server with your browser
    Login {
        /// Name of the server
        name: String,
    },
    /// Call a tool of an MCP server and print its result
    Call {
        /// Name of a server, or its address; with --command, a command line in quotes
        server: String,
        /// Name of the tool
        tool: String,
        /// Run SERVER, which is a command line
        #[arg(long)]
        command: bool,
        /// Its arguments, a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
        /// When the server asks for input, answer with the defaults of its form
        #[arg(long)]
        accept_defaults: bool,
        #[command(flatten)]
        limits: McpLimits,
    },
    /// Serve the sessions of this folder, their agents and todo lists to another agent, over standard input and output
    #[command(long_about = SERVE)]
    Serve {
        /// Serve the sessions of all folders
        #[arg(long)]
        all: bool,
    },
}

/// What `tiller mcp serve` is for.
const SERVE: &str = "\
Serve the sessions of this folder, their agents and todo lists to another agent, over standard input and output.

This is an MCP server that only reads. Configure it in the other agent, for example:
  claude mcp add tiller -- tiller mcp serve";

/// `tiller mcp add`.
#[derive(Debug, Args)]
pub struct McpAdd {
    /// Name of the server
    pub name: String,
    /// A variable for its program, such as TOKEN=${MY_TOKEN}
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub env: Vec<(String, String)>,
    /// A header for its address, such as Authorization='Bearer ${MY_TOKEN}'
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub header: Vec<(String, String)>,
    /// Client id that its operator gave you to log in with
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// The variable that holds the secret of that client id
    #[arg(long, value_name = "NAME", requires = "client_id")]
    pub client_secret_env: Option<String>,
    #[command(flatten)]
    pub limits: McpLimits,
    /// Its address, or its program with arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "URL|CMD")]
    pub command: Vec<String>,
}

/// What the program of a server may do.
#[derive(Debug, Default, Args)]
pub struct McpLimits {
    /// A domain that its program may connect to, * for the whole network
    #[arg(long, value_name = "DOMAIN")]
    pub network: Vec<String>,
    /// Run its program outside the sandbox
    #[arg(long)]
    pub unconfined: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}
