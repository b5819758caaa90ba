//! People with their passwords and TOTP secrets.

use std::net::IpAddr;

use diesel::{
    ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable,
    dsl::sql,
    sql_types::{Bool, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::{access::MerchantId, merchant::Sealed};
use platform::{Timestamp, database::DatabaseError, limits::network};
use serde::{Deserialize, Serialize};
use serde_json::json;
use strum::IntoStaticStr;
use utoipa::ToSchema;

use crate::{email::Email, error::Error, roles::Role, schema::people};

/// The state of a person. An invited person has neither a password nor an account at an OpenID provider.
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
    /// Wrong codes in a row after the right password.
    pub(crate) wrong_codes: i32,
    /// The person at the OpenID provider, after the first sign-in with it.
    pub(crate) oidc: Option<OidcSubject>,
    pub(crate) created_at: Timestamp,
    pub(crate) last_signed_in_at: Option<Timestamp>,
    /// The address, or the IPv6 network, of the last sign-in.
    pub(crate) last_address: Option<String>,
}

impl Person {
    /// Whether this is the address, or the IPv6 network, of the last sign-in.
    pub(crate) fn signed_in_last_from(&self, address: IpAddr) -> bool {
        self.last_address.as_ref() == Some(&network(address).to_string())
    }
}

/// A person at an OpenID provider. The e-mail address there can change, this cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OidcSubject {
    pub(crate) issuer: String,
    pub(crate) subject: String,
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
    wrong_codes: i32,
    oidc_issuer: Option<String>,
    oidc_subject: Option<String>,
    created_at: Timestamp,
    last_signed_in_at: Option<Timestamp>,
    last_address: Option<String>,
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
            wrong_codes: row.wrong_codes,
            oidc: row
                .oidc_issuer
                .zip(row.oidc_subject)
                .map(|(issuer, subject)| OidcSubject { issuer, subject }),
            created_at: row.created_at,
            last_signed_in_at: row.last_signed_in_at,
            last_address: row.last_address,
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
        people::wrong_codes.eq(person.wrong_codes),
        people::oidc_issuer.eq(person.oidc.as_ref().map(|oidc| &oidc.issuer)),
        people::oidc_subject.eq(person.oidc.as_ref().map(|oidc| &oidc.subject)),
        people::last_signed_in_at.eq(person.last_signed_in_at),
        people::last_address.eq(&person.last_address),
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

/// The e-mail address of the person who signed in before as this subject of the OpenID provider.
pub(crate) async fn find_email_by_subject(
    conn: &mut AsyncPgConnection,
    oidc: &OidcSubject,
) -> Result<Option<Email>, Error> {
    let query = people::table
        .filter(people::oidc_issuer.eq(&oidc.issuer))
        .filter(people::oidc_subject.eq(&oidc.subject))
        .select(people::email);
    Ok(query.first::<String>(conn).await.optional()?.map(|email| email.parse()).transpose()?)
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
    let mut query = people::table.limit(limit).into_boxed();
    if let Some(merchant) = merchant {
        // Whole rows are compared, so that the index on them is used.
        let is_after = sql::<Bool>("(merchant, email) > (").bind::<Text, _>(merchant).sql(", ");
        query = query
            .filter(is_after.bind::<Text, _>(after).sql(")"))
            .filter(people::merchant.le(merchant))
            .order((people::merchant, people::email));
    } else {
        query = query.filter(people::email.gt(after)).order(people::email);
    }
    query.load::<Row>(conn).await?.into_iter().map(Person::try_from).collect()
}
