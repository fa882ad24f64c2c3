//! The parts of a page that are not in its text.

/// Counts of what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Links in navigation.
    pub navigation: usize,
    pub consent: usize,
    pub newsletter: usize,
    pub dialogs: usize,
    /// Words beside the part that is shown.
    pub around: usize,
    /// Images without a description.
    pub images: usize,
    pub frames: usize,
    pub media: usize,
    /// Fields of forms, and the forms.
    pub fields: usize,
    pub forms: usize,
    /// Words of parts that the page hides.
    pub hidden: usize,
    /// Cells of tables in columns that are not shown.
    pub cells: usize,
    /// The text was cut at its greatest size.
    pub cut: bool,
}

impl LeftOut {
    /// The counts in words; none: nothing was left out.
    pub(super) fn sentences(&self) -> Vec<String> {
        let count = |n: usize, one: &str, many: &str| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {many}")),
        };
        let forms = match (count(self.forms, "form", "forms"), count(self.fields, "field", "fields")) {
            (Some(forms), Some(fields)) => Some(format!("{forms} with {fields}")),
            (forms, fields) => forms.or(fields),
        };
        let parts = [
            count(self.navigation, "link of the navigation", "links of the navigation"),
            count(self.around, "word beside the main part", "words beside the main part"),
            count(self.consent, "cookie notice", "cookie notices"),
            count(self.newsletter, "newsletter box", "newsletter boxes"),
            count(self.dialogs, "dialog", "dialogs"),
            count(self.images, "image without a description", "images without a description"),
            count(self.frames, "frame (its address is shown)", "frames (their addresses are shown)"),
            count(self.media, "video or other medium", "videos or other media"),
            forms,
            count(self.hidden, "hidden word", "hidden words"),
            count(self.cells, "cell of a wide table", "cells of wide tables"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let mut said = Vec::new();
        if !parts.is_empty() {
            said.push(format!("left out: {}; raw=true gives the HTML", parts.join(", ")));
        }
        if self.cut {
            said.push("its text is longer than 4 MB as Markdown: the rest of it was left out".into());
        }
        said
    }
}
