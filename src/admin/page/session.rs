//! Signing in with a browser, which cannot send a bearer token by itself.
//!
//! A form takes the token once and gives a cookie in its place: the name of the token and an end, under a key that this process
//! made at its start. Nothing is kept for it here, so nothing grows, and a restart signs everybody out. It only ever reads:
//! whatever the token may do, a request that some other page makes the browser send can change nothing.

use std::fmt;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

use crate::admin::principal::{Principal, Tokens};
use crate::clock::Wall;
use crate::config::Role;

/// How long one is signed in, in milliseconds.
const LENGTH_MS: i64 = 12 * 3600 * 1000;

/// Makes cookies and reads them.
pub struct Sessions {
    key: [u8; 32],
    /// Each process has its own, since browsers send cookies to every port of a host.
    cookie: String,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sessions({})", self.cookie)
    }
}

impl Sessions {
    /// Sessions of a process that began at `life`, from random bytes.
    pub fn new(random: &[u8; 32], life: i64) -> Sessions {
        let mut hasher = blake3::Hasher::new_derive_key("toolvane status page sessions");
        hasher.update(random).update(&life.to_le_bytes());
        let key = *hasher.finalize().as_bytes();
        let cookie =
            format!("toolvane_{}", &blake3::keyed_hash(&key, b"name").to_hex().as_str().get(..8).unwrap_or("0"));
        Sessions { key, cookie }
    }

    /// The `Set-Cookie` of somebody who has shown his token.
    pub(in crate::admin) fn begin(&self, who: &Principal, now: Wall, secure: bool) -> String {
        let end = now.0.saturating_add(LENGTH_MS);
        let value = self.signed(&who.name, end);
        let secure = if secure { "; Secure" } else { "" };
        format!("{}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}", self.cookie, LENGTH_MS / 1000)
    }

    /// The `Set-Cookie` that ends it.
    pub(in crate::admin) fn end(&self) -> String {
        format!("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax", self.cookie)
    }

    /// Who is signed in, with the right to read.
    pub(in crate::admin) fn reader(&self, headers: &HeaderMap, tokens: &Tokens, now: Wall) -> Option<Principal> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let value = pairs.find(|(name, _)| *name == self.cookie)?.1;
        let (signed, _) = value.rsplit_once('.')?;
        let (name, end) = signed.split_once('.')?;
        let name = text_of(name)?;
        let end: i64 = end.parse().ok()?;
        // Hashes compare in constant time.
        let is_ours = blake3::hash(self.signed(&name, end).as_bytes()) == blake3::hash(value.as_bytes());
        (is_ours && now.0 < end && tokens.knows(&name)).then(|| Principal::new(&name, &[Role::Reader]))
    }

    fn signed(&self, name: &str, end: i64) -> String {
        let name: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
        let mark = blake3::keyed_hash(&self.key, format!("{name}.{end}").as_bytes());
        format!("{name}.{end}.{mark}")
    }
}

/// A name from its hexadecimal digits.
fn text_of(digits: &str) -> Option<String> {
    let bytes = digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AdminAccess, Environment, LocalWrites, SecretSource, Token};
    use crate::yaml::Place;

    const NOW: Wall = Wall(1_772_460_000_000);

    fn tokens(name: &str) -> Tokens {
        let token = Token {
            name: name.into(),
            secret: SecretSource::Env("A".into()),
            roles: vec![Role::Operator],
            place: Place::START,
        };
        let access = AdminAccess {
            socket: None,
            tokens: vec![token],
            local_writes: LocalWrites::Off,
            hosts: Vec::new(),
            origins: Vec::new(),
            body: 1024,
        };
        let environment = Environment::new([("A".to_owned(), "a".repeat(32))]);
        Tokens::read(&access, &environment).unwrap()
    }

    fn cookie(set: &str) -> HeaderMap {
        let pair = set.split(';').next().unwrap();
        HeaderMap::from_iter([(COOKIE, format!("other=1; {pair}").parse().unwrap())])
    }

    #[test]
    fn a_cookie_reads_for_its_token_until_its_end_and_writes_never() {
        let (sessions, tokens) = (Sessions::new(&[1; 32], 7), tokens("alice; ü=.x"));
        let who = tokens.owner(&"a".repeat(32)).unwrap();
        let headers = cookie(&sessions.begin(who, NOW, false));
        let reader = sessions.reader(&headers, &tokens, NOW).unwrap();
        assert_eq!(&*reader.name, "alice; ü=.x");
        assert!(reader.may(Role::Reader) && !reader.may(Role::Prober) && !reader.may(Role::Operator));
        assert_eq!(sessions.reader(&headers, &tokens, NOW.plus_millis(LENGTH_MS)), None, "it is over");
        assert_eq!(sessions.reader(&headers, &super::tests::tokens("bob"), NOW), None, "the token is gone");
        assert_eq!(sessions.reader(&cookie(&sessions.end()), &tokens, NOW), None);
    }

    #[test]
    fn what_another_process_signed_or_somebody_changed_is_nobodys() {
        let (sessions, tokens) = (Sessions::new(&[1; 32], 7), tokens("alice"));
        let who = tokens.owner(&"a".repeat(32)).unwrap();
        let set = sessions.begin(who, NOW, true);
        assert!(set.ends_with("; HttpOnly; SameSite=Lax; Secure"), "{set}");
        let later = set.replacen(&(NOW.0 + LENGTH_MS).to_string(), &(NOW.0 + 2 * LENGTH_MS).to_string(), 1);
        let other = Sessions::new(&[1; 32], 8);
        let renamed = other.begin(who, NOW, true).replacen(&other.cookie, &sessions.cookie, 1);
        for changed in
            [later, renamed, "x=y".to_owned(), format!("{}=a.b", sessions.cookie), format!("{}=é", sessions.cookie)]
        {
            assert_eq!(sessions.reader(&cookie(&changed), &tokens, NOW), None, "{changed}");
        }
    }
}
