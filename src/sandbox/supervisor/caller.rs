//! The thread behind a call: its memory, its descriptors and folders, its name.
//!
//! Everything here goes by the number of a thread, which may be another one's when the caller is ended: what was read
//! counts only if the call still waits afterwards (`Listener::waits`).

use std::cell::OnceCell;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::supervisor::calls::PathArgument;

/// The longest path, its end included.
const LONGEST: usize = 4096;
const PAGE: u64 = 4096;
/// For pidfd_open(2): a thread of its own.
const PIDFD_THREAD: u32 = libc::O_EXCL as u32;

/// The caller of one call.
#[derive(Debug)]
pub(crate) struct Caller {
    thread: u32,
    memory: OnceCell<File>,
}

impl Caller {
    pub(crate) fn new(thread: u32) -> Self {
        Self { thread, memory: OnceCell::new() }
    }

    pub(crate) fn thread(&self) -> u32 {
        self.thread
    }

    fn memory(&self) -> Result<&File, Errno> {
        if let Some(memory) = self.memory.get() {
            return Ok(memory);
        }
        let file = File::open(format!("/proc/{}/mem", self.thread))
            .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::PERM))?;
        Ok(self.memory.get_or_init(|| file))
    }

    /// Bytes of its memory.
    ///
    /// # Errors
    /// `FAULT` when nothing is there, others when its memory may not be read.
    pub(crate) fn bytes<const N: usize>(&self, pointer: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.memory()?.read_exact_at(&mut bytes, pointer).map_err(|_| Errno::FAULT)?;
        Ok(bytes)
    }

    /// So many bytes of its memory.
    ///
    /// # Errors
    /// As for [`Self::bytes`].
    pub(crate) fn some_bytes(&self, pointer: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        self.memory()?.read_exact_at(&mut bytes, pointer).map_err(|_| Errno::FAULT)?;
        Ok(bytes)
    }

    /// Writes into its memory, if it `waits` once that is open: from then on it cannot be another one's.
    ///
    /// # Errors
    /// `FAULT` when nothing is there, `SRCH` when it does not wait, others when its memory may not be written.
    pub(crate) fn write(
        &self,
        pointer: u64,
        bytes: &[u8],
        waits: impl FnOnce() -> bool,
    ) -> Result<(), Errno> {
        let memory = File::options().write(true).open(format!("/proc/{}/mem", self.thread));
        let memory = memory.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::PERM))?;
        if !waits() {
            return Err(Errno::SRCH);
        }
        memory.write_all_at(bytes, pointer).map_err(|_| Errno::FAULT)
    }

    /// A text that ends with a zero, without it.
    ///
    /// # Errors
    /// `FAULT` when nothing is there, `NAMETOOLONG` when it is longer than a path, others when its memory may not be
    /// read.
    pub(crate) fn text(&self, pointer: u64) -> Result<Vec<u8>, Errno> {
        let memory = self.memory()?;
        let mut text = Vec::with_capacity(256);
        let mut buffer = [0; 256];
        let mut at = pointer;
        while text.len() < LONGEST {
            // Not over the end of a page: the next one may not be there.
            let rest = usize::try_from(PAGE - at % PAGE).unwrap_or(buffer.len()).min(buffer.len());
            let got = memory.read_at(&mut buffer[..rest], at).map_err(|_| Errno::FAULT)?;
            if got == 0 {
                return Err(Errno::FAULT);
            }
            let part = &buffer[..got];
            if let Some(end) = part.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&part[..end]);
                return if text.len() < LONGEST { Ok(text) } else { Err(Errno::NAMETOOLONG) };
            }
            text.extend_from_slice(part);
            at = at.checked_add(got as u64).ok_or(Errno::FAULT)?;
        }
        Err(Errno::NAMETOOLONG)
    }

    /// What a link below its folder in /proc leads to.
    fn open(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/{}/{name}", self.thread);
        openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty())
    }

    pub(crate) fn root(&self) -> Result<OwnedFd, Errno> {
        self.open("root", OFlags::DIRECTORY)
    }

    /// What one of its descriptors stands for.
    ///
    /// # Errors
    /// `BADF` when it has none of this number.
    pub(crate) fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        self.open(&format!("fd/{number}"), OFlags::empty()).map_err(|e| match e {
            Errno::NOENT => Errno::BADF,
            e => e,
        })
    }

    /// A copy of one of its descriptors: the same open file, whatever the caller does with the number afterwards.
    ///
    /// # Errors
    /// `BADF` when it has none of this number, others when this process may not take it.
    pub(crate) fn copy(&self, number: i32) -> Result<OwnedFd, Errno> {
        if number < 0 {
            return Err(Errno::BADF);
        }
        let thread = i32::try_from(self.thread).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let process = match pidfd_open(thread, PidfdFlags::from_bits_retain(PIDFD_THREAD)) {
            // Kernels before 6.9 know processes only. Threads usually share its descriptors.
            Err(Errno::INVAL) => {
                let process = self.process().and_then(|number| i32::try_from(number).ok());
                pidfd_open(process.and_then(Pid::from_raw).ok_or(Errno::SRCH)?, PidfdFlags::empty())?
            }
            found => found?,
        };
        pidfd_getfd(process, number, PidfdGetfdFlags::empty())
    }

    /// Where a relative path of this argument begins.
    ///
    /// # Errors
    /// `BADF` for a descriptor that it has not.
    pub(crate) fn base(&self, argument: PathArgument, args: &[u64; 6]) -> Result<OwnedFd, Errno> {
        let number = argument.folder.map(|index| descriptor_number(args[index]));
        match number {
            None | Some(libc::AT_FDCWD) => self.open("cwd", OFlags::DIRECTORY),
            Some(number) if number < 0 => Err(Errno::BADF),
            Some(number) => self.descriptor(number),
        }
    }

    /// Where this path begins: the descriptor beside an absolute one is not looked at.
    ///
    /// # Errors
    /// As for [`Self::base`].
    pub(crate) fn start(
        &self,
        argument: PathArgument,
        args: &[u64; 6],
        path: &[u8],
    ) -> Result<OwnedFd, Errno> {
        if path.first() == Some(&b'/') { self.root() } else { self.base(argument, args) }
    }

    /// Name of its program; empty when it is gone.
    pub(crate) fn program(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.thread)).unwrap_or_default();
        let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")).unwrap_or_default().trim();
        let name = std::fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
        String::from_utf8_lossy(&name).trim().to_owned()
    }

    /// Name of the file that it runs.
    pub(crate) fn executable(&self) -> Option<String> {
        let path = std::fs::read_link(format!("/proc/{}/exe", self.thread)).ok()?;
        path.file_name()?.to_str().map(str::to_owned)
    }

    /// Its standard streams, as far as they are open.
    pub(crate) fn streams(&self) -> impl Iterator<Item = OwnedFd> + '_ {
        (0..3).filter_map(|number| self.descriptor(number).ok())
    }

    /// Its controlling terminal, if that is one of its streams or in its `/dev/pts`.
    pub(crate) fn terminal(&self) -> Option<OwnedFd> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.thread)).ok()?;
        // After the name, which may have any characters: state, parent, group, session, terminal (proc(5)).
        let device: i64 = stat.rsplit_once(')')?.1.split_whitespace().nth(4)?.parse().ok()?;
        let is_it = |fd: &OwnedFd| {
            fstat(fd).is_ok_and(|file| i64::try_from(file.st_rdev).is_ok_and(|number| number == device))
        };
        let named = || {
            let number = rustix::fs::minor(u64::try_from(device).ok()?);
            let name = format!("dev/pts/{number}");
            openat(self.root().ok()?, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
        };
        self.streams().find(is_it).or_else(|| named().filter(is_it))
    }

    /// Its mask of modes (umask(2)).
    pub(crate) fn mask(&self) -> u32 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.thread)).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
    }

    /// Number of its process.
    pub(crate) fn process(&self) -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.thread)).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
    }
}

/// The kernel reads the lower half of an argument that is a descriptor.
pub(crate) fn descriptor_number(argument: u64) -> i32 {
    (argument & 0xffff_ffff) as u32 as i32
}
