//! Words of the index for the filters of a query.

use tiller_protocol::SearchRole;

/// A filter as a word that no text contains in this column.
pub(crate) fn tag(kind: char, value: &str) -> String {
    format!("{kind}{}", &blake3::hash(value.as_bytes()).to_hex()[..16])
}

pub(crate) fn role_tag(role: SearchRole) -> String {
    tag('r', role.name())
}
