//! Properties of models: windows, limits, prices, abilities. The built-in table is `assets/models.toml`; the person's
//! `[providers.NAME.models]` takes precedence, field by field.

pub mod effort;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;
use tiller_config::Config;
use tiller_config::schema::ModelInfo;
use tiller_protocol::{Cost, Usage};

const TABLE: &str = include_str!("../../../assets/models.toml");

/// The person's entries: provider name, then id pattern.
pub type Overrides = BTreeMap<String, BTreeMap<String, ModelInfo>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Provider name → the model used when the person chose none.
    defaults: BTreeMap<String, String>,
    /// First match wins.
    model: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    /// Patterns of ids, lower case; `*` matches any text.
    id: Vec<String>,
    /// Only for providers with these names; empty: for all.
    #[serde(default)]
    provider: Vec<String>,
    #[serde(flatten)]
    info: ModelInfo,
}

/// The table, parsed on first use.
fn table() -> &'static Table {
    static READ: OnceLock<Table> = OnceLock::new();
    READ.get_or_init(|| {
        toml::from_str(TABLE).unwrap_or_else(|e| {
            // A test parses the table, so an invalid one is never released.
            tracing::error!(error = %e, "the built-in model table cannot be read");
            Table { defaults: BTreeMap::new(), model: Vec::new() }
        })
    })
}

/// The known properties of `model` at the provider of this name. Unknown fields are `None`.
pub fn lookup(provider: &str, model: &str, config: &Config) -> ModelInfo {
    lookup_rows(provider, model, config.providers.get(provider).map(|p| &p.models))
}

pub(crate) fn lookup_in(overrides: &Overrides, provider: &str, model: &str) -> ModelInfo {
    lookup_rows(provider, model, overrides.get(provider))
}

fn lookup_rows(provider: &str, model: &str, own: Option<&BTreeMap<String, ModelInfo>>) -> ModelInfo {
    let id = model.to_ascii_lowercase();
    // The longest pattern is the most specific.
    let own = named(own, &id);
    let own = own.max_by_key(|(p, _)| p.len()).map(|(_, info)| info.clone()).unwrap_or_default();
    let Some(base) = row(provider, &id).map(|r| &r.info) else { return own };
    ModelInfo {
        window: own.window.or(base.window),
        max_output: own.max_output.or(base.max_output),
        input: own.input.or(base.input),
        output: own.output.or(base.output),
        cache_read: own.cache_read.or(base.cache_read),
        cache_write: own.cache_write.or(base.cache_write),
        // A configured price applies to all sizes: the built-in steps do not.
        long: if own.long.is_empty() && own.input.is_none() && own.output.is_none() {
            base.long.clone()
        } else {
            own.long
        },
        images: own.images.or(base.images),
        thinking: own.thinking.or(base.thinking),
        effort: if own.effort.is_empty() { base.effort.clone() } else { own.effort },
        tools: own.tools.or(base.tools),
    }
}

/// The person's entries whose patterns fit an id in lower case.
fn named<'a>(
    own: Option<&'a BTreeMap<String, ModelInfo>>,
    id: &'a str,
) -> impl Iterator<Item = (&'a String, &'a ModelInfo)> {
    own.into_iter().flatten().filter(move |(p, _)| matches(&p.to_ascii_lowercase(), id))
}

/// True when the person's entries limit the output of a model.
pub(crate) fn limits_output(overrides: &Overrides, provider: &str, model: &str) -> bool {
    let id = model.to_ascii_lowercase();
    named(overrides.get(provider), &id).any(|(_, info)| info.max_output.is_some())
}

/// The row of an id in lower case.
fn row(provider: &str, id: &str) -> Option<&'static Row> {
    table().model.iter().find(|row| {
        (row.provider.is_empty() || row.provider.iter().any(|p| p == provider))
            && row.id.iter().any(|p| matches(p, id))
    })
}

/// Whether the table or the person's entries have the model.
pub(crate) fn is_listed(overrides: &Overrides, provider: &str, model: &str) -> bool {
    let id = model.to_ascii_lowercase();
    row(provider, &id).is_some() || named(overrides.get(provider), &id).next().is_some()
}

/// The model to use at a provider when the person chose none.
pub fn default_of(provider: &str) -> Option<&'static str> {
    table().defaults.get(provider).map(String::as_str)
}

/// Whether `text` matches a pattern in which `*` matches any text, including none.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    if rest.is_empty() {
        return true;
    }
    // Each suffix of the rest; patterns are short and have one or two stars.
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| matches(rest, &text[at..]))
}

/// The cost of one request; the length of its prompt can determine the price. `None` when a required price is unknown,
/// never 0.
pub fn cost(usage: &Usage, info: &ModelInfo) -> Option<Cost> {
    let mut sum = Cost(0);
    if info.input.is_none() && info.output.is_none() {
        return None;
    }
    // Vendors charge the whole request at the rate of the highest step that its prompt exceeds.
    let prompt = usage.context();
    let long = info.long.iter().filter(|step| prompt > step.over).max_by_key(|step| step.over);
    let (input, output, cache_read, cache_write) = match long {
        Some(step) => (Some(step.input), Some(step.output), step.cache_read, step.cache_write),
        None => (info.input, info.output, info.cache_read, info.cache_write),
    };
    // Without a price for writing to the cache vendors charge that of the input, and likewise for reads.
    let terms = [
        (usage.input, input),
        (usage.output, output),
        (usage.cache_read, cache_read.or(input)),
        (usage.cache_write, cache_write.or(input)),
    ];
    for (tokens, price) in terms {
        if tokens == 0 {
            continue;
        }
        let price = price.filter(|p| p.is_finite() && *p >= 0.0)?;
        // Dollars per million tokens are millionths of a dollar per token. `as` saturates.
        sum = sum.plus(Cost((tokens as f64 * price).round() as u64));
    }
    Some(sum)
}

/// The ids in a vendor's list of models.
pub(crate) fn ids(body: &[u8], list: &str, field: &str) -> Vec<String> {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let rows = value.get(list).or(Some(&value)).and_then(Value::as_array);
    rows.into_iter().flatten().filter_map(|row| Some(row.get(field)?.as_str()?.to_owned())).collect()
}

#[cfg(test)]
#[path = "models_tests.rs"]
mod tests;
