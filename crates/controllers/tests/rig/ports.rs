//! Ports with both ends in the same thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use ipc::channel::Full;
use ipc::message::MOST_AXES;
use ipc::message::control::{self, Action, Refusal, Reply, Request};
use ipc::message::trajectory::{Begin, Order, Outcome, Point, Report, size};
use onbeat_controllers::Port;

/// Both directions of a port.
#[derive(Clone, Default)]
pub struct Pipe {
    there: Arc<Mutex<VecDeque<Vec<u8>>>>,
    back: Arc<Mutex<VecDeque<Vec<u8>>>>,
}

impl Pipe {
    fn put(&self, bytes: &[u8]) {
        self.there.lock().unwrap().push_back(bytes.to_vec());
    }

    fn taken(&self) -> VecDeque<Vec<u8>> {
        std::mem::take(&mut *self.back.lock().unwrap())
    }
}

/// A program at the far ends of both ports.
#[derive(Default)]
pub struct Client {
    /// Replies so far, oldest first.
    pub replies: Vec<(u64, Result<(), Refusal>)>,
    /// Reports on trajectories so far, oldest first.
    pub trajectory: Vec<Report>,
    requests: Pipe,
    orders: Pipe,
    next_id: u64,
}

impl Client {
    /// Near ends of the ports, for requests and for trajectories.
    pub fn ports(&self) -> (Box<dyn Port>, Box<dyn Port>) {
        (Box::new(self.requests.clone()), Box::new(self.orders.clone()))
    }

    /// Takes the replies.
    pub fn collect(&mut self) {
        let replies = self.requests.taken().into_iter().map(|bytes| Reply::decode(&bytes).unwrap());
        self.replies.extend(replies.map(|reply| (reply.id, reply.outcome)));
        let reports = self.orders.taken().into_iter().map(|bytes| Report::decode(&bytes).unwrap());
        self.trajectory.extend(reports);
    }

    /// Sends a request; returns its id.
    pub fn request(&mut self, what: Action) -> u64 {
        self.next_id += 1;
        let mut buffer = [0; control::SIZE];
        let length = Request { id: self.next_id, what }.encode(&mut buffer).unwrap();
        self.raw_request(&buffer[..length]);
        self.next_id
    }

    pub fn raw_request(&self, bytes: &[u8]) {
        self.requests.put(bytes);
    }

    /// Reply to a request.
    pub fn reply(&self, id: u64) -> Option<Result<(), Refusal>> {
        self.replies.iter().find(|reply| reply.0 == id).map(|reply| reply.1)
    }

    pub fn order(&self, order: &Order) {
        let mut buffer = [0; size(MOST_AXES)];
        let length = order.encode(&mut buffer).unwrap();
        self.raw_order(&buffer[..length]);
    }

    pub fn raw_order(&self, bytes: &[u8]) {
        self.orders.put(bytes);
    }

    /// Sends a whole trajectory.
    pub fn send(&self, begin: &Begin, points: &[Point]) {
        self.order(&Order::Begin(*begin));
        points.iter().for_each(|point| self.order(&Order::Point(*point)));
        self.order(&Order::Commit { id: begin.id });
    }

    /// Outcomes of a trajectory, in order.
    pub fn outcomes(&self, id: u64) -> Vec<Outcome> {
        self.trajectory.iter().filter(|report| report.id == id).map(|report| report.outcome).collect()
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
