//! Time-based one-time passwords (RFC 6238), as authenticator apps compute them: SHA-1, six digits, 30
//! seconds.

use domain::{json::FieldError, merchant::Sealed};
use platform::{
    Timestamp,
    sealing::{SealError, Sealer},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use totp_rs::{Builder, Secret, Totp};
use utoipa::ToSchema;

use crate::{credentials, email::Email, error::Error};

const ISSUER: &str = "Backhaul";
/// The encrypted secret in requests.
pub(crate) const SETUP: &str = "$.totp_setup";

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

/// A new secret for an authenticator app. Nothing stores it until the person sends a code of it.
#[derive(Serialize, ToSchema)]
pub(crate) struct TotpSetup {
    /// Whether the person cannot leave TOTP out.
    required: bool,
    /// In Base32.
    secret: String,
    /// For a QR code.
    #[schema(
        example = "otpauth://totp/Backhaul:ada%40acme.example?secret=GEZDGNBVGY3TQOJQ&issuer=Backhaul"
    )]
    uri: String,
    /// The encrypted secret. Send it with the code.
    setup: String,
}

/// A form with which a person sets up an authenticator app. It contains the encrypted secret.
pub(crate) struct Form<'a> {
    pub(crate) sealer: &'a Sealer,
    pub(crate) person: &'a Email,
    /// The hash of the invitation's token, or the id of the session. Another one cannot open the secret.
    pub(crate) owner: &'a [u8],
}

impl Form<'_> {
    /// A new secret. A form that was rejected gets the secret of its `setup` again, because the person has
    /// put it into the app already.
    pub(crate) fn show(&self, setup: Option<String>, required: bool) -> Result<TotpSetup, Error> {
        let known = setup.and_then(|setup| self.open(setup));
        let secret = known.map_or_else(generate_secret, Ok)?;
        Ok(TotpSetup {
            required,
            uri: uri(self.person, &secret)?,
            setup: self.sealer.seal(&self.context(), secret.expose_secret())?.0,
            secret: secret.expose_secret().to_owned(),
        })
    }

    /// The encrypted secret of the person and the time step of the code, if the code in `field` is right.
    pub(crate) fn verify(
        &self,
        setup: String,
        field: &str,
        code: &SecretString,
        now: Timestamp,
    ) -> Result<Result<(Sealed, i64), FieldError>, Error> {
        let Some(secret) = self.open(setup) else {
            return Ok(Err(FieldError::invalid(SETUP, "is not the setup of this person")));
        };
        match step(self.person, &secret, code.expose_secret(), now)? {
            Some(step) => Ok(Ok((seal(self.sealer, self.person, &secret)?, step))),
            None => Ok(Err(wrong_code(field))),
        }
    }

    /// The secret of a form, unless the value was changed or belongs to another form.
    fn open(&self, setup: String) -> Option<SecretString> {
        self.sealer.open(&self.context(), &Sealed(setup)).ok()
    }

    fn context(&self) -> String {
        let owner: String = self.owner.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("totp-setup:{owner}")
    }
}

/// The error of a wrong code of a known person.
pub(crate) fn wrong_code(field: &str) -> FieldError {
    FieldError::invalid(field, "is not the code that the app shows now")
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
