//! Stories over the whole system, and the rules of the house. Everything here is a test.
