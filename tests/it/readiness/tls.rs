//! How a service is reached: whose certificates are believed, what we show of ourselves, and through which proxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::support::{Backend, Front, Service, within};

/// Who vouches for certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
struct Certified {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn vouches_for(&self, name: &str) -> Certified {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        let pem = certificate.pem() + &key.serialize_pem();
        Certified { certificate: certificate.der().clone(), key, pem }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        Arc::new(roots)
    }
}

/// A service that speaks TLS and answers 200.
struct Secured {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Secured {
    /// `clients` vouches for the certificates that callers must show.
    async fn start(own: &Certified, clients: Option<&Authority>) -> Secured {
        let provider = Arc::new(default_provider());
        let config =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(authority.roots(), provider).build().unwrap();
                config.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::try_from(own.key.serialize_der()).unwrap();
        let acceptor =
            TlsAcceptor::from(Arc::new(config.with_single_cert(vec![own.certificate.clone()], key).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let secured = Secured { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let asked = Arc::clone(&secured.asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let Some(head) = head(&mut stream).await else { continue };
                asked.lock().unwrap().push(head);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
                let _ = stream.shutdown().await;
            }
        });
        secured
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn url(&self) -> String {
        format!("https://{}/me", self.address)
    }
}

/// The head of a request; `None` if the caller goes away before.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(char::from(stream.read_u8().await.ok()?));
    }
    Some(head)
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn holds(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// A toolvane that has just begun to ask the service.
async fn asking(url: &str, more: &str) -> Front {
    let settings = format!(
        "integrations: {{gmail: {{probe: {{request: 'GET {url}'{more}}}}}}}\ntools: {{'gmail_*': {{integration: gmail}}}}\n"
    );
    let backend = Backend::with(&["gmail_a"]).await;
    let front = Front::with(&backend, "", &settings, &[("PROXY_PASS", "a-secret")]).await;
    assert_eq!(front.names(&[]).await, ["gmail_a"]);
    front
}

fn trusting(ca: &Path) -> String {
    format!(", tls: {{ca_file: {}}}", ca.display())
}

/// Waits until a probe has come to nothing that hides.
async fn gets_no_answer(front: &Front) {
    let failed = |line: &str| {
        line.starts_with("toolvane_integration_probes_total{integration=\"gmail\"")
            && (line.contains("transient") || line.contains("\"error\""))
            && line.ends_with(" 1")
    };
    within("a probe that fails", async { while !front.metrics().await.lines().any(failed) {} }).await;
    assert_eq!(front.names(&[]).await, ["gmail_a"], "what cannot be asked hides nothing");
}

#[tokio::test]
async fn a_certificate_that_nobody_known_vouches_for_is_refused_unless_the_operator_says_otherwise() {
    let (authority, other, folder) = (Authority::new(), Authority::new(), Folder::new());
    let service = Secured::start(&authority.vouches_for("127.0.0.1"), None).await;
    let stranger = folder.holds("other.pem", &other.0.pem());
    for more in ["", ", tls: {}", ", tls: {insecure: false}", &trusting(&stranger)] {
        gets_no_answer(&asking(&service.url(), more).await).await;
        assert_eq!(service.asked(), 0, "{more}: nothing is said to a stranger");
    }
    asking(&service.url(), ", tls: {insecure: true}").await.reaches("gmail", "ready").await;
    assert_eq!(service.asked(), 1);
}

#[tokio::test]
async fn an_authority_of_the_operators_own_is_believed_for_the_name_that_it_vouches_for() {
    let (authority, folder) = (Authority::new(), Folder::new());
    let ca = folder.holds("ca.pem", &authority.0.pem());
    let service = Secured::start(&authority.vouches_for("127.0.0.1"), None).await;
    asking(&service.url(), &trusting(&ca)).await.reaches("gmail", "ready").await;
    assert_eq!(service.asked(), 1);
    let elsewhere = Secured::start(&authority.vouches_for("elsewhere.test"), None).await;
    gets_no_answer(&asking(&elsewhere.url(), &trusting(&ca)).await).await;
    assert_eq!(elsewhere.asked(), 0);
}

#[tokio::test]
async fn a_service_that_wants_a_certificate_of_ours_gets_it() {
    let (authority, folder) = (Authority::new(), Folder::new());
    let ca = folder.holds("ca.pem", &authority.0.pem());
    let client = folder.holds("client.pem", &authority.vouches_for("toolvane").pem);
    let service = Secured::start(&authority.vouches_for("127.0.0.1"), Some(&authority)).await;
    gets_no_answer(&asking(&service.url(), &trusting(&ca)).await).await;
    assert_eq!(service.asked(), 0);
    let both = format!(", tls: {{ca_file: {}, client_file: {}}}", ca.display(), client.display());
    asking(&service.url(), &both).await.reaches("gmail", "ready").await;
    assert_eq!(service.asked(), 1);
}

#[tokio::test]
async fn a_certificate_file_that_is_gone_or_none_is_told_and_hides_nothing() {
    let folder = Folder::new();
    let service = Service::start().await;
    for (file, said) in [
        (folder.0.path().join("gone.pem"), "`tls.ca_file` cannot be read"),
        (
            folder.holds("no.pem", "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n"),
            "`tls.ca_file` holds no certificate that can be used",
        ),
    ] {
        let front = asking(&service.url(), &trusting(&file)).await;
        front.has_found("error", 1).await;
        let shown = front.admin("/v1/integrations/gmail").await.to_string();
        assert!(shown.contains(said), "{said} in {shown}");
    }
    assert_eq!(service.asked(), 0);
}

#[tokio::test]
async fn a_probe_goes_through_its_proxy_and_shows_it_its_own_credentials_alone() {
    let (proxy, service) = (Service::start().await, Service::start().await);
    proxy.answers(403, json!({}));
    let more = format!(", proxy: 'http://me:${{env:PROXY_PASS}}@{}'", proxy.address);
    asking(&service.url(), &more).await.reaches("gmail", "auth_failed").await;
    let seen = proxy.seen();
    assert_eq!((seen.len(), service.asked()), (1, 0));
    assert_eq!(seen[0].line, format!("GET {}", service.url()));
    assert_eq!(seen[0].headers["proxy-authorization"], "Basic bWU6YS1zZWNyZXQ=");
}

#[tokio::test]
async fn through_a_proxy_tls_is_spoken_with_the_service_itself() {
    let (authority, folder) = (Authority::new(), Folder::new());
    let ca = folder.holds("ca.pem", &authority.0.pem());
    let service = Secured::start(&authority.vouches_for("127.0.0.1"), None).await;
    let tunnel = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!(", proxy: 'http://{}'", tunnel.local_addr().unwrap());
    let front = asking(&service.url(), &(trusting(&ca) + &proxy)).await;
    let (mut near, _) = within("a caller of the proxy", tunnel.accept()).await.unwrap();
    let asked = within("what it asks", head(&mut near)).await.unwrap();
    assert!(asked.starts_with(&format!("CONNECT {} HTTP/1.1\r\n", service.address)), "{asked}");
    let mut far = TcpStream::connect(service.address).await.unwrap();
    near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    tokio::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
    front.reaches("gmail", "ready").await;
    assert_eq!(service.asked(), 1);
}
