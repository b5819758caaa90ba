//! Sending again by the thousand, and what becomes of the letters.

use domain::kind::Kind;
use messaging::{Exchange, Link, Message, Publisher};
use reqwest::Method;
use serde_json::json;
use testkit::eventually;

use crate::operators::Desk;
use crate::stage::{SOON, message, topology};

#[tokio::test(flavor = "multi_thread")]
async fn the_letter_of_a_later_round_outlives_that_of_an_earlier_one() {
    let desk = Desk::new(&[]).await;
    let (stage, first) = (&desk.stage, desk.kill(message(None, "first", 1)).await);
    stage.behave(json!([{"do": "answer", "status": 500, "times": 6}])).await;
    let replay = format!("/v1/deliveries/{first}/replay");
    assert_eq!(desk.operator(Method::POST, &replay, &json!({})).await.0, 202);
    stage.settled(SOON).await;
    let second = desk.kill(message(None, "second", 2)).await;

    // A process that died before it tidied up left the letter of the earlier round behind.
    let (namespace, tasks) = (&stage.namespace, &stage.replica.process.tasks);
    let url = namespace.amqp_url().to_owned().into();
    let link = Link::start(&url, &topology(&namespace.name), "leftover", tasks);
    let leftover = Message {
        exchange: Exchange(String::new()),
        routing_key: format!("{}.{}", namespace.name, Kind::Rma.dead_letter_queue()),
        id: first.to_string(),
        content_type: "application/json",
        headers: vec![("delivery-id", first.to_string()), ("round", "0".to_owned())],
        body: b"{}".to_vec(),
    };
    assert_eq!(Publisher::new(link).publish(&[leftover]).await.unwrap(), [Ok(())]);
    let replay = format!("/v1/deliveries/{second}/replay");
    assert_eq!(desk.operator(Method::POST, &replay, &json!({})).await.0, 202);
    stage.settled(SOON).await;
    let expected = [(json!(first.to_string()), json!("1"))];
    eventually("only the letter of the later round is left", SOON, async || {
        let letters = stage.namespace.peek(Kind::Rma.dead_letter_queue()).await;
        let left: Vec<_> = letters
            .iter()
            .map(|letter| &letter["properties"]["headers"])
            .map(|headers| (headers["delivery-id"].clone(), headers["round"].clone()))
            .collect();
        (left == expected).then_some(())
    })
    .await;
    desk.leave().await;
}
