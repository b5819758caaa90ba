//! Reads the responses of label providers in the transaction that settles the message.

use std::sync::Arc;

use delivery::outcome::Outcome;
use delivery::{Decision, MessageWriter, Settlement, SettlementObserver};
use diesel_async::AsyncPgConnection;
use domain::access::{InvalidMerchantId, MerchantId};
use domain::labels::{
    BoughtLabel, LABEL_REQUESTED, LabelRefusal, LabelState, MAX_LABEL_RESPONSE_BYTES,
};
use domain::message_kind::MessageKind;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use platform::database::DatabaseError;
use platform::sealing::Sealer;
use platform::{Clock, telemetry};
use tracing::Instrument as _;

use super::responses::{self, Provider, Response};

/// The status of a response about a label that the provider makes later.
const ACCEPTED: u16 = 202;

pub(crate) struct LabelSettlement {
    pub(crate) clock: Clock,
    pub(crate) sealer: Arc<Sealer>,
}

impl SettlementObserver for LabelSettlement {
    fn on_settled<'a>(
        &'a self,
        messages: &'a MessageWriter,
        conn: &'a mut AsyncPgConnection,
        settled: &'a [&'a Settlement],
    ) -> BoxFuture<'a, Result<(), DatabaseError>> {
        let is_request = |settled: &&&Settlement| {
            settled.kind() == MessageKind::LabelRequest && settled.event() == LABEL_REQUESTED
        };
        async move {
            for settlement in settled.iter().filter(is_request) {
                // The messages about the label belong to the trace of the request that started the return.
                let span = tracing::info_span!("label", delivery.id = %settlement.id());
                telemetry::set_parent(&span, settlement.traceparent());
                self.settle(messages, conn, settlement).instrument(span).await?;
            }
            Ok(())
        }
        .boxed()
    }
}

impl LabelSettlement {
    async fn settle(
        &self,
        messages: &MessageWriter,
        conn: &mut AsyncPgConnection,
        settlement: &Settlement,
    ) -> Result<(), DatabaseError> {
        if let Decision::RetryAt(_) = settlement.decision {
            return Ok(());
        }
        let id = settlement.id();
        let internal = |case: &str| DatabaseError::Internal(format!("label request {id}: {case}"));
        let invalid = |_: InvalidMerchantId| internal("the merchant has no valid identifier");
        let merchant: MerchantId = settlement.merchant().parse().map_err(invalid)?;
        let locked = super::lock(conn, &merchant, id).await?;
        let (mut rma, request) = locked.ok_or_else(|| internal("it is not stored"))?;
        // After the locks, so that times follow the order of the changes.
        let now = self.clock.now();
        let provider = Provider { actor: LABEL_REQUESTED, sealer: &self.sealer, now };
        match settlement.decision {
            Decision::Delivered => {
                let response = read(settlement);
                responses::apply(messages, conn, (&mut rma, &request), &response, provider).await
            }
            Decision::Dead if request.state == LabelState::Requested => {
                let detail = settlement.outcome().detail().replace('\0', "\u{FFFD}");
                responses::fail(conn, &request, &detail, provider).await
            }
            Decision::Dead | Decision::RetryAt(_) => Ok(()),
        }
    }
}

fn read(settlement: &Settlement) -> Response {
    let body = &settlement.response;
    match settlement.outcome() {
        Outcome::LabelRefused => match LabelRefusal::from_response(body) {
            Some(refusal) => Response::Refused(refusal),
            None => Response::Unusable("the refusal has no reason".to_owned()),
        },
        outcome if outcome.status() == Some(ACCEPTED) => Response::Accepted,
        _ if body.len() >= MAX_LABEL_RESPONSE_BYTES => {
            Response::Unusable("the response has 1.5 MiB or more".to_owned())
        }
        _ => match BoughtLabel::from_response(body) {
            Ok(read) => {
                for error in &read.left_out {
                    tracing::warn!(%error, "a part of a label response is left out");
                }
                Response::Bought(read.label)
            }
            Err(invalid) => Response::Unusable(invalid.to_string()),
        },
    }
}
