//! The accessibility tree of one frame, as `Accessibility.getFullAXTree` gives it.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::browser::cdp::CdpError;

/// Greatest number of nodes of a frame that are read: a table of 30,000 rows has 360,000.
const NODES: usize = 400_000;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AxNode {
    node_id: String,
    pub(super) ignored: bool,
    role: AxValue,
    name: AxValue,
    description: AxValue,
    value: AxValue,
    properties: Vec<AxProperty>,
    parent_id: Option<String>,
    pub(super) child_ids: Vec<String>,
    #[serde(rename = "backendDOMNodeId")]
    pub(super) backend: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct AxValue {
    value: Value,
}

impl AxValue {
    fn text(&self) -> &str {
        self.value.as_str().unwrap_or_default().trim()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct AxProperty {
    name: String,
    value: AxValue,
}

impl AxNode {
    pub(super) fn role(&self) -> &str {
        self.role.value.as_str().unwrap_or_default()
    }

    /// Without the white space around it, which some versions of Chromium keep.
    pub(super) fn name(&self) -> &str {
        self.name.text()
    }

    pub(super) fn description(&self) -> &str {
        self.description.text()
    }

    /// The content of a field; `None`: it is none, or empty.
    pub(super) fn value(&self) -> Option<String> {
        let text = match &self.value.value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some(text).filter(|t| !t.is_empty())
    }

    /// A property as the browser gives it; `Null` when it is absent.
    pub(super) fn property(&self, name: &str) -> &Value {
        self.properties.iter().find(|p| p.name == name).map_or(&Value::Null, |p| &p.value.value)
    }

    /// True when a property is set: `true`, or `"true"`.
    pub(super) fn is(&self, name: &str) -> bool {
        let value = self.property(name);
        value.as_bool() == Some(true) || value.as_str() == Some("true")
    }
}

/// The nodes of one frame.
#[derive(Debug, Default)]
pub(super) struct AxTree {
    nodes: HashMap<String, AxNode>,
    root: Option<String>,
}

impl AxTree {
    /// Reads the reply. The boxes of lines are left out: they are a quarter of the nodes, and say nothing.
    ///
    /// # Errors
    /// When it is no object of JSON.
    pub(super) fn read(reply: &RawValue) -> Result<Self, CdpError> {
        if let Ok(reply) = serde_json::from_str::<Reply>(reply.get()) {
            return Ok(reply.nodes);
        }
        // A browser with a node that cannot be read: each one by itself, which takes longer.
        let mut tree = Self::default();
        let reply: Value = serde_json::from_str(reply.get()).map_err(|_| CdpError::Unreadable)?;
        let nodes = reply["nodes"].as_array().into_iter().flatten();
        nodes.filter_map(|node| AxNode::deserialize(node).ok()).for_each(|node| tree.add(node));
        Ok(tree)
    }

    fn add(&mut self, node: AxNode) {
        if self.nodes.len() >= NODES || node.role() == "InlineTextBox" {
            return;
        }
        if self.root.is_none() && node.parent_id.is_none() {
            self.root = Some(node.node_id.clone());
        }
        self.nodes.insert(node.node_id.clone(), node);
    }

    pub(super) fn root(&self) -> Option<&AxNode> {
        self.get(self.root.as_deref()?)
    }

    pub(super) fn get(&self, id: &str) -> Option<&AxNode> {
        self.nodes.get(id)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &AxNode> {
        self.nodes.values()
    }
}

/// The reply. Its nodes are read as they stand there, without most of their fields: this takes a fifth of the time.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Reply {
    #[serde(deserialize_with = "nodes")]
    nodes: AxTree,
}

fn nodes<'de, D: Deserializer<'de>>(input: D) -> Result<AxTree, D::Error> {
    struct Nodes;

    impl<'de> Visitor<'de> for Nodes {
        type Value = AxTree;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of nodes")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<AxTree, A::Error> {
            let mut tree = AxTree::default();
            while let Some(node) = list.next_element()? {
                tree.add(node);
            }
            Ok(tree)
        }
    }

    input.deserialize_seq(Nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_cannot_be_read_costs_none_of_the_others() {
        let node = |id: u32, role: &str| {
            format!(
                r#"{{"nodeId":"{id}","ignored":false,"role":{{"type":"role","value":"{role}"}},"name":{{"type":"x","value":"n",
                "sources":[{{"type":"contents"}}]}},"properties":[],"childIds":["7"],"backendDOMNodeId":{id}{}}}"#,
                if id == 1 { "" } else { r#","parentId":"1""# }
            )
        };
        let tree = |nodes: &[String]| {
            let reply = format!(r#"{{"other":1,"nodes":[{}]}}"#, nodes.join(","));
            AxTree::read(&RawValue::from_string(reply).unwrap()).unwrap()
        };
        let good = [node(1, "RootWebArea"), node(2, "link"), node(3, "InlineTextBox")];
        let odd = r#"{"nodeId":4,"childIds":"none"}"#.to_owned();
        for nodes in [good.to_vec(), [&good[..], &[odd]].concat()] {
            let tree = tree(&nodes);
            assert_eq!(tree.nodes().count(), 2, "{tree:?}");
            assert_eq!(tree.root().map(AxNode::role), Some("RootWebArea"));
            assert_eq!(tree.get("2").map(AxNode::name), Some("n"));
        }
        assert_eq!(AxTree::read(&RawValue::from_string("{}".into()).unwrap()).unwrap().nodes().count(), 0);
        let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        assert!(AxTree::read(&RawValue::from_string(deep).unwrap()).is_err());
    }
}
