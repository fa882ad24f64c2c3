//! `tiller mcp`.

use clap::builder::{PossibleValue, PossibleValuesParser};
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
    Add(Box<McpAdd>),
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
    /// Log in at an MCP server, with your browser or as [mcp.NAME.login] says
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
    /// Print a resource of an MCP server, as @SERVER:URI adds it to a message
    Read {
        /// Name of a server, or its address; with --command, a command line in quotes
        server: String,
        /// Address of the resource
        uri: String,
        /// Run SERVER, which is a command line
        #[arg(long)]
        command: bool,
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
    // The last one: its heading holds for what follows.
    #[command(flatten)]
    pub login: McpLoginArgs,
}

/// How Tiller logs in at an address without a person.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Login without a person")]
pub struct McpLoginArgs {
    /// The identity that logs in
    #[arg(long = "login", value_name = "KIND", value_parser = login_kinds())]
    pub kind: Option<String>,
    /// The only login server that gets the secrets
    #[arg(long, value_name = "URL", requires = "kind")]
    pub issuer: Option<String>,
    /// A right to ask for; those that the server says it wants by default
    #[arg(long, value_name = "NAME", requires = "kind")]
    pub scope: Vec<String>,
    /// The file with the private key of --client-id, as PEM
    #[arg(long, value_name = "FILE", requires = "kind")]
    pub key_file: Option<String>,
    /// The variable that holds this key
    #[arg(long, value_name = "NAME", requires = "kind", conflicts_with = "key_file")]
    pub key_env: Option<String>,
    /// The name that the login server has for this key
    #[arg(long, value_name = "ID", requires = "kind")]
    pub key_id: Option<String>,
    /// The file with the token
    #[arg(long, value_name = "FILE", requires = "kind")]
    pub token_file: Option<String>,
    /// The variable that holds the token
    #[arg(long, value_name = "NAME", requires = "kind", conflicts_with = "token_file")]
    pub token_env: Option<String>,
    /// The address of the company's login
    #[arg(long, value_name = "URL", requires = "kind", requires = "company_client_id")]
    pub company_issuer: Option<String>,
    /// The client id of Tiller at the company's login
    #[arg(long, value_name = "ID", requires = "company_issuer")]
    pub company_client_id: Option<String>,
    /// The variable that holds the secret of that client id
    #[arg(long, value_name = "NAME", requires = "company_client_id")]
    pub company_secret_env: Option<String>,
}

fn login_kinds() -> PossibleValuesParser {
    PossibleValuesParser::new([
        PossibleValue::new("client").help("--client-id with its secret or key"),
        PossibleValue::new("workload").help("A token of the platform, as in CI"),
        PossibleValue::new("enterprise").help("Your id token of the company's login"),
    ])
}

impl McpLoginArgs {
    /// The table `[mcp.NAME.login]` that they say; `None`: they say none.
    pub fn table(&self) -> Option<serde_json::Value> {
        let kind = self.kind.as_ref()?;
        let variable = |name: &String| format!("${{{name}}}");
        let text = serde_json::Value::String;
        let mut table = serde_json::Map::new();
        table.insert("kind".into(), text(kind.clone()));
        for (key, value) in [
            ("issuer", self.issuer.clone()),
            ("key_file", self.key_file.clone()),
            ("key", self.key_env.as_ref().map(variable)),
            ("key_id", self.key_id.clone()),
            ("token_file", self.token_file.clone()),
            ("token", self.token_env.as_ref().map(variable)),
        ] {
            if let Some(value) = value {
                table.insert(key.into(), text(value));
            }
        }
        if !self.scope.is_empty() {
            table.insert("scopes".into(), self.scope.clone().into());
        }
        if let (Some(issuer), Some(id)) = (&self.company_issuer, &self.company_client_id) {
            let mut company = serde_json::Map::new();
            company.insert("issuer".into(), text(issuer.clone()));
            company.insert("client_id".into(), text(id.clone()));
            if let Some(name) = &self.company_secret_env {
                company.insert("client_secret".into(), text(variable(name)));
            }
            table.insert("company".into(), company.into());
        }
        Some(table.into())
    }
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
