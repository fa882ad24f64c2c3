//! Scenes of reviews, branches and sessions.

use tiller_protocol::compare::{Pair, Side};

use super::answers::entry;
use super::scene::Scene;
use super::stage::Stage;
use super::story;
use crate::dialog::session::compare::Compare;
use crate::dialog::session::restore::Restore;

pub(super) const REVIEW: Scene = Scene::new("review", "Review of a turn's changes", review);
pub(super) const TREE: Scene = Scene::new("tree", "The tree of a session", tree);
pub(super) const SEARCH: Scene = Scene::new("search", "Search in sessions", search);
pub(super) const COMPARE: Scene = Scene::new("compare", "Two branches side by side", compare);
pub(super) const LIST: Scene = Scene::new("sessions", "List of sessions", list);
pub(super) const BRANCHES: Scene = Scene::new("branches", "List of branches", branches);
pub(super) const RESTORE: Scene = Scene::new("restore", "Restoring files and conversation", restore);

fn review(s: &mut Stage) {
    story::finished(s);
    s.act("review.open");
}

fn tree(s: &mut Stage) {
    story::finished(s);
    s.act("tree.open");
}

fn search(s: &mut Stage) {
    story::finished(s);
    s.act("search.open");
    s.write("retry");
    s.wait(500);
}

fn compare(s: &mut Stage) {
    story::finished(s);
    let branch = |name: &str| Side::Branch(name.into());
    s.push(Box::new(Compare::of(Pair { left: branch("branch-1f"), right: branch("main") })));
}

fn list(s: &mut Stage) {
    story::finished(s);
    s.act("sessions.open");
}

fn branches(s: &mut Stage) {
    story::finished(s);
    s.act("branches.open");
}

fn restore(s: &mut Stage) {
    story::finished(s);
    s.push(Box::new(Restore::branch("branch-1f".into(), "with a library".into(), entry(10))));
}
