//! `tiller hooks`, `tiller plugin`.

use std::path::PathBuf;

use clap::Subcommand;

/// `tiller hooks`.
#[derive(Debug, Subcommand)]
pub enum HooksCommand {
    /// List the hooks of this folder
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Run the hooks of an event with a made-up input, and show what they decide
    Test {
        /// Event, for example before-tool-call
        event: String,
        /// Tool of the call
        #[arg(long, default_value = "terminal")]
        tool: String,
        /// Arguments of the call, as JSON
        #[arg(long, value_name = "JSON", default_value = "{\"command\":\"true\"}")]
        args: String,
        /// Text of the prompt, the result or the answer
        #[arg(long, default_value = "")]
        text: String,
    },
    /// Import the hooks of .claude/settings.json into .tiller/hooks.toml
    Import {
        /// Import those of ~/.claude/settings.json into your config.toml
        #[arg(long)]
        user: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// `tiller plugin`.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// List installed plugins
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Install a plugin from a folder, a .tar.gz or .zip file, or a git URL with an optional #REF
    Install {
        /// Folder, archive or git URL
        from: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show a plugin that is new or has changed, and use it
    Trust {
        /// Name of the plugin
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Remove a plugin
    Remove {
        /// Name of the plugin
        name: String,
    },
    /// Make the folder of a new plugin
    New {
        /// Name of the plugin and its folder
        name: String,
    },
    /// Check the folder of a plugin
    Validate {
        /// Folder with a plugin.toml
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
}
