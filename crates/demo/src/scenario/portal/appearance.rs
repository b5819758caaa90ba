//! The appearance of the demo merchant's portal and the choices in it.

use serde_json::{Value, json};

/// Heavier units cannot be dropped off: of the demo orders, the tent.
const EXPRESS_MAX_KILOGRAMS: u32 = 5;
/// Shoppers keep small items.
const KEEP_UP_TO_CENTS: u32 = 1_500;

/// The labels of the default reasons: code, English, German, French and Spanish.
const LABELS: [(&str, [&str; 4]); 6] = [
    ("TOO_SMALL", ["Too small", "Zu klein", "Trop petit", "Demasiado pequeño"]),
    ("TOO_LARGE", ["Too large", "Zu groß", "Trop grand", "Demasiado grande"]),
    (
        "WRONG_ITEM",
        [
            "Not what I ordered",
            "Nicht das Bestellte",
            "Pas ce que j’ai commandé",
            "No es lo que pedí",
        ],
    ),
    ("DAMAGED", ["Arrived damaged", "Beschädigt angekommen", "Arrivé abîmé", "Llegó dañado"]),
    (
        "CHANGED_MIND",
        [
            "I changed my mind",
            "Ich habe es mir anders überlegt",
            "J’ai changé d’avis",
            "He cambiado de idea",
        ],
    ),
    ("OTHER", ["Another reason", "Ein anderer Grund", "Une autre raison", "Otro motivo"]),
];

/// The settings of the merchant that concern the portal.
pub(super) fn settings(image_host: &str) -> Value {
    let label = |(code, [en, de, fr, es]): (&str, [&str; 4])| {
        (code.to_owned(), json!({ "en": en, "de": de, "fr": fr, "es": es }))
    };
    let labels: serde_json::Map<_, _> = LABELS.into_iter().map(label).collect();
    let method = |method: &str, cost: i64| json!({ "method": method, "shipping_cost_cents": cost });
    json!({
        "express_max_weight": EXPRESS_MAX_KILOGRAMS,
        "returns": { "methods": [
            method("mail-back", 495), method("express-returns", 0), method("customer-keep", 0),
        ] },
        "policy": { "rules": [{
            "id": "keep-small-items",
            "text": {
                "en": "Items up to 15.00 USD can stay with you.",
                "de": "Artikel bis 15,00 USD können bei Ihnen bleiben.",
                "fr": "Vous pouvez garder les articles jusqu’à 15,00 USD.",
                "es": "Puede quedarse con los artículos de hasta 15,00 USD.",
            },
            "then": { "keep": { "up_to_cents": KEEP_UP_TO_CENTS, "currency": "USD" } },
        }] },
        "appearance": {
            "name": "Fern & Field",
            "colors": { "primary": "#0b6e4f", "text_on_primary": "#ffffff", "background": "#ffffff",
                "text": "#1c2a25" },
            "languages": ["en", "de", "fr", "es"], "reason_labels": labels,
            "lookup_keys": ["email", "zip_code"], "withdrawal": true, "image_hosts": [image_host],
            "policy_url": "https://fern-and-field.example/returns",
            "contact_email": "help@fern-and-field.example",
        },
    })
}

#[cfg(test)]
mod tests {
    use domain::merchant::ReturnPolicy;

    use super::LABELS;

    #[test]
    fn every_default_reason_has_labels() {
        let reasons = ReturnPolicy::default().reasons;
        let codes: Vec<_> = reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!(codes, LABELS.map(|(code, _)| code));
    }
}
