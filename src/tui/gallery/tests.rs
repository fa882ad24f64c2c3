//! Every scene in every theme at every size.

use super::*;

/// Nothing panics, everything that is drawn lies on the screen, and no scene is blank or out of date.
#[test]
fn every_scene_is_drawn_in_every_theme_at_every_size() {
    let looks = Look::all();
    let check = |size: (u16, u16)| {
        for scene in SCENES {
            let at = format!("{} at {}x{}", scene.name, size.0, size.1);
            let mut first = String::new();
            let mut seen = 0;
            let drawn = draw_looks(scene, size, &looks, &mut |look, picture| {
                let area = picture.cells.area;
                assert_eq!((area.width, area.height), size, "{at} in {}", look.name);
                assert!(picture.cursor.is_none_or(|p| area.contains(p)), "{at} in {}", look.name);
                if seen == 0 {
                    first = text(&picture.cells);
                } else if seen == 1 && !scene.names_theme {
                    assert_eq!(text(&picture.cells), first, "{at}: another theme says something else");
                }
                seen += 1;
            });
            drawn.expect(&at);
            assert_eq!(seen, looks.len());
            assert!(first.split_whitespace().count() > 8, "{at} is nearly blank:\n{first}");
        }
    };
    let check = &check;
    std::thread::scope(|threads| {
        for size in SIZES {
            threads.spawn(move || check(size));
        }
    });
}

#[test]
fn a_scene_gives_the_same_picture_twice() {
    let look = Look::named("catppuccin-mocha").expect("a shipped theme");
    for scene in SCENES {
        let [one, two] = [(); 2].map(|()| draw(scene, (118, 32), &look));
        assert!(one.is_ok() && one == two, "{}: two pictures differ", scene.name);
    }
}

#[test]
fn names_are_unique_and_fit_for_files() {
    let mut names: Vec<&str> = SCENES.iter().map(|s| s.name).collect();
    assert!(names.iter().all(|n| n.chars().all(|c| c.is_ascii_lowercase() || c == '_')), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SCENES.len());
}
