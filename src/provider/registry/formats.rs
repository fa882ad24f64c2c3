//! Every API format: one line each.

use tiller_config::schema::ProviderKinds;

use crate::codec::format::ApiFormat;
use crate::{anthropic, demo, gemini, openai, replay};

/// The API formats of a process. The composition root makes them once; a test can add a format of its own.
#[derive(Clone)]
pub struct ApiFormats(Vec<ApiFormat>);

impl ApiFormats {
    /// The formats that come with the program, in the order in which they are listed.
    pub fn built_in() -> Self {
        Self(vec![
            anthropic::FORMAT,
            openai::chat::FORMAT,
            openai::responses::FORMAT,
            gemini::FORMAT,
            demo::FORMAT,
            replay::FORMAT,
        ])
    }

    /// Adds a format. Its name must be new.
    pub fn push(&mut self, format: ApiFormat) {
        self.0.push(format);
    }

    /// Their names, for the check of configurations.
    pub fn kinds(&self) -> ProviderKinds {
        self.0.iter().map(|f| f.kind).collect()
    }

    /// The format of this name.
    pub(crate) fn get(&self, kind: &str) -> Option<&ApiFormat> {
        self.0.iter().find(|f| f.kind == kind)
    }
}
