//! Binds the clauses as tests of a backend.

/// Binds every clause of the contract as a `#[test]` of its own, and `every_clause_is_bound` beside them.
///
/// ```ignore
/// // tests/it/contract.rs of a backend
/// wf_testkit::storage_contract!(MyFixture::new());
/// ```
///
/// The expression makes a [`ContractFixture`](crate::contract::ContractFixture); it is evaluated once per clause, in an
/// async block on a tokio runtime, so it may `.await`. Attributes before it go to each clause, for a backend that needs
/// a service: `storage_contract!(#[ignore = "needs WF_AWS_ENDPOINT"] MyFixture::new().await)`.
#[macro_export]
macro_rules! storage_contract {
    ($(#[$attribute:meta])* $fixture:expr $(,)?) => {
        $crate::bind_clauses! {
            { $(#[$attribute])* } { $fixture }
            s01_commit_writes_every_part
            s01_next_commit_adds_to_the_first
            s01_refused_commit_writes_no_part
        }
    };
}

/// Makes the tests that [`storage_contract!`](crate::storage_contract) lists.
#[doc(hidden)]
#[macro_export]
macro_rules! bind_clauses {
    ($attributes:tt $fixture:tt $($name:ident)+) => {
        $($crate::bind_clause!($attributes $fixture $name);)+

        #[test]
        fn every_clause_is_bound() {
            assert_eq!([$(stringify!($name)),+].as_slice(), $crate::contract::CLAUSES);
        }
    };
}

/// Makes one test of a clause.
#[doc(hidden)]
#[macro_export]
macro_rules! bind_clause {
    ({ $($attribute:tt)* } { $fixture:expr } $name:ident) => {
        #[test]
        $($attribute)*
        fn $name() -> ::core::result::Result<(), $crate::contract::Violation> {
            $crate::contract::run(stringify!($name), async || $fixture)
        }
    };
}
