//! Every `--help` as a snapshot, completions and manual pages.

use crate::binary::run;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn every_help_is_as_reviewed() {
    let folder = folder();
    for command in [
        "",
        "serve",
        "call",
        "procedure",
        "procedure check",
        "procedure list",
        "procedure show",
        "procedure schema",
        "workflow",
        "workflow list",
        "workflow show",
        "workflow history",
        "workflow evidence",
        "workflow export",
        "workflow erase",
        "workflow purge",
        "workflow verify",
        "verify-evidence",
        "locks",
        "locks list",
        "locks release",
        "ack",
        "outbox",
        "outbox list",
        "outbox retry",
        "outbox purge",
        "token",
        "token issue",
        "copy",
        "migrate",
        "backup",
        "restore",
        "restored",
        "reconcile",
        "doctor",
        "top",
        "aws",
        "aws init",
        "aws template",
        "completions",
        "man",
    ] {
        let arguments: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let ran = run(folder.path(), &arguments).exits(0);
        let name = format!("help {command}").trim().replace(' ', "_");
        insta::assert_snapshot!(name, ran.out);
    }
}

#[test]
fn completions_are_written_for_every_shell() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(folder.path(), &["completions", shell]).exits(0);
        assert!(ran.out.contains("wf-cli"), "{shell}");
        assert!(ran.out.contains("print-config"), "{shell}");
    }
    run(folder.path(), &["completions", "tcsh"]).exits(2);
}

/// The script goes from word to word: each place that it comes to must be one for which it knows what follows.
#[test]
fn completions_of_bash_know_what_follows_each_word() {
    let script = run(folder().path(), &["completions", "bash"]).exits(0).out;
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    let comes_to = lines.iter().filter_map(|line| line.strip_prefix("cmd=\"")?.strip_suffix('"'));
    let places: Vec<&str> = comes_to.filter(|place| !place.is_empty()).collect();
    assert!(places.len() > 30, "{places:?}");
    for place in places {
        assert!(lines.contains(&format!("{place})").as_str()), "nothing follows {place}");
    }
}

#[test]
fn a_manual_page_is_written_for_every_command() {
    let folder = folder();
    let page = run(folder.path(), &["man"]).exits(0).out;
    assert!(page.contains(".TH wf-cli 1"), "{page}");
    std::fs::create_dir(folder.path().join("man1")).unwrap();
    run(folder.path(), &["man", "--dir", "man1"]).exits(0);
    for name in ["wf-cli.1", "wf-cli-serve.1", "wf-cli-workflow-verify.1"] {
        assert!(folder.path().join("man1").join(name).exists(), "{name}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let folder = folder();
    for arguments in [
        &["fly"][..],
        &[],
        &["serve", "--fast"],
        &["workflow", "show"],
        &["workflow", "show", "../etc/passwd"],
        &["locks", "release", "PUMP-204"],
        &["outbox", "list", "--dead", "--pending"],
        &["outbox", "purge", "--older-than", "a week"],
        &["call", "find_work", "--arg", "query"],
        &["call", "find_work", "--url", "ftp://example.com"],
    ] {
        let ran = run(folder.path(), arguments).exits(2);
        assert!(!ran.err.is_empty(), "{arguments:?}");
    }
}

/// The README is what a registry shows: what it tells people to type is there.
#[test]
fn the_commands_of_the_readme_exist() {
    let folder = folder();
    let readme = include_str!("../../README.md");
    let lines = readme.lines().filter_map(|line| line.strip_prefix("wf-cli "));
    let commands: Vec<&str> = lines.filter_map(|line| line.split('#').next()).collect();
    assert!(commands.len() > 4, "{commands:?}");
    for command in commands {
        // Everything before `--help` is read: a word that does not exist is refused.
        let words: Vec<&str> = command.split_whitespace().collect();
        run(folder.path(), &[&words[..], &["--help"]].concat()).exits(0);
        run(folder.path(), &[&words[..], &["--no-such-option", "--help"]].concat()).exits(2);
    }
}
