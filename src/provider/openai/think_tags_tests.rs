use super::*;

fn read(text: &str, size: usize) -> (String, String) {
    let (mut tags, mut out) = (ThinkTags::default(), Vec::new());
    let chars: Vec<char> = text.chars().collect();
    for piece in chars.chunks(size.max(1)) {
        tags.push(&piece.iter().collect::<String>(), &mut out);
    }
    tags.finish(&mut out);
    let (mut thoughts, mut words) = (String::new(), String::new());
    for piece in out {
        match piece {
            Piece::Text(t) => words.push_str(&t),
            Piece::Thought(t) => thoughts.push_str(&t),
            Piece::AllThought => thoughts.push_str(&std::mem::take(&mut words)),
        }
    }
    (thoughts, words)
}

#[test]
fn thoughts_and_words_are_told_apart_however_they_were_split() {
    let table = [
        ("<think>I look.</think>Hello.", "I look.", "Hello."),
        ("<thinking>\nI look.\n</thinking>\n\nHello.\n", "I look.", "Hello.\n"),
        ("\n<think>\n\n</think>\n\nHello.", "", "Hello."),
        ("<think>one</think>\n<think>two</think>end", "onetwo", "end"),
        ("[THINK]one[/THINK]end", "one", "end"),
        ("<think>never closed", "never closed", ""),
        ("<think>half closed</thin", "half closed</thin", ""),
        ("Say:\n<think>\nI go on.\n</think>\nDone.", "I go on.", "Say:\n\nDone."),
        // The template opened the thought in the prompt.
        ("I look at it.\nTwo files.\n</think>\n\nHello.", "I look at it.\nTwo files.\n", "Hello."),
        // Text about tags.
        ("Put it into `<think>` and `</think>`.", "", "Put it into `<think>` and `</think>`."),
        ("`<think>` opens it", "", "`<think>` opens it"),
        ("So:\n```xml\n<think>\nx\n</think>\n```\nOk", "", "So:\n```xml\n<think>\nx\n</think>\n```\nOk"),
        ("So:\n\n    <think>\n    </think>\n", "", "So:\n\n    <think>\n    </think>\n"),
        ("The tag\n<think> opens a thought", "", "The tag\n<think> opens a thought"),
        ("a < b and <thin", "", "a < b and <thin"),
        ("<thinker>x</thinker>", "", "<thinker>x</thinker>"),
        ("\n\n  indented\n\nend  ", "", "\n\n  indented\n\nend  "),
        ("", "", ""),
        (" \n", "", " \n"),
        ("füße <think> 😀\n", "", "füße <think> 😀\n"),
    ];
    for (text, thoughts, words) in table {
        for size in [1, 2, 3, 5, 7, 1000] {
            assert_eq!(read(text, size), (thoughts.into(), words.into()), "{text:?} in pieces of {size}");
        }
    }
}

#[test]
fn long_text_without_tags_passes_whole() {
    let text = "line of words\n".repeat(10_000);
    assert_eq!(read(&text, 11), (String::new(), text));
}
