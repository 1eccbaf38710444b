//! Section `[backend]`: where the state is, and what of it contradicts itself.

use std::fmt;
use std::path::PathBuf;

use super::auth::is_private_on_the_way;
use super::check::Typed;
use super::layers::{Layers, Origin};

/// Where the state is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BackendConfig {
    /// In one SQLite file.
    Local {
        /// The file.
        path: PathBuf,
    },
    /// In one DynamoDB table.
    Aws(AwsTable),
}

/// A DynamoDB table, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AwsTable {
    /// Its name.
    pub(crate) name: String,
    /// Its region; from the environment or the profile when absent.
    pub(crate) region: Option<String>,
    /// Another endpoint than that of the region.
    pub(crate) endpoint_url: Option<String>,
    /// The Step Functions state machine that gives workflows a life in time, if one does.
    pub(crate) machine: Option<StateMachine>,
}

/// A Step Functions state machine, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateMachine {
    /// Its ARN.
    pub(crate) arn: String,
    /// Another endpoint than that of its region.
    pub(crate) endpoint_url: Option<String>,
    /// This server keeps an execution for each open workflow; when not, another process does.
    pub(crate) reconciler: bool,
}

impl fmt::Display for AwsTable {
    /// For people: the table and where it was said to be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamoDB table {}", self.name)?;
        if let Some(region) = &self.region {
            write!(f, " in {region}")?;
        }
        if let Some(url) = &self.endpoint_url {
            write!(f, " at {}", super::value::masked_url(url, true))?;
        }
        Ok(())
    }
}

/// The typed section.
pub(super) fn typed(settings: Typed<'_>) -> BackendConfig {
    let text = |path: &str| settings.text(path).map(str::to_owned);
    if is_aws(settings) {
        return BackendConfig::Aws(AwsTable {
            name: text("backend.aws.table").unwrap_or_default(),
            region: text("backend.aws.region"),
            endpoint_url: text("backend.aws.endpoint_url"),
            machine: text(MACHINE).map(|arn| StateMachine {
                arn,
                endpoint_url: text("backend.aws.states_endpoint_url"),
                reconciler: settings.switch("backend.aws.reconciler"),
            }),
        });
    }
    let path = settings.path("backend.local.path");
    BackendConfig::Local { path: path.unwrap_or_else(|| PathBuf::from("checkpoint.db")) }
}

const MACHINE: &str = "backend.aws.state_machine_arn";

/// Keys that count with a table only.
const OF_A_TABLE: [&str; 6] = [
    "backend.aws.table",
    "backend.aws.region",
    "backend.aws.endpoint_url",
    MACHINE,
    "backend.aws.states_endpoint_url",
    "backend.aws.reconciler",
];

/// Whether it is a file, as far as the layers can be used.
pub(super) fn is_local(layers: &Layers) -> bool {
    !is_aws(Typed(&layers.settings))
}

fn is_aws(settings: Typed<'_>) -> bool {
    settings.text("backend.kind") == Some("aws")
}

/// Which backends a build has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backends {
    pub(super) local: bool,
    pub(super) aws: bool,
}

impl Backends {
    /// Those of this build.
    pub(super) const HERE: Self =
        Self { local: cfg!(feature = "local"), aws: cfg!(feature = "aws") };
}

/// What a build without the backend that a configuration asks for says of that, and how to get one that has it.
pub(super) fn left_out(layers: &Layers, built_with: Backends) -> Option<(String, &'static str)> {
    let (kind, built, how) = if is_aws(Typed(&layers.settings)) {
        ("aws", built_with.aws, HOW_TO_GET_AWS)
    } else {
        ("local", built_with.local, HOW_TO_GET_LOCAL)
    };
    let origin = layers.settings.get("backend.kind").map_or(&Origin::Default, |s| &s.origin);
    let says = || {
        format!(
            "{origin}: backend.kind = \"{kind}\" needs the feature `{kind}`, which this build lacks"
        )
    };
    (!built).then(|| (says(), how))
}

/// How to get a build that has the backend for DynamoDB.
pub(crate) const HOW_TO_GET_AWS: &str =
    "build it with `cargo build --release -p wf-cli --features aws`";
/// How to get a build that has the backend for files, or to do without.
pub(crate) const HOW_TO_GET_LOCAL: &str = "build it without `--no-default-features`, or keep the state in a DynamoDB table: backend.kind = \"aws\"";

/// What contradicts itself, one line each.
pub(super) fn problems(layers: &Layers) -> Vec<String> {
    let settings = Typed(&layers.settings);
    let mut found = Vec::new();
    let mut wrong = |path: &str, says: &str| {
        let origin = layers.settings.get(path).map_or(&Origin::Default, |s| &s.origin);
        found.push(format!("{origin}: {path} {says}"));
    };
    // Somebody who names a table, or a file, believes that the state is there.
    let (other, says): (&[&str], _) = if is_aws(settings) {
        (&["backend.local.path"], "counts with backend.kind = \"local\" only")
    } else {
        (&OF_A_TABLE, "counts with backend.kind = \"aws\" only")
    };
    let is_set =
        |path: &str| layers.settings.get(path).is_some_and(|s| s.origin != Origin::Default);
    for path in other.iter().filter(|path| is_set(path)) {
        wrong(path, says);
    }
    if is_aws(settings) {
        match settings.text("backend.aws.table") {
            None => wrong("backend.aws.table", "must be set when backend.kind is \"aws\""),
            Some(name) if !is_table_name(name) => wrong(
                "backend.aws.table",
                "must be 3 to 255 letters, digits, dots, hyphens and underscores",
            ),
            Some(_) => {}
        }
        // Requests hold every value that people recorded, and what may answer an execution.
        for path in ["backend.aws.endpoint_url", "backend.aws.states_endpoint_url"] {
            if settings.text(path).is_some_and(|url| !is_private_on_the_way(url)) {
                wrong(path, "must begin with https:// unless it is on this machine");
            }
        }
        match settings.text(MACHINE) {
            Some(arn) => {
                if let Some(says) = wrong_machine(arn, settings.text("backend.aws.region")) {
                    wrong(MACHINE, &says);
                }
            }
            None => {
                for path in ["backend.aws.states_endpoint_url", "backend.aws.reconciler"] {
                    if is_set(path) {
                        wrong(path, "counts with backend.aws.state_machine_arn only");
                    }
                }
            }
        }
    }
    found
}

/// What is wrong with the ARN of a state machine, whose table is in `region`.
fn wrong_machine(arn: &str, region: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = arn.split(':').collect();
    let (["arn", partition, "states", its_region, account, "stateMachine", name]
    | ["arn", partition, "states", its_region, account, "stateMachine", name, _]) =
        parts.as_slice()
    else {
        return Some(NO_MACHINE.to_owned());
    };
    let digits = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = (1..=80).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if partition.is_empty() || its_region.is_empty() || !digits || !is_name {
        return Some(NO_MACHINE.to_owned());
    }
    // Executions reach the tables of their own region only.
    let elsewhere = region.filter(|region| region != its_region);
    elsewhere.map(|region| format!("is in {its_region}, and the table in {region}"))
}

const NO_MACHINE: &str =
    "must be an ARN such as arn:aws:states:eu-west-1:123456789012:stateMachine:checkpoint";

/// As DynamoDB takes them (Developer Guide, naming rules).
pub(crate) fn is_table_name(name: &str) -> bool {
    (3..=255).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::super::layers::Sources;
    use super::*;

    fn layers(flags: &[(&str, &str)]) -> Layers {
        let flag = |(path, value): &(&str, &str)| {
            ((*path).to_owned(), (*value).to_owned(), "--set".to_owned())
        };
        let flags = flags.iter().map(flag).collect();
        let layers = Layers::read(&Sources { flags, ..Sources::default() });
        assert_eq!(layers.problems, Vec::<String>::new());
        layers
    }

    const AWS: [(&str, &str); 2] = [("backend.kind", "aws"), ("backend.aws.table", "checkpoint")];

    #[test]
    fn what_is_whole_is_accepted_and_typed() {
        assert_eq!(problems(&layers(&[])), Vec::<String>::new());
        assert_eq!(problems(&layers(&[("backend.local.path", "a.db")])), Vec::<String>::new());
        let more =
            [("backend.aws.region", "eu-west-1"), ("backend.aws.endpoint_url", "http://[::1]:8")];
        let whole = layers(&[AWS.as_slice(), &more].concat());
        assert_eq!(problems(&whole), Vec::<String>::new());
        let BackendConfig::Aws(table) = typed(Typed(&whole.settings)) else { unreachable!() };
        assert_eq!(table.to_string(), "DynamoDB table checkpoint in eu-west-1 at http://[::1]:8");
    }

    #[test]
    fn what_contradicts_itself_is_named() {
        let with = |more: &[(&str, &str)]| problems(&layers(&[AWS.as_slice(), more].concat()));
        for (more, says) in [
            (("backend.aws.table", "a b c"), "backend.aws.table must be 3 to 255 letters"),
            (("backend.aws.table", "ab"), "backend.aws.table must be 3 to 255 letters"),
            (("backend.aws.endpoint_url", "http://10.0.0.1"), "must begin with https://"),
            (("backend.local.path", "a.db"), "backend.kind = \"local\" only"),
        ] {
            let found = with(&[more]);
            assert!(found.len() == 1 && found[0].contains(says), "{says}: {found:?}");
        }
        let bare = problems(&layers(&[("backend.kind", "aws")]));
        assert_eq!(bare, ["default: backend.aws.table must be set when backend.kind is \"aws\""]);
    }

    #[test]
    fn a_table_without_the_kind_does_not_go_unnoticed() {
        for (path, value) in [
            ("backend.aws.table", "checkpoint"),
            ("backend.aws.region", "eu-west-1"),
            ("backend.aws.endpoint_url", "http://127.0.0.1:1"),
            (MACHINE, ARN),
            ("backend.aws.states_endpoint_url", "http://127.0.0.1:1"),
            ("backend.aws.reconciler", "false"),
        ] {
            let found = problems(&layers(&[(path, value)]));
            assert!(found.len() == 1 && found[0].contains("\"aws\" only"), "{found:?}");
        }
    }

    const ARN: &str = "arn:aws:states:eu-west-1:123456789012:stateMachine:checkpoint";

    #[test]
    fn a_state_machine_is_one_and_is_where_the_table_is() {
        let with = |more: &[(&str, &str)]| layers(&[AWS.as_slice(), more].concat());
        let machine = |layers: &Layers| {
            let BackendConfig::Aws(table) = typed(Typed(&layers.settings)) else { unreachable!() };
            table.machine
        };
        assert_eq!(machine(&with(&[])), None);
        let whole = with(&[(MACHINE, ARN), ("backend.aws.region", "eu-west-1")]);
        assert_eq!(problems(&whole), Vec::<String>::new());
        assert!(machine(&whole).is_some_and(|machine| machine.arn == ARN && machine.reconciler));
        let off = with(&[(MACHINE, &format!("{ARN}:live")), ("backend.aws.reconciler", "false")]);
        assert_eq!(problems(&off), Vec::<String>::new());
        assert!(machine(&off).is_some_and(|machine| !machine.reconciler));
        for (more, says) in [
            (&[(MACHINE, "arn:x")][..], "must be an ARN"),
            (&[(MACHINE, "arn:aws:states:eu-west-1:1:stateMachine:x")], "must be an ARN"),
            (&[(MACHINE, "arn:aws:states:eu-west-1:123456789012:execution:x:y")], "must be an ARN"),
            (&[(MACHINE, ARN), ("backend.aws.region", "eu-west-2")], "is in eu-west-1, and"),
            (&[("backend.aws.reconciler", "false")], "state_machine_arn only"),
            (
                &[(MACHINE, ARN), ("backend.aws.states_endpoint_url", "http://10.0.0.1")],
                "must begin with https://",
            ),
        ] {
            let found = problems(&with(more));
            assert!(found.len() == 1 && found[0].contains(says), "{says}: {found:?}");
        }
    }

    #[test]
    fn a_build_without_the_backend_says_so() {
        let built = |local, aws| Backends { local, aws };
        let (says, _) = left_out(&layers(&AWS), built(true, false)).unwrap();
        assert!(says.starts_with("--set: backend.kind = \"aws\" needs the feature"), "{says}");
        assert_eq!(left_out(&layers(&AWS), built(false, true)), None);
        assert_eq!(left_out(&layers(&[]), built(true, false)), None);
        let (says, how) = left_out(&layers(&[]), built(false, true)).unwrap();
        assert!(says.starts_with("default: backend.kind = \"local\" needs"), "{says}");
        assert!(how.contains("backend.kind = \"aws\""), "{how}");
    }
}
