//! Rows as filter and folds have them.

use tiller_protocol::tree::TreeSpawned;

use super::*;
use crate::widget::lanes::Lanes;

fn forest(tree: SessionTree) -> Forest {
    let mut f = Forest::default();
    let id = tree.session;
    f.put(tree);
    let n = f.find(id).unwrap();
    f.trees[n].open = true;
    f.roots = vec![n as u32];
    f
}

/// Each row as the lines before it and its node.
fn drawn(f: &Forest, filter: &Filter) -> Vec<String> {
    let rows = f.rows(filter);
    let text = |r: &TreeRow| {
        let mut text = String::new();
        for d in 0..u32::from(r.depth) {
            let goes_on = r.lines & (1 << d) != 0;
            let elbow = r.first && d + 1 == u32::from(r.depth);
            text.push_str(match (elbow, goes_on) {
                (true, true) => "|-",
                (true, false) => "`-",
                (false, true) => "| ",
                (false, false) => "  ",
            });
        }
        match r.what {
            RowKind::Title => text.push('#'),
            RowKind::Node(n) => text.push_str(&n.to_string()),
            RowKind::Wait => text.push_str("..."),
        }
        if r.hidden > 0 {
            text.push_str(&format!(" +{}", r.hidden));
        }
        text
    };
    rows.iter().map(text).collect()
}

/// Two branches off the first turn, one of them with a branch of its own.
fn bushy() -> SessionTree {
    let parents =
        [None, Some(0), Some(1), Some(2), Some(3), Some(2), Some(1), Some(6), Some(1), Some(8), Some(9)];
    made("uauauuuauau", &parents, 10)
}

#[test]
fn straight_paths_do_not_indent_and_lines_lead_to_branches() {
    let f = forest(bushy());
    let all = Filter { all: true, ..Filter::default() };
    assert_eq!(
        drawn(&f, &all),
        ["#", "0", "1", "|-2", "| |-3", "| | 4", "| 5", "|-6", "| 7", "8", "9", "10"]
    );
    assert_eq!(drawn(&f, &Filter::default()), ["#", "0", "|-2", "| |-4", "| 5", "|-6", "8", "10"]);
}

#[test]
fn branches_and_sessions_fold_and_turns_unfold() {
    let mut f = forest(bushy());
    f.trees[0].folded.insert(2);
    f.trees[0].turns.insert(8);
    assert_eq!(drawn(&f, &Filter::default()), ["#", "0", "|-2 +3", "|-6", "8", "9", "10"]);
    f.trees[0].open = false;
    assert_eq!(drawn(&f, &Filter::default()), ["#"]);
}

#[test]
fn filters_leave_rows_out_and_words_open_what_is_folded() {
    let mut f = forest(bushy());
    f.trees[0].open = false;
    let session = f.trees[0].session;
    let words = Filter { text: "x".into(), ..Filter::default() };
    let found = TreeFound { sessions: vec![(session, vec![13, 17])], more: false, behind: 0 };
    f.found(Some(&found));
    assert_eq!(drawn(&f, &words), ["#", "|-3", "`-7"]);
    f.found(Some(&TreeFound::default()));
    assert_eq!(drawn(&f, &words), [""; 0], "a session without a hit is not listed");
    f.found(None);
    f.trees[0].open = true;
    f.mark(session, &TreeMarks { files: vec![(17, 1)], failed: vec![14], within: Vec::new() });
    let only = |only| Filter { only, ..Filter::default() };
    assert_eq!(drawn(&f, &only(EntryFilter::Changes)), ["#", "`-6"]);
    assert_eq!(drawn(&f, &only(EntryFilter::Errors)).len(), 2);
    let nobody = Filter { agent: Some("main/a1".into()), ..Filter::default() };
    assert_eq!(drawn(&f, &nobody), ["#", "..."]);
}

#[test]
fn sessions_of_subagents_hang_off_their_entry() {
    let mut tree = made("uauu", &[None, Some(0), Some(1), Some(2)], 3);
    let child: SessionId = format!("{:032x}", 77).parse().unwrap();
    tree.spawned.push(TreeSpawned {
        session: child,
        node: 1,
        title: "look around".into(),
        agent: None,
        state: None,
        time: None,
        entries: 2,
        tokens: 0,
        cost: None,
        files: 0,
    });
    let mut f = forest(tree);
    assert_eq!(drawn(&f, &Filter::default()), ["#", "0", "|-#", "2", "3"]);
    let mut below = made("uu", &[None, Some(0)], 1);
    below.session = child;
    below.title.clear();
    f.put(below);
    let n = f.find(child).unwrap();
    f.trees[n].open = true;
    assert_eq!(drawn(&f, &Filter::default()), ["#", "0", "|-#", "| 0", "| 1", "2", "3"]);
    assert_eq!(f.trees[n].about.title, "look around");
}

/// Not a limit of time: that a hundred thousand entries, of which many are branches, make rows at all.
#[test]
fn a_hundred_thousand_entries_make_rows() {
    let n = 100_000_usize;
    let kinds: String = (0..n).map(|i| if i % 2 == 0 { 'u' } else { 'a' }).collect();
    let parents: Vec<Option<u32>> = (0..n)
        .map(|i| match i {
            0 => None,
            _ if i % 50 == 0 => Some((i / 2) as u32),
            _ => Some(i as u32 - 1),
        })
        .collect();
    let f = forest(made(&kinds, &parents, n as u32 - 1));
    let rows = f.rows(&Filter::default());
    assert_eq!(rows.len(), 1 + n / 2);
    let all = f.rows(&Filter { all: true, ..Filter::default() });
    assert_eq!(all.len(), 1 + n);
}

/// The rows of a tree as they are drawn: lanes with a sign at the end, and the node of each.
fn graph(f: &Forest, filter: &Filter) -> Vec<(Vec<char>, usize, u32)> {
    let rows = f.rows(filter);
    let row = |r: &TreeRow| {
        let RowKind::Node(n) = r.what else { return None };
        let lanes = Lanes { depth: r.depth, first: r.first, lines: r.lines };
        let mut cells: Vec<char> = lanes.draw(600, false).iter().flat_map(|(text, _)| text.chars()).collect();
        let at = cells.len();
        cells.push('*');
        Some((cells, at, n))
    };
    rows.iter().filter_map(row).collect()
}

/// With branches of any shape: from each entry the lines lead up to the nearest entry above it that has a row, and to no other.
#[test]
fn lines_lead_from_each_entry_to_the_one_before_it() {
    let mut random = crate::testing::Random(9);
    for size in [2, 3, 5, 12, 40] {
        for _ in 0..150 {
            let parents: Vec<Option<u32>> = (0..size)
                .map(|n: u64| match (n, random.below(3)) {
                    (0, _) => None,
                    // Straight on, forks of forks, and forks off anything.
                    (_, 0) => Some(n as u32 - 1),
                    (_, 1) => Some(random.below(n) as u32),
                    _ => Some((n - 1 - random.below(n.min(3))) as u32),
                })
                .collect();
            let kinds: String = (0..size).map(|_| if random.below(3) == 0 { 'a' } else { 'u' }).collect();
            let f = forest(made(&kinds, &parents, random.below(size) as u32));
            for all in [true, false] {
                let rows = graph(&f, &Filter { all, ..Filter::default() });
                let place: std::collections::HashMap<u32, usize> =
                    rows.iter().enumerate().map(|(at, (_, _, n))| (*n, at)).collect();
                let picture: Vec<String> = rows.iter().map(|(cells, ..)| cells.iter().collect()).collect();
                let picture = picture.join("\n");
                for (y, (cells, at, n)) in rows.iter().enumerate() {
                    let mut above = parents[*n as usize];
                    while let Some(p) = above.filter(|p| !place.contains_key(p)) {
                        above = parents[p as usize];
                    }
                    let Some(above) = above else { continue };
                    let elbow = at.checked_sub(2).filter(|x| "├└".contains(cells[*x]));
                    let x = elbow.unwrap_or(*at);
                    let mut up = y;
                    let from = loop {
                        assert!(up > 0, "{kinds} {parents:?}: {n} hangs off nothing\n{picture}");
                        up -= 1;
                        let (cells, at, n) = &rows[up];
                        if *at == x {
                            break *n;
                        }
                        let lane = cells.get(x).copied().unwrap_or(' ');
                        assert!(
                            "│├".contains(lane),
                            "{kinds} {parents:?}: the line of {n} breaks off\n{picture}"
                        );
                    };
                    assert_eq!(from, above, "{kinds} {parents:?}: {n}\n{picture}");
                }
            }
        }
    }
}

#[test]
fn ten_lanes_leave_two_thirds_of_a_narrow_row_to_words() {
    for columns in [28_u16, 30, 60, 118] {
        for depth in 0..=DEEPEST {
            let lanes = Lanes { depth, first: true, lines: u64::MAX }.draw(columns, false);
            let used: usize = lanes.iter().map(|(text, _)| text.chars().count()).sum();
            assert!(used <= usize::from(columns / 3), "{depth} in {columns}: {lanes:?}");
            let cut = lanes.first().is_some_and(|(text, _)| text == "..");
            assert_eq!(cut, usize::from(depth) * 2 > used, "what is left out is marked");
        }
    }
}
