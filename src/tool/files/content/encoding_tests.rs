use proptest::prelude::*;

use super::*;

#[test]
fn w13_encodings_are_told_apart() {
    let utf16 = |big, bom| Encoding::Utf16 { big, bom };
    let latin = Encoding::Legacy(WINDOWS_1252);
    let rows: &[(&[u8], Encoding, &str)] = &[
        (b"", Encoding::Utf8, ""),
        ("käse".as_bytes(), Encoding::Utf8, "käse"),
        (b"\xef\xbb\xbfa", Encoding::Utf8Bom, "a"),
        (b"\xff\xfea\0\n\0", utf16(false, true), "a\n"),
        (b"\xfe\xff\0a", utf16(true, true), "a"),
        (b"h\0i\0 \0y\0o\0u\0\n\0", utf16(false, false), "hi you\n"),
        (b"\0h\0i\0\n\0!", utf16(true, false), "hi\n!"),
        (b"k\xe4se", latin, "käse"),
        (b"\x93quoted\x94 \x96 5 \x80\n", latin, "“quoted” – 5 €\n"),
        (b"caf\xe9", latin, "café"),
        (b"\x1b$B4A;z\x1b(B\n", Encoding::Legacy(ISO_2022_JP), "漢字\n"),
        // Escapes of a terminal are none of those.
        (b"\x1b(B\x1b[m$\n", Encoding::Utf8, "\u{1b}(B\u{1b}[m$\n"),
        // Names with zeros between them.
        (b"abc\0def\0", Encoding::Utf8, "abc\0def\0"),
        (b"a\0bc\0d\0", Encoding::Utf8, "a\0bc\0d\0"),
        (b"a\0b\0", Encoding::Utf8, "a\0b\0"),
    ];
    for (bytes, encoding, text) in rows {
        let got = Text::decode(bytes).unwrap();
        assert_eq!((got.encoding, got.text.as_str()), (*encoding, *text));
        assert_eq!(&got.encode_file(&got.text).unwrap(), bytes);
    }
    let broken = Text::decode(b"k\xc3\xa4se\xff").unwrap();
    assert_eq!(broken.encoding, Encoding::Broken);
    assert_eq!(hide_strays(&broken.text), "käse\u{fffd}");
    // A byte too many, and half of a pair.
    for bytes in [&b"\xff\xfea\0b"[..], b"\xff\xfe\x00\xd8a\0"] {
        let odd = Text::decode(bytes).unwrap();
        assert_eq!(odd.label(), "UTF-16 LE with stray bytes");
        assert_eq!(odd.encode_file(&odd.text).unwrap(), bytes);
    }
    let private = "a\u{10fe80}".encode_utf16().flat_map(u16::to_le_bytes);
    assert_eq!(
        Text::decode(&[0xff, 0xfe].into_iter().chain(private).collect::<Vec<u8>>()),
        Err(NotText::Private)
    );
    assert_eq!(Text::decode(b"\xff\xfe\0\0a\0\0\0b\0\0\0c\0\0\0d\0\0\0"), Err(NotText::Binary), "UTF-32");
}

#[test]
fn w20_a_character_that_the_encoding_lacks_is_named_and_never_replaced() {
    let rows = [
        (WINDOWS_1252, "漢字 ok 漢", '漢'),
        (WINDOWS_1252, "emoji 🙂", '🙂'),
        // It would become a backslash, a tilde, or a wider minus.
        (encoding_rs::SHIFT_JIS, "漢 ¥", '¥'),
        (encoding_rs::EUC_JP, "‾", '‾'),
        (encoding_rs::SHIFT_JIS, "−", '−'),
        (encoding_rs::EUC_KR, "ä", 'ä'),
    ];
    for (encoding, text, lacking) in rows {
        assert_eq!(legacy(encoding, text), Err(lacking), "{text}");
        let file = Text { encoding: Encoding::Legacy(encoding), text: String::new(), cr: false };
        assert_eq!(file.encode_file(text), Err(lacking), "{text}");
    }
    assert_eq!(Text::decode(b"k\xe4se").unwrap().encode_file("5 €"), Ok(b"5 \x80".to_vec()));
}

/// A few characters tell no language: signs and letters of Western Europe are the likeliest.
#[test]
fn w20_few_characters_are_of_western_europe() {
    for text in [
        "naïve\n",
        "£5\n",
        "µm ± 3 ×\n",
        "µ",
        "«oui»\n",
        "½ cup, ¼ cup\n",
        "10 °C and 20 °F\n",
        "// © 2020 Müller\n",
        "it’s a “test” – really…\n",
        "§ 3\n",
        "señor\n",
        "café",
    ] {
        let bytes = WINDOWS_1252.encode(text).0.into_owned();
        let got = Text::decode(&bytes).unwrap();
        assert_eq!((got.label().as_str(), got.text.as_str()), ("windows-1252", text));
    }
    for (encoding, text) in [
        (encoding_rs::WINDOWS_1250, "błąd\n"),
        (encoding_rs::WINDOWS_1254, "şğı\n"),
        (encoding_rs::WINDOWS_1251, "ошибка\n"),
        (encoding_rs::GBK, "// 错误\n"),
        (encoding_rs::SHIFT_JIS, "// 日本\n"),
    ] {
        let bytes = encoding.encode(text).0.into_owned();
        assert_eq!(Text::decode(&bytes).unwrap().text, text);
    }
}

#[test]
fn w20_other_bytes_for_a_character_are_kept() {
    let japanese = "これは日本語の文章です。漢字とかなが混ざっています。\n".repeat(4);
    let mut bytes = encoding_rs::SHIFT_JIS.encode(&japanese).0.into_owned();
    // A second code for U+2252, and a byte that is no character.
    bytes.extend(b"a\x87\x90b\n");
    let text = Text::decode(&bytes).unwrap();
    assert_eq!(text.label(), "Shift_JIS with stray bytes");
    assert_eq!(hide_strays(&text.text), format!("{japanese}a\u{fffd}\u{fffd}b\n"));
    assert_eq!(text.encode_file(&text.text).unwrap(), bytes);
    // The euro sign of GB18030, for which GBK has one byte.
    let mut bytes =
        encoding_rs::GBK.encode(&"这是一个用中文写的文件，里面有很多汉字。\n".repeat(4)).0.into_owned();
    bytes.extend(b"\xa2\xe3\n");
    let text = Text::decode(&bytes).unwrap();
    assert!(text.label() == "gb18030" && text.text.ends_with("€\n"), "{}", text.label());
    assert_eq!(text.encode_file(&text.text).unwrap(), bytes);
}

#[test]
fn w20_a_file_of_carriage_returns_has_lines() {
    for bytes in [&b"a\rb\r"[..], b"k\xe4se\r\rb", b"\xff\xfea\0\r\0b\0"] {
        let text = Text::decode(bytes).unwrap();
        assert!(text.cr && text.text.contains('\n') && !text.text.contains('\r'), "{text:?}");
        assert_eq!(text.ends_label(), "CR line endings");
        assert_eq!(text.encode_file(&text.text).unwrap(), bytes);
    }
    assert_eq!(Text::decode(b"10%\r20%\rdone\n").unwrap().text, "10%\r20%\rdone\n");
}

proptest! {
    #[test]
    fn w13_no_byte_is_lost(bytes in proptest::collection::vec(any::<u8>(), 0..80), bom in 0u8..4) {
        let marks: [&[u8]; 4] = [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
        let mut all: Vec<u8> = Vec::from(marks[bom as usize]);
        all.extend(bytes);
        if let Ok(text) = Text::decode(&all) {
            prop_assert_eq!(text.encode_file(&text.text).unwrap(), all);
        }
    }

    /// Bytes that look like text of East Asia, so that the detector chooses one of its encodings.
    #[test]
    fn w20_no_byte_is_lost_in_wide_characters(
        pairs in proptest::collection::vec((0x81u8..=0xfe, 0x30u8..=0xfe), 0..60), line in 1usize..20,
    ) {
        let mut all = Vec::new();
        for (n, (a, b)) in pairs.into_iter().enumerate() {
            all.extend([a, b]);
            if n % line == 0 {
                all.push(b'\n');
            }
        }
        if let Ok(text) = Text::decode(&all) {
            prop_assert_eq!(text.encode_file(&text.text).unwrap(), all);
        }
    }
}
