//! Extended attributes and access lists (ACLs) of a file that is replaced by renaming: the new file receives them, and
//! never gets more rights than the old one had.

use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

use rustix::fs::{Mode, XattrFlags};
use rustix::io::Errno;

/// The access list of a file, as Linux stores it. With one, the group bits of the mode are the list's mask.
const ACL: &CStr = c"system.posix_acl_access";
/// The access list that a folder gives to what is made in it.
const DEFAULT: &CStr = c"system.posix_acl_default";
/// In an access list: the tags of the owning group and of the mask.
const GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
/// The kernel's own limit for the list of names and for one value, in bytes.
const MOST: usize = 64 << 10;

/// The extended attributes of a file, access list included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<(CString, Vec<u8>)>);

/// Reads the attributes of an open file. Unreadable ones are left out; a file system without attributes yields none.
pub fn read(file: impl AsFd) -> Attributes {
    let mut names = vec![0; MOST];
    let Ok(len) = rustix::fs::flistxattr(&file, &mut names[..]) else { return Attributes::default() };
    let mut found = Vec::new();
    for name in names[..len].split(|b| *b == 0).filter(|n| !n.is_empty()) {
        let Ok(name) = CString::new(name) else { continue };
        let mut value = vec![0; MOST];
        if let Ok(len) = rustix::fs::fgetxattr(&file, name.as_c_str(), &mut value[..]) {
            value.truncate(len);
            found.push((name, value));
        }
    }
    Attributes(found)
}

impl Attributes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (name.to_bytes(), value.as_slice()))
    }

    /// Adds an attribute. A name with a NUL byte is invalid and is left out.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        if let Ok(name) = CString::new(name) {
            self.0.push((name, value.to_vec()));
        }
    }

    /// Only those that the file's owner may set: the access lists and user attributes. Security labels and capabilities
    /// are tied to the original file.
    #[must_use]
    pub fn of_the_owner(mut self) -> Self {
        self.0.retain(|(name, _)| {
            [ACL, DEFAULT].contains(&name.as_c_str()) || name.to_bytes().starts_with(b"user.")
        });
        self
    }

    /// Only those with values of more than `most` bytes.
    #[must_use]
    pub fn longer_than(mut self, most: usize) -> Self {
        self.0.retain(|(_, value)| value.len() > most);
        self
    }

    /// Whether both have the same names and values, in any order.
    pub fn same(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|one| other.0.contains(one))
    }

    /// Gives an open folder or file exactly these attributes of its owner, and the permission bits `mode`.
    ///
    /// # Errors
    /// When permissions cannot be set, or an attribute cannot be removed.
    pub fn give_all(&self, to: impl AsFd, mode: u32) -> Result<(), Errno> {
        for (name, _) in read(&to).of_the_owner().0 {
            if self.0.iter().all(|(wanted, _)| *wanted != name) {
                match rustix::fs::fremovexattr(&to, name.as_c_str()) {
                    Ok(()) | Err(Errno::NODATA) => {}
                    Err(e) => return Err(e),
                }
            }
        }
        self.give(&to, mode)
    }

    /// These attributes, and those of `others` with other names.
    #[must_use]
    pub fn or(mut self, others: Self) -> Self {
        for (name, value) in others.0 {
            if self.0.iter().all(|(known, _)| *known != name) {
                self.0.push((name, value));
            }
        }
        self
    }

    /// Sets these attributes and the permission bits `mode` on the open file `new`. The owner must be set before.
    ///
    /// # Errors
    /// When permissions cannot be set, or an inherited access list cannot be removed.
    pub fn give(&self, new: impl AsFd, mode: u32) -> Result<(), Errno> {
        // A folder with a default list gives every new file an access list, which the old file may not have.
        match rustix::fs::fremovexattr(&new, ACL) {
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => {}
            Err(e) => return Err(e),
        }
        let mut mode = mode & 0o7777;
        for (name, value) in &self.0 {
            let set = rustix::fs::fsetxattr(&new, name.as_c_str(), value, XattrFlags::empty());
            if set.is_err() && name.as_c_str() == ACL {
                mode = without_list(mode, value);
            }
            // Labels and capabilities that only the system may set are lost with every write anyway.
        }
        // Last: a change of owner clears set-id bits. With a list, this sets the mask that it has already.
        rustix::fs::fchmod(&new, Mode::from_raw_mode(mode as _))
    }
}

/// The mode of a file that loses its access list: the owning group keeps its own rights, without those that the mask
/// allows others.
fn without_list(mode: u32, list: &[u8]) -> u32 {
    let mut group = 0;
    let mut mask = 0o7;
    for entry in list.get(4..).unwrap_or_default().chunks_exact(8) {
        let (tag, rights) =
            (u16::from_le_bytes([entry[0], entry[1]]), u16::from_le_bytes([entry[2], entry[3]]));
        match tag {
            GROUP => group = rights,
            MASK => mask = rights,
            _ => {}
        }
    }
    mode & !0o070 | u32::from(group & mask & 0o7) << 3
}

/// What tests need to make files with attributes.
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, reason = "a test's own helper")]
pub mod testing {
    use super::{ACL, Attributes, CStr, XattrFlags, read};

    /// An access list: owner rw, owning group nothing, group 12345 rw, mask rw, others nothing.
    pub fn list() -> Vec<u8> {
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in [
            (0x01_u16, 6_u16, u32::MAX),
            (0x04, 0, u32::MAX),
            (0x08, 6, 12345),
            (0x10, 6, u32::MAX),
            (0x20, 0, u32::MAX),
        ] {
            list.extend(tag.to_le_bytes());
            list.extend(rights.to_le_bytes());
            list.extend(id.to_le_bytes());
        }
        list
    }

    /// Whether the file system of a folder has access lists and attributes of users.
    pub fn supported(dir: &std::path::Path) -> bool {
        let path = dir.join(".probe");
        std::fs::write(&path, "").unwrap();
        let ok = rustix::fs::setxattr(&path, ACL, &list(), XattrFlags::empty()).is_ok()
            && rustix::fs::setxattr(&path, c"user.probe", b"1", XattrFlags::empty()).is_ok();
        std::fs::remove_file(&path).unwrap();
        ok
    }

    /// Sets one attribute of a file.
    pub fn set(path: &std::path::Path, name: &CStr, value: &[u8]) {
        rustix::fs::setxattr(path, name, value, XattrFlags::empty()).unwrap();
    }

    /// The attributes of a file.
    pub fn of(path: &std::path::Path) -> Attributes {
        read(std::fs::File::open(path).unwrap())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_never_becomes_the_rights_of_the_group() {
        assert_eq!(without_list(0o660, &testing::list()), 0o600);
        assert_eq!(without_list(0o4771, &testing::list()), 0o4701);
        assert_eq!(without_list(0o664, b"odd"), 0o604, "what cannot be read gives nothing");
    }

    #[test]
    fn a_file_gets_the_attributes_and_never_more_rights() {
        let dir = tempfile::tempdir().unwrap();
        if !testing::supported(dir.path()) {
            eprintln!("skipped: no access lists on this file system");
            return;
        }
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        std::fs::write(&old, "").unwrap();
        std::fs::write(&new, "").unwrap();
        testing::set(&old, c"user.note", b"mine");
        testing::set(&old, ACL, &testing::list());
        let had = testing::of(&old);
        had.give(std::fs::File::open(&new).unwrap(), 0o660).unwrap();
        assert_eq!(testing::of(&new), had);
        Attributes::default().give(std::fs::File::open(&new).unwrap(), 0o640).unwrap();
        assert!(testing::of(&new).iter().all(|(name, _)| name != ACL.to_bytes()));
    }
}
