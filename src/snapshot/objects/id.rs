//! Object ids: SHA-256 as git computes it, so that files made to collide under SHA-1 stay distinct.

use std::fmt;
use std::str::FromStr;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Id of a snapshot, or of the content of a file or folder in one: 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(crate) [u8; 32]);

/// The type of an object. The numbers are those of git's packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Snapshot = 1,
    Folder = 2,
    Content = 3,
}

impl Sort {
    pub(crate) fn from_bits(bits: u8) -> Option<Self> {
        [Self::Snapshot, Self::Folder, Self::Content].into_iter().find(|s| *s as u8 == bits)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Snapshot => "commit",
            Self::Folder => "tree",
            Self::Content => "blob",
        }
    }
}

impl Id {
    /// The id that git gives to an object.
    pub(crate) fn of(sort: Sort, data: &[u8]) -> Self {
        let mut hash = Context::new(&SHA256);
        hash.update(format!("{} {}\0", sort.word(), data.len()).as_bytes());
        hash.update(data);
        Self::finish(hash)
    }

    pub(crate) fn finish(hash: Context) -> Self {
        let mut id = [0; 32];
        id.copy_from_slice(hash.finish().as_ref());
        Self(id)
    }

    /// From a slice; `None` unless it has 32 bytes.
    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The first digits, for people.
    pub fn short(&self) -> String {
        self.to_string().chars().take(10).collect()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.short())
    }
}

/// The text is not 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a snapshot ID (64 hex digits)")]
pub struct BadId;

impl FromStr for Id {
    type Err = BadId;

    fn from_str(s: &str) -> Result<Self, BadId> {
        let digits = s.as_bytes();
        if digits.len() != 64 {
            return Err(BadId);
        }
        let value = |d: u8| (d as char).to_digit(16).and_then(|v| u8::try_from(v).ok()).ok_or(BadId);
        let mut id = [0; 32];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Ok(Self(id))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}
