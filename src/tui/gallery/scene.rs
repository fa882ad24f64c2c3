//! A scene of the gallery.

use tiller_config::schema::Ui;

use super::stage::Stage;

/// A screen that can be drawn again and again.
pub struct Scene {
    /// For file names and the command line: lower case, with `_`.
    pub name: &'static str,
    /// Its content, in sentence case.
    pub title: &'static str,
    /// Settings of the screen that differ from the built-in ones.
    pub(super) settings: fn(&mut Ui),
    /// Words on it name the theme, so that it is played anew for each.
    pub(super) names_theme: bool,
    /// Brings a new screen into the state that is shown.
    pub(super) play: fn(&mut Stage),
}

impl Scene {
    /// With the built-in settings.
    pub(super) const fn new(name: &'static str, title: &'static str, play: fn(&mut Stage)) -> Self {
        Self { name, title, settings: |_| {}, names_theme: false, play }
    }

    /// With other settings.
    pub(super) const fn with(self, settings: fn(&mut Ui)) -> Self {
        Self { settings, ..self }
    }

    /// Words on it name the theme.
    pub(super) const fn naming_theme(self) -> Self {
        Self { names_theme: true, ..self }
    }
}
