//! E-mail addresses of people and merchants.

/// The longest address.
pub const MAX_LENGTH: usize = 254;

/// Whether the text is an address that browsers accept in a form, except those with a slash: an address is
/// a segment of URLs.
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let is_local = |c: char| c.is_ascii_alphanumeric() || ".!#$%&'*+=?^_`{|}~-".contains(c);
    text.len() <= MAX_LENGTH
        && !local.is_empty()
        && local.chars().all(is_local)
        && domain.split('.').all(is_label)
}

/// Whether a text can be a part of a domain name.
fn is_label(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=63).contains(&text.len())
        && text.chars().all(is_allowed)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_cannot_add_parameters_to_a_link() {
        assert!(is_email("help+returns@acme.example"));
        for other in ["a@b.c?cc=x&body=<x>", "a@b.c&x", "a@b@c", "help", "@b.c", "a b@c.d"] {
            assert!(!is_email(other), "{other}");
        }
    }
}
