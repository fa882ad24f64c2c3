//! An element by its reference: where it is, what covers it.

use serde_json::{Value, json};
use tiller_protocol::lock;

use super::Page;
use crate::browser::cdp::CdpError;
use crate::browser::snapshot::RefElement;
use crate::text::{one_line, visible};

/// A reference to an element, as snapshots show it: `e12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ref(u32);

impl Ref {
    /// Reads `e12`.
    ///
    /// # Errors
    /// The form of a reference.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let digits = text.trim().trim_start_matches(['[', '@']).trim_end_matches(']').strip_prefix('e');
        let number = digits.and_then(|d| d.parse().ok());
        number.map(Self).ok_or_else(|| {
            format!(
                "{:?} is not a reference: references look like e12 and are in the snapshot",
                visible(text)
            )
        })
    }
}

/// A point of the page's viewport, in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// True if a node is the wanted one, is in it, around it, or is its label.
const SAME: &str = "function (wanted) { return this === wanted || wanted.contains(this) || this.contains(wanted) \
                    || (this.closest && this.closest('label') && this.closest('label').control === wanted) \
                    || (this.getRootNode().host ? wanted.contains(this.getRootNode().host) : false) }";
/// The element at a point, in words.
const WORDS: &str = "function () { const e = this.nodeType === 1 ? this : this.parentElement; if (!e) return ''; \
                     return '<' + e.tagName.toLowerCase() + (e.id ? ' id=' + e.id : '') + '> ' \
                     + (e.innerText || '').slice(0, 60) }";

impl Page {
    /// The element of a reference.
    ///
    /// # Errors
    /// That there is none.
    pub(crate) fn element(&self, reference: Ref) -> Result<RefElement, String> {
        let gone = || {
            format!(
                "there is no element e{}: the page has changed. Look at it with browser_snapshot",
                reference.0
            )
        };
        self.refs.get(reference.0).cloned().ok_or_else(gone)
    }

    /// Calls a method in the session of an element's frame.
    pub(super) async fn call_for(
        &self,
        element: &RefElement,
        method: &str,
        params: Value,
    ) -> Result<Value, CdpError> {
        let session = element.id.session.as_deref().unwrap_or(&self.session);
        self.call_in(session, method, params).await
    }

    /// Calls a function with the element as `this`; its value.
    ///
    /// # Errors
    /// In words.
    pub(super) async fn run_on(
        &self,
        element: &RefElement,
        function: &str,
        arguments: &[Value],
    ) -> Result<Value, String> {
        let object = self.resolve(element, element.id.backend).await?;
        self.run(element, &object, function, arguments.iter().map(|a| json!({"value": a})).collect()).await
    }

    async fn run(
        &self,
        element: &RefElement,
        object: &str,
        function: &str,
        arguments: Vec<Value>,
    ) -> Result<Value, String> {
        let call = json!({
            "objectId": object, "functionDeclaration": function, "arguments": arguments, "returnByValue": true,
            "userGesture": true,
        });
        let reply = self.call_for(element, "Runtime.callFunctionOn", call).await.map_err(gone)?;
        if let Some(error) = reply["exceptionDetails"]["exception"]["description"].as_str() {
            return Err(format!("the page refused: {}", visible(error.lines().next().unwrap_or_default())));
        }
        Ok(reply["result"]["value"].clone())
    }

    pub(super) async fn resolve(&self, element: &RefElement, backend: i64) -> Result<String, String> {
        let reply = self.call_for(element, "DOM.resolveNode", json!({"backendNodeId": backend})).await;
        let reply = reply.map_err(gone)?;
        let object = reply["object"]["objectId"].as_str();
        object
            .map(str::to_owned)
            .ok_or_else(|| "the element is gone; look at the page with browser_snapshot".into())
    }

    /// Where to click an element, after it was scrolled into view. `inside`: from its upper left corner, in pixels;
    /// `None`: its middle.
    ///
    /// # Errors
    /// That it is not visible, or what covers it.
    pub(super) async fn point(
        &self,
        element: &RefElement,
        inside: Option<(f64, f64)>,
    ) -> Result<Point, String> {
        let id = json!({"backendNodeId": element.id.backend});
        // Something that cannot be scrolled may be visible nevertheless; the quads decide.
        let _ = self.call_for(element, "DOM.scrollIntoViewIfNeeded", id.clone()).await;
        let quads = self.call_for(element, "DOM.getContentQuads", id).await;
        let hidden = || "the element is not visible on the page".to_owned();
        let quads = match quads {
            Ok(quads) => quads,
            Err(CdpError::Refused(why)) if why.contains("layout") || why.contains("quads") => {
                return Err(hidden());
            }
            Err(error) => return Err(gone(error)),
        };
        let quad =
            quads["quads"].as_array().into_iter().flatten().filter_map(Quad::read).find(Quad::has_area);
        let quad = quad.ok_or_else(hidden)?;
        let local = match inside {
            Some((x, y)) => Point { x: quad.left + x, y: quad.top + y },
            None => quad.middle,
        };
        self.uncovered(element, local).await?;
        let offset = self.frame_offset(element).await;
        Ok(Point { x: local.x + offset.x, y: local.y + offset.y })
    }

    /// Fails when something else would get a click at this point.
    async fn uncovered(&self, element: &RefElement, at: Point) -> Result<(), String> {
        let place = json!({
            "x": at.x.floor(), "y": at.y.floor(), "includeUserAgentShadowDOM": false, "ignorePointerEventsNone": true,
        });
        let Ok(there) = self.call_for(element, "DOM.getNodeForLocation", place).await else { return Ok(()) };
        let Some(backend) = there["backendNodeId"].as_i64() else { return Ok(()) };
        if backend == element.id.backend {
            return Ok(());
        }
        let (wanted, top) =
            (self.resolve(element, element.id.backend).await?, self.resolve(element, backend).await?);
        let same = self.run(element, &top, SAME, vec![json!({"objectId": wanted})]).await?;
        if same.as_bool() != Some(false) {
            return Ok(());
        }
        let words = self.run(element, &top, WORDS, Vec::new()).await.unwrap_or_default();
        let words = one_line(words.as_str().unwrap_or_default());
        Err(format!("the element is covered by another one: {}", visible(&words)))
    }

    /// Where the frame of an element begins in the tab's viewport, when another process draws it.
    async fn frame_offset(&self, element: &RefElement) -> Point {
        let none = Point { x: 0.0, y: 0.0 };
        let Some(session) = &element.id.session else { return none };
        let frame = {
            let state = lock(&self.shared.state);
            state.frames.iter().find(|(_, s)| *s == session).map(|(frame, _)| frame.clone())
        };
        let Some(frame) = frame else { return none };
        let Ok(owner) = self.call("DOM.getFrameOwner", json!({"frameId": frame})).await else { return none };
        let model = self.call("DOM.getBoxModel", json!({"backendNodeId": owner["backendNodeId"]})).await;
        let content = model.ok().and_then(|m| Quad::read(&m["model"]["content"]));
        content.map_or(none, |quad| Point { x: quad.left, y: quad.top })
    }
}

pub(super) fn gone(error: CdpError) -> String {
    match error {
        CdpError::Refused(why) if why.contains("node") || why.contains("Node") || why.contains("object") => {
            "the element is gone; look at the page with browser_snapshot".into()
        }
        error => error.to_string(),
    }
}

/// A rectangle that may be turned, by its corners.
struct Quad {
    left: f64,
    top: f64,
    middle: Point,
    area: f64,
}

impl Quad {
    /// Eight numbers: x and y of each corner.
    fn read(value: &Value) -> Option<Self> {
        let n: Vec<f64> = value.as_array()?.iter().filter_map(Value::as_f64).collect();
        let [x1, y1, x2, y2, x3, y3, x4, y4] = n[..] else { return None };
        let area = ((x1 * y2 - x2 * y1) + (x2 * y3 - x3 * y2) + (x3 * y4 - x4 * y3) + (x4 * y1 - x1 * y4))
            .abs()
            / 2.0;
        Some(Self {
            left: x1.min(x2).min(x3).min(x4),
            top: y1.min(y2).min(y3).min(y4),
            middle: Point { x: (x1 + x2 + x3 + x4) / 4.0, y: (y1 + y2 + y3 + y4) / 4.0 },
            area,
        })
    }

    fn has_area(&self) -> bool {
        self.area >= 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_models_write_them() {
        for text in ["e12", " e12 ", "[e12]", "@e12"] {
            assert_eq!(Ref::parse(text), Ok(Ref(12)), "{text}");
        }
        for text in ["12", "x12", "e", "e-1", ""] {
            assert!(Ref::parse(text).unwrap_err().contains("e12"), "{text}");
        }
    }

    #[test]
    fn the_middle_and_the_area_of_a_turned_rectangle() {
        let quad = Quad::read(&json!([0, 5, 5, 0, 10, 5, 5, 10])).unwrap();
        assert_eq!((quad.left, quad.top, quad.middle), (0.0, 0.0, Point { x: 5.0, y: 5.0 }));
        assert!(quad.has_area());
        assert!(!Quad::read(&json!([0, 0, 9, 0, 9, 0, 0, 0])).unwrap().has_area());
        assert!(Quad::read(&json!([1, 2])).is_none());
    }
}
