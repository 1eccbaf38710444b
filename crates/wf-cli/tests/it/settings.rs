//! The configuration as the binary sees it: layers, unknown keys, what is printed.

use crate::binary::{command, run};

fn with_file(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.toml"), text).unwrap();
    folder
}

#[test]
fn flags_win_over_variables_over_the_file_over_defaults() {
    let folder =
        with_file("[server]\nlisten = \"127.0.0.1:1001\"\nlocale = \"fr\"\nmax_in_flight = 9\n");
    let ran: crate::binary::Ran = command(folder.path())
        .env("WF_SERVER_LISTEN", "127.0.0.1:1002")
        .env("WF_SERVER_LOCALE", "it")
        .args(["serve", "--listen", "127.0.0.1:1003", "--print-config", "--json"])
        .args(["--config", "c.toml"])
        .output()
        .unwrap()
        .into();
    let shown = ran.exits(0).json();
    let is = |key: &str, value: serde_json::Value, origin: &str| {
        assert_eq!(shown[key]["value"], value, "{key}");
        assert_eq!(shown[key]["origin"], origin, "{key}");
    };
    is("server.listen", "127.0.0.1:1003".into(), "--listen");
    is("server.locale", "it".into(), "environment WF_SERVER_LOCALE");
    is("server.max_in_flight", 9.into(), "c.toml:4:1");
    is("server.timezone", "UTC".into(), "default");
    assert!(!folder.path().join("checkpoint.db").exists(), "nothing is started");
}

#[test]
fn the_file_is_accepted_before_and_after_the_subcommand_and_by_variable() {
    let folder = with_file("[server]\nlocale = \"de\"\n");
    for arguments in [
        &["--config", "c.toml", "serve", "--print-config"][..],
        &["serve", "--print-config", "--config", "c.toml"],
    ] {
        let ran = run(folder.path(), arguments).exits(0);
        assert!(ran.out.contains("locale = \"de\"  # c.toml:2:1"), "{}", ran.out);
    }
    let ran: crate::binary::Ran = command(folder.path())
        .env("WF_CONFIG", "c.toml")
        .args(["serve", "--print-config"])
        .output()
        .unwrap()
        .into();
    assert!(ran.exits(0).out.contains("locale = \"de\""));
}

#[cfg(unix)]
#[test]
fn the_file_may_be_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = command(folder.path())
        .args(["serve", "--print-config", "--config", "/dev/stdin"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, b"[server]\nlocale = \"de\"\n").unwrap();
    drop(pipe);
    let ran = crate::binary::Ran::from(child.wait_with_output().unwrap()).exits(0);
    assert!(ran.out.contains("locale = \"de\""), "{}", ran.out);
}

#[test]
fn the_printed_configuration_is_as_reviewed() {
    let folder = with_file("");
    let ran = run(folder.path(), &["serve", "--print-config"]).exits(0);
    insta::assert_snapshot!("print_config", ran.out);
}

#[test]
fn slips_are_refused_with_2_and_name_the_place() {
    for (text, says) in [
        (
            "[server]\nlistne = \"x\"\n",
            "c.toml:2:1: unknown key server.listne; did you mean server.listen?",
        ),
        ("[server\n", "c.toml:1:8: not TOML"),
        ("[auth]\nmode = \"jwt\"\n", "auth.issuer must be set when auth.mode is \"jwt\""),
        ("[auth]\nissuer = \"https://a.example\"\n", "counts with auth.mode = \"jwt\" only"),
        (
            "[backend.aws]\nstate_machine_arn = \"x\"\n",
            "backend.aws.state_machine_arn counts with backend.kind = \"aws\" only",
        ),
        (
            "[backend.aws]\ntable = \"wf1\"\n",
            "backend.aws.table counts with backend.kind = \"aws\" only",
        ),
        ("[idempotency]\nretention = \"soon\"\n", "idempotency.retention must be"),
    ] {
        let folder = with_file(text);
        let ran = run(folder.path(), &["serve", "--config", "c.toml"]).exits(2);
        assert!(ran.err.contains(says), "{says}: {}", ran.err);
        assert!(!folder.path().join("checkpoint.db").exists());
    }
    let folder = with_file("");
    run(folder.path(), &["workflow", "list", "--config", "absent.toml"]).exits(2);
    run(folder.path(), &["workflow", "list", "--set", "server.nope=1"]).exits(2);
}

/// A build without the backend says the first of these; one with it looks further.
#[test]
fn a_table_must_be_named_and_reached_in_private() {
    let with = cfg!(feature = "aws");
    for (text, says) in [
        ("", "backend.aws.table must be set when backend.kind is \"aws\""),
        ("table = \"a b\"\n", "backend.aws.table must be 3 to 255 letters"),
        ("table = \"wf1\"\nendpoint_url = \"http://db.example\"\n", "must begin with https://"),
    ] {
        let folder = with_file(&format!("[backend]\nkind = \"aws\"\n[backend.aws]\n{text}"));
        let ran = run(folder.path(), &["serve", "--config", "c.toml"]).exits(2);
        let says = if with { says } else { "needs the feature `aws`" };
        assert!(ran.err.contains(says), "{says}: {}", ran.err);
    }
    let folder = with_file("");
    let ran = run(folder.path(), &["aws", "init"]).exits(2);
    assert!(ran.err.contains("the configuration names no table"), "{}", ran.err);
}

#[test]
#[cfg(feature = "aws")]
fn commands_for_a_file_say_what_to_do_with_a_table() {
    let folder = with_file("[backend]\nkind = \"aws\"\n[backend.aws]\ntable = \"wf1\"\n");
    for (command, says) in [
        (&["backup", "b.db"][..], "point-in-time recovery"),
        (&["restore", "b.db"], "restore-table-to-point-in-time"),
        (&["migrate"], "wf-cli aws init"),
    ] {
        let ran = run(folder.path(), &[command, &["--config", "c.toml"]].concat()).exits(2);
        assert!(ran.err.contains("DynamoDB table wf1"), "{}", ran.err);
        assert!(ran.err.contains(says), "{says}: {}", ran.err);
    }
    // The key of development tokens is beside the configuration, from whichever folder it is asked for.
    let elsewhere = with_file("");
    let config = folder.path().join("c.toml");
    let issue = ["token", "issue", "--sub", "ann", "--config", config.to_str().unwrap()];
    run(elsewhere.path(), &issue).exits(0);
    assert!(folder.path().join("checkpoint-dev-key.json").exists());
    let database = run(folder.path(), &["serve", "--config", "c.toml", "--database", "x.db"]);
    assert!(database.exits(2).err.contains("backend.kind = \"local\" only"));
}

#[test]
fn another_machine_is_not_served_without_authentication() {
    let folder = with_file("");
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let ran = run(folder.path(), &["serve", "--listen", listen]).exits(2);
        assert!(ran.err.contains("there is no authentication"), "{}", ran.err);
        assert!(ran.err.contains("or listen on a loopback address"), "{}", ran.err);
    }
}

#[test]
fn development_tokens_are_for_this_machine_only() {
    let folder = with_file("");
    let ran = run(folder.path(), &["serve", "--auth", "dev", "--listen", "0.0.0.0:0"]).exits(2);
    assert!(ran.err.contains("for this machine only"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was made");
}

#[test]
fn a_token_is_issued_on_stdout_alone_and_a_wrong_one_is_refused() {
    let folder = with_file("");
    let token = run(folder.path(), &["token", "issue", "--sub", "ann"]).exits(0);
    assert_eq!(token.out.trim().split('.').count(), 3, "{}", token.out);
    assert_eq!(token.err, "");
    let json = run(folder.path(), &["token", "issue", "--sub", "ann", "--ttl", "5m", "--json"]);
    assert_eq!(json.exits(0).json()["expires_in"], 300);
    for wrong in [
        &["--sub", ""][..],
        &["--sub", "ann", "--ttl", "25h"],
        &["--sub", "ann", "--ttl", "soon"],
        &["--sub", "ann", "--tenant", "a b"],
    ] {
        run(folder.path(), &[&["token", "issue"], wrong].concat()).exits(2);
    }
}

#[test]
fn secrets_are_masked() {
    let folder = with_file("[server]\npublic_url = \"https://me:hunter2@wf.example.com\"\n");
    let ran = run(folder.path(), &["serve", "--print-config", "--config", "c.toml"]).exits(0);
    assert!(ran.out.contains("https://***@wf.example.com"), "{}", ran.out);
    assert!(!ran.out.contains("hunter2"));
}
