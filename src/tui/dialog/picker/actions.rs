//! Actions of every picker, and its default keys.

use crate::keymap::action::ActionSpec;
use crate::keymap::scope::DefaultKey;

/// Actions of every picker.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("picker.choose", "choose", "Choose the selected row"),
    ActionSpec::key_only("picker.down", "down", "Next row"),
    ActionSpec::key_only("picker.up", "up", "Previous row"),
    ActionSpec::key_only("picker.page_down", "page down", "One page down"),
    ActionSpec::key_only("picker.page_up", "page up", "One page up"),
    ActionSpec::key_only("picker.first", "first", "First row"),
    ActionSpec::key_only("picker.last", "last", "Last row"),
    ActionSpec::key_only("picker.complete", "complete", "Copy the selected row's text into the filter"),
    ActionSpec::key_only("picker.send", "done", "Submit the text"),
];

/// Default keys of the section `picker`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("enter", "picker.choose"),
    ("down", "picker.down"),
    ("up", "picker.up"),
    ("ctrl-n", "picker.down"),
    ("ctrl-p", "picker.up"),
    ("pagedown", "picker.page_down"),
    ("pageup", "picker.page_up"),
    ("ctrl-home", "picker.first"),
    ("ctrl-end", "picker.last"),
    ("tab", "picker.complete"),
];
