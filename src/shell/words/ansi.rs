//! The escapes of `$'...'`.

/// Text of an ANSI-C quoted string, or `None` when it holds something that the shell itself cuts
/// (a zero byte) or that is no character.
pub(super) fn decode(quoted: &str) -> Option<String> {
    let mut bytes: Vec<u8> = Vec::with_capacity(quoted.len());
    let mut chars = quoted.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            push(&mut bytes, c);
            continue;
        }
        match chars.next() {
            None => bytes.push(b'\\'),
            Some('n') => bytes.push(b'\n'),
            Some('t') => bytes.push(b'\t'),
            Some('r') => bytes.push(b'\r'),
            Some('a') => bytes.push(7),
            Some('b') => bytes.push(8),
            Some('e' | 'E') => bytes.push(27),
            Some('f') => bytes.push(12),
            Some('v') => bytes.push(11),
            Some('x') => {
                let n = number(&mut chars, 16, 2, 0)?;
                bytes.push(u8::try_from(n).ok()?);
            }
            Some('u') => push(&mut bytes, char::from_u32(number(&mut chars, 16, 4, 0)?)?),
            Some('U') => push(&mut bytes, char::from_u32(number(&mut chars, 16, 8, 0)?)?),
            Some('c') => {
                let c = chars.next().filter(char::is_ascii)?;
                bytes.push((c.to_ascii_uppercase() as u8) & 0x1F);
            }
            Some(d @ '0'..='7') => {
                let first = d.to_digit(8)?;
                let n = number(&mut chars, 8, 2, first).unwrap_or(first);
                bytes.push((n & 0xFF) as u8);
            }
            Some(c @ ('\\' | '\'' | '"' | '?')) => push(&mut bytes, c),
            Some(c) => {
                bytes.push(b'\\');
                push(&mut bytes, c);
            }
        }
    }
    if bytes.contains(&0) {
        return None;
    }
    String::from_utf8(bytes).ok()
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Up to `most` digits; `None` when there is none.
fn number(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    radix: u32,
    most: usize,
    start: u32,
) -> Option<u32> {
    let mut value = start;
    let mut seen = 0;
    while seen < most {
        let Some(d) = chars.peek().and_then(|c| c.to_digit(radix)) else { break };
        value = value.checked_mul(radix)?.checked_add(d)?;
        chars.next();
        seen += 1;
    }
    (seen > 0).then_some(value)
}
