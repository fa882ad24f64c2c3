//! Dragging. Pages make elements follow the mouse by scripts, or let the browser drag them with data. Without taking the
//! latter over, a browser with a window would begin a drag of the system, which waits for a person's mouse.

use std::time::Duration;

use serde_json::{Value, json};
use tiller_protocol::lock;
use tokio::time::{Instant, timeout_at};

use super::act::event;
use super::element::Point;
use super::held::Held;
use super::{Aim, Drop, Page};

/// Moves of the mouse between the ends of a drag.
const STEPS: u32 = 8;
/// Longest wait for the browser to begin a drag of its own.
const BEGINS: Duration = Duration::from_millis(100);

impl Page {
    /// Drags from one place to another.
    ///
    /// # Errors
    /// Why it could not, in words.
    pub(crate) async fn drag(&self, from: Aim, to: Drop) -> Result<(), String> {
        lock(&self.shared.state).dragged = None;
        let takes = |on: bool| json!({ "enabled": on });
        // A browser that does not know this drags by itself.
        let taken = Held::begin(self, "Input.setInterceptDrags", takes(true), takes(false)).await.ok();
        let done = self.moved(from, to).await;
        if let Some(taken) = taken {
            // A tab that is gone takes over no drags.
            let _ = taken.end().await;
        }
        done
    }

    async fn moved(&self, from: Aim, to: Drop) -> Result<(), String> {
        let start = self.aim(&from).await?;
        self.mouse("mouseMoved", start, "none", 0).await?;
        self.hovered().await;
        let held = self.pressed(start, "left", 1).await?;
        // The page may move while something is dragged over it.
        let end = match &to {
            Drop::By(x, y) => Ok(Point { x: start.x + x, y: start.y + y }),
            Drop::On(element) => self.point(element, None).await,
        };
        let end = match end {
            Ok(end) => end,
            Err(why) => {
                held.end().await.map_err(|e| e.to_string())?;
                return Err(why);
            }
        };
        let mut carried = None;
        for step in 1..=STEPS {
            let part = f64::from(step) / f64::from(STEPS);
            let at = Point { x: start.x + (end.x - start.x) * part, y: start.y + (end.y - start.y) * part };
            if carried.is_none() {
                self.mouse("mouseMoved", at, "left", 0).await?;
                if step == 1 || step == STEPS {
                    carried = self.carry(at).await?;
                }
            }
            if let Some((data, _)) = &carried {
                self.call(CARRY, carrying("dragOver", at, data)).await.map_err(|e| e.to_string())?;
            }
        }
        if let Some((data, entered)) = carried {
            entered.end_with(carrying("drop", end, &data)).await.map_err(|e| e.to_string())?;
        }
        held.end_with(event("mouseReleased", end, "left", 1)).await.map_err(|e| e.to_string())
    }

    /// Carries over the page what the browser drags: its data, and that it is over the page. `None`: it drags nothing.
    async fn carry(&self, at: Point) -> Result<Option<(Value, Held<'_>)>, String> {
        let Some(data) = self.begun().await else { return Ok(None) };
        let [enter, cancel] = ["dragEnter", "dragCancel"].map(|kind| carrying(kind, at, &data));
        let entered = Held::begin(self, CARRY, enter, cancel).await.map_err(|e| e.to_string())?;
        Ok(Some((data, entered)))
    }

    /// The data that the browser drags; `None`: it drags nothing.
    async fn begun(&self) -> Option<Value> {
        let deadline = Instant::now() + BEGINS;
        loop {
            let changed = self.shared.changed.notified();
            if let Some(data) = lock(&self.shared.state).dragged.take() {
                return Some(data);
            }
            timeout_at(deadline, changed).await.ok()?;
        }
    }
}

/// The method for events of a drag with data.
const CARRY: &str = "Input.dispatchDragEvent";

fn carrying(kind: &str, at: Point, data: &Value) -> Value {
    json!({"type": kind, "x": at.x, "y": at.y, "data": data})
}
