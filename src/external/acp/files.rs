//! File requests of the agent: within the job's folder only (by path), and by the engine's rules.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tiller_rpc::{Error, INTERNAL_ERROR, INVALID_PARAMS, NOT_FOUND};

use crate::adapter::MissingFile;
use crate::job::{FileError, Files};

/// The answer to a request of the agent.
pub(crate) type FileAnswer = Result<Value, Error>;

/// The path without `.` and `..`, when it is inside `cwd`.
fn inside(cwd: &Path, path: &str) -> Result<PathBuf, Error> {
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err(Error::new(INVALID_PARAMS, format!("the path must be absolute: {}", path.display())));
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
        Err(Error::new(
            INVALID_PARAMS,
            format!("not allowed: {} is outside {}", plain.display(), cwd.display()),
        ))
    }
}

/// `fs/read_text_file`.
pub(crate) async fn read(
    files: Arc<dyn Files>,
    cwd: PathBuf,
    params: Value,
    missing: MissingFile,
) -> FileAnswer {
    let path = inside(&cwd, params["path"].as_str().unwrap_or_default())?;
    let text = match files.read(&path).await {
        Ok(text) => text,
        Err(FileError::Missing) if missing == MissingFile::Empty => String::new(),
        Err(FileError::Missing) => {
            return Err(Error::new(NOT_FOUND, format!("there is no file {}", path.display())));
        }
        Err(e) => return Err(Error::new(INTERNAL_ERROR, e.to_string())),
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
pub(crate) async fn write(files: Arc<dyn Files>, cwd: PathBuf, params: Value) -> FileAnswer {
    let path = inside(&cwd, params["path"].as_str().unwrap_or_default())?;
    let Some(text) = params["content"].as_str() else {
        return Err(Error::new(INVALID_PARAMS, "content is missing"));
    };
    match files.write(&path, text).await {
        Ok(()) => Ok(json!({})),
        Err(e) => Err(Error::new(INTERNAL_ERROR, e.to_string())),
    }
}
