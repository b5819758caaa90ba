//! Forms whose record another person changed in the meantime: nothing is saved, and the page shows both values.

/// The text above a form that was refused.
pub(crate) fn message(record: &str) -> String {
    format!(
        "Nothing was saved, because another person changed this {record} after you opened this page. \
         Compare your values with those that are stored now, then save again."
    )
}

/// A value that is stored now and differs from the value in the form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) name: &'static str,
    pub(crate) stored: String,
    pub(crate) typed: String,
}

/// The values that differ between two lists of names and values.
pub(crate) fn between(
    stored: Vec<(&'static str, String)>,
    typed: Vec<(&'static str, String)>,
) -> Vec<Change> {
    let pairs = stored.into_iter().zip(typed).filter(|(stored, typed)| stored != typed);
    pairs.map(|((name, stored), (_, typed))| Change { name, stored, typed }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_differ_are_shown() {
        let values = |name: &str| vec![("Name", name.to_owned()), ("Currency", "EUR".to_owned())];
        let change =
            Change { name: "Name", stored: "Acme".to_owned(), typed: "Acme Ltd".to_owned() };
        assert_eq!(between(values("Acme"), values("Acme Ltd")), [change]);
    }
}
