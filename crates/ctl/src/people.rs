//! `backhaul person`: the people who sign in to the console.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::access::MerchantId;
use reqwest::StatusCode;
use serde_json::{Map, Value, json};

use crate::api_error::ApiError;
use crate::connection::OperatorCommand;
use crate::output::{Column, details, line_at, time, time_at, value};
use crate::usage_error;

const ROLES: [&str; 4] = ["operator", "support", "merchant-admin", "merchant-viewer"];

const COLUMNS: &[Column] = &[
    value("e-mail", "/email"),
    value("name", "/name"),
    value("role", "/role"),
    value("merchant", "/merchant"),
    value("state", "/state"),
    value("TOTP", "/totp"),
    time("created", "/created_at").wide(),
    time("last signed in", "/last_signed_in_at").wide(),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Invite a person and show the link of the invitation once
    ///
    /// With --renew, a person who exists gets a new link and sets the password and TOTP
    /// again. The old password works until then.
    #[command(after_help = "\
Examples:
  backhaul person invite ada@backhaul.example --role operator --name Ada
  backhaul person invite joe@acme.example --role merchant-admin --merchant acme
  backhaul person invite joe@acme.example --renew")]
    Invite(Invite),
    /// List the people of one merchant, or all
    #[command(after_help = "\
Examples:
  backhaul person list
  backhaul person list acme")]
    List {
        /// Only people of this merchant
        merchant: Option<MerchantId>,
    },
    /// Show a person
    #[command(after_help = "\
Example:
  backhaul person show joe@acme.example")]
    Show(Person),
    /// Give a person another role; the person's sessions end
    ///
    /// An invitation link that was not used stops working. A person who leaves a merchant also
    /// loses the password and TOTP. The new link is shown once.
    #[command(after_help = "\
Examples:
  backhaul person role joe@acme.example merchant-viewer --merchant acme
  backhaul person role ada@backhaul.example support")]
    Role {
        #[command(flatten)]
        person: Person,
        /// New role
        #[arg(value_parser = PossibleValuesParser::new(ROLES))]
        role: String,
        /// Merchant of a merchant-admin or a merchant-viewer
        #[arg(long)]
        merchant: Option<MerchantId>,
    },
    /// Stop a person from signing in and end the person's sessions
    #[command(after_help = "\
Example:
  backhaul person disable joe@acme.example")]
    Disable(Person),
    /// Allow a disabled person to sign in again
    #[command(after_help = "\
Example:
  backhaul person enable joe@acme.example")]
    Enable(Person),
}

#[derive(Args)]
pub(crate) struct Person {
    /// E-mail address of the person
    email: String,
}

impl Person {
    fn path<'a>(&'a self, action: &[&'a str]) -> Vec<&'a str> {
        [&["v1", "people", &self.email], action].concat()
    }
}

#[derive(Args)]
pub(crate) struct Invite {
    #[command(flatten)]
    person: Person,
    /// Role of the person
    #[arg(
        long,
        required_unless_present = "renew",
        value_parser = PossibleValuesParser::new(ROLES)
    )]
    role: Option<String>,
    /// Merchant of a merchant-admin or a merchant-viewer
    #[arg(long)]
    merchant: Option<MerchantId>,
    /// Display name
    #[arg(long)]
    name: Option<String>,
    /// Create a new link for a person who exists
    #[arg(long, conflicts_with_all = ["role", "merchant", "name"])]
    renew: bool,
}

impl Invite {
    fn body(&self) -> Value {
        let mut body = Map::new();
        body.insert("email".to_owned(), json!(self.person.email));
        body.insert("role".to_owned(), json!(self.role));
        body.extend(
            self.merchant.as_ref().map(|merchant| ("merchant".to_owned(), json!(merchant))),
        );
        body.extend(self.name.as_ref().map(|name| ("name".to_owned(), json!(name))));
        body.into()
    }
}

pub(crate) async fn run(arguments: OperatorCommand<Command>) -> anyhow::Result<()> {
    let OperatorCommand { operator, command } = arguments;
    let format = operator.format();
    let auth = operator.connect().await?;
    let person = match command {
        Command::Invite(invite) => {
            let response = if invite.renew {
                auth.post(&invite.person.path(&["invitation"]), &json!({})).await?
            } else {
                check_role(invite.role.as_deref(), invite.merchant.as_ref())?;
                auth.post(&["v1", "people"], &invite.body()).await.map_err(suggest_renew)?
            };
            return format.print(&response, describe_invitation);
        }
        Command::List { merchant } => {
            auth.require_merchant(merchant.as_ref()).await?;
            let query = [("merchant", merchant)];
            let people = auth.list(&["v1", "people"], "people", &query, usize::MAX).await?;
            return format.print_table(&people, "/people", COLUMNS);
        }
        Command::Show(person) => auth.get(&person.path(&[])).await?,
        Command::Role { person, role, merchant } => {
            check_role(Some(&role), merchant.as_ref())?;
            let change = json!({ "role": role, "merchant": merchant });
            let response = auth.patch(&person.path(&[]), &change).await?;
            return format.print(&response, describe_change);
        }
        Command::Disable(person) => auth.post(&person.path(&["disable"]), &json!({})).await?,
        Command::Enable(person) => auth.post(&person.path(&["enable"]), &json!({})).await?,
    };
    format.print_details(&person, COLUMNS)
}

/// Fails if the role needs a merchant and none is named, or the other way round.
fn check_role(role: Option<&str>, merchant: Option<&MerchantId>) -> anyhow::Result<()> {
    let Some(role) = role else { return Ok(()) };
    match (role.starts_with("merchant-"), merchant.is_some()) {
        (true, false) => {
            Err(usage_error(format!("a {role} belongs to a merchant: pass --merchant")))
        }
        (false, true) => {
            Err(usage_error(format!("the role {role} belongs to no merchant: omit --merchant")))
        }
        _ => Ok(()),
    }
}

/// Names the flag for a person who exists.
fn suggest_renew(error: anyhow::Error) -> anyhow::Error {
    let exists =
        error.downcast_ref::<ApiError>().is_some_and(|it| it.status == StatusCode::CONFLICT);
    if exists { error.context("nobody was invited; --renew creates a new link") } else { error }
}

/// The person, then the link with its expiry and the next step.
fn describe_invitation(response: &Value) -> String {
    let person = response.get("person").unwrap_or(&Value::Null);
    describe_link(person, response)
}

/// The changed person, and the new link if there is one.
fn describe_change(person: &Value) -> String {
    match person.get("invitation") {
        Some(_) => describe_link(person, person),
        None => details(person, COLUMNS),
    }
}

/// A person, and the link of the invitation in a response.
fn describe_link(person: &Value, response: &Value) -> String {
    format!(
        "{}\ninvitation: {}\nSend this link to {} by a secure channel.\n\
         It works once, expires at {} and is not shown again.\n\
         The person sets a password there and signs in to the console.\n",
        details(person, COLUMNS),
        line_at(response, "/invitation/url"),
        line_at(person, "/email"),
        time_at(response, "/invitation/expires_at"),
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::output::table;

    fn joe() -> Value {
        json!({ "email": "joe@acme.example", "name": "Joe", "role": "merchant-admin",
            "merchant": "acme", "state": "invited", "totp": false,
            "created_at": "2026-11-15T03:48:13Z", "last_signed_in_at": null })
    }

    #[test]
    fn an_invitation_is_shown_with_its_link_and_the_next_step() {
        let response = json!({ "person": joe(), "invitation": {
            "url": "http://localhost:8086/invitation?token=t0ken", "token": "t0ken",
            "expires_at": "2026-11-18T03:48:13Z" } });
        expect![[r#"
            e-mail          joe@acme.example
            name            Joe
            role            merchant-admin
            merchant        acme
            state           invited
            TOTP            no
            created         2026-11-15 03:48:13Z
            last signed in  -

            invitation: http://localhost:8086/invitation?token=t0ken
            Send this link to joe@acme.example by a secure channel.
            It works once, expires at 2026-11-18 03:48:13Z and is not shown again.
            The person sets a password there and signs in to the console.
        "#]]
        .assert_eq(&describe_invitation(&response));
    }

    #[test]
    fn a_new_role_shows_the_new_link() {
        let mut person = joe();
        assert_eq!(describe_change(&person), details(&person, COLUMNS));
        person["invitation"] = json!({ "url": "http://localhost:8086/invitation?token=t0ken",
            "token": "t0ken", "expires_at": "2026-11-18T03:48:13Z" });
        let text = describe_change(&person);
        assert!(text.contains("invitation: http://localhost:8086/invitation?token=t0ken\n"));
        assert!(text.contains("by a secure channel"), "{text}");
    }

    #[test]
    fn people_are_listed() {
        expect![[r#"
            E-MAIL            NAME  ROLE            MERCHANT  STATE    TOTP
            joe@acme.example  Joe   merchant-admin  acme      invited  no
        "#]]
        .assert_eq(&table([&joe()], COLUMNS));
    }
}
