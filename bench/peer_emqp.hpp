// eMQP, by what crosses the broker for one job:
//   emqp   client REQUEST -> broker -> worker;  worker REPLY, READY -> broker;  broker REPLY (handed over), REPLY (result) -> client
//   proxy  client REQUEST -> proxy -> worker;   worker two REPLYs -> proxy -> client, of the same two shapes
//   fill   client REQUEST with ack-requested;   broker ACK -> client (the messages stay waiting)
//   drain  broker REQUEST -> worker;            worker REPLY, READY -> broker
// In emqp and proxy the middle moves three messages in and three out per job.
#pragma once

#include "peer_ledger.hpp"
#include "peer_zmtp.hpp"

class Emqp {
public:
    using Link = ZmtpLink;
    static constexpr int64_t BEAT_NS = 2000000000;
    const bool is_proxied, is_fill, is_drain, has_clients, has_workers;

    explicit Emqp(const Options& options)
        : is_proxied(options.is_proxied()),
          is_fill(options.mode() == "fill"),
          is_drain(options.mode() == "drain"),
          has_clients(!is_drain),
          has_workers(!is_fill),
          slots_(options.number("slots", 1)) {
        request_id_ = start(request_, "REQUEST");
        request_.add(options.queue());
        request_.add(is_fill ? "ack-requested" : "reply-requested");
        request_.add(options.body(), true);
        reply_id_ = start(reply_, "REPLY");
        reply_.add(REPLY_VALUE);
        reply_to_ = reply_.add(ids_.sample, true);
        handed_id_ = start(handed_, "REPLY");
        handed_to_ = handed_.add(ids_.sample, true);
        inform_id_ = start(inform_, "INFORM");
        inform_.add("[[10, \"" + options.queue() + "\"]]");
        inform_.add("worker");
        inform_.add("bytes", true);
        beat_id_ = start(beat_, "HEARTBEAT");
        beat_.add("0.0", true);
        ready_id_ = start(ready_, "READY", true);
        goodbye_id_ = start(goodbye_, "KBYE", true);
    }

    // eMQP peers name themselves, so that a reply finds them after a restart; the proxy is spared the longer envelope.
    void connect(Link& link, const std::string& address) {
        link.connect(address, is_proxied ? "" : "bench" + std::to_string(link.index) + "-" + ids_.sample.substr(0, 13));
    }

    void greet(Link& link) {
        if (link.is_worker && !is_proxied)
            put(link, inform_, inform_id_);
        else
            link.is_ready = true;
    }

    void read(Link& link, Ledger& ledger) {
        link.read_messages([&](const Message& m) { on_message(link, m, ledger); });
    }

    void ask(Link& link, uint64_t number, Ledger&) { Ids::write(&link.out[link.put(request_.wire) + request_id_], number); }

    void beat(Link& link) {
        if (link.is_worker && !is_proxied) put(link, beat_, beat_id_);
    }
    void leave(Link& link) {
        if (!is_proxied) put(link, goodbye_, goodbye_id_);
    }

    bool is_settled(const Ledger& ledger) const {
        return is_drain || (ledger.results == ledger.sent && (is_fill || ledger.notices == ledger.sent));
    }

private:
    const int64_t slots_;
    Ids ids_;
    Template request_, reply_, ready_, handed_, inform_, beat_, goodbye_;
    size_t request_id_ = 0, reply_id_ = 0, reply_to_ = 0, ready_id_ = 0, handed_id_ = 0, handed_to_ = 0, inform_id_ = 0, beat_id_ = 0, goodbye_id_ = 0;
    uint64_t worker_no_ = 0;

    size_t start(Template& message, std::string_view command, bool is_all = false) {
        message.add("");
        message.add("eMQP/1.0");
        message.add(command);
        return message.add(ids_.sample, is_all);
    }

    // Appends a worker's message with a fresh id of its own.
    size_t put(Link& link, const Template& message, size_t id_at) {
        const size_t at = link.put(message.wire);
        Ids::write(&link.out[at + id_at], ++worker_no_ | uint64_t(1) << 47);
        return at;
    }

    void on_message(Link& link, const Message& m, Ledger& ledger) {
        const size_t skip = is_proxied && link.is_worker ? 1 : 0;
        if (m.count < skip + 4) fail("a message of " + std::to_string(m.count) + " frames");
        const std::string_view command = m.frame[skip + 2];
        if (link.is_worker && command == "REQUEST") return is_proxied ? answer_twice(link, m) : answer(link, m, ledger);
        if (!link.is_worker && command == "REPLY" && !is_fill) return m.count == 5 ? ledger.notice() : ledger.result(link, Ids::read(m.frame[5]));
        if (command == "ACK") return link.is_worker ? on_inform_ack(link) : ledger.result(link, Ids::read(m.frame[4]));
        if (command == "HEARTBEAT" || command == "REPLY") return;
        fail("unexpected " + std::string(command) + (link.is_worker ? " at a worker" : " at a client"));
    }

    void on_inform_ack(Link& link) {
        link.is_ready = true;
        for (int64_t i = 0; i < slots_; i++) put(link, ready_, ready_id_);
    }

    void answer(Link& link, const Message& m, Ledger& ledger) {
        if (m.count != 7 || m.frame[3].size() != Ids::SIZE) fail("a REQUEST of another shape");
        const size_t at = put(link, reply_, reply_id_);
        memcpy(&link.out[at + reply_to_], m.frame[3].data(), Ids::SIZE);
        put(link, ready_, ready_id_);
        if (is_drain) ledger.arrived(Ids::read(m.frame[3]));
    }

    void answer_twice(Link& link, const Message& m) {
        if (m.count != 8 || m.frame[4].size() != Ids::SIZE) fail("a REQUEST of another shape");
        put_envelope(link, m.frame[0]);
        size_t at = put(link, handed_, handed_id_);
        memcpy(&link.out[at + handed_to_], m.frame[4].data(), Ids::SIZE);
        put_envelope(link, m.frame[0]);
        at = put(link, reply_, reply_id_);
        memcpy(&link.out[at + reply_to_], m.frame[4].data(), Ids::SIZE);
    }
};
