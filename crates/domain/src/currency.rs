//! Currencies.

/// The digits behind the decimal point of amounts in a currency.
pub fn minor_digits(currency: &str) -> u32 {
    match currency {
        "JPY" | "KRW" | "VND" | "CLP" | "ISK" => 0,
        "BHD" | "KWD" | "OMR" | "TND" | "JOD" => 3,
        _ => 2,
    }
}
