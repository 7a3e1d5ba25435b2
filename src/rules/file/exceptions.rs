//! The values of `exceptionType`: our own names of transport faults, and class names of tables that exist already.

use crate::rules::rule::Faults;
use crate::rules::vocabulary::TransportFault as Fault;
use crate::yaml::At;

/// Our own names.
const NAMES: [(&str, Fault); 9] = [
    ("connect-refused", Fault::ConnectRefused),
    ("dns", Fault::Dns),
    ("tls", Fault::Tls),
    ("reset", Fault::Reset),
    ("timeout", Fault::Timeout),
    ("body-truncated", Fault::BodyTruncated),
    ("stream-ended", Fault::StreamEnded),
    ("child-exited", Fault::ChildExited),
    ("protocol", Fault::Protocol),
];

/// Class names of the Java library and what they mean here.
const CLASSES: [(&str, &[Fault]); 16] = [
    ("java.net.ConnectException", &[Fault::ConnectRefused]),
    ("java.net.NoRouteToHostException", &[Fault::ConnectRefused]),
    ("java.net.UnknownHostException", &[Fault::Dns]),
    ("java.nio.channels.UnresolvedAddressException", &[Fault::Dns]),
    ("java.net.SocketTimeoutException", &[Fault::Timeout]),
    ("java.net.http.HttpTimeoutException", &[Fault::Timeout]),
    ("java.net.http.HttpConnectTimeoutException", &[Fault::Timeout]),
    ("java.util.concurrent.TimeoutException", &[Fault::Timeout]),
    ("javax.net.ssl.SSLHandshakeException", &[Fault::Tls]),
    ("javax.net.ssl.SSLException", &[Fault::Tls]),
    ("javax.net.ssl.SSLPeerUnverifiedException", &[Fault::Tls]),
    ("java.security.cert.CertificateException", &[Fault::Tls]),
    ("java.net.SocketException", &[Fault::Reset]),
    ("java.nio.channels.ClosedChannelException", &[Fault::Reset, Fault::StreamEnded]),
    ("java.io.EOFException", &[Fault::BodyTruncated, Fault::StreamEnded]),
    ("java.io.IOException", &[Fault::Reset, Fault::BodyTruncated, Fault::StreamEnded]),
];

/// Our own names of transport faults.
pub fn faults() -> Vec<&'static str> {
    NAMES.iter().map(|(name, _)| *name).collect()
}

/// Reads one name or a list of them.
pub(super) fn read(at: At<'_>) -> Option<Faults> {
    let each = at.one_or_list(one)?;
    let mut faults = Faults::default();
    for one in each {
        match one {
            Named::Transport(kinds) => faults.transport.extend(kinds),
            Named::Own(class) => {
                faults.any_tool_error = true;
                faults.own_classes.push(class);
            }
        }
    }
    Some(faults)
}

/// The kind of fault that a name of ours or a class name of the Java library stands for; of several kinds the first.
///
/// # Errors
/// What was probably meant, or what is known.
pub fn fault(text: &str) -> Result<Fault, String> {
    let ours = NAMES.iter().find(|(name, _)| *name == text).map(|(_, fault)| *fault);
    let class = || CLASSES.iter().find(|(name, _)| *name == text).and_then(|(_, faults)| faults.first().copied());
    ours.or_else(class).ok_or_else(|| suggestion(text))
}

enum Named {
    Transport(Vec<Fault>),
    Own(Box<str>),
}

fn one(at: At<'_>) -> Option<Named> {
    let allowed = "a kind of fault such as `connect-refused`, or the class name of an exception";
    at.parse(allowed, "^[A-Za-z][A-Za-z0-9_.$-]*$", |text| {
        if let Some((_, fault)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(Named::Transport(vec![*fault]));
        }
        if let Some((_, faults)) = CLASSES.iter().find(|(name, _)| *name == text) {
            return Ok(Named::Transport(faults.to_vec()));
        }
        // A class that is not the library's own is a tool's: any error that the tool gave as an answer.
        if is_class_name(text) { Ok(Named::Own(text.into())) } else { Err(suggestion(text)) }
    })
}

fn is_class_name(text: &str) -> bool {
    let mut parts = text.split(['.', '$']);
    let last = parts.next_back().unwrap_or("");
    let word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    text.contains('.') && last.starts_with(|c: char| c.is_ascii_uppercase()) && word(last) && parts.all(word)
}

fn suggestion(text: &str) -> String {
    let all = faults();
    let nearest = all.iter().map(|name| (strsim::damerau_levenshtein(text, name), *name)).min();
    match nearest {
        Some((distance, name)) if distance * 3 <= text.len() => format!("did you mean `{name}`?"),
        _ => format!("known are {}", all.join(", ")),
    }
}
