//! Resource use of a process and its children, from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Clock ticks of `/proc/PID/stat` in a second: fixed at 100 for programs on Linux.
const TICKS: f64 = 100.0;

/// The process and all its living descendants.
fn tree(root: u32) -> BTreeSet<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        if let Some(parent) = stat(pid).get(1).and_then(|p| p.parse().ok()) {
            parents.push((pid, parent));
        }
    }
    let mut out = BTreeSet::from([root]);
    loop {
        let more: Vec<u32> = parents
            .iter()
            .filter(|(pid, parent)| out.contains(parent) && !out.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return out;
        }
        out.extend(more);
    }
}

/// The fields of `/proc/PID/stat` from the state on; empty when it has ended.
fn stat(pid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may contain anything, so fields are counted from its closing bracket.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().map(str::to_owned).collect()
}

/// CPU seconds of the tree, including ended children; in steps of 10 ms.
pub(crate) fn cpu(root: u32) -> f64 {
    let of =
        |pid: u32| -> f64 { stat(pid).iter().skip(11).take(4).filter_map(|v| v.parse::<f64>().ok()).sum() };
    tree(root).into_iter().map(of).sum::<f64>() / TICKS
}

/// One number for each live thread of the tree.
pub(crate) type PerThread = BTreeMap<u32, f64>;

/// Exact CPU milliseconds of each thread.
pub(crate) fn cpu_ms(root: u32) -> PerThread {
    threads(root, "schedstat", |text| Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e6))
}

/// How often each thread slept and was woken.
pub(crate) fn wakes(root: u32) -> PerThread {
    threads(root, "status", |text| {
        text.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
    })
}

fn threads(root: u32, file: &str, read: impl Fn(&str) -> Option<f64>) -> PerThread {
    let mut out = PerThread::new();
    for pid in tree(root) {
        for entry in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
            let text = fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            if let Some(v) = read(&text) {
                out.insert(id, v);
            }
        }
    }
    out
}

/// The increase since `before`, over the threads that still live.
pub(crate) fn since(after: &PerThread, before: &PerThread) -> f64 {
    after.iter().map(|(id, v)| v - before.get(id).copied().unwrap_or(0.0)).sum()
}

/// Peak resident memory in MiB; `None` when it has ended. Of the largest process of the tree, which contains nearly all
/// pages of the others.
pub(crate) fn peak(root: u32) -> Option<f64> {
    let of = |pid: u32| field(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:");
    tree(root).into_iter().filter_map(of).reduce(f64::max)
}

/// Proportional resident memory of the tree, MiB.
pub(crate) fn pss(root: u32) -> f64 {
    let of = |pid: u32| field(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss:");
    tree(root).into_iter().filter_map(of).sum()
}

/// Resident memory of one process, MiB.
pub(crate) fn resident(pid: u32) -> f64 {
    fs::read_to_string(format!("/proc/{pid}/status")).ok().and_then(|s| field(&s, "VmRSS:")).unwrap_or(0.0)
}

/// Number of living descendants.
pub(crate) fn children(root: u32) -> usize {
    tree(root).len().saturating_sub(1)
}

/// A line `NAME   123 kB`, in MiB.
fn field(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|l| l.strip_prefix(name))?;
    Some(rest.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_process() {
        let me = std::process::id();
        assert!(peak(me).is_some_and(|m| m > 0.5));
        assert!(pss(me) > 0.1);
        assert!(!cpu_ms(me).is_empty());
        assert!(cpu(me) >= 0.0);
        let w = wakes(me);
        assert!(since(&wakes(me), &w) >= 0.0);
    }
}
