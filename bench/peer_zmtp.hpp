// One ZMTP 3.0 NULL connection of a DEALER: bytes in, whole messages out.
#pragma once

#include "peer_stream.hpp"

constexpr size_t FRAMES_MAX = 16;

struct Message {
    std::string_view frame[FRAMES_MAX];
    size_t count = 0;
};

// Frames of one message in wire form. Built once; what changes from message to message is patched in place.
class Template {
public:
    // Returns the offset of the frame's first byte, for patching.
    size_t add(std::string_view bytes, bool last = false) {
        const char more = last ? 0 : 1;
        if (bytes.size() < 256) {
            wire.push_back(more);
            wire.push_back(char(bytes.size()));
        } else {
            wire.push_back(char(more | 2));
            for (int shift = 56; shift >= 0; shift -= 8) wire.push_back(char(uint64_t(bytes.size()) >> shift));
        }
        const size_t at = wire.size();
        wire.append(bytes);
        return at;
    }
    std::string wire;
};

// The routing frame a proxy puts before a client's message; a worker's answer begins with the same.
inline void put_envelope(Stream& link, std::string_view routing) {
    link.out.push_back(1);
    link.out.push_back(char(routing.size()));
    link.out.append(routing);
}

class ZmtpLink : public Stream {
public:
    bool is_open = false;  // both sides have said READY

    void connect(const std::string& address, const std::string& identity) {
        open(address);
        std::string greeting(64, '\0');
        greeting[0] = char(0xff);
        greeting[9] = 0x7f;
        greeting[10] = 3;
        greeting.replace(12, 4, "NULL");
        std::string body("\5READY", 6);
        property(body, "Socket-Type", "DEALER");
        property(body, "Identity", identity);
        out += greeting;
        out.push_back(4);
        out.push_back(char(body.size()));
        out += body;
    }

    // Reads once and calls on_message(message) for each whole message.
    template <class F>
    void read_messages(F&& on_message) {
        read_some([&](const char* data, size_t size) { return walk(data, size, on_message); });
    }

private:
    bool has_greeting_ = false;

    static void property(std::string& body, const std::string& name, const std::string& value) {
        body.push_back(char(name.size()));
        body += name;
        body.append(3, '\0');
        body.push_back(char(value.size()));
        body += value;
    }

    template <class F>
    size_t walk(const char* const data, const size_t have, F&& on_message) {
        size_t at = 0;
        if (!has_greeting_) {
            if (have < 64) return 0;
            if (uint8_t(data[0]) != 0xff || data[10] < 3 || memcmp(data + 12, "NULL", 5) != 0) fail("the broker's greeting is not ZMTP 3 NULL");
            has_greeting_ = true;
            at = 64;
        }
        size_t done = at;  // everything before this belongs to messages already handed on
        Message message;
        while (at + 2 <= have) {
            const uint8_t flags = uint8_t(data[at]);
            uint64_t size = uint8_t(data[at + 1]);
            size_t head = 2;
            if (flags & 2) {
                if (at + 9 > have) break;
                head = 9;
                size = 0;
                for (int i = 1; i <= 8; i++) size = size << 8 | uint8_t(data[at + size_t(i)]);
            }
            if (at + head + size > have) break;
            const std::string_view frame(data + at + head, size_t(size));
            at += head + size_t(size);
            if (flags & 4) {
                if (frame.substr(0, 6) == std::string_view("\5READY", 6)) is_open = true;
                if (frame.substr(0, 6) == std::string_view("\5ERROR", 6)) fail("the broker refused the handshake");
                done = at;
                continue;
            }
            if (message.count == FRAMES_MAX) fail("a message with too many frames");
            message.frame[message.count++] = frame;
            if (flags & 1) continue;
            heard++;
            on_message(message);
            message.count = 0;
            done = at;
        }
        return done;
    }
};
