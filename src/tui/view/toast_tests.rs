//! Toasts have places of their own, at every size.

use ratatui::layout::Rect;
use tiller_protocol::event::TurnEvent;
use tiller_protocol::{EventBody, Notice, NoticeKind};

use crate::panel::View;
use crate::scene;
use crate::testing::{Random, Robot};
use crate::view::layout::SizeClass;

/// Sizes with each border of a class, and some between.
fn sizes() -> Vec<(u16, u16)> {
    let heights = [8, 12, 16, 24, 30, 60];
    let widths = [40, 60, 80, 112, 160, 220];
    widths.into_iter().flat_map(|w| heights.map(|h| (w, h))).collect()
}

/// Notices of many kinds and lengths.
fn notices(random: &mut Random) -> Vec<Notice> {
    let texts = [
        "Copied 12 characters",
        "saved",
        "The server did not answer within the time that the settings allow for it, and will be asked again",
        "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
        "first line\nsecond line\nthird line\nfourth\nfifth\nsixth\nseventh",
        "e\u{301}e\u{301} \u{1f469}\u{200d}\u{1f4bb} ok",
        "Awordthatisaslongasalinethatisaslongasalinethatisaslongasalinethatisaslongasalinethatisaslongasaline",
    ];
    let mut kinds = [NoticeKind::Info, NoticeKind::Budget, NoticeKind::Network].into_iter().cycle();
    let from = random.below(3);
    let many = 1 + random.below(3);
    (0..many)
        .map(|n| {
            let text = texts[random.below(texts.len() as u64) as usize];
            let kind = kinds.nth(from as usize).unwrap();
            let mut notice = Notice::new(kind, format!("{}{n} {text}", ["A", "B", "C"][n as usize]));
            if random.below(2) == 0 {
                notice = notice.hint("Try again, or look at the address in the settings of the provider");
            }
            notice
        })
        .collect()
}

/// A turn that fills the screen, and its last words.
fn talked(r: &mut Robot, running: bool) {
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    let text = format!("{}These are the last words.", "Words of a reply.\n\n".repeat(40));
    r.event(EventBody::Turn(TurnEvent::TextDelta { text }));
    if !running {
        r.turn_done();
    }
}

/// The last row of the conversation in which something stands.
fn last_words(r: &Robot) -> String {
    let area = r.app.screen.areas.as_ref().and_then(|a| a.part(View::Conversation)).unwrap().inner;
    let row = |y: u16| -> String {
        (area.left()..area.right()).map(|x| r.buffer().cell((x, y)).unwrap().symbol()).collect()
    };
    (area.top()..area.bottom()).rev().map(row).find(|row| !row.trim().is_empty()).expect("words")
}

/// Cells that the toasts fill now.
fn cells(r: &Robot) -> [Rect; 2] {
    r.app.frame.last.as_ref().expect("a frame").parts.cover.toasts
}

#[test]
fn toasts_lie_over_no_words_at_any_size() {
    let mut random = Random(34);
    for (n, (width, height)) in sizes().into_iter().enumerate() {
        for running in [false, true] {
            let mut r = Robot::new(width, height);
            if n % 2 == 0 {
                scene::play(&mut r);
            }
            talked(&mut r, running);
            r.run("type a draft; wait 1");
            let before = (last_words(&r), r.screen());
            let notices = notices(&mut random);
            for notice in &notices {
                r.app.notice(notice.clone());
            }
            r.run("wait 1");
            let screen = r.screen();
            let what = format!("{width}x{height}\n{}\n{screen}", before.1);
            assert!(screen.contains("a draft"), "{what}");
            assert_eq!(last_words(&r), before.0, "{what}");
            let newest = notices.last().unwrap().message.chars().take(2).collect::<String>();
            assert!(screen.contains(&newest), "{newest}: {what}");
            let areas = r.app.screen.areas.clone().unwrap();
            let others = areas.parts().map(|p| p.inner).chain(areas.parts().map(|p| p.title));
            let others = others.chain([areas.notices_band, areas.composer_band, areas.folded, areas.footer]);
            for other in others.chain([areas.rule, areas.start]).filter(|o| o.area() > 0) {
                assert!(cells(&r).iter().all(|c| c.area() == 0 || !c.intersects(other)), "{other:?} {what}");
            }
            if areas.class > SizeClass::Xs {
                assert!(screen.lines().next().unwrap().contains("ASK"), "{what}");
            }
            r.run("wait 9000");
            assert_eq!(last_words(&r), before.0, "{what}");
        }
    }
}

#[test]
fn toasts_lie_over_no_dialog_at_any_size() {
    let mut random = Random(43);
    for (name, make) in crate::shipped::registry().samples() {
        for (width, height) in [(40, 8), (59, 15), (60, 16), (80, 24), (118, 32), (220, 60)] {
            for second in [false, true] {
                let mut r = Robot::new(width, height);
                if random.below(2) == 0 {
                    talked(&mut r, false);
                }
                r.push(make());
                if second {
                    r.run("f1");
                }
                let notices = notices(&mut random);
                for notice in &notices {
                    r.app.notice(notice.clone());
                }
                r.app.redraw();
                r.run("wait 0");
                let screen = r.screen();
                let newest = notices.last().unwrap().message.chars().take(2).collect::<String>();
                assert!(screen.contains(&newest), "{name} {width}x{height} {newest}\n{screen}");
                for layer in &r.app.frame.last.as_ref().expect("a frame").parts.layers {
                    let over = cells(&r).iter().any(|c| c.area() > 0 && c.intersects(layer.outer));
                    let below = r.app.layers.last().is_some_and(|top| top.id != layer.id);
                    assert!(!over || below, "{name} {width}x{height}: {:?} {layer:?}\n{screen}", cells(&r));
                }
            }
        }
    }
}

/// One that is short stands in the header: nothing of the conversation moves for it.
#[test]
fn a_short_toast_moves_nothing() {
    for (width, height) in [(80, 24), (118, 32), (220, 60)] {
        let mut r = Robot::new(width, height);
        talked(&mut r, false);
        let rows = |r: &Robot| r.screen().lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        let before = rows(&r);
        r.app.say("Copied 12 characters");
        r.run("wait 0");
        assert!(r.screen().lines().next().unwrap().contains("Copied 12 characters"), "{}", r.screen());
        assert_eq!(rows(&r), before);
    }
}
