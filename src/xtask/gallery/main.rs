//! Writes the scenes of `tiller_tui::gallery` as pictures: `cargo xtask gallery DIR`.

mod animate;
mod figures;
mod font;
mod options;
mod page;
mod raster;
mod shapes;

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use tiller_tui::gallery::{self, Look, Picture, SCENES, SIZES, Scene};

use crate::animate::Animation;
use crate::options::Options;
use crate::raster::{Image, Raster};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool without a screen")]
fn main() -> ExitCode {
    match run() {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("gallery: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the command line says; the text to print.
fn run() -> Result<String> {
    let options = Options::read(std::env::args().skip(1))?;
    if options.list {
        return Ok(list());
    }
    if options.contrast {
        return figures::table(&options.looks);
    }
    if let Some(file) = &options.story {
        return story(file, &options);
    }
    let folder = options.folder.as_deref().ok_or_else(|| anyhow!("{}", options::USAGE))?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let jobs: Vec<(&Scene, (u16, u16))> =
        options.scenes.iter().flat_map(|scene| options.sizes.iter().map(|size| (*scene, *size))).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|n| {
                let (jobs, options) = (&jobs, &options);
                scope.spawn(move || -> Result<()> {
                    let mut raster = Raster::new(options.scale)?;
                    for (scene, size) in jobs.iter().skip(n).step_by(workers) {
                        write(folder, scene, *size, options, &mut raster)?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|t| t.join().map_err(|_| anyhow!("a thread panicked"))?)
    })?;
    let looks: Vec<String> = options.looks.iter().map(|l| l.name.clone()).collect();
    let page = folder.join("gallery.html");
    std::fs::write(&page, page::page(&options.scenes, &looks, &options.sizes))?;
    Ok(format!("{} pictures, {}", jobs.len() * looks.len(), page.display()))
}

/// Writes the animated story, at 118x32 unless a size was given.
fn story(file: &Path, options: &Options) -> Result<String> {
    let look = options.looks.first().ok_or_else(|| anyhow!("no theme"))?;
    let size = options.sizes.first().copied().filter(|_| options.sizes.len() == 1).unwrap_or(SIZES[1]);
    let mut raster = Raster::new(options.scale)?;
    let mut animation = Animation::default();
    let mut take = |picture: &Picture, time| animation.add(raster.draw(picture, look), time);
    gallery::film(size, look, &mut take).map_err(|why| anyhow!(why))?;
    animation.write(file)?;
    let (frames, time) = animation.length();
    Ok(format!("{frames} frames, {:.1} s, {}", time.as_secs_f64(), file.display()))
}

/// Scenes and themes.
fn list() -> String {
    let scenes = SCENES.iter().map(|s| format!("  {:20} {}\n", s.name, s.title));
    let looks = Look::all().into_iter().map(|l| format!("  {}\n", l.name));
    format!("scenes:\n{}themes:\n{}", scenes.collect::<String>(), looks.collect::<String>())
}

/// Writes one scene at one size in every theme.
fn write(
    folder: &Path,
    scene: &Scene,
    size: (u16, u16),
    options: &Options,
    raster: &mut Raster,
) -> Result<()> {
    let mut done = Ok(());
    let drawn = gallery::draw_looks(scene, size, &options.looks, &mut |look, picture| {
        let name = format!("{}_{}_{}x{}", scene.name, look.name, size.0, size.1);
        let mut one = || -> Result<()> {
            png(&folder.join(&name).with_extension("png"), &raster.draw(picture, look))?;
            if options.text {
                std::fs::write(folder.join(&name).with_extension("txt"), gallery::text(&picture.cells))?;
            }
            Ok(())
        };
        if done.is_ok() {
            done = one();
        }
    });
    drawn.map_err(|why| anyhow!(why))?;
    done
}

/// Writes a picture.
fn png(file: &Path, image: &Image) -> Result<()> {
    let out = BufWriter::new(File::create(file).with_context(|| file.display().to_string())?);
    let mut encoder = png::Encoder::new(out, image.width, image.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Fast);
    encoder.write_header()?.write_image_data(&image.pixels)?;
    Ok(())
}
