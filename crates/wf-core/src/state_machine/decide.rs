//! placeholder

/// placeholder
pub fn decide() {}
