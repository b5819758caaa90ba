//! People with their passwords and TOTP secrets.

use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::{access::MerchantId, merchant::Sealed};
use platform::{Timestamp, database::DatabaseError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use strum::IntoStaticStr;
use utoipa::ToSchema;

use crate::{email::Email, error::Error, roles::Role, schema::people};

/// The state of a person. An invited person has never signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum State {
    Invited,
    Active,
    Disabled,
}

/// A person who can sign in.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) email: Email,
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) merchant: Option<MerchantId>,
    pub(crate) state: State,
    pub(crate) password_hash: Option<String>,
    pub(crate) totp_secret: Option<Sealed>,
    /// The time step of the last accepted code.
    pub(crate) totp_step: Option<i64>,
    pub(crate) created_at: Timestamp,
    pub(crate) last_signed_in_at: Option<Timestamp>,
}

#[derive(Queryable)]
pub(super) struct Row {
    email: String,
    name: String,
    role: String,
    merchant: Option<String>,
    state: String,
    password_hash: Option<String>,
    totp_secret: Option<String>,
    totp_step: Option<i64>,
    created_at: Timestamp,
    last_signed_in_at: Option<Timestamp>,
}

impl TryFrom<Row> for Person {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            email: row.email.parse()?,
            name: row.name,
            role: serde_json::from_value(json!(row.role))?,
            merchant: serde_json::from_value(json!(row.merchant))?,
            state: serde_json::from_value(json!(row.state))?,
            password_hash: row.password_hash,
            totp_secret: row.totp_secret.map(Sealed),
            totp_step: row.totp_step,
            created_at: row.created_at,
            last_signed_in_at: row.last_signed_in_at,
        })
    }
}

pub(crate) async fn insert(conn: &mut AsyncPgConnection, person: &Person) -> Result<(), Error> {
    let row = (
        people::email.eq(person.email.as_str()),
        people::name.eq(&person.name),
        people::role.eq(person.role.as_str()),
        people::merchant.eq(person.merchant.as_ref().map(MerchantId::as_str)),
        people::state.eq(<&str>::from(person.state)),
        people::created_at.eq(person.created_at),
    );
    let inserted = diesel::insert_into(people::table).values(row).execute(conn).await;
    inserted.map_err(|error| violation(error, person))?;
    Ok(())
}

/// Saves everything that can change. The caller holds the lock of the person.
pub(crate) async fn save(conn: &mut AsyncPgConnection, person: &Person) -> Result<(), Error> {
    let change = (
        people::name.eq(&person.name),
        people::role.eq(person.role.as_str()),
        people::merchant.eq(person.merchant.as_ref().map(MerchantId::as_str)),
        people::state.eq(<&str>::from(person.state)),
        people::password_hash.eq(&person.password_hash),
        people::totp_secret.eq(person.totp_secret.as_ref().map(|secret| &secret.0)),
        people::totp_step.eq(person.totp_step),
        people::last_signed_in_at.eq(person.last_signed_in_at),
    );
    let saved = diesel::update(people::table.find(person.email.as_str())).set(change);
    saved.execute(conn).await.map_err(|error| violation(error, person))?;
    Ok(())
}

fn violation(error: diesel::result::Error, person: &Person) -> Error {
    let error = DatabaseError::from(error);
    match (error.constraint(), &person.merchant) {
        (Some("people_pkey"), _) => Error::PersonExists(person.email.clone()),
        (Some("people_merchant_fkey"), Some(id)) => Error::MerchantNotFound(id.to_string()),
        (Some("people_operator_totp"), _) => Error::OperatorWithoutTotp(person.email.clone()),
        _ => error.into(),
    }
}

pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    email: &Email,
) -> Result<Option<Person>, Error> {
    let row = people::table.find(email.as_str()).first::<Row>(conn).await.optional()?;
    row.map(Person::try_from).transpose()
}

/// Locks a person until the transaction ends.
pub(crate) async fn lock(conn: &mut AsyncPgConnection, email: &Email) -> Result<Person, Error> {
    let row = people::table.find(email.as_str()).for_update().first::<Row>(conn).await;
    row.optional()?.ok_or_else(|| Error::PersonNotFound(email.to_string()))?.try_into()
}

/// Locks the active operators until the transaction ends. Transactions that can remove an operator call
/// this first, so that two of them cannot remove the last two.
pub(crate) async fn lock_active_operators(
    conn: &mut AsyncPgConnection,
) -> Result<Vec<String>, Error> {
    let operators = people::table
        .filter(people::role.eq(Role::Operator.as_str()))
        .filter(people::state.eq(<&str>::from(State::Active)))
        .order(people::email)
        .select(people::email)
        .for_update();
    Ok(operators.load(conn).await?)
}

/// The next people after an e-mail address, of one merchant or of all.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: Option<&str>,
    after: &str,
    limit: i64,
) -> Result<Vec<Person>, Error> {
    let mut query = people::table
        .filter(people::email.gt(after))
        .order(people::email)
        .limit(limit)
        .into_boxed();
    if let Some(merchant) = merchant {
        query = query.filter(people::merchant.eq(merchant));
    }
    query.load::<Row>(conn).await?.into_iter().map(Person::try_from).collect()
}
