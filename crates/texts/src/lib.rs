//! Texts, amounts and dates in the shopper's language, for pages and mails.
//!
//! Texts are Fluent messages in `locales/*.ftl`; every message exists in every file. Numbers and dates
//! are formatted by ICU4X. The message `money` places the currency.

mod language;
mod pseudo;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use chrono::{Datelike as _, NaiveDate};
use domain::currency::minor_digits;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue, concurrent::FluentBundle};
use icu_calendar::{Date, Gregorian};
use icu_datetime::{FixedCalendarDateTimeFormatter, fieldsets::YMD};
use icu_decimal::{DecimalFormatter, input::Decimal};
use icu_locale_core::Locale;

pub use language::Language;

/// A value that a text contains. Templates pass references.
pub trait TextValue {
    fn value(&self) -> FluentValue<'static>;
}

impl TextValue for str {
    fn value(&self) -> FluentValue<'static> {
        FluentValue::from(self.to_owned())
    }
}

impl TextValue for String {
    fn value(&self) -> FluentValue<'static> {
        FluentValue::from(self.clone())
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {
        $(impl TextValue for $number {
            fn value(&self) -> FluentValue<'static> {
                FluentValue::from(*self)
            }
        })+
    };
}

numbers!(u8, u16, u32, u64, usize, i32, i64);

impl<T: TextValue + ?Sized> TextValue for &T {
    fn value(&self) -> FluentValue<'static> {
        (**self).value()
    }
}

/// The texts of one language.
pub struct Texts {
    language: Language,
    bundle: FluentBundle<FluentResource>,
    numbers: DecimalFormatter,
    dates: FixedCalendarDateTimeFormatter<Gregorian, YMD>,
}

impl Texts {
    pub fn of(language: Language) -> &'static Self {
        static EN: LazyLock<Texts> = LazyLock::new(|| Texts::new(Language::En));
        static DE: LazyLock<Texts> = LazyLock::new(|| Texts::new(Language::De));
        static FR: LazyLock<Texts> = LazyLock::new(|| Texts::new(Language::Fr));
        static ES: LazyLock<Texts> = LazyLock::new(|| Texts::new(Language::Es));
        static PSEUDO: LazyLock<Texts> = LazyLock::new(|| Texts::new(Language::Pseudo));
        static PSEUDO_RTL: LazyLock<Texts> = LazyLock::new(|| Texts::new(Language::PseudoRtl));
        match language {
            Language::En => &EN,
            Language::De => &DE,
            Language::Fr => &FR,
            Language::Es => &ES,
            Language::Pseudo => &PSEUDO,
            Language::PseudoRtl => &PSEUDO_RTL,
        }
    }

    fn new(language: Language) -> Self {
        let code = language.translation();
        let mut bundle =
            FluentBundle::new_concurrent(vec![code.parse().expect("the code of a language")]);
        // Unicode's marks for a part with another direction. Other languages can do without.
        bundle.set_use_isolating(language.direction() == "rtl");
        if language.is_pseudo() {
            bundle.set_transform(Some(pseudo::accented));
        }
        bundle.add_resource_overriding(resource(language));
        let locale: Locale = language.locale().parse().expect("the code of a locale");
        Self {
            language,
            bundle,
            numbers: DecimalFormatter::try_new((&locale).into(), Default::default())
                .expect("ICU4X has the numbers of the language"),
            dates: FixedCalendarDateTimeFormatter::try_new((&locale).into(), YMD::long())
                .expect("ICU4X has the dates of the language"),
        }
    }

    /// A text.
    pub fn t(&self, id: &str) -> String {
        self.format(id, None)
    }

    /// A text with one value.
    pub fn t1(&self, id: &str, name: &str, value: impl TextValue) -> String {
        self.with_values(id, [(name, value.value())])
    }

    /// A text with two values.
    pub fn t2(
        &self,
        id: &str,
        name: &str,
        value: impl TextValue,
        name_2: &str,
        value_2: impl TextValue,
    ) -> String {
        self.with_values(id, [(name, value.value()), (name_2, value_2.value())])
    }

    /// A text with any number of values.
    fn with_values<const N: usize>(
        &self,
        id: &str,
        values: [(&str, FluentValue<'static>); N],
    ) -> String {
        let mut args = FluentArgs::with_capacity(N);
        for (name, value) in values {
            args.set(name.to_owned(), value);
        }
        self.format(id, Some(&args))
    }

    fn format(&self, id: &str, args: Option<&FluentArgs<'_>>) -> String {
        let Some(pattern) = self.bundle.get_message(id).and_then(|message| message.value()) else {
            tracing::error!(id, "a text is missing");
            return id.to_owned();
        };
        let mut errors = Vec::new();
        let text = self.bundle.format_pattern(pattern, args, &mut errors);
        if !errors.is_empty() {
            tracing::error!(id, ?errors, "a text cannot be formatted");
        }
        pseudo::marked(self.language, text.into_owned())
    }

    /// An amount in minor units: "€49.95", "49,95 €".
    pub fn money(&self, minor_units: &i64, currency: &str) -> String {
        let digits = i16::try_from(minor_digits(currency)).unwrap_or(2);
        let mut number = Decimal::from(minor_units.unsigned_abs());
        number.multiply_pow10(-digits);
        number.absolute.pad_end(-digits);
        let number = self.numbers.format(&number).to_string();
        let text = self.t2("money", "number", number, "currency", currency);
        if *minor_units < 0 { format!("-{text}") } else { text }
    }

    /// A day with the name of the month: "2 December 2026".
    pub fn day(&self, day: &NaiveDate) -> String {
        let parts = u8::try_from(day.month()).ok().zip(u8::try_from(day.day()).ok());
        let date =
            parts.and_then(|(month, date)| Date::try_new_gregorian(day.year(), month, date).ok());
        let text =
            date.map_or_else(|| day.to_string(), |date| self.dates.format(&date).to_string());
        if self.language.is_pseudo() { pseudo::accented(&text).into_owned() } else { text }
    }
}

fn source(language: Language) -> &'static str {
    match language {
        Language::En | Language::Pseudo | Language::PseudoRtl => {
            include_str!("../locales/en.ftl")
        }
        Language::De => include_str!("../locales/de.ftl"),
        Language::Fr => include_str!("../locales/fr.ftl"),
        Language::Es => include_str!("../locales/es.ftl"),
    }
}

/// The messages of a language. A test finds those that cannot be read.
fn resource(language: Language) -> FluentResource {
    FluentResource::try_new(source(language).to_owned()).unwrap_or_else(|(resource, errors)| {
        tracing::error!(?language, ?errors, "some texts cannot be read");
        resource
    })
}
