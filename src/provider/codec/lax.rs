//! Tolerant deserialisation: servers that claim the same format differ in nulls, numbers and strings.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::ProviderError;
use crate::transport::fault;

/// Text, borrowed where possible. Null, lists and objects read as empty; numbers as their digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Str<'a>(pub(crate) Cow<'a, str>);

impl Str<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0.into_owned()
    }
}

struct StrVisitor;

impl<'de> Visitor<'de> for StrVisitor {
    type Value = Str<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }
    fn visit_borrowed_str<E: Error>(self, v: &'de str) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Borrowed(v)))
    }
    fn visit_str<E: Error>(self, v: &str) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Owned(v.to_owned())))
    }
    fn visit_string<E: Error>(self, v: String) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Owned(v)))
    }
    fn visit_unit<E: Error>(self) -> Result<Str<'de>, E> {
        Ok(Str::default())
    }
    fn visit_none<E: Error>(self) -> Result<Str<'de>, E> {
        Ok(Str::default())
    }
    fn visit_bool<E: Error>(self, v: bool) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Owned(v.to_string())))
    }
    fn visit_u64<E: Error>(self, v: u64) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Owned(v.to_string())))
    }
    fn visit_i64<E: Error>(self, v: i64) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Owned(v.to_string())))
    }
    fn visit_f64<E: Error>(self, v: f64) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Owned(v.to_string())))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Str<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Str::default())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Str<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Str::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(StrVisitor)
    }
}

/// A count. Negative, fractional or huge numbers saturate, and other kinds of value read as absent; it never fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // Raw, because a number beyond the range of floats is a syntax error to the parser.
        let raw = <&RawValue>::deserialize(d)?.get();
        let raw = raw.trim_matches('"');
        let value = match raw.parse::<f64>() {
            Ok(v) if v.is_nan() => None,
            // `as` saturates.
            Ok(v) => Some(raw.parse::<u64>().unwrap_or(v as u64)),
            Err(_) => None,
        };
        Ok(Self(value))
    }
}

/// Reads JSON; `None` when it does not have the expected shape.
pub(crate) fn read<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// Reads the data of an event. `None`: irrelevant (an end mark of another format, an empty line, JSON of an unknown
/// shape).
///
/// # Errors
/// When it is not JSON: then text may be missing from the reply.
pub(crate) fn event<'a, T: Deserialize<'a>>(
    provider: &str,
    data: &'a str,
) -> Result<Option<T>, ProviderError> {
    match serde_json::from_str(data) {
        Ok(event) => Ok(Some(event)),
        Err(_) if data.trim().is_empty() || data.trim() == "[DONE]" => Ok(None),
        Err(_) if serde_json::from_str::<IgnoredAny>(data).is_ok() => Ok(None),
        Err(_) => Err(fault::garbled(provider)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p11_counts_saturate() {
        let table = [
            ("5", Some(5)),
            ("-5", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("99999999999999999999999999", Some(u64::MAX)),
            ("1e999", Some(u64::MAX)),
            ("1.5", Some(1)),
            ("\"12\"", Some(12)),
            ("null", None),
            ("{\"a\":1}", None),
            ("\"NaN\"", None),
        ];
        for (text, want) in table {
            assert_eq!(serde_json::from_str::<Count>(text).unwrap().0, want, "{text}");
        }
    }

    #[test]
    fn text_of_any_kind_reads() {
        let table = [
            ("\"a\"", "a"),
            ("\"\\u00e9\"", "é"),
            ("null", ""),
            ("[1]", ""),
            ("{\"a\":1}", ""),
            ("42", "42"),
        ];
        for (text, want) in table {
            assert_eq!(serde_json::from_str::<Str<'_>>(text).unwrap().as_str(), want, "{text}");
        }
    }
}
