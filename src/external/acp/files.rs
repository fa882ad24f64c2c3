//! Files that the agent reads and writes through us: by name inside the job's folder only, by the engine's rules.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::adapter::MissingFile;
use crate::job::{FileError, Files};

/// An answer, or code and message of an error.
pub(crate) type Answer = Result<Value, (i64, String)>;

/// Invalid parameters.
const WRONG: i64 = -32602;
/// No such thing.
const MISSING: i64 = -32002;
/// Anything else.
const FAILED: i64 = -32603;

/// The path without `.` and `..`, when it is inside `cwd`.
fn inside(cwd: &Path, path: &str) -> Result<PathBuf, (i64, String)> {
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err((WRONG, format!("the path must be absolute: {}", path.display())));
    }
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    if plain.starts_with(cwd) {
        Ok(plain)
    } else {
        Err((WRONG, format!("not allowed: {} is outside of {}", plain.display(), cwd.display())))
    }
}

/// `fs/read_text_file`.
pub(crate) async fn read(files: Arc<dyn Files>, cwd: PathBuf, params: Value, missing: MissingFile) -> Answer {
    let path = inside(&cwd, params["path"].as_str().unwrap_or_default())?;
    let text = match files.read(&path).await {
        Ok(text) => text,
        Err(FileError::Missing) if missing == MissingFile::Empty => String::new(),
        Err(FileError::Missing) => return Err((MISSING, format!("there is no file {}", path.display()))),
        Err(e) => return Err((FAILED, e.to_string())),
    };
    // Lines from 1.
    let first = params["line"].as_u64().map_or(0, |n| usize::try_from(n.saturating_sub(1)).unwrap_or(0));
    let most = params["limit"].as_u64().and_then(|n| usize::try_from(n).ok());
    let text = match (first, most) {
        (0, None) => text,
        (first, most) => text.split_inclusive('\n').skip(first).take(most.unwrap_or(usize::MAX)).collect(),
    };
    Ok(json!({"content": text}))
}

/// `fs/write_text_file`.
pub(crate) async fn write(files: Arc<dyn Files>, cwd: PathBuf, params: Value) -> Answer {
    let path = inside(&cwd, params["path"].as_str().unwrap_or_default())?;
    let Some(text) = params["content"].as_str() else { return Err((WRONG, "content is missing".into())) };
    match files.write(&path, text).await {
        Ok(()) => Ok(json!({})),
        Err(e) => Err((FAILED, e.to_string())),
    }
}
