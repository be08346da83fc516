// What the endpoint is asked to do, and the parts of a load that every dialogue shares.
#pragma once

#include <sys/random.h>

#include <map>
#include <string>
#include <string_view>

#include "peer_stream.hpp"

constexpr std::string_view REPLY_VALUE = "{\"value\": 1}";

struct Options {
    std::map<std::string, std::string> given;
    std::string text(const std::string& name, const std::string& otherwise) const {
        const auto found = given.find(name);
        return found == given.end() ? otherwise : found->second;
    }
    int64_t number(const std::string& name, int64_t otherwise) const { return given.count(name) ? atoll(given.at(name).c_str()) : otherwise; }
    double real(const std::string& name, double otherwise) const { return given.count(name) ? atof(given.at(name).c_str()) : otherwise; }

    std::string mode() const { return text("mode", "emqp"); }
    // Behind a proxy a worker answers through the client's routing frame, and neither side negotiates.
    bool is_proxied() const { return mode() == "proxy" || mode().find("-proxy") != std::string::npos; }
    std::string queue() const { return text("queue", "benchqueue"); }
    std::string body() const {
        const size_t size = size_t(number("body", 100));
        std::string body = "[\"run\", {\"path\": \"bench\", \"callable\": \"echo\", \"args\": [\"";
        const std::string tail = "\"]}]";
        if (body.size() + tail.size() < size) body.append(size - body.size() - tail.size(), 'x');
        return (body + tail).substr(0, size);
    }
};

// A request's number as twelve hex digits.
constexpr size_t DIGITS = 12;
inline void write_number(char* to, uint64_t number) {
    for (int i = int(DIGITS) - 1; i >= 0; i--, number >>= 4) to[i] = "0123456789abcdef"[number & 15];
}
inline uint64_t read_number(const char* from) {
    uint64_t number = 0;
    for (size_t i = 0; i < DIGITS; i++) number = number << 4 | uint64_t(from[i] <= '9' ? from[i] - '0' : from[i] - 'a' + 10);
    return number;
}

// 36 bytes of uuid4 shape: a salt of this run, and a number in the last twelve hex digits.
class Ids {
public:
    static constexpr size_t SIZE = 36;
    Ids() {
        uint64_t salt = 0;
        if (getrandom(&salt, sizeof salt, 0) != sizeof salt) fail("getrandom");
        char text[SIZE + 1];
        snprintf(text, sizeof text, "%08x-%04x-4%03x-8%03x-000000000000", unsigned(salt), unsigned(salt >> 32) & 0xffffu, unsigned(salt >> 48) & 0xfffu,
                 unsigned(salt >> 52) & 0xfffu);
        sample.assign(text, SIZE);
    }
    static void write(char* id, uint64_t number) { write_number(id + SIZE - DIGITS, number); }
    static uint64_t read(std::string_view id) {
        if (id.size() != SIZE) fail("a reply to an id that is not ours");
        return read_number(id.data() + SIZE - DIGITS);
    }
    std::string sample;
};
