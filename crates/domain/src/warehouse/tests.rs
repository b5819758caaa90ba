mod drop_shipments;
mod outbound;
mod receipts;
mod splitting;

use serde_json::{Value, json};

use crate::json::{Code, Document, ValidationError};

/// A change of a sample: the new value at a pointer. `None` removes the field.
type Change<'a> = (&'a str, Option<Value>);

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

/// A reader and a valid sample of its document.
struct Reader {
    sample: Value,
    read: fn(&Document) -> Option<ValidationError>,
}

impl Reader {
    fn errors(&self, changes: &[Change<'_>]) -> Vec<(String, Code)> {
        let invalid = (self.read)(&document(&changed(self.sample.clone(), changes)));
        let errors = invalid.map_or(Vec::new(), |invalid| invalid.errors);
        errors.into_iter().map(|error| (error.field, error.code)).collect()
    }

    #[track_caller]
    fn rejects(&self, pointer: &str, value: Option<Value>, code: Code) {
        let errors = self.errors(&[(pointer, value.clone())]);
        assert_eq!(errors, [(path(pointer), code)], "{pointer} {value:?}");
    }

    #[track_caller]
    fn accepts(&self, changes: &[Change<'_>]) {
        assert_eq!(self.errors(changes), [], "{changes:?}");
    }

    /// The fields are required and cannot be `null` or of another type.
    #[track_caller]
    fn requires(&self, pointers: &[&str]) {
        for pointer in pointers {
            self.rejects(pointer, None, Code::MissingField);
            self.rejects(pointer, Some(json!(null)), Code::InvalidType);
            self.rejects(pointer, Some(json!(true)), Code::InvalidType);
        }
    }

    /// The fields can be absent or `null`, but not of another type.
    #[track_caller]
    fn allows_absent(&self, pointers: &[&str]) {
        for pointer in pointers {
            self.accepts(&[(pointer, None)]);
            self.accepts(&[(pointer, Some(json!(null)))]);
            self.rejects(pointer, Some(json!({ "a": [1] })), Code::InvalidType);
        }
    }

    /// The texts have at least `min` and at most 255 characters.
    #[track_caller]
    fn limits_texts(&self, min: usize, pointers: &[&str]) {
        for pointer in pointers {
            self.accepts(&[(pointer, Some(json!("ß".repeat(255))))]);
            self.rejects(pointer, Some(json!("ß".repeat(256))), Code::Invalid);
            self.rejects(pointer, Some(json!("a\0b")), Code::Invalid);
            let empty = Some(json!(""));
            if min > 0 {
                self.rejects(pointer, empty, Code::Invalid);
            } else {
                self.accepts(&[(pointer, empty)]);
            }
        }
    }

    /// The field has one of the given texts.
    #[track_caller]
    fn accepts_only(&self, pointer: &str, texts: &[&str]) {
        for text in texts {
            self.accepts(&[(pointer, Some(json!(text)))]);
        }
        for unknown in ["", "nonsense", &format!("{} ", texts[0])] {
            self.rejects(pointer, Some(json!(unknown)), Code::Invalid);
        }
    }

    /// The times need an offset.
    #[track_caller]
    fn requires_times(&self, pointers: &[&str]) {
        for pointer in pointers {
            self.accepts(&[(pointer, Some(json!("2026-03-01T09:30:00.5+02:00")))]);
            self.rejects(pointer, Some(json!("2026-03-01")), Code::Invalid);
            self.rejects(pointer, Some(json!("2026-03-01T09:30:00")), Code::Invalid);
        }
    }

    /// The identifiers can be numbers or strings.
    #[track_caller]
    fn accepts_numbers_and_strings(&self, pointers: &[&str]) {
        for pointer in pointers {
            self.accepts(&[(pointer, Some(json!(i64::MAX)))]);
            self.accepts(&[(pointer, Some(json!("0042")))]);
            self.rejects(pointer, Some(json!(u64::MAX)), Code::Invalid);
            self.rejects(pointer, Some(json!(1.5)), Code::InvalidType);
            self.rejects(pointer, Some(json!("")), Code::Invalid);
        }
    }
}
