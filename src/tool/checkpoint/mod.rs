//! Tools that give the present state of the files a name, and go back to a named state.

mod create;
mod restore;

pub use create::Checkpoint;
pub use restore::Restore;

/// Characters of a name.
const NAME: usize = 80;

/// A name as it is kept: one plain line.
fn name(args: &serde_json::Value) -> Result<String, crate::ToolError> {
    let args: Args = crate::schema::read(args)?;
    let words = args.name.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = crate::text::visible(&words).into_owned();
    if name.is_empty() || name.chars().count() > NAME {
        return Err(crate::ToolError::Tell(format!("name must have 1 to {NAME} characters")));
    }
    Ok(name)
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    name: String,
}

#[cfg(test)]
mod tests;
