//! The list of branches to compare the open branch with.

use tiller_protocol::command::Query;
use tiller_protocol::compare::{Pair, Side};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{BranchView, CommandBody, Event, EventBody};

use super::Compare;
use crate::app::effect::{Effect, Token};
use crate::dialog::picker::{EngineQuery, Item, ListSpec, Picker, Source};
use crate::model::Model;
use crate::panel::times::clock;

#[derive(Default)]
struct ComparableBranches {
    list: Vec<BranchView>,
    loaded: bool,
}

/// Makes the list. The chosen branch is compared with the open one.
pub(crate) fn open() -> Picker {
    Picker::new(ComparableBranches::default())
}

impl Source for ComparableBranches {
    fn title(&self) -> String {
        "Compare this branch with".into()
    }

    fn spec(&self) -> ListSpec {
        ListSpec {
            empty: if self.loaded {
                "Other branches of this session appear here once you have branched"
            } else {
                "Loading..."
            },
            ..ListSpec::default()
        }
    }

    fn queries(&mut self) -> Vec<EngineQuery> {
        vec![(CommandBody::Query(Query::Branches), Token(1))]
    }

    fn reply(&mut self, _token: Token, event: &Event, _model: &Model) -> Option<Vec<EngineQuery>> {
        let EventBody::Reply(reply) = &event.body else { return None };
        let ReplyEvent::BranchesReply { branches, .. } = reply.as_ref() else { return None };
        self.loaded = true;
        self.list = branches.iter().filter(|b| !b.open && b.entry.is_some()).cloned().collect();
        self.list.sort_by_key(|b| (b.archived, std::cmp::Reverse(b.time)));
        Some(Vec::new())
    }

    fn items(&mut self, _model: &Model) -> Vec<Item> {
        let row = |b: &BranchView| {
            let away = if b.archived { "archived " } else { "" };
            let time = b.time.map(clock).unwrap_or_default();
            Item::new(&b.name.head, format!("{}  {}", b.name.word(), b.words)).detail(format!("{away}{time}"))
        };
        self.list.iter().map(row).collect()
    }

    fn choose(&mut self, item: &Item, model: &Model) -> Vec<Effect> {
        let left = Side::Branch(model.agent.session.branch.head.clone());
        let pair = Pair { left, right: Side::Branch(item.id.clone()) };
        vec![Effect::Push(Box::new(Compare::of(pair)))]
    }
}
