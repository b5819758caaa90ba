//! `backhaul session`: the sessions of people at the console.

use clap::{Args, Subcommand};

use crate::connection::OperatorCommand;
use crate::output::{Column, time, value};

const COLUMNS: &[Column] = &[
    value("session", "/id"),
    value("person", "/person").wide(),
    time("created", "/created_at").wide(),
    time("last used", "/last_used_at"),
    time("expires", "/expires_at").wide(),
    value("address", "/address"),
    value("user agent", "/user_agent").wide(),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the sessions of a person
    #[command(after_help = "\
Example:
  backhaul session list joe@acme.example")]
    List {
        /// E-mail address of the person
        person: String,
    },
    /// End one session, or all sessions of a person
    #[command(after_help = "\
Examples:
  backhaul session end 0193f2a1-b0c4-7d5e-8f9a-0123456789ab
  backhaul session end --person joe@acme.example")]
    End(End),
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct End {
    /// Session from `backhaul session list`
    session: Option<String>,
    /// End all sessions of the person with this e-mail address
    #[arg(long, value_name = "EMAIL")]
    person: Option<String>,
}

pub(crate) async fn run(arguments: OperatorCommand<Command>) -> anyhow::Result<()> {
    let OperatorCommand { operator, command } = arguments;
    let format = operator.format();
    let auth = operator.connect().await?;
    match command {
        Command::List { person } => {
            let sessions = auth.search(&["v1", "sessions"], &[("person", person)]).await?;
            format.print_table(&sessions, "/sessions", COLUMNS)
        }
        Command::End(End { session: Some(session), .. }) => {
            let response = auth.delete(&["v1", "sessions", &session]).await?;
            format.print(&response, |_| format!("ended session {session}\n"))
        }
        Command::End(End { person, .. }) => {
            let person = person.unwrap_or_default();
            let response =
                auth.delete_matching(&["v1", "sessions"], &[("person", &person)]).await?;
            format.print(&response, |_| format!("ended all sessions of {person}\n"))
        }
    }
}
