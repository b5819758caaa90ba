//! Stores publications, a group in one transaction.
//!
//! A publication is answered after the transaction that holds it committed. A group that cannot
//! be written as a whole is written one publication at a time, so that a poisonous one harms only
//! itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use diesel_async::pooled_connection::PoolableConnection as _;
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::json::ValidationError;
use domain::order::{OrderOutcome, OrderSnapshot};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use messaging::Outbox;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram};
use platform::database::{DatabaseError, Pool, timed_out};
use platform::{ErrorKind, Failure, chain, telemetry};
use tokio_util::sync::CancellationToken;

use crate::books::{Books, Publication, Published, Stored};
use crate::group::{Group, Job as _, Ticket};
use crate::store::{self, Basis, WriteError};

/// Groups in PostgreSQL's hands: one that it works on, and one that it finds when it is done.
const UNDER_WAY: usize = 2;
/// A group is written one by one when it lost this many races against other writers.
const RACES: usize = 2;
/// And a single publication is given up after so many.
const LONELY_RACES: usize = 20;
/// Of a group that is written one by one, so many may run out of time; then it is not theirs.
const OVERDUE: usize = 2;

/// What became of each order of a publication, or why none was stored.
pub(crate) type Answer = Result<Vec<OrderOutcome>, PublishError>;

/// Why a publication was not stored.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum PublishError {
    #[error(transparent)]
    Refunds(ValidationError),
    #[error("orders could not be stored")]
    Database(#[source] Arc<DatabaseError>),
    #[error("the same orders are being stored by others, again and again")]
    Contended,
}

/// Takes groups and stores them.
pub(crate) struct Writer {
    pool: Pool,
    /// Its own, so that no number of readers keeps orders from being stored.
    conn: Option<AsyncPgConnection>,
    /// Whether the last orders were all stored, and so the next ones probably are.
    expects_news: bool,
    outbox: Outbox,
    group: Arc<Group<Publication, Answer>>,
    orders: Counter<u64>,
    sizes: Histogram<u64>,
}

impl Writer {
    pub(crate) fn new(pool: Pool, outbox: Outbox, group: Arc<Group<Publication, Answer>>) -> Self {
        let meter = telemetry::meter();
        Self {
            pool,
            conn: None,
            expects_news: true,
            outbox,
            group,
            orders: meter
                .u64_counter("orders_published")
                .with_description("Orders by what became of them")
                .build(),
            sizes: meter
                .u64_histogram("order_group_messages")
                .with_description("Messages stored in one transaction")
                .with_boundaries(vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
                .build(),
        }
    }

    /// Works until told to stop, and then until nothing waits any more.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            let group = tokio::select! {
                () = stop.cancelled() => break,
                group = self.group.next(1) => group,
            };
            self.store_all(group, &stop).await;
        }
        loop {
            let group = self.group.take();
            if group.is_empty() {
                return;
            }
            self.store_all(group, &stop).await;
        }
    }

    /// Stores a group, and those that come while it is stored.
    async fn store_all(&mut self, group: Tickets, stop: &CancellationToken) {
        if !self.expects_news {
            return self.deal_with(group).await;
        }
        match self.connection().await {
            Ok(conn) => {
                let (others, is_sound) = self.store_news(&conn, group, stop).await;
                self.conn = Some(conn).filter(|_| is_sound);
                for (group, error) in others {
                    match error {
                        WriteError::Raced => self.deal_with(group).await,
                        error => self.split(group, error).await,
                    }
                }
            }
            Err(error) => refuse(group, WriteError::from(error).into()),
        }
    }

    /// Stores this group and the following ones, as long as all they say is news. Gives back those
    /// that are not stored, and whether the connection can be used again.
    ///
    /// A group is handed to PostgreSQL before the one ahead of it is done, if it is as large: then
    /// PostgreSQL never waits, and groups do not become small.
    async fn store_news(
        &self,
        conn: &AsyncPgConnection,
        first: Tickets,
        stop: &CancellationToken,
    ) -> (Vec<(Tickets, WriteError)>, bool) {
        let (mut others, mut is_sound) = (Vec::new(), true);
        let mut under_way = FuturesOrdered::new();
        let mut wanted = weight(&first);
        under_way.push_back(store_as_news(conn, &self.outbox, first));
        while !under_way.is_empty() {
            let goes_well = others.is_empty() && is_sound && !stop.is_cancelled();
            let done = tokio::select! {
                biased;
                Some(done) = under_way.next() => done,
                group = self.group.next(wanted), if goes_well && under_way.len() < UNDER_WAY => {
                    wanted = weight(&group);
                    under_way.push_back(store_as_news(conn, &self.outbox, group));
                    continue;
                }
                else => break,
            };
            is_sound &= !matches!(&done, (_, Err(WriteError::Database(_))));
            match done {
                (group, Ok(answers)) => self.answer(group, answers),
                (group, Err(error)) => others.push((group, error)),
            }
        }
        (others, is_sound)
    }

    fn answer(&self, group: Tickets, answers: Vec<Answer>) {
        self.sizes.record(answers.len().try_into().unwrap_or(u64::MAX), &[]);
        for (ticket, answer) in group.into_iter().zip(answers) {
            self.count(&answer);
            ticket.answer(answer);
        }
    }

    async fn deal_with(&mut self, group: Tickets) {
        let races = if group.len() > 1 { RACES } else { LONELY_RACES };
        match self.store(&publications(&group), races).await {
            Ok(answers) => {
                let mut outcomes = answers.iter().flatten().flatten();
                self.expects_news = outcomes.all(|outcome| *outcome == OrderOutcome::Stored);
                self.answer(group, answers);
            }
            Err(error) => self.split(group, error).await,
        }
    }

    /// Stores a group one by one that cannot be stored together, unless that would not help.
    async fn split(&mut self, group: Tickets, error: WriteError) {
        if group.len() == 1 || !harms_only_some(&error) {
            return refuse(group, error.into());
        }
        tracing::warn!(error = chain(&error), "a group is stored one by one");
        let mut overdue = 0;
        let mut group = group.into_iter().filter(|ticket| !ticket.is_abandoned());
        while let Some(ticket) = group.next() {
            match self.store(&[&ticket.job], LONELY_RACES).await {
                Ok(answers) => self.answer(vec![ticket], answers),
                Err(error) => {
                    overdue += usize::from(is_overdue(&error));
                    let is_its_own = harms_only_some(&error) && overdue < OVERDUE;
                    let error = PublishError::from(error);
                    ticket.answer(Err(error.clone()));
                    if !is_its_own {
                        return refuse(group, error);
                    }
                }
            }
        }
    }

    fn count(&self, answer: &Answer) {
        for outcome in answer.iter().flatten() {
            let word = match outcome {
                OrderOutcome::Stored => "stored",
                OrderOutcome::Unchanged => "unchanged",
                OrderOutcome::Stale => "stale",
            };
            self.orders.add(1, &[KeyValue::new("result", word)]);
        }
    }

    /// Loads, decides, saves and announces, again and again while others change the same.
    async fn store(
        &mut self,
        publications: &[&Publication],
        races: usize,
    ) -> Result<Vec<Answer>, WriteError> {
        let mut conn = self.connection().await?;
        let mut lost = 0;
        loop {
            let stored = if lost == 0 {
                store_together(&conn, &self.outbox, publications).await
            } else {
                conn.transaction(async |conn| {
                    store::queue_behind_losers(conn).await?;
                    store_together(conn, &self.outbox, publications).await
                })
                .await
            };
            match stored {
                Err(WriteError::Raced) if lost < races => lost += 1,
                Err(WriteError::Database(error)) => return Err(error.into()),
                stored => {
                    self.conn = Some(conn);
                    return stored;
                }
            }
        }
    }

    /// Its connection, or a new one. Taken out, so that one that broke in the middle is not used
    /// again.
    async fn connection(&mut self) -> Result<AsyncPgConnection, DatabaseError> {
        match self.conn.take_if(|conn| !conn.is_broken()) {
            Some(conn) => Ok(conn),
            None => self.pool.dedicated().await,
        }
    }
}

type Tickets = Vec<Ticket<Publication, Answer>>;

fn publications(group: &Tickets) -> Vec<&Publication> {
    group.iter().map(|ticket| &ticket.job).collect()
}

fn weight(group: &Tickets) -> usize {
    group.iter().map(|ticket| ticket.job.weight()).sum()
}

fn orders(group: &Tickets) -> usize {
    group.iter().map(|ticket| ticket.job.orders.len()).sum()
}

fn refuse(group: impl IntoIterator<Item = Ticket<Publication, Answer>>, error: PublishError) {
    group.into_iter().for_each(|ticket| ticket.answer(Err(error.clone())));
}

/// Saves and announces a group of orders that nobody has heard of, or newer snapshots of those
/// that are stored. Nearly everything is that, and then PostgreSQL is asked once.
async fn store_as_news(
    conn: &AsyncPgConnection,
    outbox: &Outbox,
    group: Tickets,
) -> (Tickets, Result<Vec<Answer>, WriteError>) {
    let publications = publications(&group);
    let mut books = Books::open(Stored::default());
    let answers = post(&mut books, &publications);
    let saved = if books.rows().len() == orders(&group) {
        save(conn, outbox, &publications, &books, Basis::Hope).await
    } else {
        Err(WriteError::Raced)
    };
    (group, saved.map(|()| answers))
}

/// Loads, decides, saves and announces. Two questions to PostgreSQL, however many orders; nothing
/// is stored by the first, and the second is all or nothing.
async fn store_together(
    conn: &AsyncPgConnection,
    outbox: &Outbox,
    publications: &[&Publication],
) -> Result<Vec<Answer>, WriteError> {
    let mut books = Books::open(look_up(conn, publications).await?);
    let answers = post(&mut books, publications);
    save(conn, outbox, publications, &books, Basis::Reading).await?;
    Ok(answers)
}

fn post<'a>(books: &mut Books<'a>, publications: &[&'a Publication]) -> Vec<Answer> {
    let answers = publications.iter();
    answers.map(|it| books.post(it).map_err(PublishError::Refunds)).collect()
}

async fn save(
    conn: &AsyncPgConnection,
    outbox: &Outbox,
    publications: &[&Publication],
    books: &Books<'_>,
    basis: Basis,
) -> Result<(), WriteError> {
    match publications.iter().map(|publication| publication.received_at).max() {
        Some(now) => store::write(conn, outbox, books, basis, now).await,
        None => Ok(()),
    }
}

/// What is stored of everything these publications speak of.
async fn look_up<'a>(
    conn: &AsyncPgConnection,
    publications: &[&'a Publication],
) -> Result<Stored<'a>, DatabaseError> {
    let (mut orders, mut refunds, mut lines) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for publication in publications {
        let merchant = publication.merchant.as_str();
        for Published { snapshot: OrderSnapshot { order, .. }, .. } in &publication.orders {
            orders.insert((merchant, order.identifier.as_str()));
            for refund in &order.refunds {
                refunds.insert((merchant, refund.identifier.as_str()));
                let of_refund = refund.refund_line_items.iter();
                lines.extend(of_refund.map(|line| (merchant, line.identifier.as_str())));
            }
        }
    }
    let [orders, refunds, lines] = [orders, refunds, lines].map(Vec::from_iter);
    store::known(conn, &orders, &refunds, &lines).await
}

/// Whether the publications of a group could fare better one by one.
fn harms_only_some(error: &WriteError) -> bool {
    match error {
        WriteError::Raced => true,
        WriteError::Database(failure) => failure.kind() == ErrorKind::Internal || is_overdue(error),
    }
}

fn is_overdue(error: &WriteError) -> bool {
    matches!(error, WriteError::Database(error) if timed_out(error))
}

impl From<WriteError> for PublishError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Database(error) => Self::Database(Arc::new(error)),
            WriteError::Raced => Self::Contended,
        }
    }
}

impl Failure for PublishError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Refunds(_) => ErrorKind::Invalid,
            Self::Database(error) => error.kind(),
            Self::Contended => ErrorKind::Unavailable,
        }
    }

    fn fields(&self) -> &[domain::json::FieldError] {
        match self {
            Self::Refunds(invalid) => invalid.fields(),
            _ => &[],
        }
    }
}
