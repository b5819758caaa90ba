mod drop_shipments;
mod outbound;
mod receipts;
mod splitting;

use serde_json::{Value, json};

use crate::json::{Code, Document, ValidationError};

/// A change to a sample: the value at a pointer, or none to take the field away.
type Change<'a> = (&'a str, Option<Value>);

/// A sample with changes made to it.
fn changed(mut sample: Value, changes: &[Change<'_>]) -> Value {
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = sample.pointer_mut(parent).unwrap_or_else(|| panic!("no {pointer}"));
        match (parent, value) {
            (Value::Object(members), Some(value)) => {
                members.insert(key.to_owned(), value.clone());
            }
            (Value::Object(members), None) => {
                members.remove(key).unwrap_or_else(|| panic!("no {pointer}"));
            }
            (parent, Some(value)) => parent[key.parse::<usize>().unwrap()] = value.clone(),
            (_, None) => panic!("{pointer} is no field"),
        }
    }
    sample
}

/// The JSONPath of a pointer.
fn path(pointer: &str) -> String {
    pointer.split('/').skip(1).fold("$".to_owned(), |path, step| match step.parse::<usize>() {
        Ok(index) => format!("{path}[{index}]"),
        Err(_) => format!("{path}.{step}"),
    })
}

fn document(value: &Value) -> Document {
    Document::parse(value.to_string().as_bytes()).unwrap()
}

/// What one reader makes of a sample with one thing changed.
struct Reader {
    sample: Value,
    read: fn(&Document) -> Option<ValidationError>,
}

impl Reader {
    fn faults(&self, changes: &[Change<'_>]) -> Vec<(String, Code)> {
        let invalid = (self.read)(&document(&changed(self.sample.clone(), changes)));
        let errors = invalid.map_or(Vec::new(), |invalid| invalid.errors);
        errors.into_iter().map(|error| (error.field, error.code)).collect()
    }

    #[track_caller]
    fn refuses(&self, pointer: &str, value: Option<Value>, code: Code) {
        let faults = self.faults(&[(pointer, value.clone())]);
        assert_eq!(faults, [(path(pointer), code)], "{pointer} {value:?}");
    }

    #[track_caller]
    fn accepts(&self, changes: &[Change<'_>]) {
        assert_eq!(self.faults(changes), [], "{changes:?}");
    }

    /// Fields that must be there, and not be `null`, empty or of another type.
    #[track_caller]
    fn requires(&self, pointers: &[&str]) {
        for pointer in pointers {
            self.refuses(pointer, None, Code::MissingField);
            self.refuses(pointer, Some(json!(null)), Code::InvalidType);
            self.refuses(pointer, Some(json!(true)), Code::InvalidType);
        }
    }

    /// Fields that may be absent or `null`, and still not be of another type.
    #[track_caller]
    fn allows_to_leave_out(&self, pointers: &[&str]) {
        for pointer in pointers {
            self.accepts(&[(pointer, None)]);
            self.accepts(&[(pointer, Some(json!(null)))]);
            self.refuses(pointer, Some(json!({ "a": [1] })), Code::InvalidType);
        }
    }

    /// Texts of at least one character, and at most 255 of them.
    #[track_caller]
    fn bounds_texts(&self, least: usize, pointers: &[&str]) {
        for pointer in pointers {
            self.accepts(&[(pointer, Some(json!("ß".repeat(255))))]);
            self.refuses(pointer, Some(json!("ß".repeat(256))), Code::Invalid);
            self.refuses(pointer, Some(json!("a\0b")), Code::Invalid);
            let empty = Some(json!(""));
            if least > 0 {
                self.refuses(pointer, empty, Code::Invalid);
            } else {
                self.accepts(&[(pointer, empty)]);
            }
        }
    }

    /// Fields that take a few words only.
    #[track_caller]
    fn knows_words(&self, pointer: &str, words: &[&str]) {
        for word in words {
            self.accepts(&[(pointer, Some(json!(word)))]);
        }
        for odd in ["", "nonsense", &format!("{} ", words[0])] {
            self.refuses(pointer, Some(json!(odd)), Code::Invalid);
        }
    }

    /// Times with an offset.
    #[track_caller]
    fn bounds_times(&self, pointers: &[&str]) {
        for pointer in pointers {
            self.accepts(&[(pointer, Some(json!("2026-03-01T09:30:00.5+02:00")))]);
            self.refuses(pointer, Some(json!("2026-03-01")), Code::Invalid);
            self.refuses(pointer, Some(json!("2026-03-01T09:30:00")), Code::Invalid);
        }
    }

    /// Identifiers that may be numbers.
    #[track_caller]
    fn takes_numbers_and_strings(&self, pointers: &[&str]) {
        for pointer in pointers {
            self.accepts(&[(pointer, Some(json!(i64::MAX)))]);
            self.accepts(&[(pointer, Some(json!("0042")))]);
            self.refuses(pointer, Some(json!(u64::MAX)), Code::Invalid);
            self.refuses(pointer, Some(json!(1.5)), Code::InvalidType);
            self.refuses(pointer, Some(json!("")), Code::Invalid);
        }
    }
}
