//! Reading along with the answer of an HTTP tool (DESIGN 4).

use bytes::Bytes;
use http::HeaderMap;

use super::net::{BodyObserver, End, Fault, Side};
use super::observe::Head;
use super::reading::Reading;
use super::ticket::Ticket;
use crate::rules::TextCollector;

/// The observer of one answer. Its text is collected only where a rule may have to look at it.
#[derive(Debug)]
pub(super) struct HttpObserver {
    ticket: Option<Ticket>,
    head: Head,
    text: Option<TextCollector>,
}

impl HttpObserver {
    pub(super) fn new(ticket: Ticket, head: Head, text: Option<TextCollector>) -> HttpObserver {
        HttpObserver { ticket: Some(ticket), head, text }
    }

    fn judge(&mut self, fault: Option<&Fault>) {
        if let Some(ticket) = self.ticket.take() {
            let text = self.text.take().map(TextCollector::finish).unwrap_or_default();
            ticket.judge(Reading::of_http(&self.head, text, fault));
        }
    }
}

impl BodyObserver for HttpObserver {
    fn on_data(&mut self, data: &Bytes) {
        if let Some(text) = &mut self.text {
            text.push(data);
        }
    }

    fn on_trailers(&mut self, trailers: &HeaderMap) {
        self.head.headers.extend(trailers.clone());
    }

    fn on_end(&mut self, end: End) -> Option<Bytes> {
        match end {
            End::Complete => self.judge(None),
            End::Broken(fault) => match self.ticket.as_ref().map(|ticket| ticket.blame(fault)) {
                Some(fault) if fault.side == Side::Upstream => self.judge(Some(&fault)),
                _ => drop(self.ticket.take()),
            },
            End::Dropped => drop(self.ticket.take()),
        }
        None
    }
}
