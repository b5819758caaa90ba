//! Flat drawings of the products, in the colour of a variant.

use super::products::{Color, Shape};

const SHIRT: &str = r#"<path fill="FILL" d="M78 52 48 70 30 112l30 14 10-22v92h100v-92l10 22 30-14-18-42-30-18c-6 14-18 22-32 22S84 66 78 52z"/>
<path fill="SHADE" d="M78 52c6 14 18 22 42 22s36-8 42-22l-12-6c-6 10-16 14-30 14s-24-4-30-14zM116 84h8v16h-8z"/>"#;
const SWEATER: &str = r#"<path fill="FILL" d="M84 50 52 66 32 176l30 8 12-62v76h92v-76l12 62 30-8-20-110-32-16c-8 8-20 12-36 12s-28-4-36-12z"/>
<path fill="SHADE" d="M84 50c8 8 20 12 36 12s28-4 36-12l8 6c-10 12-24 18-44 18s-34-6-44-18zM74 188h92v10H74zM32 176l30 8-2 10-30-8zm176 0-30 8 2 10 30-8z"/>"#;
const JACKET: &str = r#"<path fill="FILL" d="M88 44 50 64 30 178l30 8 12-58v72h96v-72l12 58 30-8-20-114-38-20-14 14h-36z"/>
<path fill="SHADE" d="M88 44c4 22 16 32 32 32s28-10 32-32l-14 14h-36zM117 80h6v120h-6zM78 150h30v6H78zm54 0h30v6h-30z"/>"#;
const SHOE: &str = r#"<path fill="FILL" d="M44 96c10 10 26 10 38-2l14-12 44 44c14 12 34 16 52 20 10 2 16 10 16 20H40c-6-26-6-50 4-70z"/>
<path fill="SHADE" d="M38 166h172v10c0 6-4 10-10 10H48c-6 0-10-4-10-10zM92 104l18-14 6 6-18 14zm14 14 18-14 6 6-18 14zm14 14 18-14 6 6-18 14z"/>"#;
const HAT: &str = r#"<path fill="FILL" d="M76 146c2-44 10-78 24-78 8 0 12 6 20 6s12-6 20-6c14 0 22 34 24 78z"/>
<path fill="SHADE" d="M74 132h92l2 16H72z"/><ellipse fill="FILL" cx="120" cy="156" rx="92" ry="20"/>
<path fill="SHADE" d="M28 156c0 12 42 20 92 20s92-8 92-20c0 18-42 30-92 30s-92-12-92-30z"/>"#;
const SOCKS: &str = r#"<path fill="FILL" d="M70 44h44v76l-28 46c-8 14-24 18-36 10s-16-22-8-36l28-44z"/>
<path fill="FILL" d="M138 58h44v76l-28 46c-8 14-24 18-36 10s-16-22-8-36l28-44z"/>
<path fill="SHADE" d="M70 44h44v14H70zm68 14h44v14h-44zM42 140c-8 14-4 28 8 36l14-22zm68 14c-8 14-4 28 8 36l14-22z"/>"#;
const BAG: &str = r#"<path fill="none" stroke="SHADE" stroke-width="10" d="M86 104c0-70 68-70 68 0"/>
<path fill="FILL" d="M54 94h132l12 98c0 6-4 10-10 10H52c-6 0-10-4-10-10z"/>
<path fill="SHADE" d="M46 172h148l4 20c0 6-4 10-10 10H52c-6 0-10-4-10-10zM80 112h12v12H80zm68 0h12v12h-12z"/>"#;
const TENT: &str = r##"<path fill="FILL" d="M120 58 30 188h180z"/><path fill="SHADE" d="M120 58 86 188h68z"/>
<path fill="#fff7e6" d="M120 100 100 188h40z"/>
<path fill="none" stroke="SHADE" stroke-width="4" stroke-linecap="round" d="M120 58v-14M36 180l-18 14M204 180l18 14"/>"##;

/// The drawing of a shape as SVG.
pub(super) fn draw(shape: Shape, color: &Color) -> String {
    let drawing = match shape {
        Shape::Shirt => SHIRT,
        Shape::Sweater => SWEATER,
        Shape::Jacket => JACKET,
        Shape::Shoe => SHOE,
        Shape::Hat => HAT,
        Shape::Socks => SOCKS,
        Shape::Bag => BAG,
        Shape::Tent => TENT,
    };
    let drawing = drawing.replace("FILL", color.fill).replace("SHADE", color.shade);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 240" width="240" height="240">
<rect width="240" height="240" fill="#f4f1ea"/>
<ellipse cx="120" cy="206" rx="80" ry="8" fill="#e5dfd2"/>
{drawing}
</svg>
"##
    )
}
