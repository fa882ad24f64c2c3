//! Sets up a model from the screen: a key, a variable of the environment, a server. Everything is tested before it is
//! stored, and takes effect at once.

use std::path::PathBuf;
use std::sync::Arc;

use tiller_config::schema::{Provider as Entry, ProviderKind};
use tiller_protocol::ModelRef;
use tiller_provider::registry::{LOCALS, OFFERED, OfferedVariable};
use tiller_provider::{Provider, ProviderError};
use tiller_tui::app::effect::{Connect, Connected};

use crate::app::settings::{SharedSettings, write_provider};
use crate::commands::workbench::session_link::SessionLink;

/// The parts that are needed.
pub(crate) struct Connector {
    pub(crate) shared: Arc<SharedSettings>,
    pub(crate) link: Arc<SessionLink>,
    /// The person's file of settings.
    pub(crate) file: PathBuf,
}

impl Connector {
    /// Carries it out. Blocks until the server has answered.
    pub(crate) fn connect(&self, what: Connect) -> Result<Connected, String> {
        match what {
            // The engine tests and stores it.
            Connect::Key { provider, key } => {
                let said = self.link.store_key(provider, key.reveal().to_owned())?;
                Ok(Connected { said, models: Vec::new() })
            }
            Connect::Variable { variable } => self.variable(&variable),
            Connect::Local { provider } => {
                let local = LOCALS.into_iter().find(|l| l.name == provider);
                let local = local.ok_or_else(|| format!("there is no local server named {provider}"))?;
                self.server(local.name, &local.base())
            }
            Connect::Server { url } => {
                let (name, base) = self.place(&url);
                self.server(&name, &base)
            }
        }
    }

    /// A server that needs no key.
    fn server(&self, name: &str, base: &str) -> Result<Connected, String> {
        let providers = self.shared.providers();
        let (base, ids) = match models(&providers.server(name, base)) {
            Ok(ids) => (base.to_owned(), ids),
            // The path is easily forgotten.
            Err(first) if !base.ends_with("/v1") => {
                let longer = format!("{}/v1", base.trim_end_matches('/'));
                match models(&providers.server(name, &longer)) {
                    Ok(ids) => (longer, ids),
                    Err(_) => return Err(first),
                }
            }
            Err(first) => return Err(first),
        };
        if ids.is_empty() {
            return Err(format!(
                "{base} answers but has no model yet. Load one there, then choose this server again."
            ));
        }
        write_provider(
            &self.file,
            &self.shared.kinds(),
            name,
            &[("kind", "openai-chat"), ("base_url", &base)],
        )?;
        self.link.reload()?;
        Ok(self.done(name, ids))
    }

    /// A key that other tools use. Only its variable's name is stored.
    fn variable(&self, variable: &str) -> Result<Connected, String> {
        let offered = OFFERED.into_iter().find(|o| o.variable == variable);
        let OfferedVariable { name, kind, base, .. } =
            offered.ok_or_else(|| format!("{variable} is not a known key variable"))?;
        let mut config = self.shared.current();
        let entry = Entry {
            kind: ProviderKind(kind.to_owned()),
            base_url: (!base.is_empty()).then(|| base.to_owned()),
            api_key_env: Some(variable.to_owned()),
            api_key_command: None,
            headers: Default::default(),
            timeouts: Default::default(),
            recording: None,
            speed: None,
            models: Default::default(),
        };
        config.providers.insert(name.to_owned(), entry);
        let provider = self.shared.build(&config).get(name).map_err(|e| e.to_string())?;
        let ids = models(&provider).map_err(|e| format!("the key in {variable} is not used: {e}"))?;
        let mut values = vec![("kind", kind)];
        if !base.is_empty() {
            values.push(("base_url", base));
        }
        values.push(("api_key_env", variable));
        write_provider(&self.file, &self.shared.kinds(), name, &values)?;
        self.link.reload()?;
        Ok(self.done(name, ids))
    }

    fn done(&self, name: &str, ids: Vec<String>) -> Connected {
        let said = format!("{name} is ready and saved in {} for later sessions.", self.file.display());
        Connected { said, models: ids.into_iter().map(|id| ModelRef(format!("{name}/{id}"))).collect() }
    }

    /// Name and base URL for a server that the person typed: the usual name for a usual local port, else a free one.
    fn place(&self, url: &str) -> (String, String) {
        let base = url.trim_end_matches('/').to_owned();
        let config = self.shared.current();
        let free = |name: &str| {
            config.providers.get(name).is_none_or(|p| p.base_url.as_deref() == Some(base.as_str()))
        };
        let local = LOCALS.iter().find(|l| {
            ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| {
                let at = format!("http://{host}:{}", l.port);
                base == at || base.strip_prefix(&at).is_some_and(|rest| rest.starts_with('/'))
            })
        });
        let mut names = local.map(|l| l.name.to_owned()).into_iter().chain(["server".to_owned()]);
        let name = names.find(|n| free(n));
        let numbered = || (2..).map(|n| format!("server{n}")).find(|n| free(n));
        (name.or_else(numbered).unwrap_or_else(|| "server".into()), base)
    }
}

/// Requests the models of a server. That costs nothing, and needs a valid key.
fn models(provider: &Arc<dyn Provider>) -> Result<Vec<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("it could not be tested: {e}"))?;
    runtime.block_on(provider.models()).map_err(|e| match e {
        ProviderError::Network(why) => format!("{why} Is the server running?"),
        other => other.to_string(),
    })
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
