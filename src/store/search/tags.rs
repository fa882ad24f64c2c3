//! Words of the index for the filters of a query.

use tiller_protocol::SearchRole;

/// A filter as a word that no text contains in this column.
pub(crate) fn tag(kind: char, value: &str) -> String {
    format!("{kind}{}", &blake3::hash(value.as_bytes()).to_hex()[..16])
}

pub(crate) fn role_tag(role: SearchRole) -> String {
    tag('r', role.name())
}

/// A role as the index stores it: its place in [`SearchRole::ALL`].
pub(crate) fn role_number(role: SearchRole) -> Option<i64> {
    SearchRole::ALL.iter().position(|r| *r == role).and_then(|n| i64::try_from(n).ok())
}

/// The role of this number; `None`: there is none.
pub(crate) fn role_of(number: i64) -> Option<SearchRole> {
    usize::try_from(number).ok().and_then(|n| SearchRole::ALL.get(n).copied())
}
