//! An attached image drawn in cells. Only images that the person attached are shown: nothing is ever fetched.

use std::sync::Arc;

use std::any::Any;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::RgbaImage;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::effect::{Effect, Task, Token};
use crate::keymap::action::{Action, ActionSpec};
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelStatus, Placement, Refresh, Reply};
use crate::theme::Role;
use crate::widget::draw;

/// Columns and rows of pixels that are kept after decoding.
const KEPT: u32 = 1024;
/// Pixels in a row or column that are decoded at most, and bytes of memory for it.
const LARGEST: u32 = 16_384;
const MEMORY: u64 = 256 << 20;

type Decoded = Result<RgbaImage, String>;

/// The dialog.
pub struct Picture {
    title: String,
    /// Base64, until it is decoded.
    data: Option<Arc<str>>,
    image: Option<Decoded>,
    /// Cut down for the area that it was drawn in last.
    small: RgbaImage,
}

impl Picture {
    /// Of an image as it is attached: its label and its bytes in base64.
    pub fn new(label: &str, data: impl Into<Arc<str>>) -> Self {
        Self { title: label.into(), data: Some(data.into()), image: None, small: RgbaImage::new(0, 0) }
    }
}

/// Decodes the image. Slow: call it from a job.
fn decode(data: &str) -> Decoded {
    let bytes = STANDARD.decode(data).map_err(|e| format!("the file is damaged: {e}"))?;
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(LARGEST);
    limits.max_image_height = Some(LARGEST);
    limits.max_alloc = Some(MEMORY);
    let mut reader = image::ImageReader::new(std::io::Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|e| e.to_string())?;
    reader.limits(limits);
    let image = reader.decode().map_err(|e| e.to_string())?;
    let image = if image.width().max(image.height()) > KEPT { image.thumbnail(KEPT, KEPT) } else { image };
    Ok(image.into_rgba8())
}

/// Columns and rows of pixels that fit into an area of cells, each two pixels high; never larger than it is.
fn fitting(image: (u32, u32), area: Rect) -> (u32, u32) {
    let (w, h) = (image.0.max(1), image.1.max(1));
    let (columns, rows) = (u32::from(area.width), u32::from(area.height) * 2);
    // As whole fractions, so that nothing is stretched.
    let (num, den) = [(columns, w), (rows, h), (1, 1)]
        .into_iter()
        .min_by(|a, b| (u64::from(a.0) * u64::from(b.1)).cmp(&(u64::from(b.0) * u64::from(a.1))))
        .unwrap_or((1, 1));
    ((w * num / den).clamp(1, columns.max(1)), (h * num / den).clamp(1, rows.max(1)))
}

impl Panel for Picture {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new("text")
    }

    fn title(&self, _model: &Model) -> String {
        self.title.clone()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        &[]
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Full
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        if action.0 == "list.back" { Reply::with(Effect::Pop) } else { Reply::Ignored }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open()),
            PanelEvent::JobDone(_, result) => self.on_job(result),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        vec![Hint::as_("list.back", "back")]
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) -> Refresh {
        let Some(Ok(image)) = &self.image else { return Refresh::default() };
        let size = fitting(image.dimensions(), area);
        if area.area() > 0 && self.small.dimensions() != size {
            self.small = image::imageops::thumbnail(image, size.0, size.1);
        }
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let (words, role) = match &self.image {
            None => ("Reading the image...".to_owned(), Role::Dim),
            Some(Err(why)) => (format!("The image cannot be shown: {why}"), Role::Error),
            Some(Ok(_)) => (String::new(), Role::Dim),
        };
        draw::text(buf, area, &words, cx.theme.style(role));
        let (w, h) = self.small.dimensions();
        if !words.is_empty() || w == 0 {
            return;
        }
        let left = area.x + (area.width.saturating_sub(w as u16)) / 2;
        for y in 0..h.div_ceil(2).min(u32::from(area.height)) {
            for x in 0..w.min(u32::from(area.width)) {
                let top = self.small.get_pixel(x, y * 2).0;
                let bottom = self.small.get_pixel_checked(x, y * 2 + 1).map_or([0; 4], |p| p.0);
                let (symbol, style) = cx.theme.cell(top, bottom, cx.ascii);
                draw::put(buf, left + x as u16, area.y + y as u16, symbol, style);
            }
        }
    }
}

impl Picture {
    fn on_open(&mut self) -> Vec<Effect> {
        let data = self.data.take().unwrap_or_else(|| "".into());
        vec![Effect::Task(Task::Job(Box::new(move || Box::new(decode(&data))), Token(1)))]
    }

    fn on_job(&mut self, result: Box<dyn Any + Send>) -> Reply {
        match result.downcast::<Decoded>() {
            Ok(image) => {
                self.image = Some(*image);
                Reply::done()
            }
            Err(_) => Reply::Ignored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::effect::Task;
    use crate::app::msg::Msg;
    use crate::testing::Robot;
    use crate::theme::{Depth, Theme};

    fn png(w: u32, h: u32) -> String {
        let image = RgbaImage::from_fn(w, h, |x, _| {
            image::Rgba(if x < w / 2 { [255, 255, 255, 255] } else { [0, 0, 0, 255] })
        });
        let mut out = std::io::Cursor::new(Vec::new());
        image.write_to(&mut out, image::ImageFormat::Png).unwrap();
        STANDARD.encode(out.into_inner())
    }

    fn shown(data: String) -> Robot {
        let theme = Theme::built_in("mono", Depth::Mono).unwrap();
        let map = crate::keymap::preset(crate::shipped::registry().words(), "default").unwrap();
        let mut r = Robot::made(60, 20, tiller_config::schema::Ui::default(), map, theme);
        r.push(Box::new(Picture::new("[image 1: 40x20 1 KB]", data)));
        assert!(r.screen().contains("Reading the image"), "{}", r.screen());
        for task in std::mem::take(&mut r.tasks) {
            if let Task::Job(job, token) = task {
                r.msg(Msg::Job(token, job()));
            }
        }
        r
    }

    #[test]
    fn an_image_is_shown_in_cells() {
        let mut r = shown(png(40, 20));
        // Without colours: ink where it is light.
        let rows: Vec<String> = r.screen().lines().filter(|l| l.contains("@@@@")).map(Into::into).collect();
        assert_eq!(rows.len(), 10, "{}", r.screen());
        assert_eq!(rows[0].matches('@').count(), 20, "the left half: {}", rows[0]);
        r.run("size 40x12");
        let rows = r.screen().lines().filter(|l| l.contains("@@@@")).count();
        assert!((3..=10).contains(&rows), "it fits: {}", r.screen());
        r.run("q");
        assert!(r.app.layers.is_empty());
    }

    #[test]
    fn what_is_no_image_says_so() {
        assert!(shown(STANDARD.encode("no image")).screen().contains("cannot be shown"));
        assert!(shown("%%%".into()).screen().contains("damaged"));
    }

    #[test]
    fn nothing_is_stretched_or_larger_than_its_area() {
        let area = Rect::new(0, 0, 50, 10);
        assert_eq!(fitting((100, 10), area), (50, 5));
        assert_eq!(fitting((10, 100), area), (2, 20));
        assert_eq!(fitting((8, 4), area), (8, 4));
        assert_eq!(fitting((0, 0), area), (1, 1));
        assert_eq!(fitting((16_000, 1), area), (50, 1));
    }
}
