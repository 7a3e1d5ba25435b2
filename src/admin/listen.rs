//! Where the admin surface answers: a TCP address, and a unix socket if one is configured.
//!
//! Connections are bounded in number, and one whose peer takes nothing for a while is ended: a reader that is stuck must not
//! hold what is meant for him for ever.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

use crate::proxy::net::{Open, Watch};

/// Connections at the same time, of each listener.
const CONNECTIONS_MAX: usize = 2_048;
/// How long a peer may take nothing while something waits for him.
const STUCK: Duration = Duration::from_secs(30);

/// A listener with the bounds of the admin surface.
pub(super) struct Bounded<L> {
    listener: L,
    seats: Arc<Semaphore>,
    watch: Arc<dyn Watch>,
}

impl<L> Bounded<L> {
    pub(super) fn new(listener: L, watch: Arc<dyn Watch>) -> Bounded<L> {
        Bounded { listener, seats: Arc::new(Semaphore::new(CONNECTIONS_MAX)), watch }
    }
}

impl<L: Listener> Listener for Bounded<L> {
    type Io = Patient<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (io, address) = self.listener.accept().await;
            // Nobody waits in line: whoever is too much is told so by the end of his connection.
            if let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() {
                return (Patient { io, timer: None, _seat: seat, _open: Open::of(Some(&self.watch)) }, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when its peer takes nothing for [`STUCK`].
pub(super) struct Patient<S> {
    io: S,
    timer: Option<Pin<Box<Sleep>>>,
    _seat: OwnedSemaphorePermit,
    _open: Open,
}

impl<S: AsyncWrite + Unpin> Patient<S> {
    fn waits<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.timer = None;
            return poll;
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(STUCK)));
        timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write(cx, buf);
        self.waits(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.waits(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.io).poll_flush(cx);
        self.waits(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// The unix socket of the admin surface. Its file goes with it.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    pub(super) path: PathBuf,
}

impl Socket {
    /// Binds `path` for the owner of the process alone. A socket that nobody answers on any more is replaced.
    pub(super) async fn bind(path: &Path) -> io::Result<Socket> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if UnixStream::connect(path).await.is_ok() {
                    return Err(error);
                }
                fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            bound => bound?,
        };
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(Socket { listener, path: path.to_owned() })
    }
}

/// How an address is reached.
pub(super) async fn tcp(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::rules::TransportFault;

    #[derive(Debug)]
    struct Nobody;

    impl Watch for Nobody {
        fn opened(&self) {}
        fn closed(&self) {}
        fn failed(&self, _: TransportFault) {}
    }

    /// What is waited for comes, or the test fails; longer than [`STUCK`], for a clock that is moved.
    async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
        tokio::time::timeout(2 * STUCK, work).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
    }

    fn patient<S>(io: S) -> Patient<S> {
        let seat = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        Patient { io, timer: None, _seat: seat, _open: Open::of(None) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_who_takes_nothing_for_half_a_minute_is_given_up_and_one_who_is_slow_is_not() {
        let (own, mut slow) = tokio::io::duplex(1);
        let writing = tokio::spawn(async move { patient(own).write_all(b"abc").await });
        for _ in 0..3 {
            tokio::time::advance(STUCK - Duration::from_secs(1)).await;
            within("a byte", slow.read_u8()).await.unwrap();
        }
        within("the end of what was written", writing).await.unwrap().unwrap();

        let (own, stuck) = tokio::io::duplex(1);
        let error = within("the end of patience", patient(own).write_all(b"abc")).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(stuck);
    }

    #[tokio::test]
    async fn whoever_finds_no_seat_is_told_so_by_the_end_of_his_connection() {
        let (listener, address) = tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let mut bounded = Bounded { listener, seats: Arc::new(Semaphore::new(1)), watch: Arc::new(Nobody) };
        let _first = TcpStream::connect(address).await.unwrap();
        let seated = within("the first to be seated", bounded.accept()).await;
        let mut second = TcpStream::connect(address).await.unwrap();
        let accepting = tokio::spawn(async move { bounded.accept().await });
        let end = within("the end of the second", second.read(&mut [0])).await;
        assert!(matches!(end, Ok(0) | Err(_)), "it is ended");
        drop(seated);
        let third = TcpStream::connect(address).await.unwrap();
        let (io, _) = within("the third to be seated", accepting).await.unwrap();
        assert_eq!(io.io.peer_addr().unwrap(), third.local_addr().unwrap());
    }
}
