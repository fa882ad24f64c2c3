//! Masks errors of servers and recordings with the same function as all other stored text.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde_json::Value;

use crate::codec::request::Request;
use crate::{ChunkStream, Patience, Provider, ProviderError};

/// Maximum length of a field that is checked together with its name.
const NAMED: usize = 512;

/// Masks secrets in a text. The default masks nothing.
#[derive(Clone)]
pub struct Redact(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl Redact {
    /// Masks with this function.
    pub fn new(mask: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(mask))
    }

    /// The text with masks in place of secrets.
    pub fn text(&self, text: &str) -> String {
        (self.0)(text)
    }

    /// Masks every text of a value. A name may indicate that its value is a secret, so both are also checked together.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(list) => list.iter_mut().for_each(|v| self.value(v)),
            Value::Object(map) => {
                for (name, field) in map.iter_mut() {
                    let Value::String(text) = field else {
                        self.value(field);
                        continue;
                    };
                    let masked = self.text(text);
                    let head = format!("{name}: ");
                    let both = format!("{head}{text:?}");
                    if masked == *text && both.len() <= NAMED {
                        let together = self.text(&both);
                        if together != both && together.starts_with(&head) {
                            *text = tiller_protocol::mask::mask("secret");
                        }
                    } else {
                        *text = masked;
                    }
                }
            }
            _ => {}
        }
    }

    /// Masks the text of an error.
    pub(crate) fn error(&self, mut error: ProviderError) -> ProviderError {
        let (ProviderError::Auth(text)
        | ProviderError::TooLong(text)
        | ProviderError::TooLarge(text)
        | ProviderError::Wait { message: text, .. }
        | ProviderError::Network(text)
        | ProviderError::Unanswered(text)
        | ProviderError::Rejected(text)) = &mut error;
        *text = self.text(text);
        error
    }
}

impl Default for Redact {
    fn default() -> Self {
        Self::new(str::to_owned)
    }
}

impl std::fmt::Debug for Redact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redact")
    }
}

/// A provider with masked errors, since servers quote keys and requests in them.
pub(crate) struct MaskedProvider {
    pub(crate) inner: Arc<dyn Provider>,
    pub(crate) redact: Redact,
}

#[async_trait]
impl Provider for MaskedProvider {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    async fn stream(&self, request: Request) -> Result<ChunkStream, ProviderError> {
        let redact = self.redact.clone();
        match self.inner.stream(request).await {
            Ok(stream) => Ok(stream.map(move |item| item.map_err(|e| redact.error(e))).boxed()),
            Err(error) => Err(redact.error(error)),
        }
    }

    async fn prepare(&self) {
        self.inner.prepare().await;
    }

    fn body(&self, request: &Request) -> Vec<u8> {
        self.inner.body(request)
    }

    fn patience(&self) -> Option<Patience> {
        self.inner.patience()
    }

    async fn models(&self) -> Result<Vec<String>, ProviderError> {
        self.inner.models().await.map_err(|e| self.redact.error(e))
    }

    async fn check(&self) -> Result<(), ProviderError> {
        self.inner.check().await.map_err(|e| self.redact.error(e))
    }
}
