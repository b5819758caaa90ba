//! Passwords of people: the rules for new ones, and their Argon2id hashes.
//!
//! A hash needs 19 MiB and some 20 ms of a core, so only a few are computed at the same time. Further
//! requests wait in a queue that is limited too.

use std::{net::IpAddr, num::NonZeroU16, ops::RangeInclusive, sync::Arc};

use argon2::{Argon2, PasswordHash, PasswordHasher as _, PasswordVerifier as _, password_hash};
use domain::json::{Field, FieldError, Object, text};
use platform::{limits::network, shares::Shares};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;

use crate::{credentials, email::Email, error::Error};

/// The lengths of a new password, in characters.
const LENGTHS: RangeInclusive<usize> = 8..=128;
/// Requests that can wait for a hasher.
const MAX_WAITING: usize = 64;
/// Requests of one network that wait or have a hasher: enough for the people of an office, and half of the queue.
const MAX_OF_NETWORK: usize = 32;
/// Verified when there is no password, so that this takes as long as with one. No password has this hash.
const NO_PASSWORD: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$\
                           AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
/// One on each line, in lower case, with at least eight characters.
const COMMON_PASSWORDS: &str = include_str!("common_passwords.txt");

/// A new password. A form also sends the password that was typed again.
pub(crate) struct NewPassword {
    /// The password's field in the request.
    name: &'static str,
    password: SecretString,
    again: Option<SecretString>,
}

impl NewPassword {
    /// Reads the field `name`, and the field `again` if there is one. [`NewPassword::faults`] has the rules.
    pub(crate) fn read(body: &Object<'_>, name: &'static str, again: &str) -> Option<Self> {
        let secret = |field: Field<'_>| text(0..=1000)(field).map(SecretString::from);
        let password = body.required(name, secret);
        let again = body.optional(again, secret);
        Some(Self { name, password: password?, again: again? })
    }

    /// All reasons why a person cannot have this password.
    pub(crate) fn faults(&self, email: &Email) -> Vec<FieldError> {
        let field = format!("$.{}", self.name);
        let is_different =
            |again: &SecretString| again.expose_secret() != self.password.expose_secret();
        let different =
            self.again.as_ref().is_some_and(is_different).then(|| {
                FieldError::invalid(format!("{field}_again"), "must be the same password")
            });
        check(&field, &self.password, email).err().into_iter().chain(different).collect()
    }

    pub(crate) fn secret(&self) -> &SecretString {
        &self.password
    }

    pub(crate) fn into_secret(self) -> SecretString {
        self.password
    }
}

/// Rejects a password that has another length or is easy to guess.
fn check(field: &str, password: &SecretString, email: &Email) -> Result<(), FieldError> {
    if !LENGTHS.contains(&password.expose_secret().chars().count()) {
        let least = LENGTHS.start();
        let most = LENGTHS.end();
        return Err(FieldError::invalid(field, format!("must have {least} to {most} characters")));
    }
    let password = password.expose_secret().to_lowercase();
    if password == email.as_str() {
        return Err(FieldError::invalid(field, "must not be the e-mail address"));
    }
    if COMMON_PASSWORDS.lines().any(|common| common == password) {
        return Err(FieldError::invalid(field, "must not be one of the most common passwords"));
    }
    Ok(())
}

/// The error of a wrong password of a signed-in person.
pub(crate) fn wrong(field: &str) -> FieldError {
    FieldError::invalid(field, "is not the password of this person")
}

/// Computes hashes, a limited number at a time.
pub(crate) struct Passwords {
    hashers: Arc<Semaphore>,
    /// Requests that wait or have a hasher, by the network of the caller. One caller must not fill the queue.
    admitted: Arc<Shares<IpAddr>>,
}

impl Passwords {
    pub(crate) fn new(hashers: NonZeroU16) -> Self {
        let hashers = usize::from(hashers.get());
        Self {
            hashers: Arc::new(Semaphore::new(hashers)),
            admitted: Shares::new(MAX_OF_NETWORK, hashers + MAX_WAITING),
        }
    }

    /// The hash of a password with a new salt, in the PHC format.
    pub(crate) async fn hash(
        &self,
        password: SecretString,
        caller: IpAddr,
    ) -> Result<String, Error> {
        let salt = credentials::random_bytes::<16>()?;
        // The default is Argon2id with the parameters that OWASP recommends: 19 MiB, 2 passes, 1 thread.
        let hash = self.run(caller, move || -> Result<PasswordHash, password_hash::Error> {
            Argon2::default().hash_password_with_salt(password.expose_secret().as_bytes(), &salt)
        });
        Ok(hash.await??.to_string())
    }

    /// Whether a password has a hash. Without a hash the result is `false`, after the same time.
    pub(crate) async fn matches(
        &self,
        password: SecretString,
        hash: Option<&str>,
        caller: IpAddr,
    ) -> Result<bool, Error> {
        let hash = hash.unwrap_or(NO_PASSWORD).to_owned();
        let verified = self.run(caller, move || {
            Argon2::default().verify_password(password.expose_secret().as_bytes(), hash.as_str())
        });
        match verified.await? {
            Ok(()) => Ok(true),
            Err(password_hash::Error::PasswordInvalid) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs `work` on a blocking thread as soon as there is a hasher. The permits belong to the work, which
    /// goes on when its request is cancelled.
    async fn run<T: Send + 'static>(
        &self,
        caller: IpAddr,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let admitted =
            self.admitted.try_acquire(&network(caller)).ok_or(Error::TooManyPasswords)?;
        let hasher = self.hashers.clone().acquire_owned().await;
        let hasher = hasher.map_err(|_closed| Error::TooManyPasswords)?;
        let done = tokio::task::spawn_blocking(move || {
            let _permits = (admitted, hasher);
            work()
        });
        Ok(done.await?)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        net::Ipv4Addr,
        sync::{
            Barrier,
            atomic::{AtomicUsize, Ordering::SeqCst},
            mpsc,
        },
    };

    use platform::{ErrorKind, Failure as _};

    use super::*;

    const CALLER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn one_network_cannot_fill_the_queue() {
        let passwords = passwords(1);
        let (release, released) = mpsc::channel::<()>();
        let mut running = Box::pin(passwords.run(CALLER, move || released.recv()));
        assert!(poll_once(&mut running).is_none());
        let mut waiting: Vec<_> =
            (1..MAX_OF_NETWORK).map(|_| Box::pin(passwords.run(CALLER, || ()))).collect();
        assert!(waiting.iter_mut().all(|request| poll_once(request).is_none()));
        let rejected = passwords.run(CALLER, || ()).await;
        assert!(matches!(rejected, Err(Error::TooManyPasswords)));
        let mut other = Box::pin(passwords.run(IpAddr::from([203, 0, 113, 9]), || ()));
        assert!(poll_once(&mut other).is_none(), "another network waits");
        release.send(()).unwrap();
        running.await.unwrap().unwrap();
        for request in waiting {
            request.await.unwrap();
        }
        other.await.unwrap();
    }

    fn secret(text: &str) -> SecretString {
        SecretString::from(text)
    }

    fn passwords(hashers: u16) -> Passwords {
        Passwords::new(NonZeroU16::new(hashers).unwrap())
    }

    #[tokio::test]
    async fn only_the_hashed_password_matches() {
        let passwords = passwords(1);
        let hash = passwords.hash(secret("correct horse"), CALLER).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_ne!(passwords.hash(secret("correct horse"), CALLER).await.unwrap(), hash);
        assert!(passwords.matches(secret("correct horse"), Some(&hash), CALLER).await.unwrap());
        assert!(!passwords.matches(secret("correct hors"), Some(&hash), CALLER).await.unwrap());
        assert!(!passwords.matches(secret(""), None, CALLER).await.unwrap());
        assert!(passwords.matches(secret("x"), Some("damaged"), CALLER).await.is_err());
    }

    #[tokio::test]
    async fn a_limited_number_of_hashes_is_computed_at_a_time() {
        let passwords = passwords(2);
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        // Each piece of work waits for another one, so two always run together.
        let pair = Arc::new(Barrier::new(2));
        let work = || {
            let running = running.clone();
            let most = most.clone();
            let pair = pair.clone();
            passwords.run(CALLER, move || {
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                pair.wait();
                running.fetch_sub(1, SeqCst);
            })
        };
        let (a, b, c, d, e, f) = tokio::join!(work(), work(), work(), work(), work(), work());
        assert!([a, b, c, d, e, f].into_iter().all(|done| done.is_ok()));
        assert_eq!(most.load(SeqCst), 2);
    }

    #[tokio::test]
    async fn requests_beyond_the_queue_are_rejected() {
        let passwords = passwords(1);
        let (release, released) = mpsc::channel::<()>();
        let mut running = Box::pin(passwords.run(CALLER, move || released.recv()));
        assert!(poll_once(&mut running).is_none());
        // Requests of the first network beyond its share are rejected, while others still wait.
        let own = (1..MAX_OF_NETWORK).map(|_| CALLER);
        let others = MAX_OF_NETWORK..=MAX_WAITING;
        let others =
            others.map(|number| IpAddr::from([198, 51, 100, u8::try_from(number).unwrap()]));
        let mut waiting: Vec<_> =
            own.chain(others).map(|caller| Box::pin(passwords.run(caller, || ()))).collect();
        assert!(waiting.iter_mut().all(|request| poll_once(request).is_none()));
        assert_eq!(waiting.len(), MAX_WAITING);
        for caller in [CALLER, IpAddr::from([203, 0, 113, 9])] {
            let rejected = passwords.run(caller, || ()).await.unwrap_err();
            assert!(matches!(rejected, Error::TooManyPasswords), "{caller}");
            assert_eq!(rejected.kind(), ErrorKind::Limited);
        }
        release.send(()).unwrap();
        running.await.unwrap().unwrap();
        for request in waiting {
            request.await.unwrap();
        }
        passwords.run(CALLER, || ()).await.unwrap();
    }

    fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn guessable_passwords_are_rejected() {
        let email: Email = "ada@example.com".parse().unwrap();
        let check = |password: &str| check("$.password", &secret(password), &email).is_ok();
        assert!(check("correct horse battery"));
        for guessable in ["Ada@Example.com", "password", "Password1", "12345678", "QWERTYUIOP"] {
            assert!(!check(guessable), "{guessable}");
        }
    }

    #[test]
    fn common_passwords_are_listed_once_and_could_be_chosen() {
        let mut listed = HashSet::new();
        for password in COMMON_PASSWORDS.lines() {
            assert!(password.chars().count() >= 8 && password == password.to_lowercase());
            assert!(listed.insert(password), "{password} is listed twice");
        }
    }
}
