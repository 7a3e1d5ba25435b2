//! As much HTTP/1.1 as the load generator and the backend need: finding where a message ends.

use anyhow::{Result, bail};
use memchr::memmem;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// What a complete answer was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Bytes of its body, chunk framing aside.
    pub body: usize,
}

/// Reads answers off one connection.
#[derive(Debug, Default)]
pub struct Reader {
    buffer: Vec<u8>,
}

/// The value of a header field in a raw head; names are compared without case.
pub fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        let (key, value) = (line.get(..colon)?, line.get(colon + 1..)?);
        key.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}

/// The length that a head announces for its body.
pub fn content_length(head: &[u8]) -> Option<usize> {
    std::str::from_utf8(field(head, "content-length")?).ok()?.parse().ok()
}

impl Reader {
    async fn more(&mut self, socket: &mut TcpStream) -> Result<()> {
        if socket.read_buf(&mut self.buffer).await? == 0 {
            bail!("the proxy closed the connection");
        }
        Ok(())
    }

    /// The head of the next answer; it stays in the buffer. Gives its length.
    pub async fn head(&mut self, socket: &mut TcpStream) -> Result<usize> {
        loop {
            if let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") {
                return Ok(end + 4);
            }
            self.more(socket).await?;
        }
    }

    /// The next answer, complete. `first` is called when its first byte of body is there.
    pub async fn answer(&mut self, socket: &mut TcpStream, mut first: impl FnMut()) -> Result<Answer> {
        let head_end = self.head(socket).await?;
        let head = &self.buffer[..head_end];
        let status = std::str::from_utf8(head.get(9..12).unwrap_or_default())?.parse()?;
        let length = content_length(head);
        let chunked = field(head, "transfer-encoding").is_some();
        self.buffer.drain(..head_end);
        let body = match length {
            Some(length) => {
                while self.buffer.len() < length {
                    self.more(socket).await?;
                }
                first();
                self.buffer.drain(..length);
                length
            }
            None if chunked => self.chunks(socket, &mut first).await?,
            None => bail!("an answer without length"),
        };
        Ok(Answer { status, body })
    }

    async fn chunks(&mut self, socket: &mut TcpStream, first: &mut impl FnMut()) -> Result<usize> {
        let mut total = 0;
        let mut at = 0;
        loop {
            let line = loop {
                if let Some(end) = memmem::find(&self.buffer[at..], b"\r\n") {
                    break end;
                }
                self.more(socket).await?;
            };
            let size = usize::from_str_radix(std::str::from_utf8(&self.buffer[at..at + line])?.trim(), 16)?;
            let next = at + line + 2 + size + 2;
            while self.buffer.len() < next {
                self.more(socket).await?;
            }
            if size == 0 {
                self.buffer.drain(..next);
                return Ok(total);
            }
            if total == 0 {
                first();
            }
            total += size;
            at = next;
        }
    }

    /// The body of the answer that comes next, as text.
    pub async fn text(&mut self, socket: &mut TcpStream) -> Result<(u16, String, Option<String>)> {
        let head_end = self.head(socket).await?;
        let head = self.buffer[..head_end].to_vec();
        let session = field(&head, "mcp-session-id").map(|value| String::from_utf8_lossy(value).into_owned());
        let length = content_length(&head);
        let status = std::str::from_utf8(head.get(9..12).unwrap_or_default())?.parse()?;
        self.buffer.drain(..head_end);
        if let Some(length) = length {
            while self.buffer.len() < length {
                self.more(socket).await?;
            }
            let text = String::from_utf8_lossy(&self.buffer[..length]).into_owned();
            self.buffer.drain(..length);
            return Ok((status, text, session));
        }
        let mut text = String::new();
        while !self.buffer.windows(5).any(|end| end == b"0\r\n\r\n") {
            self.more(socket).await?;
        }
        text.push_str(&String::from_utf8_lossy(&self.buffer));
        self.buffer.clear();
        Ok((status, text, session))
    }
}
