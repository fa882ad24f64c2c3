//! Reads the files that a scan found changed, on several threads when there are many.

use std::num::NonZero;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use tiller_fs::Attributes;

use crate::error::{Result, at};
use crate::names;
use crate::objects::id::{Id, Sort};
use crate::objects::object::Kind;
use crate::objects::{self, Batch, Objects};
use crate::report::Reason;
use crate::scan::Job;
use crate::scan::disk::{self, Folders, ReadFailure, Stamp};

/// The result of a job.
#[derive(Clone, Debug)]
pub(crate) enum Done {
    Read { stamp: Stamp, settled: bool, kind: Kind, id: Id, attributes: Option<Box<Attributes>> },
    Skip(Reason),
    Gone,
}

/// A content that the store does not have: its length and its compressed bytes.
type Fresh = Option<(usize, Vec<u8>)>;

/// Reads the jobs and puts new contents into the batch. Returns one result for each job, in order.
pub(crate) fn fill(
    root: BorrowedFd<'_>,
    jobs: &[Job],
    objects: &Objects,
    batch: &mut Batch<'_>,
) -> Result<Vec<Done>> {
    let mut done = vec![Done::Gone; jobs.len()];
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(4);
    if jobs.len() < 64 || threads < 2 {
        let mut folders = Folders::new(root);
        for (job, what) in jobs.iter().enumerate() {
            let (answer, fresh) = one(&mut folders, what, objects)?;
            keep(batch, &answer, fresh)?;
            done[job] = answer;
        }
        return Ok(done);
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // Readers hold the senders; they end when no job is left, or when the receiver is dropped because writing
        // failed. The receiver ends when all readers have ended. The capacity is small, since contents may be large.
        let (tx, rx) = sync_channel(8);
        for _ in 0..threads {
            let (tx, next) = (tx.clone(), &next);
            scope.spawn(move || {
                let mut folders = Folders::new(root);
                loop {
                    let from = next.fetch_add(32, Ordering::Relaxed);
                    if from >= jobs.len() {
                        return;
                    }
                    let upto = jobs.len().min(from + 32);
                    let some: Vec<_> =
                        (from..upto).map(|job| (job, one(&mut folders, &jobs[job], objects))).collect();
                    if tx.send(some).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tx);
        for some in rx {
            for (job, result) in some {
                let (answer, fresh) = result?;
                keep(batch, &answer, fresh)?;
                done[job] = answer;
            }
        }
        Ok(done)
    })
}

fn keep(batch: &mut Batch<'_>, answer: &Done, fresh: Fresh) -> Result<()> {
    if let (Done::Read { id, .. }, Some((len, packed))) = (answer, fresh)
        && !batch.has(id)?
    {
        batch.put_packed(*id, Sort::Content, len, &packed)?;
    }
    Ok(())
}

fn one(folders: &mut Folders<'_>, job: &Job, objects: &Objects) -> Result<(Done, Fresh)> {
    let path = job.path.as_slice();
    let (_, name) = names::split(path);
    let read = folders.of(path).map_err(ReadFailure::from).and_then(|dir| disk::read(dir, name, job.most));
    let got = match read {
        Ok(got) => got,
        Err(ReadFailure::Gone) => return Ok((Done::Gone, None)),
        Err(ReadFailure::TooLarge) => return Ok((Done::Skip(Reason::TooLarge), None)),
        Err(ReadFailure::Other) => return Ok((Done::Skip(Reason::Special), None)),
        Err(ReadFailure::Failed) => return Ok((Done::Skip(Reason::Unreadable), None)),
    };
    let id = got.entry.id;
    let fresh = if objects.has(&id)? {
        None
    } else {
        let packed = objects::compress(Sort::Content, &got.data).map_err(at(names::path(path)))?;
        Some((got.data.len(), packed))
    };
    let attributes = (!got.attributes.is_empty()).then(|| Box::new(got.attributes));
    Ok((Done::Read { stamp: got.stamp, settled: got.settled, kind: got.entry.kind, id, attributes }, fresh))
}
