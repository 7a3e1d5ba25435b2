//! The metrics in the format that a scraper asks for.

use std::fmt;

use prometheus::encoding::prometheus_protobuf::prometheus_data_model::MetricFamily;
use prometheus::encoding::{prometheus_protobuf, prometheus_text, text};
use prometheus::registry::Registry;
use prost::Message;

/// One answer to a scrape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The value of `content-type`.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Prometheus text 0.0.4.
    Text,
    /// OpenMetrics 1.0 text.
    OpenMetrics,
    /// Prometheus protobuf, the only one with native histograms.
    Protobuf,
}

impl Format {
    const fn content_type(self) -> &'static str {
        match self {
            Format::Text => prometheus_text::CONTENT_TYPE,
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// The format that one element of an `Accept` header names, if we speak it.
    fn of(media_type: &str, parameters: &[(String, String)]) -> Option<Format> {
        let is = |name: &str, wanted: &[&str]| {
            let given = parameters.iter().find(|(key, _)| key == name);
            given.is_none_or(|(_, value)| wanted.contains(&value.as_str()))
        };
        match media_type {
            "application/vnd.google.protobuf" => (parameters.iter().any(|(key, _)| key == "proto")
                && is("proto", &["io.prometheus.client.metricfamily"])
                && is("encoding", &["delimited"]))
            .then_some(Format::Protobuf),
            "application/openmetrics-text" => is("version", &["1.0.0", "0.0.1"]).then_some(Format::OpenMetrics),
            "text/plain" => is("version", &["0.0.4"]).then_some(Format::Text),
            "text/*" | "*/*" => Some(Format::Text),
            _ => None,
        }
    }
}

/// Of the formats that a scraper accepts and we speak, the one that it likes best; of equals the first; text if there is none.
fn negotiate(accept: Option<&str>) -> Format {
    let mut best = (0.0, Format::Text);
    for element in accept.unwrap_or_default().split(',') {
        let mut parts = element.split(';').map(|part| part.trim().to_ascii_lowercase());
        let media_type = parts.next().unwrap_or_default();
        let parameters: Vec<(String, String)> = parts
            .filter_map(|part| {
                let (key, value) = part.split_once('=')?;
                Some((key.trim().to_owned(), value.trim().trim_matches('"').to_owned()))
            })
            .collect();
        let quality = parameters.iter().find(|(key, _)| key == "q").map_or(Some(1.0), |(_, q)| q.parse::<f32>().ok());
        if let (Some(quality), Some(format)) = (quality, Format::of(&media_type, &parameters))
            && quality > best.0
        {
            best = (quality, format);
        }
    }
    best.1
}

/// `exemplify` adds what only protobuf can say.
pub(super) fn render(
    registry: &Registry,
    accept: Option<&str>,
    exemplify: impl FnOnce(&mut [MetricFamily]),
) -> Result<Rendered, fmt::Error> {
    let format = negotiate(accept);
    let body = match format {
        Format::Text => {
            let mut out = String::new();
            prometheus_text::encode(&mut out, registry)?;
            out.into_bytes()
        }
        Format::OpenMetrics => {
            let mut out = String::new();
            text::encode(&mut out, registry)?;
            out.into_bytes()
        }
        Format::Protobuf => {
            let mut families = prometheus_protobuf::encode(registry)?;
            exemplify(&mut families);
            families.iter().flat_map(Message::encode_length_delimited_to_vec).collect()
        }
    };
    Ok(Rendered { content_type: format.content_type(), body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_the_format_that_it_likes_best() {
        let proto = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let prometheus_2 = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                            text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let prometheus_3 = format!(
            "{proto};q=0.7,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
        );
        let cases = [
            (None, Format::Text),
            (Some(""), Format::Text),
            (Some("*/*"), Format::Text),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), Format::Text),
            (Some("application/json"), Format::Text),
            (Some("text/plain"), Format::Text),
            (Some("application/openmetrics-text"), Format::OpenMetrics),
            (Some("application/openmetrics-text; version=2.0.0, text/plain;q=0.1"), Format::Text),
            (Some("application/openmetrics-text;q=0"), Format::Text),
            (Some("application/openmetrics-text;q=high"), Format::Text),
            (Some("text/plain;q=0.5, application/openmetrics-text;q=0.6"), Format::OpenMetrics),
            (Some(prometheus_2), Format::OpenMetrics),
            (Some(&prometheus_3), Format::Protobuf),
            (Some(proto), Format::Protobuf),
            (Some("application/vnd.google.protobuf;proto=other.Thing"), Format::Text),
            (Some("application/vnd.google.protobuf"), Format::Text),
            (Some(";;;,,q=1,=;=;"), Format::Text),
        ];
        for (accept, expected) in cases {
            assert_eq!(negotiate(accept), expected, "{accept:?}");
        }
    }
}
