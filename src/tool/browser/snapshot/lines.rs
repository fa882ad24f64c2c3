//! Nodes as lines. Texts of the page are quoted, so that none can pass for an element.

use super::role::Role;
use super::tree::Node;
use crate::text::{one_line, visible};

/// Bytes of one text or name.
const TEXT: usize = 2_000;
/// Bytes of one text when the page exceeds its budget.
const SHORT: usize = 120;
/// Characters of a text that stands in the line of the element around it.
const SIGN: usize = 3;
/// Levels of indentation that are shown.
const INDENT: usize = 12;

/// All lines of a page.
pub(super) fn lines(nodes: &[Node]) -> Vec<String> {
    let mut lines = Vec::new();
    write(nodes, 0, &mut lines);
    lines
}

fn write(nodes: &[Node], depth: usize, lines: &mut Vec<String>) {
    for node in nodes {
        if is_plain_list(node) {
            // Known by its items.
            write(&node.children, depth, lines);
            continue;
        }
        let mut line = " ".repeat(depth.min(INDENT));
        if let Some(number) = node.reference {
            line.push_str(&format!("e{number} "));
        }
        let mut words: Vec<String> = Vec::new();
        if node.role == Role::ListItem && node.reference.is_none() {
            // As in a list on paper.
            words.push("-".into());
        } else if node.role != Role::Text {
            words.push(visible(&node.role.word()).into_owned());
        }
        if !node.name.is_empty() {
            words.push(quote(&node.name, TEXT));
        }
        if let Some(value) = &node.value {
            words.push(format!("= {}", quote(value, TEXT)));
        }
        words.extend(node.states.iter().map(|s| visible(s).replace(['\n', '\r'], " ")));
        let children = match node.children.as_slice() {
            // The sign on a button with a name, in its line.
            [sign]
                if node.reference.is_some()
                    && sign.role == Role::Text
                    && sign.name.chars().count() <= SIGN =>
            {
                words.push(quote(&sign.name, TEXT));
                &[]
            }
            children => children,
        };
        line.push_str(&words.join(" "));
        lines.push(line);
        write(children, depth + 1, lines);
    }
}

/// True for a list that says nothing but its items.
fn is_plain_list(node: &Node) -> bool {
    matches!(&node.role, Role::Other(role) if role == "list")
        && node.reference.is_none()
        && node.name.is_empty()
        && node.value.is_none()
        && node.states.is_empty()
        && node.children.iter().all(|child| child.role == Role::ListItem)
}

/// Text within quotes, in one line.
fn quote(text: &str, limit: usize) -> String {
    // Characters without a width could hide words from a person who looks at the page.
    let text: String = text.chars().filter(|c| !hidden(*c)).collect();
    let line = one_line(&text);
    let cut = line.floor_char_boundary(limit);
    let more = if cut < line.len() { "..." } else { "" };
    format!("\"{}{more}\"", visible(&line[..cut]).replace('"', "'"))
}

/// True for a character that is invisible or turns the direction of a text.
fn hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The lines that fit into `bytes`, and how many were left out. Long texts are cut before lines are left out, and lines
/// without a reference go before those with one.
pub(crate) fn within(lines: &[String], bytes: usize) -> (Vec<String>, usize) {
    let size = |lines: &[String]| lines.iter().map(|l| l.len() + 1).sum::<usize>();
    if size(lines) <= bytes {
        return (lines.to_vec(), 0);
    }
    let short: Vec<String> = lines.iter().map(|line| shortened(line)).collect();
    let over = size(&short).saturating_sub(bytes);
    if over == 0 {
        return (short, 0);
    }
    // Texts from the end go first: what stands below.
    let mut keep = vec![true; short.len()];
    let mut gone = 0;
    for (at, line) in short.iter().enumerate().rev() {
        if gone >= over {
            break;
        }
        if line.trim_start().starts_with('"') {
            keep[at] = false;
            gone += line.len() + 1;
        }
    }
    let mut left = bytes;
    let mut kept = Vec::new();
    for (line, keep) in short.iter().zip(keep) {
        if !keep {
            continue;
        }
        let Some(rest) = left.checked_sub(line.len() + 1) else { break };
        left = rest;
        kept.push(line.clone());
    }
    let out = short.len() - kept.len();
    (kept, out)
}

fn shortened(line: &str) -> String {
    if line.len() <= SHORT + 40 {
        return line.to_owned();
    }
    let cut = line.floor_char_boundary(SHORT);
    // Within quotes, so that the rest of the line stays readable.
    format!("{}...\"", &line[..cut])
}
