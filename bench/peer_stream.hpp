// One TCP connection of the endpoint: bytes in, bytes out, one write per turn of the loop.
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

constexpr size_t READ_SIZE = 256 * 1024;

[[noreturn]] inline void fail(const std::string& text) {
    fprintf(stderr, "peer: %s\n", text.c_str());
    exit(1);
}

class Stream {
public:
    int fd = -1;
    int index = 0;
    bool is_worker = false;
    bool is_greeted = false;   // its dialogue has said its first words
    bool is_ready = false;     // as the dialogue understands it: the load may begin
    bool is_dirty = false;     // has bytes to write and is on the loop's flush list
    bool waits_write = false;  // EPOLLOUT is armed
    int64_t said = 0, heard = 0;  // messages
    std::string out;

    void open(const std::string& address) {
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
    }

    // Appends a message that was built before; returns where it begins, for patching.
    size_t put(const std::string& wire) {
        const size_t at = out.size();
        out += wire;
        said++;
        return at;
    }

    // Reads once; walk(data, size) returns how many bytes it is done with.
    template <class F>
    void read_some(F&& walk) {
        if (in_.size() - have_ < READ_SIZE) in_.resize(in_.size() * 2);
        const ssize_t got = recv(fd, in_.data() + have_, in_.size() - have_, 0);
        if (got == 0) fail(std::string(is_worker ? "worker" : "client") + " connection closed by the broker");
        if (got < 0) {
            if (errno == EAGAIN || errno == EINTR) return;
            fail(std::string("recv: ") + strerror(errno));
        }
        have_ += size_t(got);
        const size_t used = walk(in_.data(), have_);
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
};
