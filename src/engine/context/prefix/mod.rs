//! The prefix as an entry.

pub(crate) mod layers;
pub(crate) mod project;
pub(crate) mod specs;

use crate::core::Core;
use tiller_protocol::EntryBody;
use tiller_protocol::view::LayerCost;

pub(crate) fn prefix_body(core: &Core, system: String, layers: Vec<LayerCost>) -> EntryBody {
    let tools = core.services.tools.specs.of(&core.services.tools.visible);
    EntryBody::Prefix { system, tools, layers }
}
