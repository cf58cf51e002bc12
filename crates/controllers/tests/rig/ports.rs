//! Ports whose other end is in the same thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use ipc::channel::Full;
use ipc::message::MOST_AXES;
use ipc::message::control::{self, Refusal, Reply, Request};
use ipc::message::trajectory::{Order, Report, size};
use onbeat_controllers::Port;

/// Both directions of a port.
#[derive(Clone, Default)]
pub struct Pipe {
    there: Arc<Mutex<VecDeque<Vec<u8>>>>,
    back: Arc<Mutex<VecDeque<Vec<u8>>>>,
}

impl Pipe {
    pub fn put(&self, bytes: &[u8]) {
        self.there.lock().unwrap().push_back(bytes.to_vec());
    }

    pub fn put_request(&self, request: Request) {
        let mut buffer = [0; control::SIZE];
        let length = request.encode(&mut buffer).unwrap();
        self.put(&buffer[..length]);
    }

    pub fn put_order(&self, order: &Order) {
        let mut buffer = [0; size(MOST_AXES)];
        let length = order.encode(&mut buffer).unwrap();
        self.put(&buffer[..length]);
    }

    pub fn taken_replies(&self) -> Vec<(u64, Result<(), Refusal>)> {
        let replies = std::mem::take(&mut *self.back.lock().unwrap());
        replies
            .iter()
            .map(|bytes| Reply::decode(bytes).unwrap())
            .map(|reply| (reply.id, reply.outcome))
            .collect()
    }

    pub fn taken_reports(&self) -> Vec<Report> {
        let reports = std::mem::take(&mut *self.back.lock().unwrap());
        reports.iter().map(|bytes| Report::decode(bytes).unwrap()).collect()
    }
}

impl Port for Pipe {
    fn bind(&mut self) {}

    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let message = self.there.lock().unwrap().pop_front()?;
        let length = message.len().min(buffer.len());
        buffer[..length].copy_from_slice(&message[..length]);
        Some(length)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.back.lock().unwrap().push_back(bytes.to_vec());
        Ok(())
    }
}
