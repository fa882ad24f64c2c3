use super::*;
use proptest::prelude::*;

fn wish(width: u16, height: u16) -> LayoutRequest {
    let section = |view, rows| Section { view, rows };
    LayoutRequest {
        screen: Rect::new(0, 0, width, height),
        main: View::Conversation,
        focus: View::Composer,
        zoom: Zoom::Normal,
        rail: true,
        half: false,
        sections: vec![
            section(View::Todo, 5),
            section(View::Agents, 5),
            section(View::Watch, 0),
            section(View::Sessions, 30),
        ],
        composer: 1,
        notices: 1,
        docked: false,
    }
}

#[test]
fn classes_follow_the_table() {
    for (w, h, class) in [
        (220, 60, SizeClass::Xl),
        (160, 50, SizeClass::Xl),
        (118, 25, SizeClass::L),
        (112, 24, SizeClass::L),
        (111, 24, SizeClass::M),
        (80, 24, SizeClass::M),
        (79, 24, SizeClass::S),
        (60, 20, SizeClass::S),
        (59, 20, SizeClass::Xs),
        (80, 15, SizeClass::Xs),
        (40, 12, SizeClass::Xs),
        (29, 24, SizeClass::Tiny),
        (80, 7, SizeClass::Tiny),
    ] {
        assert_eq!(SizeClass::of(w, h), class, "{w}x{h}");
    }
}

#[test]
fn empty_sections_fold_to_their_title() {
    let a = layout(&wish(118, 25));
    let watch = a.rail.iter().find(|p| p.view == View::Watch).unwrap();
    assert_eq!((watch.title.height, watch.inner.height), (1, 0));
    assert_eq!(
        a.rail.iter().map(|p| p.view).collect::<Vec<_>>(),
        [View::Todo, View::Agents, View::Watch, View::Sessions]
    );
}

#[test]
fn what_is_given_the_whole_screen_is_what_has_the_focus() {
    for (width, height) in [(118, 25), (160, 50)] {
        for focus in [View::Conversation, View::Todo, View::Agents, View::Sessions] {
            let a = layout(&LayoutRequest { focus, zoom: Zoom::Full, ..wish(width, height) });
            assert_eq!((a.main.view, a.main.inner.width), (focus, width - 2), "{width}");
            assert!(a.rail.is_empty() && a.tree.is_none());
        }
        let a = layout(&LayoutRequest { zoom: Zoom::Full, ..wish(width, height) });
        assert_eq!(a.main.view, View::Conversation, "the composer is no view of its own");
    }
}

#[test]
fn xl_has_the_tree_on_the_left() {
    let a = layout(&wish(160, 50));
    assert!(a.tree.is_some());
    assert!(a.rail.iter().all(|p| p.view != View::Sessions));
}

#[test]
fn at_m_a_focused_view_has_the_full_height() {
    let mut w = wish(80, 24);
    w.main = View::Todo;
    w.focus = View::Todo;
    let a = layout(&w);
    assert_eq!(a.main.inner.height, 21);
    assert_eq!(a.composer.inner.height, 0);
}

proptest! {
    #[test]
    fn everything_is_on_the_screen_and_nothing_overlaps(
        width in 1u16..400, height in 1u16..200, composer in 0u16..60, notices in 0u16..12,
        docked: bool, rail: bool, zoom in 0..3usize, focus in 0..8usize, main in 1..8usize
    ) {
        let mut w = wish(width, height);
        w.composer = composer;
        w.notices = notices;
        w.docked = docked;
        w.rail = rail;
        w.zoom = [Zoom::Normal, Zoom::Half, Zoom::Full][zoom];
        w.focus = View::ALL[focus];
        w.main = View::ALL[main];
        let a = layout(&w);
        let mut rects: Vec<Rect> = a.parts().map(|p| p.inner).collect();
        rects.extend([a.header, a.footer, a.notices]);
        rects.extend(a.rules.iter().copied());
        for (i, r) in rects.iter().enumerate() {
            prop_assert!(r.area() == 0 || w.screen.intersection(*r) == *r, "{r:?} outside {width}x{height}");
            for o in &rects[i + 1..] {
                prop_assert!(r.intersection(*o).area() == 0, "{r:?} over {o:?} at {width}x{height}");
            }
        }
        for p in a.parts() {
            prop_assert!(p.title.area() == 0 || w.screen.intersection(p.title) == p.title);
        }
        for (x, from, to) in &a.verticals {
            prop_assert!(*x < width && from <= to && *to <= height);
        }
    }
}

#[test]
fn half_and_half_gives_the_rail_half_of_the_screen() {
    let mut w = wish(118, 25);
    let rail = |w: &LayoutRequest| layout(w).rail.first().map_or(0, |p| p.title.width);
    let normal = rail(&w);
    w.half = true;
    assert!(normal < 50 && rail(&w) >= 58, "{normal} {}", rail(&w));
    w.rail = false;
    assert_eq!(rail(&w), 0);
}
