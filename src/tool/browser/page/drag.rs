//! Dragging. Pages make elements follow the mouse by scripts, or let the browser drag them with data. Without taking the
//! latter over, a browser with a window would begin a drag of the system, which waits for a person's mouse.

use std::time::Duration;

use serde_json::{Value, json};
use tiller_protocol::lock;
use tokio::time::{Instant, timeout_at};

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
        // A browser that does not know this drags by itself.
        let _ = self.call("Input.setInterceptDrags", json!({"enabled": true})).await;
        let done = self.moved(from, to).await;
        let _ = self.call("Input.setInterceptDrags", json!({"enabled": false})).await;
        done
    }

    async fn moved(&self, from: Aim, to: Drop) -> Result<(), String> {
        let start = self.aim(&from).await?;
        self.mouse("mouseMoved", start, "none", 0).await?;
        self.hovered().await;
        let held = Held::press(self, start, "left", 1).await?;
        // The page may move while something is dragged over it.
        let end = match &to {
            Drop::By(x, y) => Ok(Point { x: start.x + x, y: start.y + y }),
            Drop::On(element) => self.point(element, None).await,
        };
        let end = match end {
            Ok(end) => end,
            Err(why) => {
                held.release(start).await?;
                return Err(why);
            }
        };
        let mut data = None;
        for step in 1..=STEPS {
            let part = f64::from(step) / f64::from(STEPS);
            let at = Point { x: start.x + (end.x - start.x) * part, y: start.y + (end.y - start.y) * part };
            if let Some(data) = &data {
                self.carry("dragOver", at, data).await?;
                continue;
            }
            self.mouse("mouseMoved", at, "left", 0).await?;
            if step == 1 || step == STEPS {
                data = self.begun().await;
            }
            if let Some(data) = &data {
                self.carry("dragEnter", at, data).await?;
                self.carry("dragOver", at, data).await?;
            }
        }
        if let Some(data) = &data {
            self.carry("drop", end, data).await?;
        }
        held.release(end).await
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

    async fn carry(&self, kind: &str, at: Point, data: &Value) -> Result<(), String> {
        let event = json!({"type": kind, "x": at.x, "y": at.y, "data": data});
        self.call("Input.dispatchDragEvent", event).await.map(|_| ()).map_err(|e| e.to_string())
    }
}
