//! For tests only: a database per test, a broker namespace per test.
