//! What a system call that the filter refuses was meant to do, for people.

use tiller_tool::shell::BlockedKind;

/// What was tried, and whether programs do that as a matter of course.
pub(super) struct Meaning {
    pub kind: BlockedKind,
    pub words: String,
    pub minor: bool,
}

fn meaning(kind: BlockedKind, words: impl Into<String>) -> Meaning {
    Meaning { kind, words: words.into(), minor: false }
}

/// Groups of calls by what they are for.
const GROUPS: &[(&[i64], &str, bool)] = &[
    (&[libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl], "the kernel keyring", false),
    (
        &[
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_move_mount,
            libc::SYS_open_tree,
            libc::SYS_fsopen,
            libc::SYS_fsmount,
            libc::SYS_mount_setattr,
        ],
        "mounting",
        false,
    ),
    (
        &[libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat],
        "changing modes, owners or times of files",
        false,
    ),
    (&[libc::SYS_chroot], "chroot", false),
    (&[libc::SYS_clone, libc::SYS_unshare, libc::SYS_setns], "new namespaces", false),
    (
        &[
            libc::SYS_prlimit64,
            libc::SYS_sched_setscheduler,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setattr,
            libc::SYS_sched_setaffinity,
            libc::SYS_setpriority,
            libc::SYS_ioprio_set,
        ],
        "limits of another process",
        true,
    ),
    (
        &[
            libc::SYS_shmget,
            libc::SYS_shmat,
            libc::SYS_shmctl,
            libc::SYS_semget,
            libc::SYS_semop,
            libc::SYS_semctl,
            libc::SYS_msgget,
            libc::SYS_msgsnd,
            libc::SYS_msgrcv,
        ],
        "shared memory of the system",
        false,
    ),
    (&[libc::SYS_bpf, libc::SYS_perf_event_open], "tracing the kernel", false),
    (&[libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module], "kernel modules", false),
    (
        &[libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_clock_adjtime, libc::SYS_adjtimex],
        "the system's clock",
        true,
    ),
    (&[libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg], "the network", false),
];

/// What this call was for.
pub(super) fn explain(number: i64, args: &[u64; 6]) -> Meaning {
    match number {
        libc::SYS_socket => return socket(args[0] & 0xffff_ffff, args[1] & 0xffff_ffff),
        libc::SYS_socketpair => {
            return Meaning { minor: true, ..meaning(BlockedKind::Socket, "a pair of datagram sockets") };
        }
        libc::SYS_ioctl => {
            let terminal = crate::linux::seccomp::TERMINAL.contains(&(args[1] & 0xffff_ffff));
            let words = if terminal { "typing into the terminal" } else { "flags of a file" };
            return meaning(BlockedKind::Call, words);
        }
        _ => {}
    }
    let group = GROUPS.iter().find(|(numbers, ..)| numbers.contains(&number));
    match group {
        Some((_, words, minor)) => Meaning { minor: *minor, ..meaning(BlockedKind::Call, *words) },
        None => meaning(BlockedKind::Call, format!("system call {number}")),
    }
}

fn socket(family: u64, kind: u64) -> Meaning {
    const DATAGRAM: u64 = libc::SOCK_DGRAM as u64;
    const CLOSES: u64 = libc::SOCK_CLOEXEC as u64;
    match family {
        // The C library orders the addresses of a name by such sockets, and does without. Requests to name servers go by other sockets.
        2 | 10 if kind == DATAGRAM | CLOSES => Meaning { minor: true, ..meaning(BlockedKind::Socket, "UDP") },
        // Looked for at every question about users and hosts, and done without.
        1 => Meaning { minor: true, ..meaning(BlockedKind::Socket, "Unix sockets") },
        2 | 10 => meaning(BlockedKind::Socket, "the network"),
        16 => Meaning { minor: true, ..meaning(BlockedKind::Socket, "netlink sockets") },
        other => meaning(BlockedKind::Socket, format!("sockets of family {other}")),
    }
}
