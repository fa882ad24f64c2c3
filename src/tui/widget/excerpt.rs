//! The part of a text around a marked piece that fits into some columns, with whole words.

use crate::text::{shorten_end, width};

/// Columns that stay empty so that a word is whole; a longer word is cut.
pub(crate) const WORD: usize = 12;

/// Returns what is shown before the marked piece, the piece, and what is shown behind it. `dots` stands where something is left out.
pub(crate) fn excerpt(
    (before, marked, behind): (&str, &str, &str),
    room: usize,
    dots: &str,
) -> (String, String, String) {
    let (left, middle, right) = (width(before), width(marked), width(behind));
    if left + middle + right <= room {
        return (before.to_owned(), marked.to_owned(), behind.to_owned());
    }
    let Some(spare) = room.checked_sub(middle) else {
        return (String::new(), shorten_end(marked, room, dots.is_ascii()), String::new());
    };
    // Each side has half of the room, and what the other one leaves.
    let half = spare / 2;
    let for_left = left.min(half.max(spare.saturating_sub(right)));
    let start = end_of(before, for_left, dots);
    let rest = room.saturating_sub(width(&start) + middle);
    (start, marked.to_owned(), beginning_of(behind, rest, dots))
}

/// The longest end of a text that begins with a word.
fn end_of(text: &str, room: usize, dots: &str) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let Some(room) = room.checked_sub(width(dots)) else { return String::new() };
    let begins = |at: usize, c: char| !c.is_whitespace() && text[..at].ends_with(char::is_whitespace);
    let fits = |end: &&str| width(end) <= room;
    let ends = || text.char_indices().map(|(at, c)| (at, c, &text[at..]));
    let whole =
        ends().filter(|(at, c, _)| begins(*at, *c)).map(|(.., end)| end).find(fits).unwrap_or_default();
    let longest = ends().map(|(.., end)| end).find(fits).unwrap_or_default();
    format!("{dots}{}", if width(longest) > width(whole) + WORD { longest } else { whole })
}

/// The longest beginning of a text that ends with a word.
fn beginning_of(text: &str, room: usize, dots: &str) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let Some(room) = room.checked_sub(width(dots)) else { return String::new() };
    let ends = |at: usize, c: char| c.is_whitespace() && !text[..at].ends_with(char::is_whitespace);
    let fits = |beginning: &&str| width(beginning) <= room;
    let beginnings = || text.char_indices().map(|(at, c)| (at, c, &text[..at]));
    let words = beginnings().filter(|(at, c, _)| ends(*at, *c)).map(|(.., beginning)| beginning);
    let whole = words.take_while(fits).last().unwrap_or_default();
    let longest = beginnings().map(|(.., beginning)| beginning).take_while(fits).last().unwrap_or_default();
    format!("{}{dots}", if width(longest) > width(whole) + WORD { longest } else { whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, marked: &str, room: usize) -> String {
        let at = text.find(marked).unwrap();
        let parts = (&text[..at], marked, &text[at + marked.len()..]);
        let (before, piece, behind) = excerpt(parts, room, "…");
        format!("{before}[{piece}]{behind}")
    }

    #[test]
    fn words_stay_whole_and_the_marked_piece_stays() {
        let text = "The deploy failed since the tunnel on bastion was closed by the night job.";
        assert_eq!(shown(text, "tunnel", 200), text.replace("tunnel", "[tunnel]"));
        assert_eq!(shown(text, "tunnel", 40), "…since the [tunnel] on bastion was closed…");
        // At an end the other side has the room.
        assert_eq!(shown(text, "The", 30), "[The] deploy failed since the…");
        assert_eq!(shown(text, "job", 30), "…was closed by the night [job].");
        assert_eq!(shown(text, "tunnel", 6), "[tunnel]");
        assert_eq!(shown(text, "tunnel", 4), "[tun…]");
    }

    #[test]
    fn a_long_word_is_cut() {
        let text = "a/path/of/many/folders/without/any/space/before/the/match/and/behind/it/as/well";
        assert_eq!(shown(text, "match", 40), "…pace/before/the/[match]/and/behind/it/as…");
    }

    #[test]
    fn it_is_never_wider_than_its_room() {
        for text in [
            "a match b",
            "日本語の match テキスト です",
            "  match",
            "xmatchx yyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
            "match",
        ] {
            for room in 0..40 {
                let at = text.find("match").unwrap();
                let parts = (&text[..at], "match", &text[at + 5..]);
                let (before, piece, behind) = excerpt(parts, room, "…");
                assert!(width(&before) + width(&piece) + width(&behind) <= room, "{text} in {room}");
            }
        }
    }
}
