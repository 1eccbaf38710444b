//! Whether the files of secrets can be used: signing keys, and the secrets and addresses of webhooks. What is in them is
//! never shown.

use super::{Check, unusable};
use crate::config::Config;
use crate::exit::Failure;
use crate::signing_keys;
use crate::sink::Router;

/// Looks at each of them, as a start of the server would.
pub(super) fn checks(config: &Config) -> Vec<Check> {
    let keys = config.server.secret_file.as_ref().map(|path| {
        let says = || format!("{} signs", path.display());
        of("signing keys", signing_keys::read(path).map(|_| ()), says)
    });
    let routes = config.routes.iter().filter_map(|route| {
        let path = route.sink.secret_file()?;
        let opened = Router::open(std::slice::from_ref(route), None).map(|_| ());
        Some(of("webhook", opened, || format!("to {}, signed by {}", route.to, path.display())))
    });
    keys.into_iter().chain(routes).collect()
}

fn of(name: &'static str, used: Result<(), Failure>, says: impl FnOnce() -> String) -> Check {
    match used {
        Ok(()) => Check::ok(name, says()),
        Err(failure) => unusable(name, &failure),
    }
}
