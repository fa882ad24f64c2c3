//! Keys of model servers in a 0600 file, for people without a keyring. One line each: `name = "key"`.

use std::fmt;
use std::path::{Path, PathBuf};

use toml_edit::DocumentMut;

use crate::Places;
use crate::problem::{ConfigError, Problem};
use crate::text;
use crate::write;

/// A key. It cannot be printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The key itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The file with the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile(PathBuf);

impl KeyFile {
    /// In the person's configuration folder. Not `keys.toml`: that is the key map.
    pub fn usual(places: &Places) -> Self {
        Self(places.config.join(tiller_protocol::secret_paths::OWN_KEYS))
    }

    /// At `path`.
    pub fn at(path: &Path) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Names of the stored keys, sorted.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn names(&self) -> Result<Vec<String>, ConfigError> {
        let mut names: Vec<String> = self.document()?.iter().map(|(name, _)| name.to_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// The key of a provider.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn get(&self, name: &str) -> Result<Option<Secret>, ConfigError> {
        Ok(self.document()?.get(name).and_then(|item| item.as_str()).map(|key| Secret(key.into())))
    }

    /// Stores a key in the place of an earlier one.
    ///
    /// # Errors
    /// [`ConfigError::Refused`] for a name or key that cannot be one; [`ConfigError::Io`].
    pub fn set(&self, name: &str, key: &Secret) -> Result<(), ConfigError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(ConfigError::Refused("a provider's name has letters, digits, - and _ only".into()));
        }
        let key = key.0.trim();
        if key.is_empty() || key.len() > 16_384 || key.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(ConfigError::Refused(
                "this is not a key: it is empty, too long or contains spaces".into(),
            ));
        }
        let _lock = write::lock(&self.0)?;
        let mut document = self.document()?;
        document[name] = toml_edit::value(key);
        write::replace(&self.0, &document.to_string())
    }

    /// Forgets a key. The answer says whether there was one.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn remove(&self, name: &str) -> Result<bool, ConfigError> {
        if !self.document()?.contains_key(name) {
            return Ok(false);
        }
        let _lock = write::lock(&self.0)?;
        let mut document = self.document()?;
        if document.remove(name).is_none() {
            return Ok(false);
        }
        write::replace(&self.0, &document.to_string())?;
        Ok(true)
    }

    fn document(&self) -> Result<DocumentMut, ConfigError> {
        let wrong = |problem| ConfigError::Wrong { problems: vec![problem] };
        let Some(text) = text::read(&self.0).map_err(wrong)? else { return Ok(DocumentMut::new()) };
        write::tighten(&self.0)?;
        // The parser's message quotes the text, and the text is keys.
        text.parse().map_err(|error: toml_edit::TomlError| {
            let at = error.span().map_or(0, |span| span.start);
            let (line, _) = text::Source { path: &self.0, text: &text }.at(at);
            wrong(Problem::file(&self.0, format!("line {line} is not `name = \"key\"`")))
        })
    }
}
