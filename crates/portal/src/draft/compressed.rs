//! Many choices in one parameter: their values, one on each line, compressed and in Base64.

use std::io::{Read as _, Write as _};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};

use super::{Choice, MAX_CHOICES, MAX_PART_BYTES};

/// The name of the parameter.
pub(super) const NAME: &str = "z";

/// No page writes choices that are longer: percent-encoding makes an identifier three times as long.
const MAX_BYTES: usize = MAX_CHOICES * 3 * MAX_PART_BYTES;

/// Compresses the values of choices. They contain no line breaks.
pub(super) fn write(values: &[String]) -> Option<String> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(values.join("\n").as_bytes()).ok()?;
    Some(URL_SAFE_NO_PAD.encode(encoder.finish().ok()?))
}

pub(super) fn read(text: &str) -> Option<Vec<Choice>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let most = u64::try_from(MAX_BYTES).ok()?;
    let mut values = String::new();
    DeflateDecoder::new(bytes.as_slice()).take(most).read_to_string(&mut values).ok()?;
    values.lines().take(MAX_CHOICES + 1).map(Choice::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_no_page_writes_are_rejected() {
        let zeros = vec!["0".repeat(MAX_BYTES)];
        let many = vec!["A~1~1".to_owned(); 1000];
        for bad in ["", "%", "AAAA"].map(str::to_owned).into_iter().chain([write(&zeros).unwrap()])
        {
            assert_eq!(read(&bad).filter(|choices| !choices.is_empty()), None, "{bad:.20}");
        }
        let read = read(&write(&many).unwrap()).map(|choices| choices.len());
        assert_eq!(read, Some(MAX_CHOICES + 1), "the draft rejects so many");
    }
}
