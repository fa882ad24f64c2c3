use proptest::prelude::*;

use super::*;

#[test]
fn w13_encodings_are_told_apart() {
    let rows: &[(&[u8], Encoding, &str)] = &[
        (b"", Encoding::Utf8, ""),
        ("käse".as_bytes(), Encoding::Utf8, "käse"),
        (b"\xef\xbb\xbfa", Encoding::Utf8Bom, "a"),
        (b"\xff\xfea\0\n\0", Encoding::Utf16Le, "a\n"),
        (b"\xfe\xff\0a", Encoding::Utf16Be, "a"),
        (b"k\xe4se", Encoding::Latin1, "käse"),
    ];
    for (bytes, encoding, text) in rows {
        let got = Text::decode(bytes).unwrap();
        assert_eq!((got.encoding, got.text.as_str()), (*encoding, *text));
        assert_eq!(&got.encode_file(&got.text).unwrap(), bytes);
    }
    let broken = Text::decode(b"k\xc3\xa4se\xff").unwrap();
    assert_eq!(broken.encoding, Encoding::Broken);
    assert_eq!(hide_strays(&broken.text), "käse\u{fffd}");
    assert_eq!(Text::decode(b"\xff\xfea"), None);
    assert_eq!(Text::decode(b"\xff\xfe\x00\xd8"), None);
    assert_eq!(Text::decode(b"k\xe4se").unwrap().encode("€"), Err('€'));
}

proptest! {
    #[test]
    fn w13_no_byte_is_lost(bytes in proptest::collection::vec(any::<u8>(), 0..80), bom in 0u8..4) {
        let marks: [&[u8]; 4] = [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
        let mut all: Vec<u8> = Vec::from(marks[bom as usize]);
        all.extend(bytes);
        if let Some(text) = Text::decode(&all) {
            prop_assert_eq!(text.encode_file(&text.text).unwrap(), all);
        }
    }
}
