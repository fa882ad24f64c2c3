//! Text broken at spaces.

use unicode_width::UnicodeWidthStr;

use crate::widget::draw;

/// Breaks text at spaces so that it fits.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut rows = Vec::new();
    for line in text.lines() {
        let mut row = String::new();
        for word in line.split(' ') {
            let mut word = draw::clean(word);
            if !row.is_empty() && row.width() + 1 + word.width() > width {
                rows.push(std::mem::take(&mut row));
            }
            while word.width() > width {
                let mut head = String::new();
                while let Some(c) = word.chars().next() {
                    if head.width() + unicode_width::UnicodeWidthChar::width(c).unwrap_or(0) > width {
                        break;
                    }
                    head.push(c);
                    word.remove(0);
                }
                if head.is_empty() {
                    break;
                }
                rows.push(head);
            }
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(&word);
        }
        rows.push(row);
    }
    rows
}
