//! Cells as plain sentences, for the linear mode: labelled, tables read out, nothing by colour or place.

use tiller_protocol::Origin;
use tiller_protocol::tool::Display;

use crate::cell::{end, summary, tool};
use crate::model::conversation::{Body, Cell, ToolState};
use crate::text::clean;
use crate::text::markdown::{Doc, Opts};
use crate::text::sheet::Stack;
use crate::widget::diff::{self, DiffLayout, Uncoloured};

/// Lines of output that are read out.
const OUTPUT: usize = 20;

/// The lines of a finished cell, without control characters. `columns`: wrap there; 0: never.
pub fn plain_lines(cell: &Cell, columns: usize) -> Vec<String> {
    let columns = if columns == 0 { usize::from(u16::MAX) } else { columns };
    let labelled = |label: &str, text: &str| -> Vec<String> {
        let mut out = vec![label.to_owned()];
        out.extend(clean::lines(text).map(|l| clean::plain(l).into_owned()));
        out
    };
    match &cell.body {
        Body::User { text, origin, .. } => labelled(
            match origin {
                Origin::Prompt => "You:",
                Origin::Steer => "You, during the turn:",
                Origin::Shell => "Your command:",
                Origin::Engine => "Note for the model:",
                Origin::Task => "Task from Tiller:",
            },
            text,
        ),
        Body::Reply { text } => {
            let doc = Doc::parse(text, Opts { columns, ascii: true, tables_as_text: true });
            let mut out = vec!["Model:".to_owned()];
            out.extend(rows(doc.stack()));
            out
        }
        Body::Thinking { seconds, .. } => {
            vec![format!(
                "The model thought{}.",
                seconds.map_or(String::new(), |s| format!(" for {}", tool::seconds(s)))
            )]
        }
        Body::Tool(t) => {
            let (verb, target) = tool::whole(t);
            let (size, time) = tool::measure(t, cell.time);
            let state = match t.state {
                _ if t.asked.is_some() => "needs you",
                ToolState::Begun | ToolState::Waiting | ToolState::Running => "started",
                ToolState::Done(o) if o.ok() => "done",
                ToolState::Done(_) => "failed",
                ToolState::Lost => "no result",
            };
            let mut said: Vec<&str> = [state, &size, &time].into_iter().filter(|s| !s.is_empty()).collect();
            said.dedup();
            let said = said.join(", ");
            let mut out = vec![format!("Tool {verb} {target}: {said}.")];
            match &t.display {
                Some(Display::Diff { files }) => {
                    for f in files {
                        out.push(format!(
                            "File {}: {} lines added, {} removed.",
                            clean::plain(&f.path),
                            f.added,
                            f.removed
                        ));
                        out.extend(
                            diff::body(f, DiffLayout::new(columns, true).unified(), &mut Uncoloured)
                                .lines
                                .iter()
                                .map(|l| format!("{}{}", l.first.text, l.text())),
                        );
                    }
                }
                _ if matches!(t.state, ToolState::Done(o) if !o.ok()) => {
                    let lines: Vec<&str> = clean::lines(t.output.text()).filter(|l| !l.is_empty()).collect();
                    let from = lines.len().saturating_sub(OUTPUT);
                    out.extend(lines[from..].iter().map(|l| clean::plain(l).into_owned()));
                }
                _ => {}
            }
            out
        }
        Body::Summary { summary, tokens: Some((before, after)), .. } => labelled(
            &format!(
                "The conversation was compacted from {} to {} tokens:",
                summary::thousands(*before),
                summary::thousands(*after)
            ),
            summary,
        ),
        Body::Summary { summary, tokens: None, .. } => labelled("Summary of another branch:", summary),
        Body::Checkpoint { name } => vec![format!("Checkpoint {}.", clean::plain(name))],
        Body::Note { text } => labelled("Note:", text),
        Body::NotLoaded { entries } => vec![format!("({})", super::note::not_loaded(*entries))],
        Body::Shell { line, output, exit, shared, .. } => {
            let mut out = labelled(&format!("Your command {}:", clean::plain(line)), output.text());
            if let Some(code) = exit.filter(|c| *c != 0) {
                out.push(format!("Exit code {code}."));
            }
            if !shared {
                out.push("Private: the model cannot see it.".into());
            }
            out
        }
        Body::Notice(n) => {
            let mut out = labelled("Problem:", &n.message);
            out.extend(n.hints.iter().map(|h| format!("What to do: {}", clean::plain(h))));
            out
        }
        Body::Demo => vec!["Demo: a script, not a language model.".into()],
        Body::Finished(_) => Vec::new(),
        Body::End(e) => vec![format!("{}.", end::words(e))],
    }
}

/// Markdown as lines to be read out: tables as sentences, no marks for bold and the like.
pub(crate) fn spoken(markdown: &str) -> String {
    let opts = Opts { columns: usize::from(u16::MAX), ascii: true, tables_as_text: true };
    rows(Doc::parse(markdown, opts).stack()).collect::<Vec<_>>().join("\n")
}

/// Every row of a stack as text.
fn rows(stack: &Stack) -> impl Iterator<Item = String> + '_ {
    (0..stack.rows()).filter_map(|n| {
        let (_, line, row) = stack.row(n)?;
        let gutter = if row.is_first() { &line.first } else { &line.rest };
        let text = line.text().get(row.start as usize..row.end as usize)?;
        Some(format!("{}{text}", gutter.text).trim_end().to_owned())
    })
}
