//! The figures of the product beside their floors, measured in one run on one machine.
