//! Where a document lies that others publish: a file beside the configuration, or a URL.

use std::path::Path;

use http::Uri;

use crate::fetch::Location;
use crate::yaml::{At, Fields};

const URL_FORM: &str = "a URL such as `https://issuer.example/keys.json`";
const URL_PATTERN: &str = "^https?://[^/?#@\\s]+(/[^#\\s]*)?(\\?[^#\\s]*)?$";

/// `{url: …}` or `{file: …}`.
pub(super) fn url_or_file(at: At<'_>, directory: &Path) -> Option<Location> {
    at.map(|f: &Fields<'_>| {
        let url =
            f.opt("url", "Its URL, read again and again in the background.", |at| at.parse(URL_FORM, URL_PATTERN, url));
        let file =
            f.opt("file", "A file, read again when it changes; a relative path starts where this file lies.", |at| {
                super::sections::path(at, directory)
            });
        if f.has("url") == f.has("file") {
            return f
                .at()
                .fail_with(format!("{} has exactly one of `url` and `file`", f.at().name()), |problem| problem);
        }
        url.map(Location::Url).or(file.map(Location::File))
    })?
}

/// A text: a URL, or else a path.
pub(super) fn text(at: At<'_>, directory: &Path) -> Option<Location> {
    let text = at.line(4096)?;
    if !text.contains("://") {
        return Some(Location::File(directory.join(&*text)));
    }
    at.parse("a path or a URL such as `http://127.0.0.1:9100/openapi.json`", "", url).map(Location::Url)
}

fn url(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|_| String::new())?;
    let authority = uri.authority().ok_or_else(String::new)?;
    match uri.scheme_str() {
        Some("http" | "https") if authority.host().is_empty() => Err(String::new()),
        Some("http" | "https") if authority.as_str().contains('@') => Err("leave out user and password".to_owned()),
        Some("http" | "https") if text.contains('#') => Err("leave out what follows `#`".to_owned()),
        Some("http" | "https") => Ok(uri),
        _ => Err("the scheme is `http` or `https`".to_owned()),
    }
}
