//! What `resources/list` and `resources/templates/list` have, and pages of lists.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::ErrorData;
use rmcp::model::{PaginatedRequestParams, Resource, ResourceTemplate};
use wf_core::engine::Engine;
use wf_core::models::{Locale, Workflow};

use super::address::{self, Address};

/// Items of one page.
const PAGE: usize = 100;

/// What begins every cursor of ours. Others may list beside us.
pub(crate) const CURSOR: &str = "own.";

/// The page that a cursor asks for, and the cursor of the next one. Items come in the order of their keys, so that a page
/// goes on behind the last one also when something came or went in between.
pub(crate) fn page<T>(
    mut all: Vec<T>,
    key: impl Fn(&T) -> String,
    request: Option<PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    all.sort_by_key(&key);
    if let Some(cursor) = request.and_then(|params| params.cursor) {
        let last = cursor.strip_prefix(CURSOR).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        let last = last.and_then(|bytes| String::from_utf8(bytes).ok());
        let last = last.ok_or_else(|| {
            ErrorData::invalid_params("params.cursor must be a nextCursor of this list", None)
        })?;
        all.retain(|item| key(item) > last);
    }
    let more = all.len() > PAGE;
    all.truncate(PAGE);
    let last = all.last().filter(|_| more).map(&key);
    let next = last.map(|last| format!("{CURSOR}{}", URL_SAFE_NO_PAD.encode(last)));
    Ok((all, next))
}

/// The schema of results.
pub(super) fn schema() -> Resource {
    Resource::new(address::SCHEMA, "result-schema")
        .with_title("Schema of results")
        .with_description("JSON Schema of the object that every tool answers")
        .with_mime_type(Address::Schema.mime_type())
}

/// The procedures that may be started.
pub(super) fn procedures(engine: &Engine, locale: &Locale) -> Vec<Resource> {
    let all = engine.procedures();
    let listed = all.iter().map(|policy| {
        let definition = policy.definition();
        let address = Address::Procedure(definition.id.clone());
        Resource::new(address.to_string(), definition.id.as_str())
            .with_title(definition.title.get(locale))
            .with_description(format!("Procedure, version {}", definition.version))
            .with_mime_type(address.mime_type())
    });
    listed.collect()
}

/// A workflow as it stands.
pub(super) fn workflow(workflow: &Workflow, locale: &Locale) -> Resource {
    let address = Address::Workflow(workflow.id.clone());
    Resource::new(address.to_string(), workflow.id.as_str())
        .with_title(workflow.label.get(locale))
        .with_description(format!("Workflow, {}", workflow.phase.as_str()))
        .with_mime_type(address.mime_type())
}

/// Every template.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, title: &str, says: &str| {
        ResourceTemplate::new(uri, name)
            .with_title(title)
            .with_description(says)
            .with_mime_type("application/json")
    };
    vec![
        template(
            address::PROCEDURE,
            "procedure",
            "Procedure",
            "A procedure that may be started: what it needs, and its document as written",
        ),
        template(
            address::WORKFLOW,
            "workflow",
            "Workflow",
            "A workflow as it stands, as get_status answers",
        ),
        template(
            address::HISTORY,
            "history",
            "History of a workflow",
            "Everything that happened, oldest first, a hundred events a page; pages count from 1",
        ),
        template(
            address::EVIDENCE,
            "evidence",
            "Evidence of a workflow",
            "History, state and definition in one document; wf-cli verify-evidence checks it without the server",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(all: &[&str], cursor: Option<String>) -> (Vec<String>, Option<String>) {
        let all = all.iter().map(|&item| item.to_owned()).collect();
        let request = PaginatedRequestParams::default().with_cursor(cursor);
        page(all, Clone::clone, Some(request)).unwrap()
    }

    #[test]
    fn pages_go_on_behind_the_last_item_whatever_came_or_went() {
        let names: Vec<String> = (0..250).map(|n| format!("n{n:03}")).collect();
        let mut all: Vec<&str> = names.iter().map(String::as_str).rev().collect();
        let (first, next) = ask(&all, None);
        assert_eq!((first.len(), first[0].as_str(), first[99].as_str()), (100, "n000", "n099"));
        // The last one of the page goes, and one comes before and one behind.
        all.retain(|name| *name != "n099");
        all.extend(["n0055", "n0995"]);
        let (second, next) = ask(&all, next);
        assert_eq!((second[0].as_str(), second[1].as_str()), ("n0995", "n100"));
        let (third, next) = ask(&all, next);
        assert_eq!((third.len(), next), (51, None));
    }

    #[test]
    fn a_cursor_of_somebody_else_is_refused() {
        for bad in ["", "x", "own.%", "own.____", "bjAwMA"] {
            let request = PaginatedRequestParams::default().with_cursor(Some(bad.to_owned()));
            assert!(page(vec!["a".to_owned()], Clone::clone, Some(request)).is_err(), "{bad}");
        }
    }
}
