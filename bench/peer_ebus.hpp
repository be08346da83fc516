// ebus, by what crosses the broker for one job:
//   ebus        client REQ -> broker -> worker;  worker REPLY -> broker -> client
//   ebus-proxy  the same frames through a proxy: the worker answers through the client's routing frame
// Two messages in and two out per job. Frames and signs of life as the original client and worker send them.
#pragma once

#include "peer_ledger.hpp"
#include "peer_zmtp.hpp"

class Ebus {
public:
    using Link = ZmtpLink;
    static constexpr int64_t BEAT_NS = 500000000;
    static constexpr bool has_clients = true, has_workers = true;
    const bool is_proxied;

    explicit Ebus(const Options& options) : is_proxied(options.is_proxied()) {
        frames(request_, {"", CLIENT, "REQ", options.queue()});
        request_id_ = request_.add(ids_.sample);
        request_.add(options.body());
        request_.add("3000", true);
        if (is_proxied)
            frames(reply_, {"", WORKER, "REPLY"});
        else
            frames(reply_, {WORKER, "REPLY"});
        frames(ready_, {WORKER, "READY", "null"});
        ready_.add(options.queue(), true);
        frames(worker_beat_, {WORKER});
        worker_beat_.add("HEARTBEAT", true);
        frames(client_beat_, {"", CLIENT});
        client_beat_.add("HEARTBEAT", true);
        frames(goodbye_, {WORKER, "DISCONNECT", options.queue()});
        goodbye_.add("done", true);
        value_.add(REPLY_VALUE, true);
    }

    void connect(Link& link, const std::string& address) { link.connect(address, ""); }

    // READY has no answer.
    void greet(Link& link) {
        if (link.is_worker && !is_proxied) link.put(ready_.wire);
        link.is_ready = true;
    }

    void read(Link& link, Ledger& ledger) {
        link.read_messages([&](const Message& m) { on_message(link, m, ledger); });
    }

    void ask(Link& link, uint64_t number, Ledger&) { Ids::write(&link.out[link.put(request_.wire) + request_id_], number); }

    void beat(Link& link) {
        if (!is_proxied) link.put(link.is_worker ? worker_beat_.wire : client_beat_.wire);
    }
    void leave(Link& link) {
        if (!is_proxied) link.put(goodbye_.wire);
    }

    bool is_settled(const Ledger& ledger) const { return ledger.results == ledger.sent; }

private:
    static constexpr std::string_view CLIENT = "EBC01", WORKER = "EBW01";
    Ids ids_;
    Template request_, reply_, ready_, worker_beat_, client_beat_, goodbye_, value_;
    size_t request_id_ = 0;

    static void frames(Template& message, std::initializer_list<std::string_view> all) {
        for (const std::string_view frame : all) message.add(frame);
    }

    void on_message(Link& link, const Message& m, Ledger& ledger) {
        // A client's messages begin with an empty frame, a worker's behind a proxy with the routing frame and then that.
        const size_t skip = link.is_worker ? (is_proxied ? 2 : 0) : 1;
        if (m.count < skip + 2) fail("a message of " + std::to_string(m.count) + " frames");
        const std::string_view command = m.frame[skip + 1];
        if (link.is_worker && command == "REQ" && m.count >= skip + 4) return answer(link, m, m.frame[is_proxied ? skip + 3 : skip + 2]);
        if (!link.is_worker && command == "REPLY" && m.count >= skip + 4) return ledger.result(link, Ids::read(m.frame[skip + 2]));
        if (command == "PING") return beat(link);
        if (command == "HEARTBEAT") return;
        fail("unexpected " + std::string(command) + (m.count > skip + 2 ? " " + std::string(m.frame[m.count - 1]) : "") +
             (link.is_worker ? " at a worker" : " at a client"));
    }

    // The broker's own rid may be of any size, so these frames are written each time.
    void answer(Link& link, const Message& m, std::string_view rid) {
        if (is_proxied) put_envelope(link, m.frame[0]);
        link.put(reply_.wire);
        put_envelope(link, rid);
        link.out += value_.wire;
    }
};
