//! Imports that end early and go on where they ended.

use super::*;

#[tokio::test]
async fn an_import_goes_on_where_it_ended() {
    let file = file();
    let mut sent = 0;
    let broken = Intake::start(Box::new(move |_, message| {
        sent += 1;
        if sent < 3 { accept(&message) } else { (500, "", json!({ "message": "broken" })) }
    }));
    let error = import(&broken, &file).await.unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "gave up after 3 retries: the intake answers 500 Internal Server Error"
    );
    let first = broken.stored();

    let fixed = Intake::start(Box::new(|_, message| accept(&message)));
    goes_on(&file, &broken, &fixed);
    let tally = import(&fixed, &file).await.unwrap();
    let second = fixed.stored();
    assert_eq!(tally.rejected, 1);
    assert!(second.len() < 9, "{second:?}");
    let all: std::collections::BTreeSet<_> = first.iter().chain(&second).collect();
    assert_eq!(all.len(), 9);
}

#[tokio::test]
async fn the_same_command_goes_on_after_the_files_that_are_done() {
    let (done, next) = (file(), file());
    let files = [done.2.clone(), next.2.clone()];
    let (interrupt, interrupted) = watch::channel(false);
    let mut sent = 0;
    let first = Intake::start(Box::new(move |_, message| {
        sent += 1;
        // The first message of the second file.
        if sent == 4 {
            interrupt.send_replace(true);
        }
        accept(&message)
    }));
    assert_eq!(first.importer().import_all(&files, interrupted).await.unwrap(), None);
    assert!((10..18).contains(&first.stored().len()), "{:?}", first.stored());

    let second = Intake::start(Box::new(|_, message| accept(&message)));
    for file in [&done, &next] {
        goes_on(file, &first, &second);
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
async fn a_resumed_import_counts_what_was_rejected_before() {
    let file = file();
    let (interrupt, interrupted) = watch::channel(false);
    let rejecting = Intake::start(Box::new(move |_, message| {
        interrupt.send_replace(true);
        let errors: Vec<_> = (0..identifiers(&message).len())
            .map(|index| format!("$.returns_portal_order.orders[{index}].refunds"))
            .map(|field| json!({ "field": field, "code": "invalid" }))
            .collect();
        (422, "", json!({ "message": "no", "errors": errors }))
    }));
    let first = rejecting.importer().import(&file.1, &file.2, interrupted).await.unwrap();
    assert!((3..9).contains(&first.rejected), "{first:?}");

    let accepting = Intake::start(Box::new(|_, message| accept(&message)));
    goes_on(&file, &rejecting, &accepting);
    let tally = import(&accepting, &file).await.unwrap();
    assert_eq!((tally.stored, tally.rejected), (9 - first.rejected, first.rejected + 1));
}

#[tokio::test]
async fn what_was_read_before_the_damage_is_stored_however_often_it_is_tried() {
    let file = file();
    let orders = std::fs::read_to_string(&file.2).unwrap();
    let orders: Vec<_> = orders.lines().take(2).collect();
    std::fs::write(&file.2, format!("[{},", orders.join(",\n"))).unwrap();
    let intake = Intake::start(Box::new(|_, message| accept(&message)));
    for _run in 0..2 {
        let error = import(&intake, &file).await.unwrap_err();
        assert_eq!(error.to_string(), "line 2: the file ends inside the array");
        assert_eq!(intake.stored().len(), 2);
    }
}

#[tokio::test]
async fn an_interrupted_import_keeps_its_journal() {
    let file = file();
    let (interrupt, interrupted) = watch::channel(false);
    let intake = Intake::start(Box::new(move |_, message| {
        interrupt.send_replace(true);
        accept(&message)
    }));
    let tally = intake.importer().import(&file.1, &file.2, interrupted).await.unwrap();
    assert!(tally.stored < 9, "{tally:?}");
    assert!(Path::new(&format!("{}.import", file.2)).exists());
}
