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

/// The budget is 20 ms in a release build; this one is not optimised, and shares its machine.
#[test]
fn ten_thousand_rows_are_filtered_quickly_and_rightly() {
    let model = Model::default();
    let mut p = Picker::new(Many);
    p.opened(&model);
    let start = std::time::Instant::now();
    for c in "number 9999".chars() {
        p.input.insert(c.encode_utf8(&mut [0; 4]));
        p.typed(&model);
    }
    assert_eq!(p.chosen().map(|i| i.id.as_str()), Some("9999"));
    assert!(start.elapsed().as_millis() < 11 * 500, "{:?}", start.elapsed());
}
