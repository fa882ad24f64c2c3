//! Opens a connection and checks its schema and pages.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::error::{Result, StoreError};
use crate::open::Options;
use crate::open::connect::{self, Target};
use crate::open::migrate::{self, DatabaseKind};

/// Time limit of the check after an unclean end. Damage that it does not reach is found when it is read.
const CHECK: Duration = Duration::from_millis(150);

/// Time limit of the check after signs of damage.
const FULL_CHECK: Duration = Duration::from_secs(3);

/// A connection for writing, with the present schema and (where asked for) checked.
pub(crate) fn open_writer(
    target: &Target,
    check: Check,
    no_log_ok: bool,
    options: &Options,
) -> Result<Connection> {
    let path = target.path();
    let mut conn = connect::probe(target)?;
    let standing = migrate::judge(&conn, path, migrate::latest())?;
    if standing != DatabaseKind::Empty {
        self_check(&mut conn, path, check)?;
    }
    let log = connect::into_writer(&conn, target)?;
    if !log && !no_log_ok {
        return Err(StoreError::Network {
            path: path.into(),
            kind: "a file system without shared memory".into(),
        });
    }
    let file = target.is_file().then_some(path);
    migrate::migrate(&conn, file, standing, migrate::MIGRATIONS, options.clock.now())?;
    Ok(conn)
}

/// How thoroughly a database is checked when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    None,
    /// Ended after [`CHECK`].
    Quick,
    /// Damage was found in the last run, or another program changed the files: indexes are compared with tables, too.
    Full,
}

/// SQLite's own check.
fn self_check(conn: &mut Connection, path: &Path, check: Check) -> Result<()> {
    let end = match check {
        Check::None => return Ok(()),
        Check::Quick => Instant::now() + CHECK,
        Check::Full => Instant::now() + FULL_CHECK,
    };
    let pragma = if check == Check::Full { "integrity_check" } else { "quick_check" };
    let sql = |e: rusqlite::Error| StoreError::from_sql(&e, path);
    conn.progress_handler(1000, Some(move || Instant::now() > end)).map_err(sql)?;
    let verdict = conn.query_row(&format!("PRAGMA {pragma}(1)"), [], |r| r.get::<_, String>(0));
    conn.progress_handler(0, None::<fn() -> bool>).map_err(sql)?;
    match verdict {
        Ok(text) if text == "ok" => Ok(()),
        Ok(text) => Err(StoreError::Corrupt { path: path.into(), detail: text }),
        Err(rusqlite::Error::SqliteFailure(code, _))
            if code.code == rusqlite::ErrorCode::OperationInterrupted =>
        {
            tracing::info!("the check after an unclean end was cut short");
            Ok(())
        }
        Err(error) => Err(sql(error)),
    }
}
