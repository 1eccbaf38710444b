//! Mutants of the tidy checks: one fault in the sources, manifests or documents each.

use crate::Workspace;
use crate::tidy::{neutral, words};

use super::manifest_mutants;
use super::memory::{Mutant, replace};

/// All of them. Some are made from what the repository ships (domain words, codes, forbidden words).
pub(super) fn mutants(workspace: &Workspace) -> Vec<Mutant> {
    let mut all = source_mutants();
    all.extend(decision_mutants());
    all.extend(crate_mutants());
    all.extend(manifest_mutants::mutants());
    all.extend(document_mutants());
    all.extend(seeing_mutants());
    all.extend(word_mutants(workspace));
    all
}

/// A mutant that adds one file.
fn added(check: &'static str, fault: &str, path: &'static str, text: impl Into<String>) -> Mutant {
    let text = text.into();
    Mutant::new(check, fault, move |workspace| {
        workspace.tree.insert(path, text.clone());
        true
    })
}

/// A mutant that adds a product file to wf-core with this body below a lawful header.
fn in_core(check: &'static str, fault: &str, body: &str) -> Mutant {
    added(
        check,
        fault,
        "crates/wf-core/src/mutant.rs",
        format!("//! A mutant of the selftest.\n{body}\n"),
    )
}

/// A mutant that edits a file.
pub(super) fn edited(
    check: &'static str,
    fault: &str,
    path: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    Mutant::new(check, fault, move |workspace| replace(workspace, path, from, to))
}

/// A mutant that takes a file away.
pub(super) fn removed(check: &'static str, fault: &str, path: &'static str) -> Mutant {
    Mutant::new(check, fault, move |workspace| workspace.tree.remove(path))
}

fn source_mutants() -> Vec<Mutant> {
    let long_function = format!("fn long() {{\n{}}}", "    call();\n".repeat(70));
    let entry = "[[long]]\npath = \"crates/wf-core/src/lib.rs\"\nlines = 1\nreason = \"none\"\n";
    vec![
        in_core(
            "pure-clippy",
            "a ban lifted in one place",
            "#[expect(clippy::disallowed_methods, reason = \"none\")]\nfn a() {}",
        ),
        in_core("sources-lex", "a file that does not lex", "fn open() { ("),
        added("headers", "a file without a header", "crates/wf-core/src/mutant.rs", "fn a() {}\n"),
        added(
            "headers",
            "a header that says nothing",
            "crates/wf-core/src/mutant.rs",
            "//! placeholder\n",
        ),
        in_core("file-length", "401 lines of product code", &"const A: u8 = 1;\n".repeat(400)),
        in_core(
            "file-length",
            "501 lines with unit tests",
            &format!("#[cfg(test)]\nmod tests {{{}}}", "\n".repeat(500)),
        ),
        added("file-length", "an allowance for a short file", "xtask/tidy-allow.toml", entry),
        in_core("function-length", "a function of 72 lines", &long_function),
        in_core("no-placeholders", "todo!", "fn a() { todo!() }"),
        in_core("no-placeholders", "unimplemented!", "fn a() { unimplemented!() }"),
        in_core("no-placeholders", "dbg!", "fn a() { dbg!(1); }"),
        in_core("no-allow", "an allow attribute on an item", "#[allow(dead_code)]\nfn a() {}"),
        in_core("no-allow", "an allow attribute on the crate", "#![allow(dead_code)]"),
        in_core(
            "ignore-reason",
            "an ignored test without a reason",
            "#[test]\n#[ignore]\nfn a() {}",
        ),
        added("no-drawers", "a file util.rs", "crates/wf-core/src/util.rs", "//! Things.\n"),
        in_core("no-drawers", "an inline module helpers", "mod helpers {}"),
        added(
            "one-test-binary",
            "a second test binary",
            "crates/wf-core/tests/second.rs",
            "//! A second test binary.\n",
        ),
    ]
}

fn decision_mutants() -> Vec<Mutant> {
    const DECIDE: &str = "crates/wf-core/src/state_machine/decide/mutant.rs";
    const EVOLVE: &str = "crates/wf-core/src/state_machine/evolve/mutant.rs";
    let decide = |fault: &str, text: &str| {
        added("decide-shape", fault, DECIDE, format!("//! A mutant.\nfn a() {{ {text} }}\n"))
    };
    let mut all = vec![
        decide("a tuple match", "match (state, command) { (A::B, C::D) => 1 }"),
        decide("a wildcard arm", "match state { A::B => 1, _ => 2 }"),
        decide("a binding that catches every variant", "match state { A::B => 1, other => 2 }"),
        decide("matches! over our enum", "matches!(state, A::B)"),
        decide("if let over our enum", "if let A::B = state { 1 }"),
        added(
            "decide-shape",
            "a wildcard arm in evolve",
            EVOLVE,
            "//! A mutant.\nfn a() { match event { A::B => 1, _ => 2 } }\n",
        ),
        added("sync-decisions", "async in decide", DECIDE, "//! A mutant.\nasync fn a() {}\n"),
    ];
    for path in ["locks", "deadlines", "reconcile", "redaction", "view", "models", "policy"] {
        let path = format!("crates/wf-core/src/{path}/mutant.rs");
        all.push(Mutant::new("sync-decisions", format!("await in {path}"), move |workspace| {
            workspace.tree.insert(path.clone(), "//! A mutant.\nfn a() { b.await }\n");
            true
        }));
    }
    all
}

fn crate_mutants() -> Vec<Mutant> {
    const PORT: &str = "crates/wf-core/src/ports/mutant.rs";
    const STORE: &str = "crates/wf-backend-local/src/mutant.rs";
    const HTTP: &str = "crates/wf-mcp-http/src/mutant.rs";
    let store = |check: &'static str, fault: &str, text: &str| {
        added(check, fault, STORE, format!("//! A mutant.\nfn a() {{ {text} }}\n"))
    };
    vec![
        added(
            "port-defaults",
            "a port with a default method",
            PORT,
            "//! A mutant.\npub trait P { fn a(&self) -> u8 { 1 } }\n",
        ),
        store("write-transactions", "a deferred transaction", "conn.transaction();"),
        store("write-transactions", "one by a statement", "c.execute_batch(\"BEGIN IMMEDIATE\");"),
        store("write-transactions", "a savepoint", "tx.savepoint();"),
        store("bounded-reads", "rows handed to a caller", "statement.query(arguments);"),
        added(
            "one-fault-map",
            "a second map of error codes",
            HTTP,
            "//! A mutant.\nfn a() { match c { ErrorCode::Internal => 500, d => 400 } }\n",
        ),
        added(
            "one-fault-map",
            "a status chosen beside a code",
            HTTP,
            "//! A mutant.\nfn a(c: ErrorCode) -> StatusCode { b(c) }\n",
        ),
    ]
}

fn seeing_mutants() -> Vec<Mutant> {
    const ALERTS: &str = "deploy/prometheus/alerts.yaml";
    let warning = "fn a() { tracing::warn!(words = 1, \"nobody wrote this down\"); }";
    vec![
        in_core("metrics-table", "a new metric", "fn a() { metrics::gauge!(\"checkpoint_new\"); }"),
        in_core(
            "metrics-table",
            "a metric of another type",
            "fn a() { metrics::gauge!(\"checkpoint_writer_panics\"); }",
        ),
        in_core("metrics-table", "a name that is data", "fn a() { metrics::counter!(name); }"),
        edited(
            "metrics-table",
            "a row of nothing",
            "docs/observability.md",
            "| `checkpoint_wal_bytes` |",
            "| `checkpoint_log_bytes` |",
        ),
        in_core("log-table", "a new warning", warning),
        in_core("log-table", "a warning without words", "fn a() { tracing::warn!(\"{}\", b); }"),
        edited("log-table", "a row of nothing", "docs/logs.md", "| warn |", "| error |"),
        edited(
            "metrics-known",
            "an alert on nothing",
            ALERTS,
            "checkpoint_wal_bytes >",
            "checkpoint_log_bytes >",
        ),
        edited(
            "metrics-known",
            "an alert without a runbook",
            ALERTS,
            "#checkpointloglarge",
            "#nowhere",
        ),
        edited(
            "metrics-known",
            "an alert without severity",
            ALERTS,
            "severity: critical",
            "severity: loud",
        ),
        edited(
            "metrics-known",
            "an alert without a test",
            "deploy/prometheus/alerts.test.yaml",
            "CheckpointBug fires",
            "CheckpointBug burns",
        ),
        edited(
            "metrics-known",
            "a panel of nothing",
            "deploy/grafana/checkpoint.json",
            "checkpoint_memory_bytes",
            "checkpoint_memory",
        ),
        removed("metrics-known", "no dashboard", "deploy/grafana/checkpoint.json"),
    ]
}

fn document_mutants() -> Vec<Mutant> {
    const BOOK: &str = "ARCHITECTURE.md";
    vec![
        removed("error-pages", "a code without a page", "docs/errors/INTERNAL.md"),
        added(
            "error-pages",
            "a page without a code",
            "docs/errors/NO_SUCH_CODE.md",
            "# NO_SUCH_CODE\n",
        ),
        added(
            "error-pages",
            "a new code",
            "crates/wf-core/src/errors/mutant.rs",
            "//! A mutant.\nconst A: &str = \"NEW_CODE\";\n",
        ),
        edited(
            "error-pages",
            "a code missing from the index",
            "docs/errors/README.md",
            "(LOCK_LOST.md)",
            "(ASSET_LOCKED.md)",
        ),
        edited(
            "error-pages",
            "a page that does not say whether to retry",
            "docs/errors/TOO_EARLY.md",
            "## Retry",
            "## Again",
        ),
        Mutant::new("invariants", "an invariant without an enforcer", |workspace| {
            append(workspace, BOOK, "\n## More invariants\n\n- Nothing is ever lost.\n")
        }),
        Mutant::new("invariants", "an enforcer that does not exist", |workspace| {
            append(
                workspace,
                BOOK,
                "\n## More invariants\n\n- Nothing is lost. enforced by: `no_such_test_anywhere`\n",
            )
        }),
        removed("invariants", "no ARCHITECTURE.md", BOOK),
        Mutant::new("ci-entry", "a README without the command", |workspace| {
            replace_all(workspace, "README.md", "cargo xtask ci", "make")
        }),
        Mutant::new("ci-entry", "CI that runs something else", |workspace| {
            replace_all(workspace, ".ci/run", "cargo xtask ci", "true")
        }),
    ]
}

/// Mutants made from the words that are forbidden, and from those that the shipped procedures use.
fn word_mutants(workspace: &Workspace) -> Vec<Mutant> {
    let mut all = Vec::new();
    for word in words::forbidden() {
        let text = format!("see {word}x\n");
        all.push(added(
            "workplace-words",
            "a word of a developer's machine",
            "docs/mutant.md",
            text,
        ));
    }
    let (shipped, _) = neutral::domain_words(&workspace.tree);
    for (number, word) in shipped.keys().cloned().enumerate() {
        let folder = neutral::NEUTRAL[number % neutral::NEUTRAL.len()];
        let path = format!("{folder}src/mutant.rs");
        all.push(Mutant::new(
            "domain-neutral",
            format!("`{word}` in a string of {path}"),
            move |workspace| {
                let text = format!("//! A mutant.\nconst A: &str = \"{word}\";\n");
                workspace.tree.insert(path.clone(), text);
                true
            },
        ));
    }
    all
}

/// Appends to a file. False if there is no such file.
fn append(workspace: &mut Workspace, path: &str, more: &str) -> bool {
    let Some(text) = workspace.tree.text(path) else { return false };
    let text = format!("{text}{more}");
    workspace.tree.insert(path, text);
    true
}

fn replace_all(workspace: &mut Workspace, path: &str, from: &str, to: &str) -> bool {
    let Some(text) = workspace.tree.text(path).filter(|text| text.contains(from)) else {
        return false;
    };
    let text = text.replace(from, to);
    workspace.tree.insert(path, text);
    true
}
