//! Queues: odd heads, wrapping, filling up.

use super::{Rig, load, queue_of};
use crate::drivers::rxe::ring::{Consumer, Producer, Ring};
use crate::memory::Buffer;
use crate::uapi::rxe::queue;
use crate::uapi::user_verbs::Wc;
use crate::{Context, CqInit};

fn ring(log2: u32, mask: u32) -> Ring {
    Ring::new(queue_of(log2, mask), 16).unwrap()
}

#[test]
fn odd_heads_are_named() {
    for (log2, mask, least, word) in [
        (3, 7, 16, "log2_elem_size 3"),
        (17, 7, 16, "log2_elem_size 17"),
        (u32::MAX, 7, 16, "log2_elem_size"),
        (7, 6, 48, "index_mask 0x6"),
        (7, 0, 48, "index_mask 0x0"),
        (7, u32::MAX, 48, "index_mask 0xffffffff"),
        (7, 0x3ff, 48, "index_mask 0x3ff"),
    ] {
        let memory = Buffer::allocate(4096).unwrap();
        memory.write(0, &log2.to_ne_bytes()).unwrap();
        memory.write(4, &mask.to_ne_bytes()).unwrap();
        let error = Ring::new(memory, least).unwrap_err().to_string();
        assert!(error.contains(word), "{error:?} lacks {word:?}");
    }
    assert!(
        Ring::new(Buffer::allocate(4).unwrap(), 16).is_err(),
        "no head"
    );
}

/// An odd queue fails the creation, and the object is released.
#[test]
fn a_queue_that_is_none_is_refused() {
    let rig = Rig::with_queues(
        queue_of(4, 7),
        queue_of(9, 7),
        queue_of(7, 7),
        queue_of(7, 7),
    );
    let init = CqInit {
        depth: 5,
        channel: None,
    };
    let error = rig.context.create_cq(&init).err().unwrap().to_string();
    assert!(error.contains("log2_elem_size 4"), "{error}");
    let destroyed = super::code(crate::uapi::ioctl::Method::CQ_DESTROY);
    assert_eq!(rig.asked.lock().unwrap().last(), Some(&destroyed));
}

#[test]
fn a_producer_stops_before_it_overtakes() {
    let memory = queue_of(4, 3);
    memory.store_u32(queue::PRODUCER_INDEX, 2);
    memory.store_u32(queue::CONSUMER_INDEX, 2);
    let mut producer = Producer::new(Ring::new(memory.clone(), 16).unwrap());
    assert_eq!(producer.capacity(), 3);
    for value in [1_u64, 2, 3] {
        assert!(producer.has_room());
        producer.write(8, &value.to_ne_bytes());
        producer.advance();
    }
    assert!(!producer.has_room(), "one slot stays empty");
    assert_eq!(load(&memory, queue::PRODUCER_INDEX), 2, "not shown yet");
    producer.publish();
    assert_eq!(load(&memory, queue::PRODUCER_INDEX), 1, "masked");
    for (index, value) in [(2, 1_u64), (3, 2), (0, 3)] {
        let bytes: [u8; 16] = super::slot(&memory, index);
        assert_eq!(bytes[8..], value.to_ne_bytes());
    }
    memory.store_u32(queue::CONSUMER_INDEX, 3);
    assert!(producer.has_room(), "the kernel has taken one");
}

#[test]
fn a_consumer_takes_what_there_is() {
    let memory = queue_of(7, 3);
    let put = |index: u32, wr_id: u64| {
        let offset = queue::DATA + ((index as usize) << 7);
        memory.write(offset, &wr_id.to_ne_bytes()).unwrap();
    };
    let mut consumer = Consumer::new(Ring::new(memory.clone(), 48).unwrap());
    let mut taken = Vec::new();
    let mut drain = |consumer: &mut Consumer, limit| {
        taken.clear();
        let count = consumer.drain(limit, |_, wc: Wc| taken.push(wc.wr_id));
        assert_eq!(count, taken.len());
        taken.clone()
    };
    assert_eq!(drain(&mut consumer, 8), []);
    for index in 0..3 {
        put(index, u64::from(index) + 10);
    }
    memory.store_u32(queue::PRODUCER_INDEX, 3);
    assert_eq!(drain(&mut consumer, 2), [10, 11]);
    assert_eq!(load(&memory, queue::CONSUMER_INDEX), 2);
    put(3, 13);
    put(0, 14);
    memory.store_u32(queue::PRODUCER_INDEX, 1);
    assert_eq!(drain(&mut consumer, 8), [12, 13, 14]);
    assert_eq!(load(&memory, queue::CONSUMER_INDEX), 1);
    // An index that isn't masked leads nowhere else.
    memory.store_u32(queue::PRODUCER_INDEX, 0xffff_fff1);
    assert_eq!(drain(&mut consumer, 8), []);
}

#[test]
fn slots_may_be_of_any_size_that_the_kernel_says() {
    // Completions have 64 bytes in Linux 5.10, 128 in 6.1.
    for log2 in [6, 7] {
        let ring = ring(log2, 7);
        assert_eq!(ring.slot_len(), 1 << log2);
        assert_eq!(ring.capacity(), 7);
    }
}
