//! E-mail addresses of shoppers.

/// Checks an e-mail address in a request.
pub(super) fn email(text: &str) -> Result<String, &'static str> {
    let is_plain = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    match text.rsplit_once('@') {
        Some((name, host)) if is_plain && !name.is_empty() && !host.is_empty() => {
            Ok(text.to_owned())
        }
        _ => Err("must be an e-mail address"),
    }
}
