//! The report lists each rejected order once, can be shared by files and replaces no other file.

use super::*;
use crate::orders::check::order_is_invalid;
use crate::orders::report::Rejection;

/// Writes report and checkpoint of an import that ended after three orders with the second rejected.
fn end_early(importer: &Importer, (_, source, name): &(TempDir, Source, String)) -> Report {
    let mut report = Report::new(importer.report_path(source), name);
    let mut checkpoint = Checkpoint::open(source.path(), importer.intake.target()).unwrap();
    checkpoint.finish(0, 3, vec![rejection(2)], &mut report).unwrap();
    report
}

fn rejection(line: u64) -> Rejection {
    Rejection { line, order: String::new(), errors: vec![order_is_invalid("no")] }
}

#[tokio::test]
async fn a_resumed_import_reports_an_order_once() {
    let file = file();
    let begins_with = |message: &Value, end: &str| identifiers(message)[0].ends_with(end);
    let decide = move |message: &Value| {
        if !begins_with(message, "0000007") {
            return accept(message);
        }
        let field = "$.returns_portal_order.orders[0].refunds";
        let errors = json!([{ "field": field, "code": "invalid" }]);
        (422, "", json!({ "message": "no", "errors": errors }))
    };
    // The second batch fails, but only after an order of the third was rejected.
    let mut is_third_done = false;
    let broken = FakeIntake::start(Box::new(move |_, message| {
        is_third_done |= begins_with(&message, "0000008");
        match begins_with(&message, "0000004") {
            true if is_third_done => (500, "", json!({ "message": "broken" })),
            true => (429, "retry-after: 0\r\n", json!({ "message": "slow down" })),
            false => decide(&message),
        }
    }));
    import(&broken, &file).await.unwrap_err();

    let fixed = FakeIntake::start(Box::new(move |_, message| decide(&message)));
    replace_intake(&file, &broken, &fixed);
    let summary = import(&fixed, &file).await.unwrap();
    assert_eq!((summary.stored, summary.rejected), (5, 2));
    assert_eq!(report(&file).matches(",7,1-0000007,").count(), 1, "{}", report(&file));
}

#[tokio::test]
async fn an_order_that_is_reported_but_not_in_the_checkpoint_is_reported_once() {
    let file = file();
    let intake = FakeIntake::start(Box::new(|_, message| accept(&message)));
    let importer = intake.importer();
    // The program ended before it saved the checkpoint of the last batch.
    end_early(&importer, &file).add(&rejection(10)).unwrap();

    let summary = import(&intake, &file).await.unwrap();
    assert_eq!((summary.stored, summary.rejected), (6, 2));
    let rows = report(&file);
    for (row, times) in [(",2,,$,", 1), (",10,,$,", 0), (",10,,$.identifier,", 1)] {
        assert_eq!(rows.matches(row).count(), times, "{rows}");
    }
}

#[tokio::test]
async fn a_file_that_starts_over_keeps_the_rows_of_others_in_a_shared_report() {
    let (one, other) = (file(), file());
    let shared = one.0.path().join("rejected.csv");
    let intake = FakeIntake::start(Box::new(|_, message| accept(&message)));
    let importer = Importer { report: Some(shared.clone()), ..intake.importer() };
    let (_interrupt, interrupted) = watch::channel(false);
    importer.import_all(std::slice::from_ref(&one.2), interrupted.clone()).await.unwrap();
    end_early(&importer, &other);

    importer.import_all(&[one.2.clone(), other.2.clone()], interrupted).await.unwrap();
    let report = std::fs::read_to_string(&shared).unwrap();
    for (name, row) in [
        (&one.2, "10,,$.identifier,missing_field,"),
        (&other.2, "2,,$,invalid,no"),
        (&other.2, "10,,$.identifier,missing_field,"),
    ] {
        assert_eq!(report.matches(&format!("{name},{row}")).count(), 1, "{report}");
    }
}

#[tokio::test]
async fn a_shared_report_has_the_rows_of_all_files_and_of_no_earlier_run() {
    let (one, other) = (file(), file());
    let shared = one.0.path().join("rejected.csv");
    let intake = FakeIntake::start(Box::new(|_, message| accept(&message)));
    let importer = Importer { report: Some(shared.clone()), ..intake.importer() };
    let (_interrupt, interrupted) = watch::channel(false);
    for _run in 0..2 {
        let files = [one.2.clone(), other.2.clone()];
        importer.import_all(&files, interrupted.clone()).await.unwrap();
        let report = std::fs::read_to_string(&shared).unwrap();
        for (_, _, name) in [&one, &other] {
            let row = format!("{name},10,,$.identifier,missing_field,");
            assert_eq!(report.matches(&row).count(), 1, "{report}");
        }
    }
}

#[tokio::test]
async fn a_resumed_import_requires_the_same_report() {
    let file = file();
    let intake = FakeIntake::start(Box::new(|_, message| accept(&message)));
    let listed = file.0.path().join("listed.csv");
    let with = |report: Option<&Path>| Importer {
        report: report.map(Path::to_owned),
        ..intake.importer()
    };
    let (_interrupt, interrupted) = watch::channel(false);
    with(Some(&listed)).import(&file.1, &file.2, interrupted.clone()).await.unwrap();

    let refused = with(None)
        .import_all(std::slice::from_ref(&file.2), interrupted.clone())
        .await
        .unwrap_err();
    assert!(refused.is::<UsageError>(), "{refused}");
    assert!(refused.to_string().contains(&format!("--report {}", listed.display())), "{refused}");
    let rejected = with(Some(&listed)).import_all(std::slice::from_ref(&file.2), interrupted).await;
    assert_eq!(rejected.unwrap(), Some(1));
    let report = std::fs::read_to_string(&listed).unwrap();
    assert_eq!(report.matches(",10,,$.identifier,").count(), 1, "{report}");
    assert!(!Path::new(&format!("{}.rejected.csv", file.2)).exists());
}

#[test]
fn a_report_overwrites_no_other_file() {
    let file = file();
    let orders = std::fs::read_to_string(&file.2).unwrap();
    let other = file.0.path().join("export.csv");
    std::fs::write(&other, "order,total\n").unwrap();
    let link = file.0.path().join("link");
    std::os::unix::fs::symlink(&file.2, &link).unwrap();
    let intake = FakeIntake::start(Box::new(|_, message| accept(&message)));
    for path in [PathBuf::from(&file.2), link, other.clone()] {
        let importer = Importer { report: Some(path), ..intake.importer() };
        let refused = importer.prepare_reports(std::slice::from_ref(&file.1)).unwrap_err();
        assert!(refused.is::<UsageError>(), "{refused}");
    }
    assert_eq!(std::fs::read_to_string(&file.2).unwrap(), orders);
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "order,total\n");
}
