//! Tools that ask servers of the settings: what they cost counts for the session, and a budget holds before they are
//! called.

use serde_json::json;
use tiller_protocol::command::CostBy;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{Attachment, Cost, Message, Profile, SendMode};
use tiller_store::{Options, Store};
use tiller_testkit::{Reply, ScriptServer};
use tiller_tool::media::{Endpoint, MediaSettings, Prices, tools};

use crate::rig::*;

/// A server that answers as a model that sees images, and a folder whose agents ask it at this price.
fn place(prices: Prices) -> (ScriptServer, Place) {
    let server = ScriptServer::with(|_, _| {
        let body = json!({
            "choices": [{"message": {"content": "A cat."}}],
            "usage": {"prompt_tokens": 1_000, "completion_tokens": 100},
        });
        Reply::status(200).header("content-type", "application/json").bytes(body.to_string())
    });
    let place = place_for(&server.url(), prices);
    (server, place)
}

/// A folder whose agents ask the server of images at this address.
fn place_for(url: &str, prices: Prices) -> Place {
    let endpoint = Endpoint { url: url.into(), model: "eye".into(), prices, ..Endpoint::default() };
    let mut place = Place::new();
    for (tool, offered) in tools(MediaSettings { vision: Some(endpoint), ..MediaSettings::default() }) {
        if offered {
            place.tools.push(tool);
        }
    }
    place
}

/// One pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

fn attached() -> Message {
    let image = Attachment::Image {
        label: "[image 1]".into(),
        media_type: "image/png".into(),
        data: PNG.into(),
        width: 1,
        height: 1,
    };
    Message { text: "what is it?".into(), attachments: vec![image], ..Message::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_pays_counts_for_the_session_and_stops_at_its_budget() {
    let (server, place) = place(Prices { each: Some(0.6), ..Prices::default() });
    let ask = |id: &str| calls(&[(id, "vision_analyze", json!({"attachment": 1, "question": "?"}))]);
    let fake = Fake::new([ask("c1"), ask("c2"), says("Done.")]);
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.profile = Some(Profile::Full);
            crate::budgets::priced_at(p, 0.0, 0.0);
            p.config.budget.session_hard = Some(1.0);
        })
        .await;
    rig.submit_as(attached(), SendMode::Steer);
    let (_, first) = rig.tool_finished().await;
    assert!(first.contains("A cat."), "{first}");
    let (_, second) = rig.tool_finished().await;
    assert!(second.starts_with("nothing was sent: ") && second.contains("$1.00"), "{second}");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(server.count(), 1, "the second request was not made");
    assert!(server.requests()[0].text().contains(PNG), "the image that the user attached is sent");
    let session = rig.session();
    rig.quit().await;
    let store = Store::open(&place.db(), Options::default()).unwrap();
    assert_eq!(store.costs().spent_in(session).unwrap().cost, Cost::from_usd(0.6));
    let rows = store.costs().by(Some(session), CostBy::Model).unwrap();
    let row = rows.iter().find(|r| r.key.contains("vision/eye")).unwrap();
    assert_eq!((row.usage.input, row.usage.output), (1_000, 100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_price_is_not_asked_under_a_budget() {
    // Only the address says whether a server without a price is free. Nothing is sent to the other one.
    for local in [false, true] {
        let (server, mut place) = place(Prices::default());
        if !local {
            place = place_for("http://vision.example/v1", Prices::default());
        }
        let fake = Fake::new([
            calls(&[("c1", "vision_analyze", json!({"attachment": 1, "question": "?"}))]),
            says("Done."),
        ]);
        let mut rig = place
            .start_with(&fake, |p| {
                p.session.profile = Some(Profile::Full);
                crate::budgets::priced_at(p, 0.0, 0.0);
                p.config.budget.day_hard = Some(1.0);
            })
            .await;
        rig.submit_as(attached(), SendMode::Steer);
        let (_, said) = rig.tool_finished().await;
        match local {
            true => assert!(said.contains("A cat."), "{said}"),
            false => {
                let names = ["its price is not known", "under [media.vision]"];
                assert!(names.iter().all(|name| said.contains(name)), "{said}");
            }
        }
        assert_eq!(rig.finished().await.0, TurnStatus::Done);
        assert_eq!(server.count(), usize::from(local));
        rig.quit().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_is_not_there_is_named() {
    let (server, place) = place(Prices::default());
    let fake = Fake::new([
        calls(&[("c1", "vision_analyze", json!({"attachment": 2, "question": "?"}))]),
        says("Done."),
    ]);
    let mut rig = place.start_with(&fake, |p| p.session.profile = Some(Profile::Full)).await;
    rig.submit_as(attached(), SendMode::Steer);
    assert_eq!(rig.tool_finished().await.1, "there is only image 1");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(server.count(), 0);
    rig.quit().await;
}
