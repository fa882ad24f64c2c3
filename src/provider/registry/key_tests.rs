use std::time::Instant;

use super::*;

#[tokio::test]
async fn a_command_gives_the_first_line_once_and_again_after_a_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    let key = Key::command(&format!("echo x >> '{}'; echo '  secret-key  '; echo more", count.display()));
    for _ in 0..3 {
        assert_eq!(key.get("p").await.unwrap().unwrap().reveal(), "secret-key");
    }
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
    key.forget();
    key.get("p").await.unwrap();
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\nx\n");
}

#[tokio::test]
async fn a_command_that_fails_says_so_without_its_output() {
    for command in ["exit 3", "true", "echo oops-secret; exit 1"] {
        let error = Key::command(command).get("p").await.unwrap_err();
        assert!(
            matches!(&error, ProviderError::Auth(t) if t.contains("api_key_command") && !t.contains("oops"))
        );
    }
}

#[tokio::test]
async fn a_command_that_hangs_ends_with_all_its_children() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let key = Key::Command {
        command: format!("sleep 300 & echo $! > '{}'; wait", pid.display()),
        limit: Duration::from_secs(3),
        last: Mutex::new(None),
    };
    let start = Instant::now();
    let error = key.get("p").await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(100));
    assert!(error.to_string().contains("took longer"));
    let pid: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    let deadline = Instant::now() + Duration::from_secs(90);
    let alive = || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z "));
    while cfg!(target_os = "linux") && alive() {
        assert!(Instant::now() < deadline, "the grandchild lives");
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_key_file_is_private_and_keeps_other_keys() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.toml");
    assert_eq!(load(&path, "a").unwrap(), None);
    save(&path, "a", &Secret::new(" one \n")).unwrap();
    save(&path, "b", &Secret::new("two\"\\")).unwrap();
    assert_eq!(load(&path, "a").unwrap().unwrap().reveal(), "one");
    assert_eq!(load(&path, "b").unwrap().unwrap().reveal(), "two\"\\");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(load(&path, "a").unwrap_err().contains("chmod 600"));
}

#[test]
fn a_secret_is_not_shown() {
    assert_eq!(format!("{:?}", Key::Value(Secret::new("abc"))), "Value(Secret(..))");
}
