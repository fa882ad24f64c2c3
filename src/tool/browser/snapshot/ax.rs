//! The accessibility tree of one frame, as `Accessibility.getFullAXTree` gives it.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// Greatest number of nodes of a frame that are read.
const NODES: usize = 50_000;

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

    /// What a field holds; `None`: it is none, or empty.
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

    /// Whether a property is set: `true`, or `"true"`.
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
    /// Reads the reply. Nodes that cannot be read are left out.
    pub(super) fn read(mut reply: Value) -> Self {
        let mut tree = Self::default();
        let Some(nodes) = reply["nodes"].as_array_mut() else { return tree };
        for node in nodes.drain(..).take(NODES) {
            let Ok(node) = serde_json::from_value::<AxNode>(node) else { continue };
            if tree.root.is_none() && node.parent_id.is_none() {
                tree.root = Some(node.node_id.clone());
            }
            tree.nodes.insert(node.node_id.clone(), node);
        }
        tree
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
