// pingpong in its plain form, by what crosses the broker for one job:
//   pingpong        client order -> broker -> worker;  worker result -> broker -> client;  broker PONG -> worker
//   pingpong-proxy  client order -> proxy -> worker;   worker result -> proxy -> client
// Two messages in; three out of the broker, two out of the proxy. Nothing on the wire names a job, so the first bytes of an order
// are its number, and the worker's result is that number.
#pragma once

#include "peer_ledger.hpp"
#include "peer_zmtp.hpp"

class Pingpong {
public:
    using Link = ZmtpLink;
    static constexpr int64_t BEAT_NS = 1000000000;
    static constexpr bool has_clients = true, has_workers = true;
    const bool is_proxied;

    explicit Pingpong(const Options& options) : is_proxied(options.is_proxied()) {
        order_.add("");
        std::string body = options.body();
        body.resize(body.size() < DIGITS ? DIGITS : body.size(), 'x');
        order_at_ = order_.add(body, true);
        result_.add("");
        result_at_ = result_.add(std::string(DIGITS, '0'), true);
        ready_.add("");
        ready_.add("READY", true);
        ping_.add("");
        ping_.add("PING", true);
    }

    void connect(Link& link, const std::string& address) { link.connect(address, ""); }

    void greet(Link& link) {
        if (link.is_worker && !is_proxied)
            link.put(ready_.wire);
        else
            link.is_ready = true;
    }

    void read(Link& link, Ledger& ledger) {
        link.read_messages([&](const Message& m) { on_message(link, m, ledger); });
    }

    void ask(Link& link, uint64_t number, Ledger&) { write_number(&link.out[link.put(order_.wire) + order_at_], number); }

    // A worker that is at work shows by it that it lives.
    void beat(Link& link) {
        if (!link.is_worker || is_proxied) return;
        int64_t& before = heard_[size_t(link.index)];
        if (link.heard == before) link.put(ping_.wire);
        before = link.heard;
    }
    void leave(Link&) {}

    bool is_settled(const Ledger& ledger) const { return ledger.results == ledger.sent; }

private:
    Template order_, result_, ready_, ping_;
    size_t order_at_ = 0, result_at_ = 0;
    std::map<size_t, int64_t> heard_;  // by connection, at the last beat

    void on_message(Link& link, const Message& m, Ledger& ledger) {
        const size_t skip = is_proxied && link.is_worker ? 2 : 1;
        if (link.is_worker && m.count == 5) return;  // its first job once more in another shape, because its PING crossed it
        if (m.count != skip + 1) fail("a message of " + std::to_string(m.count) + " frames: " + std::string(m.frame[m.count - 1]));
        const std::string_view body = m.frame[skip];
        if (link.is_worker && body == "PONG") {
            link.is_ready = true;
            return;
        }
        if (body.size() < DIGITS) fail("unexpected " + std::string(body) + (link.is_worker ? " at a worker" : " at a client"));
        if (!link.is_worker) return ledger.result(link, read_number(body.data()));
        if (is_proxied) put_envelope(link, m.frame[0]);
        memcpy(&link.out[link.put(result_.wire) + result_at_], body.data(), DIGITS);
    }
};
