//! Text that may not be kept: it could act as an instruction, hides something, or is too long.

/// Bytes of a text.
const LONGEST: usize = 4_000;

/// Phrases of texts that give orders to an agent instead of saying what works.
const ORDERS: &[&str] = &[
    "ignore previous",
    "ignore all previous",
    "ignore the previous",
    "ignore your",
    "disregard",
    "forget your",
    "forget all previous",
    "override your",
    "new instructions",
    "system prompt",
    "you are now",
    "you must now",
    "from now on",
    "do not tell the user",
    "don't tell the user",
    "without telling",
    "without asking",
    "do not ask",
    "don't ask the user",
    "do not mention",
    "always approve",
    "auto-approve",
    "disable the sandbox",
    "bypass the",
    "exfiltrate",
    "<system",
    "</system",
    "[system",
    "assistant:",
    "system:",
    "permissions.yaml",
    "hidden from the user",
    "secretly",
    "jailbreak",
    "developer mode",
    "act as ",
    "send it to http",
    "upload your",
    "api key to",
];

/// Checks a text before it is kept.
///
/// # Errors
/// Why it may not be kept, as the end of a sentence.
pub fn screen(text: &str) -> Result<(), String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    if let Some(c) = text.chars().find(|c| hides(*c)) {
        return Err(format!("it contains the invisible character U+{:04X}", u32::from(c)));
    }
    let low = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(order) = ORDERS.iter().find(|o| low.contains(*o)) {
        return Err(format!("it reads like an instruction to the agent (\"{}\")", order.trim()));
    }
    // A program that is fetched and run at once.
    let fetches = ["curl ", "wget "].iter().any(|f| low.contains(f));
    if fetches && ["| sh", "| bash", "|sh", "|bash", "| sudo"].iter().any(|p| low.contains(p)) {
        return Err("it runs a program from the network".into());
    }
    Ok(())
}

fn hides(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(u32::from(c),
            0xAD | 0x61C | 0x180E | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0xFEFF | 0xFFF9..=0xFFFB
            | 0xE0000..=0xE007F | 0xFE00..=0xFE0F | 0xE0100..=0xE01EF)
}
