use serde_json::json;
use tiller_protocol::{Clock, DocumentHit, DocumentKind, EntryId, IdSource, SearchHit, SeqIds, SessionId};

use super::*;
use crate::testing::Bench;

fn hit(preview: &str, mark: (usize, usize)) -> SearchHit {
    let ids = SeqIds::default();
    SearchHit {
        session: SessionId(ids.next(Time(0))),
        title: "Mend the retries\nand more".into(),
        project: "/work/p".into(),
        entry: EntryId(ids.next(Time(0))),
        role: SearchRole::Tool,
        agent: tiller_protocol::AgentId::main(),
        time: Time(1_795_291_200_000),
        preview: preview.into(),
        mark,
    }
}

#[tokio::test]
async fn a_search_is_passed_on_and_its_hits_are_told() {
    let b = Bench::new();
    *b.ports.found.lock().unwrap() = SearchPage {
        hits: vec![hit("the old error E0308 came", (8, 19))],
        more: true,
        behind: 0,
        ..SearchPage::default()
    };
    let args = json!({"query": "error", "role_filter": ["tool"], "since": "2d", "until": "2026-11-21", "limit": 1, "offset": 4});
    let said = b.say(&SessionSearch, args).await;
    assert!(said.starts_with("5. 2026-11-21T20:00 tool in \"Mend the retries\" (session "), "{said}");
    assert!(said.contains("\n   the old **error E0308** came\nmore: offset 5\n"), "{said}");
    let asked = b.ports.searched.lock().unwrap()[0].clone();
    assert_eq!((asked.text.as_str(), asked.limit, asked.offset), ("error", 1, 4));
    assert_eq!(asked.roles, [SearchRole::Tool]);
    assert_eq!(asked.project, Some(b.root.display().to_string()), "this folder, unless told otherwise");
    assert_eq!(asked.since, Some(Time(b.clock.now().millis() - 2 * 86_400_000)));
    *b.ports.found.lock().unwrap() = SearchPage::default();
    assert!(b.say(&SessionSearch, json!({"query": "x", "project": "all"})).await.contains("no hits"));
    assert_eq!(b.ports.searched.lock().unwrap()[1].project, None);
}

#[tokio::test]
async fn a_document_cites_its_entry_and_a_search_by_keywords_says_so() {
    let b = Bench::new();
    let ids = SeqIds::default();
    let (session, entry) = (SessionId(ids.next(Time(0))), EntryId(ids.next(Time(0))));
    let document = DocumentHit {
        kind: DocumentKind::Learning,
        key: "1".into(),
        title: "1: make deploy".into(),
        preview: "open the tunnel".into(),
        mark: (0, 0),
        session: Some(session),
        entry: Some(entry),
    };
    let found = |documents: &[DocumentHit], hits: &[SearchHit], meaning: SearchMeaning| {
        let (documents, hits) = (documents.to_vec(), hits.to_vec());
        *b.ports.found.lock().unwrap() = SearchPage { documents, hits, meaning, ..SearchPage::default() };
    };
    let best = json!({"query": "tunnel"});
    let (document, hit) = ([document], [hit("the tunnel", (4, 10))]);
    found(&document, &[], SearchMeaning::Keywords);
    let said = b.say(&SessionSearch, best.clone()).await;
    let cited =
        format!("learning 1: make deploy (from session {session}, entry {entry})\n   open the tunnel\n");
    assert_eq!(said, format!("{cited}by keywords only\n"));
    found(&[], &hit, SearchMeaning::Keywords);
    assert!(b.say(&SessionSearch, best.clone()).await.ends_with("\nby keywords only\n"));
    found(&[], &[], SearchMeaning::Keywords);
    assert!(b.say(&SessionSearch, best.clone()).await.ends_with("\nby keywords only\n"));
    found(&document, &hit, SearchMeaning::Used);
    assert!(!b.say(&SessionSearch, best).await.contains("keywords"));
    found(&[], &hit, SearchMeaning::Keywords);
    let newest = json!({"query": "tunnel", "newest": true});
    assert!(!b.say(&SessionSearch, newest).await.contains("keywords"), "it is in the order of time");
}

/// Without it an agent takes "no hits" for an answer while an import is indexed.
#[tokio::test]
async fn what_is_not_indexed_yet_and_a_spelling_are_said_with_and_without_hits() {
    let b = Bench::new();
    let document = || DocumentHit {
        kind: DocumentKind::Memory,
        key: "1".into(),
        title: "MEMORY.md".into(),
        preview: "the tunnel".into(),
        mark: (0, 0),
        session: None,
        entry: None,
    };
    for (hits, documents) in [
        (Vec::new(), Vec::new()),
        (Vec::new(), vec![document()]),
        (vec![hit("the tunnel", (4, 10))], vec![document()]),
    ] {
        let no_hits = hits.is_empty() && documents.is_empty();
        let suggestion = Some("tunnel ".to_owned());
        *b.ports.found.lock().unwrap() =
            SearchPage { hits, documents, behind: 5000, suggestion, ..SearchPage::default() };
        let said = b.say(&SessionSearch, json!({"query": "tunel", "newest": true})).await;
        assert!(said.ends_with("did you mean: tunnel\n5000 entries are not indexed yet\n"), "{said}");
        assert_eq!(said.contains("no hits"), no_hits, "{said}");
    }
}

#[tokio::test]
async fn other_folders_are_a_read_outside_and_wrong_words_say_what_is_right() {
    let b = Bench::new();
    let access = |args| SessionSearch.access(&args, &b.cx);
    assert_eq!(access(json!({"query": "x"})).unwrap(), [Access::Free]);
    let outside = |path: &str| [Access::Read { path: path.into(), inside: false }];
    assert_eq!(access(json!({"query": "x", "project": "/other/"})).unwrap(), outside("/other"));
    assert_eq!(access(json!({"query": "x", "project": "all"})).unwrap(), outside("/"));
    for (args, why) in [
        (json!({"query": " "}), "at least one word"),
        (json!({"query": "x", "role_filter": ["system"]}), "use user, assistant"),
        (json!({"query": "x", "since": "soon"}), "is not a time"),
        (json!({"query": "x", "wrong": 1}), "wrong"),
    ] {
        let error = format!("{:?}", access(args).unwrap_err());
        assert!(error.contains(why), "{error}");
    }
}
