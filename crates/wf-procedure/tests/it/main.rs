//! Tests from outside: files in, answers of the policy out.

mod builtin;
