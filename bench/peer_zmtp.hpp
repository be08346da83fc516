// One ZMTP 3.0 NULL connection of a DEALER: bytes in, whole messages out, one write per turn of the loop.
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

constexpr size_t FRAMES_MAX = 16;
constexpr size_t READ_SIZE = 256 * 1024;

[[noreturn]] inline void fail(const std::string& text) {
    fprintf(stderr, "peer: %s\n", text.c_str());
    exit(1);
}

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

class Connection {
public:
    int fd = -1;
    int index = 0;
    bool is_worker = false;
    bool handshaken = false;
    bool dirty = false;        // has bytes to write and is on the loop's flush list
    bool waits_write = false;  // EPOLLOUT is armed
    bool informed = false;
    bool acknowledged = false;
    std::string out;

    void open(const std::string& address, const std::string& identity) {
        const size_t colon = address.rfind(':');
        if (address.rfind("tcp://", 0) != 0 || colon < 6) fail("address must be tcp://HOST:PORT, not " + address);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(uint16_t(atoi(address.c_str() + colon + 1)));
        if (inet_pton(AF_INET, address.substr(6, colon - 6).c_str(), &to.sin_addr) != 1) fail("not an IPv4 address: " + address);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) fail("cannot connect to " + address + ": " + strerror(errno));
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        in_.resize(READ_SIZE * 2);
        greet(identity);
    }

    // Reads once and calls on_message(connection, message) for each whole message.
    template <class F>
    void read_some(F&& on_message) {
        if (in_.size() - have_ < READ_SIZE) in_.resize(in_.size() * 2);
        const ssize_t got = recv(fd, in_.data() + have_, in_.size() - have_, 0);
        if (got == 0) fail(std::string(is_worker ? "worker" : "client") + " connection closed by the broker");
        if (got < 0) {
            if (errno == EAGAIN || errno == EINTR) return;
            fail(std::string("recv: ") + strerror(errno));
        }
        have_ += size_t(got);
        const size_t used = walk(on_message);
        if (used > 0) {
            memmove(in_.data(), in_.data() + used, have_ - used);
            have_ -= used;
        }
    }

    // Returns true when all was written.
    bool flush() {
        while (out_at_ < out.size()) {
            const ssize_t sent = send(fd, out.data() + out_at_, out.size() - out_at_, MSG_NOSIGNAL);
            if (sent < 0) {
                if (errno == EAGAIN) return false;
                if (errno == EINTR) continue;
                fail(std::string("send: ") + strerror(errno));
            }
            out_at_ += size_t(sent);
        }
        out.clear();
        out_at_ = 0;
        return true;
    }

    // Half-closes, then reads to the end: closing with unread bytes would reset the connection and lose what we wrote last.
    void close_in_order() {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        const timeval patience{1, 0};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        shutdown(fd, SHUT_WR);
        while (recv(fd, in_.data(), in_.size(), 0) > 0) {
        }
        close(fd);
    }

private:
    std::vector<char> in_;
    size_t have_ = 0;
    size_t out_at_ = 0;
    bool greeted_ = false;

    void greet(const std::string& identity) {
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
    static void property(std::string& body, const std::string& name, const std::string& value) {
        body.push_back(char(name.size()));
        body += name;
        body.append(3, '\0');
        body.push_back(char(value.size()));
        body += value;
    }

    template <class F>
    size_t walk(F&& on_message) {
        const char* const data = in_.data();
        size_t at = 0;
        if (!greeted_) {
            if (have_ < 64) return 0;
            if (uint8_t(data[0]) != 0xff || data[10] < 3 || memcmp(data + 12, "NULL", 5) != 0) fail("the broker's greeting is not ZMTP 3 NULL");
            greeted_ = true;
            at = 64;
        }
        size_t done = at;  // everything before this belongs to messages already handed on
        Message message;
        while (at + 2 <= have_) {
            const uint8_t flags = uint8_t(data[at]);
            uint64_t size = uint8_t(data[at + 1]);
            size_t head = 2;
            if (flags & 2) {
                if (at + 9 > have_) break;
                head = 9;
                size = 0;
                for (int i = 1; i <= 8; i++) size = size << 8 | uint8_t(data[at + size_t(i)]);
            }
            if (at + head + size > have_) break;
            const std::string_view frame(data + at + head, size_t(size));
            at += head + size_t(size);
            if (flags & 4) {
                if (frame.substr(0, 6) == std::string_view("\5READY", 6)) handshaken = true;
                if (frame.substr(0, 6) == std::string_view("\5ERROR", 6)) fail("the broker refused the handshake");
                done = at;
                continue;
            }
            if (message.count == FRAMES_MAX) fail("a message with too many frames");
            message.frame[message.count++] = frame;
            if (flags & 1) continue;
            on_message(*this, message);
            message.count = 0;
            done = at;
        }
        return done;
    }
};
