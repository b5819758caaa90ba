//! Errors in words. A message has several lines only where this program wrote them: values of services, files and
//! arguments stay in one.

use std::error::Error;
use std::path::Path;

use domain::printable::one_line;

/// An error and its causes. The messages of parsers quote the text that they read.
pub(crate) fn causes(error: &anyhow::Error) -> String {
    let describe = |cause: &(dyn Error + 'static)| {
        let text = cause.to_string();
        let is_of_parser = cause.is::<serde_json::Error>() || cause.is::<yaml_serde::Error>();
        if is_of_parser { one_line(&text) } else { text }
    };
    error.chain().map(describe).collect::<Vec<_>>().join(": ")
}

/// The path of a file in one line.
pub(crate) fn file_name(path: &Path) -> String {
    one_line(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Empty {}

    #[test]
    fn a_file_cannot_add_a_line_to_an_error() {
        let file = Path::new("a\nerror: b");
        let json = serde_json::from_str::<Empty>(r#"{"x\nerror: y": 1}"#);
        let json = json.with_context(|| format!("{}:\n  wrong", file_name(file)));
        let text = causes(&json.unwrap_err());
        assert!(text.starts_with("a\\nerror: b:\n  wrong: unknown field `x\\nerror: y`"), "{text}");
        let yaml =
            yaml_serde::from_str::<Empty>("\"x\\nerror: y\": 1\n").map_err(anyhow::Error::from);
        let text = causes(&yaml.unwrap_err());
        assert!(text.contains("x\\nerror: y") && !text.contains('\n'), "{text}");
    }
}
