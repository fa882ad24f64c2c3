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

/// Rows in groups, one of which an action takes away.
struct Shrinking(Vec<(&'static str, &'static str)>);

impl Source for Shrinking {
    fn title(&self) -> String {
        "shrinking".into()
    }
    fn items(&mut self, _model: &Model) -> Vec<Item> {
        let former = |id: &str| (id == "renamed").then(|| "a".to_owned());
        let row = |id: &str, group: &str| Item { former: former(id), ..Item::new(id, id).group(group) };
        self.0.iter().map(|(id, group)| row(id, group)).collect()
    }
    fn choose(&mut self, _item: &Item, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }
    fn act(&mut self, action: Action, item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        let id = &item?.id;
        match action.0 {
            "test.remove" => self.0.retain(|(own, _)| own != id),
            "test.last" => {
                let at = self.0.iter().position(|(own, _)| own == id)?;
                let row = self.0.remove(at);
                self.0.push((row.0, "other"));
            }
            "test.rename" => self.0.iter_mut().filter(|(own, _)| own == id).for_each(|row| row.0 = "renamed"),
            _ => return None,
        }
        Some(Outcome::reload(Vec::new()))
    }
}

#[test]
fn the_cursor_stays_at_its_row_or_at_the_nearest_one_after_an_action() {
    let model = Model::default();
    let rows = vec![("a", "one"), ("b", "one"), ("c", "one"), ("d", "two"), ("e", "two")];
    let mut p = Picker::new(Shrinking(rows));
    p.handle(PanelEvent::Opened, &model);
    let mut after = |action: &'static str| {
        p.act(Action(action), &model);
        p.chosen().map(|i| i.id.clone()).unwrap_or_default()
    };
    assert_eq!(after("picker.down"), "b");
    assert_eq!(after("test.remove"), "c", "the next one");
    assert_eq!(after("test.remove"), "a", "the last of its group: the one before");
    assert_eq!(after("test.last"), "a", "the same entry at another place");
    assert_eq!(after("test.rename"), "renamed");
    assert_eq!(after("picker.first"), "d");
    assert_eq!(after("test.remove"), "e");
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
