//! The sample project that `tiller demo` creates, and the guided tour.

use std::sync::OnceLock;

use serde::Deserialize;

/// One file: path relative to the project, content, and whether it is executable.
pub type SampleFile = (&'static str, &'static [u8], bool);

macro_rules! file {
    ($path:literal, $executable:literal) => {
        ($path, include_bytes!(concat!("../../../assets/demo/sample/", $path)), $executable)
    };
}

/// A calculator in plain shell with one failing test. It needs only `sh`.
const SAMPLE: &[SampleFile] = &[
    file!("README.md", false),
    file!("calc.sh", true),
    file!("lib/ops.sh", false),
    file!("test.sh", true),
    file!(".gitignore", false),
];

/// The sample project.
pub fn sample() -> &'static [SampleFile] {
    SAMPLE
}

/// One step of the guided tour.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TourStep {
    pub title: String,
    pub text: String,
    /// Names of actions or keys, separated by commas; the screen shows the configured keys.
    #[serde(rename = "keys")]
    pub key_hint: String,
}

#[derive(Deserialize)]
struct Tour {
    step: Vec<TourStep>,
}

/// The steps of the guided tour, in order.
pub fn tour() -> &'static [TourStep] {
    static READ: OnceLock<Vec<TourStep>> = OnceLock::new();
    READ.get_or_init(|| {
        // A test parses it, so an invalid tour is never released.
        toml::from_str::<Tour>(include_str!("../../../assets/demo/tour.toml"))
            .map(|t| t.step)
            .unwrap_or_default()
    })
}
