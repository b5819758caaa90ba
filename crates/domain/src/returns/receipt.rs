//! A warehouse's receipt of parcels of a return.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::UnitId;
use crate::json::{Object, array, integer, object, one_of, text};

/// The findings for one or more parcels of a return. A return can have several receipts, and a
/// later receipt corrects mistakes of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    #[schema(min_items = 1, max_items = 1000)]
    pub findings: Vec<Finding>,
}

/// One finding of the warehouse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// The unit arrived.
    Received {
        #[serde(flatten)]
        unit: UnitId,
    },
    /// The unit arrived damaged.
    Damaged {
        #[serde(flatten)]
        unit: UnitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The unit is missing from the parcel.
    Short {
        #[serde(flatten)]
        unit: UnitId,
    },
    /// Another item arrived in place of the unit, or the warehouse rejects the unit.
    Wrong {
        #[serde(flatten)]
        unit: UnitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found_sku: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// More units arrived than the return contains.
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
    /// Reads the field `findings` of an object like `{"findings": [{"finding": "received", …}]}`.
    pub fn read_object(body: &Object<'_>) -> Option<Self> {
        let findings = body.required("findings", array(1..=1_000, object(Finding::read)));
        Some(Self { findings: findings? })
    }
}

impl Finding {
    /// The unit that the finding is about. Surplus units have no identity.
    pub fn unit(&self) -> Option<&UnitId> {
        match self {
            Self::Received { unit }
            | Self::Damaged { unit, .. }
            | Self::Short { unit }
            | Self::Wrong { unit, .. }
            | Self::Undo { unit } => Some(unit),
            Self::Over { .. } => None,
        }
    }

    /// Reports the invalid fields of a finding of an unknown kind, which may need any of them.
    fn check_fields(finding: &Object<'_>) {
        finding.optional("note", text(0..=1_000));
        finding.optional("sku", text(1..=255));
        finding.optional("found_sku", text(1..=255));
        finding.optional("quantity", integer(1..=1_000));
        if UnitId::FIELDS.iter().any(|field| finding.has(field)) {
            UnitId::read(finding);
        }
    }

    fn read(finding: &Object<'_>) -> Option<Self> {
        let kinds = ["received", "damaged", "short", "wrong", "over", "undo"];
        let kind = finding.required("finding", one_of(&kinds.map(|kind| (kind, kind))));
        let Some(kind) = kind else {
            Self::check_fields(finding);
            return None;
        };
        let own_fields: &[&str] = match kind {
            "damaged" => &["note"],
            "wrong" => &["found_sku", "note"],
            "over" => &["sku", "quantity", "note"],
            _ => &[],
        };
        let unit_fields: &[&str] = if kind == "over" { &[] } else { &UnitId::FIELDS };
        finding.reject_unknown(&[&["finding"][..], unit_fields, own_fields].concat());
        let note = finding.optional("note", text(0..=1_000));
        if kind == "over" {
            let sku = finding.optional("sku", text(1..=255));
            let quantity = finding.required("quantity", integer(1..=1_000));
            return Some(Self::Over { sku: sku?, quantity: quantity?, note: note? });
        }
        let found_sku = finding.optional("found_sku", text(1..=255));
        let unit = UnitId::read(finding);
        let unit = unit?;
        let found_sku = found_sku?;
        let note = note?;
        Some(match kind {
            "received" => Self::Received { unit },
            "damaged" => Self::Damaged { unit, note },
            "short" => Self::Short { unit },
            "wrong" => Self::Wrong { unit, found_sku, note },
            _ => Self::Undo { unit },
        })
    }
}
