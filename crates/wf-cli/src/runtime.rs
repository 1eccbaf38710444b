//! The runtime that everything but SQLite runs on, and how many threads it has.

use std::num::NonZeroUsize;

use tokio::runtime::{Builder, Runtime};

use crate::config::ConfigArgs;
use crate::exit::Failure;

/// The variable by which programs on this runtime are told.
const VARIABLE: &str = "TOKIO_WORKER_THREADS";

/// Builds it for what the configuration says, as far as it can be read; if not, the command will say so.
pub(crate) fn build(config: &ConfigArgs) -> Result<Runtime, Failure> {
    let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let said = std::env::var(VARIABLE).ok();
    Builder::new_multi_thread()
        .enable_all()
        .worker_threads(workers(said.as_deref(), processors, config.is_local()).get())
        .build()
        .map_err(|error| Failure::failed("the runtime cannot start").because(error))
}

/// As many as there are processors; over a file one less, which is that of the thread that writes. With two processors and
/// one caller that takes a sixth off the time of a step: two workers wake each other for what one has done by then.
fn workers(said: Option<&str>, processors: NonZeroUsize, local: bool) -> NonZeroUsize {
    let left = NonZeroUsize::new(processors.get() - usize::from(local));
    said.and_then(|said| said.parse().ok()).or(left).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_processor_is_left_to_the_writer_of_a_file() {
        let table = [
            (None, 1, true, 1),
            (None, 2, true, 1),
            (None, 8, true, 7),
            (None, 1, false, 1),
            (None, 2, false, 2),
            (Some("3"), 8, true, 3),
            (Some("0"), 8, true, 7),
            (Some("many"), 2, false, 2),
        ];
        for (said, processors, local, expected) in table {
            let processors = NonZeroUsize::new(processors).unwrap();
            assert_eq!(workers(said, processors, local).get(), expected, "{said:?} {processors}");
        }
    }
}
