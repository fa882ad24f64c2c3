//! The log: `<state>/log/tiller.log`, for finding faults of Tiller. Only warnings unless `TILLER_LOG` says otherwise;
//! secrets are masked before anything reaches the disk, and a separate thread writes.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tiller_engine::Redact;
use tracing::Subscriber;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// Maximum bytes of one file.
const SIZE: u64 = 2 << 20;
/// Files that are kept: `tiller.log`, `tiller.log.1`, ...
const FILES: u32 = 5;
/// Maximum number of waiting lines; further ones are dropped.
const LINES: usize = 1024;

/// Keeps the log open; waiting lines are written when it is dropped.
#[derive(Debug)]
pub(super) struct Logs(#[expect(dead_code, reason = "dropping it is its use")] WorkerGuard);

/// Starts the log of this process. Later calls change nothing: the first log stays.
///
/// # Errors
/// As text, when it cannot be written. Everything else works without it.
pub(super) fn start(folder: &Path, filter: Option<&str>, redact: Redact) -> Result<Logs, String> {
    let file = RotatingFile::open(folder)
        .map_err(|e| format!("the log in {} cannot be written: {e}", folder.display()))?;
    // The buffer is allocated at once; the default of 128,000 lines takes four megabytes.
    let (writer, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(LINES).finish(MaskingWriter { file, redact });
    let subscriber = subscriber(writer, filter).map_err(|e| format!("TILLER_LOG cannot be used: {e}"))?;
    // A second engine in one process (tests) logs where the first does.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(Logs(guard))
}

fn subscriber(
    writer: NonBlocking,
    filter: Option<&str>,
) -> Result<impl Subscriber + Send + Sync + 'static, tracing_subscriber::filter::ParseError> {
    let filter = EnvFilter::try_new(filter.unwrap_or("warn"))?;
    Ok(tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(writer).finish())
}

/// Masks secrets. Each write is one whole event.
struct MaskingWriter {
    file: RotatingFile,
    redact: Redact,
}

impl Write for MaskingWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file.line((self.redact)(&String::from_utf8_lossy(buf)).as_bytes())?;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.file.flush()
    }
}

/// A file that is rotated when it is full.
struct RotatingFile {
    path: PathBuf,
    file: File,
    size: u64,
}

impl RotatingFile {
    fn open(folder: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
        let path = folder.join("tiller.log");
        let (file, size) = fresh(&path)?;
        Ok(Self { path, file, size })
    }

    fn line(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size + bytes.len() as u64 > SIZE {
            self.rotate()?;
        }
        self.file.write_all(bytes)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let name = |n: u32| match n {
            0 => self.path.clone(),
            n => self.path.with_extension(format!("log.{n}")),
        };
        for n in (0..FILES - 1).rev() {
            // When there are fewer files, there is nothing to move.
            let _ = std::fs::rename(name(n), name(n + 1));
        }
        (self.file, self.size) = fresh(&self.path)?;
        Ok(())
    }
}

fn fresh(path: &Path) -> io::Result<(File, u64)> {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn warnings_are_logged_without_secrets_in_private_bounded_files() {
        let tmp = tempfile::tempdir().unwrap();
        let folder = tmp.path().join("state/log");
        let redactor = tiller_permit::Redactor::new(["hunter2-hunter2".to_owned()]);
        let redact: Redact = Arc::new(move |t: &str| redactor.redact(t).into_owned());
        let file = RotatingFile::open(&folder).unwrap();
        // The buffer is allocated at once; the default of 128,000 lines takes four megabytes.
        let (writer, guard) =
            NonBlockingBuilder::default().buffered_lines_limit(LINES).finish(MaskingWriter { file, redact });
        tracing::subscriber::with_default(subscriber(writer, None).unwrap(), || {
            tracing::info!("not this");
            tracing::warn!(key = "hunter2-hunter2", "but this");
        });
        drop(guard);
        let text = std::fs::read_to_string(folder.join("tiller.log")).unwrap();
        assert!(text.contains("but this") && !text.contains("not this"), "{text}");
        assert!(!text.contains("hunter2") && text.contains("[redacted"), "{text}");
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("tiller.log"))), (0o700, 0o600));
    }

    #[test]
    fn a_full_log_makes_room_and_no_more_than_five_are_kept() {
        let tmp = tempfile::tempdir().unwrap();
        let mut log = RotatingFile::open(tmp.path()).unwrap();
        let line = vec![b'x'; usize::try_from(SIZE).unwrap() / 2 + 1];
        for _ in 0..10 {
            log.line(&line).unwrap();
        }
        let mut names: Vec<String> = std::fs::read_dir(tmp.path())
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["tiller.log", "tiller.log.1", "tiller.log.2", "tiller.log.3", "tiller.log.4"]);
        // An existing log is appended to.
        drop(log);
        let log = RotatingFile::open(tmp.path()).unwrap();
        assert_eq!(log.size, line.len() as u64);
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_told() {
        let tmp = tempfile::tempdir().unwrap();
        let why = start(tmp.path(), Some("a=b=c"), Arc::new(str::to_owned)).unwrap_err();
        assert!(why.contains("TILLER_LOG"), "{why}");
    }
}
