//! cfn-lint over the CloudFormation template, and over broken ones, which it must refuse.
//!
//! That the template is what `wf-cli aws template` prints, the stage `generated` looks after.

use std::path::Path;

use super::python::Program;
use crate::ci::target;
use crate::fault::Fault;
use crate::process::{Run, both};

/// The template.
const TEMPLATE: &str = "deploy/cloudformation.json";

const LINT: Program = Program {
    name: "cfn-lint",
    folder: "cfn-lint",
    pins: "crates/wf-backend-aws/tests/cfn-lint.txt",
};

/// Faults that a change of the template could bring: what is replaced, by what, and the rule that must say so.
const BROKEN: [(&str, &str, &str); 5] = [
    (r#""KEYS_ONLY""#, r#""KEYS""#, "E3030"),
    (
        "\"AttributeName\": \"id_sk\",\n            \"AttributeType\"",
        "\"AttributeName\": \"id\",\n            \"AttributeType\"",
        "E3039",
    ),
    (r#""Ref": "ServerRole""#, r#""Ref": "Server""#, "E1020"),
    (r#""dynamodb:Query""#, r#""dynamodb:Querry""#, "W3037"),
    (",\n      \"UpdateReplacePolicy\": \"Retain\"", "", "W3011"),
];

/// Lints the template. True if it is good, and the broken ones are not.
pub(super) fn lint(root: &Path) -> Result<bool, Fault> {
    let program = LINT.install(root)?;
    let program = program.to_string_lossy();
    let run = Run::new(root, &program, &["--", TEMPLATE]);
    println!("{}", run.shown());
    if !run.succeeds()? {
        return Ok(false);
    }
    let path = root.join(TEMPLATE);
    let good = std::fs::read_to_string(&path).map_err(|source| Fault::file(&path, source))?;
    let broken = target(root).join("broken-template.json");
    let shown = broken.to_string_lossy().into_owned();
    for (what, by, rule) in BROKEN {
        if !good.contains(what) {
            return Err(Fault::parse(TEMPLATE, &format!("it has no `{what}` to break")));
        }
        std::fs::write(&broken, good.replacen(what, by, 1))
            .map_err(|source| Fault::file(&broken, source))?;
        let output = Run::new(root, &program, &["--", &shown]).output()?;
        if output.status.success() || !both(&output).contains(rule) {
            println!("cfn-lint does not refuse `{by}` in the place of `{what}` by {rule}:");
            println!("{}", both(&output));
            return Ok(false);
        }
    }
    println!("{TEMPLATE} is good, and {} broken ones are not", BROKEN.len());
    std::fs::remove_file(&broken).map_err(|source| Fault::file(&broken, source))?;
    Ok(true)
}
