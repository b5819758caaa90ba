//! Checks of the whole repository: dependencies between crates, bounds of request bodies, headers of SQL statements,
//! and wording. Everything here is a test.

#[cfg(test)]
mod dependencies;
#[cfg(test)]
mod request_bodies;
#[cfg(test)]
mod sql_headers;
#[cfg(test)]
mod words;
