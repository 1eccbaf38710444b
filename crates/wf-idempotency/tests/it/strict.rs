//! What the strict reader refuses, under which rule and where; and what it takes.

use serde_json::{Value, json};
use wf_idempotency::{StrictError, StrictLimits, parse_strict};

fn read(bytes: impl AsRef<[u8]>) -> Result<Value, StrictError> {
    parse_strict(bytes.as_ref(), StrictLimits::default())
}

#[track_caller]
fn refused(bytes: impl AsRef<[u8]>, rule: &str, path: &str) -> StrictError {
    let bytes = bytes.as_ref();
    let error = read(bytes).expect_err(&String::from_utf8_lossy(bytes));
    assert_eq!((error.rule(), error.path()), (rule, Some(path)), "{error}");
    error
}

#[test]
fn duplicate_keys_are_refused_after_unescaping_at_every_level() {
    refused(r#"{"a":1,"a":1}"#, "duplicate_key", "/a");
    refused(r#"{"a":1,"\u0061":2}"#, "duplicate_key", "/a");
    refused(r#"{"x":[0,{"é":1,"b":2,"\u00e9":3}]}"#, "duplicate_key", "/x/1/é");
    refused(r#"{"":1,"":2}"#, "duplicate_key", "/");
    refused(r#"{"\ud83d\ude00":1,"😀":2}"#, "duplicate_key", "/😀");
    // Equal keys of different objects, and keys that differ, are fine.
    assert!(read(r#"{"a":{"a":1},"b":{"a":1},"A":1,"a ":1}"#).is_ok());
    // Composed and decomposed letters are different keys: nothing is normalised.
    assert!(read(r#"{"\u00e9":1,"e\u0301":2}"#).is_ok());
}

#[test]
fn numbers_beyond_the_exact_range_are_refused_in_every_notation() {
    for text in [
        "9007199254740992",
        "-9007199254740992",
        "9007199254740993",
        "9999999999999999",
        "10000000000000000",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "9007199254740992.0",
        "9007199254740993.0",
        "9007199254740992e0",
        "900719925474099.2e1",
        "-9.007199254740993E15",
        "9007199254740991.6",
        "1e16",
        "1E+30",
        "1e308",
        "1e309",
        "1e400",
        "-1e400",
        "1e99999999999999999999",
        "123456789012345678901234567890",
    ] {
        refused(text, "number_out_of_range", "");
        refused(format!(r#"{{"a":[1,{text}]}}"#), "number_out_of_range", "/a/1");
    }
}

#[test]
fn numbers_within_the_exact_range_are_read_as_serde_json_reads_them() {
    for text in [
        "0",
        "-0",
        "0.0",
        "-0.0",
        "0e0",
        "0e400",
        "1",
        "-1",
        "1.0",
        "1e0",
        "10e-1",
        "0.1",
        "4.20",
        "9007199254740991",
        "-9007199254740991",
        "9007199254740990.5",
        "9.007199254740991e15",
        "1E15",
        "1e-7",
        "1e-400",
        "5e-324",
        "0.10000000000000000555",
        "123456.789e3",
        "1e+2",
        "0.000000000000000000000000000000000000000000000000000000000000000000000001",
    ] {
        let plain: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read(text).unwrap(), plain, "{text}");
    }
    assert_eq!(read("9007199254740991").unwrap().as_u64(), Some(9_007_199_254_740_991));
    assert_eq!(read("-9007199254740991").unwrap().as_i64(), Some(-9_007_199_254_740_991));
}

#[test]
fn private_keys_of_serde_json_are_refused_wherever_they_stand() {
    let number = "$serde_json::private::Number";
    let raw = "$serde_json::private::RawValue";
    for key in [number, raw, "$serde_json::private::", "$serde_json::private::AnythingNew"] {
        refused(format!(r#"{{"{key}":"1"}}"#), "private_key", &format!("/{key}"));
        refused(format!(r#"[{{"a":1,"{key}":"1"}}]"#), "private_key", &format!("/0/{key}"));
    }
    // However it is spelt.
    refused(r#"{"\u0024serde_json::private::Number":"1"}"#, "private_key", &format!("/{number}"));
    // As a value, or with another prefix, it is text like any other.
    assert!(read(format!(r#"{{"a":"{number}","x{number}":1,"$serde_json":2}}"#)).is_ok());
}

#[test]
fn depth_is_counted_in_open_containers() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(nested(32)).is_ok());
    let error = refused(nested(33), "too_deep", &"/0".repeat(32));
    assert!(error.to_string().ends_with("is nested deeper than 32 levels"), "{error}");
    // Objects count alike.
    let mixed = format!("{}1{}", r#"[{"a":"#.repeat(16), "}]".repeat(16));
    assert!(read(&mixed).is_ok());
    refused(format!("[{mixed}]"), "too_deep", &format!("/0{}", "/0/a".repeat(15) + "/0"));

    let limits = |max_depth| StrictLimits { max_depth, ..StrictLimits::default() };
    assert_eq!(parse_strict(b"7", limits(0)).unwrap(), json!(7));
    assert_eq!(parse_strict(b"[]", limits(0)).unwrap_err().rule(), "too_deep");
    // Siblings do not add up.
    assert!(parse_strict(b"[[],[],{},[]]", limits(2)).is_ok());
    // No caller can set a limit that endangers the stack.
    assert!(parse_strict(nested(127).as_bytes(), limits(usize::MAX)).is_ok());
    assert_eq!(
        parse_strict(nested(128).as_bytes(), limits(usize::MAX)).unwrap_err().rule(),
        "too_deep"
    );
}

#[test]
fn size_is_checked_before_anything_is_read() {
    let limits = StrictLimits { max_bytes: 4, ..StrictLimits::default() };
    assert!(parse_strict(b"1234", limits).is_ok());
    let error = parse_strict(b"\xFF\xFF\xFF\xFF\xFF", limits).unwrap_err();
    assert_eq!(error, StrictError::TooLarge { len: 5, limit: 4 });
    assert_eq!((error.rule(), error.path()), ("too_large", None));

    let million = StrictLimits::default().max_bytes;
    assert_eq!(million, 1_048_576);
    let text = format!("\"{}\"", "x".repeat(million - 2));
    assert!(read(&text).is_ok());
    assert_eq!(read(format!("{text} ")).unwrap_err().rule(), "too_large");
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    let table: &[(&[u8], &str, usize, &str)] = &[
        (b"", "", 0, "the text ends too early"),
        (b"  ", "", 2, "the text ends too early"),
        (b"\xEF\xBB\xBF{}", "", 0, "a byte order mark"),
        (b"\xEF\xBB\xBF", "", 0, "a byte order mark"),
        (b"[\"\xFF\"]", "", 2, "invalid UTF-8"),
        (b"[\"\xED\xA0\x80\"]", "", 2, "invalid UTF-8"),
        (b"\"\xC0\x80\"", "", 1, "invalid UTF-8"),
        (b"{} {}", "", 3, "something after the value"),
        (b"1 2", "", 2, "something after the value"),
        (b"{}x", "", 2, "something after the value"),
        (b"{}\0", "", 2, "something after the value"),
        (b"NaN", "", 0, "no JSON value"),
        (b"[Infinity]", "/0", 1, "no JSON value"),
        (b"{\"a\":-Infinity}", "/a", 6, "no digit"),
        (b"nul", "", 0, "no JSON value"),
        (b"True", "", 0, "no JSON value"),
        (b"'a'", "", 0, "no JSON value"),
        (b"// c\n1", "", 0, "no JSON value"),
        (b"\xC2\xA01", "", 0, "no JSON value"),
        (b"\x0b1", "", 0, "no JSON value"),
        (b"[1,]", "/1", 3, "no JSON value"),
        (b"[,1]", "/0", 1, "no JSON value"),
        (b"[1 2]", "", 3, "no comma or closing bracket"),
        (b"[1}", "", 2, "no comma or closing bracket"),
        (b"[1", "", 2, "the text ends too early"),
        (b"{\"a\":1,}", "", 7, "no object key"),
        (b"{a:1}", "", 1, "no object key"),
        (b"{1:1}", "", 1, "no object key"),
        (b"{\"a\" 1}", "/a", 5, "no colon after the key"),
        (b"{\"a\":}", "/a", 5, "no JSON value"),
        (b"{\"a\":1 \"b\":2}", "", 7, "no comma or closing brace"),
        (b"{\"a\":1]", "", 6, "no comma or closing brace"),
        (b"{\"a\"", "/a", 4, "the text ends too early"),
        (b"01", "", 1, "a leading zero"),
        (b"-01", "", 2, "a leading zero"),
        (b"00", "", 1, "a leading zero"),
        (b"+1", "", 0, "no JSON value"),
        (b".5", "", 0, "no JSON value"),
        (b"-", "", 1, "the text ends too early"),
        (b"-a", "", 1, "no digit"),
        (b"1.", "", 2, "the text ends too early"),
        (b"[1.e1]", "/0", 3, "no digit"),
        (b"[1e]", "/0", 3, "no digit"),
        (b"1e+", "", 3, "the text ends too early"),
        (b"0x10", "", 1, "something after the value"),
        (b"1_000", "", 1, "something after the value"),
        (b"\"a", "", 2, "the text ends too early"),
        (b"\"a\nb\"", "", 2, "an unescaped control character"),
        (b"\"\0\"", "", 1, "an unescaped control character"),
        (b"\"\\x41\"", "", 2, "an unknown escape"),
        (b"\"\\'\"", "", 2, "an unknown escape"),
        (b"\"\\", "", 2, "the text ends too early"),
        (b"\"\\u12\"", "", 5, "no four hexadecimal digits"),
        (b"\"\\u+123\"", "", 3, "no four hexadecimal digits"),
        (b"\"\\u00g0\"", "", 5, "no four hexadecimal digits"),
        (b"[\"\\ud800\"]", "/0", 2, "a lone surrogate"),
        (b"\"\\udc00\"", "", 1, "a lone surrogate"),
        (b"\"\\udc00\\ud800\"", "", 1, "a lone surrogate"),
        (b"\"\\ud800x\"", "", 1, "a lone surrogate"),
        (b"\"\\ud800\\n\"", "", 1, "a lone surrogate"),
        (b"\"\\ud800\\u0041\"", "", 1, "a lone surrogate"),
        (b"\"\\ud800\\ud800\\udc00\"", "", 1, "a lone surrogate"),
    ];
    for (bytes, path, offset, problem) in table {
        let shown = String::from_utf8_lossy(bytes);
        assert!(serde_json::from_slice::<Value>(bytes).is_err(), "{shown}");
        let expected = StrictError::Syntax { path: (*path).to_owned(), offset: *offset, problem };
        assert_eq!(read(bytes), Err(expected), "{shown}");
    }
}

#[test]
fn every_json_value_may_be_the_root_and_is_read_as_serde_json_reads_it() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "\"\"",
        "[]",
        "{}",
        " \t\r\n[ ] ",
        "[1,2,[3]]",
        r#"{"a":{"b":[null,true,false,1.5,"x"]}, "c" : "d" }"#,
        r#""\"\\\/\b\f\n\r\t\u0000\u001F\u007f\uFFFF\ud83d\uDE00é😀""#,
        "\"\u{7f}\u{80}\u{2028}\u{feff}\"",
    ] {
        let plain: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read(text).unwrap(), plain, "{text}");
    }
}

#[test]
fn errors_say_what_to_do_and_name_the_place() {
    let error = refused(r#"{"a b":[{"n":9007199254740993}]}"#, "number_out_of_range", "/a b/0/n");
    assert_eq!(
        error.to_string(),
        "the number at \"/a b/0/n\" is beyond ±(2^53-1) and would lose digits; send it as a string"
    );
    // A hostile key cannot forge a log line or fill it.
    let error = read(r#"{"a\nb\u001b[31m":1e99}"#).unwrap_err();
    assert_eq!(error.path(), Some("/a\\u{a}b\\u{1b}[31m"));
    let long = format!(r#"{{"{}":1e99}}"#, "k".repeat(100_000));
    assert!(read(long).unwrap_err().to_string().len() < 300);
}

/// Every byte in every kind of place, and every `\u` escape alone and after half a surrogate pair:
/// the reader takes what `serde_json` takes, and nothing else.
#[test]
fn each_byte_and_each_escape_is_read_as_serde_json_reads_it() {
    let agrees = |bytes: &[u8]| {
        let shown = String::from_utf8_lossy(bytes);
        assert_eq!(read(bytes).ok(), serde_json::from_slice(bytes).ok(), "{shown}");
    };
    for byte in 0..=u8::MAX {
        agrees(&[byte]);
        agrees(&[byte, b'1']);
        agrees(&[b'1', byte]);
        agrees(&[b'[', byte, b'1', byte, b']']);
        agrees(&[b'[', b'1', byte, b'2', b']']);
        agrees(&[b'"', byte, b'"']);
        agrees(&[b'"', b'\\', byte, b'"']);
        agrees(&[b'"', b'\\', b'u', b'0', byte, b'a', b'f', b'"']);
        agrees(&[b'{', b'"', b'a', b'"', byte, b':', byte, b'1', byte, b'}']);
    }
    for code in 0..=u16::MAX {
        agrees(format!("\"\\u{code:04x}\"").as_bytes());
        agrees(format!("\"\\uD83D\\u{code:04X}\"").as_bytes());
    }
}
