//! Leases: which process has a head of a session open. A process holds a lease until it releases it or ends, so taking
//! one does not wait for the disk.

pub(crate) mod hold;
pub(crate) mod process;

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use tiller_protocol::SessionId;
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Leases;
use crate::lease::hold::{LeaseFile, LivenessCheck};
use crate::lease::process::Process;
use crate::write::ticket::Ticket;

/// Proof that this process holds a head of a session. Part of each [`crate::Append`], so that a process that lost the
/// lease cannot write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub session: SessionId,
    /// Name of the head.
    pub head: String,
    nonce: Uuid,
}

/// How to take a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireMode {
    /// Only when no living process holds it.
    IfFree,
    /// In any case, by the person's choice. The previous holder cannot write any more.
    Force,
}

/// Ends leases whose holders are certainly dead, although their processes cannot be checked from here: those of other
/// namespaces, and of programs that locked no file. The caller has exclusive access to the database.
pub(crate) fn end_stale(conn: &Connection) -> Result<()> {
    let here = Process::current();
    let stale: bool = conn.query_row(
        "SELECT EXISTS (SELECT 1 FROM leases WHERE space <> ?1 OR boot <> ?2)",
        params![here.space, here.boot],
        |r| r.get(0),
    )?;
    if stale {
        conn.execute("DELETE FROM leases WHERE space <> ?1 OR boot <> ?2", params![here.space, here.boot])?;
    }
    Ok(())
}

/// Reads a process from four columns, beginning with `first`.
pub(crate) fn process_from(row: &Row<'_>, first: usize) -> rusqlite::Result<Process> {
    Ok(Process {
        pid: row.get(first)?,
        start: row.get(first + 1)?,
        boot: row.get(first + 2)?,
        space: row.get(first + 3)?,
    })
}

fn holder(conn: &Connection, session: SessionId, head: &str) -> Result<Option<(Uuid, Process)>> {
    Ok(conn
        .prepare_cached("SELECT nonce, pid, start, boot, space FROM leases WHERE session = ?1 AND head = ?2")?
        .query_row(params![session.0, head], |r| Ok((r.get(0)?, process_from(r, 1)?)))
        .optional()?)
}

/// Within an append: fails unless the lease is still held.
pub(crate) fn must_hold(conn: &Connection, lease: &Lease) -> Result<()> {
    match holder(conn, lease.session, &lease.head)? {
        Some((nonce, _)) if nonce == lease.nonce => Ok(()),
        Some((_, process)) => Err(StoreError::Held { holder: format!("process {}", process.pid) }),
        None => Err(StoreError::Held { holder: "another process".into() }),
    }
}

impl Leases<'_> {
    /// Takes a head of a session for this process. A dead holder is replaced at once.
    ///
    /// The ticket's error is [`StoreError::Held`] when another holder is alive (also one in this process).
    pub fn acquire(&self, session: SessionId, head: &str, mode: AcquireMode) -> Ticket<Lease> {
        let now = self.store.now();
        // Not from the id source: two processes must never get the same value, not even in a test.
        let nonce = Uuid::now_v7();
        let target = &self.store.inner.target;
        // Before the lease becomes visible to others.
        let hold = if target.is_file() { LeaseFile::take(target.path(), nonce).map(Arc::new) } else { None };
        self.acquire_as((session, head), mode, Process::current(), (nonce, hold), now.millis())
    }

    pub(crate) fn acquire_as(
        &self,
        (session, head): (SessionId, &str),
        mode: AcquireMode,
        me: Process,
        (nonce, hold): (Uuid, Option<Arc<LeaseFile>>),
        now: i64,
    ) -> Ticket<Lease> {
        let head = head.to_owned();
        let holds = self.store.inner.holds.clone();
        self.store.write_passing(move |conn| {
            if mode == AcquireMode::IfFree
                && let Some((nonce, process)) = holder(conn, session, &head)?
                && LivenessCheck::of(conn).alive(nonce, &process)
            {
                return Err(StoreError::Held { holder: format!("process {}", process.pid) });
            }
            conn.prepare_cached(
                "INSERT OR REPLACE INTO leases(session, head, nonce, pid, start, boot, space, taken)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![session.0, head, nonce, me.pid, me.start, me.boot, me.space, now])?;
            holds.keep(nonce, hold.as_ref());
            Ok(Lease { session, head: head.clone(), nonce })
        })
    }

    /// Checks that a lease is still held. (A lease ends with its process, so there is nothing to renew.)
    ///
    /// # Errors
    /// [`StoreError::Held`] when it was taken over.
    pub fn check(&self, lease: &Lease) -> Result<()> {
        self.store.read(|conn| must_hold(conn, lease))
    }

    /// Releases a head. A lease that was taken over stays with its new holder.
    pub fn release(&self, lease: Lease) -> Ticket<()> {
        let holds = self.store.inner.holds.clone();
        self.store.write_passing(move |conn| {
            conn.prepare_cached("DELETE FROM leases WHERE session = ?1 AND head = ?2 AND nonce = ?3")?
                .execute(params![lease.session.0, lease.head, lease.nonce])?;
            holds.end(lease.nonce);
            Ok(())
        })
    }

    /// The living process that has this head of a session open.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn holder(&self, session: SessionId, head: &str) -> Result<Option<Process>> {
        self.store.read(|conn| {
            let judge = LivenessCheck::of(conn);
            Ok(holder(conn, session, head)?.filter(|(nonce, p)| judge.alive(*nonce, p)).map(|(_, p)| p))
        })
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
