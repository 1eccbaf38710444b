//! A value that does not show itself. `bearer` holds what a client sent in it, `dev_key` what it makes.

use std::fmt;

/// A secret: `Debug` shows `[masked]`, and there is no `Display`, no serialisation and no comparison (which would stop
/// at the first difference), so that it takes a call of [`expose`](Self::expose), which a reader can look for, to let it
/// out.
#[derive(Clone)]
pub struct Masked<T>(T);

impl<T> Masked<T> {
    /// Hides `secret`.
    pub const fn new(secret: T) -> Self {
        Self(secret)
    }

    /// The secret itself.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Masked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[masked]")
    }
}
