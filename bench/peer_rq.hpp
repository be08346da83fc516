// rq over RISP on raw TCP: a source's REQUEST -> broker -> consumer; the consumer's DELIVERED and REPLY -> broker -> source.
// Three messages in and three out per job. The bytes are those of the original library, ids small as its own are.
#pragma once

#include "peer_ledger.hpp"
#include "peer_options.hpp"

class RispLink : public Stream {
public:
    static constexpr bool is_open = true;  // RISP has no handshake
};

class Rq {
public:
    using Link = RispLink;
    static constexpr int64_t BEAT_NS = 15000000000;
    static constexpr bool has_clients = true, has_workers = true;

    explicit Rq(const Options& options) {
        const std::string queue = options.queue(), body = options.body();
        const int64_t slots = options.number("slots", 1);
        consume_ = bytes({0x01, 0xa0}) + char(queue.size()) + queue + bytes({0x62, uint8_t(slots >> 8), uint8_t(slots), 0x40, 20, CONSUME});
        request_ = bytes({0x01, 0x80, 0, 0, 0, 0, 0xa0}) + char(queue.size()) + queue + payload(body) + char(REQUEST);
        delivered_ = bytes({0x01, 0x80, 0, 0, 0, 0, DELIVERED});
        reply_ = bytes({0x01, 0x80, 0, 0, 0, 0}) + payload(REPLY_VALUE) + char(REPLY);
    }

    void connect(Link& link, const std::string& address) { link.open(address); }

    void greet(Link& link) {
        if (link.is_worker)
            link.put(consume_);
        else
            link.is_ready = true;
    }

    void read(Link& link, Ledger& ledger) {
        link.read_some([&](const char* data, size_t size) { return walk(link, data, size, ledger); });
    }

    void ask(Link& link, uint64_t number, const Ledger& ledger) { put_id(&link.out[link.put(request_) + ID_AT], uint32_t(number % ledger.size())); }

    void beat(Link&) {}
    void leave(Link& link) { link.put(bytes({CLOSING})); }

    bool is_settled(const Ledger& ledger) const { return ledger.results == ledger.sent && ledger.notices == ledger.sent; }

private:
    static constexpr uint8_t CLEAR = 1, PING = 5, PONG = 6, REQUEST = 10, REPLY = 11, DELIVERED = 13, CONSUME = 20, CLOSING = 22, CONSUMING = 24, ID = 128;
    static constexpr size_t ID_AT = 2;
    std::string consume_, request_, delivered_, reply_;

    static std::string bytes(std::initializer_list<uint8_t> values) { return std::string(values.begin(), values.end()); }
    static std::string payload(std::string_view data) {
        std::string out = bytes({0xe0, 0, 0, 0, 0});
        put_id(&out[1], uint32_t(data.size()));
        return out.append(data);
    }
    static void put_id(char* at, uint32_t id) {
        for (int i = 3; i >= 0; i--, id >>= 8) at[i] = char(id);
    }
    static uint32_t number_at(const char* at, size_t size) {
        uint32_t number = 0;
        for (size_t i = 0; i < size; i++) number = number << 8 | uint8_t(at[i]);
        return number;
    }

    // Every operation of a broker begins with CLEAR, so a cut one is walked again from its first byte when the rest is there.
    size_t walk(Link& link, const char* data, size_t size, Ledger& ledger) {
        size_t at = 0, done = 0;
        uint32_t id = 0;
        bool has_id = false;
        while (at < size) {
            const uint8_t command = uint8_t(data[at++]);
            if (command < 32) {
                if (command != CLEAR) {
                    link.heard++;
                    on_operation(link, command, has_id, id, ledger);
                    done = at;
                }
                has_id = false;
            } else if (command >= 64 && command < 160) {
                const size_t width = command < 96 ? 1 : command < 128 ? 2 : 4;
                if (size - at < width) break;
                if (command == ID) {
                    id = number_at(data + at, 4);
                    has_id = true;
                }
                at += width;
            } else if (command >= 160) {
                const size_t width = command < 192 ? 1 : command < 224 ? 2 : 4;
                if (size - at < width) break;
                const size_t length = number_at(data + at, width);
                if (size - at - width < length) break;
                at += width + length;
            }
        }
        return done;
    }

    void on_operation(Link& link, uint8_t command, bool has_id, uint32_t id, Ledger& ledger) {
        if (command == PING) {
            link.put(bytes({PONG}));
            return;
        }
        if (link.is_worker && command == CONSUMING) {
            link.is_ready = true;
            return;
        }
        if (!has_id) fail("operation " + std::to_string(command) + " without an ID");
        if (link.is_worker && command == REQUEST) {
            put_id(&link.out[link.put(delivered_) + ID_AT], id);
            put_id(&link.out[link.put(reply_) + ID_AT], id);
            return;
        }
        if (!link.is_worker && command == DELIVERED) return ledger.notice();
        if (!link.is_worker && command == REPLY) return ledger.result(link, id);
        fail("unexpected operation " + std::to_string(command) + (link.is_worker ? " at a consumer" : " at a source"));
    }
};
