//! Input for a terminal: keys by name, and pasted text that cannot act as keys.

/// The bytes of `1<enter>`, `<down><enter>`. Unknown names are typed literally.
pub(crate) fn keys(text: &str) -> Vec<u8> {
    const NAMES: &[(&str, &str)] = &[
        ("<enter>", "\r"),
        ("<esc>", "\x1b"),
        ("<tab>", "\t"),
        ("<space>", " "),
        ("<up>", "\x1b[A"),
        ("<down>", "\x1b[B"),
        ("<right>", "\x1b[C"),
        ("<left>", "\x1b[D"),
        ("<ctrl-c>", "\x03"),
        ("<ctrl-d>", "\x04"),
    ];
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match NAMES.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, bytes)) => {
                out.extend_from_slice(bytes.as_bytes());
                rest = &rest[name.len()..];
            }
            None => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// Text to be pasted. Control characters are removed, so that it cannot end the paste or act as a key; a program
/// without bracketed paste gets it as one line, since each line would be sent.
pub(crate) fn paste(text: &str, brackets: bool) -> Vec<u8> {
    let plain = |c: &char| !c.is_control() || *c == '\n' || *c == '\t';
    let clean: String = text.replace("\r\n", "\n").chars().filter(plain).collect();
    let clean = clean.trim_end_matches('\n');
    if brackets {
        format!("\x1b[200~{clean}\x1b[201~").into_bytes()
    } else {
        clean.replace(['\n', '\t'], " ").into_bytes()
    }
}

/// Whether the screen shows the paste: its end, or a placeholder for a long one.
pub(crate) fn echoed(screen: &str, text: &str) -> bool {
    // Wrapping and frames interrupt the words: only letters and digits are compared.
    let letters = |s: &str| s.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let whole = letters(text);
    let tail: String = {
        let n = whole.chars().count().saturating_sub(24);
        whole.chars().skip(n).collect()
    };
    if tail.is_empty() {
        return true;
    }
    letters(screen).contains(&tail)
        || ["[Pasted ", "[Pasted text", "[Paste #"].iter().any(|n| screen.contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_keys_and_text() {
        assert_eq!(keys("1<enter>"), b"1\r");
        assert_eq!(keys("<down><down>é<x>"), "\x1b[B\x1b[Bé<x>".as_bytes());
    }

    #[test]
    fn pasted_text_cannot_act_as_keys() {
        let evil = "a\x1b[201~\rrm -rf\x03\nb\n";
        assert_eq!(paste(evil, true), b"\x1b[200~a[201~rm -rf\nb\x1b[201~");
        assert_eq!(paste(evil, false), b"a[201~rm -rf b");
    }

    #[test]
    fn an_echo_is_known_though_it_is_wrapped() {
        assert!(echoed("│ > please make a lo │\n│ ng file, thanks │", "please make a long file, thanks"));
        assert!(echoed("> [Pasted text #1 +40 lines]", &"x".repeat(900)));
        assert!(!echoed("> pleas", "please"));
    }
}
