//! Programs that stay: names are made in their place, protected ones never, however fast the arguments of a call change.

use tiller_tool::shell::ForkLimit;

use crate::confine::Method;
use crate::confinement::Confinement;
use crate::network::Servers;
use crate::policy::Profile;
use crate::testing::{Place, methods};

fn supervised() -> Vec<Method> {
    if Confinement::find().notification {
        return methods();
    }
    println!("skipped: this kernel has no user notification");
    Vec::new()
}

/// Runs `script` as a program that stays.
fn run(place: &Place, method: Method, script: &str) -> std::process::Output {
    let confined = place.confined(Profile::Workspace, method);
    place.start(confined.staying(
        place.launch(script),
        &ForkLimit::default(),
        &Servers::default(),
        &place.top.join("kept"),
    ))
}

fn words(out: &std::process::Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

#[test]
fn work_is_done_as_the_kernel_does_it() {
    for method in supervised() {
        for script in [
            "umask 027; echo x > f; mkdir d; [ \"$(stat -c %a f) $(stat -c %a d)\" = '640 750' ]",
            "umask 000; echo x > f; mkdir d; [ \"$(stat -c %a f) $(stat -c %a d)\" = '666 777' ]",
            "echo a > f; echo b >> f; [ \"$(cat f)\" = \"a\nb\" ] && : > f && [ ! -s f ]",
            "ln -s f l && echo x > l && [ \"$(cat f)\" = x ] && ln f g && [ \"$(cat g)\" = x ]",
            "ln -s nowhere/f l; ! echo x > l 2>/dev/null",
            "set -C; echo x > f; ! (echo y > f) 2>/dev/null && [ \"$(cat f)\" = x ]",
            "echo x > /dev/null && echo x > /dev/stderr && echo x > /proc/self/fd/2 && echo x > $TMPDIR/f",
            "mkfifo p && (cat p > out & echo through > p; wait) && [ \"$(cat out)\" = through ]",
            "mkfifo p; (sleep 0.2; cat p > out) & exec 3>p; sh -c 'echo through >&3'; exec 3>&-; wait; \
             [ \"$(cat out)\" = through ]",
            "echo x > f && ln f g && ln g h && mkdir c && ln f c/f && cp -al c d && [ \"$(cat h)\" = x ]",
            "umask 002; mkdir s && chmod g+s s && mkdir s/d && [ \"$(stat -c %a s/d)\" = 2775 ]",
            "exec 9</etc/passwd; perl -e 'use Fcntl; sysopen(F, \"/etc/passwd\", O_RDONLY|O_CREAT) or exit 1'",
            "for i in $(seq 60); do echo x > f$i; done; rm f*",
            "mkdir -p a/b && cd a/b && echo x > ../../f && touch ../c && cd .. && rm c && mv b d",
            "exec 3<>f; echo x >&3; [ \"$(cat f)\" = x ]; cd d 2>/dev/null || mkdir d && cp f d/ && rm -r d f",
            "echo 123456 > f && truncate -s 3 f && [ \"$(cat f)\" = 123 ]",
            "perl -e 'use Fcntl; sysopen(F, \"f\", O_RDWR|O_CREAT|O_EXCL, 0600) or exit 1; \
             !sysopen(G, \"f\", O_RDWR|O_CREAT|O_EXCL) && $!{EEXIST} or exit 2; \
             !sysopen(G, \"..\", O_RDWR) && $!{EISDIR} or exit 3; \
             !sysopen(G, \"no/f\", O_RDWR|O_CREAT) && $!{ENOENT} or exit 4; \
             !sysopen(G, \"f/f\", O_RDWR|O_CREAT) && $!{ENOTDIR} or exit 5'",
            "python3 -c 'import ctypes, os; f = os.open(\".\", os.O_TMPFILE | os.O_WRONLY); os.write(f, b\"x\"); \
             link = ctypes.CDLL(None).linkat(-100, b\"/proc/self/fd/%d\" % f, -100, b\"named\", 0x400); \
             assert link == 0 and open(\"named\").read() == \"x\"'",
        ] {
            let place = Place::new();
            let out = run(&place, method, script);
            assert!(out.status.success(), "{method:?}: {script}: {}", words(&out));
        }
    }
}

#[test]
fn x24_protected_names_do_not_appear_in_any_way() {
    for method in supervised() {
        for script in [
            "echo evil > .envrc",
            "mkdir .tiller",
            "mkdir -p .claude && echo evil > .claude/settings.json",
            "echo evil > s; ln s .envrc",
            "ln -s s .envrc",
            "mkdir evil; echo evil > evil/settings.json; ln -s evil .claude",
            "mkdir evil; echo evil > evil/settings.json; mv evil .claude",
            "rm -r .git; mkdir -p evil/hooks; echo evil > evil/hooks/pre-commit; echo 'gitdir: evil' > .git",
            "echo 'gitdir: evil' > f; mv f .git",
            "echo evil > f; ln f .claude",
            "echo evil > .git/hooks/pre-commit",
            "echo evil >> .git/config",
            "cd .git; cp config c; echo evil >> c; mv c config",
            "ln -s .git g; echo evil > g/hooks/pre-commit",
            "ln -s ../.envrc way 2>/dev/null; mkdir d; ln -s ../.envrc d/way; echo evil > d/way",
            "mkdir d; cd d; echo evil > ../.mcp.json",
            "mkfifo .mcp.json",
            "perl -e 'syscall(257, -100, \".mcp.json\", 0100 | 1, 0600) >= 0 or exit 1'",
            "echo evil > /proc/self/cwd/.envrc",
            "echo evil > ../outside/new",
            "echo evil >> ../outside/old",
            "ln ../outside/old here && echo evil > here",
            "ln -s ../outside way; echo evil > way/new",
        ] {
            let place = Place::new();
            let out = run(&place, method, script);
            let there = |name: &str| place.top.join("work").join(name).symlink_metadata().is_ok();
            assert!(!place.top.join("work/.git").is_file(), "{method:?}: {script}");
            for name in [".envrc", ".mcp.json", ".tiller", ".claude/settings.json", ".git/hooks/pre-commit"] {
                assert!(!there(name), "{method:?}: {script}: {name}: {}", words(&out));
            }
            let text = |name: &str| std::fs::read_to_string(place.top.join(name)).unwrap_or_default();
            assert_eq!(text("work/.git/config"), "[core]\n", "{method:?}: {script}");
            assert_eq!(text("outside/old"), "old", "{method:?}: {script}");
            assert!(!place.top.join("outside/new").exists(), "{method:?}: {script}");
        }
    }
}

/// One thread changes the path of a call while another one makes it: what is judged is what is made.
#[test]
fn x24_a_path_that_changes_while_it_is_judged_makes_no_protected_name() {
    let script = r#"
import ctypes, threading, time
libc = ctypes.CDLL(None, use_errno=True)
path = ctypes.create_string_buffer(b"harmless", 16)
stop = False
def change():
    while not stop:
        path.value = b"harmless"
        path.value = b".envrc"
threading.Thread(target=change, daemon=True).start()
made = 0
for _ in range(2000):
    fd = libc.open(path, 0o101, 0o600)
    if fd >= 0:
        made += 1
        libc.close(fd)
stop = True
print("made", made > 0)
"#;
    for method in supervised() {
        let place = Place::new();
        std::fs::write(place.top.join("work/race.py"), script).unwrap();
        let out = run(&place, method, "exec python3 race.py");
        assert!(words(&out).contains("made True"), "{method:?}: {}", words(&out));
        assert!(!place.top.join("work/.envrc").exists(), "{method:?}");
    }
}
