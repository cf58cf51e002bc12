// Fast DDS, the other DDS of ROS 2, beside a base that onbeat-ros2 speaks for: hears its odometry, calls a service as
// rmw_fastrtps does, drives it. The messages are bytes written here by hand, from their definitions.
//
//     fastdds_judge DOMAIN

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>

using namespace eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

using Bytes = std::vector<uint8_t>;

// A type that is its bytes: CDR with the header of four bytes that tells so.
class Raw : public TopicDataType {
public:
    explicit Raw(const std::string& name) {
        setName(name.c_str());
        m_typeSize = 65536;
        m_isGetKeyDefined = false;
    }
    bool serialize(void* data, rtps::SerializedPayload_t* payload) override {
        const Bytes& bytes = *static_cast<Bytes*>(data);
        if (bytes.size() > payload->max_size) return false;
        std::memcpy(payload->data, bytes.data(), bytes.size());
        payload->length = static_cast<uint32_t>(bytes.size());
        payload->encapsulation = CDR_LE;
        return true;
    }
    bool deserialize(rtps::SerializedPayload_t* payload, void* data) override {
        static_cast<Bytes*>(data)->assign(payload->data, payload->data + payload->length);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
        return [data] { return static_cast<uint32_t>(static_cast<Bytes*>(data)->size()); };
    }
    void* createData() override { return new Bytes; }
    void deleteData(void* data) override { delete static_cast<Bytes*>(data); }
    bool getKey(void*, rtps::InstanceHandle_t*, bool) override { return false; }
};

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "fastdds: %s\n", why.c_str());
    std::exit(1);
}

struct Node {
    DomainParticipant* participant;
    Publisher* publisher;
    Subscriber* subscriber;

    explicit Node(int domain) {
        participant = DomainParticipantFactory::get_instance()->create_participant(domain, PARTICIPANT_QOS_DEFAULT);
        if (!participant) fail("no participant");
        publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
        subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
    }
    Topic* topic(const std::string& name, const std::string& kind) {
        TypeSupport type(new Raw(kind));
        type.register_type(participant);
        return participant->create_topic(name, kind, TOPIC_QOS_DEFAULT);
    }
    DataWriter* writer(const std::string& name, const std::string& kind) {
        DataWriterQos qos = DATAWRITER_QOS_DEFAULT;
        qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
        qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
        return publisher->create_datawriter(topic(name, kind), qos);
    }
    DataReader* reader(const std::string& name, const std::string& kind) {
        DataReaderQos qos = DATAREADER_QOS_DEFAULT;
        qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
        qos.history().depth = 100;
        qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
        return subscriber->create_datareader(topic(name, kind), qos);
    }
};

bool take(DataReader* reader, Bytes& bytes, SampleInfo& info) {
    return reader->take_next_sample(&bytes, &info) == ReturnCode_t::RETCODE_OK && info.valid_data;
}

// Asks again and again, for half a minute at most.
template <class Ready>
void until(const char* what, Ready ready) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!ready()) {
        if (std::chrono::steady_clock::now() > end) fail(std::string("waited in vain for ") + what);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

Bytes cdr() { return {0, 1, 0, 0}; }

void put(Bytes& bytes, double number) {
    uint8_t raw[8];
    std::memcpy(raw, &number, 8);
    bytes.insert(bytes.end(), raw, raw + 8);
}

uint32_t u32(const Bytes& bytes, size_t at) {
    if (at + 4 > bytes.size()) fail("a message that ends too soon");
    uint32_t number;
    std::memcpy(&number, &bytes[at], 4);
    return number;
}

// x of nav_msgs/Odometry: after the header and the name of the child frame.
double odometry_x(const Bytes& bytes) {
    size_t at = 4 + 8;
    for (int name = 0; name < 2; ++name) {
        at = (at + 3) / 4 * 4;
        at += 4 + u32(bytes, at);
    }
    at = 4 + (at - 4 + 7) / 8 * 8;
    if (at + 8 > bytes.size()) fail("an odometry that ends too soon");
    double x;
    std::memcpy(&x, &bytes[at], 8);
    return x;
}

// One call of std_srvs/Trigger as rmw_fastrtps makes it: the related sample identity names the reader of the reply.
void call(Node& node, const std::string& service) {
    DataReader* replies = node.reader("rr/" + service + "Reply", "std_srvs::srv::dds_::Trigger_Response_");
    DataWriter* requests = node.writer("rq/" + service + "Request", "std_srvs::srv::dds_::Trigger_Request_");
    PublicationMatchedStatus requests_matched;
    SubscriptionMatchedStatus replies_matched;
    until("somebody who serves", [&] {
        requests->get_publication_matched_status(requests_matched);
        replies->get_subscription_matched_status(replies_matched);
        return requests_matched.current_count > 0 && replies_matched.current_count > 0;
    });
    Bytes request = cdr();
    request.push_back(0);
    rtps::WriteParams asked;
    asked.related_sample_identity().writer_guid() = replies->guid();
    if (!requests->write(&request, asked)) fail("a request cannot be written");
    const auto number = asked.sample_identity().sequence_number();
    until("the reply", [&] {
        Bytes bytes;
        SampleInfo info;
        while (take(replies, bytes, info)) {
            const auto& related = info.related_sample_identity;
            const bool ours = related.writer_guid() == replies->guid() || related.writer_guid() == requests->guid();
            if (!ours || related.sequence_number() != number) continue;
            if (bytes.size() < 9 || bytes[4] != 1) fail(service + " was refused");
            return true;
        }
        return false;
    });
}

int main(int, char** arguments) {
    if (!arguments[1]) fail("expected the number of a domain");
    Node node(std::atoi(arguments[1]));
    DataReader* odometry = node.reader("rt/odom", "nav_msgs::msg::dds_::Odometry_");
    DataWriter* velocity = node.writer("rt/cmd_vel", "geometry_msgs::msg::dds_::Twist_");
    Bytes bytes;
    SampleInfo info;
    until("odometry", [&] { return take(odometry, bytes, info); });
    const double start = odometry_x(bytes);
    std::puts("fastdds: odometry comes");

    call(node, "onbeat/disable");
    call(node, "onbeat/enable");
    std::puts("fastdds: services answer");

    Bytes twist = cdr();
    for (double number : {0.2, 0.0, 0.0, 0.0, 0.0, 0.0}) put(twist, number);
    until("the base to drive", [&] {
        velocity->write(&twist);
        while (take(odometry, bytes, info)) {
            if (odometry_x(bytes) > start + 0.05) return true;
        }
        return false;
    });
    std::puts("fastdds: it drives");
    std::fflush(stdout);
    std::_Exit(0);  // its threads need not be joined
}
