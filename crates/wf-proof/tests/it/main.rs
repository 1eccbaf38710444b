//! Tests of the harness and of the benches themselves.
