//! Memory, learnings and skills beside sessions.

use std::sync::{Arc, Mutex};

use tiller_protocol::{
    DocumentKind, EntryId, IdSource, SearchOrder, SearchQuery, SearchRole, SeqIds, SessionId, Time,
};
use tiller_store::search::Lookup;

use super::{NOW, ask, scratch, talk};
use crate::documents::{Document, Source};
use crate::finder::Finder;

pub(crate) struct List(pub(crate) DocumentKind, pub(crate) Mutex<Vec<Document>>);

impl Source for List {
    fn kind(&self) -> DocumentKind {
        self.0
    }

    fn documents(&self) -> Vec<Document> {
        self.1.lock().unwrap().clone()
    }
}

pub(crate) fn document(key: &str, text: &str) -> Document {
    Document { key: key.into(), title: key.into(), text: text.into(), ..Document::default() }
}

#[tokio::test]
async fn what_is_remembered_learned_and_written_down_is_found_with_its_source() {
    let (_dir, store) = scratch();
    let ids = SeqIds::default();
    talk(&store, &ids, &["the deploy needs a tunnel"]);
    let from = (SessionId(ids.next(NOW)), EntryId(ids.next(NOW)));
    let memory = Arc::new(List(
        DocumentKind::Memory,
        Mutex::new(vec![
            Document { from: Some(from), ..document("m1", "Deploys go through the tunnel on bastion-2.") },
            Document {
                project: Some("/other".into()),
                ..document("m2", "Deploys of another project need a tunnel.")
            },
            document("m3", "The person prefers tabs."),
        ]),
    ));
    let finder = Arc::new(Finder::new(store, None));
    finder.add(Arc::clone(&memory) as Arc<dyn Source>);
    finder.add(Arc::new(List(
        DocumentKind::Skill,
        Mutex::new(vec![document("deploying", "How a deploy is made.")]),
    )));
    let search = async |query| finder.search(query, Lookup::most(u64::MAX), None).await.unwrap();
    let mut query = ask("deploy tunnel");
    query.project = Some("/work/p".into());
    let page = search(query.clone()).await;
    assert_eq!(page.hits.len(), 1);
    let keys: Vec<(&str, DocumentKind)> = page.documents.iter().map(|d| (d.key.as_str(), d.kind)).collect();
    assert_eq!(keys[0], ("m1", DocumentKind::Memory));
    assert!(!keys.iter().any(|(k, _)| *k == "m2" || *k == "m3"), "{keys:?}");
    let hit = &page.documents[0];
    assert_eq!((hit.session, hit.entry), (Some(from.0), Some(from.1)));
    assert_eq!(&hit.preview[hit.mark.0..hit.mark.1].to_lowercase(), "deploy");
    // What changed is found at once.
    memory.1.lock().unwrap().push(document("m4", "A tunnel for every deploy; tunnels are cheap."));
    assert!(search(query.clone()).await.documents.iter().any(|d| d.key == "m4"));
    // Phrases are required, excluded words are absent, and a page of sessions only has none.
    let keys = async |text: &str| -> Vec<String> {
        search(ask(text)).await.documents.into_iter().map(|d| d.key).collect()
    };
    assert_eq!(keys("\"tunnel on bastion-2\"").await, ["m1"]);
    assert!(!keys("tunnel -bastion").await.contains(&"m1".to_owned()));
    assert_eq!(keys("unrelated words").await, Vec::<String>::new());
    query.roles = vec![SearchRole::User];
    assert!(search(query.clone()).await.documents.is_empty());
    query.roles.clear();
    query.offset = 10;
    assert!(search(query).await.documents.is_empty());
}

#[tokio::test]
async fn the_limit_of_a_query_is_one_of_documents_too() {
    let (_dir, store) = scratch();
    let finder = Arc::new(Finder::new(store, None));
    let list = (0..9).map(|n| document(&format!("d{n}"), &format!("use the staging bucket {n}"))).collect();
    finder.add(Arc::new(List(DocumentKind::Skill, Mutex::new(list))));
    for (limit, found) in [(0, 0), (1, 1), (3, 3), (50, 5)] {
        let query = tiller_protocol::SearchQuery { limit, ..ask("staging bucket") };
        let page = finder.search(query, Lookup::most(u64::MAX), None).await.unwrap();
        assert_eq!(page.documents.len(), found, "limit {limit}");
    }
}

#[tokio::test]
async fn old_documents_come_later_unless_they_last() {
    let (_dir, store) = scratch();
    let old = Some(Time(NOW.millis() - 400 * 86_400_000));
    let list = vec![
        Document { time: old, ..document("old", "use the staging bucket") },
        Document { time: Some(NOW), ..document("new", "use the staging bucket") },
        Document { time: old, lasting: true, ..document("rule", "use the staging bucket") },
    ];
    let finder = Arc::new(Finder::new(store, None));
    finder.add(Arc::new(List(DocumentKind::Learning, Mutex::new(list))));
    let search = async |query| finder.search(query, Lookup::most(u64::MAX), None).await.unwrap().documents;
    let keys =
        |found: Vec<tiller_protocol::DocumentHit>| found.into_iter().map(|d| d.key).collect::<Vec<_>>();
    assert_eq!(keys(search(ask("staging bucket")).await), ["new", "rule", "old"]);
    // Their time counts as that of entries does, and they have no author and no branch.
    let mut query = ask("staging bucket");
    query.since = Some(NOW);
    assert_eq!(keys(search(query.clone()).await), ["new"]);
    (query.since, query.until) = (None, Some(NOW));
    assert_eq!(keys(search(query.clone()).await), ["rule", "old"]);
    (query.until, query.agent) = (None, Some("main".into()));
    assert!(search(query.clone()).await.is_empty());
    (query.agent, query.branch) = (None, Some("main".into()));
    assert!(search(query).await.is_empty());
}

#[tokio::test]
async fn a_spelling_is_suggested_where_neither_sessions_nor_documents_know_a_word() {
    let (_dir, store) = scratch();
    talk(&store, &SeqIds::default(), &["the newest parser is slow"]);
    let finder = Arc::new(Finder::new(store, None));
    finder
        .add(Arc::new(List(DocumentKind::Memory, Mutex::new(vec![document("m", "tests run with nextest")]))));
    let suggested = async |text: &str| {
        let page = finder.search(ask(text), Lookup::most(u64::MAX), None).await.unwrap();
        let (found, trimmed) = (page.documents.len() + page.hits.len(), |s: String| s.trim().to_owned());
        (found, page.suggestion.map(trimmed), page.instead.map(trimmed))
    };
    assert_eq!(
        suggested("nextest").await,
        (1, None, None),
        "a word of memory is no error, though sessions have a near one"
    );
    // Nothing has the word: the hits are those of the nearest one, and it is named.
    assert_eq!(suggested("nextets").await, (1, None, Some("nextest".into())));
    assert_eq!(suggested("parsr").await, (1, None, Some("parser".into())));
    assert_eq!(suggested("arser").await, (1, None, Some("parser".into())), "its first letter is missing");
    assert_eq!(
        suggested("parsr slow").await,
        (1, Some("parser slow".into()), None),
        "the other word is found"
    );
    assert_eq!(suggested("qqqqq").await, (0, None, None));
    let page = async |order, offset| {
        let query = SearchQuery { order, offset, ..ask("parsr") };
        finder.search(query, Lookup::most(u64::MAX), None).await.unwrap()
    };
    let newest = page(SearchOrder::Newest, 0).await;
    assert_eq!((newest.hits.len(), newest.instead.as_deref().map(str::trim)), (1, Some("parser")));
    let behind = page(SearchOrder::Best, 1).await;
    assert_eq!((behind.hits.len(), behind.instead.as_deref().map(str::trim)), (0, Some("parser")));
    // A program gets no hits of words that it did not ask for.
    let asked = newest.as_asked();
    assert_eq!((asked.hits.len(), asked.instead, asked.suggestion.as_deref()), (0, None, Some("parser ")));
    let found = finder.search(ask("parser"), Lookup::most(u64::MAX), None).await.unwrap();
    assert_eq!(found.clone().as_asked(), found);
    let ordered = finder.order("nextets", vec!["tests run with nextest".into()]);
    assert_eq!((ordered.best, ordered.suggestion.as_deref()), (vec![], Some("nextest")));
}
