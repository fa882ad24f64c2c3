//! Commands in loops: each word that a variable stands for is judged as if it were written.

use super::table::PROGRAMS;
use tiller_shell::{Analysis, Part, Word, program_name};

/// Commands that one part in loops may stand for.
const MOST: usize = 200;

/// Builtins of the shell among the programs of the table. What is in their words may be code to the shell: an index of
/// an array in `[ -v "$f" ]`.
const BUILTINS: &[&str] = &[":", "true", "false", "echo", "printf", "pwd", "cd", "type", "test", "["];

/// Whether nothing but the words of a part decides what it does.
fn is_judged_by_words(part: &Part) -> bool {
    let Some(name) = program_name(part.program()) else { return false };
    if matches!(name, "test" | "[") {
        let kind = part.args().first().map_or("", |w| w.text.as_str());
        let words = if name == "[" { 3 } else { 2 };
        return part.args().len() == words && matches!(kind, "-f" | "-d" | "-e" | "-s" | "-r" | "-x" | "-L");
    }
    let texts = matches!(name, "sed" | "awk" | "jq" | "git" | "find");
    texts || !BUILTINS.contains(&name) && PROGRAMS.iter().any(|p| p.name == name)
}

/// The part as it is run in each round of the loops around it; itself where it names no variable of a loop. `None`:
/// there are too many rounds.
pub(super) fn unroll(part: &Part, loops: &[Word]) -> Option<Vec<Part>> {
    if !is_judged_by_words(part) {
        return Some(vec![part.clone()]);
    }
    rounds(part, loops)
}

/// The command as if each word that a variable of a loop stands for were written. `None`: no word is such a variable.
pub(crate) fn written_out(analysis: &Analysis) -> Option<Analysis> {
    if !analysis.parts.iter().any(|p| p.argv.iter().any(|w| w.each.is_some())) {
        return None;
    }
    let mut out = analysis.clone();
    out.parts.clear();
    for part in &analysis.parts {
        match rounds(part, &analysis.loops) {
            Some(parts) => out.parts.extend(parts),
            None => out.parts.push(part.clone()),
        }
    }
    // Places of parts in the list have changed.
    out.parts.iter_mut().for_each(|p| p.piped_from = None);
    Some(out)
}

fn rounds(part: &Part, loops: &[Word]) -> Option<Vec<Part>> {
    let mut done = Vec::new();
    let mut open = vec![part.clone()];
    while let Some(part) = open.pop() {
        let Some((from, to)) = part.argv.iter().find_map(|w| w.each) else {
            done.push(part);
            if done.len() > MOST {
                return None;
            }
            continue;
        };
        if open.len() + (to - from) > MOST {
            return None;
        }
        for value in loops.get(from..to)? {
            let mut round = part.clone();
            for word in round.argv.iter_mut().filter(|w| w.each == Some((from, to))) {
                *word = value.clone();
            }
            open.push(round);
        }
    }
    done.reverse();
    Some(done)
}
