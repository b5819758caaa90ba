//! Time-based one-time passwords (RFC 6238), as authenticator apps compute them: SHA-1, six digits, 30
//! seconds.

use domain::merchant::Sealed;
use platform::{
    Timestamp,
    sealing::{SealError, Sealer},
};
use secrecy::{ExposeSecret as _, SecretString};
use totp_rs::{Builder, Secret, Totp};

use crate::{credentials, email::Email, error::Error};

const ISSUER: &str = "Backhaul";

/// Generates a secret of 160 random bits in Base32.
pub(crate) fn generate_secret() -> Result<SecretString, Error> {
    Ok(Secret::new_stack(credentials::random_bytes()?).to_base32().into())
}

/// Encrypts the secret of a person.
pub(crate) fn seal(sealer: &Sealer, email: &Email, secret: &SecretString) -> Result<Sealed, Error> {
    Ok(sealer.seal(&sealing_context(email), secret.expose_secret())?)
}

pub(crate) fn open(sealer: &Sealer, email: &Email, secret: &Sealed) -> Result<SecretString, Error> {
    Ok(sealer.open(&sealing_context(email), secret)?)
}

fn sealing_context(email: &Email) -> String {
    format!("totp:{email}")
}

/// Encrypts a secret for the form that accepts an invitation. `token` is the hash of the invitation's
/// token: another invitation cannot open the secret.
pub(crate) fn seal_setup(
    sealer: &Sealer,
    token: &[u8],
    secret: &SecretString,
) -> Result<String, Error> {
    Ok(sealer.seal(&setup_context(token), secret.expose_secret())?.0)
}

/// The secret of a form, unless the value was changed or belongs to another invitation.
pub(crate) fn open_setup(sealer: &Sealer, token: &[u8], setup: String) -> Option<SecretString> {
    sealer.open(&setup_context(token), &Sealed(setup)).ok()
}

fn setup_context(token: &[u8]) -> String {
    let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("totp-setup:{token}")
}

/// The URI that authenticator apps read from a QR code.
pub(crate) fn uri(email: &Email, secret: &SecretString) -> Result<String, Error> {
    Ok(totp(email, secret)?.to_url().map_err(|_invalid| SealError::Damaged)?)
}

/// The time step of a code that is valid now. The clock of the person may be one step off.
pub(crate) fn step(
    email: &Email,
    secret: &SecretString,
    code: &str,
    now: Timestamp,
) -> Result<Option<i64>, Error> {
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let time = u64::try_from(now.timestamp()).unwrap_or(0);
    let step = totp(email, secret)?.check(&code, time);
    Ok(step.and_then(|step| i64::try_from(step).ok()))
}

fn totp(email: &Email, secret: &SecretString) -> Result<Totp, SealError> {
    let secret = Secret::try_from_base32(secret.expose_secret());
    // The other values are the defaults: SHA-1, six digits, 30 seconds, one step of tolerance.
    let totp = Builder::new()
        .with_secret(secret.map_err(|_damaged| SealError::Damaged)?)
        .with_account_name(email.as_str())
        .with_issuer(Some(ISSUER));
    totp.build().map_err(|_damaged| SealError::Damaged)
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::*;

    /// The secret and the last six digits of the first two test vectors of RFC 6238.
    #[test]
    fn codes_are_those_of_the_standard() {
        let email: Email = "ada@example.com".parse().unwrap();
        let secret = SecretString::from("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let step = |code: &str, seconds| step(&email, &secret, code, at(seconds)).unwrap();
        assert_eq!(step("287082", 59), Some(1));
        assert_eq!(step("287 082", 59), Some(1));
        assert_eq!(step("081804", 1_111_111_109), Some(37_037_036));
        assert_eq!((step("287082", 89), step("287082", 90)), (Some(1), None));
        for wrong in ["", "287083", "28708", "+87082", "2870820", "٢87082"] {
            assert_eq!(step(wrong, 59), None, "{wrong}");
        }
    }

    #[test]
    fn the_uri_names_the_issuer_and_the_person() {
        let email: Email = "ada+x@example.com".parse().unwrap();
        let secret = generate_secret().unwrap();
        let uri = uri(&email, &secret).unwrap();
        assert!(uri.starts_with("otpauth://totp/Backhaul:ada%2Bx%40example.com?"), "{uri}");
        assert!(uri.contains(secret.expose_secret()) && uri.contains("issuer=Backhaul"), "{uri}");
    }
}
