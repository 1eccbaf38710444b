//! What a start needs, and what it would be.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};
use wf_core::limits::SPOKEN_TEXT_CHARS_MAX;
use wf_core::models::Text;
use wf_core::policy::{NeededAsset, Needs, PlannedAsset, StartPlan, StartRefusal};
use wf_core::redaction::Quoted;

use crate::problem::one_of;
use crate::rules::{AssetRule, InputRules, Rules};
use crate::words;

/// What must be given.
pub(crate) fn needs(rules: &Rules) -> Needs {
    Needs {
        assets: rules.assets.iter().map(needed_asset).collect(),
        inputs: rules.inputs.iter().flat_map(|i| &i.inputs).map(|i| i.needed.clone()).collect(),
    }
}

fn needed_asset(asset: &AssetRule) -> NeededAsset {
    NeededAsset { role: asset.role.clone(), say: asset.say.clone(), example: asset.example.clone() }
}

/// What a start with these assets and inputs would be.
pub(crate) fn plan(
    rules: &Rules,
    assets: &BTreeMap<String, String>,
    inputs: &Map<String, Value>,
) -> Result<StartPlan, StartRefusal> {
    let assets = planned_assets(rules, assets)?;
    let (inputs, sensitive_inputs) = planned_inputs(rules, inputs)?;
    Ok(StartPlan {
        label: label(rules, &assets),
        assets,
        inputs,
        sensitive_inputs,
        deadlines: rules.deadlines.clone(),
    })
}

/// The assets' names, or the title of a procedure without any.
fn label(rules: &Rules, assets: &[PlannedAsset]) -> Text {
    let names: Vec<&Text> = assets.iter().map(|a| &a.say).collect();
    let Some(first) = names.first() else {
        return rules.title.clone();
    };
    let all = words::compose(&names, |w| w.join(", "));
    if all.wordings().any(|w| w.chars().count() > SPOKEN_TEXT_CHARS_MAX) {
        (*first).clone()
    } else {
        all
    }
}

fn planned_assets(
    rules: &Rules,
    given: &BTreeMap<String, String>,
) -> Result<Vec<PlannedAsset>, StartRefusal> {
    let roles: Vec<&str> = rules.assets.iter().map(|a| a.role.as_str()).collect();
    if let Some(unknown) = given.keys().find(|r| !roles.contains(&r.as_str())) {
        let rule = if roles.is_empty() {
            "this procedure has no assets".to_owned()
        } else {
            format!("{} is no role; {}", Quoted(unknown), one_of(unknown, &roles))
        };
        return Err(StartRefusal::Invalid {
            field: format!("assets.{}", words::cut(unknown, 64)),
            rule,
            say: Text::from("This procedure does not use that."),
        });
    }
    let mut planned = Vec::new();
    let mut held = BTreeSet::new();
    for asset in &rules.assets {
        let raw = given.get(asset.role.as_str()).map(|r| r.trim());
        let Some(raw) = raw.filter(|r| !r.is_empty()) else {
            return Err(StartRefusal::Missing { asset: Some(needed_asset(asset)), input: None });
        };
        let invalid = |rule: String, say: Text| StartRefusal::Invalid {
            field: format!("assets.{}", asset.role),
            rule,
            say,
        };
        let Some(named) = asset.id.canonical(raw, &asset.say) else {
            let like = asset.example.as_ref();
            let like = like.map_or_else(String::new, |e| format!("; for example {e}"));
            let rule = format!("{} is no id of a {}{like}", Quoted(raw), asset.role);
            let say =
                words::map(&asset.say, |w| format!("I do not know that {w}. Which one is it?"));
            return Err(invalid(rule, say));
        };
        if !held.insert(named.id.clone()) {
            let rule = format!("{} is given in two roles", named.id);
            let say =
                words::map(&named.say, |w| format!("{} cannot be used twice.", words::sentence(w)));
            return Err(invalid(rule, say));
        }
        planned.push(PlannedAsset { role: asset.role.clone(), id: named.id, say: named.say });
    }
    Ok(planned)
}

type Inputs = Map<String, Value>;

fn planned_inputs(rules: &Rules, given: &Inputs) -> Result<(Inputs, Inputs), StartRefusal> {
    let Some(inputs) = &rules.inputs else {
        return match given.keys().next() {
            None => Ok((Map::new(), Map::new())),
            Some(name) => Err(StartRefusal::Invalid {
                field: format!("inputs.{}", words::cut(name, 64)),
                rule: "this procedure has no inputs".to_owned(),
                say: Text::from("This procedure asks for no inputs."),
            }),
        };
    };
    for input in &inputs.inputs {
        if input.needed.required && !given.contains_key(&input.needed.name) {
            return Err(StartRefusal::Missing { asset: None, input: Some(input.needed.clone()) });
        }
    }
    let whole = Value::Object(given.clone());
    if let Err(error) = inputs.validator.validate(&whole) {
        return Err(invalid_input(inputs, &error));
    }
    let sensitive =
        |name: &str| inputs.inputs.iter().any(|i| i.needed.name == name && i.kind.sensitive);
    Ok(given.clone().into_iter().partition(|(name, _)| !sensitive(name)))
}

/// The refusal of one validation error. The value itself is never repeated: it may be sensitive.
fn invalid_input(inputs: &InputRules, error: &jsonschema::ValidationError<'_>) -> StartRefusal {
    let unexpected = if let ValidationErrorKind::AdditionalProperties { unexpected }
    | ValidationErrorKind::UnevaluatedProperties { unexpected } = error.kind()
    {
        unexpected.first().cloned()
    } else {
        None
    };
    let path = error.instance_path().as_str().trim_start_matches('/').to_owned();
    let first = path.split('/').next().unwrap_or_default();
    let name = unexpected.clone().unwrap_or_else(|| first.replace("~1", "/").replace("~0", "~"));
    let known = inputs.inputs.iter().find(|i| i.needed.name == name);
    let rule = match unexpected {
        Some(_) => "there is no such input".to_owned(),
        None => words::cut(&error.masked().to_string(), 200),
    };
    let say = known.map_or_else(
        || Text::from("One of the inputs is not right."),
        |input| {
            words::map(&input.needed.say, |w| {
                format!("That {w} is not right. Please say it again.")
            })
        },
    );
    StartRefusal::Invalid {
        field: if name.is_empty() {
            "inputs".to_owned()
        } else {
            format!("inputs.{}", words::cut(&name, 64))
        },
        rule,
        say,
    }
}
