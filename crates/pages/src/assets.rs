//! Style sheet, script and icon, embedded in the binary.
//!
//! The URL of an asset contains a digest of its content, so that browsers can keep it for ever.

use std::{io::Write as _, sync::LazyLock};

use actix_web::{HttpRequest, HttpResponse, http::header, web};
use flate2::{Compression, write::GzEncoder};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "assets"]
struct Files;

/// The URLs of the assets, for the layout template.
#[derive(Debug)]
pub struct AssetUrls {
    pub style: String,
    pub script: String,
    pub icon: String,
}

/// The URLs of this build.
pub static ASSETS: LazyLock<AssetUrls> = LazyLock::new(|| AssetUrls {
    style: url("pages.css"),
    script: url("pages.js"),
    icon: url("icon.svg"),
});

fn url(name: &str) -> String {
    let digest = Files::get(name).map_or([0; 32], |file| file.metadata.sha256_hash());
    let short: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("/assets/{short}/{name}")
}

/// Serves the assets below `/assets`.
pub fn routes(app: &mut web::ServiceConfig) {
    app.route("/assets/{digest}/{name}", web::get().to(show_asset));
}

async fn show_asset(request: HttpRequest, path: web::Path<(String, String)>) -> HttpResponse {
    let (_, name) = path.into_inner();
    let Some(file) = Files::get(&name) else { return HttpResponse::NotFound().finish() };
    let content_type = match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    asset_response(&request, &url(&name), content_type, &file.data)
}

/// The response to a request for an asset of this build, which is at `url`. Browsers keep it for ever, because
/// the URL has a digest of the content. During an upgrade a browser can request the URL of another version: it
/// gets this content and must not keep it. Assets are compressed better than pages, because they are sent once.
pub fn asset_response(
    request: &HttpRequest,
    url: &str,
    content_type: &'static str,
    body: &[u8],
) -> HttpResponse {
    let is_own = request.path() == url;
    let caching = if is_own { "public, max-age=31536000, immutable" } else { "no-store" };
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::CONTENT_TYPE, content_type))
        .insert_header((header::CACHE_CONTROL, caching))
        .insert_header((header::VARY, "accept-encoding"));
    let is_script = content_type.starts_with("text/javascript");
    let body = if is_script { without_comments(body) } else { body.to_vec() };
    let accepted = request.headers().get(header::ACCEPT_ENCODING);
    if accepted.and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains("gzip"))
        && let Ok(compressed) = compress(&body)
    {
        return response.insert_header((header::CONTENT_ENCODING, "gzip")).body(compressed);
    }
    response.body(body)
}

/// A script without the lines that are comments: a third of what a browser would load.
fn without_comments(script: &[u8]) -> Vec<u8> {
    let mut is_comment = false;
    let is_code = |line: &&[u8]| {
        let text = line.trim_ascii();
        is_comment |= text.starts_with(b"/**");
        let is_left_out = is_comment || text.starts_with(b"//");
        is_comment &= !text.ends_with(b"*/");
        !is_left_out
    };
    script.split_inclusive(|byte| *byte == b'\n').filter(is_code).flatten().copied().collect()
}

fn compress(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn every_asset_exists() {
        for url in [&ASSETS.style, &ASSETS.script, &ASSETS.icon] {
            assert!(!url.contains("000000000000"), "{url}");
        }
    }

    #[test]
    fn both_themes_have_a_value_for_each_colour() {
        let style = include_str!("../assets/pages.css");
        let (tokens, rules) = style.split_once("@layer base {").unwrap();
        let (light, dark) = tokens.split_once("(prefers-color-scheme: dark)").unwrap();
        let colours = |theme: &str| -> Vec<String> {
            let values = theme.lines().filter_map(|line| line.trim().split_once(": "));
            let colours =
                values.filter(|(_, value)| value.starts_with('#') || value.contains("rgb("));
            colours.map(|(name, _)| name.to_owned()).collect()
        };
        let names: Vec<_> = dark.lines().filter_map(|line| line.trim().split_once(": ")).collect();
        for name in colours(light) {
            assert!(names.iter().any(|(dark, _)| *dark == name), "{name} has no value in the dark");
        }
        // Rules name these values, so that no page has a colour of one theme only. A QR code is dark on white in both.
        let values = rules.lines().filter_map(|line| line.trim().split_once(": "));
        let own: Vec<_> =
            values.filter(|(_, value)| value.contains('#') || value.contains("rgb(")).collect();
        assert_eq!(own, [("background", "#ffffff;")]);
    }

    #[test]
    fn scripts_are_sent_without_comments() {
        let script = b"// @ts-check\n/**\n * Adds.\n * @param {number} a\n */\nconst add = (a) =>\n  // One.\n  a\n  * 1; /** @type {number} */\n/** Ends. */\nadd(1);";
        let code = b"const add = (a) =>\n  a\n  * 1; /** @type {number} */\nadd(1);";
        assert_eq!(
            String::from_utf8_lossy(&without_comments(script)),
            String::from_utf8_lossy(code)
        );
    }

    #[test]
    fn an_asset_of_another_version_is_not_kept() {
        let caching = |path: &str| {
            let request = TestRequest::with_uri(path).to_http_request();
            let response = asset_response(&request, &ASSETS.style, "text/css", b"");
            response.headers().get(header::CACHE_CONTROL).unwrap().to_str().unwrap().to_owned()
        };
        assert!(caching(&ASSETS.style).ends_with("immutable"));
        assert_eq!(caching("/assets/0123456789ab/pages.css"), "no-store");
    }
}
