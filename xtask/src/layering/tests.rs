//! Each rule is quiet on a lawful graph and speaks on one with a single wrong edge.

use crate::Workspace;
use crate::metadata::tests::graph;
use crate::metadata::{Kind, Metadata};
use crate::tree::Tree;

use super::cloud::optional_in_the_binary;
use super::failpoints::off_by_default;
use super::{ALLOW_LIST, core_closure, edges, first_match, vendor_closure, vendor_imports};

const MEMBERS: [&str; 14] = [
    "wf-idempotency",
    "wf-core",
    "wf-testkit",
    "wf-procedure",
    "wf-backend-local",
    "wf-backend-aws",
    "wf-mcp-http",
    "wf-console",
    "wf-notify-webhook",
    "wf-tool-ledger",
    "wf-cli",
    "wf-diskfault",
    "wf-proof",
    "xtask",
];

const LAWFUL: [(&str, &str, Kind); 9] = [
    ("wf-core", "wf-idempotency", Kind::Normal),
    ("wf-procedure", "wf-core", Kind::Normal),
    ("wf-backend-local", "wf-core", Kind::Normal),
    ("wf-backend-aws", "wf-core", Kind::Normal),
    ("wf-backend-local", "wf-testkit", Kind::Dev),
    ("wf-mcp-http", "wf-core", Kind::Normal),
    ("wf-cli", "wf-mcp-http", Kind::Normal),
    ("wf-cli", "wf-backend-aws", Kind::Normal),
    ("wf-idempotency", "sha2", Kind::Normal),
];

fn workspace(more: &[(&str, &str, Kind)]) -> Workspace {
    let mut edges = LAWFUL.to_vec();
    edges.extend_from_slice(more);
    let mut tree = Tree::default();
    tree.insert(
        ALLOW_LIST,
        "[bans]\nallow = [\"wf-core\", \"wf-idempotency\", { crate = \"sha2@0.11\" }]\n",
    );
    Workspace { tree, metadata: graph(&MEMBERS, &edges) }
}

/// Number of violations of the four rules, in the order edges, imports, closure, allow-list.
fn check(more: &[(&str, &str, Kind)]) -> [usize; 4] {
    let workspace = workspace(more);
    [edges, vendor_imports, vendor_closure, core_closure].map(|rule| rule(&workspace).len())
}

#[test]
fn the_lawful_graph_is_green() {
    assert_eq!(check(&[]), [0, 0, 0, 0]);
}

#[test]
fn an_arrow_that_is_not_in_the_table_is_red() {
    assert_eq!(check(&[("wf-mcp-http", "wf-backend-local", Kind::Normal)]), [1, 0, 0, 0]);
    assert_eq!(check(&[("wf-backend-local", "wf-backend-aws", Kind::Build)]), [1, 0, 0, 0]);
    assert_eq!(check(&[("wf-core", "wf-testkit", Kind::Dev)]), [1, 0, 0, 0]);
    assert_eq!(check(&[("wf-backend-aws", "wf-testkit", Kind::Normal)]), [1, 0, 0, 0]);
    assert_eq!(check(&[("xtask", "wf-core", Kind::Normal)]), [1, 0, 0, 0]);
}

#[test]
fn an_optional_arrow_is_an_arrow() {
    let mut workspace = workspace(&[("wf-mcp-http", "wf-backend-aws", Kind::Normal)]);
    for node in &mut workspace.metadata.resolve.nodes {
        node.deps.retain(|edge| edge.pkg != "wf-backend-aws");
    }
    for package in &mut workspace.metadata.packages {
        package.dependencies.iter_mut().for_each(|dependency| dependency.optional = true);
    }
    let found = edges(&workspace);
    assert!(
        found
            .iter()
            .any(|violation| violation.to_string().contains("optional normal edge wf-mcp-http"))
    );
}

#[test]
fn a_member_without_a_row_is_red_and_so_is_a_row_without_a_member() {
    let mut members = MEMBERS.to_vec();
    members.push("wf-new");
    let more = Workspace { tree: Tree::default(), metadata: graph(&members, &LAWFUL) };
    assert_eq!(edges(&more).len(), 1);
    members.retain(|name| *name != "wf-new" && *name != "wf-procedure");
    let lawful: Vec<_> =
        LAWFUL.iter().copied().filter(|(from, ..)| *from != "wf-procedure").collect();
    let fewer = Workspace { tree: Tree::default(), metadata: graph(&members, &lawful) };
    assert_eq!(edges(&fewer).len(), 1);
}

#[test]
fn a_vendor_named_in_the_wrong_room_is_red() {
    assert_eq!(check(&[("wf-mcp-http", "rusqlite", Kind::Normal)]), [0, 1, 1, 0]);
    assert_eq!(check(&[("wf-backend-aws", "hyper-util", Kind::Normal)]), [0, 1, 0, 0]);
    assert_eq!(check(&[("wf-core", "tokio", Kind::Dev)]), [0, 0, 0, 0]);
}

#[test]
fn a_vendor_deep_in_the_closure_is_red() {
    let deep =
        [("wf-procedure", "innocent", Kind::Normal), ("innocent", "aws-sdk-s3", Kind::Normal)];
    assert_eq!(check(&deep), [0, 0, 1, 0]);
    let tls = [("wf-mcp-http", "rustls", Kind::Normal), ("rustls", "aws-lc-rs", Kind::Normal)];
    assert_eq!(check(&tls), [0, 0, 0, 0]);
}

#[test]
fn the_allow_list_sees_what_no_ban_list_names() {
    let unheard = [("sha2", "telemetry-uploader", Kind::Build)];
    // Once for wf-idempotency, once for wf-core above it.
    assert_eq!(check(&unheard), [0, 0, 0, 2]);
}

#[test]
fn an_allowed_name_that_nothing_needs_is_red() {
    let mut workspace = workspace(&[]);
    workspace.tree.insert(
        ALLOW_LIST,
        "[bans]\nallow = [\"wf-core\", \"wf-idempotency\", \"sha2\", \"left-pad\"]\n",
    );
    assert_eq!(core_closure(&workspace).len(), 1);
}

#[test]
fn a_missing_or_empty_allow_list_never_passes() {
    let mut workspace = workspace(&[]);
    workspace.tree.insert(ALLOW_LIST, "[bans]\nallow = []\n");
    assert_eq!(core_closure(&workspace).len(), 1);
    workspace.tree.remove(ALLOW_LIST);
    assert_eq!(core_closure(&workspace).len(), 1);
    let nothing = Workspace { tree: workspace.tree, metadata: Metadata::default() };
    assert!(!core_closure(&nothing).is_empty());
}

#[test]
fn patterns_match_prefixes_and_leave_cryptography_alone() {
    assert_eq!(first_match(&[&["aws-*"]], "aws-sdk-sfn"), Some("aws-*"));
    assert_eq!(first_match(&[&["aws-*"]], "aws-lc-sys"), None);
    assert_eq!(first_match(&[&["http"]], "httparse"), None);
}

#[test]
fn failpoints_that_nobody_asked_for_are_red() {
    let mut lawful = workspace(&[("wf-cli", "fail", Kind::Normal)]);
    for dependency in lawful.metadata.packages.iter_mut().flat_map(|p| &mut p.dependencies) {
        dependency.optional = dependency.name == "fail";
    }
    assert_eq!(off_by_default(&lawful).len(), 0);
    let on_default = |by: &str| {
        let mut workspace = lawful.clone();
        for package in workspace.metadata.packages.iter_mut().filter(|p| p.name == "wf-cli") {
            package.features.insert("default".to_owned(), vec!["extra".to_owned()]);
            package.features.insert("extra".to_owned(), vec![by.to_owned()]);
        }
        off_by_default(&workspace).len()
    };
    for by in ["failpoints", "dep:fail", "fail", "fail/failpoints", "wf-backend-local?/failpoints"]
    {
        assert_eq!(on_default(by), 1, "{by}");
    }
    assert_eq!(on_default("failsafe"), 0);
    let always = workspace(&[("wf-cli", "fail", Kind::Normal)]);
    assert_eq!(off_by_default(&always).len(), 1);
    assert_eq!(off_by_default(&workspace(&[])).len(), 1, "nothing was checked");
}

/// A lawful graph in which the arrow to the backend for AWS is optional, and reaches the SDK.
fn with_optional_aws(more: &[(&str, &str, Kind)]) -> Workspace {
    let sdk = [("wf-backend-aws", "aws-sdk-dynamodb", Kind::Normal)];
    let mut workspace = workspace(&[&sdk, more].concat());
    for package in workspace.metadata.packages.iter_mut().filter(|p| p.name == "wf-cli") {
        let lines = package.dependencies.iter_mut().filter(|line| line.name == "wf-backend-aws");
        lines.for_each(|line| line.optional = true);
    }
    workspace
}

#[test]
fn a_binary_gets_aws_on_request_only() {
    let said = |workspace: &Workspace| optional_in_the_binary(workspace).len();
    assert_eq!(said(&with_optional_aws(&[])), 0);
    // Not optional.
    assert_eq!(said(&workspace(&[])), 1);
    // By another way, which is also said of the SDK behind the backend.
    assert_eq!(said(&with_optional_aws(&[("wf-mcp-http", "wf-backend-aws", Kind::Normal)])), 2);
    assert_eq!(said(&with_optional_aws(&[("wf-mcp-http", "aws-config", Kind::Build)])), 1);
    // In tests it is in no build, and cryptography is not the API.
    assert_eq!(said(&with_optional_aws(&[("wf-mcp-http", "aws-config", Kind::Dev)])), 0);
    assert_eq!(said(&with_optional_aws(&[("wf-mcp-http", "aws-lc-rs", Kind::Normal)])), 0);
    for (member, feature) in
        [("wf-cli", "aws"), ("wf-cli", "dep:wf-backend-aws"), ("xtask", "wf-cli/aws")]
    {
        let mut by_default = with_optional_aws(&[]);
        for package in by_default.metadata.packages.iter_mut().filter(|p| p.name == member) {
            package.features.insert("default".to_owned(), vec![feature.to_owned()]);
        }
        assert_eq!(said(&by_default), 1, "{member} {feature}");
    }
    assert_eq!(said(&Workspace { tree: Tree::default(), metadata: Metadata::default() }), 1);
}
