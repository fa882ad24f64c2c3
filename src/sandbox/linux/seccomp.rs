//! System calls that Landlock does not see, or that are ways around it.
//!
//! With a supervisor, one of the filters does not refuse by itself: its calls wait for the supervisor, which also sees
//! those that change files by their names.
//!
//! A filter sees numbers and arguments, not what pointers lead to: a socket can be refused, an address cannot. So where
//! commands may use loopback only, sockets of TCP are permitted, and the calls with an address wait for the supervisor.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use tiller_tool::shell::BlockedKind;

use crate::SandboxError;
use crate::linux::forks::{self, NAMESPACES};
use crate::policy::{Network, Policy, Profile};
use crate::supervisor::attributes;
use crate::supervisor::calls::{self, OpenFlags};
use crate::supervisor::{self, channel};

/// Rules by the number of the system call. No rule: every call of it is refused.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Never needed by a command, whatever it does.
const REFUSED: &[i64] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_vhangup,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Only on this architecture.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_uselib, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Programs fall back to something else when these do not exist.
const MISSING: &[i64] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// Changes of modes, owners and times, which Landlock does not see. Refused where nothing is to be written.
const METADATA: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
];

/// The same on all architectures; not in the library yet.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

#[cfg(target_arch = "x86_64")]
const METADATA_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const METADATA_HERE: &[i64] = &[];

const TIME_NAMESPACE: u64 = 0x80;

/// Requests that type into a terminal or take it over.
pub(crate) const TERMINAL: &[u64] = &[0x5412, 0x541C, 0x541D];
/// Requests that change flags of a file (immutable, append-only), for which a descriptor for reading is enough.
const FILE_FLAGS: &[u64] = &[0x4008_6602, 0x4004_6602, 0x401c_5820];

/// System V memory, semaphores and queues: their numbers are those of the whole machine, unless in a namespace.
const SYSTEM_V: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
];

/// Extended attributes, which programs do without where a file system has none.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
];

/// Applies all filters to this thread. `supervisor`: gets the listener of the calls that are refused or watched; without
/// one, or where the kernel has no listeners, they are refused here.
pub(crate) fn restrict(
    policy: &Policy,
    namespaces: bool,
    supervisor: Option<UnixStream>,
) -> Result<(), SandboxError> {
    let failed = |e: &dyn std::fmt::Display| SandboxError::new("seccomp", e);
    for program in programs(policy, namespaces).map_err(|e| failed(&e))? {
        seccompiler::apply_filter(&program).map_err(|e| failed(&e))?;
    }
    let refuse = || {
        let refused = refused(policy, namespaces).and_then(|rules| build(rules, libc::EPERM));
        seccompiler::apply_filter(&refused.map_err(|e| failed(&e))?).map_err(|e| failed(&e))
    };
    let Some(stream) = supervisor else { return refuse() };
    match tiller_seccomp::install(&notifying(&watched(policy, namespaces).map_err(|e| failed(&e))?)) {
        Ok(listener) => channel::send(&stream, listener)
            .map_err(|e| SandboxError::new("the supervisor does not respond", e)),
        Err(_) => refuse(),
    }
}

/// Lets a supervisor do the removals of this thread and what it starts, and limit its processes; everything else stays as it
/// is. Without effect where the kernel does not let this process do so: it needs an administrator's rights or
/// `no_new_privs`, which would keep programs like `sudo` from working.
pub(crate) fn watch_outside(supervisor: Option<UnixStream>) -> Result<(), SandboxError> {
    const RETURN: u16 = 0x06;
    const KILL: u32 = 0x8000_0000;
    const ALLOW: u32 = 0x7fff_0000;
    let Some(stream) = supervisor else { return Ok(()) };
    let removes = |call: &&calls::FileCall| matches!(call.kind, BlockedKind::Remove | BlockedKind::Rename);
    let removals = calls::all().filter(removes);
    let mut rules: Rules = removals.map(|call| (call.number, Vec::new())).collect();
    rules.insert(libc::SYS_clone3, Vec::new());
    let program = starts().and_then(|starts| {
        rules.extend(starts);
        build(rules, libc::EPERM)
    });
    let program = program.map_err(|e| SandboxError::new("seccomp", e))?;
    let mut filter = notifying(&program);
    for step in filter.iter_mut().filter(|step| step.code == RETURN && step.k == KILL) {
        // 32-bit programs work outside the sandbox.
        step.k = ALLOW;
    }
    match tiller_seccomp::install(&filter) {
        Ok(listener) => channel::send(&stream, listener)
            .map_err(|e| SandboxError::new("the supervisor does not respond", e)),
        Err(_) => Ok(()),
    }
}

/// The calls that start a process, and those that say what becomes of them when a child ends.
fn starts() -> Result<Rules, BackendError> {
    let mut rules = every(forks::CALLS);
    rules.insert(libc::SYS_clone, vec![rule(vec![masked(0, forks::THREAD, 0)?])?]);
    let child_ends = vec![equal(0, libc::SIGCHLD as u64)?, differs(1, 0)?];
    rules.insert(libc::SYS_rt_sigaction, vec![rule(child_ends)?]);
    Ok(rules)
}

fn build(rules: Rules, errno: i32) -> Result<BpfProgram, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into()
}

/// The calls that wait for a supervisor: what is refused, and what changes files by their names.
fn watched(policy: &Policy, namespaces: bool) -> Result<BpfProgram, BackendError> {
    let mut rules = refused(policy, namespaces)?;
    for (number, more) in starts()? {
        rules.entry(number).or_default().extend(more);
    }
    if policy.loopback_by_supervisor(namespaces) {
        rules.insert(libc::SYS_socket, sockets(&[NETLINK], &INTERNET, true)?);
        rules.extend(every(&supervisor::network::CALLS));
    } else if policy.sockets_by_supervisor() {
        rules.insert(libc::SYS_socket, sockets(&[INTERNET[0], INTERNET[1], NETLINK], &[], true)?);
        rules.extend(every(&supervisor::network::CALLS_IN_NAMESPACES));
    }
    for call in calls::all() {
        let when = match call.open {
            OpenFlags::Argument(index) => {
                let index = u8::try_from(index).unwrap_or_default();
                let mode = libc::O_ACCMODE as u64;
                let flag = |flag: i32| rule(vec![masked(index, flag as u64, flag as u64)?]);
                vec![
                    rule(vec![masked(index, mode, libc::O_WRONLY as u64)?])?,
                    rule(vec![masked(index, mode, libc::O_RDWR as u64)?])?,
                    flag(libc::O_CREAT)?,
                    flag(libc::O_TRUNC)?,
                ]
            }
            _ => Vec::new(),
        };
        rules.insert(call.number, when);
    }
    // Landlock does not see these, and mounts do not know that a file of the workspace has another name outside.
    rules.extend(attributes::numbers().map(|number| (number, Vec::new())));
    if namespaces && policy.network != Network::All {
        rules.insert(libc::SYS_connect, Vec::new());
    }
    build(rules, libc::EPERM)
}

/// The same filter, whose matches wait for a supervisor instead of failing.
fn notifying(filter: &BpfProgram) -> Vec<tiller_seccomp::Instruction> {
    const RETURN: u16 = 0x06;
    let refused = u32::from(SeccompAction::Errno(libc::EPERM.unsigned_abs()));
    let step = |at: &sock_filter| {
        let k = if at.code == RETURN && at.k == refused { tiller_seccomp::NOTIFY } else { at.k };
        tiller_seccomp::Instruction { code: at.code, jt: at.jt, jf: at.jf, k }
    };
    filter.iter().map(step).collect()
}

/// The filters that refuse by themselves, with an error that programs expect.
fn programs(policy: &Policy, namespaces: bool) -> Result<Vec<BpfProgram>, BackendError> {
    let mut all = vec![build(every(MISSING), libc::ENOSYS)?];
    if policy.profile != Profile::Read {
        // Landlock does not see them, and a file of the workspace can have another name outside.
        all.push(build(every(ATTRIBUTES), libc::EOPNOTSUPP)?);
        // The older call of this kind has to work for files in the workspace.
        all.push(build(every(&[FCHMODAT2]), libc::ENOSYS)?);
    }
    if policy.loopback_by_supervisor(namespaces) {
        all.push(build(options()?, libc::ENOPROTOOPT)?);
        // It looks as if it was done: servers ask for it without need.
        let shared = rule(vec![equal(1, SOCKET_LEVEL)?, equal(2, REUSE_PORT)?])?;
        all.push(build(Rules::from([(libc::SYS_setsockopt, vec![shared])]), 0)?);
    }
    if cfg!(target_arch = "x86_64") {
        all.push(only_native_calls());
    }
    Ok(all)
}

const SOCKET_LEVEL: u64 = 1;
/// A server could take connections from one of the person's on the same port.
const REUSE_PORT: u64 = 15;
/// Options of a socket by their level. What is not listed could lead packets elsewhere than their address says (a source
/// route, a device), connect at the first write, or make another kind of socket of it.
const OPTIONS: &[(u64, &[u64])] = &[
    // IP: service, lifetime, size of packets, errors, choice of a port at connecting.
    (0, &[1, 2, 10, 11, 24]),
    // TCP: delays, sizes and limits, and fast opening for servers.
    (6, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 17, 18, 23, 25]),
    // IPv6: lifetime, size of packets, errors, IPv6 only, class.
    (41, &[16, 23, 25, 26, 67]),
];
/// Options of all sockets that choose a device or a route: by its name, a mark, its number.
const ROUTING: &[u64] = &[25, 36, 62];

/// The options that may not be set.
fn options() -> Result<Rules, BackendError> {
    let mut rules = Vec::new();
    for (level, permitted) in OPTIONS {
        let mut conditions = vec![equal(1, *level)?];
        for option in *permitted {
            conditions.push(differs(2, *option)?);
        }
        rules.push(rule(conditions)?);
    }
    for option in ROUTING {
        rules.push(rule(vec![equal(1, SOCKET_LEVEL)?, equal(2, *option)?])?);
    }
    Ok(Rules::from([(libc::SYS_setsockopt, rules)]))
}

/// Calls of the x32 interface have numbers of their own, so that no other rule would hold for them. (Those of 32-bit
/// programs end the process: seccompiler compares the architecture first.)
fn only_native_calls() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD, 0, 0, 0),
        step(JUMP_IF_AT_LEAST, 0, 1, X32),
        step(RETURN, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs()),
        step(RETURN, 0, 0, ALLOW),
    ]
}

/// Every call of these.
fn every(numbers: &[i64]) -> Rules {
    numbers.iter().map(|number| (*number, Vec::new())).collect()
}

fn refused(policy: &Policy, namespaces: bool) -> Result<Rules, BackendError> {
    let mut rules = every(&[REFUSED, REFUSED_HERE].concat());
    if !namespaces {
        rules.extend(every(SYSTEM_V));
    }
    rules.insert(FILE_SETATTR, Vec::new());
    if policy.profile == Profile::Read {
        rules.extend(every(&[METADATA, METADATA_HERE, ATTRIBUTES].concat()));
    }
    let flags = |bits: &[u64]| -> Result<Vec<SeccompRule>, BackendError> {
        bits.iter().map(|bit| rule(vec![masked(0, *bit, *bit)?])).collect()
    };
    rules.insert(libc::SYS_clone, flags(NAMESPACES)?);
    rules.insert(libc::SYS_unshare, flags(&[NAMESPACES, &[TIME_NAMESPACE]].concat())?);
    let requests = TERMINAL.iter().chain(FILE_FLAGS).map(|request| rule(vec![equal(1, *request)?]));
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    // On other processes, by number: 0 is the caller.
    for (number, argument) in [
        (libc::SYS_prlimit64, 0),
        (libc::SYS_sched_setscheduler, 0),
        (libc::SYS_sched_setparam, 0),
        (libc::SYS_sched_setattr, 0),
        (libc::SYS_setpriority, 1),
        (libc::SYS_ioprio_set, 1),
    ] {
        rules.insert(number, vec![rule(vec![differs(argument, 0)?])?]);
    }
    if !namespaces {
        // Libraries for numbers bind their own threads, so it is refused only where there are other processes to be seen.
        rules.insert(libc::SYS_sched_setaffinity, vec![rule(vec![differs(0, 0)?])?]);
    }
    network(&mut rules, policy, namespaces)?;
    Ok(rules)
}

/// Sockets. Those in the file system have no address that a filter could see, so without a supervisor there are none, except
/// for pairs.
fn network(rules: &mut Rules, policy: &Policy, namespaces: bool) -> Result<(), BackendError> {
    const DATAGRAM: u64 = 2;
    const FAST_OPEN: u64 = 0x2000_0000;
    let internet = namespaces || policy.network == Network::All;
    let families: &[u64] = if internet { &[INTERNET[0], INTERNET[1], NETLINK] } else { &[NETLINK] };
    rules.insert(libc::SYS_socket, sockets(families, &[], false)?);
    // A datagram pair can send to any socket in the file system.
    let pairs = vec![rule(vec![masked(1, KIND, DATAGRAM)?])?, rule(vec![differs(0, UNIX)?])?];
    rules.insert(libc::SYS_socketpair, pairs);
    if policy.network != Network::All {
        // It connects without a call of `connect`.
        for (number, argument) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            rules.insert(number, vec![rule(vec![masked(argument, FAST_OPEN, FAST_OPEN)?])?]);
        }
    }
    Ok(())
}

const INTERNET: [u64; 2] = [2, 10];
const NETLINK: u64 = 16;
const UNIX: u64 = 1;
/// The type in the second argument of `socket`.
const KIND: u64 = 0xf;

/// The sockets that are refused: all but those of `families`, of TCP those of `tcp`, and in the file system streams if `unix`
/// says so: datagrams have their address in each call that sends one.
fn sockets(families: &[u64], tcp: &[u64], unix: bool) -> Result<Vec<SeccompRule>, BackendError> {
    const TCP: u64 = 6;
    const MPTCP: u64 = 262;
    let unix: &[u64] = if unix { &[UNIX] } else { &[] };
    let all = families.iter().chain(tcp).chain(unix);
    let others = all.map(|family| differs(0, *family)).collect::<Result<_, _>>()?;
    // Of netlink, the questions about interfaces and routes.
    let netlink = vec![equal(0, NETLINK)?, differs(2, 0)?];
    let mut all = vec![rule(others)?, rule(netlink)?];
    for family in INTERNET {
        all.push(rule(vec![equal(0, family)?, equal(2, MPTCP)?])?);
    }
    for family in tcp {
        all.push(rule(vec![equal(0, *family)?, differs(2, 0)?, differs(2, TCP)?])?);
        all.extend(other_types(*family)?);
    }
    for family in unix {
        all.push(rule(vec![equal(0, *family)?, differs(2, 0)?])?);
        all.extend(other_types(*family)?);
    }
    Ok(all)
}

/// The sockets of a family that are no streams: each bit of the type that another type has, or has not.
fn other_types(family: u64) -> Result<Vec<SeccompRule>, BackendError> {
    const STREAM: u64 = 1;
    let bits = [1, 2, 4, 8_u64].into_iter().filter(|bit| bit & KIND != 0);
    bits.map(|bit| rule(vec![equal(0, family)?, masked(1, bit, !STREAM & bit)?])).collect()
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

fn condition(argument: u8, compare: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    // The kernel reads 32 bits of each argument that is compared here.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value)
}

fn equal(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn differs(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::Ne, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::MaskedEq(mask), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn filters_of_every_policy_can_be_built() {
        for profile in [Profile::Read, Profile::Workspace] {
            for network in [Network::Off, Network::Loopback, Network::Domains, Network::All] {
                let mut policy = Policy::new(profile, Path::new("/"), Path::new("/"), None);
                policy.network = network;
                for namespaces in [false, true] {
                    let mut all = programs(&policy, namespaces).unwrap();
                    all.push(build(refused(&policy, namespaces).unwrap(), libc::EPERM).unwrap());
                    let watched = watched(&policy, namespaces).unwrap();
                    let notifying = notifying(&watched);
                    assert!(notifying.iter().any(|step| step.code == 6 && step.k == tiller_seccomp::NOTIFY));
                    assert!(
                        !notifying.iter().any(|step| step.code == 6 && step.k >> 16 == 5),
                        "refused unseen"
                    );
                    all.push(watched);
                    assert!(all.iter().all(|p| !p.is_empty() && p.len() < 4096), "{profile:?} {network:?}");
                }
            }
        }
    }
}
