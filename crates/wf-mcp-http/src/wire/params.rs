//! Parameters of methods that are no tools: rmcp takes a request whose parameters it cannot read for one of a method that
//! it does not know, so they are tried here first.

use rmcp::model::{
    CompleteRequestParams, GetPromptRequestParams, PaginatedRequestParams,
    ReadResourceRequestParams, SubscriptionFilter,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What is wrong with the parameters of a method, and what would be right.
pub(crate) fn check(method: &str, params: Option<&Map<String, Value>>) -> Option<&'static str> {
    let whole = || Value::Object(params.cloned().unwrap_or_default());
    let (fits, rule) = match method {
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
            (reads::<PaginatedRequestParams>(whole()), "params.cursor must be a string")
        }
        "resources/read" => {
            (reads::<ReadResourceRequestParams>(whole()), "params.uri must be a string")
        }
        "prompts/get" => (
            reads::<GetPromptRequestParams>(whole()),
            "params.name must be a string, params.arguments an object of strings",
        ),
        "completion/complete" => (
            reads::<CompleteRequestParams>(whole()),
            "params.ref must name a prompt or a resource template, params.argument have name and value",
        ),
        "subscriptions/listen" => {
            let filter = params.and_then(|params| params.get("notifications"));
            let fits = filter.is_some_and(|filter| reads::<SubscriptionFilter>(filter.clone()));
            (
                fits,
                "params.notifications must be an object, resourceSubscriptions a list of addresses",
            )
        }
        _ => return None,
    };
    (!fits).then_some(rule)
}

fn reads<T: DeserializeOwned>(value: Value) -> bool {
    serde_json::from_value::<T>(value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_are_those_of_their_method() {
        let wrong = |method: &str, params: Value| check(method, params.as_object()).is_some();
        for (method, params) in [
            ("tools/list", json!({})),
            ("resources/list", json!({"cursor": "x"})),
            ("resources/read", json!({"uri": "workflow://schemas/result", "_meta": {}})),
            ("prompts/get", json!({"name": "x", "arguments": {"a": "b"}})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
            ),
            ("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": ["x"]}})),
            ("tools/call", json!({"anything": 1})),
        ] {
            assert!(!wrong(method, params), "{method}");
        }
        for (method, params) in [
            ("tools/list", json!({"cursor": 7})),
            ("resources/templates/list", json!({"cursor": {}})),
            ("resources/read", json!({})),
            ("resources/read", json!({"uri": ["x"]})),
            ("prompts/get", json!({"arguments": {}})),
            ("prompts/get", json!({"name": "x", "arguments": []})),
            ("completion/complete", json!({"ref": {"type": "ref/other"}, "argument": {}})),
            ("subscriptions/listen", json!({})),
            ("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [1]}})),
        ] {
            assert!(wrong(method, params), "{method}");
        }
        assert!(check("resources/read", None).is_some());
        assert!(check("tools/list", None).is_none());
    }
}
