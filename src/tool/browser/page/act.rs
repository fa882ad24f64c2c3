//! Acting on a page: the mouse, the keyboard, the wheel.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Page;
use super::element::{Point, gone};
use super::held::Held;
use super::keys::Key;
use crate::browser::snapshot::{RefElement, Role};

/// A button of the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Button {
    #[default]
    Left,
    Right,
    Middle,
    /// Only moves the mouse there.
    None,
}

/// Where to scroll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scroll {
    Up,
    Down,
    Left,
    Right,
    Top,
    Bottom,
}

/// Where a drag ends.
pub(crate) enum Drop {
    /// On an element.
    On(RefElement),
    /// Pixels to the right and down from where it began.
    By(f64, f64),
}

/// Where a click goes.
pub(crate) enum Aim {
    /// An element, and the place in it; `None`: its middle.
    Element(RefElement, Option<(f64, f64)>),
    /// A point of the viewport.
    At(f64, f64),
}

/// The effect of typing into an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// An option of a list was chosen.
    Chosen,
    /// The field was filled.
    Filled,
}

/// The method for events of the mouse.
const MOUSE: &str = "Input.dispatchMouseEvent";

/// An event of the mouse.
pub(super) fn event(kind: &str, at: Point, button: &str, count: u32) -> Value {
    let held = if kind == "mouseReleased" || button == "none" { 0 } else { 1 };
    json!({"type": kind, "x": at.x, "y": at.y, "button": button, "buttons": held, "clickCount": count})
}

/// Chooses an option of a list, as a person's click does. `false`: the element is no option.
const CHOOSE: &str = "function () { if (this.tagName !== 'OPTION') return false; const list = this.closest('select'); \
                      if (!list || list.disabled || this.disabled) throw new Error('the option is disabled'); \
                      this.selected = list.multiple ? !this.selected : true; \
                      list.dispatchEvent(new Event('input', {bubbles: true})); \
                      list.dispatchEvent(new Event('change', {bubbles: true})); return true }";

/// Makes a field ready for typing, or sets it where typing does nothing. The kind of what was done comes back.
const FILL: &str = "function (text, clear) { \
    const tell = e => ['input', 'change'].forEach(k => e.dispatchEvent(new Event(k, {bubbles: true}))); \
    if (this.disabled || this.readOnly) throw new Error('the field is ' + (this.disabled ? 'disabled' : 'read only')); \
    if (this.tagName === 'SELECT') { \
      const same = s => s.trim().replace(/\\s+/g, ' ').toLowerCase(); \
      const found = [...this.options].find(o => same(o.label) === same(text) || o.value === text); \
      if (!found) throw new Error('no option ' + JSON.stringify(text) + '; there are: ' \
        + [...this.options].slice(0, 30).map(o => o.label.trim()).join(', ')); \
      if (this.multiple && clear) [...this.options].forEach(o => o.selected = false); \
      found.selected = true; tell(this); return 'chosen' } \
    if (this.tagName === 'INPUT' && this.type === 'file') throw new Error('a file field gets files from browser_upload'); \
    if (this.tagName === 'INPUT' && ['date','time','datetime-local','month','week','color','range'].includes(this.type)) { \
      const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set; set.call(this, text); \
      if (this.value === '' && text !== '') throw new Error('a field of type ' + this.type + ' does not take ' \
        + JSON.stringify(text) + '; write a date as 2026-11-30, a time as 14:05, a color as #rrggbb'); \
      tell(this); return 'set' } \
    this.focus(); \
    if (this.isContentEditable) { if (clear) { const r = document.createRange(); r.selectNodeContents(this); \
      const s = getSelection(); s.removeAllRanges(); s.addRange(r) } return 'type' } \
    if (typeof this.select !== 'function') return 'focused'; \
    if (clear) this.select(); \
    else { try { this.setSelectionRange(this.value.length, this.value.length) } catch (_) {} } \
    return 'type' }";

impl Page {
    pub(super) async fn mouse(&self, kind: &str, at: Point, button: &str, count: u32) -> Result<(), String> {
        let event = event(kind, at, button, count);
        self.call(MOUSE, event).await.map(|_| ()).map_err(|e| e.to_string())
    }

    /// Presses a button of the mouse, which is released where it was pressed.
    pub(super) async fn pressed(&self, at: Point, button: &str, count: u32) -> Result<Held<'_>, String> {
        let [down, up] = ["mousePressed", "mouseReleased"].map(|kind| event(kind, at, button, count));
        Held::begin(self, MOUSE, down, up).await.map_err(|e| e.to_string())
    }

    pub(super) async fn aim(&self, aim: &Aim) -> Result<Point, String> {
        match aim {
            Aim::At(x, y) => Ok(Point { x: *x, y: *y }),
            Aim::Element(element, inside) => self.point(element, *inside).await,
        }
    }

    /// Clicks `count` times.
    ///
    /// # Errors
    /// Why it could not, in words.
    pub(crate) async fn click(&self, aim: Aim, button: Button, count: u32) -> Result<(), String> {
        if let Aim::Element(element, _) = &aim
            && button != Button::None
            && element.role == Role::Choice
            && self.run_on(element, CHOOSE, &[]).await?.as_bool() == Some(true)
        {
            return Ok(());
        }
        let at = self.aim(&aim).await?;
        let button = match button {
            Button::Left => "left",
            Button::Right => "right",
            Button::Middle => "middle",
            Button::None => return self.mouse("mouseMoved", at, "none", 0).await,
        };
        self.mouse("mouseMoved", at, "none", 0).await?;
        self.hovered().await;
        for n in 1..=count {
            let held = self.pressed(at, button, n).await?;
            held.end().await.map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Types into a field, chooses from a list, or sets a date. `clear`: replaces what is there.
    ///
    /// # Errors
    /// Why it could not, in words.
    pub(crate) async fn type_into(
        &self,
        element: &RefElement,
        text: &str,
        clear: bool,
    ) -> Result<Typed, String> {
        let done = self.run_on(element, FILL, &[text.into(), clear.into()]).await?;
        match done.as_str() {
            Some("chosen") => return Ok(Typed::Chosen),
            Some("set") => return Ok(Typed::Filled),
            Some("type") => {}
            // Something that is no field may have one in it, or take keys by itself.
            _ => {
                let id = json!({"backendNodeId": element.id.backend});
                if self.call_for(element, "DOM.focus", id).await.is_err() {
                    self.click(Aim::Element(element.clone(), None), Button::Left, 1).await?;
                }
            }
        }
        if text.is_empty() {
            if clear {
                self.press("Delete").await?;
            }
            return Ok(Typed::Filled);
        }
        let typed = self.call_for(element, "Input.insertText", json!({"text": text})).await;
        if typed.is_err() {
            self.call("Input.insertText", json!({"text": text})).await.map_err(gone)?;
        }
        Ok(Typed::Filled)
    }

    /// Presses a key, with modifiers.
    ///
    /// # Errors
    /// That there is no such key, or that the page is gone.
    pub(crate) async fn press(&self, key: &str) -> Result<(), String> {
        let [down, up] = Key::parse(key)?.events();
        let held = Held::begin(self, "Input.dispatchKeyEvent", down, up).await.map_err(|e| e.to_string())?;
        held.end().await.map_err(|e| e.to_string())
    }

    /// Scrolls the page, or what an element scrolls in, by `pages` of its height.
    ///
    /// # Errors
    /// Why it could not, in words.
    pub(crate) async fn scroll(
        &self,
        element: Option<&RefElement>,
        to: Scroll,
        pages: f64,
    ) -> Result<Value, String> {
        let words = match to {
            Scroll::Up => "up",
            Scroll::Down => "down",
            Scroll::Left => "left",
            Scroll::Right => "right",
            Scroll::Top => "top",
            Scroll::Bottom => "bottom",
        };
        let function = "function (to, pages) { \
            let e = this === window || this.nodeType !== 1 ? document.scrollingElement || document.documentElement : this; \
            while (e.parentElement && e !== document.scrollingElement \
              && !(e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY !== 'visible')) e = e.parentElement; \
            const page = e === document.scrollingElement; \
            const height = page ? innerHeight : e.clientHeight, width = page ? innerWidth : e.clientWidth; \
            const by = {up: [0, -height * pages], down: [0, height * pages], left: [-width * pages, 0], \
              right: [width * pages, 0], top: [0, -e.scrollHeight], bottom: [0, e.scrollHeight]}[to]; \
            e.scrollBy({left: by[0], top: by[1], behavior: 'instant'}); \
            return [Math.round(e.scrollTop), Math.max(0, Math.round(e.scrollHeight - height))] }";
        if let Some(element) = element {
            return self.run_on(element, function, &[words.into(), pages.into()]).await;
        }
        let call = format!("({function}).call(window, {}, {pages})", json!(words));
        let reply = self.call("Runtime.evaluate", json!({"expression": call, "returnByValue": true})).await;
        Ok(reply.map_err(|e| e.to_string())?["result"]["value"].clone())
    }
}
