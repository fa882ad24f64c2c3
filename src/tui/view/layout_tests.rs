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
        measure: 100,
        composer: 1,
        folded: 0,
        notices: 1,
        docked: false,
        start: false,
        toasts: ToastRequest::default(),
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
fn a_panel_is_shown_for_what_has_content_or_the_focus() {
    let shown = |w: &LayoutRequest| layout(w).rail.iter().map(|p| p.view).collect::<Vec<_>>();
    let w = wish(118, 25);
    assert_eq!(shown(&w), [View::Todo, View::Agents, View::Sessions]);
    let w = LayoutRequest { focus: View::Watch, ..w };
    assert_eq!(shown(&w), [View::Todo, View::Agents, View::Watch, View::Sessions]);
    let mut one = wish(118, 25);
    one.sections.iter_mut().skip(1).for_each(|s| s.rows = 0);
    assert!(shown(&one).is_empty(), "one section alone is a badge");
    assert_eq!(layout(&one).main.inner.width, 118 - PADDING, "its columns are the conversation's");
    one.focus = View::Todo;
    assert_eq!(shown(&one), [View::Todo]);
}

#[test]
fn panels_have_titles_padding_and_a_blank_row_between_them() {
    for (width, height) in [(118, 32), (118, 25), (160, 45)] {
        let a = layout(&wish(width, height));
        let band = a.bands[0];
        for p in &a.rail {
            assert_eq!((p.title.height, p.title.x, p.title.width), (1, band.x + 1, band.width - 2));
            assert_eq!((p.inner.x, p.inner.y), (p.title.x, p.title.bottom()));
        }
        for pair in a.rail.windows(2) {
            assert_eq!(pair[1].title.y, pair[0].inner.bottom() + 1, "{width}x{height}");
        }
        assert_eq!(band.right(), width);
    }
}

#[test]
fn panels_get_what_the_prose_leaves() {
    let rail = |w: &LayoutRequest| layout(w).bands.iter().map(|b| b.width).collect::<Vec<_>>();
    assert_eq!(rail(&wish(118, 32)), [32]);
    assert_eq!(rail(&wish(160, 45)), [58]);
    assert_eq!(rail(&wish(220, 60)), [59, 59], "the session tree has a band of its own");
    let wide = LayoutRequest { measure: 180, ..wish(220, 60) };
    assert_eq!(rail(&wide), [38], "a wider measure is set");
    for w in [wish(160, 45), wish(220, 60), wide] {
        let main = layout(&w).main.inner.width;
        assert!(main >= w.measure, "{main} of {}", w.measure);
    }
}

#[test]
fn what_is_given_the_whole_screen_is_what_has_the_focus() {
    for (width, height) in [(118, 25), (160, 50)] {
        for focus in [View::Conversation, View::Todo, View::Agents, View::Sessions] {
            let a = layout(&LayoutRequest { focus, zoom: Zoom::Full, ..wish(width, height) });
            assert_eq!(a.main.view, focus, "{width}");
            assert!(a.main.inner.width >= width - 2 * PADDING && a.bands.is_empty(), "{width}");
            assert!(a.rail.is_empty() && a.tree.is_none());
        }
        let a = layout(&LayoutRequest { zoom: Zoom::Full, ..wish(width, height) });
        assert_eq!(a.main.view, View::Conversation, "the composer is no view of its own");
    }
}

#[test]
fn the_tree_is_on_the_left_where_the_prose_leaves_room_for_it() {
    let a = layout(&wish(220, 60));
    assert!(a.tree.is_some_and(|t| t.inner.x < a.main.inner.x));
    assert!(a.rail.iter().all(|p| p.view != View::Sessions));
    assert!(layout(&wish(160, 50)).tree.is_none());
}

#[test]
fn the_composer_is_three_rows_where_there_are_thirty() {
    let a = layout(&wish(118, 30));
    assert_eq!((a.composer_band.height, a.composer.inner.height, a.rule.height), (3, 1, 1));
    let a = layout(&wish(118, 29));
    assert_eq!((a.composer_band.height, a.composer.inner.height, a.rule.height), (1, 1, 1));
    assert_eq!(a.composer_band.bottom(), a.footer.y);
}

#[test]
fn at_m_a_focused_view_has_the_full_height() {
    let mut w = wish(80, 24);
    w.main = View::Todo;
    w.focus = View::Todo;
    let a = layout(&w);
    assert_eq!(a.main.inner.height, 21, "all but header, title and footer");
    assert_eq!(a.composer.inner.height, 0);
}

proptest! {
    #[test]
    fn everything_is_on_the_screen_and_nothing_overlaps(
        width in 1u16..400, height in 1u16..200, composer in 0u16..60, notices in 0u16..12,
        docked: bool, start: bool, rail: bool, zoom in 0..3usize, focus in 0..8usize, main in 1..8usize
    ) {
        let mut w = wish(width, height);
        w.composer = composer;
        w.notices = notices;
        w.docked = docked;
        w.start = start;
        w.rail = rail;
        w.zoom = [Zoom::Normal, Zoom::Half, Zoom::Full][zoom];
        w.focus = View::ALL[focus];
        w.main = View::ALL[main];
        let a = layout(&w);
        let mut rects: Vec<Rect> = a.parts().map(|p| p.inner).collect();
        rects.extend([a.header, a.footer, a.notices]);
        rects.extend([a.rule, a.start]);
        for (i, r) in rects.iter().enumerate() {
            prop_assert!(r.area() == 0 || w.screen.intersection(*r) == *r, "{r:?} outside {width}x{height}");
            for o in &rects[i + 1..] {
                prop_assert!(r.intersection(*o).area() == 0, "{r:?} over {o:?} at {width}x{height}");
            }
        }
        for p in a.parts() {
            prop_assert!(p.title.area() == 0 || w.screen.intersection(p.title) == p.title);
        }
        for p in a.parts().filter(|p| p.inner.area() > 0) {
            let on = a.bands.iter().chain([&a.composer_band]).filter(|b| b.intersects(p.inner));
            prop_assert!(on.clone().all(|b| b.intersection(p.inner) == p.inner), "{p:?} is half on a band");
        }
    }
}

#[test]
fn half_and_half_gives_the_rail_half_of_the_screen() {
    let mut w = wish(118, 25);
    let rail = |w: &LayoutRequest| layout(w).bands.first().map_or(0, |b| b.width);
    let normal = rail(&w);
    w.half = true;
    assert!(normal < 50 && rail(&w) >= 58, "{normal} {}", rail(&w));
    w.rail = false;
    assert_eq!(rail(&w), 0);
}

#[test]
fn the_composer_stands_in_the_middle_until_something_is_said() {
    for (width, height) in [(80, 24), (118, 32), (220, 60)] {
        let mut w = LayoutRequest { start: true, ..wish(width, height) };
        w.sections.iter_mut().for_each(|s| s.rows = 0);
        let a = layout(&w);
        let band = a.composer_band;
        assert!(band.x.abs_diff(width - band.right()) <= 1, "{band:?}");
        assert!(a.main.inner.bottom() <= band.y && band.bottom() < a.start.y, "{a:?}");
        assert!(a.start.height >= 7 && a.main.inner.height >= 5, "{a:?}");
        assert_eq!(a.composer.inner.width, start_columns(w.screen));
    }
}
