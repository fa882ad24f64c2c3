//! The search, driven by the robot.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::{SeqIds, Time};

use super::*;
use crate::app::msg::Msg;
use crate::model::conversation::script::Script;
use crate::testing::{Robot, START};

fn hits() -> Vec<SearchHit> {
    let ids = SeqIds::default();
    let preview =
        "it said E0308 mismatched types\u{1b}[31m in src/client.rs, so the retry never came to its end";
    let at = preview.find("mismatched").unwrap();
    (0..3)
        .map(|n| SearchHit {
            session: SessionId::fresh(&ids, START),
            title: format!("retry work {n}"),
            project: "/home/ann/api".into(),
            entry: EntryId::fresh(&ids, START),
            role: SearchRole::ALL[n],
            agent: tiller_protocol::AgentId::main(),
            time: Time(START.0 - 7_200_000 * n as i64),
            preview: preview.into(),
            mark: (at, at + 10),
        })
        .collect()
}

fn asked(r: &Robot) -> Vec<SearchQuery> {
    let searches = r.commands().into_iter().filter_map(|c| match c {
        CommandBody::Query(Query::Search { query }) => Some(query.clone()),
        _ => None,
    });
    searches.collect()
}

/// Opened, with words and their hits.
fn found(w: u16, h: u16) -> (Robot, Vec<SearchHit>) {
    let mut r = Robot::new(w, h);
    r.run("ctrl-x F; m i s m");
    let query = asked(&r).pop().unwrap();
    let hits = hits();
    r.reply(ReplyEvent::SearchReply {
        query,
        page: SearchPage { hits: hits.clone(), more: false, behind: 0, ..SearchPage::default() },
    });
    (r, hits)
}

#[test]
fn looks_well() {
    for (w, h) in [(118, 25), (80, 24)] {
        let (r, _) = found(w, h);
        insta::assert_snapshot!(format!("search_at_{w}x{h}"), r.screen());
    }
}

#[test]
fn each_key_looks_again_and_late_answers_are_dropped() {
    let mut r = Robot::new(118, 25);
    r.run("ctrl-x F");
    assert!(r.screen().contains("Type words"), "{}", r.screen());
    r.run("a b");
    let queries = asked(&r);
    assert_eq!(queries.iter().map(|q| q.text.as_str()).collect::<Vec<_>>(), ["a", "ab"]);
    let page = SearchPage { hits: hits(), more: false, behind: 0, ..SearchPage::default() };
    let late = r.asked(|c| matches!(c, CommandBody::Query(Query::Search { query }) if query.text == "a"));
    let reply = ReplyEvent::SearchReply { query: queries[0].clone(), page: page.clone() };
    r.cause(late, EventBody::Reply(Box::new(reply)));
    assert!(!r.screen().contains("mismatched"), "an answer to other words: {}", r.screen());
    r.reply(ReplyEvent::SearchReply { query: queries[1].clone(), page });
    assert!(r.screen().contains("mismatched"), "{}", r.screen());
    // The search of a letter that was typed again later says nothing, though its words are the present ones.
    let cancelled = SearchPage { cancelled: true, ..SearchPage::default() };
    r.reply(ReplyEvent::SearchReply { query: queries[1].clone(), page: cancelled });
    assert!(r.screen().contains("mismatched"), "{}", r.screen());
    r.clear();
    r.run("ctrl-t");
    assert_eq!(asked(&r)[0].project, None);
    r.run("ctrl-x w");
    assert_eq!(asked(&r)[1].roles, [SearchRole::User]);
    r.run("backspace backspace");
    assert!(r.screen().contains("Type words"), "{}", r.screen());
}

#[test]
fn the_author_filter_is_named_where_it_keeps_all_hits_away() {
    let (mut r, _) = found(118, 25);
    r.run("ctrl-x w");
    let query = asked(&r).pop().unwrap();
    assert_eq!(query.roles, [SearchRole::User]);
    r.reply(ReplyEvent::SearchReply { query, page: SearchPage::default() });
    assert!(r.screen().contains("Nothing found by this author"), "{}", r.screen());
}

#[test]
fn a_search_by_keywords_says_so_where_the_best_come_first() {
    let (mut r, _) = found(80, 24);
    assert!(r.screen().contains("Find in this folder's sessions, by keywords"), "{}", r.screen());
    let answer = |r: &mut Robot, meaning: SearchMeaning| {
        let query = asked(r).pop().unwrap();
        r.reply(ReplyEvent::SearchReply { query, page: SearchPage { meaning, ..SearchPage::default() } });
        r.screen()
    };
    // It is asked again, and answered by meaning.
    r.run("ctrl-x w");
    let screen = answer(&mut r, SearchMeaning::Used);
    assert!(!screen.contains("keywords"), "{screen}");
    r.run("ctrl-x o");
    let screen = answer(&mut r, SearchMeaning::Keywords);
    assert!(screen.contains("newest first") && !screen.contains("keywords"), "{screen}");
}

#[test]
fn what_the_index_does_not_know_yet_is_said_and_asked_for_again() {
    let mut r = Robot::new(118, 25);
    r.run("ctrl-x F; paste mism");
    let answer = |r: &mut Robot, behind: u64, hits: Vec<SearchHit>| {
        let query = asked(r).pop().expect("it asks");
        let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Search { .. })));
        r.clear();
        let reply = ReplyEvent::SearchReply {
            query,
            page: SearchPage { hits, more: false, behind, ..SearchPage::default() },
        };
        r.cause(id, EventBody::Reply(Box::new(reply)));
    };
    answer(&mut r, 80_000, Vec::new());
    assert!(r.screen().contains("80000 entries not searched yet"), "{}", r.screen());
    assert!(!r.screen().contains("Nothing found in this scope"), "{}", r.screen());
    answer(&mut r, 60_000, Vec::new());
    answer(&mut r, 0, hits());
    assert!(r.screen().contains("mismatched") && !r.screen().contains("not searched"), "{}", r.screen());
    assert_eq!(asked(&r), [], "all is searched");
    // An index that does not go on is not asked for ever.
    r.run("x");
    answer(&mut r, 500, Vec::new());
    answer(&mut r, 500, Vec::new());
    assert_eq!(asked(&r), []);
    assert!(r.screen().contains("500 entries not searched yet"), "{}", r.screen());
}

#[test]
fn enter_opens_the_session_of_the_hit_and_shows_it() {
    let (mut r, hits) = found(118, 25);
    r.clear();
    r.run("down enter");
    let open = |c: &&CommandBody| matches!(c, CommandBody::Session(SessionCommand::Open { id }) if *id == hits[1].session);
    assert_eq!(r.commands().iter().filter(|c| open(c)).count(), 1, "{:?}", r.commands());
    assert!(!r.screen().contains("Find in"), "the list is gone: {}", r.screen());
}

/// Answers the last search with these hits.
fn answer(r: &mut Robot, hits: &[&SearchHit]) {
    let query = asked(r).pop().expect("it asks");
    let hits = hits.iter().map(|hit| (*hit).clone()).collect();
    r.reply(ReplyEvent::SearchReply { query, page: SearchPage { hits, ..SearchPage::default() } });
}

fn opens(r: &Robot, hit: &SearchHit) -> bool {
    let open = |c: &&CommandBody| matches!(c, CommandBody::Session(SessionCommand::Open { id }) if *id == hit.session);
    r.commands().iter().any(open)
}

/// Keys come faster than answers: Enter is about the words that were typed, not about a hit of the words before.
#[test]
fn enter_before_the_answer_opens_the_best_hit_of_the_typed_words() {
    // Nothing is here yet.
    let all = hits();
    let mut r = Robot::new(118, 25);
    r.run("ctrl-x F; paste mism; enter");
    assert!(r.screen().contains("Find in"), "{}", r.screen());
    answer(&mut r, &[&all[1], &all[0]]);
    assert!(opens(&r, &all[1]) && !r.screen().contains("Find in"), "{}", r.screen());
    // The hits of fewer letters are here.
    let (mut r, all) = found(118, 25);
    r.clear();
    r.run("a; enter");
    assert!(!all.iter().any(|hit| opens(&r, hit)), "{:?}", r.commands());
    answer(&mut r, &[&all[2], &all[0]]);
    assert!(opens(&r, &all[2]) && !opens(&r, &all[0]), "{:?}", r.commands());
    // Another letter takes the Enter back.
    let (mut r, all) = found(118, 25);
    r.clear();
    r.run("a; enter; b");
    answer(&mut r, &[&all[2]]);
    assert!(r.screen().contains("Find in") && !opens(&r, &all[2]), "{}", r.screen());
    // There is nothing to open.
    r.run("c; enter");
    answer(&mut r, &[]);
    assert!(r.screen().contains("Nothing found"), "{}", r.screen());
}

/// Until the user moves the cursor it stands on the best hit of the typed words, wherever the first hit of the words
/// before is.
#[test]
fn the_best_hit_is_under_the_cursor_when_the_answer_comes() {
    let (mut r, all) = found(118, 25);
    r.clear();
    r.run("a");
    answer(&mut r, &[&all[1], &all[0]]);
    r.run("enter");
    assert!(opens(&r, &all[1]) && !opens(&r, &all[0]), "{:?}", r.commands());
}

#[test]
fn one_key_branches_at_the_hit() {
    let (mut r, hits) = found(118, 25);
    r.clear();
    r.run("ctrl-x f");
    assert!(r.commands().iter().any(|c| matches!(c, CommandBody::Session(SessionCommand::Open { .. }))));
    let mut event = Script::new().snapshot(Vec::new(), 0, false);
    if let EventBody::Reply(reply) = &mut event.body
        && let ReplyEvent::SnapshotReply { snapshot } = reply.as_mut()
    {
        snapshot.session.id = hits[0].session;
    }
    r.msg(Msg::Engine(Box::new(event)));
    let fork = |c: &&CommandBody| matches!(c, CommandBody::Session(SessionCommand::Fork { entry }) if *entry == hits[0].entry);
    assert_eq!(r.commands().iter().filter(|c| fork(c)).count(), 1, "{:?}", r.commands());
}

#[test]
fn the_order_can_be_chosen_and_a_spelling_taken() {
    let mut r = Robot::new(118, 25);
    r.run("ctrl-x F; paste certifcate");
    assert_eq!(asked(&r).pop().unwrap().order, SearchOrder::Best);
    r.run("ctrl-x o");
    let query = asked(&r).pop().unwrap();
    assert_eq!(query.order, SearchOrder::Newest);
    assert!(r.screen().contains("newest first"), "{}", r.screen());
    r.run("ctrl-x o");
    let query = asked(&r).pop().unwrap();
    let page = SearchPage { suggestion: Some("certificate\u{1b}[2J".into()), ..SearchPage::default() };
    r.reply(ReplyEvent::SearchReply { query, page });
    assert!(r.screen().contains("did you mean \"certificate"), "{}", r.screen());
    r.run("ctrl-x s");
    assert!(asked(&r).pop().unwrap().text.starts_with("certificate"), "{}", r.screen());
}

#[test]
fn memory_and_skills_follow_what_was_said_and_lead_to_their_entries() {
    let mut r = Robot::new(118, 25);
    r.run("ctrl-x F; paste mism");
    let query = asked(&r).pop().unwrap();
    let all = hits();
    let document = |kind, from: Option<&SearchHit>| DocumentHit {
        kind,
        key: "k".into(),
        title: "MEMORY.md\u{1b}[2J".into(),
        preview: "types that mismatch".into(),
        mark: (11, 15),
        session: from.map(|h| h.session),
        entry: from.map(|h| h.entry),
    };
    let documents = vec![document(DocumentKind::Memory, Some(&all[2])), document(DocumentKind::Skill, None)];
    let meaning = SearchMeaning::Failed { why: "the server died".into() };
    let page = SearchPage { hits: all.clone(), documents, meaning, ..SearchPage::default() };
    r.reply(ReplyEvent::SearchReply { query, page });
    assert!(!r.screen().contains("Source   memory"), "{}", r.screen());
    r.run(&vec!["down"; all.len()].join("; "));
    let screen = r.screen();
    assert!(screen.contains("by keywords only") && screen.contains("Source   memory"), "{screen}");
    r.clear();
    r.run("enter");
    let open = |c: &&CommandBody| matches!(c, CommandBody::Session(SessionCommand::Open { id }) if *id == all[2].session);
    assert!(r.commands().iter().any(open), "{:?}", r.commands());
}

#[test]
fn a_hit_without_an_entry_opens_the_list_that_it_is_in() {
    for (kind, title) in [
        (DocumentKind::Memory, "Memory"),
        (DocumentKind::Learning, "Learnings"),
        (DocumentKind::Skill, "Skills"),
    ] {
        let mut r = Robot::new(118, 25);
        r.run("ctrl-x F; paste mism");
        let query = asked(&r).pop().unwrap();
        let hit = DocumentHit {
            kind,
            key: "k".into(),
            title: "12: make deploy".into(),
            preview: "types that mismatch".into(),
            mark: (11, 15),
            session: None,
            entry: None,
        };
        r.reply(ReplyEvent::SearchReply {
            query,
            page: SearchPage { documents: vec![hit], ..SearchPage::default() },
        });
        assert!(r.screen().contains("types that mismatch"), "{}", r.screen());
        r.run("enter");
        let screen = r.screen();
        assert!(screen.contains(title) && !screen.contains("Find in"), "{screen}");
    }
}

#[test]
fn a_hit_of_memory_opens_the_list_at_its_entry_and_offers_no_branch() {
    use tiller_protocol::{MemoryEntry, memory::MemoryPage};
    let memory = crate::dialog::memory::sample_page();
    // The last kept entry is not the one that the list starts on by itself.
    let kept = |e: &&MemoryEntry| e.state == tiller_protocol::MemoryState::Kept;
    let entry = memory.entries.iter().rfind(kept).unwrap().clone();
    let part: String = entry.text.chars().take(60).collect();
    let mut r = Robot::new(118, 32);
    r.run("ctrl-x F; paste mism");
    let query = asked(&r).pop().unwrap();
    let hit = DocumentHit {
        kind: DocumentKind::Memory,
        key: "k".into(),
        title: entry.target.label().into(),
        preview: part.replace('\n', " "),
        mark: (0, 1),
        session: None,
        entry: None,
    };
    let page = SearchPage { hits: hits(), documents: vec![hit], ..SearchPage::default() };
    r.reply(ReplyEvent::SearchReply { query, page });
    assert!(r.screen().contains("branch here"), "{}", r.screen());
    r.run(&vec!["down"; hits().len()].join("; "));
    assert!(!r.screen().contains("branch here"), "{}", r.screen());
    r.run("enter; wait 1");
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Memory(_))));
    let page: Box<MemoryPage> = Box::new(memory);
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::MemoryReply { page })));
    r.run("wait 500; ctrl-x d");
    let deleted =
        CommandBody::Memory(tiller_protocol::MemoryCommand::Delete { target: entry.target, old: entry.text });
    assert!(r.commands().contains(&&deleted), "{:?}", r.commands());
}

/// A row shows the match with what stands around it, and the preview says where the match of a hit without one is.
#[test]
fn a_row_has_the_match_in_its_sentence_and_a_hit_without_one_says_why_it_is_there() {
    let mut all = hits();
    all[0].preview = format!("{} the tunnel was closed {}", "before it ".repeat(9), "and after ".repeat(9));
    let at = all[0].preview.find("tunnel").unwrap();
    all[0].mark = (at, at + 6);
    all[1].mark = (0, 0);
    for (w, h) in [(118, 25), (80, 24)] {
        let mut r = Robot::new(w, h);
        r.run("ctrl-x F; paste tunnel");
        let query = asked(&r).pop().unwrap();
        r.reply(ReplyEvent::SearchReply {
            query,
            page: SearchPage { hits: all.clone(), ..SearchPage::default() },
        });
        let screen = r.screen();
        let row = screen.lines().find(|l| l.contains('●')).unwrap();
        assert!(row.contains("the tunnel was closed"), "{screen}");
        assert!(row.contains("…before") || row.contains("…it"), "words are whole: {screen}");
        assert!(!screen.contains("Match  "), "{screen}");
        r.run("down");
        assert!(r.screen().contains("Match    in the entries before or after it"), "{}", r.screen());
    }
}
