//! placeholder

/// placeholder
pub fn evolve() {}
