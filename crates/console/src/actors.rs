//! The names of clients that changed something. People are named by their e-mail addresses.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use pages::{api::Service, path};
use serde::Deserialize;

use crate::SignedIn;

/// The beginning of the ids of clients.
const CLIENT_ID: &str = "bh_";
/// The names that a page looks up. Clients beyond them are shown with their ids.
const MAX_CLIENTS: usize = 10;

#[derive(Deserialize)]
struct Client {
    name: String,
}

/// The names of clients by id.
#[derive(Debug, Default)]
pub(crate) struct ClientNames(BTreeMap<String, String>);

impl ClientNames {
    /// Loads the names of the clients among these actors.
    pub(crate) async fn load<'a>(
        signed_in: &SignedIn,
        actors: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let clients = actors.into_iter().filter(|actor| actor.starts_with(CLIENT_ID));
        let clients: BTreeSet<_> = clients.collect();
        let names = join_all(clients.into_iter().take(MAX_CLIENTS).map(async |id| {
            let path = path!("v1", "clients", id);
            let client: Client = signed_in.api.get(Service::Auth, &path, &[]).await.ok()?;
            Some((id.to_owned(), client.name))
        }));
        Self(names.await.into_iter().flatten().filter(|(_, name)| !name.is_empty()).collect())
    }

    #[cfg(test)]
    pub(crate) fn of<const N: usize>(names: [(&str, &str); N]) -> Self {
        Self(names.map(|(id, name)| (id.to_owned(), name.to_owned())).into())
    }

    /// The name of an actor. A client whose name is not known has its id.
    pub(crate) fn name<'a>(&'a self, actor: &'a str) -> &'a str {
        self.0.get(actor).map_or(actor, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::json;

    use super::*;
    use crate::fixtures::{app_with_changed_merchant, signed_in};

    #[actix_web::test]
    async fn clients_have_their_names() {
        let app = app_with_changed_merchant();
        let api = app.api.caller(Ipv4Addr::LOCALHOST.into(), None);
        let ada = SignedIn { api, ..signed_in("support", None, &json!({})) };
        let actors = ["bh_1", "bh_2", "joe@acme.example"];
        let names = ClientNames::load(&ada, actors).await;
        assert_eq!(actors.map(|actor| names.name(actor)), ["Shop", "bh_2", "joe@acme.example"]);
    }
}
