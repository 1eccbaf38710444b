//! The published vectors of RFC 8785: the reference repository's six documents, the samples of
//! §3.2.2 to §3.2.4, and the numbers of Appendix B.

use serde_json::{Value, json};
use wf_idempotency::{StrictLimits, canonical_bytes, canonical_string, parse_strict};

struct Vector {
    name: &'static str,
    input: &'static [u8],
    output: &'static [u8],
}

macro_rules! vector {
    ($name:literal) => {
        Vector {
            name: $name,
            input: include_bytes!(concat!("../vectors/input/", $name, ".json")),
            output: include_bytes!(concat!("../vectors/output/", $name, ".json")),
        }
    };
}

const VECTORS: [Vector; 6] = [
    vector!("arrays"),
    vector!("french"),
    vector!("structures"),
    vector!("unicode"),
    vector!("values"),
    vector!("weird"),
];

#[test]
fn the_six_reference_documents_are_written_byte_for_byte() {
    for vector in VECTORS {
        let value: Value = serde_json::from_slice(vector.input).unwrap();
        let written = canonical_bytes(&value).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&written),
            String::from_utf8_lossy(vector.output),
            "{}",
            vector.name
        );
        assert_eq!(written, vector.output, "{}", vector.name);
        // Canonical text is its own canonical form.
        let again: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(canonical_bytes(&again).unwrap(), written, "{}", vector.name);
    }
}

#[test]
fn the_strict_reader_takes_them_too_but_for_the_one_with_1e30() {
    for vector in VECTORS {
        let read = parse_strict(vector.input, StrictLimits::default());
        if vector.name == "values" {
            let refused = read.unwrap_err();
            assert_eq!(refused.rule(), "number_out_of_range");
            assert_eq!(refused.path(), Some("/numbers/1"));
        } else {
            let written = canonical_bytes(&read.unwrap()).unwrap();
            assert_eq!(written, vector.output, "{}", vector.name);
        }
    }
}

/// §3.2.2 (the sample), §3.2.3 (its text) and §3.2.4 (its bytes).
#[test]
fn the_sample_of_section_3_2_has_the_printed_bytes() {
    let sample = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50,
                    2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
      }"#;
    let bytes = "7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72
        75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a
        5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31
        65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37
        5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30
        30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d";
    let expected: Vec<u8> =
        bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let value: Value = serde_json::from_str(sample).unwrap();
    assert_eq!(canonical_bytes(&value).unwrap(), expected);
}

/// §3.2.3: members are sorted by UTF-16 code units, which differs from the order of code points and
/// of UTF-8 bytes: the emoji (a surrogate pair) comes before U+FB33.
#[test]
fn members_are_sorted_by_utf_16_code_units() {
    let sample = br#"{
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
      }"#;
    let value = parse_strict(sample, StrictLimits::default()).unwrap();
    assert_eq!(
        canonical_string(&value).unwrap(),
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
         \"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20ac}\":\"Euro Sign\",\
         \"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
    );
    // Control: another order of the same keys would be wrong.
    assert!("\u{1f600}" > "\u{fb33}", "code points sort the other way");
}

#[test]
fn the_numbers_of_appendix_b_are_written_as_printed() {
    let table = include_str!("../vectors/rfc8785_appendix_b.txt");
    let mut rows = 0;
    for row in table.lines() {
        let (bits, expected) = row.split_once(',').unwrap();
        let double = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
        assert_eq!(canonical_string(&Value::from(double)).unwrap(), expected, "{bits}");
        // The text is a number that reads back to the same double (-0 becomes 0).
        let back: f64 = expected.parse().unwrap();
        assert_eq!(back, double, "{bits}");
        rows += 1;
    }
    assert_eq!(rows, 24);
}

/// Appendix B's last rows: NaN and Infinity have no form. A `Value` cannot hold them.
#[test]
fn nan_and_infinity_cannot_get_in() {
    for double in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(serde_json::Number::from_f64(double), None);
        // The trap this crate avoids by taking values only: nested in a struct, the writer makes it null.
        assert_eq!(json!([double]), json!([null]));
    }
}

#[test]
fn integers_that_a_double_would_round_are_refused_not_rounded() {
    for n in [9_007_199_254_740_992, 9_007_199_254_740_993, u64::MAX] {
        let refused = canonical_bytes(&json!({ "a": [0, n] })).unwrap_err();
        assert_eq!(refused.rule(), "number_out_of_range");
        assert_eq!(
            refused.to_string(),
            "the number at \"/a/1\" is beyond ±(2^53-1) and would lose digits; send it as a string"
        );
    }
    for n in [-9_007_199_254_740_992, i64::MIN] {
        assert_eq!(canonical_bytes(&json!(n)).unwrap_err().rule(), "number_out_of_range");
    }
    assert_eq!(canonical_string(&json!(9_007_199_254_740_991_i64)).unwrap(), "9007199254740991");
    assert_eq!(canonical_string(&json!(-9_007_199_254_740_991_i64)).unwrap(), "-9007199254740991");
}

#[test]
fn values_that_no_reader_would_take_back_are_refused() {
    let forged = json!({ "a": { "$serde_json::private::Number": "1" } });
    let refused = canonical_bytes(&forged).unwrap_err();
    assert_eq!(refused.rule(), "private_key");
    assert!(refused.to_string().contains("/a/$serde_json::private::Number"), "{refused}");

    let nested = |depth| (0..depth).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    assert!(canonical_bytes(&nested(127)).is_ok());
    assert_eq!(canonical_bytes(&nested(128)).unwrap_err().rule(), "too_deep");
    assert_eq!(canonical_bytes(&nested(2_000)).unwrap_err().rule(), "too_deep");
}
