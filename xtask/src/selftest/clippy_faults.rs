//! The faulty items that clippy must refuse in the pure crates: uses of banned paths, and breaches of the lints.

const METHODS: &str = "clippy::disallowed_methods";
const TYPES: &str = "clippy::disallowed_types";

/// A banned path, the lint that must see it, and an expression (or type) that uses it.
pub(super) const BANNED: [(&str, &str, &str); 30] = [
    ("std::time::SystemTime::now", METHODS, "std::time::SystemTime::now()"),
    ("std::time::SystemTime::elapsed", METHODS, "std::time::SystemTime::elapsed"),
    ("std::time::Instant::now", METHODS, "std::time::Instant::now()"),
    ("std::time::Instant::elapsed", METHODS, "std::time::Instant::elapsed"),
    ("std::thread::sleep", METHODS, "std::thread::sleep"),
    ("std::thread::spawn", METHODS, "std::thread::spawn(|| ())"),
    ("std::env::var", METHODS, "std::env::var(\"A\")"),
    ("std::env::var_os", METHODS, "std::env::var_os(\"A\")"),
    ("std::env::vars", METHODS, "std::env::vars()"),
    ("std::env::args", METHODS, "std::env::args()"),
    ("std::env::current_dir", METHODS, "std::env::current_dir()"),
    ("std::env::temp_dir", METHODS, "std::env::temp_dir()"),
    ("std::fs::read", METHODS, "std::fs::read(\"a\")"),
    ("std::fs::read_to_string", METHODS, "std::fs::read_to_string(\"a\")"),
    ("std::fs::read_dir", METHODS, "std::fs::read_dir(\"a\")"),
    ("std::fs::write", METHODS, "std::fs::write(\"a\", \"b\")"),
    ("std::fs::remove_file", METHODS, "std::fs::remove_file(\"a\")"),
    ("std::fs::create_dir_all", METHODS, "std::fs::create_dir_all(\"a\")"),
    ("std::io::stdin", METHODS, "std::io::stdin()"),
    ("std::io::stdout", METHODS, "std::io::stdout()"),
    ("std::process::exit", METHODS, "std::process::exit as fn(i32) -> !"),
    ("std::process::id", METHODS, "std::process::id()"),
    ("std::fs::File", TYPES, "std::fs::File"),
    ("std::fs::OpenOptions", TYPES, "std::fs::OpenOptions"),
    ("std::net::TcpStream", TYPES, "std::net::TcpStream"),
    ("std::net::TcpListener", TYPES, "std::net::TcpListener"),
    ("std::net::UdpSocket", TYPES, "std::net::UdpSocket"),
    ("std::process::Command", TYPES, "std::process::Command"),
    ("std::collections::HashMap", TYPES, "std::collections::HashMap<u8, u8>"),
    ("std::hash::RandomState", TYPES, "std::hash::RandomState"),
];

/// A fault, the lint that must see it, and an item that has it.
pub(super) const LINTED: [(&str, &str, &str); 18] = [
    (
        "a wildcard over two variants of our enum",
        "clippy::wildcard_enum_match_arm",
        "enum A1 { X, Y, Z }\nfn a1(a: &A1) -> u8 { match a { A1::X => 1, _ => 2 } }",
    ),
    (
        "a wildcard over the last variant of our enum",
        "clippy::match_wildcard_for_single_variants",
        "enum A2 { X, Y, Z }\nfn a2(a: &A2) -> u8 { match a { A2::X => 1, A2::Y => 2, _ => 3 } }",
    ),
    ("unsafe code", "unsafe_code", "fn a3() { unsafe {} }"),
    ("a public item without documentation", "missing_docs", "pub fn a4() {}"),
    (
        "a public item that nobody outside can reach",
        "unreachable_pub",
        "mod a5 { pub fn inner() {} }",
    ),
    ("a public type without Debug", "missing_debug_implementations", "/// A type.\npub struct A6;"),
    ("unwrap", "clippy::unwrap_used", "fn a7(a: Option<u8>) -> u8 { a.unwrap() }"),
    ("expect", "clippy::expect_used", "fn a8(a: Option<u8>) -> u8 { a.expect(\"why\") }"),
    ("panic!", "clippy::panic", "fn a9() { panic!(\"why\") }"),
    ("todo!", "clippy::todo", "fn a10() { todo!() }"),
    ("unimplemented!", "clippy::unimplemented", "fn a11() { unimplemented!() }"),
    ("dbg!", "clippy::dbg_macro", "fn a12() -> u8 { dbg!(1) }"),
    ("a cast that cuts", "clippy::cast_possible_truncation", "fn a13(a: u64) -> u32 { a as u32 }"),
    ("a cast that loses the sign", "clippy::cast_sign_loss", "fn a14(a: i64) -> u64 { a as u64 }"),
    ("a cast that wraps", "clippy::cast_possible_wrap", "fn a15(a: u64) -> i64 { a as i64 }"),
    (
        "an allow attribute",
        "clippy::allow_attributes",
        "#[allow(dead_code, reason = \"none\")]\nfn a16() {}",
    ),
    (
        "an expectation without a reason",
        "clippy::allow_attributes_without_reason",
        "#[expect(dead_code)]\nfn a17() {}",
    ),
    (
        "a lock held over an await",
        "clippy::await_holding_lock",
        "async fn a18(a: &std::sync::Mutex<u8>) -> u8 { let Ok(held) = a.lock() else { return 0 }; std::future::ready(()).await; *held }",
    ),
];
