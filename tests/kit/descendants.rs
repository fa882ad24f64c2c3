//! Processes below another one.

/// All processes below this one, parents first.
pub fn descendants(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.flat_map(|child| std::iter::once(child).chain(descendants(child))).collect()
}

/// Ends the connections of the ssh server with this process: all of its processes but itself, and none of the commands. Where
/// it does not run as root, it has a process for the connection below the one for the session. False: it has no connection.
pub fn cut_connections(server: u32) -> bool {
    let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let own: Vec<u32> = descendants(server).into_iter().filter(|pid| name(pid).starts_with("sshd")).collect();
    for pid in &own {
        if let Some(pid) = i32::try_from(*pid).ok().and_then(rustix::process::Pid::from_raw) {
            // Some end with the one before.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    !own.is_empty()
}
