//! Options of wrappers: where their own options end and the command begins.

use crate::command::{HOLE, Word};

/// Options of one program.
pub(super) struct Spec {
    /// Letters without a value.
    pub(super) short: &'static str,
    /// Letters with a value, joined or next.
    pub(super) short_arg: &'static str,
    pub(super) long: &'static [&'static str],
    /// With a value, after `=` or next.
    pub(super) long_arg: &'static [&'static str],
}

impl Spec {
    /// Index of the first operand in `args` (its length when there is none).
    ///
    /// # Errors
    /// The option that is not known, or not plain.
    pub(super) fn first_operand(&self, args: &[Word]) -> Result<usize, String> {
        let mut at = 0;
        while let Some(word) = args.get(at) {
            if word.dynamic || word.glob {
                return if word.text.starts_with('-')
                    || word.splits
                    || word.text.starts_with([HOLE, '*', '?', '['])
                {
                    Err("an option that is known only at run time".into())
                } else {
                    Ok(at)
                };
            }
            let text = word.text.as_str();
            if text == "--" {
                return Ok(at + 1);
            }
            let Some(rest) = text.strip_prefix('-').filter(|r| !r.is_empty()) else { return Ok(at) };
            at += 1;
            if let Some(long) = rest.strip_prefix('-') {
                let (name, joined) = long.split_once('=').map_or((long, false), |(n, _)| (n, true));
                if self.long_arg.contains(&name) {
                    at += usize::from(!joined);
                } else if !self.long.contains(&name) {
                    return Err(format!("the unknown option {text}"));
                }
                continue;
            }
            for (i, c) in rest.char_indices() {
                if self.short_arg.contains(c) {
                    at += usize::from(i + c.len_utf8() == rest.len());
                    break;
                }
                if !self.short.contains(c) {
                    return Err(format!("the unknown option {text}"));
                }
            }
        }
        Ok(at.min(args.len()))
    }
}
