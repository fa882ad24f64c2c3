//! The page that shows all pictures side by side. It needs no server.

use tiller_tui::gallery::Scene;

const PAGE: &str = include_str!("page.html");

/// The page for these scenes, looks and sizes; each picture is `SCENE_LOOK_WxH.png` beside it.
pub(crate) fn page(scenes: &[&Scene], looks: &[String], sizes: &[(u16, u16)]) -> String {
    let quoted = |items: Vec<String>| format!("[{}]", items.join(", "));
    let scenes = scenes.iter().map(|s| format!("[{:?}, {:?}]", s.name, s.title)).collect();
    let looks = looks.iter().map(|l| format!("{l:?}")).collect();
    let sizes = sizes.iter().map(|(w, h)| format!("\"{w}x{h}\"")).collect();
    PAGE.replace("/*SCENES*/", &quoted(scenes))
        .replace("/*LOOKS*/", &quoted(looks))
        .replace("/*SIZES*/", &quoted(sizes))
}
