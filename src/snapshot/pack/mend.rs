//! Rebuilds a lost or damaged index of a pack.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use flate2::Crc;
use flate2::bufread::ZlibDecoder;
use ring::digest::{Context, SHA256};

use crate::objects::id::Id;
use crate::pack::bases::Bases;
use crate::pack::write::{PackEntry, write_index};
use crate::pack::{Form, broken, inflate, read_head, resolve};
use crate::steps::Steps;

/// Rebuilds the index of a pack from the pack alone. A delta stands behind its base there.
pub(crate) fn reindex(dir: &Path, name: &str, steps: &Steps) -> io::Result<()> {
    let data = std::fs::read(dir.join(format!("{name}.pack")))?;
    let body = data.len().checked_sub(32).filter(|n| *n >= 12).ok_or_else(|| broken("it is truncated"))?;
    let mut hash = Context::new(&SHA256);
    hash.update(&data[..body]);
    let hash = Id::finish(hash);
    if hash.0 != data[body..] || !data.starts_with(b"PACK") {
        return Err(broken("its content does not match its checksum"));
    }
    let mut places: Vec<PackEntry> = Vec::new();
    let mut there: HashMap<Id, u32> = HashMap::new();
    let bases = Bases::default();
    let mut at = 12;
    while at < body {
        let offset = u32::try_from(at).map_err(io::Error::other)?;
        let (_, _, used) = read_head(&data[at..body], offset)?;
        let mut decoder = ZlibDecoder::new(&data[at + used..body]);
        io::copy(&mut decoder, &mut io::sink())?;
        let end = at + used + usize::try_from(decoder.total_in()).map_err(io::Error::other)?;
        let one = |at: u32| {
            let rest =
                data.get(at as usize..body).ok_or_else(|| broken("an object lies outside the pack"))?;
            let (form, len, used) = read_head(rest, at)?;
            Ok((form, inflate(&rest[used..], len)?))
        };
        let base = |form| match form {
            Form::Whole(_) => Ok(None),
            Form::At(offset) => Ok(Some(offset)),
            Form::Named(id) => {
                there.get(&id).map(|at| Some(*at)).ok_or_else(|| broken("a delta has no base object"))
            }
        };
        let (sort, content) = resolve(offset, &one, &base, (name, &bases))?;
        let mut crc = Crc::new();
        crc.update(&data[at..end]);
        let id = Id::of(sort, &content);
        places.push(PackEntry { id, offset, crc: crc.sum() });
        there.insert(id, offset);
        at = end;
    }
    let temp = dir.join("tmp_idx");
    write_index(&temp, &mut places, hash, true, steps)?;
    steps.at("name index")?;
    std::fs::rename(&temp, dir.join(format!("{name}.idx")))
}
