// The endpoint's books: what is in flight, what came back, and what the measured window holds.
#pragma once

#include "peer_meter.hpp"
#include "peer_options.hpp"

class Ledger {
public:
    int64_t now_ns = 0;  // of this turn of the loop
    uint64_t sent = 0, notices = 0, results = 0, trips = 0, duplicates = 0;
    std::vector<Stream*> owed;  // clients whose result came: each may ask again
    bool is_measuring = false, is_ended = false;

    explicit Ledger(const Options& options)
        : mode_(options.mode()),
          trips_max_(uint64_t(options.number("trips", 0))),
          warmup_ns_(int64_t(options.real("warmup", 0) * 1e9)),
          window_ns_(int64_t(options.real("seconds", 0) * 1e9)),
          watched_pid_(int(options.number("watch", 0))),
          workers_pid_(int(options.number("workers-pid", 0))),
          started_ns_(size_t(options.number("in-flight", 1)) * 8 + 16, 0) {
        if (trips_max_ == 0 && window_ns_ == 0) fail("give --trips N or --seconds S");
        if (mode_ == "drain") seen_.assign(size_t(trips_max_) * 2, false);
    }

    // How many requests can be told apart: a request's number modulo this names it while it is in flight.
    uint64_t size() const { return started_ns_.size(); }

    bool may_ask() const { return window_ns_ > 0 || sent < trips_max_; }

    // Returns the number of a new request.
    uint64_t begin() {
        while (started_ns_[number_ % size()] != 0) number_++;  // an old one is still out: leave its place alone
        started_ns_[number_ % size()] = ::now_ns();
        sent++;
        return number_++;
    }

    // The broker told a client that its request was handed over.
    void notice() { notices++; }

    void result(Stream& client, uint64_t number) {
        int64_t& started_ns = started_ns_[number % size()];
        if (started_ns == 0) {
            duplicates++;
            return;
        }
        if (is_measuring && !is_ended) latency_.add(now_ns - started_ns);
        started_ns = 0;
        results++;
        trips++;
        if (!is_ended) owed.push_back(&client);
    }

    // A worker got a request that nobody here waits for.
    void arrived(uint64_t number) {
        if (number >= seen_.size() || seen_[number]) {
            duplicates++;
            return;
        }
        seen_[number] = true;
        trips++;
        results++;
    }

    // `messages` is how many this endpoint has said and heard so far.
    template <class F>
    void step_window(int64_t start_ns, F&& messages) {
        if (!is_measuring && now_ns - start_ns >= warmup_ns_) {
            is_measuring = true;
            trips = 0;
            begin_ = Meter::first(watched_pid_, workers_pid_);
            messages_ = messages();
        }
        if (is_measuring && !is_ended && ((window_ns_ > 0 && now_ns - begin_.at_ns >= window_ns_) || (trips_max_ > 0 && trips >= trips_max_))) {
            end_ = Meter::last(watched_pid_, workers_pid_);
            messages_ = messages() - messages_;
            trips_at_end_ = trips;
            is_ended = true;
        }
    }
    bool counts_trips() const { return trips_max_ > 0; }

    void print() const {
        const double seconds = double(end_.at_ns - begin_.at_ns) / 1e9;
        const double ours = (end_.own_s - begin_.own_s) + (end_.watched_s - begin_.watched_s);
        const double others = (end_.all_s - begin_.all_s) - ours + (end_.steal_s - begin_.steal_s);
        const double machine = seconds * double(sysconf(_SC_NPROCESSORS_ONLN));
        printf("{\"peer\": \"c++\", \"mode\": \"%s\", \"trips\": %llu, \"messages\": %lld, \"seconds\": %.6f, \"trips_per_s\": %.1f, \"p50_us\": %.2f, "
               "\"p99_us\": %.2f, \"broker_cpu_s\": %.6f, \"peer_cpu_s\": %.6f, \"others_share\": %.4f, \"duplicates\": %llu}\n",
               mode_.c_str(), static_cast<unsigned long long>(trips_at_end_), static_cast<long long>(workers_pid_ > 0 ? 0 : messages_), seconds, double(trips_at_end_) / seconds,
               latency_.percentile_us(0.50), latency_.percentile_us(0.99), end_.watched_s - begin_.watched_s, end_.own_s - begin_.own_s,
               others > 0 ? others / machine : 0.0, static_cast<unsigned long long>(duplicates));
    }

private:
    const std::string mode_;
    const uint64_t trips_max_;
    const int64_t warmup_ns_, window_ns_;
    const int watched_pid_, workers_pid_;
    std::vector<int64_t> started_ns_;  // by request number modulo its size; 0 = not in flight
    std::vector<bool> seen_;           // drain: which request numbers came
    uint64_t number_ = 0, trips_at_end_ = 0;
    int64_t messages_ = 0;  // in the window; not known where the workers live in another process
    Meter begin_, end_;
    Histogram latency_;
};
