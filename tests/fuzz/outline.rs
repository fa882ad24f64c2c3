//! What happened in a case, as one number.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Collects facts about a case. Two cases with the same facts have the same number.
#[derive(Debug, Default)]
pub struct Outline(DefaultHasher);

impl Outline {
    /// Adds a fact as it is: a kind, a flag.
    pub fn add(&mut self, fact: impl Hash) {
        fact.hash(&mut self.0);
    }

    /// Adds a number by its size, so that there are few different ones.
    pub fn size(&mut self, n: usize) {
        (if n < 4 { n as u32 } else { 2 + n.ilog2() }).hash(&mut self.0);
    }

    /// Adds a message without what stands in quotes and without numbers.
    pub fn message(&mut self, text: &str) {
        for (at, piece) in text.split(['`', '\'', '"']).enumerate() {
            if at % 2 == 0 {
                let words = piece.split_whitespace().filter(|w| !w.contains(|c: char| c.is_ascii_digit()));
                words.take(12).for_each(|w| w.hash(&mut self.0));
            }
        }
    }

    /// The number.
    pub fn end(self) -> u64 {
        self.0.finish()
    }
}

/// Positions at which `data` is cut, by the data itself: the same for each run.
pub fn cuts(data: &[u8], most: usize) -> Vec<usize> {
    let mut hash = DefaultHasher::new();
    data.hash(&mut hash);
    let mut random = crate::make::Random::new(hash.finish());
    let mut cuts: Vec<usize> = (0..random.below(most + 1)).map(|_| random.below(data.len() + 1)).collect();
    cuts.sort_unstable();
    cuts
}

/// `data` in the pieces between these positions.
pub fn pieces<'a>(data: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut from = 0;
    let mut out = Vec::with_capacity(cuts.len() + 1);
    for cut in cuts.iter().copied().chain([data.len()]) {
        out.push(&data[from..cut]);
        from = cut;
    }
    out
}

/// The same for text: cuts lie between characters.
pub fn text_cuts(text: &str, most: usize) -> Vec<usize> {
    let mut cuts = cuts(text.as_bytes(), most);
    cuts.iter_mut().for_each(|c| *c = text.floor_char_boundary(*c));
    cuts
}

/// Fields of an input that stands for several texts: what lies between unit separators.
pub fn fields<const N: usize>(data: &[u8]) -> [String; N] {
    let mut parts = data.split(|b| *b == 0x1f).map(|p| String::from_utf8_lossy(p).into_owned());
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}
