//! Attacks on tokens and on what fetches keys, each with its control: what gets through when the guard is left out.
//!
//! `forge` makes tokens and keys; `rows` is the table of attacks on a token; `bearer` has those on where it is; `keys`
//! those on the set of keys over time, `network` those over the network; `dev_key` and `caller` say what is right; `figures` what it
//! costs.

mod bearer;
mod caller;
mod dev_key;
mod figures;
mod forge;
mod keys;
mod network;
mod rows;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// What a careless reader makes of base64, in the one way to write it: padding, spare bits, white space and the other
/// alphabet do not matter to it.
pub(super) fn lenient_base64(text: &str) -> String {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&alphabet::URL_SAFE, config);
    let text: String = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| match c {
            '+' => '-',
            '/' => '_',
            other => other,
        })
        .collect();
    let bytes = engine.decode(text).unwrap_or_default();
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}
