//! The rules of merchants after each change, which are never changed.

use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::merchant::Merchant;
use platform::Timestamp;
use serde_json::Value;

use crate::{error::Error, policy_versions::PolicyVersion, schema::merchant_policy_versions};

#[derive(Queryable)]
struct Row {
    version: i64,
    created_at: Timestamp,
    actor: String,
    rules: Value,
}

impl TryFrom<Row> for PolicyVersion {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let Row { version, created_at, actor, rules } = row;
        Ok(Self { version, created_at, actor, rules: serde_json::from_value(rules)? })
    }
}

/// Stores the rules of a merchant that has just been changed.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    actor: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let row = (
        merchant_policy_versions::merchant.eq(merchant.identifier.as_str()),
        merchant_policy_versions::version.eq(merchant.version),
        merchant_policy_versions::created_at.eq(now),
        merchant_policy_versions::actor.eq(actor),
        merchant_policy_versions::rules.eq(serde_json::to_value(&merchant.settings.policy.rules)?),
    );
    diesel::insert_into(merchant_policy_versions::table).values(row).execute(conn).await?;
    Ok(())
}

/// The newest versions of a merchant that come after the version `after` in the list, so are older.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: &str,
    after: Option<i64>,
    limit: i64,
) -> Result<Vec<PolicyVersion>, Error> {
    let mut query = merchant_policy_versions::table
        .select((
            merchant_policy_versions::version,
            merchant_policy_versions::created_at,
            merchant_policy_versions::actor,
            merchant_policy_versions::rules,
        ))
        .filter(merchant_policy_versions::merchant.eq(merchant))
        .order(merchant_policy_versions::version.desc())
        .limit(limit)
        .into_boxed();
    if let Some(after) = after {
        query = query.filter(merchant_policy_versions::version.lt(after));
    }
    query.load::<Row>(conn).await?.into_iter().map(PolicyVersion::try_from).collect()
}
