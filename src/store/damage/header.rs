//! The header of a damaged database, mended in a copy: SQLite reads nothing of a file whose header or length is wrong.
//!
//! The fields are those of sqlite.org/fileformat2.html, section 1.3.

use crate::damage::pages::{be, page_size};
use crate::open::{connect, migrate};

/// The first bytes of a database.
pub(crate) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Bytes of the header.
const LENGTH: usize = 100;

/// A copy whose header is that of a database of Tiller's, with as many pages as there are. A page of which only a part is there
/// is blank.
pub(crate) fn mended(file: &[u8], log: &[u8]) -> Vec<u8> {
    let size = page_size(file, log);
    let mut copy = file.to_vec();
    if !copy.len().is_multiple_of(size) {
        let pages = copy.len() / size;
        copy.truncate(pages * size);
        copy.resize((pages + 1) * size, 0);
    }
    let Some(header) = copy.get_mut(..LENGTH) else { return copy };
    // Only the version of the schema and the mark of its changes tell something; the rest has one value or does not matter.
    let latest = migrate::latest();
    let version = be(header, 60, 4).and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=latest).contains(n));
    let cookie = be(header, 40, 4).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let pages = u32::try_from(file.len().div_ceil(size)).unwrap_or(u32::MAX);
    let logged = if log.is_empty() { 1 } else { 2 };
    header.fill(0);
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(part) = header.get_mut(at..at + bytes.len()) {
            part.copy_from_slice(bytes);
        }
    };
    put(0, MAGIC);
    put(16, &if size == 65_536 { 1_u16 } else { u16::try_from(size).unwrap_or(4096) }.to_be_bytes());
    // Versions of the format, unused bytes of a page, shares of a payload.
    put(18, &[logged, logged, 0, 64, 32, 32]);
    for (at, number) in [
        (24, 1), // changes of the file
        (28, pages),
        (40, cookie),
        (44, 4), // format of the schema
        (56, 1), // UTF-8
        (60, version.unwrap_or(latest)),
        (68, connect::APPLICATION_ID.cast_unsigned()),
        (92, 1), // the changes for which the number of pages is right
        (96, u32::try_from(rusqlite::version_number()).unwrap_or(0)),
    ] {
        put(at, &number.to_be_bytes());
    }
    copy
}
