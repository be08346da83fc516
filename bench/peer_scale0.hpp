// scale0, by what crosses the broker for one job:
//   scale0        client TASK -> broker -> worker;  worker TASKREPLY -> broker -> client;  worker PING -> broker, PONG -> worker
//   scale0-proxy  client TASK -> proxy -> worker;   worker TASKREPLY, PONG -> proxy -> client
// Three messages in and three out per job. One PING buys one task, so a worker PINGs again on receipt of each. A PING of a worker
// that is in the line already buys nothing, so the number of tasks it has out at once could only shrink: while it has room for more
// it PINGs twice at every eighth task.
#pragma once

#include <time.h>

#include "peer_ledger.hpp"
#include "peer_zmtp.hpp"

class Scale0 {
public:
    using Link = ZmtpLink;
    static constexpr int64_t BEAT_NS = 1000000000;
    static constexpr bool has_clients = true, has_workers = true;
    const bool is_proxied;

    explicit Scale0(const Options& options) : is_proxied(options.is_proxied()), queue_(options.queue()), body_(options.body()), slots_(options.number("slots", 1)) {
        connect_.add("CONNECT");
        connect_.add("{\"config_type\": \"JSON\", \"services\": [\"" + queue_ + "\"]}", true);
        value_.add(REPLY_VALUE, true);
        set_time();
    }

    void connect(Link& link, const std::string& address) { link.connect(address, ""); }

    void greet(Link& link) {
        if (link.is_worker && !is_proxied)
            link.put(connect_.wire);
        else
            link.is_ready = true;
    }

    void read(Link& link, Ledger& ledger) {
        link.read_messages([&](const Message& m) { on_message(link, m, ledger); });
    }

    void ask(Link& link, uint64_t number, Ledger&) { Ids::write(&link.out[link.put(task_.wire) + task_id_], number); }

    // The broker compares our clock with its own.
    void beat(Link& link) {
        set_time();
        if (link.is_worker && !is_proxied) link.put(ping_.wire);
    }
    void leave(Link&) {}

    bool is_settled(const Ledger& ledger) const { return ledger.results == ledger.sent && (!is_proxied || ledger.notices == ledger.sent); }

private:
    const std::string queue_, body_;
    const int64_t slots_;
    static constexpr uint64_t MORE_EVERY = 8;
    const std::string reply_head_ = std::string("\1\11TASKREPLY\1", 12);  // up to the size of the header
    Ids ids_;
    Template connect_, value_, task_, ping_, pong_;
    std::string reply_tail_, version_;
    size_t task_id_ = 0;
    uint64_t tasks_ = 0;
    time_t written_s_ = 0;

    void set_time() {
        if (time(nullptr) == written_s_) return;
        written_s_ = time(nullptr);
        const std::string at = std::to_string(written_s_);
        task_.wire.clear();
        task_.add("TASK");
        const std::string head = "{\"id\": \"";
        task_id_ = task_.add(head + ids_.sample + "\", \"service\": \"" + queue_ + "\", \"time\": " + at + "}") + head.size();
        task_.add(body_, true);
        ping_.wire.clear();
        ping_.add("PING");
        ping_.add("{\"heartbeat_interval\": 5, \"time\": " + at + version_ + "}", true);
        pong_.wire.clear();
        pong_.add("PONG");
        pong_.add("{\"time\": " + at + version_ + "}", true);
        reply_tail_ = "\", \"time\": " + at + version_ + "}";
    }

    void on_message(Link& link, const Message& m, Ledger& ledger) {
        const size_t skip = is_proxied && link.is_worker ? 1 : 0;
        if (m.count < skip + 2) fail("a message of " + std::to_string(m.count) + " frames");
        const std::string_view command = m.frame[skip], header = m.frame[skip + 1];
        if (link.is_worker && command == "TASK") return answer(link, m, text_of(header, "\"id\""));
        if (!link.is_worker && command == "TASKREPLY") return ledger.result(link, Ids::read(text_of(header, "\"id\"")));
        if (link.is_worker && command == "PONG") return;
        if (!link.is_worker && command == "PONG" && is_proxied) return ledger.notice();
        if (link.is_worker && command == "CONFIG") return on_config(link, header);
        fail("unexpected " + std::string(command) + " " + std::string(header) + (link.is_worker ? " at a worker" : " at a client"));
    }

    void on_config(Link& link, std::string_view header) {
        if (link.is_ready) fail("a second CONFIG");
        link.is_ready = true;
        version_ = ", \"config_version\": " + value_of(header, "\"config_version\"");
        written_s_ = 0;
        set_time();
        link.put(ping_.wire);
    }

    void answer(Link& link, const Message& m, std::string_view id) {
        if (is_proxied) put_envelope(link, m.frame[0]);
        const size_t size = 8 + id.size() + reply_tail_.size();
        if (size > 255) fail("a TASK with an id of " + std::to_string(id.size()) + " bytes");
        link.put(reply_head_);
        link.out.push_back(char(size));
        link.out += "{\"id\": \"";
        link.out += id;
        link.out += reply_tail_;
        link.out += value_.wire;
        if (is_proxied) {
            put_envelope(link, m.frame[0]);
            link.put(pong_.wire);
            return;
        }
        link.put(ping_.wire);
        if (slots_ > 1 && ++tasks_ % MORE_EVERY == 0) link.put(ping_.wire);
    }

    // The value of a key in a header's flat object, as it is written there.
    static std::string value_of(std::string_view header, std::string_view key) {
        size_t at = header.find(key);
        if (at == std::string_view::npos) fail("no " + std::string(key) + " in " + std::string(header));
        at = header.find_first_not_of(" :", at + key.size());
        if (header[at] == '"') return std::string(header.substr(at, header.find('"', at + 1) + 1 - at));
        return std::string(header.substr(at, header.find_first_of(",} ", at) - at));
    }
    static std::string_view text_of(std::string_view header, std::string_view key) {
        const size_t at = header.find(key);
        const size_t begin = at == std::string_view::npos ? at : header.find('"', at + key.size());
        if (begin == std::string_view::npos) fail("no " + std::string(key) + " in " + std::string(header));
        return header.substr(begin + 1, header.find('"', begin + 1) - begin - 1);
    }
};
