use proptest::prelude::*;

use super::*;
use crate::text::width;
use crate::theme::Role;

const COLUMNS: &[Column] = &[
    Column::text("model"),
    Column::number("window").rank(2),
    Column::number("price").rank(1),
    Column::text("from").rank(3),
];

fn rows() -> Vec<Vec<Cell>> {
    let row = |name: &str, window: u64, price: &str, from: &str| {
        vec![Cell::new(name, Role::Text), Cell::count(window), Cell::number(price, ""), Cell::dim(from)]
    };
    vec![row("acme/large-1", 200_000, "$3.00", "ACME_KEY"), row("local/tiny", 8_192, "$12.50", "server")]
}

fn drawn(room: usize) -> Vec<String> {
    let rows = rows();
    let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(COLUMNS, room);
    fit.head().into_iter().chain(rows.iter().map(|r| fit.row(r))).map(|l| l.text().to_owned()).collect()
}

#[test]
fn a_name_that_is_to_be_typed_is_cut_last() {
    const NAMED: &[Column] = &[Column::text("skill").keeps(28), Column::text("for").grows()];
    const CUT: &[Column] = &[Column::text("skill"), Column::text("for").grows()];
    let row = [Cell::new("security-review-of-a-change", Role::Text), Cell::dim("x".repeat(90))];
    let drawn = |columns| Widths::of([&row[..]]).fit(columns, 60).row(&row).text().to_owned();
    assert!(drawn(NAMED).starts_with("security-review-of-a-change  xxx"), "{}", drawn(NAMED));
    assert!(!drawn(CUT).contains("security-review-of-a-change"), "{}", drawn(CUT));
    let long = [Cell::new("n".repeat(64), Role::Text), Cell::dim("x".repeat(90))];
    let fit = Widths::of([&long[..]]).fit(NAMED, 60);
    assert!(fit.row(&long).text().contains("xxx"), "the other column keeps room");
}

#[test]
fn figures_end_in_one_column_and_units_stand_below_each_other() {
    assert_eq!(
        drawn(48),
        [
            "model                   window   price  from    ",
            "acme/large-1              200k   $3.00  ACME_KEY",
            "local/tiny                8.2k  $12.50  server  ",
        ]
    );
}

#[test]
fn what_does_not_fit_goes_by_rank_in_all_rows() {
    assert_eq!(
        drawn(30),
        [
            "model           window   price",
            "acme/large-1      200k   $3.00",
            "local/tiny        8.2k  $12.50",
        ]
    );
    assert_eq!(drawn(21), ["model           price", "acme/large-1    $3.00", "local/tiny     $12.50"]);
    assert_eq!(drawn(9), ["model    ", "acme/lar…", "local/ti…"]);
}

#[test]
fn a_long_text_beside_the_first_one_is_cut_before_it() {
    const TWO: &[Column] = &[Column::text("").grows(), Column::right(""), Column::key("")];
    let rows = [vec![
        Cell::new("what takes up the context", Role::Text),
        Cell::dim("a state of many words that goes on"),
        Cell::dim("Ctrl-X s"),
    ]];
    let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(TWO, 50);
    assert_eq!(fit.row(&rows[0]).text(), "what takes up the context  a state of m…  Ctrl-X s");
}

#[test]
fn a_text_at_the_right_makes_way_for_one_that_would_be_cut() {
    const TWO: &[Column] = &[Column::text("").grows(), Column::right(""), Column::key("")];
    let row = |text: &str, key: &str| vec![Cell::new(text, Role::Text), Cell::dim("now"), Cell::dim(key)];
    let rows = [row("a text that is rather long", "a"), row("short", "Ctrl-X Ctrl-X")];
    let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(TWO, 36);
    assert_eq!(fit.row(&rows[0]).text(), "a text that is rather long    now  a");
    assert_eq!(fit.row(&rows[1]).text(), "short             now  Ctrl-X Ctrl-X");
}

#[test]
fn what_a_row_leaves_empty_belongs_to_its_text() {
    const TWO: &[Column] = &[Column::text("").grows(), Column::right(""), Column::key("")];
    let row = |text: &str, state: &str, key: &str| {
        vec![Cell::new(text, Role::Text), Cell::dim(state), Cell::dim(key)]
    };
    let rows = [
        row("what ran, what allowed it and how it ended", "", "a"),
        row("short", "a state of many words that goes on", "b"),
        row("what ran, what allowed it and how it ended", "now", "Ctrl-X s"),
    ];
    let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(TWO, 52);
    let drawn: Vec<String> = rows.iter().map(|r| fit.row(r).text().to_owned()).collect();
    assert_eq!(
        drawn,
        [
            "what ran, what allowed it and how it ended         a",
            "short   a state of many words that goes on         b",
            "what ran, what allowed it and how it…  now  Ctrl-X s",
        ]
    );
}

#[test]
fn a_column_without_content_takes_no_room() {
    let rows = [vec![Cell::new("a", Role::Text), Cell::dim(""), Cell::dim(""), Cell::dim("x")]];
    let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(COLUMNS, 20);
    assert_eq!(fit.row(&rows[0]).text(), "a               x   ");
}

#[test]
fn a_reason_stands_at_the_right_and_what_is_foreign_is_drawn_clean() {
    let fit = Widths::of(rows().iter().map(Vec::as_slice)).fit(COLUMNS, 40);
    let line = fit.row_with_reason(&Cell::dim("acme/large-1"), "needs ACME_KEY\u{1b}");
    assert_eq!(line.text(), "acme/large-1          needs ACME_KEY\\x1b");
}

#[test]
fn numbers_have_at_most_three_digits() {
    let shown = |n| {
        let cell = Cell::count(n);
        format!("{}{}", cell.text, cell.unit)
    };
    let numbers = [7, 999, 1000, 9_949, 9_950, 39_400, 999_499, 999_500, 12_345_678];
    assert_eq!(numbers.map(shown), ["7", "999", "1.0k", "9.9k", "10k", "39k", "999k", "1.0M", "12M"]);
}

proptest! {
    #[test]
    fn every_row_is_exactly_as_wide_as_the_table(
        names in prop::collection::vec("[a-z日é ]{0,30}", 1..5), room in 0..90usize, n in 0u64..9_999_999
    ) {
        let rows: Vec<Vec<Cell>> = names
            .iter()
            .map(|s| vec![Cell::new(s, Role::Text), Cell::count(n), Cell::dim(s), Cell::dim("x")])
            .collect();
        let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(COLUMNS, room);
        for row in &rows {
            let w = width(fit.row(row).text());
            prop_assert!(w == room || room < 24, "{} columns of {}: {:?}", w, room, fit.row(row).text());
        }
    }
}

#[test]
fn a_gauge_is_drawn_for_its_width_and_alike_in_each_row() {
    const SHARES: &[Column] = &[Column::text("part").grows(), Column::text(""), Column::number("share")];
    let row = |name: &str, used: u64| {
        vec![Cell::new(name, Role::Text), Cell::gauge(used, 100, 20), Cell::number(format!("{used}.0"), " %")]
    };
    let rows = [row("a long name of a part", 1), row("the rest", 100)];
    let fit = Widths::of(rows.iter().map(Vec::as_slice)).fit(SHARES, 50);
    let drawn: Vec<String> = rows.iter().map(|r| fit.row(r).text().to_owned()).collect();
    let sign = |filled: u64| crate::widget::sign::gauge(filled, 1, 1, false);
    let cells = |at: usize, filled: u64| drawn[at].matches(sign(filled).as_str()).count();
    assert!(!drawn.concat().contains('…') && drawn[0].contains("a long name of a part"), "{drawn:?}");
    assert_eq!(cells(0, 1), 1, "{drawn:?}");
    assert_eq!((cells(1, 1), cells(1, 0)), (cells(0, 0) + 1, 0), "{drawn:?}");
}

#[test]
fn a_reason_leaves_half_of_the_row_to_the_name() {
    let fit = Widths::default().fit(COLUMNS, 60);
    let line =
        fit.row_with_reason(&Cell::new("Set the effort of this session", Role::Text), &"why ".repeat(30));
    assert!(line.text().starts_with("Set the effort of this session  "), "{}", line.text());
    assert!(line.text().contains("why why"), "{}", line.text());
}
