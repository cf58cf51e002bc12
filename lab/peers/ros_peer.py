"""A ROS 2 node made of Cyclone DDS alone: topics, services in rmw_cyclonedds's mapping, and an action client.

Nothing here waits a fixed time: everything waits until it is so, and gives up after PATIENCE seconds.
"""

import os
import time

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic
from cyclonedds.util import duration

PATIENCE = 30.0

RELIABLE = Qos(
    Policy.Reliability.Reliable(duration(seconds=1)),
    Policy.Durability.Volatile,
    Policy.History.KeepLast(100),
)
BEST_EFFORT = Qos(Policy.Reliability.BestEffort, Policy.Durability.Volatile, Policy.History.KeepLast(100))
LATCHED = Qos(
    Policy.Reliability.Reliable(duration(seconds=1)),
    Policy.Durability.TransientLocal,
    Policy.History.KeepLast(10),
)


class Judged(Exception):
    """What is not as it should be."""


def until(what, ready, patience=PATIENCE, pause=0.02):
    """Waits until `ready()` gives something, and returns it."""
    deadline = time.monotonic() + patience
    while True:
        found = ready()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Judged(f"waited {patience:.0f} s in vain for: {what}")
        time.sleep(pause)


class Node:
    def __init__(self, domain):
        self.participant = DomainParticipant(domain)
        self.publisher = Publisher(self.participant)
        self.subscriber = Subscriber(self.participant)

    def reader(self, topic, kind, qos=RELIABLE):
        return Reader(DataReader(self.subscriber, Topic(self.participant, f"rt{topic}", kind), qos))

    def writer(self, topic, kind, qos=RELIABLE):
        return DataWriter(self.publisher, Topic(self.participant, f"rt{topic}", kind), qos)


class Reader:
    """The messages of a topic, as they come."""

    def __init__(self, inner):
        self.inner = inner
        self.seen = 0

    def take(self):
        messages = [sample for sample in self.inner.take(N=100) if sample.sample_info.valid_data]
        self.seen += len(messages)
        return messages

    def next(self, what, wanted=lambda message: True, patience=PATIENCE):
        """The first message from now on that is as wanted."""

        def look():
            return next((message for message in self.take() if wanted(message)), None)

        return until(what, look, patience)

    def newest(self, what, wanted=lambda message: True, patience=PATIENCE):
        """What came so far is old: the first message from now on that is as wanted."""
        self.take()
        return self.next(what, wanted, patience)


def matched(writer):
    return bool(writer.get_matched_subscriptions())


def matched_by(reader):
    """What is known of the writers that a reader is matched with."""
    described = map(reader.inner.get_matched_publication_data, reader.inner.get_matched_publications())
    return [writer for writer in described if writer is not None]


class Client:
    """A client of a service, in the mapping of rmw_cyclonedds: guid and number before the message."""

    def __init__(self, node, service, request, response):
        self.request = request
        reply = Topic(node.participant, f"rr{service}Reply", response)
        self.replies = DataReader(node.subscriber, reply, RELIABLE)
        asked = Topic(node.participant, f"rq{service}Request", request)
        self.requests = DataWriter(node.publisher, asked, RELIABLE)
        self.service = service
        self.guid = int.from_bytes(os.urandom(8), "little")
        self.number = 0

    def ready(self):
        return matched(self.requests) and bool(self.replies.get_matched_publications())

    def send(self, **fields):
        until(f"somebody who serves {self.service}", self.ready)
        self.number += 1
        self.requests.write(self.request(self.guid, self.number, **fields))
        return self.number

    def reply(self, number, patience=PATIENCE):
        def look():
            for reply in self.replies.take(N=100):
                if reply.sample_info.valid_data and (reply.guid, reply.number) == (self.guid, number):
                    return reply
            return None

        return until(f"the reply of {self.service}", look, patience)

    def call(self, patience=PATIENCE, **fields):
        return self.reply(self.send(**fields), patience)
