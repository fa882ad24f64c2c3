use super::*;

struct Many;

impl Source for Many {
    fn title(&self) -> String {
        "many".into()
    }
    fn items(&mut self, _model: &Model) -> Vec<Item> {
        (0..10_000)
            .map(|i| Item::new(i.to_string(), format!("action number {i} of the whole list")))
            .collect()
    }
    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }
}

/// The rows that a list without a history finds for this.
fn fresh(text: &str) -> Vec<usize> {
    let mut p = Picker::new(Many).filtered(text);
    p.handle(PanelEvent::Opened, &Model::default());
    p.rows.found
}

#[test]
fn of_ten_thousand_rows_each_letter_looks_only_at_those_that_are_left() {
    let model = Model::default();
    let mut p = Picker::new(Many);
    p.handle(PanelEvent::Opened, &model);
    let (mut looked, mut letters) = (0, String::new());
    for c in "number 9999".chars() {
        letters.push(c);
        looked += p.rows.among(letters.trim()).len();
        p.input.insert(c.encode_utf8(&mut [0; 4]));
        p.typed(&model);
        if letters.len() > 6 {
            assert_eq!(p.rows.found, fresh(&letters), "{letters:?}");
        }
    }
    assert_eq!(p.chosen().map(|i| i.id.as_str()), Some("9999"));
    // Once all of them, and "number" is in each; then a digit leaves a third and fewer.
    assert!(looked < 100_000, "{looked} rows in {} letters", letters.len());
    assert!(p.rows.among("number 99999").len() < 10);
}

#[test]
fn what_may_let_more_rows_in_looks_at_all() {
    let model = Model::default();
    let mut p = Picker::new(Many);
    p.handle(PanelEvent::Opened, &model);
    for text in ["number 1", "number", "!1", "!12", "1$", "1$2", "number 12", "number 12 whole", "Number", ""]
    {
        p.input = Edit::with(text);
        p.typed(&model);
        assert_eq!(p.rows.found, fresh(text), "{text:?}");
    }
}

#[test]
fn without_rows_nothing_is_offered_for_one() {
    let model = Model::default();
    let mut p = Picker::new(Many);
    p.handle(PanelEvent::Opened, &model);
    assert!(p.hints(&model).iter().any(|h| h.action.0 == "picker.choose"));
    p.input = Edit::with("no such row");
    p.typed(&model);
    assert_eq!(p.hints(&model), []);
}

/// The budget is 20 ms a letter in a release build.
#[test]
#[ignore = "prints figures"]
fn figures_of_a_letter_in_ten_thousand_rows() {
    let model = Model::default();
    let mut p = Picker::new(Many);
    p.handle(PanelEvent::Opened, &model);
    for c in "number 9999".chars() {
        let start = std::time::Instant::now();
        p.input.insert(c.encode_utf8(&mut [0; 4]));
        p.typed(&model);
        println!("{:?}: {:?}", p.input.text(), start.elapsed());
    }
}
