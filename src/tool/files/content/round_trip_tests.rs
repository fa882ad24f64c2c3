//! Row W20 of the faults: files in many encodings, with all that is odd in them, are read, edited, patched and rewritten
//! by the tools as a model would do it. No byte outside of the changed line may differ.

use serde_json::json;

use crate::Tool;
use crate::files::{EditFile, Patch, ReadFile, Search, WriteFile};
use crate::testing::Bench;

/// Name of the encoding as it is said, and sentences of a language that is written in it.
const LANGUAGES: [(&str, &str); 16] = [
    ("windows-1252", "Größe über Äpfel für zwölf Straßen|l’été “déjà” – 5 € à côté|Çà et là, Œuvre naïve"),
    ("windows-1250", "Zażółć gęślą jaźń|Příliš žluťoučký kůň úpěl ďábelské ódy|Większość ludzi śpi źle"),
    ("windows-1251", "Съешь же ещё этих мягких французских булок|да выпей чаю|Привет, мир и люди"),
    ("windows-1253", "Η γρήγορη καφέ αλεπού πηδάει πάνω|από το τεμπέλικο σκυλί|καλημέρα κόσμε"),
    ("windows-1254", "Pijamalı hasta yağız şoföre|çabucak güvendi ve İstanbul’a gitti|şimdi değil, ığdır"),
    ("windows-1255", "דג סקרן שט בים מאוכזב|ולפתע מצא חברה|שלום עולם וכל האנשים"),
    ("windows-1256", "نص حكيم له سر قاطع وذو شأن عظيم|مكتوب على ثوب أخضر|مرحبا بالعالم"),
    ("windows-1257", "Įlinkdama fechtuotojo špaga|sublykčiojusi pragręžė apvalų arbūzą|žąsys ir ėriukai"),
    ("windows-874", "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า|กว่าบรรดาฝูงสัตว์เดรัจฉาน|สวัสดีชาวโลก"),
    ("KOI8-U", "Съешь же ещё этих мягких французских булок|да выпей чаю|Привет, мир и люди"),
    ("Shift_JIS", "これは日本語の文章です。|漢字とかなが混ざっています|ソフトの表示と能力、十貼"),
    ("EUC-JP", "これは日本語の文章です。|漢字とかなが混ざっています|ソフトの表示と能力、十貼"),
    ("GBK", "这是一个用中文写的文件，|里面有很多汉字和标点。|编码必须保持不变"),
    ("Big5", "這是一個用中文寫的檔案，|裡面有許多漢字與標點。|功能許蓋碁"),
    ("EUC-KR", "키스의 고유조건은 입술끼리 만나야 하고|특별한 기술은 필요치 않다|안녕하세요 세계"),
    ("UTF-8", "Größe 漢字 Привет|déjà vu – naïve|שלום عالم"),
];

/// How the lines end.
const ENDS: [&[&str]; 4] = [&["\n"], &["\r\n"], &["\r"], &["\n", "\r\n"]];

type Encode = Box<dyn Fn(&str) -> Vec<u8>>;

/// A file: its lines in bytes, each with its end, and what read_file says of it.
struct Sample {
    lines: Vec<Vec<u8>>,
    label: String,
    encode: Encode,
    words: Vec<&'static str>,
}

/// Small pseudo-random numbers (a linear congruential generator with the constants of Knuth's MMIX).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

fn sample(n: usize) -> Sample {
    let mut dice = Dice(n as u64);
    let (name, sentences) = LANGUAGES[n % LANGUAGES.len()];
    let words: Vec<&'static str> = sentences.split('|').collect();
    // Of the texts in UTF-8, most are UTF-16.
    let wide = (name == "UTF-8").then(|| (n / LANGUAGES.len()) % 5);
    let label = match wide {
        None => name.to_owned(),
        Some(0) => "UTF-16 LE".into(),
        Some(1) => "UTF-16 BE".into(),
        Some(2) => "UTF-16 LE without BOM".into(),
        Some(3) => "UTF-8 with stray bytes".into(),
        Some(_) => String::new(),
    };
    let units = |big: bool| {
        move |text: &str| {
            let unit = |u: u16| if big { u.to_be_bytes() } else { u.to_le_bytes() };
            text.encode_utf16().flat_map(unit).collect::<Vec<u8>>()
        }
    };
    let encode: Encode = match wide {
        Some(1) => Box::new(units(true)),
        Some(0 | 2) => Box::new(units(false)),
        Some(_) => Box::new(|text: &str| text.as_bytes().to_vec()),
        None => {
            let encoding = encoding_rs::Encoding::for_label(name.as_bytes()).unwrap();
            Box::new(move |text: &str| {
                let (bytes, _, lacks) = encoding.encode(text);
                assert!(!lacks, "{text}");
                bytes.into_owned()
            })
        }
    };
    let ends = ENDS[(n / 3) % ENDS.len()];
    let mut lines = Vec::new();
    let odd = ["a\0b\0c", "\u{1b}[1mbold\u{1b}[0m", "page\u{c}", "\u{7f}deleted", "b\u{8}b", "\u{2400}"];
    for number in 0..12 + dice.roll(20) {
        let mut line = encode(&format!("{number} {}", words[dice.roll(words.len())]));
        match dice.roll(6) {
            // Control characters; the picture of one only where there is such a character.
            0 if wide == Some(4) => line.extend(encode(odd[dice.roll(odd.len())])),
            0 if wide != Some(2) => line.extend(encode(odd[dice.roll(odd.len() - 1)])),
            1 if wide.is_none() || wide >= Some(3) => line.extend(encode(" one\u{1b} two\0three ")),
            2 if ends != ["\r"] && wide != Some(2) => line.extend(encode("10%\r20%\r30%")),
            3 if wide == Some(3) => line.extend([0xff, [0x80, 0x9d, 0xfe][dice.roll(3)]]),
            4 => line.clear(),
            _ => {}
        }
        line.extend(encode(ends[dice.roll(ends.len())]));
        lines.push(line);
    }
    if wide == Some(3) {
        lines.insert(1, b"always \xfe\x80 one\n".to_vec());
    }
    let at = 1 + dice.roll(lines.len() - 2);
    lines.insert(at, encode(&format!("the target line{}", ends[dice.roll(ends.len())])));
    match wide {
        Some(0) => lines[0].splice(..0, [0xff, 0xfe]).for_each(drop),
        Some(1) => lines[0].splice(..0, [0xfe, 0xff]).for_each(drop),
        _ => {}
    }
    // Sometimes without an end.
    if dice.roll(3) == 0 {
        lines.push(encode("last"));
    }
    Sample { lines, label, encode, words }
}

/// The lines that read_file shows, and what it says of the file.
fn shown(said: &str) -> (Vec<String>, String) {
    let mut lines = Vec::new();
    let mut notes = String::new();
    for line in said.lines() {
        match line.split_once('\t') {
            Some((number, text)) if number.parse::<usize>().is_ok() => lines.push(text.to_owned()),
            _ => notes.push_str(line),
        }
    }
    (lines, notes)
}

#[tokio::test]
async fn w20_no_byte_outside_of_the_change_differs() {
    for n in 0..200 {
        let Sample { lines, label, encode, words } = sample(n);
        let before = lines.concat();
        let target = encode("target");
        let at = lines.iter().position(|l| l.windows(target.len()).any(|w| w == target)).unwrap();
        // The file with another line in the place of the target.
        let with = |word: &str| {
            let line = encode(&format!("the {word} line"));
            let old = encode("the target line");
            let mut all = lines.clone();
            let start = all[at].windows(old.len()).position(|w| w == old).unwrap();
            all[at].splice(start..start + old.len(), line);
            all.concat()
        };
        let fresh = || async {
            let b = Bench::new();
            let path = b.file("f", &before);
            let said = b.say(&ReadFile, json!({"path": "f"})).await;
            (b, path, said)
        };
        let (b, path, said) = fresh().await;
        let (seen, notes) = shown(&said);
        assert!(notes.contains(&label), "{n} {label}: {notes}\n{said}");
        assert!(words.iter().any(|w| said.contains(w)), "{n} {label}: {said}");
        let row =
            seen.iter().position(|l| l == "the target line").unwrap_or_else(|| panic!("{n} {label}: {said}"));
        let found = b.say(&Search, json!({"pattern": "the target l"})).await;
        assert!(found.contains(&format!("{}:the target line", row + 1)), "{n} {label}: {found}");
        let with_word = b.say(&Search, json!({"pattern": words[0]})).await;
        assert_eq!(with_word != "nothing found\n", said.contains(words[0]), "{n} {label}: {with_word}");

        // A word; then the line with its neighbours.
        let edit = json!({"path": "f", "old": "target", "new": "edited"});
        let done = b.say(&EditFile, edit).await;
        assert!(done.starts_with("edited"), "{n} {label}: {done}");
        assert_eq!(std::fs::read(&path).unwrap(), with("edited"), "{n} {label}: edit");
        let (b, path, _) = fresh().await;
        let part = |word: &str| {
            let mut part = seen[row - 1..(row + 2).min(seen.len())].to_vec();
            part[1] = format!("the {word} line");
            part.join("\n")
        };
        let edit = json!({"path": "f", "old": part("target"), "new": part("next")});
        let done = b.say(&EditFile, edit).await;
        assert!(done.starts_with("edited"), "{n} {label}: {done}");
        assert_eq!(std::fs::read(&path).unwrap(), with("next"), "{n} {label}: edit of lines");

        let (b, path, _) = fresh().await;
        let context = |l: Option<&String>| l.map(|l| format!(" {l}\n")).unwrap_or_default();
        let patch = format!(
            "*** Begin Patch\n*** Update File: f\n{}-the target line\n+the patched line\n{}*** End Patch\n",
            context(row.checked_sub(1).map(|r| &seen[r])),
            context(seen.get(row + 1)),
        );
        let done = b.say(&Patch, json!({ "patch": patch })).await;
        assert!(done.starts_with("patched"), "{n} {label}: {done}");
        assert_eq!(std::fs::read(&path).unwrap(), with("patched"), "{n} {label}: patch");

        let (b, path, said) = fresh().await;
        let mut all = seen.clone();
        all[row] = "the new line".into();
        let open = said.contains("no newline at the end");
        let content = all.join("\n") + if open { "" } else { "\n" };
        let args = json!({"path": "f", "content": content});
        let preview = WriteFile.preview(&args, &b.cx).await;
        assert!(preview.diff.is_some(), "{n} {label}");
        let done = b.say(&WriteFile, args).await;
        assert!(done.starts_with("wrote f: +1 -1"), "{n} {label}: {done}");
        assert_eq!(std::fs::read(&path).unwrap(), with("new"), "{n} {label}: rewrite");
    }
}
