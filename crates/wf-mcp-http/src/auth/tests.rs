//! Attacks on tokens, each with what lets it through.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// What a careless reader makes of base64: padding, spare bits and white space do not matter. In the one way to write
/// it.
pub(super) fn lenient_base64(text: &str) -> String {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&alphabet::URL_SAFE, config);
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let bytes = engine.decode(text).unwrap_or_default();
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}
