//! A server for vectors: good, dead, slow, wrong, and one whose model changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tiller_config::Embeddings;
use tiller_protocol::{DocumentKind, SearchMeaning, SearchPage, SeqIds};
use tiller_store::Store;
use tiller_store::search::Lookup;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use super::documents::{List, document};
use super::{ask, open, scratch, talk};
use crate::documents::Source;
use crate::embedder::Embedder;
use crate::endpoint::Endpoint;
use crate::finder::{Finder, PROBE};

/// Knows that some words mean the same.
fn meaning(text: &str) -> Vec<f32> {
    let about = |words: &[&str]| words.iter().filter(|w| text.contains(**w)).count() as f32;
    vec![about(&["cat", "kitten", "feline"]), about(&["car", "automobile", "vehicle"]), 0.05]
}

fn answer(request: &Request) -> ResponseTemplate {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let texts = body["input"].as_array().unwrap();
    // In reverse: the index says which is which.
    let data = texts
        .iter()
        .enumerate()
        .rev()
        .map(|(n, t)| json!({"index": n, "embedding": meaning(t.as_str().unwrap())}));
    ResponseTemplate::new(200).set_body_json(json!({"data": data.collect::<Vec<_>>()}))
}

fn embedder(url: &str, model: &str, batch: u32) -> Embedder {
    let settings = Embeddings {
        url: Some(url.into()),
        model: Some(model.into()),
        key_env: Some("KEY".into()),
        batch,
        ..Embeddings::default()
    };
    let key = |name: &str| (name == "KEY").then(|| "sesame-open-12345".to_owned());
    Embedder::Endpoint(Endpoint::new(&settings, &key).unwrap().unwrap())
}

/// What the model `m` of this server is known by.
fn first_identity(server: &MockServer) -> String {
    embedder(&base(server), "m", 8).identity()
}

async fn server(respond: impl Respond + 'static) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST")).and(path("/v1/embeddings")).respond_with(respond).mount(&server).await;
    server
}

fn base(server: &MockServer) -> String {
    format!("{}/v1", server.uri())
}

fn pets(store: &Store) -> Vec<tiller_protocol::EntryId> {
    pets_of(store, &SeqIds::default())
}

fn pets_of(store: &Store, ids: &SeqIds) -> Vec<tiller_protocol::EntryId> {
    let mut made = talk(store, ids, &["my kitten sleeps all day"]);
    made.extend(talk(store, ids, &["the automobile needs petrol"]));
    made.extend(talk(store, ids, &["a list of words about lunch"]));
    made
}

async fn search(finder: &Arc<Finder>, text: &str) -> SearchPage {
    finder.search(ask(text), Lookup::most(u64::MAX), None).await.unwrap()
}

#[tokio::test]
async fn meaning_finds_what_has_none_of_the_words() {
    let server = MockServer::start().await;
    Mock::given(path("/v1/embeddings"))
        .and(header("authorization", "Bearer sesame-open-12345"))
        .respond_with(answer)
        .mount(&server)
        .await;
    let (_dir, store) = scratch();
    let made = pets(&store);
    let finder = Arc::new(Finder::new(store.clone(), Some(embedder(&base(&server), "m", 2))));
    let page = search(&finder, "feline").await;
    assert_eq!((page.hits.len(), page.meaning), (0, SearchMeaning::Keywords), "there are no vectors yet");
    finder.index().await;
    let page = search(&finder, "feline").await;
    assert_eq!(page.hits[0].entry, made[0]);
    assert_eq!(page.meaning, SearchMeaning::Used);
    // Words decide: an entry with the word comes before one with the meaning.
    let page = search(&finder, "automobile cat").await;
    assert_eq!(page.hits[0].entry, made[1]);
    let mut elsewhere = ask("feline");
    elsewhere.project = Some("/other".into());
    let page = finder.search(elsewhere, Lookup::most(u64::MAX), None).await.unwrap();
    assert!(page.hits.is_empty(), "filters hold for what is found by its meaning");
    // Without a model nothing pretends.
    let plain = Arc::new(Finder::new(store, None));
    let page = search(&plain, "feline").await;
    assert_eq!((page.hits.len(), page.meaning), (0, SearchMeaning::Keywords));
}

#[tokio::test]
async fn documents_get_vectors_once_and_a_changed_one_gets_its_own() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = server(move |request: &Request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let texts = body["input"].as_array().unwrap().iter().filter(|t| *t != PROBE);
        count.fetch_add(texts.count(), Ordering::SeqCst);
        answer(request)
    })
    .await;
    let (dir, store) = scratch();
    let list = Arc::new(List(DocumentKind::Learning, Mutex::new(vec![document("1", "the kitten sleeps")])));
    let finder = |store: &Store| {
        let finder = Arc::new(Finder::new(store.clone(), Some(embedder(&base(&server), "m", 8))));
        finder.add(Arc::clone(&list) as Arc<dyn Source>);
        finder
    };
    let first = finder(&store);
    first.index().await;
    let keys = async |finder: &Arc<Finder>, text: &str| -> Vec<String> {
        search(finder, text).await.documents.into_iter().map(|d| d.key).collect()
    };
    assert_eq!(keys(&first, "feline").await, ["1"]);
    list.1.lock().unwrap().extend([document("2", "an automobile"), document("1", "the cat sleeps")]);
    assert_eq!(keys(&first, "vehicle").await, Vec::<String>::new(), "without a vector there are words");
    assert_eq!(keys(&first, "automobile").await, ["2"]);
    first.index().await;
    assert_eq!(keys(&first, "vehicle").await, ["2"]);
    // Another process makes none of them again.
    let before = asked.load(Ordering::SeqCst);
    let second = finder(&open(dir.path()));
    second.index().await;
    assert_eq!(asked.load(Ordering::SeqCst), before);
    assert_eq!(keys(&second, "feline").await, ["1", "1"]);
}

#[tokio::test]
async fn a_server_that_dies_in_the_midst_of_indexing_is_gone_on_with_later() {
    // Answers the comparison of models and the first two batches, and fails then.
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let failing = server(move |request: &Request| match count.fetch_add(1, Ordering::SeqCst) {
        0..=2 => answer(request),
        _ => ResponseTemplate::new(500)
            .set_body_json(json!({"error": {"message": "no memory for sesame-open-12345"}})),
    })
    .await;
    let (_dir, store) = scratch();
    let ids = SeqIds::default();
    let texts: Vec<String> = (0..10).map(|n| format!("cat number {n}")).collect();
    talk(&store, &ids, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    let finder = Arc::new(Finder::new(store.clone(), Some(embedder(&base(&failing), "m", 2))));
    finder.index().await;
    let model = embedder(&base(&failing), "m", 2).identity();
    assert_eq!(store.search().vectors(&model, 0).unwrap().len(), 4);
    let page = search(&finder, "number").await;
    assert!(!page.hits.is_empty(), "words are searched all the same");
    let SearchMeaning::Failed { why } = &page.meaning else { panic!("{page:?}") };
    assert!(why.contains("500") && why.contains("no memory for (the key)"), "{why}");
    let before = asked.load(Ordering::SeqCst);
    search(&finder, "number cat").await;
    assert_eq!(asked.load(Ordering::SeqCst), before, "it is left alone for a while");
    // The same model at the same address, in another process: only the rest is asked for.
    failing.reset().await;
    let texts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&texts);
    let counting = move |request: &Request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let texts = body["input"].as_array().unwrap().iter().filter(|t| *t != PROBE);
        seen.lock().unwrap().extend(texts.cloned());
        answer(request)
    };
    Mock::given(path("/v1/embeddings")).respond_with(counting).mount(&failing).await;
    let finder = Arc::new(Finder::new(store.clone(), Some(embedder(&base(&failing), "m", 2))));
    finder.index().await;
    assert_eq!(store.search().vectors(&model, 0).unwrap().len(), 10);
    assert_eq!(texts.lock().unwrap().len(), 6, "what has a vector is not asked for again");
}

#[tokio::test]
async fn a_small_project_is_searched_by_meaning_beside_a_large_one() {
    let server = server(answer).await;
    let (_dir, store) = scratch();
    let ids = SeqIds::default();
    let made = talk(&store, &ids, &["my feline sleeps all day"]);
    let texts: Vec<String> = (0..1_000).map(|n| format!("a cat with number {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    crate::testing::talk(&store, &ids, "/elsewhere", &texts);
    let finder = Arc::new(Finder::new(store, Some(embedder(&base(&server), "m", 512))));
    finder.index().await;
    let mut query = ask("kitten");
    query.project = Some("/work/p".into());
    let page = finder.search(query.clone(), Lookup::most(u64::MAX), None).await.unwrap();
    let found: Vec<_> = page.hits.iter().map(|hit| hit.entry).collect();
    assert_eq!((found, page.meaning), (made.clone(), SearchMeaning::Used));
    (query.project, query.session) = (None, Some(page.hits[0].session));
    let page = finder.search(query, Lookup::most(u64::MAX), None).await.unwrap();
    assert_eq!(page.hits.iter().map(|hit| hit.entry).collect::<Vec<_>>(), made);
}

/// A text that a server refuses costs its own vector only, and is not asked for again.
#[tokio::test]
async fn one_refused_text_stops_neither_the_others_nor_queries() {
    for status in [400u16, 413, 500] {
        let ids = SeqIds::default();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let server = server(move |request: &Request| {
            count.fetch_add(1, Ordering::SeqCst);
            let text = String::from_utf8_lossy(&request.body).into_owned();
            match text.contains("poison") {
                true => ResponseTemplate::new(status),
                false => answer(request),
            }
        })
        .await;
        let (_dir, store) = scratch();
        let mut texts: Vec<String> = (0..20).map(|n| format!("a cat with number {n}")).collect();
        texts[11] = "poison".into();
        talk(&store, &ids, &texts.iter().map(String::as_str).collect::<Vec<_>>());
        let finder = Arc::new(Finder::new(store.clone(), Some(embedder(&base(&server), "m", 8))));
        let notes = vec![document("1", "poison of memory"), document("2", "the kitten sleeps")];
        finder.add(Arc::new(List(DocumentKind::Memory, Mutex::new(notes))));
        finder.index().await;
        let vectors = store.search().vectors(&first_identity(&server), 0).unwrap();
        assert_eq!(vectors.len(), 19, "{status}");
        let page = search(&finder, "feline").await;
        assert_eq!((page.meaning, page.hits.is_empty()), (SearchMeaning::Used, false), "{status}");
        assert_eq!(page.documents.len(), 1, "{status}");
        // The next run goes on after it.
        let before = asked.load(Ordering::SeqCst);
        finder.index().await;
        assert_eq!(asked.load(Ordering::SeqCst), before, "{status}");
        talk(&store, &ids, &["one more cat"]);
        finder.index().await;
        assert_eq!(store.search().vectors(&first_identity(&server), 0).unwrap().len(), 20, "{status}");
    }
}

#[tokio::test]
async fn garbage_silence_and_floods_are_faults_and_words_are_searched() {
    let long = json!({"data": [{"embedding": vec![1.0; 10_000]}]});
    let cases: HashMap<&str, ResponseTemplate> = HashMap::from([
        ("no JSON", ResponseTemplate::new(200).set_body_string("<html>")),
        ("no data", ResponseTemplate::new(200).set_body_json(json!({"data": []}))),
        (
            "too many",
            ResponseTemplate::new(200)
                .set_body_json(json!({"data": [{"embedding": [1]}, {"embedding": [1]}]})),
        ),
        ("words", ResponseTemplate::new(200).set_body_json(json!({"data": [{"embedding": ["a"]}]}))),
        ("no numbers", ResponseTemplate::new(200).set_body_json(json!({"data": [{"embedding": []}]}))),
        ("not finite", ResponseTemplate::new(200).set_body_string("{\"data\": [{\"embedding\": [1e300]}]}")),
        ("too long", ResponseTemplate::new(200).set_body_json(long)),
        (
            "elsewhere",
            ResponseTemplate::new(200).set_body_json(json!({"data": [{"index": 7, "embedding": [1]}]})),
        ),
        ("redirect", ResponseTemplate::new(302).insert_header("location", "http://127.0.0.1:1/")),
        ("refused", ResponseTemplate::new(401).set_body_string("no")),
        ("flood", ResponseTemplate::new(200).set_body_bytes(vec![b' '; 65 << 20])),
        ("silence", ResponseTemplate::new(200).set_delay(std::time::Duration::from_secs(600))),
    ]);
    for (name, response) in cases {
        let server = server(response).await;
        let (_dir, store) = scratch();
        let made = pets(&store);
        let finder = Arc::new(Finder::new(store, Some(embedder(&base(&server), "m", 8))));
        let page = search(&finder, "kitten").await;
        assert_eq!(page.hits[0].entry, made[0], "{name}");
        assert!(matches!(page.meaning, SearchMeaning::Failed { .. }), "{name}: {:?}", page.meaning);
    }
    // Nothing listens.
    let (_dir, store) = scratch();
    pets(&store);
    let finder = Arc::new(Finder::new(store, Some(embedder("http://127.0.0.1:9/v1", "m", 8))));
    finder.index().await;
    let page = search(&finder, "kitten").await;
    assert!(page.hits.len() == 1 && matches!(page.meaning, SearchMeaning::Failed { .. }));
}

#[tokio::test]
async fn another_model_has_its_own_vectors_and_a_lost_index_is_made_again() {
    let server = server(answer).await;
    let (dir, store) = scratch();
    let made = pets(&store);
    let first = embedder(&base(&server), "first", 8);
    let (one, two) = (first.identity(), embedder(&base(&server), "second", 8).identity());
    let finder = Arc::new(Finder::new(store.clone(), Some(first)));
    finder.index().await;
    assert_eq!(store.search().vectors(&one, 0).unwrap().len(), 3);
    // Another process has another model; neither mixes them.
    let other = Arc::new(Finder::new(open(dir.path()), Some(embedder(&base(&server), "second", 8))));
    other.index().await;
    assert_eq!(search(&other, "feline").await.hits[0].entry, made[0]);
    assert_eq!(store.search().vectors(&one, 0).unwrap().len(), 3, "each model has its own");
    assert_eq!(store.search().vectors(&two, 0).unwrap().len(), 3);
    assert_eq!(search(&finder, "kitten").await.hits[0].entry, made[0]);
    // The index is deleted while both work: other rows, and no vectors.
    store.search().forget_index();
    assert_eq!(search(&finder, "kitten").await.hits[0].entry, made[0]);
    finder.index().await;
    assert_eq!(search(&finder, "feline").await.hits[0].entry, made[0]);
}

#[tokio::test]
async fn a_model_that_changes_its_dimensions_under_its_name_is_indexed_again() {
    let (dir, store) = scratch();
    let ids = SeqIds::default();
    let made = pets_of(&store, &ids);
    let long = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let server = {
        let long = Arc::clone(&long);
        server(move |request: &Request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let data = body["input"].as_array().unwrap().iter().map(|t| {
                let mut vector = meaning(t.as_str().unwrap());
                vector.extend(vec![0.0; if long.load(Ordering::SeqCst) { 5 } else { 0 }]);
                json!({"embedding": vector})
            });
            ResponseTemplate::new(200).set_body_json(json!({"data": data.collect::<Vec<_>>()}))
        })
        .await
    };
    let list =
        Arc::new(List(DocumentKind::Memory, Mutex::new(vec![document("m", "a kitten of the office")])));
    let finder = |store: Store| {
        let finder = Arc::new(Finder::new(store, Some(embedder(&base(&server), "m", 8))));
        finder.add(Arc::clone(&list) as Arc<dyn Source>);
        finder
    };
    let first = finder(store.clone());
    first.index().await;
    assert_eq!(search(&first, "feline").await.meaning, SearchMeaning::Used);
    long.store(true, Ordering::SeqCst);
    // The vectors cannot be compared any more: there are words until all are made again, in this process, too.
    assert_eq!(search(&first, "cat").await.meaning, SearchMeaning::Keywords);
    first.index().await;
    let page = search(&first, "feline").await;
    assert_eq!((page.meaning, page.hits[0].entry), (SearchMeaning::Used, made[0]), "also a query of before");
    // Another one, with new entries or without, makes all of them again.
    for new in [false, true] {
        if new {
            talk(&store, &ids, &["one more kitten"]);
        }
        let model = first_identity(&server);
        store.search().forget_vectors(&model).unwrap();
        let old: Vec<(i64, Vec<u8>)> = (1..4).map(|n| (n, vec![1; 3])).collect();
        store.search().without_vector(&model, 1).unwrap();
        assert!(store.search().put_vectors(&model, &old).unwrap());
        let other = finder(open(dir.path()));
        if !new {
            assert_eq!(search(&other, "feline").await.meaning, SearchMeaning::Keywords, "nothing pretends");
        }
        other.index().await;
        other.index().await;
        let page = search(&other, "feline").await;
        assert_eq!((page.meaning, page.hits.iter().any(|h| h.entry == made[0])), (SearchMeaning::Used, true));
        assert_eq!(page.documents.len(), 1, "new: {new}");
    }
}

/// Answers with vectors whose meaning is in their last numbers, behind `before` others.
async fn server_of_many(before: usize) -> MockServer {
    server(move |request: &Request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let data = body["input"].as_array().unwrap().iter().map(|t| {
            let mut vector = vec![0.0; before];
            vector.extend(meaning(t.as_str().unwrap()));
            json!({"embedding": vector})
        });
        ResponseTemplate::new(200).set_body_json(json!({"data": data.collect::<Vec<_>>()}))
    })
    .await
}

#[tokio::test]
async fn all_dimensions_of_a_model_count_and_too_many_name_the_setting() {
    let (_dir, store) = scratch();
    let made = pets(&store);
    let many = server_of_many(3000).await;
    let finder = Arc::new(Finder::new(store, Some(embedder(&base(&many), "m", 8))));
    finder.index().await;
    let page = search(&finder, "feline").await;
    let first = page.hits.first().map(|hit| hit.entry);
    assert_eq!((page.meaning, first), (SearchMeaning::Used, Some(made[0])));

    let (_dir, store) = scratch();
    pets(&store);
    let too_many = server_of_many(crate::embedder::DIMENSIONS).await;
    let finder = Arc::new(Finder::new(store, Some(embedder(&base(&too_many), "m", 8))));
    let page = search(&finder, "kitten").await;
    let SearchMeaning::Failed { why } = page.meaning else { panic!("{:?}", page.meaning) };
    assert!(why.contains("4099 numbers") && why.contains("`dimensions` in [embeddings]"), "{why}");
}

/// Another model under the name and with the length of the one before, as after `pull` of a newer one.
#[tokio::test]
async fn a_model_that_changes_under_its_name_is_noticed_and_indexed_again() {
    let (dir, store) = scratch();
    let made = pets(&store);
    let turned = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let server = {
        let turned = Arc::clone(&turned);
        server(move |request: &Request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let data = body["input"].as_array().unwrap().iter().map(|t| {
                let mut vector = meaning(t.as_str().unwrap());
                vector.rotate_right(usize::from(turned.load(Ordering::SeqCst)));
                json!({"embedding": vector})
            });
            ResponseTemplate::new(200).set_body_json(json!({"data": data.collect::<Vec<_>>()}))
        })
        .await
    };
    let finder = |store: Store| Arc::new(Finder::new(store, Some(embedder(&base(&server), "m", 8))));
    let (first, model) = (finder(store.clone()), first_identity(&server));
    first.index().await;
    assert_eq!(search(&first, "feline").await.hits[0].entry, made[0]);
    let before = store.search().vectors(&model, 0).unwrap();
    turned.store(true, Ordering::SeqCst);
    let second = finder(open(dir.path()));
    second.index().await;
    let after = store.search().vectors(&model, 0).unwrap();
    assert!(after.len() == 3 && after != before, "all are made again");
    assert_eq!(search(&second, "feline").await.hits[0].entry, made[0]);
    // The process of before drops what it holds when it compares again, and removes nothing.
    first.compare_soon();
    first.index().await;
    assert_eq!(search(&first, "feline").await.hits[0].entry, made[0]);
    assert_eq!(store.search().vectors(&model, 0).unwrap(), after);
}

#[tokio::test]
async fn two_processes_that_index_at_once_give_each_entry_one_vector() {
    let server = server(answer).await;
    let (dir, store) = scratch();
    let ids = SeqIds::default();
    let texts: Vec<String> = (0..50).map(|n| format!("cat number {n}")).collect();
    talk(&store, &ids, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    let finders: Vec<Arc<Finder>> = (0..2)
        .map(|_| Arc::new(Finder::new(open(dir.path()), Some(embedder(&base(&server), "m", 4)))))
        .collect();
    tokio::join!(finders[0].index(), finders[1].index());
    // What one could not write, because the other did, comes with its next call.
    finders[0].index().await;
    let vectors = store.search().vectors(&first_identity(&server), 0).unwrap();
    assert_eq!(vectors.len(), 50);
    assert!(vectors.windows(2).all(|pair| pair[0].row < pair[1].row && pair[0].numbers.len() == 3));
    assert_eq!(search(&finders[1], "feline").await.hits.len(), 10);
}

#[tokio::test]
async fn a_later_search_of_the_same_typist_cancels_the_one_before() {
    let server = server(ResponseTemplate::new(200).set_delay(std::time::Duration::from_secs(600))).await;
    let (_dir, store) = scratch();
    pets(&store);
    let finder = Arc::new(Finder::new(store, Some(embedder(&base(&server), "m", 8))));
    let typing = |text: &str, client| finder.search(ask(text), Lookup::most(u64::MAX), Some(client));
    // They wait for the server; the first is cancelled before it reads the index, although it is polled last.
    let (first, other, second) = (typing("kit", 1), typing("kitten", 2), typing("kitte", 1));
    let (second, other, first) = tokio::join!(second, other, first);
    assert!(matches!(first, Err(tiller_store::StoreError::Cancelled)), "{first:?}");
    assert_eq!(other.unwrap().hits.len(), 1, "another client's");
    assert!(second.is_ok());
}

#[test]
fn settings_that_cannot_be_are_said() {
    let of = |url: &str, model: Option<&str>, key: Option<&str>| {
        let settings = Embeddings {
            url: Some(url.into()),
            model: model.map(Into::into),
            key_env: key.map(Into::into),
            ..Embeddings::default()
        };
        Endpoint::new(&settings, &|_| None).map_err(|e| e.0)
    };
    assert!(of("", None, None).unwrap().is_none());
    assert!(of("http://x", None, None).unwrap_err().contains("needs a model"));
    assert!(of("file:///x", Some("m"), None).unwrap_err().contains("http://"));
    assert!(of("http://x", Some("m"), Some("NAME")).unwrap_err().contains("NAME"));
}
