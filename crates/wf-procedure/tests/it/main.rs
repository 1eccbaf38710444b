//! Tests from outside: files in, answers of the policy out.

mod builtin;
mod definitions;
mod expressions;
mod files;
mod fixture;
mod judging;
mod plans;
mod properties;
mod schema;
mod starts;
