use super::*;

/// `a; b: a; c: a b` as steps.
fn steps(text: &str) -> Vec<StepView> {
    let step = |part: &str| {
        let (id, needs) = part.split_once(':').unwrap_or((part, ""));
        StepView {
            id: id.trim().into(),
            needs: needs.split_whitespace().map(str::to_owned).collect(),
            ..StepView::default()
        }
    };
    text.split(';').map(step).collect()
}

fn picture(text: &str, airy: bool) -> String {
    let steps = steps(text);
    let needs = needs(&steps);
    let line = |r: &GraphRow| {
        let cells: String = r.cells.iter().map(|c| if *c == NODE { 'o' } else { *c }).collect();
        let name = r.step.map_or("", |s| steps[s].id.as_str());
        format!("{cells:9}{name}").trim_end().to_owned()
    };
    rows(&needs, airy).iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_way_goes_from_each_step_to_those_that_need_it() {
    assert_eq!(
        picture("build; test: build; docs: build; ship: test docs; tell: ship", false),
        "o        build\n\
         ├─o      test\n\
         o │      docs\n\
         o─╯      ship\n\
         o        tell"
    );
    assert_eq!(
        picture("a; b; c; end: a b c", false),
        "o        a\n\
         │ o      b\n\
         │ │ o    c\n\
         o─┴─╯    end"
    );
    // A line goes on past steps that do not need it; a crossed line stays whole.
    assert_eq!(
        picture("a; b: a; c: b; d: a c", false),
        "o        a\n\
         ├─o      b\n\
         │ o      c\n\
         o─╯      d"
    );
    assert_eq!(
        picture("a; b; c: a; d: a b; e: b d", false),
        "o        a\n\
         │ o      b\n\
         ├─│─o    c\n\
         o─┤      d\n\
         o─╯      e"
    );
}

#[test]
fn steps_that_have_nothing_to_do_with_each_other_do_not_stand_below_one_another() {
    assert_eq!(
        picture("a; b; c", false),
        "o        a\n\
         \x20 o      b\n\
         o        c"
    );
    assert_eq!(picture("a; b: a; c: b", true), "o        a\n│\no        b\n│\no        c");
}

#[test]
fn whatever_comes_is_drawn() {
    // A circle, a name that is not there, the same name twice, itself.
    for text in ["a: b; b: a; c: a", "a: x; b: a", "a; a: a; b: a a", "a: a"] {
        let n = steps(text).len();
        let needs = needs(&steps(text));
        let mut drawn: Vec<usize> = rows(&needs, true).iter().filter_map(|r| r.step).collect();
        drawn.sort_unstable();
        assert_eq!(drawn, (0..n).collect::<Vec<_>>(), "{text}");
    }
    assert!(rows(&[], true).is_empty());
    // Fifty side by side into one, and back.
    let wide: String = (0..50).map(|i| format!("s{i}; ")).collect();
    let all: String = (0..50).map(|i| format!("s{i} ")).collect();
    let needs = needs(&steps(&format!("{wide}end: {all}")));
    assert_eq!(rows(&needs, false).len(), 51);
}
