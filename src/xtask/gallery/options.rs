//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use tiller_tui::gallery::{Look, SCENES, SIZES, Scene};
use tiller_tui::theme::Depth;

pub(crate) const USAGE: &str = "\
usage: cargo xtask gallery DIR [OPTIONS]
  --scene NAME       only this scene (may be repeated)
  --theme NAME       only this theme, or all of them: all (may be repeated)
  --size WxH         only this size (may be repeated)
  --colours N        true, 256 or 16 colours, in place of what the theme is made for
  --scale N          pixels of a line: 1 (a cell is 9 by 19 pixels), 2, ...
  --text             the cells as plain text too
  --list             print scenes and themes
  --contrast         print how well each role is read on each background, instead of pictures
  --story FILE.png   write an animated story, instead of pictures; in the first theme and size
";

/// Themes that are drawn unless others are named; those that are not shipped are left out.
const THEMES: &[&str] = &[
    "tiller-dark",
    "tiller-light",
    "ansi",
    "ansi-light",
    "catppuccin-mocha",
    "catppuccin-latte",
    "gruvbox-dark",
    "high-contrast-dark",
];

/// What is to be drawn, and where it goes.
#[derive(Default)]
pub(crate) struct Options {
    /// `None`: nothing is written.
    pub(crate) folder: Option<PathBuf>,
    /// Empty: all.
    pub(crate) scenes: Vec<&'static Scene>,
    pub(crate) looks: Vec<Look>,
    pub(crate) sizes: Vec<(u16, u16)>,
    pub(crate) scale: u32,
    pub(crate) text: bool,
    pub(crate) list: bool,
    pub(crate) contrast: bool,
    /// Where the animated story goes.
    pub(crate) story: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments.
    ///
    /// # Errors
    /// When an argument is unknown, or names what there is not.
    pub(crate) fn read(args: impl Iterator<Item = String>) -> Result<Self> {
        let mut out = Self { scale: 1, ..Self::default() };
        let mut depth = None;
        let mut args = args;
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "--scene" => out.scenes.push(scene(&value()?)?),
                "--theme" => match value()?.as_str() {
                    "all" => out.looks.extend(Look::all()),
                    name => out
                        .looks
                        .push(Look::named(name).with_context(|| format!("no theme {name}; see --list"))?),
                },
                "--size" => out.sizes.push(size(&value()?)?),
                "--colours" => depth = Some(colours(&value()?)?),
                "--scale" => {
                    out.scale =
                        value()?.parse().ok().filter(|n| (1..=8).contains(n)).context("--scale is 1 to 8")?
                }
                "--text" => out.text = true,
                "--contrast" => out.contrast = true,
                "--story" => out.story = Some(value()?.into()),
                "--list" => out.list = true,
                "--help" | "-h" => bail!("{USAGE}"),
                name if name.starts_with('-') => bail!("unknown option {name}\n{USAGE}"),
                folder if out.folder.is_none() => out.folder = Some(folder.into()),
                other => bail!("one folder only, not {other} as well\n{USAGE}"),
            }
        }
        if out.scenes.is_empty() {
            out.scenes = SCENES.iter().collect();
        }
        if out.looks.is_empty() {
            out.looks = THEMES.iter().filter_map(|name| Look::named(name)).collect();
        }
        if out.sizes.is_empty() {
            out.sizes = SIZES.to_vec();
        }
        if let Some(depth) = depth {
            out.looks = out.looks.iter().map(|l| l.at(depth)).collect();
        }
        Ok(out)
    }
}

fn scene(name: &str) -> Result<&'static Scene> {
    SCENES.iter().find(|s| s.name == name).with_context(|| format!("no scene {name}; see --list"))
}

fn size(text: &str) -> Result<(u16, u16)> {
    let (w, h) = text.split_once('x').context("--size is WIDTHxHEIGHT, for instance 118x32")?;
    let (w, h) = (w.parse()?, h.parse()?);
    if !(20..=500).contains(&w) || !(8..=200).contains(&h) {
        bail!("--size is 20x8 to 500x200");
    }
    Ok((w, h))
}

fn colours(text: &str) -> Result<Depth> {
    Ok(match text {
        "true" => Depth::True,
        "256" => Depth::TwoFiftySix,
        "16" => Depth::Sixteen,
        "none" => Depth::Mono,
        _ => bail!("--colours is true, 256, 16 or none"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options> {
        Options::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn few_or_all_are_drawn() {
        let all = read("out").unwrap();
        assert!(all.scenes.len() >= 24 && all.looks.len() >= 6 && all.sizes == SIZES);
        assert!(all.looks.iter().any(|l| l.name == "ansi"));
        let few = read("out --scene turn --theme ansi --size 100x30 --colours 256 --text").unwrap();
        assert_eq!((few.scenes.len(), few.looks.len(), few.sizes.as_slice()), (1, 1, &[(100, 30)][..]));
        assert!(few.text && few.looks[0].depth == Depth::TwoFiftySix);
    }

    #[test]
    fn what_there_is_not_is_an_error() {
        for line in
            ["--scene none", "--theme none", "--size 5", "--size 1x1", "--scale 0", "--no", "a b", "--theme"]
        {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
