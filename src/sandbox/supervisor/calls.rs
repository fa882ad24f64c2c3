//! The system calls that change files by their names: where their arguments are.

use tiller_tool::shell::BlockedKind;

/// Where a call has a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathArgument {
    /// Index of the descriptor that a relative path begins at; `None`: the working folder.
    pub folder: Option<usize>,
    /// Index of the pointer to the path.
    pub path: usize,
}

/// Where a call has the flags of open(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenFlags {
    /// It opens nothing.
    None,
    Argument(usize),
    /// In the structure that this argument points to.
    Structure(usize),
    /// Always these.
    Fixed(u64),
}

/// A call that changes files by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileCall {
    pub number: i64,
    pub kind: BlockedKind,
    pub at: PathArgument,
    /// The new name, for those with two.
    pub to: Option<PathArgument>,
    pub open: OpenFlags,
}

const fn here(path: usize) -> PathArgument {
    PathArgument { folder: None, path }
}

const fn at(folder: usize) -> PathArgument {
    PathArgument { folder: Some(folder), path: folder + 1 }
}

const fn open(number: i64, at: PathArgument, open: OpenFlags) -> FileCall {
    FileCall { number, kind: BlockedKind::Write, at, to: None, open }
}

const fn change(number: i64, kind: BlockedKind, at: PathArgument) -> FileCall {
    FileCall { number, kind, at, to: None, open: OpenFlags::None }
}

const fn rename(number: i64, at: PathArgument, to: PathArgument) -> FileCall {
    FileCall { number, kind: BlockedKind::Rename, at, to: Some(to), open: OpenFlags::None }
}

/// On every architecture.
const EVERYWHERE: &[FileCall] = &[
    open(libc::SYS_openat, at(0), OpenFlags::Argument(2)),
    open(libc::SYS_openat2, at(0), OpenFlags::Structure(2)),
    change(libc::SYS_truncate, BlockedKind::Write, here(0)),
    change(libc::SYS_mkdirat, BlockedKind::Create, at(0)),
    change(libc::SYS_mknodat, BlockedKind::Create, at(0)),
    change(libc::SYS_symlinkat, BlockedKind::Create, at(1)),
    change(libc::SYS_linkat, BlockedKind::Create, at(2)),
    change(libc::SYS_unlinkat, BlockedKind::Remove, at(0)),
    rename(libc::SYS_renameat2, at(0), at(2)),
];

#[cfg(target_arch = "x86_64")]
const HERE: &[FileCall] = &[
    open(libc::SYS_open, here(0), OpenFlags::Argument(1)),
    open(libc::SYS_creat, here(0), OpenFlags::Fixed((libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY) as u64)),
    change(libc::SYS_mkdir, BlockedKind::Create, here(0)),
    change(libc::SYS_mknod, BlockedKind::Create, here(0)),
    change(libc::SYS_symlink, BlockedKind::Create, here(1)),
    change(libc::SYS_link, BlockedKind::Create, here(1)),
    change(libc::SYS_unlink, BlockedKind::Remove, here(0)),
    change(libc::SYS_rmdir, BlockedKind::Remove, here(0)),
    rename(libc::SYS_rename, here(0), here(1)),
    rename(libc::SYS_renameat, at(0), at(2)),
];
#[cfg(not(target_arch = "x86_64"))]
const HERE: &[FileCall] = &[rename(libc::SYS_renameat, at(0), at(2))];

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static FileCall> {
    EVERYWHERE.iter().chain(HERE)
}

/// The call of this number.
pub(crate) fn find(number: i64) -> Option<&'static FileCall> {
    all().find(|call| call.number == number)
}
