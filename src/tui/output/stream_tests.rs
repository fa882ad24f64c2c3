//! Bytes for each token of a reply that streams at 200 tokens a second, frames as far apart as the loop draws them, with
//! the panels of a turn beside the text and a terminal without margins at the sides.

use std::time::Duration;

use tiller_config::schema::Ui;
use tiller_protocol::event::{ReplyEvent, TurnEvent};
use tiller_protocol::{AgentId, AgentState, AgentView, EventBody, ModelRef, Time, Usage};

use super::tests::{shows, terminal};
use super::*;
use crate::app::msg::Msg;
use crate::app::state::Owner;
use crate::model::conversation::script::Script;
use crate::panel::View;
use crate::panel::conversation::ConversationPanel;
use crate::testing::{Robot, START};
use crate::text::highlight;

/// Tokens of a reply, and time between two.
const TOKENS: usize = 1000;
const PACE: Duration = Duration::from_millis(5);

/// Least time between two frames.
const FRAME: Duration = Duration::from_millis(16);

/// Words that follow each other in no order that a person would see.
struct Words(u64);

impl Words {
    const ALL: &str = "the a server request parses buffer each frame token stream when cell state writes returns error \
        value queue handle loop reads cache table index render layout scroll input event cursor prefix session";

    fn number(&mut self, below: usize) -> usize {
        // Constants of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn word(&mut self) -> &'static str {
        let all: Vec<&str> = Self::ALL.split(' ').filter(|w| !w.is_empty()).collect();
        all[self.number(all.len())]
    }

    fn words(&mut self, n: usize) -> String {
        let all: Vec<&str> = (0..n).map(|_| self.word()).collect();
        all.join(" ")
    }
}

/// Blanks with up to `letters` letters behind them, as tokens are.
fn tokens(text: &str, letters: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut token = String::new();
    for c in text.chars() {
        let count = token.chars().filter(|c| !c.is_whitespace()).count();
        if count > 0 && (c.is_whitespace() || count == letters) {
            all.push(std::mem::take(&mut token));
        }
        token.push(c);
    }
    all.push(token);
    all.truncate(TOKENS);
    assert_eq!(all.len(), TOKENS, "the text is too short");
    all
}

/// Paragraphs of sentences.
fn english() -> Vec<String> {
    let mut words = Words(7);
    let mut text = String::new();
    for n in 0..130 {
        let many = 6 + words.number(9);
        let sentence = words.words(many);
        text.push_str(&format!("{}{}. ", sentence[..1].to_uppercase(), &sentence[1..]));
        text.push_str(if n % 4 == 3 { "\n\n" } else { "" });
    }
    tokens(&text, 5)
}

/// Headings, lists and code in turn.
fn mixed() -> Vec<String> {
    let mut words = Words(11);
    let mut text = String::new();
    for k in 0..12 {
        text.push_str(&format!("## Section {k}: {}\n\n", words.words(3)));
        (0..3).for_each(|_| text.push_str(&format!("{}.\n", words.words(7))));
        text.push('\n');
        for _ in 0..4 {
            let (bold, middle, code) = (words.word(), words.words(3), words.word());
            text.push_str(&format!("- **{bold}** {middle} `{code}()`\n"));
        }
        text.push_str(&format!("\n```rust\n{}```\n\n", code_lines(&mut words, 8)));
    }
    tokens(&text, 5)
}

fn code_lines(words: &mut Words, many: usize) -> String {
    let line = |i: usize, words: &mut Words| match i % 4 {
        0 => format!("fn step_{i}() -> u32 {{\n"),
        3 => "}\n".to_owned(),
        _ => {
            let (a, b) = (words.word(), words.word());
            format!("    let {a}_{i} = {b}({i}, \"{a}\");\n")
        }
    };
    (0..many).map(|i| line(i, words)).collect()
}

/// One long block of code.
fn code() -> Vec<String> {
    let mut words = Words(13);
    tokens(&format!("```rust\n{}```\n\n", code_lines(&mut words, 300)), 5)
}

/// Paragraphs of Chinese; a token is two ideographs.
fn cjk() -> Vec<String> {
    const ALL: &str = "服务器请求解析缓冲区每个帧的流在单元状态写入时返回错误值队列处理循环读取缓存表索引渲染布局滚动输入事件光标";
    let mut words = Words(17);
    let all: Vec<char> = ALL.chars().collect();
    let mut text = String::new();
    for n in 0..200 {
        (0..12 + words.number(9)).for_each(|_| text.push(all[words.number(all.len())]));
        text.push_str(if n % 5 == 4 { "。\n\n" } else { "，" });
    }
    tokens(&text, 2)
}

/// A terminal that shows the app's frames.
struct Screen {
    buf: Buffer,
    encoder: Encoder,
    vt: vt100::Parser,
    /// Bytes of each frame that has some.
    frames: Vec<String>,
}

impl Screen {
    fn new(area: Rect) -> Self {
        let encoder = Encoder { erases: true, sync: Some(true), ..Encoder::default() };
        let vt = terminal(area.height, area.width);
        Self { buf: Buffer::empty(area), encoder, vt, frames: Vec::new() }
    }

    /// Draws as the loop does, until the colours of code are there.
    fn draw(&mut self, r: &mut Robot) {
        loop {
            if r.app.ticks() {
                r.app.update(Msg::Tick);
            }
            let cursor = r.app.draw(&mut self.buf);
            self.encoder.text = r.app.text_columns();
            let mut out = String::new();
            self.encoder.frame(&self.buf, r.app.drawn(), cursor, &mut out);
            self.vt.process(out.as_bytes());
            self.frames.extend(Some(out).filter(|out| !out.is_empty()));
            let panel: &dyn std::any::Any = r.app.panel(Owner::View(View::Conversation)).unwrap();
            if !panel.downcast_ref::<ConversationPanel>().unwrap().waits_for_colours() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(1));
            r.app.update(Msg::Tick);
            r.app.redraw();
        }
    }
}

/// Streams a reply into a turn: the bytes of each frame. What the terminal shows in the end is what was drawn.
fn stream(width: u16, height: u16, tokens: &[String]) -> Vec<String> {
    let ui = Ui { theme: "tiller-dark".into(), ..Ui::default() };
    let mut r = Robot::with(width, height, ui);
    let mut s = Script { now: START.millis(), ..Script::new() };
    let mut opened = s.snapshot(Vec::new(), 0, false);
    if let EventBody::Reply(reply) = &mut opened.body
        && let ReplyEvent::SnapshotReply { snapshot } = reply.as_mut()
    {
        snapshot.session.project = "/home/ann/work".into();
        snapshot.agents = vec![main_agent()];
    }
    r.msg(Msg::Engine(Box::new(opened)));
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    let node = s.user("STREAM n=1000 rate=200 id=k1");
    let added = s.added(node);
    r.msg(Msg::Engine(Box::new(added)));
    assert!(r.screen().contains("Session tree") && r.screen().contains("Agents"), "{}", r.screen());
    let mut screen = Screen::new(r.buffer().area);
    r.app.redraw();
    screen.draw(&mut r);
    screen.frames.clear();
    let mut waited = Duration::ZERO;
    for token in tokens {
        r.clock.advance(PACE);
        waited += PACE;
        let e = s.event(EventBody::Turn(TurnEvent::TextDelta { text: token.clone() }));
        r.app.update(Msg::Engine(Box::new(e)));
        if waited >= FRAME {
            waited -= FRAME;
            screen.draw(&mut r);
        }
    }
    screen.draw(&mut r);
    shows(&screen.vt, &screen.buf);
    screen.frames
}

fn main_agent() -> AgentView {
    AgentView {
        id: AgentId::main(),
        parent: None,
        label: "main".into(),
        state: AgentState::Running,
        act: "".into(),
        model: ModelRef("vendor/mock".into()),
        usage: Usage::default(),
        cost: None,
        context: 0,
        window: Some(200_000),
        since: Some(Time(START.0)),
        child: None,
    }
}

/// Sizes of the terminal.
const SIZES: [(u16, u16); 2] = [(118, 32), (120, 40)];

#[test]
fn k_a_token_of_a_streamed_reply_takes_few_bytes() {
    // The first block of a language would else take so long that a part of it stays plain.
    let tables = highlight::Syntaxes::shared();
    let _ = tables.colour_within(Duration::MAX, "rust", &[code_lines(&mut Words(1), 40)]);
    // Most bytes for each token, in each size.
    let replies = [
        ("English", english(), [9.6, 9.2]),
        ("mixed", mixed(), [18.6, 17.8]),
        ("code", code(), [15.0, 14.1]),
        ("CJK", cjk(), [12.0, 11.4]),
    ];
    let mut over = Vec::new();
    for (name, tokens, limits) in &replies {
        for ((width, height), limit) in SIZES.into_iter().zip(limits) {
            let frames = stream(width, height, tokens);
            if let Ok(folder) = std::env::var("STREAMS") {
                std::fs::write(format!("{folder}/{name}-{width}"), frames.join("\n<<>>")).unwrap();
            }
            let bytes = frames.iter().map(String::len).sum::<usize>() as f64 / TOKENS as f64;
            println!("{name} {width}x{height}: {bytes} bytes a token in {} frames", frames.len());
            if bytes > *limit {
                over.push(format!("{name} at {width}x{height}: {bytes} bytes a token, more than {limit}"));
            }
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}
