//! The composer's text with its attachments, and its conversion to and from a message.

use tiller_protocol::{Attachment, Message};

use crate::input::dropped::DroppedPicture;
use crate::widget::edit::{Edit, chip, chip_number};

/// Pasted text longer than this becomes a chip.
const CHIP_LINES: usize = 8;
const CHIP_BYTES: usize = 800;
/// Pasted text longer than this is cut.
pub(crate) const PASTE_MAX: usize = 32 << 20;

/// A mention in the text: the word, the path, the line range.
pub(crate) type Mention = (String, String, Option<(u32, u32)>);

/// Text and attachments being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub edit: Edit,
    attachments: Vec<Attachment>,
    /// Names taken from the `@` list: only these words are read as mentions.
    mentions: Vec<String>,
}

impl Content {
    /// From a message that was queued, kept or recalled.
    pub(crate) fn of(message: &Message) -> Self {
        let mut new = Self::default();
        let mut text = message.text.clone();
        for a in &message.attachments {
            if let Attachment::File { path, .. } = a {
                new.mentions.push(path.clone());
                continue;
            }
            let n = u32::try_from(new.attachments.len()).unwrap_or(u32::MAX);
            if let Some(c) = chip(n).filter(|_| text.contains(a.label())) {
                text = text.replacen(a.label(), c.encode_utf8(&mut [0; 4]), 1);
                new.attachments.push(a.clone());
            }
        }
        new.edit.set(&text);
        new
    }

    /// The labels of the chips, to be looked up while the text is being changed.
    pub(crate) fn labels(&self) -> ChipLabels {
        ChipLabels(self.attachments.iter().map(|a| a.label().to_owned()).collect())
    }

    /// As it will be sent: chips become labels, and words `@name` or `@name:10-40` that were taken from the
    /// list become file attachments.
    pub(crate) fn message(&self) -> Message {
        let mut text = String::with_capacity(self.edit.text().len());
        let mut attachments = Vec::new();
        let mut rest = self.edit.text();
        // Each chip begins with this byte; text without one, which may be a megabyte, is copied at once.
        while rest.as_bytes().contains(&0xF3)
            && let Some(at) = rest.bytes().position(|b| b == 0xF3)
        {
            let Some(c) = rest[at..].chars().next() else { break };
            text.push_str(&rest[..at]);
            match chip_number(c).and_then(|n| self.attachments.get(n as usize)) {
                Some(a) => {
                    text.push_str(a.label());
                    attachments.push(a.clone());
                }
                None => text.push(c),
            }
            rest = &rest[at + c.len_utf8()..];
        }
        text.push_str(rest);
        for (word, path, lines) in self.mentioned() {
            attachments.push(Attachment::File { label: word, path, lines });
        }
        text.truncate(text.trim_end().len());
        Message { text, attachments, ..Message::default() }
    }

    /// Mentions in the text: the word, the path, the line range.
    pub(crate) fn mentioned(&self) -> Vec<Mention> {
        let mut found: Vec<Mention> = Vec::new();
        let text = self.edit.text();
        for name in &self.mentions {
            let tag = format!("@{name}");
            for (at, _) in text.match_indices(&tag) {
                let rest = &text[at + tag.len()..];
                let (range, taken) = lines(rest);
                let next = rest[taken..].chars().next();
                if next.is_none_or(|c| c.is_whitespace() || ",.;:!?)]}".contains(c)) {
                    let word = format!("{tag}{}", &rest[..taken]);
                    if !found.iter().any(|(w, ..)| *w == word) {
                        found.push((word, name.clone(), range));
                    }
                }
            }
        }
        found
    }

    /// Remembers that `name` was taken from the `@` list.
    pub(crate) fn mention(&mut self, name: &str) {
        // The lines of a definition stand behind the name of its file.
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        let range = |r: &str| r.split_once('-').is_some_and(|(a, b)| digits(a) && digits(b));
        let name = name.rsplit_once(':').filter(|(_, r)| range(r)).map_or(name, |(path, _)| path);
        if !self.mentions.iter().any(|m| m == name) {
            self.mentions.push(name.to_owned());
        }
    }

    /// Puts pasted text in: short text as it is, long text as a chip. Line ends become `\n`; nothing in it
    /// can act as a key.
    pub(crate) fn paste(&mut self, text: &str) {
        let mut end = text.len().min(PASTE_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text[..end].replace("\r\n", "\n").replace('\r', "\n");
        if !is_block(&text) {
            self.edit.insert(&text);
            return;
        }
        let lines = text.lines().count();
        let n = self.count(|a| matches!(a, Attachment::Paste { .. })) + 1;
        let measure =
            if lines > 1 { format!("{lines} lines") } else { format!("{} characters", text.chars().count()) };
        self.attach(Attachment::Paste { label: format!("[paste {n}: {measure}]"), text: text.into() });
    }

    /// Puts an image in. `data` is base64, sizes in pixels.
    pub(crate) fn image(&mut self, media_type: &str, data: String, width: u32, height: u32) {
        let image = self.labelled(media_type, data, width, height);
        self.attach(image);
    }

    fn labelled(&self, media_type: &str, data: String, width: u32, height: u32) -> Attachment {
        let n = self.count(|a| matches!(a, Attachment::Image { .. })) + 1;
        let size = data.len() / 4 * 3 / 1024;
        let label = format!("[image {n}: {width}x{height} {size} KB]");
        Attachment::Image { label, media_type: media_type.into(), data: data.into(), width, height }
    }

    /// Puts in a chip for pictures that are being read. Until they are it holds the pasted text, so that a copy of it
    /// that is kept or queued has no less.
    pub(crate) fn reserve(&mut self, label: String, text: &str) {
        self.attach(Attachment::Paste { label, text: text.into() });
    }

    /// The number of that chip, and where it is in the text; `None`: it was deleted, or is in another text.
    fn reserved(&self, label: &str) -> Option<(usize, usize)> {
        let chips = self.edit.text().char_indices();
        chips.filter_map(|(at, c)| Some((chip_number(c)? as usize, at))).find(|(n, _)| {
            matches!(self.attachments.get(*n), Some(Attachment::Paste { label: l, .. }) if l == label)
        })
    }

    /// Returns true if the text has that chip.
    pub(crate) fn reserves(&self, label: &str) -> bool {
        self.reserved(label).is_some()
    }

    /// Puts the pictures, or without them the text, in the place of that chip. The caret stays where it was in the text.
    pub(crate) fn fill(&mut self, label: &str, pictures: Vec<DroppedPicture>, text: &str) {
        let Some((n, at)) = self.reserved(label) else { return };
        let (caret, before) = (self.edit.caret(), self.edit.text().len());
        let wide = self.edit.text()[at..].chars().next().map_or(0, char::len_utf8);
        if pictures.is_empty() {
            self.edit.replace(at..at + wide, "");
            self.paste(text);
        } else {
            self.edit.set_caret(at + wide);
        }
        for (i, picture) in pictures.into_iter().enumerate() {
            let DroppedPicture { media_type, data, width, height } = picture;
            let image = self.labelled(media_type, data, width, height);
            match self.attachments.get_mut(n) {
                Some(place) if i == 0 => *place = image,
                _ => {
                    self.edit.insert(" ");
                    self.attach(image);
                }
            }
        }
        let end = if caret > at { (caret + self.edit.text().len()).saturating_sub(before) } else { caret };
        self.edit.set_caret(end);
    }

    /// The paste behind the chip before the caret, put out as text again.
    pub(crate) fn unfold(&mut self) -> bool {
        let at = self.edit.before(self.edit.caret());
        let found = self.edit.text()[at..self.edit.caret()].chars().next().and_then(chip_number);
        if let Some(Attachment::Paste { text, .. }) = found.and_then(|n| self.attachments.get(n as usize)) {
            let text = text.clone();
            self.edit.replace(at..self.edit.caret(), &text);
            return true;
        }
        false
    }

    /// The attachment of the chip before the caret, else of the last chip in the text.
    pub(crate) fn attached(&self) -> Option<&Attachment> {
        let text = self.edit.text();
        let near = text[..self.edit.caret()].chars().next_back().and_then(chip_number);
        let n = near.or_else(|| text.chars().rev().find_map(chip_number))?;
        self.attachments.get(n as usize)
    }

    fn attach(&mut self, a: Attachment) {
        let Ok(n) = u32::try_from(self.attachments.len()) else { return };
        if chip(n).is_some() {
            self.attachments.push(a);
            self.edit.insert_chip(n);
        }
    }

    fn count(&self, of: impl Fn(&Attachment) -> bool) -> usize {
        self.attachments.iter().filter(|a| of(a)).count()
    }

    /// Nothing but white space.
    pub(crate) fn is_blank(&self) -> bool {
        self.edit.text().trim().is_empty()
    }
}

/// Returns true if pasted text becomes a chip.
pub(crate) fn is_block(text: &str) -> bool {
    text.len() > CHIP_BYTES || text.lines().count() > CHIP_LINES
}

/// Labels by number.
pub(crate) struct ChipLabels(Vec<String>);

impl ChipLabels {
    /// The label that stands for this character.
    pub(crate) fn get(&self, c: char) -> Option<String> {
        self.0.get(chip_number(c)? as usize).cloned()
    }
}

/// `:10` or `:10-40` at the start of `rest`; how many bytes it takes.
fn lines(rest: &str) -> (Option<(u32, u32)>, usize) {
    let Some(tail) = rest.strip_prefix(':') else { return (None, 0) };
    let digits = |s: &str| s.len() - s.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let a = digits(tail);
    let Ok(from) = tail[..a].parse::<u32>() else { return (None, 0) };
    if let Some(more) = tail[a..].strip_prefix('-') {
        let b = digits(more);
        if let Ok(to) = more[..b].parse::<u32>() {
            return (Some((from, to.max(from))), 1 + a + 1 + b);
        }
    }
    (Some((from, from)), 1 + a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_paste_is_a_chip_and_comes_back_whole() {
        let mut c = Content::default();
        c.edit.insert("look: ");
        let long = "line\r\n".repeat(300);
        c.paste(&long);
        c.edit.insert(" ok");
        let m = c.message();
        assert_eq!(m.text, "look: [paste 1: 300 lines] ok");
        assert_eq!(m.attachments.len(), 1);
        assert_eq!(Content::of(&m).message(), m);
        let mut again = Content::of(&m);
        again.edit.left();
        again.edit.left();
        again.edit.left();
        assert!(again.unfold());
        assert_eq!(again.message().text, format!("look: {} ok", "line\n".repeat(300)));
    }

    #[test]
    fn a_paste_cannot_send_or_hide() {
        let mut c = Content::default();
        c.paste("a\rb\r\nc");
        assert_eq!(c.edit.text(), "a\nb\nc");
    }

    #[test]
    fn only_mentions_from_the_list_are_read() {
        let mut c = Content::default();
        c.mention("src/a.rs");
        c.edit.insert("see @src/a.rs:10-40, @src/a.rs and @src/a.rsx and @other");
        let found = c.mentioned();
        assert_eq!(
            found,
            vec![
                ("@src/a.rs:10-40".into(), "src/a.rs".into(), Some((10, 40))),
                ("@src/a.rs".into(), "src/a.rs".into(), None)
            ]
        );
        assert_eq!(Content::of(&c.message()).message(), c.message());
    }

    #[test]
    fn a_definition_is_a_part_of_its_file() {
        let mut c = Content::default();
        c.mention("src/a.rs:10-40");
        c.edit.insert("see @src/a.rs:10-40 ");
        assert_eq!(c.mentioned(), [("@src/a.rs:10-40".into(), "src/a.rs".into(), Some((10, 40)))]);
    }

    #[test]
    fn deleting_a_chip_drops_its_attachment() {
        let mut c = Content::default();
        c.image("image/png", "AAAA".into(), 3, 4);
        c.edit.delete_back();
        assert!(c.message().attachments.is_empty());
        assert!(c.is_blank());
    }
}
