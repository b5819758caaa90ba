//! The windows of the endpoints, which all replicas share through the ledger.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::TimeDelta;
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::message_kind::MessageKind;
use platform::{
    Timestamp,
    database::{DatabaseError, prepared},
};
use tokio::time::Instant;

use super::{Settlement, Tried};
use crate::outcome::Signal;
use crate::window::{Limits, Window};

/// How long an endpoint's window is believed to be wide open without looking.
const TRUST: Duration = Duration::from_secs(1);

pub(crate) struct Windows {
    limits: Limits,
    /// Endpoints whose window was wide open when last seen: another success changes nothing.
    wide_open: HashMap<(String, MessageKind), Instant>,
}

#[derive(QueryableByName)]
struct Known {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Integer)]
    size: i32,
    #[diesel(sql_type = Integer)]
    slow_start_threshold: i32,
    #[diesel(sql_type = Integer)]
    credit: i32,
    #[diesel(sql_type = Integer)]
    failed_probes: i32,
    #[diesel(sql_type = Timestamptz)]
    not_before: Timestamp,
}

/// What a batch says of one endpoint.
#[derive(Default)]
struct News {
    heard: Vec<Heard>,
    disabled_at_version: Option<i64>,
}

/// What came of one message.
struct Heard {
    signal: Signal,
    began_at: Timestamp,
    ended_at: Timestamp,
}

impl Heard {
    fn of(settlement: &Settlement) -> Self {
        let end =
            |tried: &Tried| tried.at.checked_add_signed(TimeDelta::from_std(tried.latency).ok()?);
        let ended_at = settlement.tries.iter().filter_map(end).max().unwrap_or_default();
        let began_at = settlement.tries.iter().map(|tried| tried.at).min().unwrap_or_default();
        Self { signal: settlement.signal, began_at, ended_at }
    }
}

/// A window as it is written down: whose, its parts, when to send again, and whether it is gone.
type Changed<'a> = (&'a str, MessageKind, [i32; 4], Timestamp, Option<i64>);

impl Windows {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, wide_open: HashMap::new() }
    }

    /// Opens and closes windows by what a batch came to. The last thing a transaction does: the
    /// rows it locks are every replica's.
    pub(super) async fn learn(
        &mut self,
        conn: &mut AsyncPgConnection,
        batch: &[Settlement],
    ) -> Result<(), DatabaseError> {
        let news = self.news(batch);
        if news.is_empty() {
            return Ok(());
        }
        let known = known(conn, &news).await?;
        let mut changed = Vec::with_capacity(news.len());
        for ((merchant, kind), news) in &news {
            let before =
                known.iter().find(|known| known.merchant == *merchant && known.kind == kind.name());
            let (mut window, mut not_before) = match before {
                Some(Known {
                    size,
                    slow_start_threshold,
                    credit,
                    failed_probes,
                    not_before,
                    ..
                }) => {
                    let parts = [*size, *slow_start_threshold, *credit, *failed_probes];
                    (Window::restored(self.limits, parts), *not_before)
                }
                None => (Window::new(self.limits), Timestamp::UNIX_EPOCH),
            };
            let mut until = Timestamp::UNIX_EPOCH;
            for Heard { signal, began_at, ended_at } in &news.heard {
                match signal {
                    Signal::Shrink if *began_at < not_before => window.narrow(),
                    signal => window.learn(*signal),
                }
                until = until.max(*ended_at);
                not_before = until + TimeDelta::from_std(window.pause()).unwrap_or_default();
            }
            if window.is_wide_open() {
                self.wide_open.insert(((*merchant).to_owned(), *kind), Instant::now());
            }
            changed.push((*merchant, *kind, window.parts(), not_before, news.disabled_at_version));
        }
        keep(conn, &changed).await
    }

    /// The endpoints that a batch teaches something new about.
    fn news<'a>(&mut self, batch: &'a [Settlement]) -> BTreeMap<(&'a str, MessageKind), News> {
        let mut news = BTreeMap::<_, News>::new();
        for settlement in batch {
            let entry = news.entry((settlement.merchant.as_str(), settlement.kind)).or_default();
            entry.heard.push(Heard::of(settlement));
            entry.disabled_at_version =
                entry.disabled_at_version.max(settlement.disabled_at_version);
        }
        self.wide_open.retain(|_, seen_at| seen_at.elapsed() < TRUST);
        news.retain(|(merchant, kind), news| {
            let key = ((*merchant).to_owned(), *kind);
            let fine = news.heard.iter().all(|heard| heard.signal == Signal::Grow);
            if !fine {
                self.wide_open.remove(&key);
            }
            !(fine && self.wide_open.contains_key(&key))
        });
        news
    }
}

/// Locks in the order of the key: two replicas that settle at once do not deadlock.
async fn known(
    conn: &mut AsyncPgConnection,
    news: &BTreeMap<(&str, MessageKind), News>,
) -> Result<Vec<Known>, DatabaseError> {
    Ok(prepared(
        sql_query(
            "SELECT known.* FROM unnest($1, $2) AS given (merchant, kind), LATERAL ( \
                 SELECT merchant, kind, size, slow_start_threshold, credit, failed_probes, \
                 not_before FROM delivery_endpoints AS row \
                 WHERE row.merchant = given.merchant AND row.kind = given.kind FOR UPDATE \
             ) AS known",
        )
        .bind::<Array<Text>, _>(news.keys().map(|(merchant, _)| *merchant).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(news.keys().map(|(_, kind)| kind.name()).collect::<Vec<_>>()),
    )
    .load(conn)
    .await?)
}

async fn keep(conn: &mut AsyncPgConnection, windows: &[Changed<'_>]) -> Result<(), DatabaseError> {
    let part = |of: usize| {
        windows.iter().map(move |(_, _, parts, ..)| parts.get(of).copied().unwrap_or_default())
    };
    prepared(
        sql_query(
            "INSERT INTO delivery_endpoints AS known \
             (merchant, kind, size, slow_start_threshold, credit, failed_probes, not_before, \
             disabled_at_version) \
             SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) \
             ON CONFLICT (merchant, kind) DO UPDATE SET size = excluded.size, \
             slow_start_threshold = excluded.slow_start_threshold, credit = excluded.credit, \
             failed_probes = excluded.failed_probes, not_before = excluded.not_before, \
             disabled_at_version = GREATEST(excluded.disabled_at_version, known.disabled_at_version)",
        )
        .bind::<Array<Text>, _>(windows.iter().map(|(merchant, ..)| *merchant).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(windows.iter().map(|(_, kind, ..)| kind.name()).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(part(0).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(part(1).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(part(2).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(part(3).collect::<Vec<_>>())
        .bind::<Array<Timestamptz>, _>(windows.iter().map(|(.., at, _)| *at).collect::<Vec<_>>())
        .bind::<Array<Nullable<BigInt>>, _>(
            windows.iter().map(|(.., gone)| *gone).collect::<Vec<_>>(),
        ),
    )
    .execute(conn)
    .await?;
    Ok(())
}
