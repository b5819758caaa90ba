//! Labels and codes at rest. They are sealed for their request, because they show a shopper's address, or let anyone
//! send a parcel at the merchant's cost.

use domain::access::MerchantId;
use domain::labels::BoughtLabel;
use platform::sealing::{SealError, Sealer};
use uuid::Uuid;

use crate::store::label_requests::{LabelRequest, SealedLabel};

#[derive(Debug, Clone, Copy)]
enum Part {
    Document,
    QrCode,
}

impl Part {
    fn context(self, merchant: &MerchantId, id: Uuid) -> String {
        match self {
            Self::Document => format!("label:{merchant}:{id}"),
            Self::QrCode => format!("label code:{merchant}:{id}"),
        }
    }
}

pub(super) fn seal(
    sealer: &Sealer,
    request: &LabelRequest,
    label: &BoughtLabel,
) -> Result<SealedLabel, SealError> {
    let seal = |part: Part, content: &[u8]| {
        sealer.seal_bytes(&part.context(&request.merchant, request.id), content)
    };
    let document = label.document();
    let bytes = document.map(|document| seal(Part::Document, &document.bytes)).transpose()?;
    let qr_code = label.qr_code.as_ref();
    let qr_code = qr_code.map(|code| seal(Part::QrCode, code.as_bytes())).transpose()?;
    Ok(SealedLabel { document: document.map(|it| it.format).zip(bytes), qr_code })
}

pub(crate) fn open_document(
    sealer: &Sealer,
    merchant: &MerchantId,
    id: Uuid,
    sealed: &[u8],
) -> Result<Vec<u8>, SealError> {
    sealer.open_bytes(&Part::Document.context(merchant, id), sealed)
}

pub(super) fn open_code(
    sealer: &Sealer,
    merchant: &MerchantId,
    id: Uuid,
    sealed: &[u8],
) -> Result<String, SealError> {
    let code = sealer.open_bytes(&Part::QrCode.context(merchant, id), sealed)?;
    String::from_utf8(code).map_err(|_damaged| SealError::Damaged)
}
