//! Which model makes vectors, and how they are stored: as one signed byte for each dimension, of length 1.

use tiller_store::search::stem::words;
use tiller_store::search::words::is_stop;

use crate::endpoint::{EmbedFault, Endpoint, TimeLimit};
use crate::table::Table;

/// Numbers of a vector of a server at most. All are kept: only some models are trained so that the first ones hold most. A
/// longer vector is refused. The rounding to bytes changes a cosine by less than 0.01 up to this length.
pub const DIMENSIONS: usize = 4096;

/// Makes vectors of texts.
#[derive(Debug)]
pub enum Embedder {
    Endpoint(Endpoint),
    Table(Table),
}

/// How rare a word is: greater for a rarer one. Words are in lower case.
pub type Rarity<'a> = &'a (dyn Fn(&str) -> f32 + Sync);

impl Embedder {
    /// What its vectors can be compared with: vectors of the same model only.
    pub fn identity(&self) -> String {
        match self {
            Self::Endpoint(endpoint) => endpoint.identity(),
            Self::Table(table) => format!("table {}", table.identity()),
        }
    }

    /// Texts in one request.
    pub(crate) fn batch(&self) -> u32 {
        match self {
            Self::Endpoint(endpoint) => endpoint.batch(),
            Self::Table(_) => 500,
        }
    }
}

/// A vector of a server for each text, in their order; empty for one that has none.
pub(crate) async fn by_server(
    endpoint: &Endpoint,
    texts: &[String],
    limit: TimeLimit,
) -> Result<Vec<Vec<u8>>, EmbedFault> {
    let asked: Vec<&str> = texts.iter().map(|t| t.trim()).filter(|t| !t.is_empty()).collect();
    if asked.is_empty() {
        return Ok(vec![Vec::new(); texts.len()]);
    }
    let mut made = endpoint.embed(&asked, limit).await?.into_iter();
    let vectors = texts.iter().map(|t| match t.trim().is_empty() {
        true => Vec::new(),
        false => made.next().map_or_else(Vec::new, |v| packed(&v)),
    });
    Ok(vectors.collect())
}

/// Different words of a text that carry meaning, in lower case.
pub(crate) fn content_words(text: &str) -> Vec<String> {
    let mut found: Vec<String> =
        words(text).map(|(a, b)| text[a..b].to_lowercase()).filter(|w| !is_stop(w)).collect();
    found.sort();
    found.dedup();
    found
}

/// As it is stored. Empty for a vector without length.
pub(crate) fn packed(vector: &[f32]) -> Vec<u8> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if !length.is_finite() || length <= f32::EPSILON {
        return Vec::new();
    }
    let byte = |x: &f32| {
        #[allow(clippy::cast_possible_truncation, reason = "it is within -127 and 127")]
        let x = (x / length * 127.0).round().clamp(-127.0, 127.0) as i8;
        x.to_le_bytes()[0]
    };
    vector.iter().map(byte).collect()
}

/// Numbers that are multiplied at once.
const LANES: usize = 16;

/// The cosine of two stored vectors: 1 for the same direction.
pub(crate) fn cosine(a: &[u8], b: &[u8]) -> f32 {
    if a.len() != b.len() {
        return 0.0;
    }
    // In this form the compiler multiplies many at once: a product of two bytes fits 16 bits.
    let product = |x: &u8, y: &u8| {
        let [x, y] = [x, y].map(|byte| i16::from(i8::from_le_bytes([*byte])));
        i32::from(x * y)
    };
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0i32; LANES];
    for (a, b) in a.iter().zip(b) {
        for (lane, (x, y)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += product(x, y);
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(x, y)| product(x, y));
    let dot = lanes.into_iter().chain(rest).sum::<i32>();
    #[allow(clippy::cast_precision_loss, reason = "a cosine is rounded")]
    let dot = dot as f32;
    dot / (127.0 * 127.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    fn a_cosine_is_that_of_all_numbers_whatever_their_count() {
        for length in [1usize, 7, 15, 16, 17, 33, 256, 512, DIMENSIONS] {
            let a: Vec<u8> = (0..length).map(|n| (n * 37 % 256) as u8).collect();
            let b: Vec<u8> = (0..length).map(|n| (n * 101 % 256) as u8).collect();
            let signed = |x: &u8| i32::from(i8::from_le_bytes([*x]));
            let dot: i32 = a.iter().zip(&b).map(|(x, y)| signed(x) * signed(y)).sum();
            assert_eq!(cosine(&a, &b).to_bits(), (dot as f32 / (127.0 * 127.0)).to_bits(), "{length}");
        }
        // The greatest products, and vectors that cannot be compared.
        assert!(cosine(&[0x80; 512], &[0x80; 512]) > 512.0);
        assert_eq!(cosine(&[1; 4], &[1; 5]).to_bits(), 0.0f32.to_bits());
    }
}
