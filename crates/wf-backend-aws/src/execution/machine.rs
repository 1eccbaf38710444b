//! The state machine itself: made for development, changed when this build has another definition, compared for doctor.
//!
//! In production a stack of `wf-cli aws template` makes it. Neighbours: `definition`, `states` (its executions).

use std::error::Error;

use aws_sdk_sfn::Client;
use aws_sdk_sfn::config::http::HttpResponse;
use aws_sdk_sfn::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sfn::types::StateMachineType;
use serde_json::Value;
use wf_core::ports::OpenError;

use super::definition::definition;
use super::states::Trouble;
use crate::client::connect_states;
use crate::config::AwsConfig;
use crate::fault::Cause;

/// How the state machine is that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deployed {
    /// As this build defines it.
    Same,
    /// It has another definition, or another type; what is other, one line each.
    Other(Vec<String>),
    /// There is none.
    Absent,
    /// It could not be looked at: why.
    Unknown(String),
}

/// What making a state machine did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// Nothing: it is there, as this build defines it.
    Nothing,
    /// It was not there.
    Created,
    /// It had another definition.
    Updated,
}

/// The name, the partition and the ARN without version and alias.
fn parts(arn: &str) -> Option<(&str, &str, String)> {
    let parts: Vec<&str> = arn.split(':').collect();
    let plain = parts.get(..7)?.join(":");
    Some((parts.get(6)?, parts.get(1)?, plain))
}

/// Compares the state machine of the configuration with what this build defines; none when none is configured. Writes
/// nothing.
pub async fn deployed(config: &AwsConfig) -> Option<Deployed> {
    let arn = config.state_machine_arn.as_deref()?;
    let Some((_, partition, plain)) = parts(arn) else {
        return Some(Deployed::Unknown(format!("{arn} is no ARN of a state machine")));
    };
    let client = connect_states(config).await;
    Some(match look(&client, &plain, partition).await {
        Ok(found) => found,
        Err(trouble) => Deployed::Unknown(in_words(&trouble)),
    })
}

async fn look(client: &Client, arn: &str, partition: &str) -> Result<Deployed, Trouble> {
    let answer = match client.describe_state_machine().state_machine_arn(arn).send().await {
        Ok(answer) => answer,
        Err(error) => {
            return match Trouble::of(error) {
                Trouble::NoMachine(_) => Ok(Deployed::Absent),
                other @ (Trouble::Throttled(_)
                | Trouble::Silent(_)
                | Trouble::Contradictory(_)
                | Trouble::Denied(_)
                | Trouble::Refused(_)) => Err(other),
            };
        }
    };
    let mut other = Vec::new();
    if *answer.r#type() != StateMachineType::Standard {
        other.push(format!("it is {}, not STANDARD", answer.r#type().as_str()));
    }
    match serde_json::from_str::<Value>(answer.definition()) {
        Ok(found) => differences(&found, &definition(partition), &mut other),
        Err(_) => other.push("its definition is no JSON".to_owned()),
    }
    Ok(if other.is_empty() { Deployed::Same } else { Deployed::Other(other) })
}

/// What differs, by state.
fn differences(found: &Value, wanted: &Value, other: &mut Vec<String>) {
    if found == wanted {
        return;
    }
    let before = other.len();
    let states = |of: &Value| of["States"].as_object().cloned().unwrap_or_default();
    let (there, here) = (states(found), states(wanted));
    for (name, state) in &here {
        match there.get(name) {
            None => other.push(format!("the state {name} is missing")),
            Some(its) if its != state => other.push(format!("the state {name} is another")),
            Some(_) => {}
        }
    }
    let foreign = there.keys().filter(|name| !here.contains_key(*name));
    other.extend(foreign.map(|name| format!("the state {name} is not ours")));
    if other.len() == before {
        other.push("something beside its states is another".to_owned());
    }
}

/// Makes the state machine of the configuration where there is none, and gives it the definition of this build where it has
/// another; none when none is configured. `role` is what its executions are; needed to make one.
///
/// # Errors
/// When a state machine of this name is no STANDARD one or is elsewhere, when it would have to be made without a role, or
/// when Step Functions does not do it.
pub async fn create(config: &AwsConfig, role: Option<&str>) -> Result<Option<Made>, OpenError> {
    let Some(arn) = config.state_machine_arn.as_deref() else { return Ok(None) };
    let refused = |message: String| OpenError::Refused { message };
    let (name, partition, plain) =
        parts(arn).ok_or_else(|| refused(format!("{arn} is no ARN of a state machine")))?;
    let client = connect_states(config).await;
    let wanted = definition(partition).to_string();
    match look(&client, &plain, partition).await.map_err(|trouble| told(&trouble))? {
        Deployed::Same => Ok(Some(Made::Nothing)),
        Deployed::Other(what) if what.iter().any(|line| line.ends_with("not STANDARD")) => {
            Err(refused(format!("the state machine {name} cannot be used: {}", what.join("; "))))
        }
        Deployed::Other(_) => {
            let request = client.update_state_machine().state_machine_arn(plain);
            request.definition(wanted).send().await.map_err(failed)?;
            Ok(Some(Made::Updated))
        }
        Deployed::Absent => {
            let role = role.ok_or_else(|| {
                refused(format!(
                    "there is no state machine {name}, and making one needs the role of its executions: \
                     --execution-role ARN, or the stack of `wf-cli aws template`"
                ))
            })?;
            let request = client.create_state_machine().name(name).definition(wanted);
            let request = request.role_arn(role).r#type(StateMachineType::Standard);
            let made = request.send().await.map_err(failed)?;
            if made.state_machine_arn() == plain {
                return Ok(Some(Made::Created));
            }
            Err(refused(format!(
                "the state machine was made as {}: say so in backend.aws.state_machine_arn",
                made.state_machine_arn()
            )))
        }
        Deployed::Unknown(why) => Err(refused(why)),
    }
}

fn failed<E>(error: SdkError<E, HttpResponse>) -> OpenError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    told(&Trouble::of(error))
}

/// Trouble as what hinders a store from being opened.
fn told(trouble: &Trouble) -> OpenError {
    let words = in_words(trouble);
    match trouble {
        Trouble::Throttled(_) | Trouble::Silent(_) | Trouble::Contradictory(_) => {
            OpenError::Unavailable { source: Box::new(Cause::said(words)) }
        }
        Trouble::NoMachine(_) | Trouble::Denied(_) | Trouble::Refused(_) => {
            OpenError::Refused { message: words }
        }
    }
}

fn in_words(trouble: &Trouble) -> String {
    let cause = trouble.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{trouble}{cause}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_other_is_named_by_state() {
        let ours = definition("aws");
        let with = |change: fn(&mut Value)| {
            let (mut found, mut other) = (definition("aws"), Vec::new());
            change(&mut found);
            differences(&found, &ours, &mut other);
            other
        };
        assert_eq!(with(|_| {}), Vec::<String>::new());
        assert_eq!(
            with(|found| found["States"]["Await"]["TimeoutSecondsPath"] = json!("$.other")),
            ["the state Await is another"]
        );
        assert_eq!(
            with(|found| found["States"]["More"] = json!({ "Type": "Succeed" })),
            ["the state More is not ours"]
        );
        let fewer = |found: &mut Value| {
            found["States"].as_object_mut().expect("states").remove("Rest");
        };
        assert_eq!(with(fewer), ["the state Rest is missing"]);
        let beside = |found: &mut Value| found["Comment"] = json!("x");
        assert_eq!(with(beside), ["something beside its states is another"]);
    }

    #[test]
    fn a_qualified_arn_is_looked_at_without_its_alias() {
        let arn = "arn:aws-cn:states:cn-north-1:123456789012:stateMachine:wf";
        for qualified in [arn.to_owned(), format!("{arn}:live")] {
            assert_eq!(parts(&qualified), Some(("wf", "aws-cn", arn.to_owned())));
        }
        assert_eq!(parts("arn:x"), None);
    }
}
