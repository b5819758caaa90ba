use expect_test::expect;

use super::*;
use crate::output::table;

fn acme() -> Value {
    json!({
        "identifier": "acme", "version": 3, "name": "Acme Outdoor", "time_zone": "UTC",
        "currency": "USD", "returns": {
            "reasons": [
                { "code": "TOO_SMALL", "label": "Too small", "offers_exchange": true },
                { "code": "OTHER", "label": "Another", "offers_exchange": false }
            ],
            "methods": [{ "method": "mail-back", "shipping_cost_cents": 595 }],
            "free_exchange_shipping": true,
            "gift_card": { "sku": "GIFT", "bonus_credit_amount_cents": 500 },
            "send_within_days": 21,
            "exchange_deadline_days": 60
        },
        "managed_receiving": false, "return_window_days": 60,
        "final_sale_tags": ["Clearance", "Outlet"], "express_max_weight": 2.5, "parcel_max_weight": 20,
        "concept": "Acme Sport",
        "strict_amounts": true,
        "strict_refund_dates": false, "base_url": "https://api.acme.example/hooks/",
        "support_contact": { "email": "help@acme.example", "name": null, "phone": "+1 555" },
        "endpoints": {
            "rma": {
                "url": null, "path": null, "headers": {}, "timeout_ms": null, "paused": false,
                "authentication": { "kind": "none" }, "signing_secrets": []
            },
            "outbound-asn": {
                "url": "https://wms.acme.example/asn", "path": null, "headers": {"x-a": "b"},
                "timeout_ms": 5000, "paused": true, "signing_secrets": [],
                "authentication": { "kind": "basic", "username": "u", "password": "********" }
            }
        },
        "created_at": "2026-11-15T03:48:13.123456Z", "updated_at": "2026-11-16T03:48:13Z"
    })
}

#[test]
fn a_merchant_is_shown_with_all_settings_and_endpoints() {
    expect![[r#"
        merchant             acme
        name                 Acme Outdoor
        time zone            UTC
        currency             USD
        return window        60 days
        final-sale tags      Clearance, Outlet
        express max weight   2.5
        parcel max weight    20
        concept              Acme Sport
        return reasons       TOO_SMALL (exchange), OTHER
        return methods       mail-back (5.95 USD)
        send within          21 days
        exchange deadline    60 days
        gift card            GIFT with a bonus of 5.00 USD
        managed receiving    no
        strict amounts       yes
        strict refund dates  no
        support contact      help@acme.example, +1 555
        base URL             https://api.acme.example/hooks/
        version              3
        created              2026-11-15 03:48:13Z
        changed              2026-11-16 03:48:13Z

        INTERFACE     STATE   URL
        outbound-asn  paused  https://wms.acme.example/asn
        rma           active  https://api.acme.example/hooks/rmas
    "#]]
    .assert_eq(&describe(&acme()));
    expect![[r#"
        MERCHANT  NAME          TIME ZONE  CURRENCY  ENDPOINTS  CHANGED
        acme      Acme Outdoor  UTC        USD       2          2026-11-16 03:48
    "#]]
    .assert_eq(&table([&acme()], COLUMNS));
}
