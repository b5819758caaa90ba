//! What a warehouse found when it opened a parcel.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::UnitId;
use crate::json::{Object, array, integer, object, one_of, text};

/// One step of receiving a return. A return may take several, one for each parcel; a mistake is
/// put right by a further step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    #[schema(min_items = 1, max_items = 1000)]
    pub findings: Vec<Finding>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// The unit is there.
    Received {
        #[serde(flatten)]
        unit: UnitId,
    },
    /// The unit is there, damaged.
    Damaged {
        #[serde(flatten)]
        unit: UnitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The unit should have been in this parcel and is not.
    Short {
        #[serde(flatten)]
        unit: UnitId,
    },
    /// Something else is there instead, or the unit is not taken.
    Wrong {
        #[serde(flatten)]
        unit: UnitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found_sku: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// More is there than the return holds.
    Over {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sku: Option<String>,
        #[schema(minimum = 1, maximum = 1000)]
        quantity: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// An earlier receipt of the unit was a mistake.
    Undo {
        #[serde(flatten)]
        unit: UnitId,
    },
}

impl Receipt {
    /// Reads what an object like `{"findings": [{"finding": "received", …}]}` says of findings.
    pub fn read_object(body: &Object<'_>) -> Option<Self> {
        let findings = body.required("findings", array(1..=1_000, object(Finding::read)));
        Some(Self { findings: findings? })
    }
}

impl Finding {
    fn read(finding: &Object<'_>) -> Option<Self> {
        let words = ["received", "damaged", "short", "wrong", "over", "undo"];
        let word = finding.required("finding", one_of(&words.map(|word| (word, word))))?;
        let own: &[&str] = match word {
            "damaged" => &["note"],
            "wrong" => &["found_sku", "note"],
            "over" => &["sku", "quantity", "note"],
            _ => &[],
        };
        let named: &[&str] = if word == "over" { &[] } else { &UnitId::FIELDS };
        finding.reject_unknown(&[&["finding"][..], named, own].concat());
        let note = finding.optional("note", text(0..=1_000));
        if word == "over" {
            let sku = finding.optional("sku", text(1..=255));
            let quantity = finding.required("quantity", integer(1..=1_000));
            return Some(Self::Over { sku: sku?, quantity: quantity?, note: note? });
        }
        let found_sku = finding.optional("found_sku", text(1..=255));
        let unit = UnitId::read(finding);
        let (unit, found_sku, note) = (unit?, found_sku?, note?);
        Some(match word {
            "received" => Self::Received { unit },
            "damaged" => Self::Damaged { unit, note },
            "short" => Self::Short { unit },
            "wrong" => Self::Wrong { unit, found_sku, note },
            _ => Self::Undo { unit },
        })
    }
}
