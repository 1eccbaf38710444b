//! What there is to say, apart from the language it is said in.

use crate::models::Text;

/// Something to say. The catalogue of the answer's language has the words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saying {
    /// Words of the policy, as they are.
    Policy(Text),
    /// An argument is wrong: which, by the name it has in the tool.
    InvalidArgument {
        /// The argument.
        field: String,
    },
}
