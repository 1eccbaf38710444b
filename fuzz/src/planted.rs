//! Negative controls: with `CHECKPOINT_FUZZ_PLANTED=1` each target puts one fault between itself and what it tests, a
//! mistake that such code has had elsewhere. A target that does not find it within seconds finds nothing.

use std::sync::LazyLock;

/// Whether this run is a control.
#[must_use]
pub fn planted() -> bool {
    static PLANTED: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("CHECKPOINT_FUZZ_PLANTED").is_some());
    *PLANTED
}
