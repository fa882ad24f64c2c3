//! A picture: in cells, and as the terminal's own graphics where it has some (`app/run/pictures.rs`). Only images that the
//! person attached or that a tool of this session gave are shown: nothing is ever fetched.

use std::any::Any;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::RgbaImage;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::{Notice, NoticeKind};

use crate::app::effect::{Effect, Task, Token};
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelStatus, Placement, Refresh, Reply};
use crate::registry::Dialog;
use crate::theme::Role;
use crate::widget::draw;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Picture", ACTIONS)],
    scopes: &[Scope::new("picture", Some("list"), "Picture", false).keys(KEYS)],
    ..Dialog::NONE
};

const ACTIONS: &[ActionSpec] =
    &[ActionSpec::key_only("picture.open", "open", "Open it with the system's program for pictures")];

const KEYS: &[DefaultKey] = &[("o", "picture.open")];

/// Jobs of the dialog.
const DECODED: Token = Token(1);
const OPENED: Token = Token(2);

/// Columns and rows of pixels that are kept after decoding.
const KEPT: u32 = 1024;
/// Pixels in a row or column that are decoded at most, and bytes of memory for it.
const LARGEST: u32 = 16_384;
const MEMORY: u64 = 256 << 20;

/// The beginning of the names of copies for other programs, and how long the copies stay at least.
const COPY: &str = "tiller-picture-";
const KEPT_COPIES: Duration = Duration::from_secs(24 * 60 * 60);

type Decoded = Result<Arc<RgbaImage>, String>;
/// The result of opening it elsewhere.
type Opened = Result<(), String>;

/// The dialog.
pub struct Picture {
    title: String,
    /// Base64.
    data: Arc<str>,
    image: Option<Decoded>,
    /// Cut down for the area that it was drawn in last: a column of pixels for each of cells, two rows for each.
    small: RgbaImage,
    /// The cells that it covers.
    place: Rect,
}

impl Picture {
    /// Of an image as it is attached: its label and its bytes in base64.
    pub fn new(label: &str, data: impl Into<Arc<str>>) -> Self {
        Self {
            title: label.into(),
            data: data.into(),
            image: None,
            small: RgbaImage::new(0, 0),
            place: Rect::default(),
        }
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
    Ok(Arc::new(image.into_rgba8()))
}

/// Writes the image into a file of its own, which only this user can read, and gives it to the system's program for
/// pictures. Slow: call it from a job.
fn open(data: &str) -> Opened {
    let bytes = STANDARD.decode(data).map_err(|e| format!("the file is damaged: {e}"))?;
    let ending = match image::guess_format(&bytes).map_err(|e| e.to_string())? {
        image::ImageFormat::Png => "png",
        image::ImageFormat::Jpeg => "jpg",
        image::ImageFormat::Gif => "gif",
        image::ImageFormat::WebP => "webp",
        _ => return Err("this kind of image is not known".into()),
    };
    let folder = tempfile::env::temp_dir();
    remove_old(&folder, SystemTime::now());
    let path = private_copy(&folder, &bytes, ending)?;
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let done = Command::new(program)
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|e| format!("{program}: {e}; the picture is at {}", path.display()))?;
    if done.success() {
        Ok(())
    } else {
        Err(format!("{program} failed; the picture is at {}", path.display()))
    }
}

/// Removes copies that were made more than [`KEPT_COPIES`] before `now`. What another user owns stays: that is not allowed.
fn remove_old(folder: &Path, now: SystemTime) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(COPY));
        let Ok(meta) = entry.metadata() else { continue };
        let old = meta.modified().is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > KEPT_COPIES));
        if ours && old && meta.is_file() {
            // It may be gone already.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A new file with these bytes, which only this user can read.
fn private_copy(folder: &Path, bytes: &[u8], ending: &str) -> Result<PathBuf, String> {
    for n in 0..100 {
        let path = folder.join(format!("{COPY}{}-{n}.{ending}", std::process::id()));
        let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match made.and_then(|mut file| file.write_all(bytes)) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(format!("{}: {e}", path.display())),
        }
    }
    Err("there are too many copies of pictures in the folder for temporary files".into())
}

/// Columns and rows of cells that show the image in `area`, as large as fits, and not larger than it is. `cell`: its size in
/// pixels.
fn covered(image: (u32, u32), area: Rect, cell: (u16, u16)) -> (u16, u16) {
    let (w, h) = (u64::from(image.0.max(1)), u64::from(image.1.max(1)));
    let (cw, ch) = (u64::from(cell.0.max(1)), u64::from(cell.1.max(1)));
    let (most_w, most_h) = (u64::from(area.width) * cw, u64::from(area.height) * ch);
    let (num, den) = [(most_w, w), (most_h, h), (1, 1)]
        .into_iter()
        .min_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)))
        .unwrap_or((1, 1));
    let cells = |pixels: u64, cell: u64, most: u16| {
        u16::try_from((pixels * num).div_ceil(den).div_ceil(cell)).unwrap_or(most).clamp(1, most.max(1))
    };
    (cells(w, cw, area.width), cells(h, ch, area.height))
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
        PanelStatus::new("picture")
    }

    fn title(&self, _model: &Model) -> String {
        self.title.clone()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Full
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        match action.0 {
            "list.back" => Reply::with(Effect::Pop),
            "picture.open" => {
                let data = Arc::clone(&self.data);
                Reply::with(Effect::Task(Task::Job(Box::new(move || Box::new(open(&data))), OPENED)))
            }
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open()),
            PanelEvent::JobDone(_, result) => self.on_job(result),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        vec![Hint::of("picture.open"), Hint::as_("list.back", "back")]
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        let Some(Ok(image)) = &self.image else { return Refresh::default() };
        if area.area() == 0 {
            self.place = Rect::default();
            return Refresh::default();
        }
        let size = match cx.model.window.pictures {
            Some(cell) => {
                let (columns, rows) = covered(image.dimensions(), area, cell);
                (u32::from(columns), u32::from(rows) * 2)
            }
            None => fitting(image.dimensions(), area),
        };
        if self.small.dimensions() != size {
            self.small = image::imageops::thumbnail(&**image, size.0, size.1);
        }
        let (columns, rows) = (size.0 as u16, size.1.div_ceil(2) as u16);
        let left = area.x + area.width.saturating_sub(columns) / 2;
        self.place = Rect { x: left, y: area.y, width: columns, height: rows }.intersection(area);
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
    /// The image and the cells that it covers, once it is decoded and was measured.
    pub(crate) fn shown(&self) -> Option<(Arc<RgbaImage>, Rect)> {
        let image = self.image.as_ref()?.as_ref().ok()?;
        Some((Arc::clone(image), self.place))
    }

    fn on_open(&mut self) -> Vec<Effect> {
        let data = Arc::clone(&self.data);
        vec![Effect::Task(Task::Job(Box::new(move || Box::new(decode(&data))), DECODED))]
    }

    fn on_job(&mut self, result: Box<dyn Any + Send>) -> Reply {
        let result = match result.downcast::<Decoded>() {
            Ok(image) => {
                self.image = Some(*image);
                return Reply::done();
            }
            Err(other) => other,
        };
        match result.downcast::<Opened>().map(|opened| *opened) {
            Ok(Err(why)) => {
                let text = format!("The picture could not be opened: {why}");
                Reply::with(Effect::Toast(Notice::new(NoticeKind::User, text)))
            }
            Ok(Ok(())) => Reply::done(),
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

    #[test]
    fn copies_for_other_programs_are_private_and_leave_after_a_day() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = [1, 2].map(|_| private_copy(folder.path(), b"bytes", "png").unwrap());
        assert_ne!(one, two);
        assert_eq!(std::fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(folder.path().join("other.png"), b"mine").unwrap();
        remove_old(folder.path(), SystemTime::now());
        assert!(one.exists() && two.exists(), "another program may still read them");
        remove_old(folder.path(), SystemTime::now() + KEPT_COPIES + Duration::from_secs(60));
        let left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["other.png"]);
    }

    #[test]
    fn pixels_fill_whole_cells_of_the_terminal() {
        let area = Rect::new(0, 0, 50, 10);
        assert_eq!(covered((1000, 1000), area, (8, 16)), (20, 10));
        assert_eq!(covered((80, 32), area, (8, 16)), (10, 2));
        assert_eq!(covered((81, 33), area, (8, 16)), (11, 3), "a begun cell is one");
        assert_eq!(covered((4000, 10), area, (8, 16)), (50, 1));
        assert_eq!(covered((0, 0), area, (0, 0)), (1, 1));
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
