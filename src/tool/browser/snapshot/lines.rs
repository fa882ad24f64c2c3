//! Nodes as lines. Texts of the page are quoted, so that none can pass for an element.
//!
//! ```text
//! nav                                             its items are links, which need no word of it
//!  e1 "Home" e2 "Guides"
//! e7 button "Yes" e8 "No"                         the second is a button, too
//! h2 "Heights"
//! "Heights are from the [e4 chart datum]."        a link within a text
//! - "An item of a list"
//! e5 textbox "Email" = "ann@example.org" required
//! ```

use super::join::glue;
use super::role::Role;
use super::tree::Node;
use crate::text::{one_line, visible};

/// Bytes of one text or name.
const TEXT: usize = 2_000;
/// Bytes of one text when the page exceeds its budget.
const SHORT: usize = 120;
/// Bytes of a text between links when the page exceeds its budget.
const BETWEEN: usize = 40;
/// Characters of a text that stands in the line of the element around it.
const SIGN: usize = 3;
/// Levels of indentation that are shown.
const INDENT: usize = 12;
/// Bytes of a line of several items.
const WIDTH: usize = 100;
/// Roles of elements that share a line with others of their role beside them.
const SHARES: [&str; 6] = ["link", "button", "checkbox", "radio", "switch", "clickable"];
/// Bytes of a text with links in one line. One that is longer has several.
const SENTENCE: usize = 500;
/// Bytes of the name of a link within a text.
const LINK: usize = 120;

/// The way in which the lines of a page are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Each says all of its element, so that it can be read alone.
    Alone,
    /// Words of the line around an element are not repeated, and small items share lines.
    Shown,
}

/// All lines of a page.
pub(super) fn lines(nodes: &[Node], style: Style) -> Vec<String> {
    let mut writer = Writer { style, lines: Vec::new(), shared: None };
    writer.all(nodes, 0, None);
    writer.lines
}

struct Writer {
    style: Style,
    lines: Vec<String>,
    /// The depth of the last line and the role of the items in it, when others may be added.
    shared: Option<(usize, String)>,
}

impl Writer {
    /// Writes what is in an element. `usual`: the role that its items need not name.
    fn all(&mut self, nodes: &[Node], depth: usize, usual: Option<&str>) {
        let only = Only::of(nodes);
        for piece in pieces(nodes) {
            match piece {
                Piece::Sentence(parts) => self.line(depth, &sentence(&parts)),
                Piece::Node(node) if says_nothing(node, only) => self.all(&node.children, depth, usual),
                Piece::Node(node) => self.node(node, depth, usual),
            }
        }
    }

    fn node(&mut self, node: &Node, depth: usize, usual: Option<&str>) {
        let (rest, children) = rest_of(node);
        let role = node.role.word();
        let is_item = self.style == Style::Shown && node.reference.is_some() && !node.name.is_empty();
        let implied = is_item && usual == Some(role);
        let shares = is_item && children.is_empty() && (usual.is_some() || SHARES.contains(&role));
        let word = |named: bool| {
            let mut words: Vec<String> = Vec::new();
            words.extend(node.reference.map(|number| format!("e{number}")));
            if node.role == Role::ListItem && node.reference.is_none() {
                // As in a list on paper.
                words.push("-".into());
            } else if named && node.role != Role::Text {
                words.push(visible(&node.role.shown()).into_owned());
            }
            words.extend(rest.iter().cloned());
            words.join(" ")
        };
        let beside = self
            .shared
            .take()
            .is_some_and(|(at, items)| shares && at == depth && (usual.is_some() || items == role));
        let text = word(!implied && usual.is_some());
        match self.lines.last_mut().filter(|last| beside && last.len() + 1 + text.len() <= WIDTH) {
            Some(last) => {
                last.push(' ');
                last.push_str(&text);
            }
            None => self.line(depth, &word(!implied)),
        }
        // Behind an item of another role than is usual the next one would seem to be like it.
        if shares && (implied || usual.is_none()) {
            self.shared = Some((depth, role.to_owned()));
        }
        self.all(children, depth + 1, node.role.usual_item());
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.shared = None;
        self.lines.push(format!("{}{text}", " ".repeat(depth.min(INDENT))));
    }
}

/// The words of an element behind its role, and what is in it beside them.
fn rest_of(node: &Node) -> (Vec<String>, &[Node]) {
    let mut words: Vec<String> = Vec::new();
    if !node.name.is_empty() {
        words.push(quote(&node.name, TEXT));
    }
    if let Some(value) = &node.value {
        words.push(format!("= {}", quote(value, TEXT)));
    }
    // Words of the page in them were quoted where they were put in.
    words.extend(node.states.iter().map(|s| visible(s).replace(['\n', '\r'], " ")));
    let children: &[Node] = match node.children.as_slice() {
        // The sign on a button with a name, in its line.
        [sign]
            if node.reference.is_some() && sign.role == Role::Text && sign.name.chars().count() <= SIGN =>
        {
            words.push(quote(&sign.name, TEXT));
            &[]
        }
        children if node.role == Role::ListItem && node.name.is_empty() => {
            match pieces(children).as_slice() {
                // An item that is a text with links.
                [Piece::Sentence(parts)] => {
                    words.push(sentence(parts));
                    &[]
                }
                _ => children,
            }
        }
        children => children,
    };
    (words, children)
}

/// A part of what is in an element.
enum Piece<'a> {
    Node(&'a Node),
    /// Texts and links that go on in each other.
    Sentence(Vec<&'a Node>),
}

fn pieces(nodes: &[Node]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::with_capacity(nodes.len());
    let mut run: Vec<&Node> = Vec::new();
    let mut bytes = 0;
    for node in nodes {
        let goes_on = run.last().is_some_and(|last| !last.ends) && !node.begins;
        if !goes_on || !is_inline(node) || bytes + node.name.len() > SENTENCE {
            end_run(&mut run, &mut pieces);
            bytes = 0;
        }
        if is_inline(node) {
            bytes += node.name.len();
            run.push(node);
        } else {
            pieces.push(Piece::Node(node));
        }
    }
    end_run(&mut run, &mut pieces);
    pieces
}

fn end_run<'a>(run: &mut Vec<&'a Node>, pieces: &mut Vec<Piece<'a>>) {
    let run = std::mem::take(run);
    let has = |text: bool| run.iter().any(|node| (node.role == Role::Text) == text);
    if has(true) && has(false) {
        pieces.push(Piece::Sentence(run));
    } else {
        pieces.extend(run.into_iter().map(Piece::Node));
    }
}

/// True for a text, and for a link with nothing but a name.
fn is_inline(node: &Node) -> bool {
    let link = || {
        node.reference.is_some()
            && node.role.word() == "link"
            && node.states.is_empty()
            && !node.name.is_empty()
            && node.name.len() <= LINK
    };
    node.children.is_empty() && node.value.is_none() && (node.role == Role::Text || link())
}

/// Texts and links in one line: `"see [e4 the guide] first"`.
fn sentence(parts: &[&Node]) -> String {
    let mut text = String::new();
    for part in parts {
        let name = clean(&part.name, TEXT);
        match part.reference {
            Some(number) => {
                let name = name.replace('[', "(").replace(']', ")");
                glue(&mut text, &format!("[e{number} {name}]"));
            }
            None => {
                if text.ends_with('[') {
                    text.push(' ');
                }
                glue(&mut text, &name);
            }
        }
    }
    format!("\"{text}\"")
}

/// The elements that are the only ones of their kind in the element around them.
#[derive(Clone, Copy)]
struct Only {
    /// There is one element.
    element: bool,
    /// One of them is an article.
    article: bool,
}

impl Only {
    fn of(nodes: &[Node]) -> Self {
        let articles = nodes.iter().filter(|node| node.role.word() == "article");
        Self { element: nodes.len() == 1, article: articles.take(2).count() == 1 }
    }
}

/// True for an element that says nothing but what is in it: a list that is known by its items or is all of the element around it,
/// the main part of a page, and its only article.
fn says_nothing(node: &Node, only: Only) -> bool {
    let Role::Other(role) = &node.role else { return false };
    let bare =
        node.reference.is_none() && node.name.is_empty() && node.value.is_none() && node.states.is_empty();
    bare && match role.as_str() {
        "list" => only.element || node.children.iter().all(|child| child.role == Role::ListItem),
        "main" => true,
        "article" => only.article,
        _ => false,
    }
}

/// Text within quotes, in one line.
fn quote(text: &str, limit: usize) -> String {
    format!("\"{}\"", clean(text, limit))
}

/// A word of the page as it is; in quotes, when it could pass for several, or for the end of what it stands in.
pub(super) fn word(text: &str, limit: usize) -> String {
    let parts = |c: char| c.is_whitespace() || c.is_control() || hidden(c) || "\"'`<>[]".contains(c);
    if text.contains(parts) { quote(text, limit) } else { text[..text.floor_char_boundary(limit)].to_owned() }
}

/// Text of the page in one line, without what could end its quotes, or pass for a link in it.
fn clean(text: &str, limit: usize) -> String {
    // Characters without a width could hide words from a person who looks at the page.
    let text: String = text.chars().filter(|c| !hidden(*c)).collect();
    let line = one_line(&text);
    let cut = line.floor_char_boundary(limit);
    let more = if cut < line.len() { "..." } else { "" };
    let line = visible(&line[..cut]).replace('"', "'");
    let mut plain = String::with_capacity(line.len() + more.len());
    let mut rest = line.as_str();
    while let Some(at) = mark(rest) {
        plain.push_str(&rest[..=at]);
        plain.push(' ');
        rest = &rest[at + 1..];
    }
    plain + rest + more
}

/// The place of the first mark of a link (`[e4 `) in a line.
fn mark(line: &str) -> Option<usize> {
    let digit = |at: usize| line.as_bytes().get(at + 2).is_some_and(u8::is_ascii_digit);
    line.match_indices("[e").map(|(at, _)| at).find(|at| digit(*at))
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
        if line.trim_start().starts_with('"') && mark(line).is_none() {
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
    let Some(first) = mark(line) else {
        let cut = line.floor_char_boundary(SHORT);
        // Within quotes, so that the rest of the line stays readable.
        return format!("{}...\"", &line[..cut]);
    };
    // The links stay, with the begin of each text between them.
    let (mut short, mut rest, mut next) = (String::new(), line.trim_end_matches('"'), Some(first));
    let text = |part: &str| match part.floor_char_boundary(BETWEEN) {
        cut if cut < part.len() => format!("{}... ", &part[..cut]),
        _ => part.to_owned(),
    };
    while let Some(at) = next {
        let end = rest[at..].find(']').map_or(rest.len(), |end| at + end + 1);
        short.push_str(&text(&rest[..at]));
        short.push_str(&rest[at..end]);
        rest = &rest[end..];
        next = mark(rest);
    }
    short + text(rest).trim_end() + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str) -> Node {
        Node { name: name.into(), ..Node::default() }
    }

    fn element(number: Option<u32>, role: &str, name: &str, children: Vec<Node>) -> Node {
        Node {
            reference: number,
            role: Role::parse(role, Some(2)),
            name: name.into(),
            children,
            ..Node::default()
        }
    }

    fn link(number: u32, name: &str) -> Node {
        element(Some(number), "link", name, Vec::new())
    }

    fn ends(node: Node) -> Node {
        Node { ends: true, ..node }
    }

    fn shown(nodes: Vec<Node>) -> Vec<String> {
        lines(&nodes, Style::Shown)
    }

    #[test]
    fn items_do_not_repeat_what_the_line_around_them_says() {
        let items = |of: &[(&str, &str)]| -> Vec<Node> {
            of.iter().zip(1..).map(|((role, name), n)| element(Some(n), role, name, Vec::new())).collect()
        };
        for (holder, of, page) in [
            ("menubar", &[("menuitem", "File"), ("menuitem", "Edit")][..], "e1 \"File\" e2 \"Edit\""),
            (
                "menu",
                &[("menuitem", "New"), ("menuitemcheckbox", "Auto")],
                "e1 \"New\" e2 menuitemcheckbox \"Auto\"",
            ),
            ("tablist", &[("tab", "One"), ("button", "+")], "e1 \"One\" e2 button \"+\""),
            ("listbox", &[("option", "A"), ("option", "B")], "e1 \"A\" e2 \"B\""),
            ("combobox", &[("option", "A"), ("option", "B")], "e1 \"A\" e2 \"B\""),
            ("tree", &[("treeitem", "A"), ("treeitem", "B")], "e1 \"A\" e2 \"B\""),
            ("radiogroup", &[("radio", "A"), ("radio", "B")], "e1 \"A\" e2 \"B\""),
            ("navigation", &[("link", "Home"), ("button", "Menu")], "e1 \"Home\" e2 button \"Menu\""),
        ] {
            let node = element(None, holder, "", items(of));
            assert_eq!(shown(vec![node.clone()])[1..], [format!(" {page}")], "{holder}");
            // Alone, each says its role.
            let alone = lines(&[node], Style::Alone);
            let whole = of.iter().zip(1..).map(|((role, name), n)| {
                let name = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
                format!(" e{n} {role}{name}")
            });
            assert_eq!(alone[1..], whole.collect::<Vec<_>>(), "{holder}");
        }
        // Elsewhere the first in a line names the role of all.
        let toolbar = element(
            None,
            "toolbar",
            "",
            items(&[
                ("button", "A"),
                ("button", "B"),
                ("checkbox", "C"),
                ("textbox", "D"),
                ("textbox", "E"),
                ("button", ""),
            ]),
        );
        let wanted = [
            " e1 button \"A\" e2 \"B\"",
            " e3 checkbox \"C\"",
            " e4 textbox \"D\"",
            " e5 textbox \"E\"",
            " e6 button",
        ];
        assert_eq!(shown(vec![toolbar.clone()])[1..], wanted);
        assert_eq!(lines(&[toolbar], Style::Alone)[1..3], [" e1 button \"A\"", " e2 button \"B\""]);
        // One of another role ends its line, and what is without a reference has its own.
        let menu =
            element(None, "menu", "", items(&[("menuitem", "A"), ("menuitemradio", "B"), ("menuitem", "C")]));
        assert_eq!(shown(vec![menu])[1..], [" e1 \"A\" e2 menuitemradio \"B\"", " e3 \"C\""]);
        let menu = element(None, "menu", "", vec![element(None, "menuitem", "A", Vec::new()), text("B")]);
        assert_eq!(shown(vec![menu])[1..], [" menuitem \"A\"", " \"B\""]);
    }

    #[test]
    fn what_says_nothing_has_no_line() {
        let of = |role: &str, children: Vec<Node>| element(None, role, "", children);
        let two = || vec![text("One"), element(Some(1), "button", "B", Vec::new())];
        let plain = ["\"One\"", "e1 button \"B\""];
        for node in [of("main", two()), of("article", two()), of("main", vec![of("article", two())])] {
            assert_eq!(shown(vec![node]), plain);
        }
        let nav = of("navigation", vec![of("list", vec![link(2, "Home"), link(3, "Shop")])]);
        assert_eq!(
            shown(vec![nav, of("main", two())]),
            ["nav", " e2 \"Home\" e3 \"Shop\"", plain[0], plain[1]]
        );
        // Several articles, and parts with a name, are told apart.
        let feed = shown(vec![of("article", two()), of("article", two())]);
        assert_eq!(feed.iter().filter(|line| *line == "article").count(), 2, "{feed:?}");
        assert_eq!(shown(vec![element(None, "main", "Named", two())])[0], "main \"Named\"");
    }

    #[test]
    fn lines_of_items_are_of_bounded_length_and_an_item_with_items_begins_a_line() {
        let many: Vec<Node> =
            (1..=40).map(|n| element(Some(n), "tab", &format!("Tab {n}"), Vec::new())).collect();
        let page = shown(vec![element(None, "tablist", "", many)]);
        assert!(page.iter().all(|line| line.len() <= WIDTH) && page.len() > 5, "{page:?}");
        assert!(page.iter().skip(1).all(|line| line.starts_with(" e")), "{page:?}");
        let inner = element(Some(2), "treeitem", "B", vec![element(None, "tree", "", vec![link(3, "C")])]);
        let leaf = |n, name| element(Some(n), "treeitem", name, Vec::new());
        let tree = element(None, "tree", "", vec![leaf(1, "A"), inner, leaf(4, "D"), leaf(5, "E")]);
        let wanted = ["tree", " e1 \"A\"", " e2 \"B\"", "  tree", "   e3 link \"C\"", " e4 \"D\" e5 \"E\""];
        assert_eq!(shown(vec![tree]), wanted);
    }

    #[test]
    fn links_within_a_text_stand_in_its_line() {
        let by = || vec![text("By"), link(4, "Ann Berg"), text(", 3 May")];
        for style in [Style::Alone, Style::Shown] {
            assert_eq!(lines(&by(), style), ["\"By [e4 Ann Berg], 3 May\""]);
        }
        let item = element(None, "listitem", "", by());
        assert_eq!(shown(vec![item]), ["- \"By [e4 Ann Berg], 3 May\""]);
        // Another block, links alone, and what is more than a name.
        let blocks = vec![ends(text("One")), link(1, "A"), link(2, "B")];
        assert_eq!(shown(blocks), ["\"One\"", "e1 link \"A\" e2 \"B\""]);
        let focused = Node { states: vec!["focused".into()], ..link(1, "A") };
        assert_eq!(shown(vec![text("See"), focused]), ["\"See\"", "e1 link \"A\" focused"]);
        let long = "word ".repeat(110);
        let two = shown(vec![text("See"), link(1, "A"), text(&long), link(2, "B")]);
        assert_eq!(two.len(), 3, "{two:?}");
        assert!(two[2] == "e2 link \"B\"" || two[2].contains("[e2 B]"), "{two:?}");
    }

    #[test]
    fn no_text_of_a_page_passes_for_a_link_in_it() {
        for (name, page) in [
            ("Pay [e9 here] now", "Pay [ e9 here] now"),
            ("[[e1 x]] [e [ee1 [e12", "[[ e1 x]] [e [ee1 [ e12"),
            ("array[e]", "array[e]"),
        ] {
            assert_eq!(shown(vec![text(name)]), [format!("\"{page}\"")]);
            let both = shown(vec![text("a"), link(2, name)]);
            assert_eq!(both.len(), 1);
            assert_eq!(both[0].matches(['[', ']']).count(), 2, "{both:?}");
        }
        // Also not where two texts meet.
        let parts = [text("[e"), link(3, "b")];
        assert_eq!(shown(parts.to_vec()), ["\"[e [e3 b]\""]);
        assert_eq!(shown(vec![text("["), text("e7 fake]"), link(3, "b")]), ["\"[ e7 fake] [e3 b]\""]);
    }

    #[test]
    fn no_word_of_a_page_passes_for_a_state_or_for_an_element() {
        for (given, shown) in [
            ("card", "card"),
            ("#top-2_b.c:d/e?f=1&g", "#top-2_b.c:d/e?f=1&g"),
            ("btn primary", "\"btn primary\""),
            ("x> checked", "\"x> checked\""),
            ("x>", "\"x>\""),
            ("a\" disabled e9 button \"", "\"a' disabled e9 button '\""),
            ("a\nb", "\"a b\""),
            ("a\u{202e}b", "\"ab\""),
            ("[e4", "\"[ e4\""),
            ("ääääääääää", "äää..."),
        ] {
            let limit = if given.starts_with('ä') { 7 } else { 40 };
            assert_eq!(word(given, limit).trim_end_matches('.'), shown.trim_end_matches('.'), "{given:?}");
        }
        let node =
            Node { states: vec![format!("<div class={}> 5x5", word("x> checked", 40))], ..link(1, "") };
        assert_eq!(shown(vec![node]), ["e1 link <div class=\"x> checked\"> 5x5"]);
    }

    #[test]
    fn a_page_over_its_budget_keeps_its_links() {
        let words = "many words of it ".repeat(20);
        let line = format!("\"{words}[e4 Ann] {words}[e5 Bob] end\"");
        let short = shortened(&line);
        assert!(short.len() < 200 && short.contains("[e4 Ann]") && short.contains("[e5 Bob] end"), "{short}");
        assert!(short.starts_with("\"many words") && short.ends_with('"'), "{short}");
        let texts = format!("\"{words}\"");
        let (kept, out) = within(&[line, texts, "e1 button \"B\"".into()], 230);
        assert_eq!(out, 1, "{kept:?}");
        assert!(kept[0].contains("[e5 Bob]") && kept[1] == "e1 button \"B\"", "{kept:?}");
    }
}
