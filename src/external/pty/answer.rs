//! Extracts the answer of a turn from the screen and the lines that scrolled off.

use crate::adapter::Pty;

/// Whether it is a line of a frame: rules, boxes, blanks.
fn frame(line: &str) -> bool {
    line.chars().all(|c| c.is_whitespace() || ('\u{2500}'..='\u{259f}').contains(&c) || c == '┃')
}

/// The text after the person's last message, without frames, composer and status. Where the adapter knows how an answer
/// begins, the last such one.
pub(crate) fn answer(lines: &[String], prompt: &str, pty: &Pty) -> String {
    let after = since(lines, prompt);
    let end = after.iter().position(|l| pty.done.as_ref().is_some_and(|p| p.found(l)) || pty.ready.found(l));
    let mut body = &after[..end.unwrap_or(after.len())];
    let mut first = None;
    if let Some(pattern) = &pty.answer
        && let Some(at) = body.iter().rposition(|l| pattern.found(l))
    {
        first = pattern.group(&body[at]).map(str::to_owned);
        body = &body[at + 1..];
    }
    let strip = |l: &String| l.trim_matches(|c: char| c.is_whitespace() || "│┃".contains(c)).to_owned();
    let rest = body.iter().filter(|l| l.is_empty() || !frame(l)).map(strip);
    let text = first.into_iter().chain(rest).collect::<Vec<_>>().join("\n");
    text.trim().to_owned()
}

/// The lines after the echo of `prompt`, found by its last line, whatever glyph precedes it.
pub(crate) fn since<'a>(lines: &'a [String], prompt: &str) -> &'a [String] {
    let letters = |s: &str| s.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let last: String =
        prompt.trim().lines().last().map(letters).unwrap_or_default().chars().take(30).collect();
    // A narrow screen wraps it: the visible part counts, unless it is very short.
    let begins = |l: &String| {
        let line = letters(l);
        line.starts_with(&last) || line.len() >= 8 && last.starts_with(&line)
    };
    let echo = lines.iter().rposition(|l| !last.is_empty() && begins(l));
    &lines[echo.map_or(0, |n| n + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Adapters;

    #[test]
    fn the_answer_is_found_on_screens_of_the_real_programs() {
        let all = Adapters::new(&[]);
        for (name, screen, text) in [
            (
                "claude",
                "❯ please runcmd\n\n● I make it.\n\n● Bash(touch ran.txt)\n  ⎿  ran\n\n● PONG from\n  mock.\n\n✻ Cooked for 1s\n\n────────\n❯ \n────────\n  ? for shortcuts",
                "PONG from\nmock.",
            ),
            (
                "codex",
                "› please runcmd\n\n• Ran touch ran.txt; echo ran\n  └ ran\n\n• PONG from mock.\n\n  Worked for <1s • 15:28\n\n› Ask Codex to do anything\n\n  GPT-5.5 default",
                "PONG from mock.",
            ),
            (
                "gemini",
                " > please runcmd\n╭────╮\n│ ✓  Shell touch │\n╰────╯\n✦ PONG from mock.\n\n ? for shortcuts\n────\n >   Type your message or @path/to/file\n workspace",
                "PONG from mock.\n\n? for shortcuts",
            ),
            (
                "aider",
                "> please runcmd\n\nPONG from mock.\n\nTokens: 595 sent, 5 received.\n────\n>",
                "PONG from mock.",
            ),
        ] {
            let lines: Vec<String> = screen.lines().map(str::to_owned).collect();
            let adapter = all.get(name).unwrap();
            assert_eq!(answer(&lines, "please runcmd", adapter.pty.as_ref().unwrap()), text, "{name}");
        }
    }
}
