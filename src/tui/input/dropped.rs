//! Pictures whose paths were pasted, or typed by a terminal because their files were dropped on it.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use tiller_protocol::SandboxState;

use super::own_tmp::{self, OwnTmp};

/// Longest text that is looked at.
const TEXT: usize = 64 << 10;
/// Most pictures of one paste.
const MOST: usize = 20;
/// Bytes and pixels a side that each provider takes.
const BYTES: u64 = 3_750_000;
const SIDE: u32 = 8_000;

/// Endings of the names of pictures that a message can hold.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// A picture as the composer attaches it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DroppedPicture {
    pub(crate) media_type: &'static str,
    /// Base64.
    pub(crate) data: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// The pictures of one paste; an error says why there are none, and nothing where no such file exists.
#[derive(Debug)]
pub(crate) struct Dropped {
    /// Says which of two files was read, where the session's own `/tmp` has one of that name.
    pub(crate) note: Option<String>,
    /// Of the chip that stands for them.
    pub(crate) label: String,
    /// As it was pasted.
    pub(crate) text: String,
    pub(crate) pictures: Result<Vec<DroppedPicture>, Option<String>>,
}

/// The absolute paths that make up `text`, when all of them have the names of pictures.
pub(crate) fn paths(text: &str) -> Option<Vec<PathBuf>> {
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT {
        return None;
    }
    let quoted = words(text).map(|all| all.iter().map(|word| path(word)).collect::<Option<Vec<_>>>());
    // Some terminals write a name with its blanks as it is.
    let plain = || text.lines().map(|line| path(line.trim())).collect();
    quoted.flatten().or_else(plain).filter(|all: &Vec<PathBuf>| all.len() <= MOST)
}

/// Reads them. A terminal names files of this machine: one of the session's own `/tmp` is read where this machine has none of
/// that name. Blocks: call it from a job.
pub(crate) fn read(
    label: String,
    text: String,
    paths: &[PathBuf],
    sandbox: Option<&SandboxState>,
) -> Dropped {
    let mut note = None;
    let mut meant = |path: &PathBuf| match own_tmp::find(path, sandbox) {
        OwnTmp::Here { at, also: false } => at,
        OwnTmp::Here { at, also: true } => {
            note = Some(format!(
                "{} was read from the machine's /tmp; this session's own /tmp has another of that name: {}",
                path.display(),
                at.display()
            ));
            path.clone()
        }
        OwnTmp::Machine | OwnTmp::Elsewhere => path.clone(),
    };
    let pictures = paths.iter().map(|path| picture(&meant(path))).collect();
    Dropped { note, label, text, pictures }
}

fn picture(path: &Path) -> Result<DroppedPicture, Option<String>> {
    let named = |why: String| Some(format!("{}: {why}", path.display()));
    let meta = std::fs::metadata(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => None,
        _ => named(e.to_string()),
    })?;
    if !meta.is_file() {
        return Err(None);
    }
    if meta.len() > BYTES {
        let size = meta.len() as f64 / 1e6;
        return Err(named(format!("the picture has {size:.1} MB; models take 3.75 MB")));
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile; what is cut here is damaged.
    let file = std::fs::File::open(path).map_err(|e| named(e.to_string()))?;
    file.take(BYTES + 1).read_to_end(&mut bytes).map_err(|e| named(e.to_string()))?;
    let media_type = match image::guess_format(&bytes) {
        Ok(ImageFormat::Png) => "image/png",
        Ok(ImageFormat::Jpeg) => "image/jpeg",
        Ok(ImageFormat::Gif) => "image/gif",
        Ok(ImageFormat::WebP) => "image/webp",
        _ => return Err(named("this is no PNG, JPEG, GIF or WebP picture".into())),
    };
    let damaged = |e: image::ImageError| named(format!("the picture is damaged: {e}"));
    // Before it is decoded: the pixels of a small file may fill the memory.
    let reader = image::ImageReader::new(io::Cursor::new(&bytes)).with_guessed_format();
    let size = reader.map_err(|e| named(e.to_string()))?.into_dimensions();
    let (width, height) = size.map_err(damaged)?;
    if width.max(height) > SIDE {
        return Err(named(format!("the picture has {width}x{height} pixels; models take {SIDE} a side")));
    }
    // A damaged picture would be refused with each later request of the session.
    image::load_from_memory(&bytes).map_err(damaged)?;
    Ok(DroppedPicture { media_type, data: STANDARD.encode(bytes), width, height })
}

/// An absolute path, one below the home folder or a `file:` address, with the name of a picture.
fn path(word: &str) -> Option<PathBuf> {
    let found = if let Some(rest) = word.strip_prefix("file://") {
        // The name of a machine may stand before the path.
        decoded(&rest[rest.find('/')?..])?
    } else if let Some(rest) = word.strip_prefix("~/") {
        std::env::home_dir()?.join(rest)
    } else {
        PathBuf::from(word)
    };
    let ending = found.extension()?.to_str()?;
    (found.is_absolute() && ENDINGS.iter().any(|e| ending.eq_ignore_ascii_case(e))).then_some(found)
}

/// With `%20` and the like as the bytes that they stand for.
fn decoded(text: &str) -> Option<PathBuf> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        match first {
            b'%' => {
                let hex = std::str::from_utf8(more.get(..2)?).ok()?;
                out.push(u8::from_str_radix(hex, 16).ok()?);
                rest = &more[2..];
            }
            byte => out.push(*byte),
        }
    }
    String::from_utf8(out).ok().filter(|path| !path.contains('\0')).map(PathBuf::from)
}

/// Words as a shell has them: with quotes, and with a backslash before blanks. `None`: a quote has no end.
fn words(text: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(chars.next()?),
            (None, c) if c.is_whitespace() => all.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    quote.is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_in_which_terminals_write_dropped_paths_is_read() {
        let home = std::env::home_dir().unwrap();
        let two = "/tmp/a b.png|/tmp/c.JPG";
        for (text, want) in [
            ("/tmp/shot.png", "/tmp/shot.png"),
            ("/tmp/shot.png \n", "/tmp/shot.png"),
            ("'/tmp/a b.png'", "/tmp/a b.png"),
            ("\"/tmp/a b.png\"", "/tmp/a b.png"),
            ("/tmp/a\\ b.png", "/tmp/a b.png"),
            ("/tmp/it\\'s\\ \\(1\\).webp", "/tmp/it's (1).webp"),
            ("'/tmp/it'\\''s.gif'", "/tmp/it's.gif"),
            ("/tmp/a b.png", "/tmp/a b.png"),
            ("file:///tmp/a%20b.png", "/tmp/a b.png"),
            ("file://localhost/tmp/%C3%A4.jpeg", "/tmp/ä.jpeg"),
            ("file:///tmp/a%20b.png\nfile:///tmp/c.JPG\n", two),
            ("'/tmp/a b.png' '/tmp/c.JPG'", two),
            ("/tmp/a\\ b.png /tmp/c.JPG", two),
            ("/tmp/a b.png\n/tmp/c.JPG", two),
        ] {
            let got = paths(text).unwrap_or_else(|| panic!("{text:?}"));
            assert_eq!(got, want.split('|').map(PathBuf::from).collect::<Vec<_>>(), "{text:?}");
        }
        assert_eq!(paths("~/x.png"), Some(vec![home.join("x.png")]));
        for text in [
            "",
            " ",
            "shot.png",
            "./shot.png",
            "/tmp/notes.txt",
            "/tmp/a.png and more",
            "see /tmp/a.png",
            "https://x.y/a.png",
            "file:///tmp/%zz.png",
            "file:///tmp/%0.png",
            "file:///tmp/%00.png",
            "'/tmp/a.png",
            "/tmp/a.png /tmp/b.txt",
            "file://x.png",
        ] {
            assert_eq!(paths(text), None, "{text:?}");
        }
        assert_eq!(paths(&"/tmp/a.png ".repeat(MOST + 1)), None);
    }

    /// CRC-32 as PNG has it.
    fn crc(bytes: &[u8]) -> u32 {
        let step = |c: u32| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
        !bytes.iter().fold(!0, |c, b| (0..8).fold(c ^ u32::from(*b), |c, _| step(c)))
    }

    #[test]
    fn what_is_no_whole_picture_says_why_and_what_is_not_there_says_nothing() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        let mut png = io::Cursor::new(Vec::new());
        image::RgbaImage::new(5, 3).write_to(&mut png, ImageFormat::Png).unwrap();
        let png = png.into_inner();
        std::fs::write(at("whole.png"), &png).unwrap();
        std::fs::write(at("cut.png"), &png[..png.len() - 20]).unwrap();
        std::fs::write(at("text.png"), "words").unwrap();
        std::fs::write(at("large.png"), vec![0; 4_000_000]).unwrap();
        std::fs::create_dir(at("folder.png")).unwrap();
        // A header that says 11,000 x 11,000, without pixels.
        let mut wide = png;
        wide[16..24].copy_from_slice(&[0, 0, 0x2a, 0xf8, 0, 0, 0x2a, 0xf8]);
        let sum = crc(&wide[12..29]);
        wide[29..33].copy_from_slice(&sum.to_be_bytes());
        std::fs::write(at("wide.png"), &wide).unwrap();
        let read = |name: &str| picture(&at(name));
        let whole = read("whole.png").unwrap();
        assert_eq!((whole.media_type, whole.width, whole.height), ("image/png", 5, 3));
        assert!(read("cut.png").unwrap_err().unwrap().contains("damaged"));
        assert!(read("text.png").unwrap_err().unwrap().contains("no PNG"));
        assert!(read("large.png").unwrap_err().unwrap().contains("4.0 MB"));
        assert!(read("wide.png").unwrap_err().unwrap().contains("11000x11000 pixels"));
        assert_eq!(read("folder.png"), Err(None));
        assert_eq!(read("none.png"), Err(None));
    }

    /// A terminal names the machine's file; where only the session has one of that name, it is that one. Both: it is said.
    #[test]
    fn a_dropped_picture_below_tmp_is_the_machines_first_and_the_note_says_where_another_one_is() {
        let own = tempfile::tempdir().unwrap();
        let top = own.path().canonicalize().unwrap();
        let machine = tempfile::Builder::new().prefix("drop-").suffix(".png").tempfile_in("/tmp").unwrap();
        let png = |path: &Path, width| image::RgbaImage::new(width, 3).save(path).unwrap();
        let (both, name) = (machine.path().to_owned(), machine.path().file_name().unwrap());
        let only = Path::new("/tmp").join(format!("only-{}", name.to_string_lossy()));
        png(machine.path(), 1);
        png(&top.join(name), 2);
        png(&top.join(only.file_name().unwrap()), 3);
        let sandbox = SandboxState {
            method: Some("bubblewrap".into()),
            tmp: Some(top.display().to_string()),
            ..SandboxState::default()
        };
        let read = |path: &Path, sandbox| {
            let dropped = read("l".into(), "t".into(), &[path.to_owned()], sandbox);
            (dropped.pictures.map(|all| all[0].width).ok(), dropped.note.is_some())
        };
        assert_eq!(read(&both, Some(&sandbox)), (Some(1), true));
        assert_eq!(read(&only, Some(&sandbox)), (Some(3), false));
        assert_eq!((read(&both, None), read(&only, None)), ((Some(1), false), (None, false)));
    }
}
