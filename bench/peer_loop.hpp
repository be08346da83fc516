// The loop: clients and workers of one broker in one thread over epoll, whatever they speak.
//
// A Dialogue is what the peers of one dialect say:
//   Link                       its kind of connection
//   BEAT_NS                    how often `beat` is called for each connection
//   has_clients, has_workers   which side is played at all
//   connect(link, address)     opens a connection
//   greet(link)                the first words, once the connection is open; sets link.is_ready when nothing is to be awaited
//   read(link, ledger)         takes what has come and answers it
//   ask(link, number, ledger)  a client's request
//   beat(link)                 a sign of life, where one is due
//   leave(link)                a worker says goodbye
//   is_settled(ledger)         whether everything asked has come back
#pragma once

#include <sys/epoll.h>

#include <signal.h>

#include <deque>

#include "peer_ledger.hpp"

constexpr int64_t SECOND_NS = 1000000000;
constexpr int64_t STALL_NS = 20 * SECOND_NS;  // nothing moved for so long: give up loudly instead of hanging the bench

inline volatile sig_atomic_t stop_asked = 0;

template <class Dialogue>
class Loop {
    using Link = typename Dialogue::Link;

public:
    explicit Loop(const Options& options) : dialogue_(options), ledger_(options), in_flight_max_(size_t(options.number("in-flight", 1))) {
        epoll_ = epoll_create1(EPOLL_CLOEXEC);
        const int64_t workers = dialogue_.has_workers ? options.number("workers", 1) : 0;
        const int64_t clients = dialogue_.has_clients ? options.number("clients", 1) : 0;
        for (int64_t i = 0; i < workers; i++) connect(options.text("worker-addr", ""), true);
        for (int64_t i = 0; i < clients; i++) connect(options.text("client-addr", ""), false);
    }

    void run() {
        moved_ns_ = beat_ns_ = now_ns();
        turn_until([this] { return is_ready(); });
        start_ns_ = now_ns();
        for (size_t i = 0; i < in_flight_max_ && !clients_.empty(); i++) ask(*clients_[i % clients_.size()]);
        turn_until([this] { return ledger_.is_ended && dialogue_.is_settled(ledger_); });
        ledger_.print();
        leave();
    }

    // The other process of --processes 2: workers until told to stop.
    void serve(int ready_pipe) {
        moved_ns_ = beat_ns_ = now_ns();
        turn_until([this] { return is_ready(); });
        if (write(ready_pipe, "r", 1) != 1) fail("the clients' process is gone");
        is_serving_ = true;
        turn_until([] { return stop_asked != 0; });
        leave();
    }

private:
    Dialogue dialogue_;
    Ledger ledger_;
    const size_t in_flight_max_;
    int epoll_ = -1;
    std::deque<Link> links_;
    std::vector<Link*> clients_, dirty_;
    size_t next_client_ = 0;
    int64_t start_ns_ = 0, moved_ns_ = 0, beat_ns_ = 0;
    bool is_serving_ = false;

    void connect(const std::string& address, bool is_worker) {
        Link& link = links_.emplace_back();
        link.index = int(links_.size()) - 1;
        link.is_worker = is_worker;
        dialogue_.connect(link, address);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &link;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, link.fd, &event);
        if (!is_worker) clients_.push_back(&link);
        greet_once(link);
        mark(link);
    }

    // Only once it is open: libzmq drops a peer whose first message arrives before its own READY has left.
    void greet_once(Link& link) {
        if (link.is_greeted || !link.is_open) return;
        link.is_greeted = true;
        dialogue_.greet(link);
    }

    bool is_ready() const {
        for (const Link& link : links_)
            if (!link.is_ready) return false;
        return true;
    }

    int64_t messages() const {
        int64_t sum = 0;
        for (const Link& link : links_) sum += link.said + link.heard;
        return sum;
    }

    template <class F>
    void turn_until(F&& is_finished) {
        epoll_event events[256];
        flush_dirty();
        while (!is_finished()) {
            const int count = epoll_wait(epoll_, events, 256, 100);
            ledger_.now_ns = now_ns();
            if (start_ns_ != 0) step_window();
            for (int i = 0; i < count; i++) {
                Link& link = *static_cast<Link*>(events[i].data.ptr);
                if (events[i].events & ~unsigned(EPOLLOUT)) {
                    moved_ns_ = ledger_.now_ns;
                    dialogue_.read(link, ledger_);
                    greet_once(link);
                    ask_again();
                }
                mark(link);
            }
            if (ledger_.counts_trips() && ledger_.is_measuring) step_window();
            if (ledger_.now_ns - beat_ns_ > Dialogue::BEAT_NS) send_beats();
            if (!is_serving_ && ledger_.now_ns - moved_ns_ > STALL_NS) {
                fail("stalled: sent " + std::to_string(ledger_.sent) + ", notices " + std::to_string(ledger_.notices) + ", results " +
                     std::to_string(ledger_.results) + (is_ready() ? "" : ", first words unanswered"));
            }
            flush_dirty();
        }
    }

    void step_window() {
        ledger_.step_window(start_ns_, [this] { return messages(); });
    }

    void ask(Link& link) {
        if (!ledger_.may_ask()) return;
        dialogue_.ask(link, ledger_.begin(), ledger_);
        mark(link);
    }
    void ask_again() {
        for (Stream* client : ledger_.owed) {
            // Fewer in flight than connections: go round, so that each connection is used.
            ask(in_flight_max_ < clients_.size() ? *clients_[++next_client_ % clients_.size()] : static_cast<Link&>(*client));
        }
        ledger_.owed.clear();
    }

    void mark(Link& link) {
        if (link.is_dirty) return;
        link.is_dirty = true;
        dirty_.push_back(&link);
    }
    void flush_dirty() {
        for (Link* link : dirty_) {
            link->is_dirty = false;
            const bool waits = !link->flush();
            if (waits == link->waits_write) continue;
            link->waits_write = waits;
            epoll_event event{};
            event.events = EPOLLIN | (waits ? unsigned(EPOLLOUT) : 0u);
            event.data.ptr = link;
            epoll_ctl(epoll_, EPOLL_CTL_MOD, link->fd, &event);
        }
        dirty_.clear();
    }

    void send_beats() {
        beat_ns_ = ledger_.now_ns;
        for (Link& link : links_) {
            if (!link.is_greeted) continue;
            dialogue_.beat(link);
            mark(link);
        }
    }

    // Workers say goodbye, so that no slot of theirs is left behind for the next run; then each side closes in order.
    void leave() {
        for (Link& link : links_) {
            if (link.is_worker) dialogue_.leave(link);
            link.flush();
        }
        for (Link& link : links_) link.close_in_order();
    }
};
