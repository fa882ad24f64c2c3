//! Recovery of an interrupted restore: rolled back before the first change, finished after it.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, RenameFlags};

use crate::error::{Result, at};
use crate::names;
use crate::objects::id::Sort;
use crate::objects::place::Lock;
use crate::restore::goal::RecoveryReport;
use crate::restore::journal::{Journal, Phase};
use crate::restore::replace::{Now, Replace};
use crate::restore::{is_leaf, kept, sorted};
use crate::scan::disk;
use crate::shadow::Shadow;

/// Finishes or rolls back the journal, if there is one.
pub(crate) fn run(shadow: &mut Shadow, lock: &Lock) -> Result<Option<RecoveryReport>> {
    let Some((journal, phase)) = Journal::find(&shadow.place.dir, &shadow.steps)? else { return Ok(None) };
    let mut recovered = RecoveryReport {
        before: journal.before,
        to: journal.to,
        after: None,
        done: Vec::new(),
        left: Vec::new(),
        apart: journal.apart.as_ref().map(|name| kept::folder(shadow, name)).filter(|folder| folder.is_dir()),
    };
    if phase == Phase::Staging {
        roll_back(shadow, &journal)?;
        if let Some(copies) = recovered.apart.take() {
            // Of files that were not changed.
            let _ = std::fs::remove_dir_all(copies);
        }
        return Ok(Some(recovered));
    }
    let Some(root) = shadow.root()? else {
        // The whole workspace is gone, and nothing is left to finish.
        Journal::end(&shadow.place.dir, Phase::Going, &shadow.steps)?;
        return Ok(Some(recovered));
    };
    let path = shadow.workspace.join(&journal.staging);
    let staging = match disk::open_dir(root.as_fd(), journal.staging.as_bytes()) {
        Ok(dir) => dir,
        Err(_) => {
            shadow.steps.at("make staging").map_err(at(&path))?;
            rustix::fs::mkdirat(&root, journal.staging.as_bytes(), rustix::fs::Mode::RWXU)
                .map_err(|e| at(&path)(e.into()))?;
            disk::open_dir(root.as_fd(), journal.staging.as_bytes()).map_err(at(&path))?
        }
    };
    let attributes = shadow.attributes(&journal)?;
    let replace = Replace {
        root: root.as_fd(),
        staging: staging.as_fd(),
        steps: &shadow.steps,
        most: shadow.limits.named_bytes(),
        folder_mode: &|_| 0o755,
        attributes: &attributes,
        exact: shadow.kept(journal.to)?.special,
    };
    for number in 0..journal.ops.len() {
        tidy(shadow, &replace, &journal, number)?;
    }
    let fates = shadow.finish(lock, root.as_fd(), staging.as_fd(), &journal)?;
    let seen = shadow.take(lock, None)?;
    let after = shadow.amend(journal.before, seen, &journal.ops, &|n| !fates.contains_key(&n))?;
    recovered.after = Some(after.id);
    (recovered.done, recovered.left) = sorted(&journal.ops, &fates);
    Ok(Some(recovered))
}

/// Examines the staging folder for one file: foreign content goes back to its place, Tiller's own is staged again.
fn tidy(shadow: &Shadow, replace: &Replace<'_>, journal: &Journal, number: usize) -> Result<()> {
    let op = &journal.ops[number];
    let fail = || at(shadow.workspace.join(names::path(&op.path)));
    let (staged, old) = (number.to_string(), format!("{number}.old"));
    let ours =
        |now: Now| now == Now::Nothing || [op.from, op.to].into_iter().flatten().any(|e| now == Now::Is(e));
    for name in [staged.as_bytes(), old.as_bytes()] {
        if ours(replace.now(replace.staging, name)) {
            continue;
        }
        // Swapped out and not compared yet: it was written by others last.
        let Ok(dir) = replace.parent(&op.path, true).map_err(fail())? else { continue };
        let target = names::split(&op.path).1;
        if op.to.is_some_and(|to| replace.now(dir.as_fd(), target) == Now::Is(to)) {
            shadow.steps.at("exchange back").map_err(fail())?;
            let swap = rustix::fs::renameat_with(&dir, target, replace.staging, name, RenameFlags::EXCHANGE);
            swap.map_err(|e| fail()(e.into()))?;
        } else {
            replace.back(dir.as_fd(), target, name).map_err(fail())?;
        }
    }
    let Some(to) = op.to.filter(|_| is_leaf(op.to)) else { return Ok(()) };
    if replace.now(replace.staging, staged.as_bytes()) == Now::Is(to) {
        return Ok(());
    }
    shadow.steps.at("clear staged").map_err(fail())?;
    match rustix::fs::unlinkat(replace.staging, staged.as_bytes(), AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(e) => return Err(fail()(e.into())),
    }
    let data = shadow.objects.read(&to.id, Sort::Content)?;
    replace.stage_again(number, op, to, &data).map_err(fail())?;
    Ok(())
}

/// Removes staged contents. No file was changed yet.
pub(crate) fn roll_back(shadow: &Shadow, journal: &Journal) -> Result<()> {
    if let Some(root) = shadow.root()?
        && let Ok(staging) = disk::open_dir(root.as_fd(), journal.staging.as_bytes())
    {
        shadow.clear(root.as_fd(), staging.as_fd(), journal)?;
    }
    Journal::end(&shadow.place.dir, Phase::Staging, &shadow.steps)
}
