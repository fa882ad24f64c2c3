//! The person's intent, recognised by keywords.

/// One kind of task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Run the tests, and fix what can be fixed.
    Fix,
    /// Add an operation to the sample, or a file anywhere.
    Add(String),
    /// Describe the project, or one file.
    Explain(Option<String>),
    Search(String),
    /// Search earlier conversations.
    Recall(String),
    /// Write an entry of the memory.
    Remember(String),
    /// Show the memory.
    Remembered,
    /// Make a mistake and correct it.
    Mistake,
    /// Load the skill of this name.
    Skill(String),
    Run(String),
    /// Count the lines of the files, by a script.
    Count,
    /// Add an issue to the list of the demo's MCP server.
    AddIssue(String),
    /// Show that list.
    Issues,
    /// Write AGENTS.md.
    Init,
    /// Create a checkpoint, or restore one.
    Checkpoint(String),
    Restore(String),
    /// Start a process in the background.
    Start(String),
    Fetch(String),
    /// Make a plan, from these items if any were given.
    Plan(Vec<String>),
    Ask,
    /// Delegate parts to agents.
    Delegate(Vec<String>),
    /// The same as a workflow: the last part waits for the others.
    Workflow(Vec<String>),
    /// Give one task to an agent in the background.
    Spawn(String),
    /// Replace a text in a file or everywhere.
    Replace {
        old: String,
        new: String,
        file: Option<String>,
    },
    Edit(String),
    Stop,
    Help,
    Unknown,
}

/// Parses a prompt.
pub(crate) fn read(prompt: &str) -> Intent {
    // The text after these belongs to other tasks, or describes an earlier attempt.
    let told = ["\n\nResult of task ", "\n\nAn agent tried this before", "\n\nThe user says: "];
    let end = told.iter().filter_map(|mark| prompt.find(mark)).min().unwrap_or(prompt.len());
    let prompt = prompt[..end].trim();
    let low = prompt.to_lowercase();
    let words: Vec<&str> = low.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '\'').collect();
    let has = |list: &[&str]| list.iter().any(|w| words.contains(w));
    let first = words.iter().find(|w| !w.is_empty()).copied().unwrap_or_default();
    if low.starts_with("write agents.md") || low == "/init" {
        return Intent::Init;
    }
    if let Some(url) = url(prompt) {
        return Intent::Fetch(url);
    }
    if first == "count" {
        return Intent::Count;
    }
    if has(&["issue", "issues"]) && matches!(first, "list" | "show" | "which" | "what") {
        return Intent::Issues;
    }
    if first == "file" && has(&["issue"]) {
        let title = prompt.split_once(':').map(|(_, title)| title.trim()).unwrap_or_default();
        return if title.is_empty() { Intent::Unknown } else { Intent::AddIssue(title.to_owned()) };
    }
    if matches!(first, "stop" | "cancel" | "enough") {
        return Intent::Stop;
    }
    if first == "help" || low == "?" || matches!(first, "hello" | "hi" | "hey") && words.len() < 4 {
        return Intent::Help;
    }
    if let Some(found) = replace(prompt) {
        return found;
    }
    if matches!(first, "run" | "execute") || low.starts_with("$ ") {
        let command = after_word(prompt);
        for mark in [" in the background", " in background"] {
            if let Some(command) = command.strip_suffix(mark) {
                return Intent::Start(bare(command));
            }
        }
        // Words of a sentence are no program.
        let begin = command.split_whitespace().next().unwrap_or_default().to_lowercase();
        let begin = begin.trim_end_matches(['.', ',', '!']);
        let is_prose = matches!(begin, "all" | "every" | "it" | "my" | "our" | "tests" | "the" | "these");
        if is_prose && low.contains("test") {
            return Intent::Fix;
        }
        if !command.is_empty() && !is_prose {
            return Intent::Run(bare(&command));
        }
    }
    if matches!(first, "delegate" | "workflow") {
        let rest = after_word(prompt);
        let rest = rest.lines().next().unwrap_or_default().trim_start_matches(':');
        let parts = rest.split(';').map(|p| p.trim().to_owned()).filter(|p| !p.is_empty());
        let parts = parts.take(12).collect();
        return if first == "delegate" { Intent::Delegate(parts) } else { Intent::Workflow(parts) };
    }
    if first == "spawn" {
        let goal = after_word(prompt);
        if !goal.is_empty() {
            return Intent::Spawn(goal);
        }
    }
    if matches!(first, "start" | "watch") {
        return Intent::Start(bare(&after_word(prompt)));
    }
    if first == "remember" {
        let text = after_word(prompt);
        let of = prompt.split_once(':').filter(|(head, _)| head.eq_ignore_ascii_case("remember"));
        let that = text.get(..5).filter(|that| that.eq_ignore_ascii_case("that ")).map(|_| &text[5..]);
        if let Some(text) = of.map(|(_, text)| text).or(that).map(str::trim).filter(|t| !t.is_empty()) {
            return Intent::Remember(text.to_owned());
        }
    }
    if low.starts_with("what do you remember") {
        return Intent::Remembered;
    }
    if low.starts_with("make a mistake") || low.starts_with("learn from a mistake") {
        return Intent::Mistake;
    }
    if let Some((_, name)) = low.split_once("use the skill ").filter(|_| first == "use") {
        let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(name.len());
        return Intent::Skill(name[..end].to_owned());
    }
    if matches!(first, "recall" | "remember") {
        let what = bare(&after_word(prompt));
        if !what.is_empty() {
            return Intent::Recall(what);
        }
    }
    if matches!(first, "checkpoint" | "restore") {
        let name = bare(&after_word(prompt));
        if !name.is_empty() {
            return if first == "checkpoint" { Intent::Checkpoint(name) } else { Intent::Restore(name) };
        }
    }
    if matches!(first, "search" | "find" | "grep") || low.starts_with("where is ") {
        let what = after_word(prompt);
        let low = what.to_lowercase();
        let skip = ["is ", "for ", "all "].iter().find(|s| low.starts_with(**s)).map_or(0, |s| s.len());
        let what = bare(&what[skip..]);
        if !what.is_empty() {
            return Intent::Search(what);
        }
    }
    if low.contains("ask me") || first == "clarify" {
        return Intent::Ask;
    }
    if has(&["todo", "todos", "plan"]) {
        let items = prompt.split_once(':').map(|(_, list)| list).unwrap_or_default();
        let items = items.split([',', ';', '\n']).map(|i| i.trim().to_owned()).filter(|i| !i.is_empty());
        return Intent::Plan(items.take(12).collect());
    }
    if first == "add" || first == "create" || low.starts_with("write ") {
        return Intent::Add(after_word(prompt));
    }
    if first == "edit" || first == "change" {
        return file(prompt).map_or(Intent::Unknown, Intent::Edit);
    }
    if has(&["fix", "mend", "repair", "debug", "failing", "fails", "broken", "tests", "test"]) {
        return Intent::Fix;
    }
    if has(&["explain", "describe", "overview", "summarise", "summarize", "read", "show"])
        || low.starts_with("what ")
        || low.starts_with("what's ")
        || low.starts_with("how ")
    {
        return Intent::Explain(file(prompt));
    }
    Intent::Unknown
}

/// The prompt without its first word.
fn after_word(prompt: &str) -> String {
    prompt.split_once(char::is_whitespace).map_or("", |(_, rest)| rest).trim().to_owned()
}

/// Without surrounding quotes and a final full stop.
fn bare(text: &str) -> String {
    let text = text.trim();
    for quote in ['`', '"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote)) {
            return inner.to_owned();
        }
    }
    text.to_owned()
}

fn url(prompt: &str) -> Option<String> {
    let word = prompt.split_whitespace().find(|w| {
        let w = w.trim_start_matches(['<', '(', '"', '`']);
        w.starts_with("http://") || w.starts_with("https://")
    })?;
    Some(word.trim_matches(['<', '>', '(', ')', '"', '`', ',', '.', '!', '?']).to_owned())
}

/// A word that looks like a path: `@path`, or one with a dot or slash inside.
pub(crate) fn file(prompt: &str) -> Option<String> {
    prompt.split_whitespace().find_map(|word| {
        if let Some(path) = word.strip_prefix('@') {
            return Some(path.trim_matches(['`', '"', ',', '?', ':']).to_owned());
        }
        let word = word.trim_matches(['`', '"', '\'', ',', '.', '?', '!', ':', '(', ')']);
        let (stem, end) = word.rsplit_once('.').unwrap_or((word, ""));
        let dotted =
            !stem.is_empty() && (1..=5).contains(&end.len()) && end.chars().all(char::is_alphanumeric);
        (dotted || word.contains('/') && word.len() > 2 && !word.starts_with('/')).then(|| word.to_owned())
    })
}

/// `rename A to B [in FILE]`, `replace A with|by B [in FILE]`, within an edit request or alone.
fn replace(prompt: &str) -> Option<Intent> {
    let low = prompt.to_ascii_lowercase();
    let (verb, links) = [("rename ", &[" to ", " into "][..]), ("replace ", &[" with ", " by "][..])]
        .into_iter()
        .find(|(verb, _)| low.contains(verb))?;
    let from = low.find(verb)? + verb.len();
    let link = links.iter().find(|l| low[from..].contains(**l))?;
    let middle = from + low[from..].find(link)?;
    let rest = &prompt[middle + link.len()..];
    let (new, tail) = rest.rsplit_once(" in ").unwrap_or((rest, ""));
    let old = prompt[from..middle].trim();
    // `rename the function a to b` means `a`.
    let old = if verb == "rename " { old.rsplit(' ').next().unwrap_or(old) } else { old };
    let (old, new) = (bare(old), bare(new.trim_end_matches(['.', '!'])));
    let file = file(tail).or_else(|| file(&prompt[..from]));
    (!old.is_empty() && old != new).then_some(Intent::Replace { old, new, file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_understood() {
        let s = str::to_owned;
        let replace = |old: &str, new: &str, file: Option<&str>| Intent::Replace {
            old: old.into(),
            new: new.into(),
            file: file.map(s),
        };
        let table = [
            ("fix the failing test", Intent::Fix),
            ("Fix it!", Intent::Fix),
            ("run the tests", Intent::Fix),
            ("run the tests and fix what fails", Intent::Fix),
            ("Run all tests.", Intent::Fix),
            ("run tests", Intent::Fix),
            ("run my test suite, please", Intent::Fix),
            ("run the moon", Intent::Unknown),
            ("run tests/all.sh", Intent::Run(s("tests/all.sh"))),
            ("why does test.sh fail? it is broken", Intent::Fix),
            (include_str!("../../../assets/prompts/init.md"), Intent::Init),
            ("add a pow operation", Intent::Add(s("a pow operation"))),
            ("explain this project", Intent::Explain(None)),
            ("what is in lib/ops.sh?", Intent::Explain(Some(s("lib/ops.sh")))),
            ("explain @calc.sh", Intent::Explain(Some(s("calc.sh")))),
            ("search for op_add", Intent::Search(s("op_add"))),
            ("grep `check`", Intent::Search(s("check"))),
            ("where is op_div", Intent::Search(s("op_div"))),
            ("recall the walnut", Intent::Recall(s("the walnut"))),
            ("count the lines", Intent::Count),
            ("remember: tabs, not spaces", Intent::Remember(s("tabs, not spaces"))),
            ("Remember that I like tabs", Intent::Remember(s("I like tabs"))),
            ("remember the walnut", Intent::Recall(s("the walnut"))),
            ("what do you remember?", Intent::Remembered),
            ("learn from a mistake", Intent::Mistake),
            ("use the skill `code-review`.", Intent::Skill(s("code-review"))),
            ("Use the skill code-review on main, please", Intent::Skill(s("code-review"))),
            ("file an issue: div by zero", Intent::AddIssue(s("div by zero"))),
            ("file an issue", Intent::Unknown),
            ("list the issues", Intent::Issues),
            ("fix the issue", Intent::Fix),
            ("checkpoint before it", Intent::Checkpoint(s("before it"))),
            ("restore `good`", Intent::Restore(s("good"))),
            ("run ls -l", Intent::Run(s("ls -l"))),
            ("run echo hi", Intent::Run(s("echo hi"))),
            ("run `sh test.sh`", Intent::Run(s("sh test.sh"))),
            ("run sleep 60 in the background", Intent::Start(s("sleep 60"))),
            ("fetch https://example.test/a.", Intent::Fetch(s("https://example.test/a"))),
            ("plan: read, write; check", Intent::Plan(vec![s("read"), s("write"), s("check")])),
            ("make a todo list", Intent::Plan(vec![])),
            ("ask me something", Intent::Ask),
            ("rename op_mul to op_times", replace("op_mul", "op_times", None)),
            ("rename the function a to b in lib/x.sh", replace("a", "b", Some("lib/x.sh"))),
            (
                "replace \"two words\" with `three` in README.md",
                replace("two words", "three", Some("README.md")),
            ),
            ("edit README.md", Intent::Edit(s("README.md"))),
            ("help", Intent::Help),
            ("hello", Intent::Help),
            ("stop", Intent::Stop),
            ("sing a song", Intent::Unknown),
            ("", Intent::Unknown),
            ("ünïcode → wörds", Intent::Unknown),
        ];
        for (prompt, want) in table {
            assert_eq!(read(prompt), want, "{prompt}");
        }
    }
}
