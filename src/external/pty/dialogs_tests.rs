use super::*;
use crate::adapter::Adapters;

fn dialog(name: &str, screen: &str) -> Option<Dialog> {
    let pty = Adapters::new(&[]).get(name).unwrap().pty.clone().unwrap();
    let scan = Scan::new(screen.into(), &pty);
    scan.dialog(&pty).cloned()
}

#[test]
fn what_is_shown_of_a_dialog_begins_and_ends_with_words() {
    let screen =
        "\n──────\n Quick safety check: yes?\n\n ❯ 1. Yes, I trust this folder\n   2. No, exit\n──────\n";
    let trust = dialog("claude", screen).unwrap();
    let shown = part(screen, &trust);
    assert!(shown.starts_with("Quick safety check") && shown.ends_with("2. No, exit"), "{shown}");
    assert_eq!(part("──\n──", &trust), "");
}

/// Screens as drawn by claude 2.1.197 and 2.1.330 and codex 0.169.
#[test]
fn dialogs_of_old_and_new_versions_are_known() {
    for (program, name, screen) in [
        (
            "claude",
            "trust this folder",
            " Quick safety check: Is this a project you created or one you trust?\n\n ❯ 1. Yes, I trust this folder\n   2. No, exit\n\n Enter to confirm · Esc to cancel",
        ),
        (
            "claude",
            "trust this folder",
            " Quick safety check: Is this a project you created or one you trust? (Like your own code, a\n well-known open source project, or work from your team).\n\n Security guide\n\n ❯ No, exit\n   Yes, I trust this folder\n\n Enter to confirm · Esc to cancel",
        ),
        (
            "claude",
            "use the API key from the environment",
            "  Detected a custom API key in your environment\n\n  ANTHROPIC_API_KEY: sk-ant-...\n\n  Do you want to use this API key?\n\n    1. Yes\n  ❯ 2. No (recommended)\n\n  Enter to confirm",
        ),
        (
            "claude",
            "use the API key from the environment",
            "  Detected a custom API key in your environment\n\n  ANTHROPIC_API_KEY: sk-ant-...\n\n  Do you want to use this API key?\n\n    Yes\n  ❯ No (recommended)\n\n  Enter to confirm",
        ),
        (
            "claude",
            "bypass permissions",
            "  WARNING: Claude Code running in Bypass Permissions mode\n\n  ❯ No, exit\n    Yes, I accept\n\n  Enter to confirm · Esc to cancel",
        ),
        (
            "claude",
            "MCP server of this project",
            "  New MCP server found in this project: x\n\n    Use this MCP server\n    Use this and all future MCP servers in this project\n  ❯ Continue without using this MCP server\n\n  Enter to confirm",
        ),
        (
            "claude",
            "permission",
            " Bash command\n\n   touch a\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No",
        ),
        (
            "claude",
            "question",
            "Which colour?\n\n❯ 1. Red\n     r\n  2. Blue\n\n  4. Chat about this\n\nEnter to select · ↑/↓ to navigate · Esc to cancel",
        ),
        (
            "codex",
            "trust this folder",
            "  Folder access\n  /w\n\n  Trust this folder? Codex can read, edit, and run files here, subject to your permission\n\n› 1. Trust and continue\n  2. Back to Agent Command Center\n\n  enter continue · esc back",
        ),
        (
            "codex",
            "permission",
            "  Would you like to run the following command?\n\n  $ touch a\n\n› 1. Yes, proceed (y)\n  2. No (esc)",
        ),
        (
            "codex",
            "a newer model",
            "  Meet GPT-6 Sol\n\n› 1. Try new model\n  2. Use existing model\n\n  enter/esc confirm",
        ),
        (
            "codex",
            "where to go on",
            "  Working directory · resume\n\n› 1. Use session directory (/a)\n  2. Use current directory (/b)\n  3. Always use session directory\n\n  enter continue",
        ),
    ] {
        assert_eq!(dialog(program, screen).map(|d| d.name).as_deref(), Some(name), "{program}:\n{screen}");
    }
    let plain = "❯ Do you want to proceed? I say: 1. Yes, I trust this\n\n● Fine.\n\n❯ \n  ? for shortcuts";
    let known = dialog("claude", plain).map(|d| d.name);
    assert_eq!(known, None, "words of a talk are no dialog");
}

#[test]
fn the_command_is_read_off_the_screen() {
    let of = |name: &str, screen: &str| tool(screen, &dialog(name, screen).unwrap()).target;
    let old = " Bash command\n\n   rm -rf /x/../../etc\n   Remove it\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No";
    assert_eq!(of("claude", old), "rm -rf /x/../../etc");
    let new = " Bash command\n\n Tip: auto mode handles these\n x\n╌╌╌╌\n rm -rf a;\n rm b\n╌╌╌╌\n\n Do you want to proceed?\n ❯ 1. Yes\n   4. No";
    assert_eq!(of("claude", new), "rm -rf a;\nrm b");
    let codex = "  Would you like to run the following command?\n\n  Reason: need it\n\n  $ rm -rf a; echo\n    ran\n\n› 1. Yes, proceed (y)\n  3. No";
    assert_eq!(of("codex", codex), "rm -rf a; echo\nran");
}
