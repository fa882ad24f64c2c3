//! Properties of the file system of a folder.

use std::path::Path;

/// The inode of an existing folder.
pub(crate) fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().filter(std::fs::Metadata::is_dir).map(|m| m.ino())
}

/// Whether the file system may not report changes that others make: network and foreign file systems.
pub(crate) fn remote(path: &Path) -> bool {
    /// From `statfs(2)`: NFS, SMB, CIFS, SMB2, FUSE, 9P (the Windows disks of WSL), AFS, Ceph, VirtualBox,
    /// Lustre, Coda.
    #[cfg(target_os = "linux")]
    const KINDS: [u32; 11] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x6573_5546,
        0x0102_1997,
        0x5346_414f,
        0x00c3_6400,
        0x786f_4256,
        0x0bd0_0bd0,
        0x7375_7245,
    ];
    #[cfg(target_os = "linux")]
    return rustix::fs::statfs(path).is_ok_and(|s| KINDS.contains(&(s.f_type as u32)));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        false
    }
}
