//! The table: import of the published form, pooling, and files that are not what they say.

use serde_json::json;

use crate::embedder::{cosine, packed};
use crate::table::{Table, import, written};

fn tensors(header: &serde_json::Value, data: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn tokenizer() -> String {
    json!({"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "cat": 1, "kitten": 2, "car": 3, "##s": 4}}})
        .to_string()
}

const VALUES: [f32; 15] = [9.0, 9.0, 9.0, 1.0, 0.1, 0.0, 0.9, 0.2, 0.0, 0.0, 0.1, 1.0, 0.05, 0.05, 0.05];

fn good() -> Vec<u8> {
    let header = json!({"embeddings": {"dtype": "F32", "shape": [5, 3], "data_offsets": [0, 60]}});
    tensors(&header, &floats(&VALUES))
}

fn imported(tensors: &[u8], tokenizer: &str) -> Result<Table, String> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("model.safetensors"), tensors).unwrap();
    std::fs::write(dir.path().join("tokenizer.json"), tokenizer).unwrap();
    let to = dir.path().join("data/embeddings.table");
    let made = import(dir.path(), &to).map_err(|e| e.0)?;
    let read = Table::open(&to).unwrap().unwrap();
    assert_eq!(read.identity(), made.identity());
    Ok(read)
}

#[test]
fn a_published_table_is_imported_and_words_of_one_meaning_are_near() {
    let even = |_: &str| 1.0;
    let table = imported(&good(), &tokenizer()).unwrap();
    assert_eq!(table.size(), (4, 3), "special pieces are left out");
    let vector = |text: &str| packed(&table.pool(text, &even).unwrap());
    let near = |a: &str, b: &str| cosine(&vector(a), &vector(b));
    assert!(near("cat", "kitten") > 0.9 && near("cat", "car") < 0.3);
    assert!(near("cats", "cat") > 0.9, "a word of two pieces");
    assert!(table.pool("dog the", &even).is_none(), "no word of it is known");
    // A rare word counts more.
    let rare = |w: &str| if w == "car" { 10.0 } else { 1.0 };
    assert!(cosine(&packed(&table.pool("cat car", &rare).unwrap()), &vector("car")) > 0.9);
    // Other forms of numbers, and of vocabularies.
    let halves: Vec<u8> = VALUES.iter().flat_map(|v| ((v.to_bits() >> 16) as u16).to_le_bytes()).collect();
    let header =
        json!({"x": {"dtype": "BF16", "shape": [5, 3], "data_offsets": [0, 30]}, "__metadata__": {}});
    assert_eq!(imported(&tensors(&header, &halves), &tokenizer()).unwrap().size(), (4, 3));
    // 1.0, 0.5 and -2.0 as half floats.
    let half: Vec<u8> = [0x3c00u16, 0x3800, 0xc000].iter().flat_map(|v| v.to_le_bytes()).collect();
    let header = json!({"embeddings": {"dtype": "F16", "shape": [1, 3], "data_offsets": [0, 6]}});
    let unigram = json!({"model": {"type": "Unigram", "vocab": [["\u{2581}cat", -1.0]]}}).to_string();
    let table = imported(&tensors(&header, &half), &unigram).unwrap();
    assert!(cosine(&packed(&table.pool("cat", &even).unwrap()), &packed(&[1.0, 0.5, -2.0])) > 0.99);
}

#[test]
fn an_import_removes_what_a_killed_one_left() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("model.safetensors"), good()).unwrap();
    std::fs::write(dir.path().join("tokenizer.json"), tokenizer()).unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for name in [".embeddings-killed.new", ".embeddings-used.new", ".tmpother"] {
        std::fs::write(data.join(name), "part").unwrap();
    }
    let used = std::fs::File::open(data.join(".embeddings-used.new")).unwrap();
    used.try_lock().unwrap();
    import(dir.path(), &data.join("embeddings.table")).unwrap();
    let entries = std::fs::read_dir(&data).unwrap();
    let mut left: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    left.sort();
    assert_eq!(left, [".embeddings-used.new", ".tmpother", "embeddings.table"]);
}

#[test]
fn each_way_to_mark_the_beginning_of_a_word_is_known() {
    let header = json!({"embedding.weight": {"dtype": "F32", "shape": [5, 3], "data_offsets": [0, 60]}});
    let tensors = tensors(&header, &floats(&VALUES));
    for mark in ['\u{2581}', '\u{120}'] {
        let word = |word: &str| format!("{mark}{word}");
        let vocab =
            json!({"s": 4, (word("cat")): 1, (word("Car")): 3, (word("Cat")): 0, (word("KITTEN")): 2});
        let tokenizer = json!({"model": {"type": "BPE", "vocab": vocab}}).to_string();
        let table = imported(&tensors, &tokenizer).unwrap();
        let near = |a: &str, b: &[f32]| cosine(&table.packed(a, &|_| 1.0), &packed(b));
        assert!(near("cat", &VALUES[3..6]) > 0.99, "{mark}: the form in lower case");
        assert!(
            near("car", &VALUES[9..12]) > 0.99 && near("Kitten", &VALUES[6..9]) > 0.99,
            "{mark}: other forms"
        );
        assert!(near("cats", &VALUES[3..6]) > 0.9, "{mark}: a word of two pieces");
        assert_eq!(table.size(), (4, 3));
    }
    let unmarked = json!({"model": {"type": "BPE", "vocab": {"cat</w>": 1, "car</w>": 2}}}).to_string();
    assert!(imported(&tensors, &unmarked).unwrap_err().contains("where a word begins"));
}

#[test]
fn hostile_files_are_refused_with_a_reason() {
    let shaped = |shape: serde_json::Value, offsets: serde_json::Value| {
        tensors(
            &json!({"embeddings": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}),
            &floats(&VALUES),
        )
    };
    let bad = [
        Vec::new(),
        vec![0xff; 8],
        vec![0xff; 40],
        good()[..50].to_vec(),
        shaped(json!([5, 3]), json!([0, 61])),
        shaped(json!([5, 3]), json!([60, 0])),
        shaped(json!([u64::MAX, u64::MAX]), json!([0, 60])),
        shaped(json!([4_000_000_000u64, 4_000_000_000u64]), json!([0, 60])),
        shaped(json!([-5, 3]), json!([0, 60])),
        shaped(json!([0, 3]), json!([0, 0])),
        shaped(json!([3]), json!([0, 12])),
        shaped(json!(null), json!(null)),
        tensors(&json!([1]), &[]),
        tensors(
            &json!({"embeddings": {"dtype": "I64", "shape": [5, 3], "data_offsets": [0, 60]}}),
            &floats(&VALUES),
        ),
        tensors(
            &json!({"embeddings": {"dtype": "F32", "shape": [5, 3], "data_offsets": [0, 60]}}),
            &floats(&[f32::NAN; 15]),
        ),
    ];
    for (n, bytes) in bad.iter().enumerate() {
        assert!(imported(bytes, &tokenizer()).is_err(), "{n}");
    }
    for tokenizer in [
        "",
        "[]",
        "{\"model\": {\"type\": \"WordPiece\"}}",
        "{\"model\": {\"type\": \"Magic\", \"vocab\": {\"a\": 1}}}",
        "{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 99}}}",
        "{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0}}}",
    ] {
        assert!(imported(&good(), tokenizer).is_err(), "{tokenizer}");
    }
}

#[test]
fn a_damaged_table_is_refused_wherever_it_is_cut_or_changed() {
    let rows: [(&str, &[f32]); 2] = [("cat", &[1.0, 0.5]), ("dog", &[0.5, 1.0])];
    let good = written(2, rows.into_iter());
    assert_eq!(Table::read(&good).unwrap().size(), (2, 2));
    for cut in 0..good.len() {
        assert!(Table::read(&good[..cut]).is_err(), "cut at {cut}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(Table::read(&longer).is_err());
    // No change of a byte makes it fail in another way than with a reason.
    for at in 0..good.len() {
        for value in [0, 0x7f, 0xff] {
            let mut changed = good.clone();
            changed[at] = value;
            if let Ok(table) = Table::read(&changed) {
                let _ = table.pool("cat dog", &|_| 1.0);
            }
        }
    }
    let mut huge = good;
    huge[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(Table::read(&huge).is_err(), "a number of rows that cannot be");
    assert!(Table::open(std::path::Path::new("/nonexistent/embeddings.table")).unwrap().is_none());
}
