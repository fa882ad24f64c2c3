use tiller_testkit::thread_cpu_time;

use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[tokio::test]
async fn a_client_for_http_is_cheap_and_shared() {
    let connect = Duration::from_secs(5);
    install_crypto();
    let cpu = (0..50)
        .map(|_| {
            let start = thread_cpu_time();
            build(&NetEnv::default(), ClientKind { tls: false, direct: true, connect }).unwrap();
            thread_cpu_time() - start
        })
        .min()
        .unwrap();
    // Unoptimised; a release build takes a fraction of it.
    assert!(cpu < Duration::from_millis(2), "{cpu:?}");
    let http = Http::default();
    for _ in 0..3 {
        http.client(&url("http://127.0.0.1:1/x"), connect).await.unwrap();
    }
    assert_eq!(http.clients.lock().unwrap().len(), 1);
}

#[test]
fn the_environment_is_read_in_either_case() {
    let env = NetEnv::read(&|name| match name {
        "https_proxy" => Some("http://p:1".into()),
        "HTTP_PROXY" => Some("http://never:1".into()),
        "NO_PROXY" => Some("a,b".into()),
        "SSL_CERT_FILE" => Some("/x.pem".into()),
        _ => None,
    });
    let want = NetEnv {
        https_proxy: Some("http://p:1".into()),
        http_proxy: None,
        no_proxy: Some("a,b".into()),
        cert_file: Some("/x.pem".into()),
    };
    assert_eq!(env, want);
}

#[tokio::test]
async fn a_bad_certificate_file_or_proxy_is_told() {
    let connect = Duration::from_secs(5);
    let env = NetEnv { cert_file: Some("/no/such.pem".into()), ..NetEnv::default() };
    let error = Http::new(env).client(&url("https://example.test/"), connect).await.unwrap_err();
    assert!(error.to_string().contains("SSL_CERT_FILE"));
    let env = NetEnv { https_proxy: Some("http://[bad".into()), ..NetEnv::default() };
    let error = Http::new(env).client(&url("https://example.test/"), connect).await.unwrap_err();
    assert!(error.to_string().contains("HTTPS_PROXY"));
}

#[test]
fn loopback_is_known() {
    for (text, want) in [
        ("http://localhost:1", true),
        ("http://127.0.0.9:1", true),
        ("http://[::1]:1", true),
        ("http://10.0.0.1", false),
        ("http://localhost.example.test", false),
    ] {
        assert_eq!(is_loopback(&url(text)), want, "{text}");
    }
}
