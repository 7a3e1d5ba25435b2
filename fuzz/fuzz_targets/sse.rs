//! The framing of event streams: the same events whatever the chunks, never a place outside the chunk, and a boundary only
//! between two events.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolvane::mcp::sse::{Framer, Piece};

type Event = (Vec<u8>, Vec<u8>, Option<Vec<u8>>, bool);

fn events(stream: &[u8], cut: impl Fn(usize) -> usize) -> (Vec<Event>, bool) {
    let mut framer = Framer::new();
    let (mut all, mut text) = (Vec::new(), Vec::new());
    let (mut rest, mut number) = (stream, 0);
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(cut(number).clamp(1, rest.len()));
        framer.push(chunk, |piece| match piece {
            Piece::Data { at, bytes } => {
                assert_eq!(&chunk[at..at + bytes.len()], bytes);
                assert!(!bytes.is_empty());
                text.extend_from_slice(bytes);
            }
            Piece::NextLine => text.push(b'\n'),
            Piece::End(end) => {
                assert!(end.at <= chunk.len() && end.name.len() <= 64);
                assert!(end.id.is_none_or(|id| id.len() <= 1_024));
                all.push((std::mem::take(&mut text), end.name.to_vec(), end.id.map(<[u8]>::to_vec), end.has_data));
            }
        });
        assert!(framer.last_boundary().is_none_or(|at| at <= chunk.len()));
        (rest, number) = (after, number + 1);
    }
    (all, framer.at_boundary())
}

fuzz_target!(|data: &[u8]| {
    let Some((cuts, stream)) = data.split_at_checked(8) else { return };
    let whole = events(stream, |_| stream.len());
    assert_eq!(whole, events(stream, |_| 1), "single bytes");
    assert_eq!(whole, events(stream, |number| usize::from(cuts[number % 8])), "chunks");
});
