//! Makes inputs. All of it follows from the seed and from what was kept, so that a run can be repeated.

/// Pseudo-random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 when there is none.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.number() % n as u64) as usize }
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these; nothing of an empty list.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

/// Usual bytes of an input.
const USUAL: usize = 2 * 1024;
/// Most bytes of an input; one in some hundred is longer than usual.
pub const LONGEST: usize = 64 * 1024;
/// Inputs that are kept while a run lasts.
const POOL: usize = 6_000;

/// Bytes and characters by which readers go wrong.
const ODD: &[&str] = &[
    "\0",
    "\u{1}",
    "\u{1b}",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{ad}",
    "\u{200b}",
    "\u{200d}",
    "\u{202e}",
    "\u{2028}",
    "\u{2066}",
    "\u{fe0f}",
    "\u{feff}",
    "\u{fffd}",
    "\u{fffc}",
    "\u{10ffff}",
    "\u{e000}",
    "\u{e0061}",
    "e\u{301}",
    "\u{301}",
    "日本",
    "👩‍👩‍👧",
    "🇩🇪",
    "👍🏽",
    "ﾊﾞ",
    "שלום",
    "ß",
    "İ",
    "ſ",
    "\r",
    "\n",
    "\r\n",
    "\n\r",
    "\t",
    " ",
    "  ",
    "\u{3000}",
    "\\",
    "\"",
    "'",
    "`",
    "$",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "|",
    "&",
    ";",
    ":",
    ",",
    "=",
    "#",
    "*",
    "~",
    "-",
    "--",
    "/",
    "0",
    "1",
    "-1",
    "9",
    "255",
    "256",
    "65535",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e999",
    "-0",
    "0.1",
    "NaN",
    "null",
    "true",
    "\u{1f}",
];
/// Bytes that are no UTF-8.
const BROKEN: &[&[u8]] =
    &[b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80", b"\xef\xbb", b"\x9b"];

/// Makes inputs of one target.
pub struct Maker {
    words: Vec<&'static str>,
    pool: Vec<Vec<u8>>,
    pub random: Random,
}

impl Maker {
    /// With these inputs to begin with.
    pub fn new(words: &[&'static [&'static str]], pool: Vec<Vec<u8>>, seed: u64) -> Self {
        Self { words: words.concat(), pool, random: Random::new(seed) }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut out = match self.random.below(10) {
            0..=2 => self.sentence(),
            _ => match self.random.pick(&self.pool) {
                Some(known) => {
                    let mut known = known.clone();
                    for _ in 0..1 + self.random.below(5) {
                        self.mutate(&mut known);
                    }
                    known
                }
                None => self.sentence(),
            },
        };
        let most = if self.random.one_in(300) { LONGEST } else { USUAL.max(out.len().min(4 * USUAL)) };
        out.truncate(most);
        out
    }

    /// Keeps an input that did something new. A full pool loses a random one.
    pub fn keep(&mut self, input: Vec<u8>) {
        if self.pool.len() < POOL {
            self.pool.push(input);
        } else {
            let at = self.random.below(POOL);
            // A short input is worth more: what follows from it is found sooner.
            if input.len() <= self.pool[at].len() || self.random.one_in(4) {
                self.pool[at] = input;
            }
        }
    }

    /// The kept inputs.
    pub fn pool(&self) -> &[Vec<u8>] {
        &self.pool
    }

    fn word(&mut self) -> Vec<u8> {
        match self.random.below(12) {
            0 => self.random.pick(ODD).map_or(Vec::new(), |w| w.as_bytes().to_vec()),
            1 if self.random.one_in(4) => self.random.pick(BROKEN).map_or(Vec::new(), |w| w.to_vec()),
            1 if self.random.one_in(3) => vec![self.random.number() as u8; 1 + self.random.below(3)],
            _ => self.random.pick(&self.words).map_or(Vec::new(), |w| w.as_bytes().to_vec()),
        }
    }

    fn sentence(&mut self) -> Vec<u8> {
        let most = if self.random.one_in(8) { 80 } else { 14 };
        let count = 1 + self.random.below(most);
        let mut out = Vec::new();
        for _ in 0..count {
            let word = self.word();
            let times = if self.random.one_in(60) { 1 + self.random.below(40) } else { 1 };
            (0..times).for_each(|_| out.extend_from_slice(&word));
        }
        out
    }

    /// A place in `data`, mostly between characters.
    fn place(&mut self, data: &[u8]) -> usize {
        let at = self.random.below(data.len() + 1);
        if self.random.one_in(8) {
            return at;
        }
        (at..data.len()).find(|at| !matches!(data[*at], 0x80..=0xbf)).unwrap_or(data.len())
    }

    fn range(&mut self, data: &[u8]) -> std::ops::Range<usize> {
        let from = self.place(data);
        let most = if self.random.one_in(4) { data.len() } else { 24 };
        from..(from + self.random.below(most + 1)).min(data.len())
    }

    fn mutate(&mut self, data: &mut Vec<u8>) {
        match self.random.below(15) {
            0..=3 => {
                let (at, word) = (self.place(data), self.word());
                data.splice(at..at, word);
            }
            4 | 5 => {
                let range = self.range(data);
                data.drain(range);
            }
            6 => {
                let range = self.range(data);
                let word = self.word();
                data.splice(range, word);
            }
            7 => {
                if let Some(byte) = {
                    let at = self.random.below(data.len());
                    data.get_mut(at)
                } {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            8 => {
                if let Some(byte) = {
                    let at = self.random.below(data.len());
                    data.get_mut(at)
                } {
                    *byte = self.random.number() as u8;
                }
            }
            9 => {
                // The same again, sometimes often.
                let range = self.range(data);
                let piece = data[range].to_vec();
                let most = if self.random.one_in(40) {
                    3_000
                } else if self.random.one_in(4) {
                    64
                } else {
                    3
                };
                let times = (1 + self.random.below(most)).min(LONGEST / piece.len().max(1));
                let at = self.place(data);
                data.splice(at..at, piece.repeat(times));
            }
            10 | 11 => {
                // Of another input.
                if let Some(other) = self.random.pick(&self.pool).cloned() {
                    let (from, to) = (self.range(&other), self.range(data));
                    data.splice(to, other[from].iter().copied());
                }
            }
            12 => {
                let (a, b) = (self.range(data), self.range(data));
                if a.end <= b.start {
                    let (first, second) = (data[a.clone()].to_vec(), data[b.clone()].to_vec());
                    data.splice(b, first);
                    data.splice(a, second);
                }
            }
            13 => {
                let at = self.place(data);
                data.truncate(at);
            }
            _ => {
                // A number becomes another one.
                let Some(at) = ({
                    let from = self.random.below(data.len());
                    data.iter().skip(from).position(u8::is_ascii_digit).map(|n| n + from)
                }) else {
                    return;
                };
                let end = (at..data.len()).find(|n| !data[*n].is_ascii_digit()).unwrap_or(data.len());
                let word = self.random.pick(&[
                    "0",
                    "1",
                    "2",
                    "9",
                    "10",
                    "80",
                    "255",
                    "65536",
                    "4294967295",
                    "99999999999999999999",
                ]);
                data.splice(at..end, word.into_iter().flat_map(|w| w.bytes()));
            }
        }
    }
}
