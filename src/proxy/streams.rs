//! Open streams of clients that can be told something: the GET streams of sessions, the streams of the old transport, and
//! listen requests (DESIGN 10). What is sent here goes out between two events of the backend's, never inside one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::asked::{Asked, Page};

/// Messages that wait for a slow reader; what comes on top of it is dropped, never waited for.
const QUEUE: usize = 16;

/// Who reads a stream.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    /// The backend that the stream belongs to.
    pub(super) backend: Arc<str>,
    /// The listen request's id as a raw token, where the stream answers one (2026-07-28).
    pub(super) subscription: Option<Box<str>>,
    /// Whether it wants to know of changes of the tool list.
    pub(super) wants_tools: bool,
}

#[derive(Debug)]
struct Open {
    listener: Listener,
    sender: mpsc::Sender<Bytes>,
    asked: Arc<Asked>,
}

/// All open streams.
#[derive(Debug, Default)]
pub(super) struct Streams {
    next: AtomicU64,
    open: Mutex<HashMap<u64, Open>>,
    /// Streams of the old transport, by the address that their endpoint event named.
    endpoints: Mutex<HashMap<Arc<str>, u64>>,
    /// How many of these there are, so that nobody takes the lock while there are none.
    posted_to: AtomicUsize,
}

impl Streams {
    /// Registers a stream. It is forgotten when the returned handle is dropped.
    pub(super) fn open(self: &Arc<Self>, listener: Listener) -> (StreamHandle, mpsc::Receiver<Bytes>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = mpsc::channel(QUEUE);
        let asked = Arc::<Asked>::default();
        self.lock().insert(id, Open { listener, sender, asked: Arc::clone(&asked) });
        (StreamHandle { id, endpoint: None, asked, streams: Arc::clone(self) }, receiver)
    }

    /// Whether an open stream of the old transport is answered by posts to this address (path and query).
    pub(super) fn session_of(&self, endpoint: &str) -> Option<Arc<str>> {
        if self.posted_to.load(Ordering::Acquire) == 0 {
            return None;
        }
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.get_key_value(endpoint).map(|(name, _)| Arc::clone(name))
    }

    /// Sends an event to the stream of the old transport behind this address; false if it is gone or too slow.
    pub(super) fn send_to(&self, endpoint: &str, event: Vec<u8>) -> bool {
        let id = self.id_of(endpoint);
        let open = self.lock();
        id.and_then(|id| open.get(&id)).is_some_and(|stream| stream.sender.try_send(event.into()).is_ok())
    }

    /// The stream of the old transport behind this address is to bring a page of the tool list.
    pub(super) fn ask(&self, endpoint: &str, page: Page) {
        let id = self.id_of(endpoint);
        if let Some(stream) = id.and_then(|id| self.lock().get(&id).map(|stream| Arc::clone(&stream.asked))) {
            stream.put(page);
        }
    }

    fn id_of(&self, endpoint: &str) -> Option<u64> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).get(endpoint).copied()
    }

    /// Sends to every stream of the backend that wants to know of tools; gives how many were told.
    pub(super) fn tell(&self, backend: &str, event: impl Fn(&Listener) -> Vec<u8>) -> usize {
        let open = self.lock();
        let wants = |listener: &Listener| listener.wants_tools && &*listener.backend == backend;
        let listeners = open.values().filter(|stream| wants(&stream.listener));
        listeners.filter(|stream| stream.sender.try_send(event(&stream.listener).into()).is_ok()).count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open stream; dropping it forgets the stream.
#[derive(Debug)]
pub(super) struct StreamHandle {
    id: u64,
    endpoint: Option<Arc<str>>,
    /// The pages of the tool list that it is to bring.
    pub(super) asked: Arc<Asked>,
    streams: Arc<Streams>,
}

impl StreamHandle {
    /// The stream turned out to be one of the old transport: its session posts to this address (path and query).
    pub(super) fn answers(&mut self, endpoint: &Arc<str>) {
        let mut endpoints = self.streams.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.insert(Arc::clone(endpoint), self.id);
        self.streams.posted_to.store(endpoints.len(), Ordering::Release);
        self.endpoint = Some(Arc::clone(endpoint));
    }

    /// Whether its session posts elsewhere and is answered here.
    pub(super) fn is_of_old_transport(&self) -> bool {
        self.endpoint.is_some()
    }
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.id);
        if let Some(endpoint) = &self.endpoint {
            let mut endpoints = self.streams.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
            endpoints.remove(endpoint);
            self.streams.posted_to.store(endpoints.len(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(wants_tools: bool) -> Listener {
        Listener { backend: "demo".into(), subscription: None, wants_tools }
    }

    #[test]
    fn only_those_who_want_it_are_told_and_a_closed_stream_is_forgotten() {
        let streams = Arc::new(Streams::default());
        let (first, mut told) = streams.open(listener(true));
        let (_second, mut untold) = streams.open(listener(false));
        assert_eq!(streams.tell("demo", |_| b"x".to_vec()), 1);
        assert_eq!(streams.tell("other", |_| b"x".to_vec()), 0);
        assert_eq!(told.try_recv().unwrap(), "x");
        assert!(untold.try_recv().is_err());
        drop(first);
        assert_eq!(streams.tell("demo", |_| b"x".to_vec()), 0);
    }

    #[test]
    fn a_reader_that_does_not_read_loses_messages_instead_of_memory() {
        let streams = Arc::new(Streams::default());
        let (_handle, _receiver) = streams.open(listener(true));
        let told: usize = (0..1000).map(|_| streams.tell("demo", |_| vec![0])).sum();
        assert_eq!(told, QUEUE);
    }

    #[test]
    fn the_old_transport_is_reached_by_the_address_of_its_endpoint() {
        let streams = Arc::new(Streams::default());
        let (mut handle, mut receiver) = streams.open(listener(true));
        let endpoint: Arc<str> = "/messages?session=7".into();
        handle.answers(&endpoint);
        assert_eq!(streams.session_of("/messages?session=7"), Some(endpoint));
        assert!(streams.send_to("/messages?session=7", b"event".to_vec()));
        assert_eq!(receiver.try_recv().unwrap(), "event");
        drop(handle);
        assert_eq!(streams.session_of("/messages?session=7"), None);
        assert!(!streams.send_to("/messages?session=7", b"event".to_vec()));
    }
}
