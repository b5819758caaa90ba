//! Imports that end early and are resumed.

use super::*;

#[tokio::test]
async fn a_failed_import_is_resumed() {
    let file = file();
    let mut sent = 0;
    let broken = FakeIntake::start(Box::new(move |_, message| {
        sent += 1;
        if sent < 3 { accept(&message) } else { (500, "", json!({ "message": "broken" })) }
    }));
    let error = import(&broken, &file).await.unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "gave up after 3 retries: the order intake responded with 500 Internal Server Error"
    );
    let first = broken.stored();

    let fixed = FakeIntake::start(Box::new(|_, message| accept(&message)));
    replace_intake(&file, &broken, &fixed);
    let summary = import(&fixed, &file).await.unwrap();
    let second = fixed.stored();
    assert_eq!(summary.rejected, 1);
    assert!(second.len() < 9, "{second:?}");
    let all: std::collections::BTreeSet<_> = first.iter().chain(&second).collect();
    assert_eq!(all.len(), 9);
}

#[tokio::test]
async fn the_same_command_resumes_after_the_completed_files() {
    let done = file();
    let next = file();
    let files = [done.2.clone(), next.2.clone()];
    let (interrupt, interrupted) = watch::channel(false);
    let mut sent = 0;
    let first = FakeIntake::start(Box::new(move |_, message| {
        sent += 1;
        // The first message of the second file.
        if sent == 4 {
            interrupt.send_replace(true);
        }
        accept(&message)
    }));
    assert_eq!(first.importer().import_all(&files, interrupted).await.unwrap(), None);
    assert!((10..18).contains(&first.stored().len()), "{:?}", first.stored());

    let second = FakeIntake::start(Box::new(|_, message| accept(&message)));
    for file in [&done, &next] {
        replace_intake(file, &first, &second);
    }
    let (_interrupt, interrupted) = watch::channel(false);
    let rejected = second.importer().import_all(&files, interrupted).await.unwrap();
    assert_eq!(rejected, Some(2));
    assert!(second.stored().len() < 9, "{:?}", second.stored());
    for file in [&done, &next] {
        assert_eq!(report(file).matches(",10,,$.identifier,").count(), 1, "{}", report(file));
        assert!(!Path::new(&format!("{}.import", file.2)).exists());
    }
}

#[tokio::test]
async fn a_resumed_import_counts_orders_rejected_earlier() {
    let file = file();
    let (interrupt, interrupted) = watch::channel(false);
    let rejecting = FakeIntake::start(Box::new(move |_, message| {
        interrupt.send_replace(true);
        let errors: Vec<_> = (0..identifiers(&message).len())
            .map(|index| format!("$.returns_portal_order.orders[{index}].refunds"))
            .map(|field| json!({ "field": field, "code": "invalid" }))
            .collect();
        (422, "", json!({ "message": "no", "errors": errors }))
    }));
    let first = rejecting.importer().import(&file.1, &file.2, interrupted).await.unwrap();
    assert!((3..9).contains(&first.rejected), "{first:?}");

    let accepting = FakeIntake::start(Box::new(|_, message| accept(&message)));
    replace_intake(&file, &rejecting, &accepting);
    let summary = import(&accepting, &file).await.unwrap();
    assert_eq!((summary.stored, summary.rejected), (9 - first.rejected, first.rejected + 1));
}

#[tokio::test]
async fn orders_before_a_malformed_part_are_stored_once() {
    let file = file();
    let orders = std::fs::read_to_string(&file.2).unwrap();
    let orders: Vec<_> = orders.lines().take(2).collect();
    std::fs::write(&file.2, format!("[{},", orders.join(",\n"))).unwrap();
    let intake = FakeIntake::start(Box::new(|_, message| accept(&message)));
    for _run in 0..2 {
        let error = import(&intake, &file).await.unwrap_err();
        assert_eq!(error.to_string(), "line 2: the file ends inside the array");
        assert_eq!(intake.stored().len(), 2);
    }
}

#[tokio::test]
async fn an_interrupted_import_keeps_its_checkpoint() {
    let file = file();
    let (interrupt, interrupted) = watch::channel(false);
    let intake = FakeIntake::start(Box::new(move |_, message| {
        interrupt.send_replace(true);
        accept(&message)
    }));
    let summary = intake.importer().import(&file.1, &file.2, interrupted).await.unwrap();
    assert!(summary.stored < 9, "{summary:?}");
    assert!(Path::new(&format!("{}.import", file.2)).exists());
}
