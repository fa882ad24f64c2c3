//! The operators of a page as lines of text, in the order in which the page draws them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::file::{File, PageObject};
use super::font::Font;
use super::object::{Dict, Lexer, Object};

/// Depth of drawings in drawings, and of kept states.
const DEPTH: usize = 12;
const STATES: usize = 200;
/// Operands that an operator has at most.
const OPERANDS: usize = 4_000;
/// Fonts that are kept.
const FONTS: usize = 2_000;
/// Bytes of text of one page.
const TEXT: usize = 1 << 20;

/// A transformation of places: `[a b c d e f]`.
type Matrix = [f64; 6];

const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// First `a`, then `b`.
fn product(a: &Matrix, b: &Matrix) -> Matrix {
    [
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
        a[4] * b[0] + a[5] * b[2] + b[4],
        a[4] * b[1] + a[5] * b[3] + b[5],
    ]
}

/// How text is written.
#[derive(Clone)]
struct State {
    place: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    /// Between characters, and added to spaces.
    spacing: [f64; 2],
    /// Horizontal scale.
    scale: f64,
    leading: f64,
}

impl Default for State {
    fn default() -> Self {
        Self { place: IDENTITY, font: None, size: 0.0, spacing: [0.0; 2], scale: 1.0, leading: 0.0 }
    }
}

/// Reads pages of a file.
pub(super) struct Reader<'a> {
    file: &'a File<'a>,
    fonts: HashMap<u32, Rc<Font>>,
    /// Characters without a meaning.
    pub(super) unknown: usize,
    /// Pages that have more text than is kept of one.
    pub(super) cut: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a File<'a>) -> Self {
        Self { file, fonts: HashMap::new(), unknown: 0, cut: 0 }
    }

    /// The text of a page.
    pub(super) fn page(&mut self, page: &PageObject) -> String {
        let contents = match self.file.resolve(page.dict.get("Contents")) {
            Object::Array(parts) => parts,
            Object::Null => Vec::new(),
            one => vec![one],
        };
        let mut bytes = Vec::new();
        for part in &contents {
            bytes.extend(self.file.stream(&self.file.resolve(Some(part))).unwrap_or_default());
            bytes.push(b'\n');
        }
        let mut drawing = Drawing { reader: self, text: String::new(), end: None };
        drawing.run(&bytes, &page.resources, State::default(), 0);
        let text = drawing.text;
        self.cut += usize::from(text.len() > TEXT);
        text
    }

    /// A font by its name. `direct`: the fonts of these resources that are no objects of their own and were read before.
    fn font(
        &mut self,
        name: &str,
        resources: &Dict,
        direct: &mut HashMap<String, Rc<Font>>,
    ) -> Option<Rc<Font>> {
        let fonts = match resources.get("Font") {
            Some(Object::Dict(fonts)) => Cow::Borrowed(fonts),
            other => Cow::Owned(self.file.dict(other)),
        };
        let named = fonts.get(name)?;
        let known = match named {
            Object::Ref(number) => self.fonts.get(number),
            _ => direct.get(name),
        };
        if let Some(font) = known {
            return Some(Rc::clone(font));
        }
        let font = Rc::new(Font::read(&self.file.dict(Some(named)), self.file));
        match named {
            Object::Ref(number) if self.fonts.len() < FONTS => {
                self.fonts.insert(*number, Rc::clone(&font));
            }
            Object::Ref(_) => {}
            _ if direct.len() < FONTS => {
                direct.insert(name.to_owned(), Rc::clone(&font));
            }
            _ => {}
        }
        Some(font)
    }
}

/// The text of one page, while it is drawn.
struct Drawing<'r, 'a> {
    reader: &'r mut Reader<'a>,
    text: String,
    /// Where the last text ended, and its direction and size there.
    end: Option<End>,
}

#[derive(Clone, Copy)]
struct End {
    at: [f64; 2],
    direction: [f64; 2],
    size: f64,
}

/// The matrices of a text object.
struct TextPlace {
    text: Matrix,
    line: Matrix,
}

impl Drawing<'_, '_> {
    fn run(&mut self, bytes: &[u8], resources: &Dict, first: State, depth: usize) {
        let (mut state, mut kept) = (first, Vec::new());
        let mut place = TextPlace { text: IDENTITY, line: IDENTITY };
        let mut lexer = Lexer::content(bytes);
        let mut operands: Vec<Object> = Vec::new();
        let mut direct = HashMap::new();
        while let Some(object) = lexer.next() {
            if !self.reader.file.budget.step(1) || self.text.len() > TEXT {
                return;
            }
            let Object::Word(word) = object else {
                if operands.len() < OPERANDS {
                    operands.push(object);
                }
                continue;
            };
            let number = |at: usize| operands.get(at).and_then(Object::number).unwrap_or(0.0);
            let matrix = || [number(0), number(1), number(2), number(3), number(4), number(5)];
            match word.as_slice() {
                b"q" if kept.len() < STATES => kept.push(state.clone()),
                b"Q" => state = kept.pop().unwrap_or(state),
                b"cm" => state.place = product(&matrix(), &state.place),
                b"BT" => place = TextPlace { text: IDENTITY, line: IDENTITY },
                b"Tf" => {
                    let name = operands.first().and_then(Object::name).unwrap_or_default();
                    state.font = self.reader.font(name, resources, &mut direct);
                    state.size = number(1);
                }
                b"Tc" => state.spacing[0] = number(0),
                b"Tw" => state.spacing[1] = number(0),
                b"Tz" => state.scale = number(0) / 100.0,
                b"TL" => state.leading = number(0),
                b"Tm" => place = TextPlace { text: matrix(), line: matrix() },
                b"Td" => place.move_by(number(0), number(1)),
                b"TD" => {
                    state.leading = -number(1);
                    place.move_by(number(0), number(1));
                }
                b"T*" => place.move_by(0.0, -state.leading),
                b"Tj" | b"TJ" => self.show(operands.first(), &state, &mut place),
                b"'" => {
                    place.move_by(0.0, -state.leading);
                    self.show(operands.first(), &state, &mut place);
                }
                b"\"" => {
                    state.spacing = [number(1), number(0)];
                    place.move_by(0.0, -state.leading);
                    self.show(operands.get(2), &state, &mut place);
                }
                b"Do" if depth < DEPTH => {
                    let name = operands.first().and_then(Object::name).unwrap_or_default();
                    self.form(name, resources, &state, depth);
                }
                // A picture between operators: its bytes are no syntax.
                b"ID" => {
                    let rest = bytes.get(lexer.at..).unwrap_or_default();
                    let end = memchr::memmem::find_iter(rest, b"EI").find(|at| {
                        let around = [at.checked_sub(1).and_then(|n| rest.get(n)), rest.get(at + 2)];
                        around.iter().all(|byte| byte.is_none_or(u8::is_ascii_whitespace))
                    });
                    lexer.at += end.map_or(rest.len(), |at| at + 2);
                }
                _ => {}
            }
            operands.clear();
        }
    }

    /// Text of a drawing that is used by its name.
    fn form(&mut self, name: &str, resources: &Dict, state: &State, depth: usize) {
        let file = self.reader.file;
        let drawings = match resources.get("XObject") {
            Some(Object::Dict(drawings)) => Cow::Borrowed(drawings),
            other => Cow::Owned(file.dict(other)),
        };
        let object = file.resolve(drawings.get(name));
        let Some(dict) = object.dict() else { return };
        if dict.get("Subtype").and_then(Object::name) != Some("Form") {
            return;
        }
        let Some(bytes) = file.stream(&object) else { return };
        let mut inner = state.clone();
        if let [a, b, c, d, e, f] = file.resolve(dict.get("Matrix")).array() {
            let matrix = [a, b, c, d, e, f].map(|n| file.number(Some(n)).unwrap_or(0.0));
            inner.place = product(&matrix, &inner.place);
        }
        match dict.get("Resources") {
            Some(own) => self.run(&bytes, &file.dict(Some(own)), inner, depth + 1),
            None => self.run(&bytes, resources, inner, depth + 1),
        }
    }

    /// Writes a string, or strings with distances between them.
    fn show(&mut self, shown: Option<&Object>, state: &State, place: &mut TextPlace) {
        let one = std::slice::from_ref(shown.unwrap_or(&Object::Null));
        let items = if let Some(Object::Array(items)) = shown { items.as_slice() } else { one };
        for item in items {
            match item {
                Object::Number(n) => place.advance(-n / 1000.0 * state.size * state.scale),
                Object::Text(bytes) => self.string(bytes, state, place),
                _ => {}
            }
        }
    }

    fn string(&mut self, bytes: &[u8], state: &State, place: &mut TextPlace) {
        let Some(font) = state.font.clone() else { return };
        let mut first = true;
        for glyph in font.glyphs(bytes) {
            let length = glyph.text.as_ref().map_or(0, String::len);
            if !self.reader.file.budget.step(1 + length / 16) || self.text.len() > TEXT {
                return;
            }
            let text = glyph.text.unwrap_or_else(|| {
                self.reader.unknown += 1;
                '\u{fffd}'.to_string()
            });
            let all = product(&place.text, &state.place);
            if first && !text.trim().is_empty() {
                self.separate(&all, state);
                first = false;
            }
            if !(text == " " && (self.text.is_empty() || self.text.ends_with([' ', '\n']))) {
                self.text.push_str(&text);
            }
            let extra = state.spacing[0] + if glyph.space { state.spacing[1] } else { 0.0 };
            place.advance((glyph.width * state.size + extra) * state.scale);
            if !text.trim().is_empty() {
                let all = product(&place.text, &state.place);
                self.end = Some(End::of(&all, state));
            }
        }
    }

    /// A line end or a space, when the next text is in another line or apart from the last one.
    fn separate(&mut self, all: &Matrix, state: &State) {
        let Some(end) = self.end else { return };
        let now = End::of(all, state);
        let (x, y) = (now.at[0] - end.at[0], now.at[1] - end.at[1]);
        let along = x * end.direction[0] + y * end.direction[1];
        let across = (x * end.direction[1] - y * end.direction[0]).abs();
        let size = end.size.max(now.size).max(0.01);
        let turned = now.direction[0] * end.direction[0] + now.direction[1] * end.direction[1] < 0.9;
        if turned || across > size * 0.6 || along < -size * 1.5 {
            let line = self.text.trim_end_matches(' ').len();
            self.text.truncate(line);
            self.text.push_str(if across > size * 2.2 { "\n\n" } else { "\n" });
        } else if along > size * 0.15 && !self.text.ends_with([' ', '\n']) {
            self.text.push_str(if along > size * 2.0 { "  " } else { " " });
        }
    }
}

impl End {
    fn of(all: &Matrix, state: &State) -> Self {
        let length = all[0].hypot(all[1]);
        let direction = if length > 0.0 { [all[0] / length, all[1] / length] } else { [1.0, 0.0] };
        Self { at: [all[4], all[5]], direction, size: (all[2].hypot(all[3]) * state.size).abs() }
    }
}

impl TextPlace {
    fn move_by(&mut self, x: f64, y: f64) {
        self.line = product(&[1.0, 0.0, 0.0, 1.0, x, y], &self.line);
        self.text = self.line;
    }

    fn advance(&mut self, x: f64) {
        self.text = product(&[1.0, 0.0, 0.0, 1.0, x, 0.0], &self.text);
    }
}
