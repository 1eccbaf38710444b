//! What a server of two can do: whatever either can.

use rmcp::model::ServerCapabilities;

/// What either can do.
pub(super) fn united(
    mut ours: ServerCapabilities,
    theirs: ServerCapabilities,
) -> ServerCapabilities {
    ours.experimental = ours.experimental.or(theirs.experimental);
    ours.extensions = ours.extensions.or(theirs.extensions);
    ours.logging = ours.logging.or(theirs.logging);
    ours.completions = ours.completions.or(theirs.completions);
    ours.tools = match (ours.tools, theirs.tools) {
        (Some(mut ours), Some(theirs)) => {
            ours.list_changed = ours.list_changed.or(theirs.list_changed);
            Some(ours)
        }
        (ours, theirs) => ours.or(theirs),
    };
    ours.prompts = match (ours.prompts, theirs.prompts) {
        (Some(mut ours), Some(theirs)) => {
            ours.list_changed = ours.list_changed.or(theirs.list_changed);
            Some(ours)
        }
        (ours, theirs) => ours.or(theirs),
    };
    ours.resources = match (ours.resources, theirs.resources) {
        (Some(mut ours), Some(theirs)) => {
            ours.list_changed = ours.list_changed.or(theirs.list_changed);
            ours.subscribe = ours.subscribe.or(theirs.subscribe);
            Some(ours)
        }
        (ours, theirs) => ours.or(theirs),
    };
    ours
}
