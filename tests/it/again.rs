//! Calls whose head came before over the same connection: what follows from it was found out then, and nobody can tell.

use tokio::sync::{mpsc, watch};

use crate::calls::Proxy;
use crate::support::{Backend, Raw};

/// The body of a call of so many bytes, at least 120.
fn body(tool: &str, length: usize) -> String {
    let empty = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"q":""}}}}}}"#
    );
    let filler = "x".repeat(length - empty.len());
    empty.replace(r#""q":"""#, &format!(r#""q":"{filler}""#))
}

/// A POST with these further lines in its head; `LENGTH` in them is where its length stands.
fn request(lines: &str, body: &str) -> String {
    let length = body.len().to_string();
    format!("POST /mcp HTTP/1.1\r\nHost: tools.example\r\n{}\r\n{body}", lines.replace("LENGTH", &length))
}

fn length_of(head: &str) -> usize {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next_back().map_or("0", |(_, value)| value.trim()).parse().unwrap()
}

/// A head with its body, read from a socket.
async fn message(raw: &mut Raw) -> (String, String) {
    let head = raw.read_head().await;
    if head.to_lowercase().contains("transfer-encoding: chunked") {
        return (head, raw.read_until("\r\n0\r\n\r\n").await);
    }
    let body = raw.read_n(length_of(&head)).await;
    (head, String::from_utf8(body).unwrap())
}

const PLAIN: &str =
    "content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: LENGTH\r\n";

const SUCCESS: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"fine"}]}}"#;
const FAILURE: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"No such file"}],"isError":true}}"#;
const ERROR: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid arguments"}}"#;

fn answer(status: &str, lines: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{lines}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Has a backend answer every call as it was told last, and gives what it was sent.
fn scripted(backend: Backend) -> (watch::Sender<String>, mpsc::UnboundedReceiver<(String, String)>) {
    let (say, said) = watch::channel(String::new());
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut connection, said, tell) = (backend.accept().await, said.clone(), tell.clone());
            tokio::spawn(async move {
                while let Some(head) = connection.try_read_head().await {
                    let body = connection.read_n(length_of(&head)).await;
                    tell.send((head, String::from_utf8(body).unwrap())).unwrap();
                    let answer = said.borrow().clone();
                    connection.send(answer).await;
                }
            });
        }
    });
    (say, told)
}

#[tokio::test]
async fn every_call_of_a_connection_passes_like_its_first() {
    let json = "content-type: application/json\r\n";
    let settings = [
        ("{}", ""),
        ("{via: true, x_forwarded: true, forwarded: true}", ""),
        ("{}", "identity: {user: [{header: x-user-id}], trusted_sources: [10.0.0.0/8]}"),
    ];
    let heads = [
        PLAIN.to_owned(),
        format!(
            "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nAccept-Encoding: br, gzip\r\n{PLAIN}X-MiXed: a\r\nx-mixed: b\r\n"
        ),
        "x-user-id: alice\r\nCONTENT-Length:  LENGTH\r\nAuthorization: Bearer t\r\n".to_owned(),
    ];
    let answers = [
        answer("200 OK", json, SUCCESS),
        answer("200 OK", &format!("{json}Connection: keep-alive\r\nX-One: 1\r\nx-one: 2\r\n"), SUCCESS),
        answer("200 Fine", json, FAILURE),
        answer("200 OK", json, ERROR),
        answer("404 Not Found", json, ERROR),
        answer(
            "200 OK",
            "content-type: application/json\r\ncontent-encoding: identity\r\ngrpc-status: 14\r\n",
            SUCCESS,
        ),
        answer("200 OK", "content-type: text/plain\r\n", "what else"),
        answer("200 OK", "content-type: text/event-stream\r\n", &format!("data: {SUCCESS}\n\n")),
        format!("HTTP/1.1 200 OK\r\n{json}Content-Length: 00{}\r\n\r\n{SUCCESS}", SUCCESS.len()),
    ];
    for (forwarded, setting) in settings {
        let backend = Backend::start().await;
        let proxy = Proxy::forwarding(backend.address, forwarded, &format!("mode: observe\n{setting}")).await;
        let (say, mut seen) = scripted(backend);
        for (head, answer) in heads.iter().flat_map(|head| answers.iter().map(move |answer| (head, answer))) {
            let mut client = Raw::connect(proxy.running.listen[0]).await;
            let mut first: Option<(String, (String, String))> = None;
            for length in [200, 200, 1_000, 9_999, 150, 200] {
                let sent = body("demo", length);
                say.send_replace(answer.clone());
                client.send(request(head, &sent)).await;
                let got = message(&mut client).await;
                let (head_seen, body_seen) = seen.recv().await.unwrap();
                assert_eq!(body_seen, sent);
                let (head_first, answer_first) =
                    first.get_or_insert_with(|| (head_seen.replace("200", "LENGTH"), got.clone()));
                assert_eq!(
                    head_seen,
                    head_first.replace("LENGTH", &length.to_string()),
                    "{forwarded} {setting} {head:?}"
                );
                assert_eq!(got, *answer_first, "{forwarded} {setting} {head:?} {answer:?}");
            }
        }
    }
}

#[tokio::test]
async fn whoever_names_somebody_else_is_somebody_else_from_that_call_on() {
    let backend = Backend::start().await;
    let proxy = Proxy::before(
        backend.address,
        "mode: observe\nidentity: {user: [{header: x-user-id}], trusted_sources: [127.0.0.0/8]}",
    )
    .await;
    let mut client = Raw::connect(proxy.running.listen[0]).await;
    let mut upstream = None;
    for user in ["alice", "alice", "alice", "bobby", "alice", "bobby", "bobby", "bobby"] {
        client.send(request(&format!("{PLAIN}x-user-id: {user}\r\n"), &body("demo", 200))).await;
        let upstream = match &mut upstream {
            Some(upstream) => upstream,
            none => none.insert(backend.accept().await),
        };
        message(upstream).await;
        let expired = "{\"error\":\"token expired\"}";
        let (status, said) = if user == "alice" { ("401 Unauthorized", expired) } else { ("200 OK", SUCCESS) };
        upstream.send(answer(status, "content-type: application/json\r\n", said)).await;
        message(&mut client).await;
    }
    for (user, status) in [("alice", "DOWN"), ("bobby", "OK")] {
        let seen = proxy.admin(&format!("/v1/lookup?tool=demo&backend=demo&user={user}")).await;
        assert!(seen.contains(&format!(r#""status":"{status}""#)), "{seen}");
    }
}

#[tokio::test]
async fn calls_that_come_together_are_answered_one_after_the_other() {
    let backend = Backend::start().await;
    let proxy = Proxy::before(backend.address, "").await;
    let mut client = Raw::connect(proxy.running.listen[0]).await;
    let lengths = [150, 160, 170, 180, 190, 5_000, 200];
    client.send(lengths.map(|length| request(PLAIN, &body("demo", length))).concat()).await;
    let mut upstream = backend.accept().await;
    for length in lengths {
        assert_eq!(message(&mut upstream).await.1, body("demo", length));
        let said = SUCCESS.replace("fine", &length.to_string());
        upstream.send(answer("200 OK", "content-type: application/json\r\n", &said)).await;
        assert_eq!(message(&mut client).await.1, said);
    }
}

#[tokio::test]
async fn a_call_that_its_caller_gives_up_ends_at_the_backend_and_one_that_never_left_is_sent_once_more() {
    let backend = Backend::start().await;
    let proxy = Proxy::before(backend.address, "").await;
    let mut client = Raw::connect(proxy.running.listen[0]).await;
    let mut upstream = None;
    for _ in 0..3 {
        client.send(request(PLAIN, &body("demo", 200))).await;
        let upstream = match &mut upstream {
            Some(upstream) => upstream,
            none => none.insert(backend.accept().await),
        };
        message(upstream).await;
        upstream.send(answer("200 OK", "content-type: application/json\r\n", SUCCESS)).await;
        message(&mut client).await;
    }
    // The backend closes while nobody calls.
    drop(upstream);
    client.send(request(PLAIN, &body("demo", 200))).await;
    let mut upstream = backend.accept().await;
    assert_eq!(message(&mut upstream).await.1, body("demo", 200));
    drop(client);
    assert_eq!(upstream.read_rest().await, "");
}

#[tokio::test]
async fn the_last_answer_of_a_connection_that_is_drained_says_so() {
    let backend = Backend::start().await;
    let proxy = Proxy::before(backend.address, "").await;
    let mut client = Raw::connect(proxy.running.listen[0]).await;
    let mut upstream = None;
    for is_last in [false, false, false, true] {
        client.send(request(PLAIN, &body("demo", 200))).await;
        let upstream = match &mut upstream {
            Some(upstream) => upstream,
            none => none.insert(backend.accept().await),
        };
        message(upstream).await;
        if is_last {
            proxy.running.drain();
        }
        upstream.send(answer("200 OK", "content-type: application/json\r\n", SUCCESS)).await;
        let (head, said) = message(&mut client).await;
        assert_eq!((head.to_lowercase().contains("connection: close"), said.as_str()), (is_last, SUCCESS));
    }
    assert_eq!(client.read_rest().await, "");
}

#[tokio::test]
async fn failures_that_say_the_same_are_counted_each_and_those_that_do_not_are_told_apart() {
    let backend = Backend::start().await;
    let proxy = Proxy::before(backend.address, "mode: observe\n").await;
    let (say, _seen) = scripted(backend);
    let mut client = Raw::connect(proxy.running.listen[0]).await;
    let said = ["No such file: /a", "No such file: /a", "Rate limit exceeded", "Rate limit exceeded", "fine"];
    for (number, text) in (0..).zip([said; 3].concat()) {
        let failed = text != "fine";
        let result = format!(
            r#"{{"jsonrpc":"2.0","result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":{failed}}},"id":{number}}}"#
        );
        say.send_replace(answer("200 OK", "content-type: application/json\r\n", &result));
        let call = body("demo", 200).replace(r#""id":1"#, &format!(r#""id":{number}"#));
        client.send(request(PLAIN, &call)).await;
        assert_eq!(message(&mut client).await.1, result);
    }
    let metrics = proxy.admin("/metrics").await;
    let counted = |metric: &str, label: &str| -> u64 {
        let lines = metrics.lines().filter(|line| line.starts_with(metric) && line.contains(label));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    assert_eq!(counted("toolvane_calls_total{", r#"outcome="success""#), 3, "{metrics}");
    assert_eq!(counted("toolvane_failures_total{", r#"classification="USER_INPUT""#), 6, "{metrics}");
    assert_eq!(counted("toolvane_failures_total{", r#"classification="INTERMITTENT""#), 6, "{metrics}");
}
