//! Each check is quiet on a lawful tree and speaks on one with a single fault.

use crate::Workspace;
use crate::metadata::tests::graph;
use crate::metadata::{Kind, Metadata};
use crate::tree::Tree;

use super::{
    CHECKS, decisions, documents, error_pages, faults, features, manifests, neutral, ports, shape,
    sizes, sqlite, words,
};

type Rule = fn(&Workspace) -> Vec<crate::report::Violation>;

fn workspace(files: &[(&str, &str)]) -> Workspace {
    let mut tree = Tree::default();
    for (path, text) in files {
        tree.insert(*path, *text);
    }
    Workspace { tree, metadata: Metadata::default() }
}

/// The number of violations of `rule` over `files`.
#[track_caller]
fn check(rule: Rule, files: &[(&str, &str)], expected: usize) {
    let found = rule(&workspace(files));
    let shown: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected, "{shown:#?}");
}

#[test]
fn names_of_checks_are_unique() {
    let mut names: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CHECKS.len());
}

#[test]
fn headers_and_syntax() {
    check(shape::headers, &[("a.rs", "//! What the file is for.\n"), ("b.md", "no header")], 0);
    check(
        shape::headers,
        &[("a.rs", "use b;\n"), ("b.rs", ""), ("c.rs", "//!\n"), ("d.rs", "//! placeholder\n")],
        4,
    );
    check(shape::sources_lex, &[("a.rs", "fn a() { ( }")], 1);
    check(shape::sources_lex, &[("a.rs", "fn a() {}")], 0);
}

#[test]
fn placeholders_and_attributes() {
    let macros = "fn a() { todo!(); unimplemented!(\"x\"); dbg!(1); } // todo!()\nfn dbg() {} const B: &str = \"todo!()\";";
    check(shape::no_placeholders, &[("a.rs", macros)], 3);
    let attributes = "#![allow(dead_code)]\n#[allow(unused)]\nfn a() {}\n#[cfg_attr(x, allow(y))]\nfn b() {}\n#[expect(z)]\nfn allow() { allow(1); }";
    check(shape::no_allow, &[("a.rs", attributes)], 3);
    check(
        shape::ignore_reason,
        &[("a.rs", "#[ignore]\nfn a() {}\n#[ignore = \"needs X\"]\nfn b() {}")],
        1,
    );
}

#[test]
fn drawers_and_test_binaries() {
    check(
        shape::no_drawers,
        &[("a/src/util.rs", ""), ("a/src/helpers/x.rs", ""), ("a/src/lib.rs", "mod common {}")],
        3,
    );
    check(shape::no_drawers, &[("a/src/utility.rs", "mod commons;")], 0);
    check(
        shape::one_test_binary,
        &[("crates/a/tests/it/main.rs", ""), ("crates/a/tests/it/x.rs", "")],
        0,
    );
    check(
        shape::one_test_binary,
        &[("crates/a/tests/x.rs", ""), ("crates/a/tests/other/main.rs", "")],
        2,
    );
}

#[test]
fn long_files_and_functions() {
    let long = |lines: usize| format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines - 2));
    check(sizes::function_length, &[("a.rs", &long(70))], 0);
    check(sizes::function_length, &[("a.rs", &long(71))], 1);
    check(sizes::function_length, &[("tests.rs", &long(71))], 0);
    check(sizes::file_length, &[("a.rs", &"const A: u8 = 1;\n".repeat(400))], 0);
    check(sizes::file_length, &[("a.rs", &"const A: u8 = 1;\n".repeat(401))], 1);
    let with_tests =
        format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "const A: u8 = 1;\n".repeat(400));
    check(sizes::file_length, &[("a.rs", &with_tests)], 0);
    check(
        sizes::file_length,
        &[(
            "a.rs",
            &with_tests.replace("mod tests {\n", &format!("mod tests {{\n{}", "\n".repeat(100))),
        )],
        1,
    );
}

#[test]
fn the_allow_list_shrinks_only() {
    let text = "const A: u8 = 1;\n".repeat(420);
    let entry = |lines: usize| {
        format!("[[long]]\npath = \"a.rs\"\nlines = {lines}\nreason = \"one table\"\n")
    };
    let with = |lines| [("a.rs", text.clone()), ("xtask/tidy-allow.toml", entry(lines))];
    for (lines, expected) in [(420, 0), (419, 1), (430, 1)] {
        let files = with(lines);
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        check(sizes::file_length, &files, expected);
    }
    check(
        sizes::file_length,
        &[("a.rs", "const A: u8 = 1;\n"), ("xtask/tidy-allow.toml", &entry(420))],
        1,
    );
    check(
        sizes::file_length,
        &[("a.rs", &"const A: u8 = 1;\n".repeat(480)), ("xtask/tidy-allow.toml", &entry(480))],
        0,
    );
    check(
        sizes::file_length,
        &[("a.rs", &"const A: u8 = 1;\n".repeat(501)), ("xtask/tidy-allow.toml", &entry(501))],
        2,
    );
}

#[test]
fn decisions_are_synchronous() {
    let path = "crates/wf-core/src/state_machine/decide.rs";
    check(decisions::sync_decisions, &[(path, "fn a() {} // async\n")], 0);
    check(decisions::sync_decisions, &[(path, "async fn a() { b().await }\n")], 2);
    check(
        decisions::sync_decisions,
        &[(path, "fn a() {}"), ("crates/wf-core/src/locks.rs", "async fn a() {}")],
        1,
    );
    check(
        decisions::sync_decisions,
        &[(path, "fn a() {}"), ("crates/wf-core/src/engine.rs", "async fn a() {}")],
        0,
    );
    check(decisions::sync_decisions, &[], 1);
}

#[test]
fn decide_matches_one_enum_and_every_variant() {
    let path = "crates/wf-core/src/state_machine/decide/start.rs";
    let body = |text: &str| format!("fn a(x: State) {{ {text} }}");
    for (text, expected) in [
        ("match x { State::A => 1, State::B(_) => 2 }", 0),
        ("match x { State::A => 1, _ => 2 }", 1),
        ("match x { State::A => {} other => {} }", 1),
        ("match x { State::A => f(1, 2), _ if y => 3, State::B => 4 }", 1),
        ("match (x, y) { (State::A, 1) => 1, (State::B, 2) => 2 }", 1),
        ("match (x) { State::A => 1, State::B => 2 }", 0),
        ("match f(x, y) { State::A => 1, State::B => 2 }", 0),
        ("match n { 1 => 1, _ => 2 }", 0),
        ("match name { \"a\" | \"b\" => 1, _ => 2 }", 0),
        ("match option { Some(x) => x, _ => y }", 0),
        ("match x { State::A => match n { 1 => 1, _ => 2 }, State::B => 2 }", 0),
        ("match x { State::A => 1, State::B => match y { Other::C => 1, _ => 2 } }", 1),
        ("matches!(x, State::A)", 1),
        ("matches!(x, Some(_))", 0),
        ("matches!(c, 'a'..='z')", 0),
        ("if let State::A = x {}", 1),
        ("if ready && let State::A(y) = x {}", 1),
        ("let State::A(y) = x else { return };", 0),
        ("if let Some(y) = x {}", 0),
        ("let Facts { at, .. } = x;", 0),
    ] {
        check(decisions::decide_shape, &[(path, &body(text))], expected);
    }
    check(
        decisions::decide_shape,
        &[("crates/wf-core/src/engine.rs", "fn a() { match x { A::B => 1, _ => 2 } }")],
        1,
    );
}

#[test]
fn ports_have_required_methods_only() {
    let path = "crates/wf-core/src/ports/storage.rs";
    check(ports::port_defaults, &[(path, "pub trait Port { fn a(&self); fn b(&self) -> u8; }")], 0);
    check(
        ports::port_defaults,
        &[(path, "pub trait Port { fn a(&self) -> u8 { 1 } }\nfn free() {}")],
        1,
    );
    check(
        ports::port_defaults,
        &[(path, "pub trait Port { fn a(&self); }\npub trait PortExt: Port { fn b(&self) {} }")],
        0,
    );
    check(ports::port_defaults, &[(path, "fn a() {}")], 1);
}

#[test]
fn members_have_lints_description_and_readme() {
    let manifest = "[package]\ndescription = \"Says what it is for\"\n[lints]\nworkspace = true\n";
    let readme = "word ".repeat(30);
    let good = [("crates/a/Cargo.toml", manifest), ("crates/a/README.md", readme.as_str())];
    check(manifests::members, &good, 0);
    check(manifests::members, &[("crates/a/Cargo.toml", manifest)], 1);
    check(manifests::members, &[("crates/a/Cargo.toml", "[package]\n"), good[1]], 2);
    check(
        manifests::members,
        &[
            ("crates/a/Cargo.toml", &manifest.replace("Says what it is for", "placeholder")),
            good[1],
        ],
        1,
    );
    check(manifests::members, &[], 1);
    let nothing_banned = manifests::pure_clippy(&workspace(&[(
        "crates/wf-core/clippy.toml",
        "disallowed-methods = []",
    )]));
    assert!(nothing_banned.len() >= 14);
    let lifted = "#[expect(clippy::disallowed_types, reason = \"x\")]\nfn a() {}";
    let with_lifted = manifests::pure_clippy(&workspace(&[
        ("crates/wf-core/src/a.rs", lifted),
        ("crates/wf-core/clippy.toml", "disallowed-methods = []"),
    ]));
    assert_eq!(with_lifted.len(), nothing_banned.len() + 1);
}

#[test]
fn one_member_repeats_the_lints_instead_of_inheriting_them() {
    let lints = "unsafe_code = \"forbid\"\nmissing_docs = \"deny\"\n[X.clippy]\ntodo = \"deny\"\n";
    let root = format!("[workspace.lints.rust]\n{}", lints.replace('X', "workspace.lints"));
    let own = format!(
        "[package]\ndescription = \"Says what it is for\"\n[lints.rust]\nunsafe_op_in_unsafe_fn = \"deny\"\n{}{}",
        lints.replace('X', "lints").replace("forbid", "allow"),
        "undocumented_unsafe_blocks = \"deny\"\n"
    );
    let readme = "word ".repeat(30);
    let with = |member: &str, own: &str, expected: usize| {
        let (manifest, page) =
            (format!("crates/{member}/Cargo.toml"), format!("crates/{member}/README.md"));
        let files =
            [("Cargo.toml", root.as_str()), (manifest.as_str(), own), (page.as_str(), &readme)];
        check(manifests::members, &files, expected);
    };
    with("wf-diskfault", &own, 0);
    with("other", &own, 1);
    for (from, to) in [
        ("missing_docs = \"deny\"\n", ""),
        ("todo = \"deny\"", "todo = \"warn\""),
        ("undocumented_unsafe_blocks = \"deny\"\n", ""),
        ("[lints.clippy]", "dead_code = \"allow\"\n[lints.clippy]"),
    ] {
        assert!(own.contains(from), "{from}");
        with("wf-diskfault", &own.replace(from, to), 1);
    }
}

#[test]
fn transactions_are_immediate_and_reads_bounded() {
    let path = "crates/wf-backend-local/src/store.rs";
    let door = "crates/wf-backend-local/src/connection.rs";
    let immediate = "c.transaction_with_behavior(TransactionBehavior::Immediate)?;";
    for (path, text, expected) in [
        (path, "immediate(&mut c)?;", 0),
        (door, immediate, 0),
        (path, immediate, 1),
        (door, "c.transaction_with_behavior(TransactionBehavior::Deferred)?;", 1),
        (path, "c.transaction()?;", 1),
        (path, "c.unchecked_transaction()?;", 1),
        (path, "tx.savepoint()?;", 1),
        (path, "c.execute_batch(\"BEGIN IMMEDIATE\")?;", 1),
        (path, "c.execute_batch(\"  begin\")?;", 1),
        (path, "c.execute_batch(\"SAVEPOINT one\")?;", 1),
        (path, "log(\"BEGINNING\");", 0),
    ] {
        check(sqlite::write_transactions, &[(path, &format!("fn a() {{ {text} }}"))], expected);
    }
    let streams = "fn a() { s.query(()); rows(&c, SQL, ()); s.query_map((), f); }";
    check(sqlite::bounded_reads, &[(path, streams)], 2);
    check(sqlite::bounded_reads, &[(door, streams)], 0);
}

#[test]
fn one_file_maps_errors_to_statuses() {
    let fault =
        ("crates/wf-mcp-http/src/fault.rs", "fn a() { match c { ErrorCode::Internal => 500 } }");
    let path = "crates/wf-mcp-http/src/front.rs";
    check(faults::one_fault_map, &[fault, (path, "fn a() { StatusCode::FORBIDDEN }")], 0);
    check(faults::one_fault_map, &[fault, (path, "fn a() { ErrorCode::Internal.as_str() }")], 0);
    check(
        faults::one_fault_map,
        &[fault, (path, "fn a() { match c { ErrorCode::Internal => 500, b => 1 } }")],
        1,
    );
    check(faults::one_fault_map, &[fault, (path, "fn a(c: ErrorCode) -> StatusCode { x(c) }")], 1);
    check(faults::one_fault_map, &[(path, "fn a() {}")], 1);
}

#[test]
fn features_of_serde_json_are_named_with_their_culprit() {
    let mut metadata = graph(
        &["app"],
        &[
            ("app", "serde_json", Kind::Normal),
            ("app", "web", Kind::Normal),
            ("web", "serde_json", Kind::Normal),
        ],
    );
    let quiet = Workspace { tree: Tree::default(), metadata: metadata.clone() };
    assert_eq!(features::serde_json(&quiet).len(), 0);
    for node in metadata.resolve.nodes.iter_mut().filter(|node| node.id == "serde_json") {
        node.features.push("raw_value".to_owned());
    }
    for dependency in metadata
        .packages
        .iter_mut()
        .filter(|package| package.name == "web")
        .flat_map(|package| &mut package.dependencies)
    {
        dependency.features.push("raw_value".to_owned());
    }
    let found =
        features::serde_json(&Workspace { tree: Tree::default(), metadata: metadata.clone() });
    assert_eq!(found.len(), 1);
    assert!(found.iter().all(|one| one.to_string().contains("asked for by: web →")));
    let packages = metadata.packages.iter_mut().filter(|package| package.name == "web");
    packages.flat_map(|package| &mut package.dependencies).for_each(|edge| edge.kind = Kind::Dev);
    assert_eq!(features::serde_json(&Workspace { tree: Tree::default(), metadata }).len(), 0);
    assert_eq!(features::serde_json(&workspace(&[])).len(), 1);
}

#[test]
fn words_of_a_machine_are_found_and_this_file_is_not() {
    let machine = format!("see {}{}x\n", "/ro", "ot/");
    check(
        words::workplace_words,
        &[("a.md", &machine), ("b.md", "a net/work/item and /usr/bin\n")],
        1,
    );
    check(
        words::workplace_words,
        &[("tests.rs", include_str!("tests.rs")), ("words.rs", include_str!("words.rs"))],
        0,
    );
}

#[test]
fn codes_and_pages_are_one_to_one() {
    let errors = (
        "crates/wf-core/src/errors.rs",
        "codes! { A = \"CODE_ONE\" => No, B = \"CODE_TWO\" => SameCall, }",
    );
    let page = |code: &str, retry: &str| {
        format!(
            "# {code}\n\n## Meaning\n\n## Who acts\n\n## What to do\n\n## Retry\n\n`{retry}`\n\n## Details\n\n## Example\n"
        )
    };
    let (one, two) = (page("CODE_ONE", "no"), page("CODE_TWO", "same_call"));
    let index = ("docs/errors/README.md", "[CODE_ONE](CODE_ONE.md) [CODE_TWO](CODE_TWO.md)");
    let pages =
        [("docs/errors/CODE_ONE.md", one.as_str()), ("docs/errors/CODE_TWO.md", two.as_str())];
    check(error_pages::one_to_one, &[errors, index, pages[0], pages[1]], 0);
    check(error_pages::one_to_one, &[errors, index, pages[0]], 1);
    check(
        error_pages::one_to_one,
        &[errors, index, pages[0], pages[1], ("docs/errors/CODE_OLD.md", "")],
        1,
    );
    check(error_pages::one_to_one, &[errors, pages[0], pages[1]], 2);
    check(
        error_pages::one_to_one,
        &[errors, index, pages[0], (pages[1].0, &two.replace("## Details\n", ""))],
        1,
    );
    check(
        error_pages::one_to_one,
        &[errors, index, pages[0], (pages[1].0, &two.replace("`same_call`", "`no`"))],
        1,
    );
    check(error_pages::one_to_one, &[index, pages[0], pages[1]], 1);
}

#[test]
fn words_of_a_procedure_stay_out_of_neutral_crates() {
    let procedure = (
        "examples/procedures/tea.yaml",
        "id: tea-ceremony\nassets: [{ role: kettle, id: { prefix: K- } }]\nreasons: [{ code: TOO_COLD, say: too cold }]\n\
         steps:\n  - { id: pour, kind: confirm, prompt: Pour the water, unit: cup_size, accept_units: [g, oz_fl] }\nresults: [{ id: passed }]\n",
    );
    let path = "crates/wf-core/src/a.rs";
    for (text, expected) in [
        ("fn a() {}", 0),
        ("// A kettle in a comment may be English, and so may pouring.", 0),
        ("// tea-ceremony", 1),
        ("fn fill_kettle() {}", 1),
        ("struct KettleState;", 1),
        ("const A: &str = \"put the kettle on\";", 1),
        ("const A: &str = \"kettles passed\"; let g = 1;", 0),
        ("const A: &str = \"TOO_COLD\"; // oz_fl", 2),
        ("const NOT_TOO_COLD: u8 = 1;", 0),
    ] {
        check(neutral::domain_neutral, &[procedure, (path, text)], expected);
    }
    check(
        neutral::domain_neutral,
        &[procedure, ("crates/wf-procedure/src/a.rs", "struct Kettle;")],
        0,
    );
    check(neutral::domain_neutral, &[(path, "fn a() {}")], 1);
    check(neutral::domain_neutral, &[procedure, ("examples/procedures/bad.yaml", "a: [")], 1);
}

#[test]
fn invariants_name_an_enforcer_that_exists() {
    let manifest = ("Cargo.toml", "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n");
    let test = ("crates/a/tests/it/main.rs", "#[test]\nfn nothing_is_lost() {}");
    let written = |items: &str| {
        format!("# A\n\n## Invariants\n\n{items}\n\n## Other\n\n- no enforcer needed\n")
    };
    for (items, expected) in [
        ("- No unsafe code. enforced by: `unsafe_code`", 0),
        ("- Arrows.\n  enforced by: `xtask layering`, `edges`, `nothing_is_lost`", 0),
        ("- Files. enforced by: `crates/a/tests/it/main.rs`", 0),
        ("- Hope.", 1),
        ("- Hope. enforced by: good will", 1),
        ("- Hope. enforced by: `no_such_test`", 1),
        ("- Hope. enforced by: `xtask prayer`", 1),
        ("", 1),
    ] {
        check(
            documents::invariants,
            &[manifest, test, ("ARCHITECTURE.md", &written(items))],
            expected,
        );
    }
    check(documents::invariants, &[], 1);
}

#[test]
fn the_one_command_is_named_and_called() {
    let readme = ("README.md", "Run `cargo xtask ci`.");
    check(documents::ci_entry, &[readme, (".ci/run", "#!/usr/bin/env bash\ncargo xtask ci\n")], 0);
    check(
        documents::ci_entry,
        &[readme, (".ci/run", "#!/usr/bin/env bash\n# cargo xtask ci\ntrue\n")],
        1,
    );
    check(documents::ci_entry, &[], 2);
}
