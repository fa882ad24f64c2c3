//! Private keys that sign for a client: JSON Web Tokens. The library's own signing would bring a second cryptography library, in
//! C, beside the one that TLS uses here.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

/// A private key. It is shown nowhere.
pub(super) enum Key {
    /// With the name of its algorithm.
    Elliptic(Box<EcdsaKeyPair>, &'static str),
    Rsa(Box<RsaKeyPair>),
    Edwards(Box<Ed25519KeyPair>),
}

/// The advice about a key in a form that is not read.
const CONVERT: &str = "`openssl pkcs8 -topk8 -nodes -in KEY -out NEW` writes it in the form that is read";

impl Key {
    /// Reads a key of PEM. Line ends may be written as `\n`, as in variables of CI.
    ///
    /// # Errors
    /// When no such key can be read; a sentence without a full stop, without the key.
    pub(super) fn read(pem: &str) -> Result<Self, String> {
        let pem = pem.replace("\\n", "\n");
        let begins = pem.find("-----BEGIN ").map(|at| &pem[at + "-----BEGIN ".len()..]);
        let Some((label, rest)) = begins.and_then(|rest| rest.split_once("-----")) else {
            return Err(
                "the key has no line -----BEGIN PRIVATE KEY-----: it must be a private key as PEM".into()
            );
        };
        let body: String = rest.split("-----END").next().unwrap_or_default().split_whitespace().collect();
        let bytes =
            STANDARD.decode(body).map_err(|_| "the key is damaged: its lines are no base64".to_owned())?;
        let random = SystemRandom::new();
        let elliptic = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, &bytes, &random).ok().map(Box::new);
        match label {
            "PRIVATE KEY" => {
                if let Some(pair) = elliptic(&ECDSA_P256_SHA256_FIXED_SIGNING) {
                    return Ok(Self::Elliptic(pair, "ES256"));
                }
                if let Some(pair) = elliptic(&ECDSA_P384_SHA384_FIXED_SIGNING) {
                    return Ok(Self::Elliptic(pair, "ES384"));
                }
                if let Ok(pair) = RsaKeyPair::from_pkcs8(&bytes) {
                    return Ok(Self::Rsa(Box::new(pair)));
                }
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&bytes);
                pair.map(|pair| Self::Edwards(Box::new(pair))).map_err(|_| {
                    "the key is damaged, or of a kind that is not known: P-256, P-384, RSA (2048 to 4096 bits) and Ed25519 \
                     can sign"
                        .into()
                })
            }
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(&bytes)
                .map(|pair| Self::Rsa(Box::new(pair)))
                .map_err(|why| format!("the RSA key cannot be used: {why}")),
            "ENCRYPTED PRIVATE KEY" => {
                Err(format!("the key is encrypted, and no person types its password here: {CONVERT}"))
            }
            "EC PRIVATE KEY" => Err(format!("the key has an older form, EC PRIVATE KEY: {CONVERT}")),
            "PUBLIC KEY" | "CERTIFICATE" => Err("the key is a public one: the private key signs".into()),
            _ => Err(format!("the key is no private key as PEM: {CONVERT}")),
        }
    }

    /// The name of its algorithm, as login servers list it.
    pub(super) fn algorithm(&self) -> &'static str {
        match self {
            Self::Elliptic(_, name) => name,
            Self::Rsa(_) => "RS256",
            Self::Edwards(_) => "EdDSA",
        }
    }

    fn sign(&self, message: &[u8], random: &SystemRandom) -> Option<Vec<u8>> {
        match self {
            Self::Elliptic(pair, _) => pair.sign(random, message).ok().map(|signed| signed.as_ref().to_vec()),
            Self::Edwards(pair) => Some(pair.sign(message).as_ref().to_vec()),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, random, message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }

    /// The assertion by which a client shows to `audience` that it is itself (RFC 7523). It holds from `now`, in seconds since
    /// 1970, for [`HOLDS`].
    ///
    /// # Errors
    /// When the machine gives no random numbers; in words.
    pub(super) fn assertion(
        &self,
        (client, key_id): (&str, Option<&str>),
        audience: &str,
        now: u64,
    ) -> Result<String, String> {
        let random = SystemRandom::new();
        let failed = || "the login could not be signed: this machine gives no random numbers".to_owned();
        let mut id = [0; 16];
        random.fill(&mut id).map_err(|_| failed())?;
        let mut header = json!({"alg": self.algorithm(), "typ": "JWT"});
        if let Some(key_id) = key_id {
            header["kid"] = key_id.into();
        }
        let claims = json!({
            "iss": client, "sub": client, "aud": audience, "iat": now, "exp": now + HOLDS,
            "jti": URL_SAFE_NO_PAD.encode(id)
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self.sign(signed.as_bytes(), &random).ok_or_else(failed)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// Seconds for which an assertion holds.
const HOLDS: u64 = 300;

#[cfg(test)]
pub(super) mod testing {
    //! Keys for tests.

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
    };

    /// A new P-256 key: its PEM, and its public part.
    pub(in crate::oauth) fn new_key() -> (String, Vec<u8>) {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        (pem("PRIVATE KEY", pkcs8.as_ref()), pair.public_key().as_ref().to_vec())
    }

    /// Bytes as PEM, in lines of 64 characters.
    pub(in crate::oauth) fn pem(label: &str, bytes: &[u8]) -> String {
        let body = STANDARD.encode(bytes);
        let lines: Vec<&str> =
            body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }

    /// True if the key with this public part has signed the token.
    pub(in crate::oauth) fn verifies(token: &str, public: &[u8]) -> bool {
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let Some((signed, signature)) = token.rsplit_once('.') else { return false };
        let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else { return false };
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public).verify(signed.as_bytes(), &signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{new_key, pem, verifies};
    use super::*;

    fn parts(token: &str) -> (Value, Value) {
        let mut parts = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap());
        let mut next = || serde_json::from_slice(&parts.next().unwrap()).unwrap();
        (next(), next())
    }

    #[test]
    fn an_assertion_says_who_signs_for_whom_and_is_never_the_same() {
        let (pem, public) = new_key();
        let key = Key::read(&pem).unwrap();
        let make = || key.assertion(("me", Some("k1")), "https://login.example", 1000).unwrap();
        let token = make();
        assert!(verifies(&token, &public) && !verifies(&token, &new_key().1));
        let (header, claims) = parts(&token);
        assert_eq!(header, json!({"alg": "ES256", "typ": "JWT", "kid": "k1"}));
        assert_eq!((&claims["iss"], &claims["sub"]), (&json!("me"), &json!("me")));
        assert_eq!(claims["aud"], "https://login.example");
        assert_eq!((&claims["iat"], &claims["exp"]), (&json!(1000), &json!(1300)));
        assert_ne!(parts(&make()).1["jti"], claims["jti"]);
        // As variables of CI hold it.
        let flat = Key::read(&pem.replace('\n', "\\n")).unwrap();
        assert!(verifies(&flat.assertion(("me", None), "x", 0).unwrap(), &public));
        let edwards = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let edwards = Key::read(&super::testing::pem("PRIVATE KEY", edwards.as_ref())).unwrap();
        assert_eq!(edwards.algorithm(), "EdDSA");
        assert_eq!(edwards.assertion(("me", None), "x", 0).unwrap().split('.').count(), 3);
    }

    #[test]
    fn what_is_no_key_is_named_without_being_shown() {
        for (text, why) in [
            ("hunter2".to_owned(), "no line -----BEGIN"),
            ("-----BEGIN PRIVATE KEY-----\nhunter2 !\n-----END PRIVATE KEY-----".into(), "no base64"),
            (pem("PRIVATE KEY", b"hunter2"), "is damaged, or of a kind"),
            (pem("RSA PRIVATE KEY", b"hunter2"), "the RSA key cannot be used"),
            (pem("EC PRIVATE KEY", b"hunter2"), "openssl pkcs8"),
            (pem("ENCRYPTED PRIVATE KEY", b"hunter2"), "is encrypted"),
            (pem("PUBLIC KEY", b"hunter2"), "a public one"),
            (pem("OPENSSH PRIVATE KEY", b"hunter2"), "openssl pkcs8"),
            ("-----BEGIN ".into(), "no line -----BEGIN"),
            (String::new(), "no line -----BEGIN"),
        ] {
            let error = Key::read(&text).err().unwrap();
            assert!(error.contains(why) && !error.contains("hunter2"), "{text}: {error}");
        }
    }
}
