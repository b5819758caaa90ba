//! The parts that all web pages share: layout, assets, security headers, the check against cross-site
//! requests, calls to the services, forms, charts and the text of times and counts.
//!
//! Pages are rendered on the server and hold no state: every process can serve every request.

pub mod api;
pub mod assets;
pub mod chart;
pub mod file;
pub mod form;
pub mod qr;
pub mod security;
pub mod text;
pub mod url_path;
