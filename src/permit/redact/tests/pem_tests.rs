use crate::Redactor;

const LINE: &str = "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MaJkFuNw6yQ3pLx1";
const MORE: &str = "9f2KxQe7Rr1TzYbWq4uVnMiOpLkJhGfDsAzXcVbNmQwErTyUiOp0987654321Ab/";
const LAST: &str = "Zx8=";

fn masked(text: &str) -> String {
    Redactor::default().redact(text).into_owned()
}

#[test]
fn a_key_is_masked_whole_however_it_is_written() {
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n{LINE}\n{MORE}\n{LAST}\n-----END RSA PRIVATE KEY-----"
    );
    let numbered: String = key.lines().enumerate().map(|(n, l)| format!("{}\t{l}\n", n + 1)).collect();
    let diff: String = key.lines().map(|l| format!("+{l}\n")).collect();
    let code: String = key.lines().map(|l| format!("    \"{l}\\n\"\n")).collect();
    let json = serde_json::json!({ "key": key }).to_string();
    let twice = serde_json::json!({ "text": json }).to_string();
    for text in
        [key.clone(), numbered, diff, code, json, twice, key.replace('\n', "\r\n"), key.replace('\n', " ")]
    {
        let masked = masked(&format!("before\n{text}\nafter"));
        assert!(!masked.contains("MIIE") && !masked.contains("9f2K") && !masked.contains(LAST), "{masked}");
        assert!(
            masked.starts_with("before\n")
                && masked.ends_with("after")
                && masked.contains("[redacted private key]"),
            "{masked}"
        );
    }
}

#[test]
fn a_part_of_a_key_is_masked() {
    let begin = "-----BEGIN PRIVATE KEY-----";
    let end = "-----END PRIVATE KEY-----";
    for text in [
        format!("{begin}\n{MORE}\n{MORE}\n"),
        format!("{begin}\n{MORE}\n{LAST}\nafter"),
        format!("{MORE}\n{MORE}\n{LAST}\n{end}\nafter"),
        format!("12\t{MORE}\n13\t{MORE}\n14\t{end}\n"),
        format!("{LINE}\n{MORE}\n"),
        format!("KEY={LINE}{MORE}"),
    ] {
        let masked = masked(&text);
        assert!(!masked.contains("9f2K") && !masked.contains("MIIE"), "{masked}");
        assert_eq!(masked.contains("after"), text.contains("after"), "{masked}");
    }
}

#[test]
fn words_about_keys_are_none() {
    for text in [
        "if text.starts_with(\"-----BEGIN RSA PRIVATE KEY-----\") { return parse(text); }",
        "-----BEGIN PRIVATE KEY-----\\nXXXX\\nXXXX\\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "let end = \"-----END PRIVATE KEY-----\";",
        "-----BEGIN PRIVATE KEY-----\"\nconsistent!(click_1, r\"-----BEGIN CERTIFICATE-----\nMIIDazCCAlOgAwIBAgIUJlq+zz9CO2E91rlD4VHX4CX3jr8wDQYJKoZIhvcNAQEL\n",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZgMjrIsTzUZ1sS0kP9cAq0sFpGbj\n-----END PUBLIC KEY-----",
    ] {
        assert_eq!(masked(text), text);
    }
}
