use std::io::Write;

use super::*;

/// A file of these objects, numbered from 1; the first one is its root. `trailer`: further entries of its trailer.
pub(crate) fn file(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut out = b"%PDF-1.7\n".to_vec();
    for (at, object) in objects.iter().enumerate() {
        out.extend(format!("{} 0 obj\n", at + 1).bytes());
        out.extend(object);
        out.extend(b"\nendobj\n");
    }
    out.extend(format!("trailer << /Root 1 0 R /Size {} {trailer} >>\n%%EOF\n", objects.len() + 1).bytes());
    out
}

fn stream(dict: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("<< {dict} /Length {} >>\nstream\n", bytes.len());
    [head.as_bytes(), bytes, b"\nendstream"].concat()
}

fn packed(dict: &str, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    stream(&format!("{dict} /Filter /FlateDecode"), &encoder.finish().unwrap())
}

const FONT: &str = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

/// A file whose pages have these contents, with a font `F`.
pub(crate) fn pages(contents: &[&str]) -> Vec<u8> {
    let kids: Vec<String> = (0..contents.len()).map(|n| format!("{} 0 R", 4 + 2 * n)).collect();
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {} /Resources << /Font << /F 3 0 R >> >> >>",
            kids.join(" "),
            kids.len()
        )
        .into_bytes(),
        FONT.as_bytes().to_vec(),
    ];
    for (n, content) in contents.iter().enumerate() {
        objects.push(format!("<< /Type /Page /Parent 2 0 R /Contents {} 0 R >>", 5 + 2 * n).into_bytes());
        objects.push(packed("", content.as_bytes()));
    }
    file(&objects, "")
}

/// One page of this content with these resources; further objects are numbered from 5.
fn page(content: &[u8], resources: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        format!("<< /Type /Page /Contents 4 0 R /Resources << {resources} >> >>").into_bytes(),
        content.to_vec(),
    ];
    objects.extend(more.iter().cloned());
    file(&objects, "")
}

fn text(bytes: &[u8]) -> String {
    let found = read(bytes).unwrap().text;
    found.strip_prefix("--- page 1 of 1 ---\n").unwrap_or(&found).trim_end().to_owned()
}

const HELLO: &str = "BT /F 12 Tf 72 700 Td (Hello) Tj ET";

#[test]
fn operators_become_lines_and_words() {
    for (content, expected) in [
        ("BT /F 12 Tf 72 700 Td (One) Tj 0 -14 Td (Two) Tj T* ET", "One\nTwo"),
        ("BT /F 12 Tf 14 TL 72 700 Td (One) Tj T* (Two) Tj (Three) ' ET", "One\nTwo\nThree"),
        ("BT /F 12 Tf 72 700 Td [(W) 80 (ord) -300 (next)] TJ ET", "Word next"),
        ("BT /F 12 Tf 72 700 Td (A) Tj 200 0 Td (B) Tj ET", "A  B"),
        ("BT /F 12 Tf 72 700 Td (Head) Tj 0 -60 Td (Body) Tj ET", "Head\n\nBody"),
        ("q 1 0 0 1 0 500 cm BT /F 9 Tf (in) Tj ET Q BT /F 9 Tf 0 488 Td (out) Tj ET", "in\nout"),
        ("BT /F 12 Tf (\\101\\(x\\)\\\\ caf\\351 \\200) Tj ET", "A(x)\\ café €"),
        ("BT /F 12 Tf <48 69 21> Tj ET", "Hi!"),
        ("BI /W 1 /H 1 ID \x01(\x02) Tj EI BT /F 12 Tf (after) Tj ET", "after"),
        ("BT /F 12 Tf 0 1 -1 0 10 10 Tm (up) Tj ET BT /F 12 Tf 50 50 Td (right) Tj ET", "up\n\nright"),
        ("BT 3 Tr /F 12 Tf (read by a scanner) Tj ET", "read by a scanner"),
    ] {
        assert_eq!(text(&pages(&[content])), expected, "{content}");
    }
}

#[test]
fn fonts_say_what_their_codes_mean() {
    let show = |codes: &str| format!("BT /F 10 Tf {codes} Tj ET");
    let table = "1 begincodespacerange <0000> <FFFF> endcodespacerange 2 beginbfchar <0003> <0020> <0010> <00660069> <0011> <FB03> \
        endbfchar 2 beginbfrange <0024> <0026> <0041> <0030> <0031> [<03B1> <D83DDE00>] endbfrange";
    let composite = "/Font << /F << /Subtype /Type0 /Encoding /Identity-H /ToUnicode 5 0 R /DescendantFonts [<< /DW 500 \
        /W [36 [600 600] 40 50 500] >>] >> >>";
    let unpacked = stream("", show("<00240025002600030010003000310011>").as_bytes());
    assert_eq!(text(&page(&unpacked, composite, &[packed("", table.as_bytes())])), "ABC fiα😀ffi");
    let named = "/Font << /F << /Subtype /Type1 /Encoding << /Differences [1 /A /eacute 5 /fi /uni20AC /f_f /germandbls.alt \
        /g17] >> >> >>";
    let found = read(&page(&stream("", show("<0102050607080941>").as_bytes()), named, &[])).unwrap();
    assert!(found.text.contains("Aéfi€ffß\u{fffd}A"), "{found:?}");
    assert!(found.notes.iter().any(|note| note.starts_with("1 characters are of fonts")), "{found:?}");
    let utf16 = "/Font << /F << /Subtype /Type0 /Encoding /UniGB-UCS2-H /DescendantFonts [<< >>] >> >>";
    assert_eq!(text(&page(&stream("", show("<4F60597D>").as_bytes()), utf16, &[])), "你好");
    let mac = "/Font << /F << /Subtype /TrueType /Encoding /MacRomanEncoding >> >>";
    assert_eq!(text(&page(&stream("", show("<8E>").as_bytes()), mac, &[])), "é");
}

#[test]
fn streams_are_unpacked_in_each_way() {
    let font = format!("/Font << /F {FONT} >>");
    let hex: String = HELLO.bytes().map(|b| format!("{b:02X}")).collect();
    let run: Vec<u8> = [&[HELLO.len() as u8 - 1][..], HELLO.as_bytes(), &[128]].concat();
    // Codes of nine bits that are single bytes, and the end.
    let mut bits = String::from("100000000");
    HELLO.bytes().for_each(|b| bits.push_str(&format!("{b:09b}")));
    bits.push_str("100000001");
    let lzw: Vec<u8> = bits
        .as_bytes()
        .chunks(8)
        .map(|c| u8::from_str_radix(&format!("{:0<8}", std::str::from_utf8(c).unwrap()), 2).unwrap())
        .collect();
    for content in [
        stream("", HELLO.as_bytes()),
        packed("", HELLO.as_bytes()),
        stream("/Filter /ASCIIHexDecode", format!("{hex}>").as_bytes()),
        stream("/Filter [/RunLengthDecode]", &run),
        stream("/Filter /LZWDecode", &lzw),
        stream("/Filter /ASCII85Decode", b"6<#'\\7PQ#@1a#b0+>GQ(+?(u.+B2ko-qIocCi:FtDfTZ).9(%)78s~>"),
    ] {
        let found = read(&page(&content, &font, &[]));
        if content.windows(7).any(|w| w == b"ASCII85") {
            // Only that it ends well: its text is another.
            assert!(found.is_ok() || found == Err(PdfError::NoText(1)));
            continue;
        }
        assert!(found.as_ref().is_ok_and(|f| f.text.contains("Hello")), "{found:?}");
    }
}

/// Packs as writers do: a table that grows, and is begun anew before it is full.
fn lzw(bytes: &[u8], early: bool) -> Vec<u8> {
    let (mut bits, mut table) = (String::new(), std::collections::HashMap::<Vec<u8>, usize>::new());
    let mut put = |code: usize, next: usize| {
        let next = next + usize::from(early);
        let width = [512, 1_024, 2_048].iter().filter(|from| next > **from).count() + 9;
        bits.push_str(&format!("{code:0width$b}"));
    };
    let code = |table: &std::collections::HashMap<Vec<u8>, usize>, text: &[u8]| match text {
        [byte] => usize::from(*byte),
        text => table[text],
    };
    put(256, 258);
    let mut text = Vec::new();
    for byte in bytes {
        let longer = [&text[..], &[*byte]].concat();
        if longer.len() == 1 || table.contains_key(&longer) {
            text = longer;
            continue;
        }
        put(code(&table, &text), table.len() + 258);
        table.insert(longer, table.len() + 258);
        if table.len() == 3_800 {
            put(256, table.len() + 258);
            table.clear();
        }
        text = vec![*byte];
    }
    put(code(&table, &text), table.len() + 258);
    put(257, table.len() + 259);
    let byte =
        |bits: &[u8]| u8::from_str_radix(&format!("{:0<8}", std::str::from_utf8(bits).unwrap()), 2).unwrap();
    bits.as_bytes().chunks(8).map(byte).collect()
}

#[test]
fn tables_of_lzw_grow_at_the_right_code() {
    let mut seed = 7u32;
    let letters: String = (0..9_000)
        .map(|_| {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            char::from(b'a' + (seed >> 16) as u8 % 26)
        })
        .collect();
    for length in [100, 500, 1_200, 3_000, 9_000] {
        let content = format!("BT /F 9 Tf ({}) Tj ET", &letters[..length]);
        for early in [false, true] {
            let dict = format!("/Filter /LZWDecode /DecodeParms << /EarlyChange {} >>", u8::from(early));
            let file =
                page(&stream(&dict, &lzw(content.as_bytes(), early)), &format!("/Font << /F {FONT} >>"), &[]);
            assert!(text(&file) == letters[..length], "{length} {early}");
        }
    }
}

#[test]
fn objects_are_found_in_streams_and_in_damaged_files() {
    // The catalog, the pages and the font in a stream of objects; a length that is an object of its own and wrong.
    let inner = [
        "<< /Type /Catalog /Pages 11 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [12 0 R] /Count 1 >>".to_owned(),
        format!("<< /Type /Page /Parent 11 0 R /Contents 2 0 R /Resources << /Font << /F {FONT} >> >> >>"),
    ];
    let (mut head, mut body) = (String::new(), String::new());
    for (n, object) in inner.iter().enumerate() {
        head.push_str(&format!("{} {} ", 10 + n, body.len()));
        body.push_str(object);
        body.push(' ');
    }
    let objects =
        packed(&format!("/Type /ObjStm /N 3 /First {}", head.len()), format!("{head}{body}").as_bytes());
    let mut whole = b"%PDF-1.5\n1 0 obj\n".to_vec();
    whole.extend(objects);
    whole.extend(b"\nendobj\n2 0 obj\n<< /Length 3 0 R >>\nstream\n");
    whole.extend(HELLO.as_bytes());
    whole.extend(b"\nendstream\nendobj\n3 0 obj\n7\nendobj\n");
    whole.extend(b"4 0 obj\n<< /Type /XRef /Root 10 0 R /Length 0 >>\nstream\n\nendstream\nendobj\n");
    assert_eq!(text(&whole), "Hello");
    let file = pages(&[HELLO, HELLO]);
    // Without its end, with bytes before it, and with its catalog destroyed.
    assert!(text(&file[..file.len() - 80]).contains("Hello"));
    assert!(text(&[b"\n\n\xef\xbb\xbf", &file[..]].concat()).contains("Hello"));
    let broken = String::from_utf8_lossy(&file).replace("/Type /Catalog", "/Type /Nothing");
    assert!(read(broken.as_bytes()).is_ok() || read(broken.as_bytes()) == Err(PdfError::NoText(2)));
    // A later version of an object counts.
    let newer =
        [&file[..], b"5 0 obj\n", &stream("", HELLO.replace("Hello", "Newer").as_bytes()), b"\nendobj\n"]
            .concat();
    assert!(text(&newer).contains("Newer"));
}

#[test]
fn drawings_in_drawings_are_read_and_may_not_hold_themselves() {
    let resources = format!("/Font << /F {FONT} >> /XObject << /X 5 0 R >>");
    let inner = format!("{HELLO} /X Do");
    let form = stream(&format!("/Subtype /Form /Resources << {resources} >>"), inner.as_bytes());
    let found = text(&page(&stream("", b"/X Do"), &resources, &[form]));
    assert!(found.starts_with("Hello") && found.matches("Hello").count() < 20, "{found}");
}

#[test]
fn files_without_a_text_say_why() {
    let picture =
        page(&stream("", b"q /Im Do Q"), "/XObject << /Im 5 0 R >>", &[stream("/Subtype /Image", b"x")]);
    assert_eq!(read(&picture), Err(PdfError::NoText(1)));
    assert_eq!(read(b"%PDF-1.4 nothing"), Err(PdfError::NoPages));
    let secret =
        file(&[b"<< /Type /Catalog >>".to_vec(), b"<< /Filter /Standard >>".to_vec()], "/Encrypt 2 0 R");
    assert_eq!(read(&secret), Err(PdfError::Encrypted));
    for (error, word) in [
        (PdfError::Encrypted, "protected by a password"),
        (PdfError::Encrypted, "qpdf"),
        (PdfError::NoText(3), "scans"),
        (PdfError::NoPages, "damaged"),
    ] {
        assert!(error.to_string().contains(word));
    }
    let some = read(&pages(&[HELLO, "q Q", HELLO])).unwrap();
    assert!(some.notes.contains(&"pages without text, perhaps pictures: 2".to_owned()), "{some:?}");
    assert!(some.text.contains("--- page 3 of 3 ---\nHello"), "{some:?}");
}

#[test]
fn encrypted_files_say_so_also_without_their_end() {
    let by = |lock: &str, trailer: &str, end: bool| {
        let whole = page(&stream("", HELLO.as_bytes()), &format!("/Font << /F {FONT} >>"), &[lock.into()]);
        let end_at = memchr::memmem::find(&whole, b"trailer").unwrap();
        let trailer = if end { format!("trailer << /Root 1 0 R {trailer} >>\n") } else { String::new() };
        read(&[&whole[..end_at], trailer.as_bytes()].concat())
    };
    let keys = "/O (o) /U (u) /P -44";
    let rc4 = format!("<< /Filter /Standard /V 2 /R 3 /Length 128 {keys} >>");
    let aes = format!(
        "<< /Filter /Standard /V 4 /R 4 {keys} /CF << /StdCF << /CFM /AESV2 >> >> /StmF /StdCF /StrF /StdCF >>"
    );
    let aes_256 = format!(
        "<< /Filter /Standard /V 5 /R 6 {keys} /CF << /StdCF << /CFM /AESV3 >> >> /StmF /StdCF /StrF /StdCF >>"
    );
    let attachments = format!("<< /Filter /Standard /V 4 /R 4 {keys} /StmF /Identity /EFF /StdCF >>");
    let other = "<< /Filter /Adobe.PubSec /V 2 /Recipients [(x)] >>".to_owned();
    let at = "/Encrypt 5 0 R";
    for (lock, trailer, end, encrypted) in [
        (&rc4, at, true, true),
        (&aes, at, true, true),
        (&aes_256, at, true, true),
        (&other, at, true, true),
        (&rc4, "/Encrypt 99 0 R", true, true),
        (&rc4, "", false, true),
        (&aes, "", false, true),
        (&attachments, at, true, false),
        (&attachments, "", false, false),
        // The rest of an encryption that was taken away.
        (&rc4, "", true, false),
        (&rc4, "/Encrypt null", true, false),
    ] {
        let found = by(lock, trailer, end);
        assert_eq!(found == Err(PdfError::Encrypted), encrypted, "{lock} {trailer} {end}: {found:?}");
        assert_eq!(found.is_ok(), !encrypted, "{lock} {trailer} {end}: {found:?}");
    }
    let direct = by("<< >>", &format!("/Encrypt {rc4}"), true);
    assert_eq!(direct, Err(PdfError::Encrypted));
}

#[test]
fn x10_hostile_files_end_within_their_bounds() {
    let many: Vec<&str> = vec![HELLO; 10_000];
    let found = read(&pages(&many)).unwrap();
    assert_eq!(found.notes[..2], ["the text of a PDF of 10000 pages", "only its first 2000 pages were read"]);
    // Contents that unpack to far more, alone and shared by many pages.
    let font = format!("/Font << /F {FONT} >>");
    let zeros = packed("", &vec![b' '; 40 << 20]);
    assert!(read(&page(&zeros, &font, &[])).is_err());
    let shared: Vec<String> = (0..500).map(|_| "<< /Type /Page /Contents 3 0 R >>".to_owned()).collect();
    let tree = format!("<< /Type /Pages /Kids [{}] >>", shared.join(" "));
    let catalog = b"<< /Type /Catalog /Pages 2 0 R >>".to_vec();
    let bomb = packed("", &vec![b' '; 8 << 20]);
    assert_eq!(read(&file(&[catalog.clone(), tree.into_bytes(), bomb], "")), Err(PdfError::TooLarge));
    // Trees and references that lead to themselves, and values nested without end.
    for object in [
        "<< /Type /Pages /Kids [2 0 R 2 0 R 1 0 R] >>".to_owned(),
        "2 0 R".to_owned(),
        format!("<< /Kids {}", "[".repeat(100_000)),
        format!("<< /Kids {}", "<< /A ".repeat(100_000)),
        format!("<< /Kids [{}] >>", "<< /Kids [".repeat(100_000)),
        "(".repeat(1_000_000),
        "1 0 obj << ".repeat(20_000),
    ] {
        let _ = read(&file(&[catalog.clone(), object.into_bytes()], ""));
    }
    // The same bytes without a filter, and digits that stand for four zeros each.
    let limit = 1_000;
    let budget = Budget { bytes: Cell::new(limit), steps: Cell::new(1_000) };
    let unpacked = filter::decode(&[b'z'; 100_000], &["A85".to_owned()], &[], &budget);
    assert_eq!((unpacked, budget.bytes.get()), (None, 0));
    budget.bytes.set(limit);
    assert!(filter::decode(&[b' '; 900], &[], &[], &budget).is_some());
    assert_eq!((filter::decode(&[b' '; 900], &[], &[], &budget), budget.bytes.get()), (None, 0));
    // Codes that mean long texts, ranges of codes, and values that are read for each operator.
    let show = "BT /F 9 Tf (AAAAAAAA) Tj ET ".repeat(2_000);
    let composite = |table: &str| {
        let resources = "/Font << /F << /Subtype /Type1 /ToUnicode 5 0 R >> >>";
        read(&page(&packed("", show.as_bytes()), resources, &[packed("", table.as_bytes())]))
    };
    let long = "0041".repeat(100_000);
    for table in [
        format!("1 beginbfchar <41> <{long}> endbfchar"),
        format!("1 beginbfrange <00> <ff> <{long}> endbfrange"),
        format!("1 beginbfrange <41> <41> [<{long}>] endbfrange"),
    ] {
        let found = composite(&table);
        assert!(found.as_ref().is_ok_and(|f| f.text.len() < 20_000), "{:?}", found.map(|f| f.text.len()));
    }
    let ranges = format!("{} endbfrange", "<00000000> <0000ffff> <0041> ".repeat(5_000));
    let few = || Budget { bytes: Cell::new(1 << 20), steps: Cell::new(100_000) };
    let budget = few();
    cmap::CharacterMap::read(ranges.as_bytes(), &budget);
    assert!(budget.is_spent());
    for widths in ["4294967295 [500 500]", "4294967295 9 500", "9 0 500", "0 4294967295 500"] {
        let resources =
            format!("/Font << /F << /Subtype /Type0 /DescendantFonts [<< /W [{widths}] >>] >> >>");
        let _ = read(&page(&stream("", b"BT /F 9 Tf (AB) Tj ET"), &resources, &[]));
    }
    let many = "0 65535 500 ".repeat(5_000);
    let fonts = format!("/Font << /F << /Subtype /Type0 /DescendantFonts [<< /W [{many}] >>] >> >>");
    let (budget, bytes) = (few(), page(&stream("", b"BT /F 9 Tf (AB) Tj ET"), &fonts, &[]));
    let found = File::find(&bytes, &budget).unwrap();
    content::Reader::new(&found).page(&found.pages()[0]);
    assert!(budget.is_spent());
    let entries: String = (0..5_000).map(|n| format!("/X{n} [1 2 3 4] ")).collect();
    let resources =
        format!("/XObject << {entries} >> /Font << /F << /Subtype /Type1 /A << {entries} >> >> >>");
    let content = "/X1 Do BT /F 9 Tf (Hi) Tj ET\n".repeat(4_000);
    assert!(read(&page(&packed("", content.as_bytes()), &resources, &[])).unwrap().text.contains("Hi"));
    let notes = composite(&format!("1 beginbfchar <41> <{}> endbfchar", "0042".repeat(32))).unwrap().notes;
    assert!(notes.len() == 1, "{notes:?}");
    let one = format!("BT /F 9 Tf ({}) Tj ET", "A".repeat(40_000));
    let letters = format!("1 beginbfchar <41> <{}> endbfchar", "0042".repeat(32));
    let resources = "/Font << /F << /Subtype /Type1 /ToUnicode 5 0 R >> >>";
    let long = page(&packed("", one.as_bytes()), resources, &[packed("", letters.as_bytes())]);
    let notes = read(&long).unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("pages with more than 1 MB of text")), "{notes:?}");
    // A hundred drawings, each of which draws all of them.
    let names: String = (0..100).map(|n| format!("/X{n} Do ")).collect();
    let drawings: String = (0..100).map(|n| format!("/X{n} 5 0 R ")).collect();
    let resources = format!("/XObject << {drawings} >>");
    let form = stream(&format!("/Subtype /Form /Resources << {resources} >>"), names.as_bytes());
    assert!(read(&page(&stream("", names.as_bytes()), &resources, &[form])).is_err());
}

#[test]
fn x10_changed_bytes_do_not_stop_it() {
    let table = "1 beginbfrange <0000> <00FF> <0041> endbfrange";
    let resources = "/Font << /F << /Subtype /Type0 /Encoding /Identity-H /ToUnicode 5 0 R >> >>";
    let base = page(
        &stream("", b"BT /F 9 Tf [<0041> -500 <0042>] TJ ET"),
        resources,
        &[stream("", table.as_bytes())],
    );
    let mut seed = 7u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let words: [&[u8]; 12] =
        [b"<<", b">>", b"[", b"]", b"(", b")", b"<", b">", b" 1 0 R ", b"endobj", b"99999999999", b"-0.0.1"];
    for _ in 0..3_000 {
        let mut bytes = base.clone();
        for _ in 0..1 + next(6) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = next(256) as u8,
                1 => drop(bytes.splice(at..at, words[next(words.len())].iter().copied())),
                _ => bytes.truncate(at.max(20)),
            }
        }
        let _ = read(&bytes);
    }
}
